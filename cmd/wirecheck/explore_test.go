package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
)

// raceTest is a concurrent test of two customers, alice and bob, who use the coupon with the statements of a file.
type raceTest struct {
	database testserver.Database
	dir      string
	args     []string // explore's, behind the URL
}

// newRace makes the database and the test. The test fails if RACE_STATUS says so.
func newRace(t *testing.T, engine string) *raceTest {
	t.Helper()
	server := testserver.Postgres(t)
	if engine == "mariadb" {
		server = testserver.MariaDB(t)
	}
	r := &raceTest{database: server.Database(t).As(server.User), dir: t.TempDir()}
	r.database.Exec(t, "CREATE TABLE coupon (id INT PRIMARY KEY, n INT)", "INSERT INTO coupon VALUES (1, 5)")
	client := `psql -q -At -v ON_ERROR_STOP=1 "$DATABASE_URL"`
	if engine == "mariadb" {
		client = `mariadb -N -h "$MYSQL_HOST" -P "$MYSQL_PORT" -u "$MYSQL_USER" "$MYSQL_DATABASE"`
		r.args = []string{"--reset", client + ` -e "UPDATE coupon SET n = 5"`}
	}
	for name, text := range map[string]string{
		"racy.sql":  "SELECT 'WHO';\nBEGIN;\nSELECT n FROM coupon WHERE id = 1;\nUPDATE coupon SET n = 4 WHERE id = 1;\nCOMMIT;\n",
		"fixed.sql": "UPDATE coupon SET n = n - 1 WHERE id = 1 AND 'WHO' <> '';\n",
		"race.sh": `cd ` + r.dir + `
for who in alice bob; do sed "s/WHO/$who/" $1.sql | ` + client + ` & done
wait
exit ${RACE_STATUS:-0}
`,
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *raceTest) file(name string) string { return filepath.Join(r.dir, name) }

// explore runs the test, racy or fixed.
func (r *raceTest) explore(t *testing.T, which string, args ...string) (string, string, exitStatus) {
	t.Helper()
	args = slices.Concat([]string{"explore", "--limit", patient, "--upstream", r.database.URL(), "--save-schedule", r.file("s")}, r.args, args)
	return command(t, append(args, "--", "sh", r.file("race.sh"), which)...)
}

// patient is longer than any run takes. explore waits until its own process is still, which the other tests in it delay on a busy machine.
const patient = "20m"

// thinking is longer than any client thinks, which waits for none but wirecheck.
const thinking = "5m"

// TestExplore finds the race of a test, makes its schedule small, and repeats it; of the fixed test it runs all schedules. The state is as before.
func TestExplore(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			r := newRace(t, engine)
			before := r.state(t)
			out, said, status := r.explore(t, "racy", "--think", thinking, "--seed", "94", "--shrink-runs", "1")
			if status != exitFound || !strings.Contains(out, "ANOMALY: LOST UPDATE") || !strings.Contains(out, "run it again: wirecheck explore --schedule "+r.file("s")) {
				t.Fatalf("the race: exit status %d\n%s\n%s", status, out, said)
			}
			if strings.Contains(out, "did not fail again") || !strings.Contains(out, "# repeatable") || !strings.Contains(out, ", seed 94)") {
				t.Errorf("the schedule does not repeat:\n%s", out)
			}
			out, said, status = r.explore(t, "racy", "--think", thinking, "--schedule", r.file("s"), "--format", "json")
			var v struct {
				Runs   int
				Failed struct{ Switches int }
				Result struct{ Findings []struct{ Name string } }
			}
			if err := json.Unmarshal([]byte(out), &v); err != nil || status != exitFound || v.Runs != 1 || v.Failed.Switches > 8 || len(v.Result.Findings) != 1 {
				t.Errorf("the schedule again: exit status %d, %v\n%s\n%s", status, err, out, said)
			}
			out, said, status = r.explore(t, "fixed", "--think", thinking, "--strategy", "all", "--runs", "60")
			if status != exitClean || !strings.Contains(out, "there are no others") {
				t.Errorf("the fixed test: exit status %d\n%s\n%s", status, out, said)
			}
			if after := r.state(t); after != before {
				t.Errorf("the state was %s, and is %s", before, after)
			}
		})
	}
}

// state is what must be the same after explore: the row, the databases, the columns.
func (r *raceTest) state(t *testing.T) (text string) {
	t.Helper()
	if r.database.Server.Engine == "postgres" {
		const all = `SELECT (SELECT n FROM coupon) || ' ' || (SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database)`
		conn := r.database.Postgres(t)
		if err := conn.QueryRow(t.Context(), all).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil { // a database with sessions cannot be copied
			t.Fatal(err)
		}
		return text
	}
	return tableText(t, r.database)
}

// TestExploreAsleep: explore sees by itself that the clients wait, and finds the race.
func TestExploreAsleep(t *testing.T) {
	r := newRace(t, "postgres")
	out, said, status := r.explore(t, "racy", "--seed", "94", "--shrink-runs", "0")
	if status != exitFound || !strings.Contains(out, "ANOMALY: LOST UPDATE") {
		t.Errorf("exit status %d\n%s\n%s", status, out, said)
	}
}

