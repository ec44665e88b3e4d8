package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// front is the program in front of a server.
func front(t *testing.T, scheme, upstream string, args ...string) (p *program, port int) {
	t.Helper()
	p = startProgram(t, append([]string{"proxy", "--listen", scheme + "://" + anyPort, "--upstream", upstream}, args...)...)
	return p, p.port(t, scheme, nil)
}

// TestNothingSeen: a proxy that saw nothing says so, in every format, and never that nothing was found.
func TestNothingSeen(t *testing.T) {
	const down = "127.0.0.1:1" // nobody listens there
	for _, format := range []string{"text", "json", "junit", "sarif"} {
		p, _ := front(t, "postgres", "postgres://"+down, "--format", format)
		status := p.end(t)
		says := map[string]string{"text": "undecided: no session was seen", "json": `"undecided": "no session was seen`, "junit": `<error message="undecided: no session was seen`, "sarif": `"text": "undecided: no session was seen`}[format]
		if out := p.stdout.String(); status != int(exitUnknown) || !strings.Contains(out, says) || strings.Contains(out, "nothing found") {
			t.Errorf("%s: exit status %d, %s", format, status, out)
		}
	}
	p, port := front(t, "postgres", "postgres://"+down)
	if out, err := exec.Command("psql", "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-U", "nobody", "-c", "SELECT 1", "nothing").CombinedOutput(); err == nil {
		t.Errorf("a server that is down answered: %s", out)
	}
	if status := p.end(t); status != int(exitUnknown) {
		t.Errorf("server down: exit status %d, %s", status, p.stdout.String())
	}
	p, port = front(t, "mysql", "mariadb://"+down)
	out, err := exec.Command("mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", fmt.Sprint(port), "-u", "nobody", "-e", "SELECT 1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Can't connect to the server (wirecheck: ") {
		t.Errorf("the client library shows another text: %s", out)
	}
	if status := p.end(t); status != int(exitUnknown) {
		t.Errorf("server down: exit status %d, %s", status, p.stdout.String())
	}
	p, _ = front(t, "postgres", "postgres://"+down, "--mode", "pass")
	if status := p.end(t); status != int(exitUnknown) || !strings.Contains(p.stdout.String(), "undecided: a proxy in mode pass judges nothing") {
		t.Errorf("mode pass: exit status %d, %s", status, p.stdout.String())
	}
}

