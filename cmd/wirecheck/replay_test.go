package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
	"wirecheck/internal/testserver"
	"wirecheck/lab/explore"
)

// production is a PostgreSQL server that logs what is needed for a trace.
type production struct {
	*engine.Server
	dir    string // for what is made of it
	ending string // of its log's name
}

func startProduction(t *testing.T) *production { return startLogging(t, nil) }

// startLogging starts one with other settings than start+end in csvlog.
func startLogging(t *testing.T, other map[string]string) *production {
	t.Helper()
	for _, program := range []string{"pg_dump", "pgbench"} { // postgresql-client and postgresql-contrib have them
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: what this test records and restores cannot be made", err)
		}
	}
	settings := map[string]string{
		"logging_collector": "on", "log_destination": "csvlog", "log_filename": "server.log", "log_statement": "all", "log_duration": "on",
		"log_connections": "on", "log_disconnections": "on", "log_lock_waits": "on", "deadlock_timeout": "100ms", "log_parameter_max_length": "-1", "jit": "off",
	}
	maps.Copy(settings, other)
	server, err := postgres.Start(t.Context(), engine.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	p := &production{server, t.TempDir(), ".csv"}
	if settings["log_destination"] == "jsonlog" {
		p.ending = ".json"
	}
	t.Cleanup(func() { server.Close() })
	for _, sql := range []string{"CREATE DATABASE shop"} {
		c := p.connect(t, "postgres")
		c.exec(sql)
		c.close()
	}
	return p
}

// shopper is a connection of an application's.
type shopper struct {
	t    *testing.T
	conn *pgx.Conn
}

func (p *production) connect(t *testing.T, database string) *shopper {
	t.Helper()
	return p.connectAs(t, database, "", "shop")
}

// connectAs connects as a user, whose password is the user's name; empty: as the server's own.
func (p *production) connectAs(t *testing.T, database, user, application string) *shopper {
	t.Helper()
	account := p.User + ":" + p.Password
	if user != "" {
		account = user + ":" + user
	}
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://%s@%s/%s?application_name=%s", account, p.Address(), database, application))
	if err != nil {
		t.Fatal(err)
	}
	return &shopper{t, conn}
}

