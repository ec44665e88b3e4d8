package isolation

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// stmtSeen is a statement outside of a transaction, seen so.
func stmtSeen(sql string, seen history.Coverage, why string) *history.Event {
	return &history.Event{Kind: history.EventStmt, Session: 1, SQL: sql, Verb: "select", Coverage: seen, Why: why}
}

func TestExplain(t *testing.T) {
	c := New(Options{Explain: true})
	for range 6 {
		c.Add(stmtSeen("SELECT a FROM t WHERE id = 7", history.CoverageExact, ""))
	}
	for i := range 3 {
		c.Add(stmtSeen(fmt.Sprintf("SELECT DISTINCT a FROM t WHERE id = %d", i), history.CoverageOpaque, "DISTINCT"))
	}
	c.Add(stmtSeen("SELECT DISTINCT b FROM t WHERE id IN (1, 2)", history.CoverageOpaque, "DISTINCT"))
	c.Add(stmtSeen("SELECT * FROM v", history.CoverageApproximate, "a view"))
	c.Add(stmtSeen("SET x = 1", history.CoverageNone, ""))
	want := `Not seen exactly: 5 of 11 statements (45.5%).

 36.4%      4  opaque: DISTINCT
              3    select distinct a from t where id=?
              1    select distinct b from t where id in (?)

  9.1%      1  approximate: a view
              1    select * from v
`
	if d := cmp.Diff(want, c.Coverage().Explain()); d != "" {
		t.Error(d)
	}
	if n := len(c.Coverage().Lost); n != 3 {
		t.Errorf("%d shapes, want 3", n)
	}
	without := New(Options{})
	without.Add(stmtSeen("SELECT * FROM v", history.CoverageOpaque, "a view"))
	if got := without.Coverage().Lost; got != nil {
		t.Errorf("shapes that nobody asked for: %v", got)
	}
	if got, want := (Coverage{}).Explain(), "No statement was seen.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Coverage{Exact: 1}).Explain(), "The one statement was seen exactly.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Coverage{Exact: 2}).Explain(), "All 2 statements were seen exactly.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestExplainConditions: statements whose conditions were not judged are listed behind those that were not seen exactly; those that were are counted.
func TestExplainConditions(t *testing.T) {
	n := 0
	asked := func(sql, unread, where string) *history.Event {
		e := stmtSeen(sql, history.CoverageExact, "")
		n++
		e.Txn, e.N = 1, n
		e.Predicate, e.Unread = true, unread
		if where != "" {
			e.Reads = []history.PredicateRead{{Table: "t", Where: where, From: 1, To: 2, Whole: true}}
		}
		return e
	}
	c := New(Options{Explain: true})
	c.Add(&history.Event{Kind: history.EventBegin, Session: 1, Txn: 1})
	for i := range 2 {
		c.Add(asked(fmt.Sprintf("SELECT a FROM t JOIN u ON b = c WHERE d = %d", i), "it reads several tables or a subquery", ""))
	}
	c.Add(asked("SELECT a FROM t WHERE f(a)", "", `(unsure "a condition with a function")`))
	c.Add(asked("SELECT a FROM t WHERE a = 1", "", "(= number a 1)"))
	c.Add(stmtSeen("SELECT a FROM t", history.CoverageExact, ""))
	want := `All 5 statements were seen exactly.

Condition not judged: 3 of 4 statements that chose rows by one (75.0%).

 50.0%      2  it reads several tables or a subquery
              2    select a from t join u on b=c where d=?

 25.0%      1  a condition with a function
              1    select a from t where f(a)
`
	if d := cmp.Diff(want, c.Coverage().Explain()); d != "" {
		t.Error(d)
	}
}

// TestExplainIsNarrow: no line is wider than 80 columns, and a long statement shows its beginning and its end.
func TestExplainIsNarrow(t *testing.T) {
	c := New(Options{Explain: true})
	columns := strings.Repeat(`"shop_item"."a_column_of_it", `, 60)
	c.Add(stmtSeen("SELECT "+columns+`1 FROM "shop_item" WHERE the_end`, history.CoverageOpaque, strings.Repeat("a long reason ", 30)))
	c.Add(stmtSeen("SELECT "+strings.Repeat("ü", 500), history.CoverageOpaque, ""))
	got := c.Coverage().Explain()
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, part := range []string{`select "shop_item"`, `"shop_item" where`, "the_end", "no reason was recorded"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

// TestExplainIsBounded: however many shapes there are, a bounded number is kept, and none is lost from the sum.
func TestExplainIsBounded(t *testing.T) {
	c := New(Options{Explain: true})
	const all = 3 * maxLost
	for i := range all {
		c.Add(stmtSeen(fmt.Sprintf("SELECT c%c%c%c FROM t", 'a'+i%26, 'a'+i/26%26, 'a'+i/676), history.CoverageOpaque, fmt.Sprint("reason ", i)))
	}
	list := c.Coverage().Lost
	if sum := times(list); sum != all || len(list) > 2*maxLost+1 {
		t.Errorf("%d statements in %d shapes, want %d", sum, len(list), all)
	}
}
