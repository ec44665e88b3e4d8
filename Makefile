# make demo      show wirecheck at work on private servers (installs PostgreSQL and MariaDB with apt if missing)
# make test      all tests, real servers included
# make race      again what shares state between goroutines, under the race detector
# make test-engines  tests against MySQL and both TiDB versions too; each must be on the machine
# make test-apps the example applications of testdata/apps in Go, JavaScript and Python, with ORMs from the registries
# make hermitage what every level of every engine lets through, as Markdown (docs/lab/hermitage.md); exit status 1 if the oracle disagrees
# make cases     what each oracle says of the known cases on every engine, as Markdown (docs/lab/cases.md)
# make exam      WriteCheck's exam, as far as its bugs are known and run here, as Markdown (docs/lab/exam.md)
# make mutation  what share of known faults each oracle finds, and that none finds anything without one (docs/lab/mutation.md); hours
# make coverage  what share of the statements of real ORMs is seen exactly, as Markdown (docs/lab/coverage.md); needs python3-django,
#                python3-sqlalchemy, python3-psycopg2, python3-pymysql, python3-mysqldb and npm; names what is missing
# make docs      write the documents that are made from the program
# make check     the fast part of it, before each commit
# make bench     what the proxy and the checker cost
# make suites    the tests of client libraries and frameworks directly, through pass and through observe (docs/lab/suites.md); an hour
# make soak      the load tests at full length, LOAD each; a gibibyte of rows; 200 times the same schedules; pruning on thousands of runs;
#                oracles against each other on 1500 random cases of each product; random sessions direct and through the
#                proxy, and hostile clients beside busy ones, ALIKE long each
# make fuzz      fuzz the decoders and rewriters, FUZZTIME each
# make build     bin/wirecheck
# make release   bin/release: a static program with its man pages and the systemd unit

GO ?= go
# The PostgreSQL parser is C.
export CGO_ENABLED = 1
FUZZTIME ?= 1m
LOAD ?= 60s
ALIKE ?= 1h

# RACE are the packages whose own goroutines share state. RANDOM are those whose random tests get a seed here, so that a red run is
# red again; make soak gives them others.
RACE = ./fleet/... ./proxy/... ./live/... ./scheduler/shell ./trace ./trace/recorder ./lab ./lab/replay
PURE = ./answer/... ./anomaly/... ./product/... ./history/... ./report/... ./configs/... ./scheduler ./oracle ./oracle/isolation ./oracle/inferred ./oracle/schedule ./trace/foreign ./internal/imports
# LONG are tests of the proxy that pass many megabytes. The race detector makes them three times as dear; the same code runs under it in others.
LONG = ^(TestMemory|TestUnansweredIsBounded|TestLongPipelines|TestLongRow|TestLongPackets|TestNumbersBehindLongCommands|TestTooBigCommands|TestCommandsThatJustFit)$$
RANDOM = ./oracle/isolation ./lab/scenario ./scheduler ./trace

.PHONY: build release demo test test-program test-rest test-random race test-engines test-apps test-mysql hermitage mutation cases exam coverage docs check bench suites soak fuzz fmt vet clean

build:
	$(GO) build -trimpath -ldflags '-s -w' -o bin/wirecheck ./cmd/wirecheck

release:
	rm -rf bin/release
	$(GO) build -trimpath -tags netgo,osusergo -ldflags '-s -w -extldflags -static' -o bin/release/wirecheck ./cmd/wirecheck
	bin/release/wirecheck man bin/release/man
	cp configs/wirecheck.service bin/release

# With one of the servers missing the demo shows the other half.
demo:
	@.ci/install || echo 'make: going on with what is there' >&2
	@$(MAKE) --no-print-directory build
	./bin/wirecheck demo

# Everything once. Fuzz targets run on their corpus. Much of the time is waiting for servers, so more packages and tests run at once than there are
# processors. go vet has run: go test need not do it again. Linking without symbols and debugging information takes half the time.
TEST = .ci/scratch $(GO) test -count=1 -vet=off -ldflags=-s -p 2 -parallel 4
test: fmt vet
	@$(MAKE) --no-print-directory -j 3 test-program test-rest test-random

# The longest of them, which mostly waits.
test-program:
	$(TEST) -timeout 30m -parallel 8 ./cmd/wirecheck

test-rest:
	$(TEST) -timeout 30m $$($(GO) list ./... | grep -vxF "$$($(GO) list ./cmd/wirecheck $(RANDOM))")

race:
	$(TEST) -timeout 30m -race -skip '$(LONG)' $(RACE)

# Beside the rest: behind it, a single test at a time would keep one processor busy.
test-random:
	$(TEST) -timeout 30m $(RANDOM) -rapid.seed=1

