package isolation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// TestNow: what is open and what was seen of tables can be asked for at any time, and asking changes nothing.
func TestNow(t *testing.T) {
	events, err := history.ParseText(strings.NewReader(`s1 session postgres "15.4"
s2 session postgres "15.4"
s1 t1 begin "read committed"
s2 t2 begin "serializable"
t1 r public.a.1@0 -- SELECT 1
t1 w public.a.1 0>1 -- UPDATE a
t2 r public.b.1@0 public.b.2@0? -- SELECT b
t1 commit
`))
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{})
	for i := range events {
		c.Add(&events[i])
	}
	now := Look(c, 10)
	open := now.Open
	if len(open) != 1 || open[0].Txn != 2 || open[0].Session.Session != 2 || open[0].Level != "serializable" || open[0].Statements != 1 || open[0].SQL != "SELECT b" || len(Look(c, 0).Open) != 0 {
		t.Errorf("open: %+v", open)
	}
	if d := cmp.Diff([]TableSeen{{"public.a", 2, 0}, {"public.b", 1, 1}}, now.Tables); d != "" {
		t.Error(d)
	}
	if n := now.Coverage; n.Unfinished != 1 || n.Open != 2 || n.Committed != 1 || n.Exact+n.Approximate != 3 {
		t.Errorf("counts: %+v", n)
	}
}
