# make demo      show wirecheck at work on private servers (installs PostgreSQL and MariaDB with apt if missing)
# make test      all tests, real servers included
# make check     the fast part of it, before each commit
# make bench     what the proxy and the checker cost
# make soak      the load tests at full length, LOAD each; 200 times the same schedules; pruning on thousands of runs
# make fuzz      fuzz the decoders and rewriters, FUZZTIME each
# make build     bin/wirecheck

GO ?= go
# The PostgreSQL parser is C.
export CGO_ENABLED = 1
FUZZTIME ?= 1m
LOAD ?= 60s

# Packages with goroutines run under the race detector; the others have none.
RACE = ./proxy/... ./cmd/... ./internal/... ./backends/...
PURE = ./history/... ./oracle/... ./report/... ./configs/...

.PHONY: build demo test check bench soak fuzz fmt vet clean

build:
	$(GO) build -trimpath -o bin/wirecheck ./cmd/wirecheck

# With one of the servers missing the demo shows the other half.
demo:
	@.ci/install || echo 'make: going on with what is there' >&2
	@$(MAKE) --no-print-directory build
	./bin/wirecheck demo

test: fmt vet
	$(GO) test -timeout 10m $(PURE)
	$(GO) test -timeout 10m -count=1 ./rewrite/...
	$(GO) test -timeout 15m -count=1 -race $(RACE)
	@$(MAKE) --no-print-directory fuzz FUZZTIME=2000x

check: fmt vet
	$(GO) test $(PURE) ./internal/imports/...

fmt:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

bench: build
	$(GO) run ./internal/bench
	$(GO) run ./internal/bench/check

soak:
	$(GO) test -count=1 -timeout 60m -v -run 'Quiet|Racy' ./cmd/wirecheck -load $(LOAD)
	$(GO) test -count=1 -timeout 60m -v -run 'TestSameSeedSameOutput|TestPrunedRuns' ./cmd/wirecheck -repeats 200 -prune-runs 3000

# Each fuzz target by itself, as go test wants it.
fuzz:
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$$file" | while read -r target; do \
			echo "$$target in $$(dirname "$$file")"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null || exit 1; \
		done || exit 1; \
	done

clean:
	rm -rf bin
