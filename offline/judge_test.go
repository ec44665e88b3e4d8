package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
	"wirecheck/trace"
)

// TestJudgeSuspects: a file, which can be read again, is judged by way of the sieve, and says the same as a pipe, of which the checker keeps everything.
func TestJudgeSuspects(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"r x@5", "r x@3000", "r x@2999", "r x@2997", "opaque now x \"(= number a 1)\""} {
		var b strings.Builder
		b.WriteString("s1 session postgres \"15.4\"\ns2 session postgres \"15.4\"\n")
		const n = 3000
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, "s1 t%d begin \"read committed\"\nt%d w x %d>%d\nt%d commit\n", 2*i, 2*i, i-1, i, 2*i)
			fmt.Fprintf(&b, "s2 t%d begin \"read committed\"\nt%d w y %d>%d\nt%d commit\n", 2*i+1, 2*i+1, i-1, i, 2*i+1)
		}
		fmt.Fprintf(&b, "s1 t900000 begin \"read committed\"\nt900000 %s\nt900000 r x@3000\nt900000 commit\n", last)
		path := writeHistory(t, b.String())
		said := func(in io.Reader, levels bool) (string, int) {
			j, err := Judge([]Input{{in, path, path}}, isolation.Options{Levels: levels}, levels, func(string) {}, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := j.Checker
			all := []any{c.Summary(), c.Coverage(), j.Missing, c.Broken()}
			if levels {
				all = append(all, isolation.Levels(c).Judge(), isolation.Unsure(c))
			}
			out, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			return string(out), c.Kept()
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, levels := range []bool{false, true} {
			rewound := func() *os.File {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				return f
			}
			file, kept := said(rewound(), levels)
			pipe, all := said(struct{ io.Reader }{rewound()}, levels)
			if most := map[string]int{"r x@5": n + 1, "r x@2997": 10, "r x@3000": 0}[last]; all != 2*n+1 || !levels && most > 0 && kept > most || last == "r x@3000" && kept > 0 {
				t.Errorf("%s: %d transactions are kept, and of the pipe's %d", last, kept, all)
			}
			if file != pipe {
				t.Errorf("%s: of a pipe\n%.3000s\nof a file\n%.3000s", last, pipe, file)
			}
		}
	}
}

// TestRedacted: of a trace in which tokens stand in place of values, findings show none, as those of the proxy.
func TestRedacted(t *testing.T) {
	events, err := history.ParseText(strings.NewReader("s1 session postgres\ns1 t1 begin \"read committed\"\ns2 session postgres\ns2 t2 begin \"read committed\"\n" +
		"t1 r x@0\nt2 r x@0\nt1 w x 0>1\nt1 commit\nt2 w x 1>2\nt2 commit\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, redacted := range []bool{false, true} {
		var b bytes.Buffer
		w, err := trace.NewWriter(&b, trace.Header{Observed: true, Redacted: redacted})
		for i := range events {
			if e := &events[i]; e.Kind == history.EventStmt {
				e.Params = "1 7"
			}
			err = errors.Join(err, w.Write(&trace.Record{Kind: trace.KindHistory, Session: events[i].Session, History: &events[i]}))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		j, err := Judge([]Input{{&b, "-", "h"}}, isolation.Options{}, false, func(string) {}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := j.Checker.Summary()
		if len(found) != 1 {
			t.Fatalf("%d findings", len(found))
		}
		if shown := found[0].Transactions[0].Statements[0].Params; (shown == nil) != redacted {
			t.Errorf("redacted %v: a finding shows %q", redacted, shown)
		}
	}
}

// writeHistory writes a history in text form as a file.
func writeHistory(t *testing.T, text string) string {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h.jsonl")
	w, err := history.Create(path, history.Header{Engine: "postgres", Run: "test"})
	for i := range events {
		err = errors.Join(err, w.Write(&events[i]))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}
