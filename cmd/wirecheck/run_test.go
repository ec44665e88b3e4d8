package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/testserver"
	"wirecheck/lab/panel"
)

const skew = `#wirecheck: expect[postgres: repeatable read]: write skew
setup { CREATE TABLE doctor (id int PRIMARY KEY, on_call int) }
setup { INSERT INTO doctor VALUES (1, 1), (2, 1) }
teardown { DROP TABLE doctor }
session alice
step ba { BEGIN }
step ra { SELECT on_call FROM doctor ORDER BY id }
step wa { UPDATE doctor SET on_call = 0 WHERE id = 1 }
step ca { COMMIT }
session bob
step bb { BEGIN }
step rb { SELECT on_call FROM doctor ORDER BY id }
step wb { UPDATE doctor SET on_call = 0 WHERE id = 2 }
step cb { COMMIT }
permutation ba bb ra rb wa wb ca cb
`

// specFile writes a scenario into a folder of the test's.
func specFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverURL is a running server that wirecheck run did not start, with its superuser.
func serverURL(s *testserver.Server) string {
	u := url.URL{Scheme: s.Engine, User: url.UserPassword(s.User, s.Server.Password), Host: s.Address()}
	return u.String()
}

func expectRun(t *testing.T, want exitStatus, parts []string, args ...string) (out, said string) {
	t.Helper()
	out, said, status := command(t, append([]string{"run"}, args...)...)
	if status != want {
		t.Fatalf("%v: exit status %d, want %d; printed:\n%s\nsaid:\n%s", args, status, want, out, said)
	}
	for _, part := range parts {
		if !strings.Contains(out+said, part) {
			t.Errorf("%v: lacks %q; printed:\n%s\nsaid:\n%s", args, part, out, said)
		}
	}
	return out, said
}