// TestExploreFails: a test that fails is reported with its own exit status, and with what wirecheck saw where it found nothing; what is known does not stop explore.
func TestExploreFails(t *testing.T) {
	r := newRace(t, "postgres")
	t.Setenv("RACE_STATUS", "7")
	out, said, status := r.explore(t, "fixed", "--think", thinking, "--shrink-runs", "0", "--strategy", "random", "--seed", "94")
	if status != 7 || !strings.Contains(out, "the command failed: exit status 7") || !strings.Contains(out, "\nnothing found\ncoverage: 2 exact") {
		t.Errorf("exit status %d\n%s\n%s", status, out, said)
	}
	t.Setenv("RACE_STATUS", "0")
	if err := os.WriteFile(r.file("known.yaml"), []byte("ignore:\n  - class: lost update\n    table: coupon\n    reason: known\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, said, status = r.explore(t, "racy", "--think", thinking, "--baseline", r.file("known.yaml"), "--seed", "94", "--runs", "2")
	if status != exitClean || !strings.Contains(out, "explored: 2 runs") {
		t.Errorf("what is known: exit status %d\n%s\n%s", status, out, said)
	}
}

// TestExploreLeast: what is said of all runs is said of the one of which least was seen.
func TestExploreLeast(t *testing.T) {
	seen := func(exact, opaque int, undecided string) *outcome {
		return &outcome{seen: isolation.Coverage{Exact: exact, Opaque: opaque}, result: report.Result{Undecided: undecided}}
	}
	half, most, all, none := seen(2, 2, ""), seen(30, 10, ""), seen(4, 0, ""), seen(9, 1, "too little")
	for _, tt := range []struct {
		name string
		runs []*outcome
		want *outcome
	}{
		{"a share decides, not a number", []*outcome{all, half, most}, half},
		{"the first of equals", []*outcome{half, seen(4, 4, "")}, half},
		{"undecided is less", []*outcome{half, none, all}, none},
	} {
		e := &explored{}
		for _, o := range tt.runs {
			e.ran(o)
		}
		if e.least != tt.want || e.last != tt.runs[len(tt.runs)-1] {
			t.Errorf("%s: %+v", tt.name, e.least.result)
		}
	}
}

// TestExploreNothing: a command that cannot be explored is not green, and what is wrong with a command line is said before a server is asked.
func TestExploreNothing(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	server := testserver.Postgres(t)
	url := server.Database(t).As(server.User).URL()
	for _, tt := range []struct {
		args   []string
		status exitStatus
		want   string
	}{
		{[]string{"--upstream", url, "--", "true"}, exitUnknown, "no statement of the command came through the proxy"},
		{[]string{"--upstream", url, "--runs", "1", "--", "sh", "-c", `psql -c 'SELECT 1' "$DATABASE_URL"`}, exitUnknown, "the command has one session alone"},
		{[]string{"--upstream", url, "--runs", "1", "--", "sh", "-c", `for i in 1 2; do psql -c 'SELECT 1' "$DATABASE_URL"; done`}, exitUnknown, "never did two sessions have a statement at the same time"},
		{[]string{"--upstream", url, "--", "sh", "-c", "echo broken; exit 9"}, 9, "broken"},
		{[]string{"--upstream", url, "--limit", "1ms", "--", "sh", "-c", "sleep 1000 & wait"}, exitFound, "the command did not end within 1ms"},
		{[]string{"--upstream", url, "--reset", "echo no reset; exit 4", "--", "true"}, exitFailed, "no reset"},
		{[]string{"--upstream", url}, exitFailed, "expected: wirecheck explore [flags] -- COMMAND [ARGUMENT...]; got no argument"},
		{[]string{"--upstream", "mysql://root@127.0.0.1:1/x", "--", "true"}, exitFailed, "give --reset COMMAND"},
		{[]string{"--upstream", "postgres://root@127.0.0.1:1/x", "--", "true"}, exitFailed, "connect to the test database"},
		{[]string{"--upstream", url, "--upstream", url, "--", "true"}, exitFailed, "give --upstream once"},
		{[]string{"--upstream", url, "--strategy", "some", "--", "true"}, exitFailed, `unknown strategy "some"`},
		{[]string{"--upstream", url, "--strategy", "pct:0", "--", "true"}, exitFailed, "the depth must be a number from 1"},
		{[]string{"--upstream", url, "--sessions", "3", "--", "true"}, exitFailed, "--sessions needs --think"},
		{[]string{"--upstream", url, "--schedule", "/no/such/file", "--", "true"}, exitFailed, "/no/such/file"},
		{[]string{"--upstream", url, "--runs", "0", "--", "true"}, exitFailed, "--runs 0"},
		{[]string{"--upstream", url, "--format", "sarif", "--", "true"}, exitFailed, "gives no sarif"},
	} {
		args := append([]string{"explore", "--limit", patient, "--save-schedule", filepath.Join(t.TempDir(), "s")}, tt.args...)
		out, said, status := command(t, args...)
		if status != tt.status || !strings.Contains(out+said, tt.want) {
			t.Errorf("%v: exit status %d, want %d and %q\n%s\n%s", tt.args, status, tt.status, tt.want, out, said)
		}
	}
}

// TestExploreInterrupted: the end of explore ends the command with all that it has started, and the copy of the database.
func TestExploreInterrupted(t *testing.T) {
	r := newRace(t, "postgres")
	before := r.state(t)
	fifo := r.file("started")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan exitStatus, 1)
	go func() {
		var out, said strings.Builder
		ended <- run(ctx, []string{"explore", "--upstream", r.database.URL(), "--", "sh", "-c", "sleep 1000 & echo started > " + fifo + "; wait"}, &out, &said)
	}()
	if text, err := os.ReadFile(fifo); err != nil || string(text) != "started\n" {
		t.Fatalf("%q, %v", text, err)
	}
	cancel()
	if status := <-ended; status != exitFailed {
		t.Errorf("exit status %d", status)
	}
	if after := r.state(t); after != before {
		t.Errorf("the state was %s, and is %s", before, after)
	}
}