func (c *shopper) close() {
	if err := c.conn.Close(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *shopper) exec(sql string, args ...any) {
	c.t.Helper()
	if _, err := c.conn.Exec(context.Background(), sql, args...); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

func (c *shopper) number(sql string, args ...any) (n int) {
	c.t.Helper()
	if err := c.conn.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (c *shopper) text(sql string, args ...any) (v string) {
	c.t.Helper()
	if err := c.conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// dump makes a snapshot of the database.
func (p *production) dump(t *testing.T) string {
	t.Helper()
	path := filepath.Join(p.dir, "dump.sql")
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--no-sync", "-f", path, fmt.Sprintf("postgres://%s:%s@%s/shop", p.User, p.Password, p.Address())).CombinedOutput()
	if err != nil {
		t.Fatalf("pg_dump: %v: %s", err, out)
	}
	return path
}

// trace ends the server and makes a trace file of what its log has since a moment.
func (p *production) trace(t *testing.T, since time.Time) string {
	t.Helper()
	folder := p.Folder()
	var logs []string
	saved := filepath.Join(p.dir, "server"+p.ending)
	find := func() {
		_ = filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "server"+p.ending) {
				logs = append(logs, path)
			}
			return nil
		})
	}
	find()
	if len(logs) != 1 {
		t.Fatalf("the server has logs %v, want one", logs)
	}
	// Its last line is there when the collector has written it: a marker that we send ourselves.
	c := p.connect(t, "postgres")
	marker := "SELECT 'end of the trace " + strconv.FormatInt(time.Now().UnixNano(), 36) + "'"
	c.exec(marker)
	c.close()
	var text []byte
	for end := time.Now().Add(patience); !bytes.Contains(text, []byte(marker)); {
		if time.Now().After(end) {
			t.Fatal("the server's log does not get the marker")
		}
		var err error
		if text, err = os.ReadFile(logs[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the file is the only sign
	}
	if err := os.WriteFile(saved, text, 0o600); err != nil {
		t.Fatal(err)
	}
	whole, cut := filepath.Join(p.dir, "whole.wct"), filepath.Join(p.dir, "shop.wct")
	if out, said, status := command(t, "trace", "import", saved, "-o", whole); status != exitClean {
		t.Fatalf("import: status %d\n%s%s", status, out, said)
	}
	if out, said, status := command(t, "trace", "cut", whole, "--from", since.UTC().Format(time.RFC3339Nano), "-o", cut); status != exitClean {
		t.Fatalf("cut: status %d\n%s%s", status, out, said)
	}
	return cut
}

// replayed runs wirecheck replay.
func replayed(t *testing.T, want exitStatus, args ...string) *replayed1 {
	t.Helper()
	out, said, status := command(t, append([]string{"replay", "--log-level", "warn", "--format", "json"}, args...)...)
	if status != want {
		t.Fatalf("replay %v: exit status %d, want %d; printed:\n%s\nsaid:\n%s", args, status, want, out, said)
	}
	var r replayed1
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &r
}

// replayed1 is what tests look at.
type replayed1 struct {
	Replay struct {
		Statements, Waited, Errors, Deviated int
		Skipped                              map[string]int
		Deadlocks                            []struct{ Captured, Replayed bool }
		Deviations                           []struct{ Text string }
		Divergence                           struct {
			Compared, Same int
			Kinds          map[string]int
			First          []struct{ SQL, Capture, Replay string }
		}
	}
	Findings []struct {
		Name, Class  string
		Transactions []struct {
			User string
			Tags []string
		}
	}
	Tables   []explore.Table
	Explored *explore.Explored
}

// sameAsCaptured demands that nothing differs.
func (r *replayed1) sameAsCaptured(t *testing.T) {
	t.Helper()
	if d := r.Replay.Divergence; d.Same != d.Compared || d.Compared == 0 {
		t.Errorf("divergence: %+v", d)
	}
}

// oneByOne lets two sessions execute each transaction, one after the other, and gives the trace.
func (p *production) oneByOne(t *testing.T, uses []func(c *shopper, i int)) (path string) {
	t.Helper()
	begin := time.Now()
	a, b := p.connect(t, "shop"), p.connect(t, "shop")
	for _, use := range uses {
		for i, c := range []*shopper{a, b} {
			c.exec("BEGIN")
			use(c, i)
			c.exec("COMMIT")
		}
	}
	a.close()
	b.close()
	return p.trace(t, begin)
}

// TestReplayReadModifyWrite records applications that read a value, compute and write it back, one after the other, and finds what would
// happen if two did it at once. Each has a table of its own. The near misses compute in the UPDATE, lock what they read, or write
// what has nothing to do with what they read.
func TestReplayReadModifyWrite(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	setup := p.connect(t, "shop")
	apps := []struct {
		table    string
		use      func(c *shopper, i int)
		found    string
		possible bool
	}{
		{"minus", func(c *shopper, _ int) {
			n := c.number("SELECT n FROM minus WHERE id = $1", 1)
			c.exec("UPDATE minus SET n = $1 WHERE id = $2", n-1, 1)
		}, "lost update", false},
		{"plus", func(c *shopper, _ int) {
			n := c.number("SELECT n AS points FROM plus WHERE id = $1", 1)
			c.exec("UPDATE plus SET n = $1 WHERE id = $2", n+250, 1)
		}, "lost update", false},
		{"append", func(c *shopper, i int) {
			note := c.text("SELECT note FROM append WHERE id = $1", 1)
			c.exec("UPDATE append SET note = $1 WHERE id = $2", note+fmt.Sprintf("; call %d {back}", i), 1)
		}, "lost update", false},
		{"copy", func(c *shopper, i int) { // an ORM that writes all columns
			n := c.number("SELECT n FROM copy WHERE id = $1", 1)
			c.exec("UPDATE copy SET n = $1, note = $2 WHERE id = $3", n, fmt.Sprintf("seen by %d", i), 1)
			c.exec("UPDATE copy SET n = n + 5 WHERE id = $1", 1)
		}, "lost update", false},
		{"computed", func(c *shopper, _ int) {
			c.number("SELECT n FROM computed WHERE id = $1", 1)
			c.exec("UPDATE computed SET n = n - 1 WHERE id = $1", 1)
		}, "", false},
		{"locked", func(c *shopper, _ int) {
			n := c.number("SELECT n FROM locked WHERE id = $1 FOR UPDATE", 1)
			c.exec("UPDATE locked SET n = $1 WHERE id = $2", n-1, 1)
		}, "", false},
		{"other", func(c *shopper, i int) {
			c.text("SELECT note FROM other WHERE id = $1", 1)
			c.exec("UPDATE other SET note = $1 WHERE id = $2", []string{"Monday", "Thursday"}[i], 1)
		}, "", true},
	}
	for _, app := range apps {
		setup.exec("CREATE TABLE " + app.table + " (id int PRIMARY KEY, n int NOT NULL, note text)")
		setup.exec("INSERT INTO " + app.table + " VALUES (1, 100, 'start'), (2, 5, '')")
	}
	setup.close()
	dump := p.dump(t)
	uses := []func(c *shopper, i int){}
	for _, app := range apps {
		uses = append(uses, app.use)
	}
	path := p.oneByOne(t, uses)
	out := filepath.Join(t.TempDir(), "found")
	r := replayed(t, exitFound, path, "--snapshot", dump, "--engine", "postgres", "--interleavings", "random:20", "--window", "2", "--seed", "7", "--out", out)
	r.sameAsCaptured(t)
	if len(r.Findings) > 0 {
		t.Errorf("the recorded order went well, found %v", r.Findings)
	}
	found, possible := map[string]string{}, map[string]bool{}
	for _, x := range r.Explored.Anomalies {
		if len(x.Sessions) != 2 || len(x.Tables) != 1 {
			t.Errorf("%v of sessions %v in tables %v, want two sessions and one table", x.Found, x.Sessions, x.Tables)
			continue
		}
		found[x.Tables[0]] = strings.Join(x.Found, ", ")
		text, said, status := command(t, "run", x.Kept, "--engine", serverURL(testserver.Postgres(t)), "--log-level", "warn")
		if status != exitFound || !strings.Contains(text, "lost update") {
			t.Errorf("run %s does not confirm it: status %d\n%s%s\n%s", x.Kept, status, text, said, x.Spec)
		}
	}
	for _, x := range r.Explored.Possible {
		possible[strings.Join(x.Tables, ", ")] = true
	}
	for _, app := range apps {
		if found[app.table] != app.found || possible[app.table] != app.possible {
			t.Errorf("%s: found %q, possible only: %v; want %q, %v", app.table, found[app.table], possible[app.table], app.found, app.possible)
		}
	}
	if len(r.Explored.Unjudged)+r.Explored.NotShown > 0 || r.Explored.Interleavings == 0 {
		t.Errorf("not judged: %v, interleavings: %d", r.Explored.Unjudged, r.Explored.Interleavings)
	}
}

// TestReplayRequest records requests of two transactions each: the first one reads, the second one writes what was computed from it. Only
// as units they are not serializable. The near miss does both in one statement.
func TestReplayRequest(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	setup := p.connect(t, "shop")
	setup.exec("CREATE TABLE stock (item int PRIMARY KEY, n int NOT NULL)")
	setup.exec("INSERT INTO stock VALUES (1, 10), (2, 10)")
	setup.close()
	dump := p.dump(t)
	begin := time.Now()
	a, b := p.connect(t, "shop"), p.connect(t, "shop")
	tag := func(sql, trace string) string { return sql + " /*traceparent='00-" + trace + "-01-01'*/" }
	for i, c := range []*shopper{a, b} {
		n := c.number(tag("SELECT n FROM stock WHERE item = 1", fmt.Sprint("read", i)))
		c.exec(tag(fmt.Sprintf("UPDATE stock SET n = %d WHERE item = 1", n-1), fmt.Sprint("read", i)))
		c.exec(tag("UPDATE stock SET n = n - 1 WHERE item = 2", fmt.Sprint("once", i)))
	}
	a.close()
	b.close()
	path := p.trace(t, begin)
	args := []string{path, "--snapshot", dump, "--engine", "postgres", "--interleavings", "all", "--seed", "1"}
	if r := replayed(t, exitClean, append(slices.Clone(args), "--unit", "transaction")...); len(r.Explored.Anomalies) > 0 || r.Explored.Interleavings > 0 {
		t.Errorf("single statements are serializable by themselves: %+v", r.Explored)
	}
	r := replayed(t, exitFound, args...) // auto: the trace has tags
	if len(r.Explored.Anomalies) != 1 || r.Explored.Anomalies[0].Found[0] != "not serializable" || len(r.Explored.Anomalies[0].Units) != 2 {
		t.Fatalf("got %+v, want one", r.Explored)
	}
	if x := r.Explored.Anomalies[0]; !slices.Contains(x.Units, "read0") || !slices.Contains(x.Units, "read1") || len(x.Tags) == 0 {
		t.Errorf("requests %v, tags %v", x.Units, x.Tags)
	}
}

// TestReplayInterleavingsMariaDB finds the lost update of an application whose general log is all that there is.
func TestReplayInterleavingsMariaDB(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "general.log")
	text := `/usr/sbin/mariadbd, Version: 10.11.19-MariaDB (Debian). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time		    Id Command	Argument
261120  9:31:15	     6 Connect	app@localhost on shop using TCP/IP
		     6 Query	CREATE TABLE coupon (code varchar(20) PRIMARY KEY, n int)
		     6 Query	CREATE TABLE note (id int PRIMARY KEY, text varchar(200))
		     6 Query	CREATE TABLE stock (id int PRIMARY KEY, n int)
		     6 Query	INSERT INTO coupon VALUES ('A', 10), ('B', 10)
		     6 Query	INSERT INTO note VALUES (1, 'start')
		     6 Query	INSERT INTO stock VALUES (1, 10)
		     6 Query	START TRANSACTION
		     6 Execute	SELECT n FROM shop.coupon WHERE code='A' LIMIT 21
		     6 Execute	UPDATE shop.coupon SET n=9 WHERE code='A'
		     6 Query	COMMIT
		     6 Query	START TRANSACTION
		     6 Execute	SELECT n FROM shop.coupon WHERE code='A' LIMIT 21
		     6 Execute	UPDATE shop.coupon SET n=8 WHERE code='A'
		     6 Query	COMMIT
		     6 Query	START TRANSACTION
		     6 Execute	SELECT text FROM note WHERE id=1
		     6 Execute	UPDATE note SET text='start, {called}' WHERE id=1
		     6 Query	COMMIT
		     6 Query	START TRANSACTION
		     6 Execute	SELECT text FROM note WHERE id=1
		     6 Execute	UPDATE note SET text='start, {called}, paid' WHERE id=1
		     6 Query	COMMIT
		     6 Query	START TRANSACTION
		     6 Execute	SELECT n FROM stock WHERE id=1 FOR UPDATE
		     6 Execute	UPDATE stock SET n=9 WHERE id=1
		     6 Query	COMMIT
		     6 Query	START TRANSACTION
		     6 Execute	SELECT n FROM stock WHERE id=1 FOR UPDATE
		     6 Execute	UPDATE stock SET n=8 WHERE id=1
		     6 Query	COMMIT
		     6 Quit	
`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shop.wct")
	if out, said, status := command(t, "trace", "import", log, "-o", path); status != exitClean {
		t.Fatalf("import: status %d\n%s%s", status, out, said)
	}
	dir := filepath.Join(t.TempDir(), "found")
	r := replayed(t, exitFound, path, "--engine", "mariadb", "--interleavings", "random:20", "--window", "2", "--seed", "3", "--out", dir)
	var tables []string
	for _, x := range r.Explored.Anomalies {
		tables = append(tables, x.Tables...)
		if !slices.Equal(x.Found, []string{"lost update"}) {
			t.Errorf("found %v in %v, want a lost update", x.Found, x.Tables)
		}
		if out, said, status := command(t, "run", x.Kept, "--engine", serverURL(testserver.MariaDB(t)), "--log-level", "warn"); status != exitFound || !strings.Contains(out, "lost update") {
			t.Errorf("run does not confirm it: status %d\n%s%s\n%s", status, out, said, x.Spec)
		}
	}
	if slices.Sort(tables); len(r.Findings) != 0 || !slices.Equal(tables, []string{"coupon", "note"}) || r.Explored.NotShown+len(r.Explored.Unjudged) > 0 {
		t.Fatalf("got %v and %+v, want lost updates in coupon and note, in other interleavings only", r.Findings, r.Explored)
	}
}

// bench runs pgbench.
func (p *production) bench(t *testing.T, port int, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "pgbench", append(args, "-h", p.Host, "-p", strconv.Itoa(port), "-U", p.User, "shop")...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+p.Password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pgbench: %v: %s", err, out)
	}
}

// benchTables makes pgbench's tables with a thousand accounts instead of a hundred thousand, and gives its script for them.
func (p *production) benchTables(t *testing.T) (script string) {
	t.Helper()
	p.bench(t, p.Port, "-i", "-q", "-I", "dt")
	c := p.connect(t, "shop")
	c.exec("INSERT INTO pgbench_branches VALUES (1, 0)")
	c.exec("INSERT INTO pgbench_tellers SELECT i, 1, 0 FROM generate_series(1, 10) i")
	c.exec("INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 1000) i")
	c.close()
	p.bench(t, p.Port, "-i", "-q", "-I", "p")
	return file(t, `\set aid random(1, 1000)
\set tid random(1, 10)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
`)
}

// benchTransactions is how many transactions the run of pgbench has; WIRECHECK_PGBENCH sets another number (10000 is the full one).
const benchTransactions = 160

// TestReplayPgbench records pgbench's 8 clients and replays them to the same tables.
func TestReplayPgbench(t *testing.T) {
	t.Parallel()
	n := benchTransactions
	if text := os.Getenv("WIRECHECK_PGBENCH"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p := startProduction(t)
	script := p.benchTables(t)
	dump := filepath.Join(p.dir, "before.sql")
	if err := os.Rename(p.dump(t), dump); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p.bench(t, p.Port, "-n", "-f", script, "-c", "8", "-j", "2", "-t", strconv.Itoa(n/8))
	after := filepath.Join(p.dir, "after.sql")
	if err := os.Rename(p.dump(t), after); err != nil {
		t.Fatal(err)
	}
	path := p.trace(t, begin)
	for _, order := range []string{"commit", "object"} {
		start := time.Now()
		r := replayed(t, exitClean, path, "--snapshot", dump, "--engine", "postgres", "--order", order, "--compare", after, "--oracle", "none", "--only", "application=pgbench")
		t.Logf("order %s: %d statements, %d waited, %d deviations, %v", order, r.Replay.Statements, r.Replay.Waited, r.Replay.Deviated, time.Since(start))
		if order == "commit" {
			r.sameAsCaptured(t)
		}
		if want := n / 8 * 8 * 7; r.Replay.Statements < want {
			t.Errorf("%d statements, want at least %d; not replayed: %v", r.Replay.Statements, want, r.Replay.Skipped)
		}
		if len(r.Tables) != 4 {
			t.Errorf("tables %+v, want 4", r.Tables)
		}
		for _, table := range r.Tables {
			// A clock's column is never the same again.
			if table.OnlyHere+table.OnlyThere > 0 && !(table.Name == "pgbench_history" && slices.Equal(table.Columns, []string{"mtime"})) {
				t.Errorf("order %s: %+v", order, table)
			}
		}
	}
}
