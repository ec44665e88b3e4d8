package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// place is a private folder with a database and connections to it.
func place(t *testing.T, mode string) func() engine.Conn {
	t.Helper()
	d := Descriptor()
	s, err := d.Start(t.Context(), engine.Options{Bin: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Folder()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
	target := s.Target()
	owner, err := d.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Exec(t.Context(), owner, "CREATE DATABASE d"); err != nil {
		t.Fatal(err)
	}
	target.Database = "d"
	return func() engine.Conn {
		c, err := d.Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func do(t *testing.T, c engine.Conn, sql string) answer.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return a
}

func must(t *testing.T, c engine.Conn, sql string) {
	t.Helper()
	if a := do(t, c, sql); a.Err != nil {
		t.Fatalf("%s: %v", sql, a.Err)
	}
}

// TestStaleDefinitions: a session that has seen other definitions goes by those of the moment, and where a lock hides these it says so.
func TestStaleDefinitions(t *testing.T) {
	connect := place(t, "")
	a, b := connect(), connect()
	must(t, b, "CREATE TABLE t (c1, c2 AS (c1) STORED)")
	must(t, a, "SELECT * FROM t")
	must(t, b, "DROP TABLE t; CREATE TABLE t (c1, c2)")
	must(t, a, "INSERT INTO t VALUES (1, 2)") // not: cannot INSERT into generated column
	must(t, b, "CREATE TABLE u (a); BEGIN EXCLUSIVE")
	if e := do(t, a, "SELECT * FROM u").Err; e == nil || e.Code != "SQLITE_BUSY" || !strings.Contains(e.Message, "no such table: u") {
		t.Errorf("behind a lock: %v", e)
	}
	must(t, b, "COMMIT")
	must(t, a, "SELECT * FROM u")
	if e := do(t, a, "SELECT * FROM nowhere").Err; e == nil || e.Code != "SQLITE_ERROR" {
		t.Errorf("a table that is not there: %v", e)
	}
	// An error in a transaction must not take a lock that the statement did not have.
	must(t, a, "BEGIN")
	if e := do(t, a, "SELECT * FROM nowhere").Err; e == nil || e.Code != "SQLITE_ERROR" {
		t.Errorf("in a transaction: %v", e)
	}
	must(t, b, "INSERT INTO u VALUES (1)")
	must(t, a, "COMMIT")
}

// TestJournalModes: what a reader does to a writer that commits is what tells the modes apart.
func TestJournalModes(t *testing.T) {
	for mode, want := range map[string]string{modeRollback: "SQLITE_BUSY", modeWAL: ""} {
		connect := place(t, mode)
		reader, writer := connect(), connect()
		must(t, writer, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
		must(t, reader, "BEGIN; SELECT * FROM t")
		got := ""
		if e := do(t, writer, "UPDATE t SET a = 2").Err; e != nil {
			got = e.Code
		}
		if got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		must(t, reader, "COMMIT")
		reader.Close()
		writer.Close()
	}
	d := Descriptor()
	for _, o := range []engine.Options{{Bin: "memory"}, {TLS: true}, {Settings: map[string]string{"a": "b"}}, {Users: []engine.User{{Name: "u"}}}} {
		if _, err := d.Start(t.Context(), o); err == nil {
			t.Errorf("%+v: it started", o)
		}
	}
}

// TestDoEnds: a statement without end is ended with its context, and lets go of its locks.
func TestDoEnds(t *testing.T) {
	connect := place(t, "")
	a, b := connect(), connect()
	must(t, a, "CREATE TABLE t (a); BEGIN; INSERT INTO t VALUES (1)")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Do(ctx, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := a.Do(t.Context(), "SELECT 1"); err == nil {
		t.Error("the connection goes on")
	}
	must(t, b, "INSERT INTO t VALUES (2)")
	if got := do(t, b, "SELECT count(*) FROM t").Results[0].Rows[0][0]; string(got) != "1" {
		t.Errorf("%s rows", got)
	}
}

// TestNames: databases are files of the folder and nothing else.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	f := (&process{folders: map[string]*folder{}}).folder(dir, modeRollback)
	if got, err := f.file("a b"); err != nil || got != filepath.Join(dir, "a b.db") {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"", "../a", "a/b", ".hidden", `a\b`} {
		if got, err := f.file(name); err == nil {
			t.Errorf("%q: %q", name, got)
		}
	}
}