// TestRunByURL runs scenarios on servers that are not ours: nothing is left on them.
func TestRunByURL(t *testing.T) {
	path := specFile(t, "skew.spec", skew)
	pg, maria := testserver.Postgres(t), testserver.MariaDB(t)
	expectRun(t, exitFound, []string{
		"skew.spec on PostgreSQL at READ COMMITTED", "isolation: write skew (G2-item), allowed at this level",
		"alice in ra read doctor id=2 as it was before bob in wb wrote it (rw)", "cases: 1, with findings: 1",
	}, path, "--engine", serverURL(pg))
	expectRun(t, exitClean, []string{"isolation: write skew"}, path, "--engine", serverURL(pg), "--level", "repeatable read")
	expectRun(t, exitFound, []string{"write skew"}, path, "--engine", serverURL(maria))
	out, _ := expectRun(t, exitFound, nil, path, "--engine", serverURL(pg), "--format", "json")
	var got struct {
		Runs  []map[string]any `json:"runs"`
		Cases []struct {
			Found  []string          `json:"found"`
			Events []panel.EventJSON `json:"events"`
			Tables []panel.TableJSON `json:"tables"`
		} `json:"cases"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Cases) != 1 || len(got.Cases[0].Events) != 8 || len(got.Cases[0].Tables) != 1 || got.Runs[0]["run"] != 1.0 || got.Runs[0]["interleavings"] != 70.0 {
		t.Fatalf("JSON: %s", out)
	}
	if ev := got.Cases[0].Events[2]; ev.Step != "ra" || ev.Session != "alice" || ev.Kind != "ran" || len(ev.Results) != 1 || *ev.Results[0].Rows[1][0] != "1" {
		t.Errorf("event 3: %+v", ev)
	}
	expectRun(t, exitFound, []string{`<testsuite name="wirecheck run" tests="1" failures="1" errors="0">`, `message="found write skew"`}, path, "--engine", serverURL(pg), "--format", "junit")
	expectRun(t, exitFound, []string{"<!doctype html>", "Write skew", "with findings: 1", "wirecheck run ", "The scenario"}, path, "--engine", serverURL(pg), "--format", "html")
	expectRun(t, exitFound, []string{"Parsed test spec with 2 sessions", "starting permutation: ba bb ra rb wa wb ca cb"}, path, "--engine", serverURL(pg), "--format", "isolationtester")
	expectRun(t, exitClean, []string{"of 70 interleavings; the others cannot differ"}, path, "--engine", serverURL(pg), "--permutations", "all", "--oracle", "none")
	noLabs(t, pg)
	noLabs(t, maria)
}

// noLabs fails if a database that runs make is on the server.
func noLabs(t *testing.T, s *testserver.Server) {
	t.Helper()
	if names := labsOn(t, s); len(names) > 0 {
		t.Errorf("left on %s: %v", s.Engine, names)
	}
}

func labsOn(t *testing.T, s *testserver.Server) (names []string) {
	t.Helper()
	instance, err := backends.At(serverURL(s))
	if err != nil {
		t.Fatal(err)
	}
	target := instance.Target
	target.Database = instance.Engine.Lab.Maintenance
	conn, err := instance.Engine.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rows, err := engine.Query(t.Context(), conn, instance.Engine.Lab.List)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		names = append(names, string(row[0]))
	}
	return names
}

// TestSeedRepeats runs what a seed chooses twice.
func TestSeedRepeats(t *testing.T) {
	path := specFile(t, "skew.spec", skew)
	server := serverURL(testserver.Postgres(t))
	for _, mode := range []string{"random:3", "pct:3,2"} {
		args := []string{path, "--engine", server, "--oracle", "none", "--permutations", mode}
		first, _ := expectRun(t, exitClean, []string{"of 70 interleavings, " + mode + ", seed 5"}, append(args, "--seed", "5")...)
		again, _ := expectRun(t, exitClean, nil, append(args, "--seed", "5")...)
		other, _ := expectRun(t, exitClean, nil, append(args, "--seed", "6")...)
		if first != again || first == other {
			t.Errorf("%s: the same seed gives the same: %v, another one something else: %v", mode, first == again, first != other)
		}
	}
}

// TestUpdate stores a result and compares later ones with it, if they are answers to the same question.
func TestUpdate(t *testing.T) {
	path := specFile(t, "skew.spec", skew)
	stored := strings.TrimSuffix(path, ".spec") + ".postgres.out"
	server := testserver.Postgres(t)
	t.Setenv(backends.PasswordVariable, server.Server.Password) // in the URL it would be warned of
	args := []string{path, "--engine", strings.Replace(serverURL(server), ":"+server.Server.Password+"@", "@", 1), "--level", "repeatable read"}
	expectRun(t, exitClean, nil, append(args, "--update")...)
	if _, said := expectRun(t, exitClean, nil, args...); said != "" {
		t.Errorf("the same again: %s", said)
	}
	expectRun(t, exitFound, []string{stored + " was not compared: it is the result of other flags", "levels repeatable read, read committed;", "levels repeatable read;"},
		append(args, "--level", "read committed")...)
	expectRun(t, exitClean, []string{"was not compared"}, append(args, "--format", "isolationtester")...)
	text, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stored, bytes.Replace(text, []byte("isolation: write skew"), []byte("isolation: lost update"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	expectRun(t, exitFound, []string{"the result is another one than the stored one", "want: isolation: lost update", "not as expected: 1"}, args...)
}

// TestBadRuns are those that cannot be executed: the message says what and where.
func TestBadRuns(t *testing.T) {
	server := serverURL(testserver.Postgres(t))
	good := specFile(t, "good.spec", skew)
	broken := specFile(t, "broken.spec", "setup { SELECT 1 }\nsession s1\nstep a SELECT 1 }\n")
	refused := specFile(t, "refused.spec", "setup { CREATE TABLE t (a int }\nsession s1\nstep a { SELECT 1 }\n")
	expectRun(t, exitFailed, []string{"broken.spec:3:8: found the name SELECT, expected an SQL block"}, broken, "--engine", server)
	expectRun(t, exitFailed, []string{"refused.spec:1: setup: ERROR: syntax error", "write skew", "cases: 2, with findings: 1, not as expected: 0, unknown: 0, not executed: 1"},
		refused, good, "--engine", server)
	expectRun(t, exitFailed, []string{`errors="1"`, "not executed: "}, refused, "--engine", server, "--format", "junit")
	expectRun(t, exitFailed, []string{`unknown level "x"`}, good, "--engine", server, "--level", "x")
	expectRun(t, exitFailed, []string{"connection refused"}, good, "--engine", "postgres://x@127.0.0.1:1")
	wrong := strings.Replace(serverURL(testserver.MariaDB(t)), "mariadb://", "mysql://", 1)
	expectRun(t, exitFailed, []string{"the server says that it is mariadb", "use mariadb:// in place of mysql://"}, good, "--engine", wrong)
	noLabs(t, testserver.Postgres(t))
}

// TestEngineDies ends private servers in the middle of a permutation.
func TestEngineDies(t *testing.T) {
	t.Parallel()
	const spec = "setup { CREATE TABLE t (n int) }\nsession s1\nstep a { INSERT INTO t VALUES (1) }\nstep die { %s }\nsession s2\nstep b { SELECT * FROM t }\n" +
		"permutation a b die\npermutation b a die\n"
	for _, test := range []struct{ engine, die string }{
		{"postgres", "COPY (SELECT 1) TO PROGRAM 'kill -9 $(head -1 postmaster.pid) $PPID'"},
		{"mariadb", "SHUTDOWN"},
	} {
		path := specFile(t, "die.spec", fmt.Sprintf(spec, test.die))
		good := specFile(t, "good.spec", skew)
		out, _ := expectRun(t, exitFailed, []string{
			"permutation 1: a b die", "not finished: ", "unknown: ", "the server ended, or ended a connection, in the middle", "write skew", "cases: 2, with findings: 1, not as expected: 0, unknown: 1",
		}, path, good, "--engine", test.engine)
		if strings.Contains(out, "permutation 2") || strings.Contains(out, "nothing found") {
			t.Errorf("%s: printed:\n%s", test.engine, out)
		}
	}
}

// TestRunIsKilled kills a run on a server that is not its own: the next one removes what it left.
func TestRunIsKilled(t *testing.T) {
	server := testserver.Postgres(t)
	path := specFile(t, "slow.spec", "setup { CREATE TABLE t (n int) }\nsession s1\nstep a { SELECT pg_sleep(60) }\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		var said bytes.Buffer
		cmd := exec.Command(self, "run", path, "--engine", serverURL(server))
		cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(patience); len(labsOn(t, server)) == 0; {
			if time.Now().After(limit) {
				t.Fatal("the run makes no database")
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if signal == syscall.SIGINT {
			if cmd.ProcessState.ExitCode() != int(exitFailed) || !strings.Contains(said.String(), "wirecheck: interrupted") {
				t.Errorf("interrupted: %v, said %q", err, said.String())
			}
			continue
		}
		good := specFile(t, "good.spec", skew)
		removed := false
		for limit := time.Now().Add(patience); !removed && time.Now().Before(limit); { // the server may notice late that the owner is gone
			_, said := expectRun(t, exitFound, nil, good, "--engine", serverURL(server))
			removed = strings.Contains(said, "removed a database that an earlier run had left behind")
		}
		if !removed {
			t.Error("what a killed run has left is not removed")
		}
	}
	noLabs(t, server)
}

// TestLimit gives up a step that takes too long, and says which.
func TestLimit(t *testing.T) {
	t.Parallel()
	path := specFile(t, "slow.spec", "session s1\nstep a { SELECT pg_sleep(600) }\nsession s2\nstep b { SELECT 1 }\npermutation a b\n")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, said bytes.Buffer
	status := run(ctx, []string{"run", path, "--engine", serverURL(testserver.Postgres(t)), "--limit", "6s"}, &out, &said)
	if status != exitUnknown || !strings.Contains(out.String(), "unknown: the case took more than 6s: s1 is still in a") {
		t.Errorf("exit status %d, printed:\n%s\nsaid:\n%s", status, out.String(), said.String())
	}
}
