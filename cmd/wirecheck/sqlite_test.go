package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lying is a database whose index says that it has all rows and has one of three: what a bug of a partial index would look like. It is
// made by hand, through the schema table; the trigger keeps rows from being put back by INSERT, which would fill the index.
const lying = `
setup { CREATE TABLE t (a INT, c INT) }
setup { INSERT INTO t VALUES (1, 3), (2, 7), (3, 3) }
setup { CREATE INDEX i ON t (c) WHERE c > 5 }
setup { PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t (c)' WHERE name = 'i'; PRAGMA writable_schema = RESET }
setup { CREATE TRIGGER keep AFTER DELETE ON t BEGIN SELECT 1; END }
session s1
step q { SELECT a FROM t WHERE c = 3 }
permutation q
`

// busySkew is a write skew, which SQLite refuses with SQLITE_BUSY.
const busySkew = `
setup { CREATE TABLE t (id int PRIMARY KEY, v int) }
setup { INSERT INTO t VALUES (1, 1), (2, 1) }
session s1
step b1 { BEGIN }
step r1 { SELECT sum(v) FROM t }
step w1 { UPDATE t SET v = 0 WHERE id = 1 }
step c1 { COMMIT }
session s2
step b2 { BEGIN }
step r2 { SELECT sum(v) FROM t }
step w2 { UPDATE t SET v = 0 WHERE id = 2 }
step c2 { COMMIT }
permutation b1 r1 b2 r2 w1 w2 c1 c2
`

// TestSQLiteOracles: what the index hides is found by those who compare with something that does not use it, and the same database
// with an honest index is quiet.
func TestSQLiteOracles(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "sqlite:wal", "sqlite:" + t.TempDir()} {
		out, said, status := command(t, "run", specFile(t, "lying.spec", lying), "--engine", engine, "--oracle", "radar,tlp,crash")
		if status != exitFound || !strings.Contains(out, "radar: different result") || !strings.Contains(out, "tlp: different result") ||
			!strings.Contains(out, "crash: nothing found") || !strings.Contains(out, "expected: 1, 3\n  observed: no rows") {
			t.Errorf("%s: exit status %d, said %q, printed\n%s", engine, status, said, out)
		}
		var honest []string
		for line := range strings.Lines(lying) {
			if !strings.Contains(line, "writable_schema") {
				honest = append(honest, line)
			}
		}
		out, said, status = command(t, "run", specFile(t, "honest.spec", strings.Join(honest, "")), "--engine", engine, "--oracle", "radar,tlp,norec,wss,crash")
		if status != exitClean || strings.Count(out, "nothing found") != 5 {
			t.Errorf("%s, an honest index: exit status %d, said %q, printed\n%s", engine, status, said, out)
		}
	}
}

// TestSQLiteIsolation: the oracle that needs a proxy says so if it is asked for, and is left out of all; those whose tables do not have
// SQLite are unknown.
func TestSQLiteIsolation(t *testing.T) {
	t.Parallel()
	const why = "SQLite is a library in this process with no protocol to stand in between"
	path := specFile(t, "busy.spec", busySkew)
	for _, test := range []struct {
		oracle, said string
		status       exitStatus
		printed      []string
	}{
		{"isolation", why + ": name other oracles", exitFailed, nil},
		{"wss,isolation", why + ": name other oracles", exitFailed, nil},
		{"wss", "", exitClean, []string{"ERROR SQLITE_BUSY: database is locked", "wss: nothing found"}},
		{"all", why + ": it is left out; oracle troc has rules for locks that are waited for", exitClean, []string{"wss: nothing found", "dqe: nothing found", "crash: nothing found"}},
		{"serial", "", exitUnknown, []string{"unknown: serial: serial does not know sqlite"}},
		{"troc", "", exitUnknown, []string{"unknown: troc: what a statement of SQLite sees"}},
		{"txcheck", "", exitUnknown, []string{"unknown: txcheck: txcheck does not know sqlite"}},
	} {
		out, said, status := command(t, "run", path, "--engine", "sqlite", "--oracle", test.oracle)
		if status != test.status || !strings.Contains(said, test.said) || test.said == "" && said != "" {
			t.Errorf("%s: exit status %d, want %d; said %q", test.oracle, status, test.status, said)
		}
		for _, want := range test.printed {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", test.oracle, want, out)
			}
		}
	}
	if out, said, status := command(t, "run", path, "--engine", "sqlite"); status != exitClean || !strings.Contains(said, why+": it is left out") {
		t.Errorf("by default: exit status %d, said %q, printed\n%s", status, said, out)
	}
	if _, said, status := command(t, "hunt", "--engine", "sqlite", "--oracle", "isolation", "--cases", "1", "--out", t.TempDir()); status != exitFailed || !strings.Contains(said, why) {
		t.Errorf("hunt: exit status %d, said %q", status, said)
	}
}

// TestSQLiteFolder: a folder is left as it was, and what is no folder is refused.
func TestSQLiteFolder(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "shop.db")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, status := command(t, "run", specFile(t, "busy.spec", busySkew), "--engine", "sqlite:"+dir, "--oracle", "wss"); status != exitClean {
		t.Errorf("exit status %d, said %q, printed\n%s", status, said, out)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "mine" {
		t.Errorf("a file that is not wirecheck's: %q, %v", got, err)
	}
	for _, test := range []struct{ engine, said string }{
		{"sqlite:" + mine, "is a file; name the folder"}, {"sqlite:" + filepath.Join(dir, "none"), "no such file or directory"}, {"sqlite:nomode", `no SQLite "nomode"`},
	} {
		if _, said, status := command(t, "run", specFile(t, "busy.spec", busySkew), "--engine", test.engine, "--oracle", "wss"); status != exitFailed || !strings.Contains(said, test.said) {
			t.Errorf("%s: exit status %d, said %q", test.engine, status, said)
		}
	}
	if _, said, status := command(t, "engines", "start", "sqlite"); status != exitFailed || !strings.Contains(said, "there is no server to start") {
		t.Errorf("engines start: exit status %d, said %q", status, said)
	}
}

// TestSQLiteHunt hunts on a correct engine: nothing is found, nearly all statements are accepted, and no setup is refused.
func TestSQLiteHunt(t *testing.T) {
	t.Parallel()
	cases := "25"
	if *loadLength > 0 {
		cases = "600"
	}
	for _, engine := range []string{"sqlite", "sqlite:wal"} {
		dir := t.TempDir()
		out, said, status := command(t, "hunt", "--engine", engine, "--oracle", "radar,tlp,norec,dqe,wss,crash", "--cases", cases, "--seed", "11", "--out", dir)
		if status != exitClean || !strings.Contains(out, cases+" cases") || !strings.Contains(out, "0 distinct of 0 findings, 0 permitted, 0 flaky") ||
			!strings.Contains(out, " 0 setups refused, 0 crashes") {
			t.Errorf("%s: exit status %d, said %q, printed\n%s", engine, status, said, out)
		}
		kept, err := filepath.Glob(filepath.Join(dir, "*", "case.spec"))
		if err != nil || len(kept) > 0 {
			t.Errorf("%s: kept %v, %v", engine, kept, err)
		}
	}
}