# ENGINES as "wirecheck engines list" shows them. One that is missing fails the test and is named.
ENGINES ?= mysql tidb:2025-11 tidb:2023-01
test-engines:
	WIRECHECK_TEST_ENGINES="$(ENGINES)" $(TEST) -timeout 40m -race -run TestConformance ./backends
	WIRECHECK_TEST_ENGINES="$(ENGINES)" $(TEST) -timeout 40m -race -run 'TestHermitage|TestCases|TestCorpus|TestFoundCases|TestReplayQueries' ./cmd/wirecheck ./lab/suite ./lab/panel
	WIRECHECK_TEST_ENGINES="$(ENGINES)" $(TEST) -timeout 40m -run TestOnServers ./lab/generate
	@case " $(ENGINES) " in *" mysql"*) $(MAKE) --no-print-directory test-mysql ;; esac

# An application whose libraries cannot be had fails the target, and is named.
APPS ?= go node python
test-apps:
	@for app in $(APPS); do .ci/app $$app || exit 1; done
	WIRECHECK_TEST_APPS="$(APPS)" $(TEST) -timeout 20m -v -run TestApps ./cmd/wirecheck

# The tests of the MySQL family once more, against MySQL.
test-mysql:
	WIRECHECK_TEST_FAMILY=mysql $(TEST) -timeout 40m ./statement ./rewrite/mysql ./proxy/mysqlwire
	WIRECHECK_TEST_FAMILY=mysql $(TEST) -timeout 40m -run Family ./live
	WIRECHECK_TEST_FAMILY=mysql $(TEST) -timeout 40m -run TestMariaDB ./trace/source
	WIRECHECK_TEST_FAMILY=mysql $(TEST) -timeout 40m -run MySQL ./internal/testserver ./backends/instrument
	WIRECHECK_TEST_FAMILY=mysql $(TEST) -timeout 40m -run 'Anomalies|TruthOnMariaDB|TestRemedies' ./cmd/wirecheck
	WIRECHECK_TEST_FAMILY=tidb $(TEST) -timeout 40m -run OnServers ./statement
	WIRECHECK_TEST_FAMILY=tidb $(TEST) -timeout 40m -run OnTiDB ./rewrite/mysql ./proxy/mysqlwire ./backends/instrument
	WIRECHECK_TEST_FAMILY=tidb $(TEST) -timeout 40m -run 'TestFormsFamily|TestRandomHistoriesFamily|OnTiDB' ./live
	WIRECHECK_TEST_FAMILY=tidb $(TEST) -timeout 40m -run 'Anomalies|TruthOnMariaDB|TiDB|TestRemedies' ./cmd/wirecheck

# An engine that is not on the machine is said to be missing.
comma = ,
empty =
HERMITAGE = g0 g1a g1b g1c otv pmp pmp-write p4 g-single g-single-dependencies g-single-write-1 g-single-write-2 g2-item g2 g2-two-edges
hermitage:
	@$(MAKE) --no-print-directory build >&2
	@./bin/wirecheck run $(HERMITAGE:%=testdata/hermitage/%.spec) --level all --format markdown \
		--engine $(subst $(empty) $(empty),$(comma),$(strip postgres mariadb $(ENGINES)))

