package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/trace/lex"
)

// quiet is a connection for what only reads: it takes every statement and answers nothing.
type quiet struct{}

func (quiet) ID() uint64                                        { return 0 }
func (quiet) Do(context.Context, string) (answer.Answer, error) { return answer.Answer{}, nil }
func (quiet) Close() error                                      { return nil }

// TestNoDump has files that are no dump in plain SQL. No server is asked.
func TestNoDump(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := io.WriteString(w, strings.Repeat("SELECT 1;\n", 10000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":             {"", "is empty"},
		"custom format":     {"PGDMP\x01\x0e\x00", "pg_restore -f"},
		"tar format":        {"toc.dat\x00\x00", "pg_restore -f"},
		"xz":                {"\xfd7zXZ\x00", "decompress it first"},
		"UTF-16":            {"\xff\xfeC\x00R\x00", "UTF-16"},
		"binary":            {"\x7fELF\x00\x00", "this is binary"},
		"a broken gzip":     {"\x1f\x8bnonsense", "gzip"},
		"a gzip cut off":    {z.String()[:z.Len()-20], "unexpected EOF"},
		"a file in a COPY":  {"COPY t FROM '/etc/passwd';\n", ":1: it reads or writes a file"},
		"a program":         {"/* x */ COPY t FROM PROGRAM 'id';\n", ":1: it reads or writes a file"},
		"behind another":    {"\nSET a = 1; COPY t TO '/tmp/x';\n", ":2: it reads or writes a file"},
		"psql's commands":   {"\\! id\n", `psql's command \!`},
		"cut off in a row":  {"COPY t (a, b) FROM stdin;\n1\t2\n3", "the row has 1 values, COPY t 2"},
		"cut off in a COPY": {"COPY t (a, b) FROM stdin;\n1\t2\n", "the rows of COPY t do not end"},
		"too many values":   {"COPY t (a, b) FROM stdin;\n1\t2\n1\t2\t3\n\\.\n", ":3: the row has 3 values"},
		"an open quote":     {"INSERT INTO t VALUES ('x;\n", "in the middle of a statement"},
		"junk":              {strings.Repeat("hello \xff\n", 100), "in the middle of a statement"},
	} {
		path := filepath.Join(t.TempDir(), "dump.sql")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Snapshot{Conn: quiet{}, Dialect: lex.PostgreSQL}
		if err := s.Restore(t.Context(), path); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for sql, want := range map[string]bool{
		"LOAD DATA INFILE '/etc/passwd' INTO TABLE t": true, "/*!50000 LOAD DATA INFILE 'x' INTO TABLE t */": true, "SELECT 'x' INTO OUTFILE '/tmp/x'": true,
		"INSERT INTO t VALUES ('load data into outfile')": false, "CREATE TABLE `load` (data int)": false, "SELECT 1 -- into outfile": false,
	} {
		if got := touchesFiles(sql, lex.MySQL); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
	for sql, want := range map[string]bool{"INSERT INTO t VALUES ('x; copy t from ''y''')": false, "CREATE TABLE copy (a int)": false, "SELECT 1;copy t from 'x'": true} {
		if got := touchesFiles(sql, lex.PostgreSQL); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

// TestBoundary has statements of several lines, and demands that each is complete at its end and not before.
func TestBoundary(t *testing.T) {
	for d, all := range map[lex.Dialect][]string{
		lex.PostgreSQL: {
			"SELECT 1;\n", "SELECT ';\n';\n", "SELECT 'it''s;\n';\n", "SELECT \"a;\n\";\n", "SELECT E'\\';\n';\n", "SELECT '\\';\n", "SELECT 1 -- x;\n;\n", "SELECT 1 /* ;\n /* ;\n */ ;\n */;\n",
			"CREATE FUNCTION f() AS $$ a;\n b; $x$;\n $$;\n", "CREATE FUNCTION f() AS $x$ a;\n $$;\n $x$;\n", "SELECT $1;\n", "SELECT a$b;\n",
			"CREATE FUNCTION f() BEGIN ATOMIC\n SELECT 1;\n SELECT CASE WHEN a THEN 1 END;\n END;\n", "CREATE TABLE atomic (a int);\n",
		},
		lex.MySQL: {
			"SELECT 1;\n", "SELECT ';\n';\n", "SELECT '\\';\n';\n", "SELECT \"it's;\n\";\n", "SELECT `a;\n`;\n", "SELECT 1 # x;\n;\n", "SELECT 1 -- it's;\n;\n", "SELECT 1--2;\n",
			"/*!50003 SELECT ';\n' */;\n", "SELECT /* ;\n /* */ 1;\n",
		},
	} {
		for _, sql := range all {
			b := &boundary{dialect: d}
			for n, c := range []byte(sql) {
				if c == '\n' {
					if got, want := b.complete(sql[:n+1]), n == len(sql)-1; got != want {
						t.Errorf("%q: complete is %v behind %q", sql, got, sql[:n+1])
					}
				}
			}
		}
	}
}

// zeros is a line without end.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	z.left -= int64(len(p))
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// TestDumpOfOneLine reads a line of 2 GiB, in bounded memory.
func TestDumpOfOneLine(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := Snapshot{Conn: quiet{}, Dialect: lex.PostgreSQL, name: "dump.sql"}
	err := s.restore(t.Context(), bufio.NewReaderSize(&zeros{2 << 30}, lineRoom))
	if err == nil || !strings.Contains(err.Error(), "dump.sql, line 1: a line of more than") {
		t.Error(err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 8*maxChunk {
		t.Errorf("%d MB were taken", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// FuzzSnapshot gives the reader of dumps anything.
func FuzzSnapshot(f *testing.F) {
	for _, dump := range []string{pgDump, myDump, "COPY t (a) FROM stdin;\n\\x41\\N\n\\.\n"} {
		f.Add(dump, false)
		f.Add(dump, true)
	}
	f.Fuzz(func(t *testing.T, dump string, mysql bool) {
		d := lex.PostgreSQL
		if mysql {
			d = lex.MySQL
		}
		s := Snapshot{Conn: quiet{}, Dialect: d, Skipped: map[string]int{}, name: "x"}
		if err := s.restore(t.Context(), bufio.NewReader(strings.NewReader(dump))); err != nil && !strings.HasPrefix(err.Error(), "x:") && !strings.HasPrefix(err.Error(), "read snapshot x") {
			t.Errorf("an error that does not say where: %v", err)
		}
	})
}
