package explore

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/scenario"
)

// advice is one of two shapes: the first one goes wrong with itself below the strongest level, the second one was not tried everywhere.
func advice() *Advice {
	wrong := &WrongRun{Found: []string{"lost update"}, Why: []string{"<b> & c"}, Spec: "setup { }\n"}
	return &Advice{Trace: "shop.wct", Engine: "postgres", title: "PostgreSQL", unit: "transaction", Units: 5, Executed: 9, Levels: []string{"read committed", "serializable"},
		Shapes: []*ShapeAdvice{{Number: 1, Name: "buy | sell", Count: 3, Level: "read committed", Statements: []string{"select 1"}}, {Number: 2, Name: "<look>", Count: 2, Level: "read committed"}},
		Pairs: []*Pair{
			{A: 1, B: 1, Tables: []string{"stock"}, Level: "read committed", Levels: []*Outcome{{Level: "read committed", Tried: 4, All: true, Wrong: 3, Shown: wrong, Found: wrong.Found},
				{Level: "serializable", Tried: 4, All: true, Refused: map[string]int{"40001": 3}}}},
			{A: 1, B: 2, Tables: []string{"stock"}, Level: "read committed", Levels: []*Outcome{{Level: "read committed", Tried: 1, All: true}, {Level: "serializable", Untried: untriedYet}}},
		}}
}

// TestAdviceForms: each form says which level is safe as far as everything was tried, and what was not.
// TestDistinguish: shapes with one name are told apart by what they do; others keep their names.
func TestDistinguish(t *testing.T) {
	a := Advice{Shapes: []*ShapeAdvice{
		{Name: "redeem", Statements: []string{"begin", "select used from coupon where code = ?", "commit"}}, {Name: "redeem", Statements: []string{"begin", "update coupon set used = ?", "commit"}}, {Name: "buy"},
	}}
	a.distinguish()
	if got := a.Shapes[0].Name + "; " + a.Shapes[1].Name + "; " + a.Shapes[2].Name; got != "redeem: select coupon; redeem: update coupon; buy" {
		t.Error(got)
	}
}

func TestAdviceForms(t *testing.T) {
	a := advice()
	if level, why := a.Safe(1); level != "" || why == "none" {
		t.Errorf("shape 1: safe at %q (%s), want none, since not all was tried", level, why)
	}
	if level, _ := a.Safe(2); level != "read committed" {
		t.Errorf("shape 2: safe at %q, want read committed", level)
	}
	a.Pairs[1].Levels[1].Untried, a.Pairs[1].Levels[1].All = "", true
	if level, _ := a.Safe(1); level != "serializable" {
		t.Errorf("shape 1, all tried: safe at %q, want serializable", level)
	}
	var text, html, md strings.Builder
	a = advice()
	lock := &Proof{Text: "lock what it reads in shape 1"}
	a.Pairs[0].Tried = []*Proof{{Text: "compute it"}, lock, lock}
	for form, write := range map[string]error{"text": a.Text(&text), "html": a.HTML(&html), "markdown": a.Markdown(&md)} {
		if write != nil {
			t.Errorf("%s: %v", form, write)
		}
	}
	for _, want := range []string{"ANOMALY: LOST UPDATE: 1 with 1, in 3 of 4 interleavings", "at serializable: nothing goes wrong in all 4; refused with 40001 in 3", "not all was tried, of 1 pair at a level: " + untriedYet,
		"tried: compute it; lock what it reads in shape 1\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, text.String())
		}
	}
	for _, want := range []string{`<a href="#pair-1-1">lost update</a>`, `id="pair-1-1"`, "&lt;look&gt;", "setup { }", `class="safe"`} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, html.String())
		}
	}
	if strings.Contains(html.String(), "<look>") || !strings.Contains(md.String(), `| 1 | buy \| sell | 3 |`) {
		t.Errorf("names are not escaped:\n%s\n%s", html.String(), md.String())
	}
}

// TestThree: three that go wrong take a level away from their shapes, and two of them that do by themselves say so.
func TestThree(t *testing.T) {
	a := advice()
	a.Pairs[1].Levels[1] = &Outcome{Level: "serializable", Tried: 2, All: true}
	bad := &Outcome{Level: "serializable", Tried: 120, Wrong: 2, Shown: &WrongRun{}, Found: []string{"G2-item"}}
	a.Triples = []*Pair{{A: 1, B: 1, C: 2, Level: "serializable", Levels: []*Outcome{{Level: "read committed", Untried: "1 with 1 goes wrong"}, bad}}}
	if level, _ := a.Safe(2); level != "read committed" {
		t.Errorf("shape 2 is safe at %q, want read committed: the triple was not tried there", level)
	}
	if level, _ := a.Safe(1); level != "" {
		t.Errorf("shape 1 is safe at %q, want none", level)
	}
	var text strings.Builder
	if err := a.Text(&text); err != nil || !a.Found() {
		t.Fatal(err, a.Found())
	}
	for _, want := range []string{"ANOMALY: G2-ITEM: 1 with 1 with 2, in 2 of 120", "1 1+2", "1+1", "three at once: 1 triple of shapes that share tables; at their level executed: 1 (0 in all"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q:\n%s", want, text.String())
		}
	}
	bad.Wrong, bad.Tried = 0, 0
	a.Triples[0].Level = "read committed"
	text.Reset()
	if err := a.Text(&text); err != nil || !strings.Contains(text.String(), "two of them go wrong by themselves: 1") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestPreempted: of two sessions of two steps, few switches give each interleaving that is not serial, once; of longer ones each keeps its session's order.
func TestPreempted(t *testing.T) {
	spec := func(lengths ...int) *scenario.Spec {
		s := &scenario.Spec{}
		for i, n := range lengths {
			session := &scenario.Session{}
			for j := range n {
				session.Steps = append(session.Steps, &scenario.Step{Name: string(rune('a'+i)) + string(rune('1'+j)), Session: i, Index: j})
			}
			s.Sessions = append(s.Sessions, session)
		}
		return s
	}
	if n := len(preempted(spec(2, 2), 100)); n != 4 {
		t.Errorf("2 and 2 steps: %d interleavings, want 4", n)
	}
	orders := preempted(spec(4, 3, 2), 50)
	if len(orders) != 50 {
		t.Errorf("4, 3 and 2 steps: %d interleavings, want 50", len(orders))
	}
	var seen []string
	for _, p := range orders {
		next := make([]int, 3)
		for _, st := range p.Steps {
			if st.Step.Index != next[st.Step.Session] {
				t.Fatalf("%s does not keep a session's order", p)
			}
			next[st.Step.Session]++
		}
		if slices.Contains(seen, p.String()) || p.Switches() < 3 || len(p.Steps) != 9 {
			t.Errorf("%s comes twice, is serial, or lacks steps", p)
		}
		seen = append(seen, p.String())
	}
}
