package isolation

import (
	"strings"
	"testing"

	"wirecheck/history"
)

// TestMadeAnew has histories of requests that delete a row and insert it again, or replace it, and near misses. A row is a letter and the number that people know it by: in the
// MySQL family the new row is another one with that number. "replace" stands for an INSERT that is a REPLACE.
func TestMadeAnew(t *testing.T) {
	const (
		reads  = "s1 A r a1@0; s2 B r a1@0; " // t1 and t2
		sets   = " set id=1 set stock=99 derived stock:a1@0:1.1:plus:-1:100"
		his    = " set id=1 set stock=50 derived stock:a1@0:2.1:plus:-50:100"
		gone   = "s2 B d a1 0>1 equal id=1; "
		lost   = "G-single-request lost update between requests "
		within = "s2 t9 begin; t9 d a1 0>1 equal id=1 request B; "
	)
	for _, tt := range []struct{ name, text, want string }{
		{"both make it again", reads + gone + "s2 B i b1 >0" + his + "; s1 A d b1 0>1 equal id=1; s1 A i c1 >0" + sets, lost + "[1 3 6]"},
		{"in a transaction", reads + within + "t9 i b1 >0 request B" + his + "; t9 commit; s1 A d b1 0>1 equal id=1; s1 A i c1 >0" + sets, lost + "[1 8 9]"},
		{"the other one changed it before", "s1 A r a1@0; s2 B w a1 0>1 set stock=50; s1 A d a1 1>2 equal id=1; s1 A i b1 >0" + sets, lost + "[1 2 4]"},
		{"an UPDATE behind it", reads + gone + "s2 B i b1 >0" + his + "; s1 A w b1 0>1" + sets, lost + "[1 3 5]"},
		{"replaced twice", reads + "s2 B i b1 >0 replace" + his + "; s1 A i c1 >0 replace" + sets, lost + "[1 3 4]"},
		{"replaced, then an UPDATE", reads + "s2 B i b1 >0 replace" + his + "; s1 A w b1 0>1" + sets, lost + "[1 3 4]"},
		{"replaced before the read", "s2 B i a1 >0 replace set id=1 set stock=50; s1 A r a1@0; s1 A i c1 >0 replace set id=1 set stock=99 derived stock:a1@0:2.1:plus:-1:100", ""},
		{"replaced with the value that was there", reads + "s2 B i b1 >0 replace set id=1 set stock=100; s1 A i c1 >0 replace" + sets, ""},
		{"another number", reads + "s2 B i b2 >0 replace set id=2 set stock=50; s1 A i c1 >0 replace" + sets, ""},
		{"with the value that was there", reads + gone + "s2 B i b1 >0 set id=1 set stock=100; s1 A d b1 0>1 equal id=1; s1 A i c1 >0" + sets, ""},
		{"deleted alone", reads + gone + "s1 A i c1 >0" + sets, "unknown: " + lost + "[1 3 4]"},
		{"made again, and not known how", reads + gone + "s2 B i b1 >0; s1 A d b1 0>1 equal id=1; s1 A i c1 >0" + sets, "unknown: " + lost + "[1 3 6]"},
		{"the old value checked", "s1 A r a1@0; s2 B w a1 0>1 set stock=50; s1 A d a1 1>2 equal id=1 equal stock=100; s1 A i b1 >0" + sets, ""},
		{"a check that is not known", "s1 A r a1@0; s2 B w a1 0>1 set stock=50; s1 A d a1 1>2; s1 A i b1 >0" + sets, "unknown: " + lost + "[1 2 4]"},
		{"read again", reads + gone + "s2 B i b1 >0" + his + "; s1 A r b1@0; s1 A d b1 0>1 equal id=1; s1 A i c1 >0 set id=1 set stock=99 derived stock:b1@0:5.1:plus:49:50", ""},
		{"the row got another number", "s1 A r a1@0; s2 B w a1 0>1 set id=5; s2 B w a1 1>2 set stock=50; s1 A i b1 >0" + sets, ""},
	} {
		for _, family := range []bool{true, false} {
			text := autocommit(tt.text)
			if family {
				text = "s1 session mariadb\ns2 session mariadb\n" + text
			}
			if !family && (strings.Contains(tt.text, "replace") || tt.name == "the row got another number") {
				continue // there it would be another row
			}
			events := parse(t, strings.ReplaceAll(text, " replace", " approximate"))
			for i := range events {
				e := &events[i]
				if e.Verb == "insert" && e.Coverage == history.CoverageApproximate {
					e.Verb = "replace"
				}
				for k := range e.Accesses {
					a := &e.Accesses[k]
					a.Name = "id=" + a.Row.Key[1:]
					if !family { // the row is the same one
						a.Order = uint64(10*i + k + 1)
						a.Version, a.Prev = a.Row.Key[:1]+a.Version, ""
						a.PrevOrder, a.Row.Key = 0, a.Row.Key[1:]
						if a.Op == history.OpRead && a.Version == "a0" {
							a.Order = 1
						}
					}
				}
				for k := range e.Derived {
					if d := &e.Derived[k]; !family {
						d.Version, d.Row.Key = d.Row.Key[:1]+d.Version, d.Row.Key[1:]
					}
				}
			}
			found, _ := run(Options{Possible: true}, events)
			if got := briefs(found); got != tt.want {
				t.Errorf("%s, family %t: got %q, want %q", tt.name, family, got, tt.want)
			}
		}
	}
}
