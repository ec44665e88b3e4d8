package isolation

import (
	"strings"
	"testing"
)

// TestStaleChecks: a transaction that reads a number and lets the server compute it from a version that it has not seen may have checked what it read.
func TestStaleChecks(t *testing.T) {
	const (
		read  = two + "\nt1 r x@0 -- SELECT id, stock FROM t WHERE id = 1\n"
		other = "t2 inc x 0>1 -- UPDATE t SET stock = stock - 2 WHERE id = 1\nt2 commit\n"
		take  = "t1 inc x 1>2 -- UPDATE t SET stock = stock - 2 WHERE id = 1\n"
		stale = "unknown: G-single non-repeatable read [1 2]"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"a stock", read + other + take + "t1 commit", stale},
		{"it read again", read + other + "t1 r x@1 -- SELECT id, stock FROM t WHERE id = 1\n" + take + "t1 commit", ""},
		{"it read its key again", read + other + "t1 r x@1 -- SELECT id FROM t WHERE id = 1\n" + take + "t1 commit", stale},
		{"it read again, perhaps all", read + other + "t1 r x@1 -- SELECT id FROM v WHERE id = 1\n" + take + "t1 commit", ""},
		{"a stock, and the engine does not tell the version before", strings.Replace(read, "x@0", "x@a<1", 1) + strings.Replace(other, "0>1", ">1", 1) + strings.Replace(take, "1>2", ">2", 1) + "t1 commit", stale},
		{"the other one sets it", read + "t2 w x 0>1 -- UPDATE t SET stock = 7\nt2 commit\n" + take + "t1 commit", stale},
		{"another one in between", strings.Replace(read, two, three, 1) + "t3 w x 0>1 -- UPDATE t SET name = 'x'\nt3 commit\n" + strings.Replace(other, "0>1", "1>2", 1) + strings.Replace(take, "1>2", "2>3", 1) + "t1 commit", stale},
		{"the WHERE checks it", read + other + strings.Replace(take, "id = 1", "id = 1 AND stock >= 2", 1) + "t1 commit", ""},
		{"the WHERE checks what the other one changed", read + strings.Replace(other, "- 2", "- 2, version = version + 1", 1) + strings.Replace(take, "id = 1", "id = 1 AND version = 7", 1) + "t1 commit", ""},
		{"nobody in between", read + strings.Replace(take, "1>2", "0>1", 1) + "t1 commit\n" + strings.Replace(other, "0>1", "1>2", 1), ""},
		{"it locked the row later", read + other + "t1 lock x@1 -- SELECT stock FROM t WHERE id = 1 FOR UPDATE\n" + take + "t1 commit", ""},
		{"it read another column", strings.Replace(read, "stock", "name", 1) + other + take + "t1 commit", ""},
		{"the other one changed another column", read + "t2 w x 0>1 -- UPDATE t SET name = 'x'\nt2 commit\n" + take + "t1 commit", ""},
		{"a text that grows", read + strings.ReplaceAll(other+take, "stock - 2", "concat(stock, 'x')") + "t1 commit", ""},
		{"rolled back", read + other + take + "t1 abort", ""},
		{"the other one rolled back", read + strings.Replace(other, "commit", "abort", 1) + strings.Replace(take, "1>2", "0>2", 1) + "t1 commit", ""},
	} {
		events := parse(t, tt.text)
		fs, v := run(Options{Possible: true}, events)
		if got := briefs(fs); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if tt.want != stale {
			continue
		}
		if fs, v = run(Options{}, events); len(fs) != 0 || v.Coverage().Possible != 1 {
			t.Errorf("%s: %d findings, %d possible", tt.name, len(fs), v.Coverage().Possible)
		}
	}
}