// TestBareTable: a table without hidden columns is said in the log, with the command, and to the client; nothing seen of it is no success. With
// the columns it is one.
func TestBareTable(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE coupon (id int PRIMARY KEY, n int)", "INSERT INTO coupon VALUES (1, 5)")
	upstream := fmt.Sprintf("mariadb://127.0.0.1:%d", d.Port)
	client := func(port int, sql string) string {
		t.Helper()
		cmd := exec.Command("mariadb", "--no-defaults", "--show-warnings", "-vv", "-h", "127.0.0.1", "-P", fmt.Sprint(port), "-u", d.User, d.Name, "-e", sql)
		cmd.Env = append(os.Environ(), "MYSQL_PWD="+d.Password)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	work := "SELECT * FROM coupon; UPDATE coupon SET n = n - 1 WHERE id = 1; SELECT * FROM coupon"
	p, port := front(t, "mysql", upstream)
	heard := client(port, work)
	client(port, work)
	if strings.Count(heard, "is not instrumented") != 1 || !strings.Contains(heard, "wirecheck instrument add "+upstream[:10]+"USER@") {
		t.Errorf("the client heard:\n%s", heard)
	}
	if status := p.end(t); status != int(exitUnknown) || !strings.HasPrefix(p.stdout.String(), "undecided: of 6 statements wirecheck saw none exactly\n") {
		t.Errorf("exit status %d, %s", status, p.stdout.String())
	}
	told := ""
	for line := range strings.Lines(p.stderr.String()) {
		var entry struct{ Level, Command, Message string }
		if json.Unmarshal([]byte(line), &entry) == nil && strings.Contains(entry.Message, "TABLE IS NOT INSTRUMENTED") {
			if told += entry.Command; entry.Level != "warn" {
				t.Errorf("it is logged as %s", entry.Level)
			}
		}
	}
	if want := fmt.Sprintf("wirecheck instrument add mariadb://USER@127.0.0.1:%d/%s", d.Port, d.Name); told != want {
		t.Errorf("the log names %q, want %q, once", told, want)
	}
	t.Setenv("WIRECHECK_PASSWORD", d.Password)
	args := strings.Fields(strings.Replace(told, "USER", d.User, 1))[1:]
	if out, said, status := command(t, args...); status != exitClean {
		t.Fatalf("%v: status %d, %s%s", args, status, out, said)
	}
	p, port = front(t, "mysql", upstream, "--min-coverage", "1")
	if heard := client(port, work); strings.Contains(heard, "wirecheck") {
		t.Errorf("the client heard:\n%s", heard)
	}
	if status := p.end(t); status != int(exitClean) || !strings.HasPrefix(p.stdout.String(), "nothing found\ncoverage: 3 exact") || strings.Contains(p.stderr.String(), "INSTRUMENTED") {
		t.Errorf("instrumented: exit status %d, %s%s", status, p.stdout.String(), p.stderr.String())
	}
}

// TestFailedStatements: statements that fail by mistake are no success, those that lose against others or against a constraint are.
func TestFailedStatements(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	for _, test := range []struct {
		name, sql, says string
		status          exitStatus
	}{
		{"unknown table", "SELECT * FROM t; SELECT * FROM coupons; BEGIN; SELECT * FROM coupons; SELECT * FROM t; COMMIT", "undecided: 3 of 4 statements failed, the first with error 42P01: ", exitUnknown},
		{"syntax", "SELECT * FRM t; UPDTE t SET id = 2; INSERT INTO t VALUES (3)", " of 3 statements failed, the first with error 42601: ", exitUnknown},
		{"duplicates", "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); SELECT * FROM t", "nothing found\ncoverage: 4 exact, 0 approximate, 0 opaque\n  3 statements failed", exitClean},
		{"few", "SELECT * FROM coupons; SELECT * FROM t; SELECT * FROM t", "1 statement failed by mistake (error 42P01: ", exitClean},
	} {
		p, port := front(t, "postgres", fmt.Sprintf("postgres://127.0.0.1:%d", d.Port))
		cmd := exec.Command("psql", "-X", "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-U", d.User, d.Name)
		cmd.Env, cmd.Stdin = append(os.Environ(), "PGPASSWORD="+d.Password), strings.NewReader(strings.ReplaceAll(test.sql, "; ", ";\n")+";\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if status := p.end(t); status != int(test.status) || !strings.Contains(p.stdout.String(), test.says) {
			t.Errorf("%s: exit status %d, %s", test.name, status, p.stdout.String())
		}
	}
}

// TestCheckUndecided: what check cannot say of a history.
func TestCheckUndecided(t *testing.T) {
	exact := "s1 session postgres \"15.4\"\ns1 t1 begin\nt1 r public.t.1@0 -- SELECT 1\nt1 commit\n"
	half := exact + "s1 t2 begin\nt2 stmt opaque\nt2 commit\n"
	broken := filepath.Join(t.TempDir(), "cut.jsonl")
	text := `{"wirecheck":"history","version":1,"run":"r","closes":true}
{"e":"session","s":1,"engine":"postgres"}
{"e":"begin","s":1,"t":1,"from":1}
{"e":"stmt","s":1,"t":1,"n":1,"from":2,"to":3,"sql":"SELECT 1","verb":"select","coverage":"exact"}
{"e":"end","s":1,"t":1,"to":4,"outcome":"committed"}
`
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole.jsonl")
	if err := os.WriteFile(whole, []byte(text+`{"e":"close","s":1,"to":5}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []string
		status exitStatus
		stdout string
	}{
		{"exact", []string{"--min-coverage", "1", writeHistory(t, exact)}, exitClean, "nothing found\n"},
		{"half", []string{writeHistory(t, half)}, exitClean, "nothing found\n"},
		{"half is enough", []string{"--min-coverage", "0.5", writeHistory(t, half)}, exitClean, "nothing found\n"},
		{"half is too little", []string{"--min-coverage", "0.51", writeHistory(t, half)}, exitUnknown, "undecided: wirecheck saw 1 of 2 statements exactly, less than the share that --min-coverage asks for (0.51)\n"},
		{"a third, by default", []string{writeHistory(t, half+"s1 t3 begin\nt3 stmt opaque\nt3 commit\n")}, exitUnknown, "undecided: wirecheck saw 1 of 3 statements exactly, less than the share that --min-coverage asks for (0.5)\n"},
		{"a third, and none is asked for", []string{"--min-coverage", "0", writeHistory(t, half+"s1 t3 begin\nt3 stmt opaque\nt3 commit\n")}, exitClean, "nothing found\n"},
		{"no share", []string{"--min-coverage", "95", writeHistory(t, half)}, exitFailed, ""},
		{"empty", []string{writeHistory(t, "")}, exitUnknown, "undecided: no session was seen"},
		{"idle", []string{writeHistory(t, "s1 session postgres \"15.4\"\ns1 t1 begin\nt1 commit\n")}, exitUnknown, "undecided: no statement that reads or writes a table was seen\n"},
		{"cut off between two lines", []string{broken}, exitUnknown, "undecided: " + broken + ": the history is cut off: 1 session had not ended\n"},
		{"whole", []string{whole}, exitClean, "nothing found\n"},
		{"found all the same", []string{"--min-coverage", "1", writeHistory(t, lostUpdate+"s1 t9 begin\nt9 stmt opaque\nt9 commit\n")}, exitFound, "undecided besides: wirecheck saw 4 of 5 statements exactly"},
	} {
		status, stdout, stderr := runCheck(t, test.args...)
		if status != test.status || !strings.Contains(stdout, test.stdout) {
			t.Errorf("%s: status %d, want %d; stdout:\n%s\nstderr:\n%s", test.name, status, test.status, stdout, stderr)
		}
	}
}

// TestRunMistakes: a scenario with a typing mistake is not decided; one that expects a refusal is.
func TestRunMistakes(t *testing.T) {
	url := serverURL(testserver.Postgres(t))
	const head = "setup { CREATE TABLE t (id int PRIMARY KEY) }\nteardown { DROP TABLE t }\nsession a\nstep r { SELECT * FROM t }\n"
	expectRun(t, exitUnknown, []string{"unknown: step w failed with error 42P01: ", "cases: 1, with findings: 0, not as expected: 0, unknown: 1, steps refused: 1"},
		specFile(t, "typo.spec", head+"step w { INSERT INTO tt VALUES (1) }\npermutation r w\n"), "--engine", url)
	expectRun(t, exitClean, []string{"isolation: nothing found", "steps refused: 1"},
		specFile(t, "twice.spec", head+"step w { INSERT INTO t VALUES (1) }\nstep v { INSERT INTO t VALUES (1) }\npermutation r w v\n"), "--engine", url)
	expectRun(t, exitClean, nil,
		specFile(t, "meant.spec", "#wirecheck: outcome gone: failed(w) with 42P01\n"+head+"step w { INSERT INTO tt VALUES (1) }\npermutation r w\n"), "--engine", url)
}

// TestReplayWithoutSnapshot: a replay without the tables of the trace is not decided.
func TestReplayWithoutSnapshot(t *testing.T) {
	w := newWorld(t, "postgres", "CREATE TABLE t (id int PRIMARY KEY)")
	p := startRecording(t, w.direct)
	c := p.client(t, w)
	do(t, c, "INSERT INTO t VALUES (1)", "UPDATE t SET id = 2", "SELECT * FROM t")
	c.Close()
	if status := p.end(t); status != int(exitClean) {
		t.Fatalf("recording: exit status %d, %s", status, p.stdout.String())
	}
	url := serverURL(testserver.Postgres(t))
	for _, oracles := range []string{"isolation", "none"} {
		out, said, status := command(t, "replay", p.trace, "--engine", url, "--oracle", oracles)
		if status != exitUnknown || !strings.Contains(out, "undecided: 3 of ") || !strings.Contains(out, "--snapshot") || strings.Contains(out, "nothing found") {
			t.Errorf("%s: status %d, %s%s", oracles, status, out, said)
		}
	}
	snapshot := specFile(t, "dump.sql", "CREATE TABLE public.t (id int PRIMARY KEY);\n")
	if out, said, status := command(t, "replay", p.trace, "--engine", url, "--snapshot", snapshot); status != exitClean || !strings.Contains(out, "nothing found") {
		t.Errorf("with a snapshot: status %d, %s%s", status, out, said)
	}
}

// TestRunHostile: what a server says in a scenario's rows, names and errors turns no terminal.
func TestRunHostile(t *testing.T) {
	path := specFile(t, "hostile.spec", "setup { CREATE TABLE t (id int PRIMARY KEY, v text) }\nteardown { DROP TABLE t }\nsession a\n"+
		`step w { INSERT INTO t VALUES (1, E'\x1b[2J\u202eevil\u009b1m') }`+"\n"+`step r { SELECT v AS U&"c\001bd" FROM t }`+"\n"+
		`step e { DO $$ BEGIN RAISE EXCEPTION E'a\x1b[2J\nisolation: nothing found\u202e' USING ERRCODE = '23505'; END $$ }`+"\npermutation w r e\n")
	for _, format := range []string{"text", "json", "junit"} {
		out, _ := expectRun(t, exitClean, nil, path, "--engine", serverURL(testserver.Postgres(t)), "--format", format)
		if strings.ContainsAny(out, "\x1b\u202e\u009b") || strings.Count(out, "\nisolation: nothing found") > 1 || !strings.Contains(out, "evil") && format != "junit" {
			t.Errorf("%s: %q", format, out)
		}
	}
}