cases:
	@$(MAKE) --no-print-directory build >&2
	@./bin/wirecheck run testdata/cases/*.spec --level all --oracle all --format markdown \
		--engine $(subst $(empty) $(empty),$(comma),$(strip postgres mariadb $(ENGINES)))

exam:
	WIRECHECK_TEST_ENGINES="$(ENGINES)" $(GO) test -count=1 -timeout 20m -v -run TestExam ./lab/panel

# The tables are on standard output, what was missed and what was found without a fault among the test's lines. SEED gives other cases.
FAULTS ?= 200
CASES ?= 2000
SEED ?= 1
mutation:
	$(GO) test -count=1 -timeout 24h -v -run TestMutation ./lab/hunt -mutation-attempts 3 \
		-mutation-faults $(FAULTS) -mutation-clean $(CASES) -mutation-seed $(SEED)

# Node's libraries stand in bin/apps. EXPLAIN=-explain also shows which statements are not exact, and why.
EXPLAIN ?=
coverage:
	@command -v npm >/dev/null && { [ -d bin/apps/node_modules ] || npm install --silent --no-audit --no-fund --prefix bin/apps typeorm sequelize pg mysql2 >&2; } || true
	@NODE_PATH=$(CURDIR)/bin/apps/node_modules $(GO) run ./internal/bench/coverage $(EXPLAIN)

docs:
	$(GO) test -count=1 -run 'Document$$' ./cmd/wirecheck -update-docs
	$(GO) test -count=1 -run 'Document$$' ./lab/generate ./internal/documents -update

check: fmt vet
	$(GO) test $(PURE)

fmt:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi

vet:
	$(GO) vet ./...

bench: build
	$(GO) run ./internal/bench
	$(GO) run ./internal/bench/check
	$(GO) run ./internal/bench/fleet
	$(GO) run ./internal/bench/cases
	$(GO) run ./internal/bench/oracles
	$(GO) test -run '^$$' -bench . ./trace

# MATCH chooses suites by name.
MATCH ?=
suites:
	$(GO) run ./internal/suites -match '$(MATCH)'

soak:
	$(GO) test -count=1 -timeout 60m $(RANDOM) -rapid.checks=3000
	$(GO) test -count=1 -timeout 60m -v -run 'TestPredicateRandom|TestRequestSkewRandom' ./oracle/isolation -predicate-runs 1000000
	$(GO) test -count=1 -timeout 60m -v -run 'TestEngines|TestLevelsInWindow' ./oracle/isolation -engine-runs 100000
	$(GO) test -count=1 -timeout 60m -v -run 'TestSieve|TestParts|TestForgetting' ./oracle/isolation -sieve-runs 20000
	$(GO) test -count=1 -timeout 60m -v -run TestColumnsReference ./oracle/isolation -column-runs 300000
	$(GO) test -count=1 -timeout 60m -v -run TestValueFlowRandom ./live -flow-runs 60000
	$(GO) test -count=1 -timeout 60m -v -run 'TestShapedPlansAreParsedPlans|TestFormsOtherModes' ./rewrite/mysql -shape-rounds 60
	$(GO) test -count=1 -timeout 60m -v -run TestRandomHistories ./live -histories 2000
	$(GO) test -count=1 -timeout 60m -v -run 'TestOneChange|TestOneWrite' ./live -changes 3000
	$(GO) test -count=1 -timeout 60m -v -run TestBruteForce ./oracle/inferred -histories 500000
	$(GO) test -count=1 -timeout 60m -v -run TestExact ./oracle/inferred -exact-cases 1000
	$(GO) test -count=1 -timeout 60m -v -run TestMutated ./trace/foreign ./oracle/isolation -mutations 60000
	$(GO) test -count=1 -timeout 60m -v ./oracle/level -simulations 5000 -level-cases 100000 -strangers 20000
	@case " $(ENGINES) " in *" mysql"*) WIRECHECK_TEST_FAMILY=mysql $(GO) test -count=1 -timeout 60m -v -run TestRandomHistoriesFamily ./live -histories 2000 ;; esac
	$(GO) test -count=1 -timeout 60m -v -run 'Quiet|Racy|TestSQLiteHunt|TestRecordReplayPgbench' ./cmd/wirecheck -load $(LOAD)
	$(GO) test -count=1 -timeout 60m -v -run TestCollectPartition ./cmd/wirecheck -partition 10s
	$(GO) test -count=1 -timeout 60m -v -run TestRemedies ./cmd/wirecheck -remedies-apart
	$(GO) test -count=1 -timeout 60m -v -run TestAdviseSmallBank ./cmd/wirecheck -smallbank-programs 5
	$(GO) test -count=1 -timeout 60m -v -run TestAdviseTPCC ./cmd/wirecheck -tpcc-programs 5
	$(GO) test -count=1 -timeout 60m -v -run 'TestMemory|LittleMemory' ./proxy/pgwire ./proxy/mysqlwire -memory 1024
	$(GO) test -count=1 -timeout 60m -v -run 'TestSameSeedSameOutput|TestPrunedRuns' ./lab/panel -repeats 200 -prune-runs 3000
	$(GO) test -count=1 -timeout 60m -v -run TestCorpus ./lab/panel -corpus-all
	$(GO) test -count=1 -timeout 0 -v -run TestAlike ./proxy/mysqlwire -alike-for $(ALIKE) -alike-seed $$(date +%s)
	$(GO) test -count=1 -timeout 0 -v -run 'TestAlike|TestChangedBehindBlock' ./proxy/pgwire -alike-for $(ALIKE) -alike-seed $$(date +%s)
	@$(MAKE) --no-print-directory build
	$(GO) run ./internal/bench -only hostile -length $(ALIKE)
	$(GO) test -count=1 -timeout 60m -v -run TestAgree ./lab/panel -agree-cases 1500 -agree-seed $$(date +%s)

# Each fuzz target by itself, as go test wants it.
fuzz:
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$$file" | while read -r target; do \
			echo "$$target in $$(dirname "$$file")"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")" </dev/null || exit 1; \
		done || exit 1; \
	done

clean:
	rm -rf bin
