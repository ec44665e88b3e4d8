package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"wirecheck/oracle/isolation"
)

// TestJudgeSuspects: where a read is older than the window, a file, which can be read again, is judged by way of the sieve, and says the same as
// a pipe, of which the checker keeps everything.
//
// The others are near misses: nothing is older than the window.
func TestJudgeSuspects(t *testing.T) {
	for _, last := range []string{"r x@5", "r x@3000", "r x@2999", "opaque now x \"(= number a 1)\""} {
		var b strings.Builder
		b.WriteString("s1 session postgres \"15.4\"\ns2 session postgres \"15.4\"\n")
		const n = 3000
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, "s1 t%d begin \"read committed\"\nt%d w x %d>%d\nt%d commit\n", 2*i, 2*i, i-1, i, 2*i)
			fmt.Fprintf(&b, "s2 t%d begin \"read committed\"\nt%d w y %d>%d\nt%d commit\n", 2*i+1, 2*i+1, i-1, i, 2*i+1)
		}
		fmt.Fprintf(&b, "s1 t900000 begin \"read committed\"\nt900000 %s\nt900000 r x@3000\nt900000 commit\n", last)
		path := writeHistory(t, b.String())
		said := func(in io.Reader) (string, int) {
			cmd := newCheckCommand()
			cmd.SetErr(io.Discard)
			c, missing, err := judge(cmd, []input{{in, path, path}}, isolation.Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal([]any{c.Summary(), c.Coverage(), missing, c.Broken()})
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
		file, kept := said(f)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		pipe, all := said(struct{ io.Reader }{f})
		if last == "r x@5" && (all != 2*n+1 || kept > n+1) {
			t.Errorf("%s: %d transactions are kept, and of the pipe's %d", last, kept, all)
		}
		if file != pipe {
			t.Errorf("%s: of a pipe\n%.3000s\nof a file\n%.3000s", last, pipe, file)
		}
	}
}
