package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"wirecheck/internal/shop"
)

// loadLength is how long each of the load tests runs: a minute in `make soak`, and in `make test` some hundreds of transactions.
var loadLength = flag.Duration("load", 0, "length of each load test; 0: some hundreds of transactions")

// tool runs a load generator and gives what it printed.
func tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: apt-get install -y postgresql sysbench: %v", name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *loadLength+2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out.Bytes())
	}
	return out.String()
}

func pgEnv(t shop.Target) []string {
	return []string{"PGHOST=" + t.Host, "PGPORT=" + strconv.Itoa(t.Port), "PGUSER=" + t.User, "PGPASSWORD=" + t.Password, "PGDATABASE=" + t.Database}
}

func count(t *testing.T, out, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no %q in:\n%s", pattern, out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// quiet fails if anything was found, and says what was seen.
func quiet(t *testing.T, got results, transactions int) {
	t.Helper()
	if len(got.findings) > 0 {
		t.Errorf("a correct load has findings:\n%s", got.report)
	}
	if got.coverage.Committed < transactions {
		t.Errorf("the program counts %d transactions, the history %d committed", transactions, got.coverage.Committed)
	}
	t.Logf("%d transactions; %s", transactions, got.coverage)
}

// TestPgbenchIsQuiet runs pgbench's own script, which is correct at every level: nothing may be reported, no
// transaction may be missing, no error may occur that does not occur directly.
func TestPgbenchIsQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres")
	tool(t, pgEnv(w.direct), "pgbench", "-i", "-q", "-s", "2")
	clients := "4" // of eight, most of the work is what the server refuses
	if *loadLength > 0 {
		clients = "8"
	}
	for _, protocol := range []string{"simple", "extended", "prepared"} {
		for _, level := range []string{"read committed", "serializable"} {
			t.Run(protocol+"/"+level, func(t *testing.T) {
				th := w.observe(t)
				env := append(pgEnv(th.target), "PGOPTIONS=-c default_transaction_isolation="+strings.ReplaceAll(level, " ", `\ `))
				// With retries a serialization failure is not the end of a client, as in any program at that level. While one client has no
				// processor, the others may be refused thousands of times.
				out := tool(t, env, "pgbench", "-n", "-c", clients, "-j", "2", "-M", protocol, "--max-tries=100000", length("-t40", "-T%d"))
				if failed := count(t, out, `number of failed transactions: (\d+)`); failed > 0 {
					t.Errorf("%d transactions failed:\n%s", failed, out)
				}
				if strings.Contains(out, "01WC") || strings.Contains(out, "WARNING") {
					t.Errorf("pgbench was warned:\n%s", out)
				}
				got := th.stop(t)
				quiet(t, got, count(t, out, `number of transactions actually processed: (\d+)`))
				sums(t, w)
			})
		}
	}
}

// length is the option that says how long a tool runs: a number of transactions, or of seconds.
func length(transactions, seconds string) string {
	if *loadLength == 0 {
		return transactions
	}
	return fmt.Sprintf(seconds, max(1, int(loadLength.Seconds())))
}

// sums checks the consistency condition of TPC-B: the balances agree with the history that was written.
func sums(t *testing.T, w *world) {
	t.Helper()
	got, err := w.side.Do(context.Background(), `SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)
		AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history)
		AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)`)
	if err != nil || got != "true" {
		t.Errorf("the balances agree with the history: got %q, %v", got, err)
	}
}

// TestRacyPgbenchIsReported reads a balance and writes the derived value at READ COMMITTED. The first lost update must
// be reported while the load runs.
func TestRacyPgbenchIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres", "CREATE TABLE stock (id INT PRIMARY KEY, n INT)", "INSERT INTO stock SELECT i, 0 FROM generate_series(1, 5) i")
	script := filepath.Join(t.TempDir(), "racy.sql")
	text := `\set id random(1, 5)
BEGIN;
SELECT n AS old FROM stock WHERE id = :id \gset
\set new :old + 1
UPDATE stock SET n = :new WHERE id = :id;
COMMIT;
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	th := w.observe(t)
	out := tool(t, pgEnv(th.target), "pgbench", "-n", "-c", "8", "-j", "2", "-f", script, "-t", "100")
	ended := time.Now()
	processed := count(t, out, `number of transactions actually processed: (\d+)`)
	first := regexp.MustCompile(`WARNING:\s+.*(lost update|LOST UPDATE)`).FindString(out)
	if first == "" {
		t.Errorf("pgbench printed no warning of a lost update:\n%.2000s", out)
	}
	got := th.stop(t)
	if len(got.findings) == 0 || got.findings[0].Title() != "lost update" {
		t.Fatalf("findings: got %v, want a lost update first\n%s", len(got.findings), got.report)
	}
	if at := th.first.Load(); at == 0 || time.Unix(0, at).After(ended) {
		t.Errorf("the first lost update was reported %v after the end", time.Unix(0, at).Sub(ended))
	}
	// The updates that were lost show in the data: the proxy does not report what did not happen.
	sum, err := w.side.Do(context.Background(), "SELECT sum(n) FROM stock")
	if err != nil {
		t.Fatal(err)
	}
	total, err := strconv.Atoi(sum)
	if err != nil {
		t.Fatal(err)
	}
	if lost := processed - total; lost <= 0 {
		t.Errorf("no update was lost in the data (%d transactions, sum %d), but it was reported", processed, total)
	}
}

// TestSysbenchIsQuiet runs sysbench's read-write mix at SERIALIZABLE on MariaDB.
func TestSysbenchIsQuiet(t *testing.T) {
	for _, ps := range []string{"auto", "disable"} {
		t.Run("prepared="+ps, func(t *testing.T) {
			w := newWorld(t, "mariadb")
			tool(t, nil, "sysbench", sysbenchArgs(w.direct, ps, "prepare")...)
			w.instrumentAll(t)
			w.globally(t, "SET GLOBAL tx_isolation = 'SERIALIZABLE'", "SET GLOBAL tx_isolation = 'REPEATABLE-READ'")
			th := w.observe(t)
			out := tool(t, nil, "sysbench", sysbenchArgs(th.target, ps, "--threads=8", "--time=0", length("--events=80", "--time=%d"), "--mysql-ignore-errors=1213,1020,1205", "run")...)
			got := th.stop(t)
			quiet(t, got, count(t, out, `transactions:\s+(\d+)`))
			for _, f := range got.findings {
				if f.Level != "serializable" {
					t.Errorf("ran at %q, want serializable", f.Level)
				}
			}
		})
	}
}
