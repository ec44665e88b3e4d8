package panel

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/answer"
	"wirecheck/internal/testserver"
	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/serial"
	"wirecheck/product"
)

var (
	agreeCases = flag.Int("agree-cases", 20, "how many random cases TestAgree executes on each product")
	agreeSeed  = flag.Uint64("agree-seed", 1, "the seed of TestAgree's cases")
)

// The oracles that judge schedules, and how many cases share a database. The level changes with the database.
const (
	agreeOracles = "isolation,wss,troc,txcheck,serial"
	agreeGroup   = 4
)

// agreeLimits are small: the serial oracle executes every order of the sessions.
var agreeLimits = generate.Limits{Tables: 2, Columns: 2, Rows: 4, Indexes: 2, ForeignKeys: 1, Transactions: 3, Statements: 4, Depth: 1, Templates: 50}

// TestAgree executes random schedules on servers that keep their promises, at all levels, and lets all oracles that judge schedules judge
// them. No two oracles that both decide may contradict each other. These pairs can, since both speak about the same event:
//
//   - wss, troc and txcheck, each with each: all three compare a statement's answer, or a table at the end, with what should have been there.
//     Their models differ: wss executes the writes one by one, troc computes each statement's view, txcheck executes an order of the
//     dependency graph. One may call a difference permitted and name the cause that the vendor documents; the other may call it a violation.
//     The test looks at their findings before reconcile. It accepts a pair only if product's rows hold both causes, the violation's
//     confirmed and the other documented, and reconcile leaves no violation.
//   - isolation and serial: a violation is a cycle of dependencies, so no serial order has the same dependencies. If serial finds an order
//     with the same answers and tables, one of the two is wrong (or two values were equal by chance, which a reader of the case sees).
//   - isolation and the three: isolation compares no answers, so that they share no event. An oracle that finds nothing does not contradict
//     one that finds something: each of them looks for a part only.
//
// These servers keep their promises, apart from the bugs that their vendors have confirmed. So a violation needs a confirmed cause, whoever
// finds it, and the isolation oracle, which names no causes, may find none.
func TestAgree(t *testing.T) {
	t.Parallel()
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agreeOn(t, name)
		})
	}
}

// agreeTally counts what a run of TestAgree was like.
type agreeTally struct {
	judged, refused int
	decided         map[string]int // by oracle
	permitted       map[string]int // by oracle and cause
	confirmed       map[string]int // by oracle and cause
}

// agreeOn judges the cases on one engine.
func agreeOn(t *testing.T, name string) {
	selection, err := Select(agreeOracles)
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenExecutor(t.Context(), name, selection, Options{Log: zerolog.Nop(), Seed: *agreeSeed}, time.Minute, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	p := product.Of(x.Instance.Engine.Name)
	c := &agreeTally{decided: map[string]int{}, permitted: map[string]int{}, confirmed: map[string]int{}}
	for i := range *agreeCases {
		k := agreeCase(t, x.Instance.Engine.Name, i)
		level := p.Levels[i/agreeGroup%len(p.Levels)]
		b, err := x.At(t.Context(), level)
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.judge(t.Context(), k.Spec, k.Spec.Permutations[0])
		var refused *answer.Error
		switch {
		case errors.As(err, &refused): // the setup: it has values that the server does not take
			c.refused++
			continue
		case err != nil:
			t.Fatalf("case %d at %s: %v\n%s", i, level.History, err, agreeText(t, k.Spec))
		case d.Trouble != nil || d.Crashed || d.Hung:
			t.Errorf("case %d at %s did not come to its end: %v\n%s", i, level.History, d.Trouble, agreeText(t, k.Spec))
			continue
		}
		c.add(d)
		wrong := contradictions(p, d)
		if len(wrong) > 0 {
			t.Errorf("%s, -agree-seed %d, case %d at %s:\n%s\n%s", name, *agreeSeed, i, level.History, strings.Join(wrong, "\n"), agreeText(t, k.Spec))
		}
	}
	t.Logf("%d cases judged, %d setups refused; decided: %v; permitted: %v; confirmed bugs: %v", c.judged, c.refused, c.decided, c.permitted, c.confirmed)
	if *agreeCases >= 20 {
		c.enough(t)
	}
}

// agreeCase makes case i. A group of cases shares a database.
func agreeCase(t *testing.T, engine string, i int) *generate.Case {
	t.Helper()
	random := func(use uint64, n int) func(int) int {
		return rand.New(rand.NewPCG(*agreeSeed^use<<32, uint64(n))).IntN
	}
	g, err := generate.New(generate.Dialect(engine), agreeLimits, random(1, i/agreeGroup))
	if err != nil {
		t.Fatal(err)
	}
	db := g.Database()
	g.Draw(random(2, i))
	return g.CaseOn(db)
}

// add counts a case.
func (c *agreeTally) add(d *Judgement) {
	c.judged++
	if !d.Unseen() {
		c.decided[IsolationName]++
	}
	for _, v := range d.Rulings {
		if v.Unknown == "" {
			c.decided[v.Oracle]++
		}
		for _, f := range v.Findings {
			switch f.Kind {
			case oracle.KindPermitted:
				c.permitted[v.Oracle+": "+f.Difference.Cause]++
			case oracle.KindViolation:
				c.confirmed[v.Oracle+": "+f.Difference.Cause]++
			}
		}
	}
}

// enough fails if the oracles decided too little for their agreement to say anything.
func (c *agreeTally) enough(t *testing.T) {
	t.Helper()
	if 4*c.refused > c.judged {
		t.Errorf("%d setups were refused, and %d cases judged", c.refused, c.judged)
	}
	for _, name := range strings.Split(agreeOracles, ",") {
		if 2*c.decided[name] < c.judged {
			t.Errorf("%s decided %d of %d cases", name, c.decided[name], c.judged)
		}
	}
}

// contradictions lists what is wrong with the findings of one case, as the oracles found them.
func contradictions(p *product.Product, d *Judgement) (wrong []string) {
	for _, f := range d.Isolation.Findings {
		if f.Kind != oracle.KindViolation {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: violation without a confirmed cause: %s (%s)", IsolationName, f.Title(), f.Class))
		for _, v := range d.Rulings {
			if v.Oracle == serial.Descriptor.Name && v.Unknown == "" && len(v.Findings) == 0 {
				wrong = append(wrong, "contradiction: "+v.Oracle+" finds a serial order with the same answers")
			}
		}
	}
	for i := range d.Rulings {
		for n := range d.Rulings[i].Findings {
			f := &d.Rulings[i].Findings[n]
			if f.Kind != oracle.KindViolation {
				continue
			}
			bug := p.Cause(product.CauseID(f.Difference.Cause))
			if bug == nil || !bug.Confirmed {
				wrong = append(wrong, fmt.Sprintf("%s: violation without a confirmed cause: %s", d.Rulings[i].Oracle, differs(f)))
			}
			for j := range d.Rulings {
				for m := range d.Rulings[j].Findings {
					g := &d.Rulings[j].Findings[m]
					if j != i && g.Kind == oracle.KindPermitted && sameEvent(f, g) && !settled(p, d.Rulings, i, n, g) {
						wrong = append(wrong, fmt.Sprintf("contradiction: %s: violation: %s\n  %s: permitted: %s", d.Rulings[i].Oracle, differs(f), d.Rulings[j].Oracle, differs(g)))
					}
				}
			}
		}
	}
	return wrong
}

// settled reports whether product's rows hold both causes, one as a bug and one as documented, and reconcile makes one verdict of them.
func settled(p *product.Product, rulings []Ruling, i, n int, permitted *oracle.Finding) bool {
	bug := p.Cause(product.CauseID(rulings[i].Findings[n].Difference.Cause))
	documented := p.Cause(product.CauseID(permitted.Difference.Cause))
	if bug == nil || !bug.Confirmed || documented == nil || documented.Confirmed {
		return false
	}
	after := slices.Clone(rulings)
	for k := range after {
		after[k].Findings = slices.Clone(after[k].Findings)
	}
	reconcile(after)
	return after[i].Findings[n].Kind == oracle.KindPermitted
}

// differs says what a finding is about.
func differs(f *oracle.Finding) string {
	d := f.Difference
	return fmt.Sprintf("%s at %s (%s), cause %q, seen again %d of %d times; expected %s, observed %s; %s",
		f.Title(), place(f), d.SQL, d.Cause, d.Reproduced, d.Attempts, sideOf(d.Expected), sideOf(d.Observed), d.Rule)
}

func sideOf(s oracle.Side) string {
	if s.Text != "" {
		return s.Text
	}
	var rows []string
	for _, r := range s.Rows {
		var row []string
		for _, v := range r {
			if v == nil {
				row = append(row, "NULL")
			} else {
				row = append(row, *v)
			}
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	return fmt.Sprintf("%q", rows)
}

// agreeText is a case as a scenario file.
func agreeText(t *testing.T, spec *scenario.Spec) string {
	t.Helper()
	text, err := spec.Print()
	if err != nil {
		t.Error(err)
	}
	return text
}

// TestContradictions: what TestAgree reports of findings that no server of the test may bring about, and what it accepts.
func TestContradictions(t *testing.T) {
	finding := func(kind oracle.Kind, cause product.CauseID, step string) oracle.Finding {
		return oracle.Finding{Kind: kind, Tables: []string{"t"}, Difference: &oracle.Difference{Cause: string(cause), Step: step}}
	}
	cycle := oracle.Finding{Kind: oracle.KindViolation}
	allowed := oracle.Finding{Kind: oracle.KindAnomaly}
	bug, documented := product.MovedRow, product.NoGapLocks
	for _, test := range []struct {
		name      string
		isolation []oracle.Finding
		rulings   []Ruling
		want      int
	}{
		{"nothing", nil, []Ruling{{Oracle: "wss"}, {Oracle: "serial"}}, 0},
		{"a violation without a cause", nil, []Ruling{{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, "", "d")}}}, 1},
		{"a violation with a documented cause", nil, []Ruling{{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, documented, "d")}}}, 1},
		{"a confirmed bug", nil, []Ruling{{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, bug, "d")}}}, 0},
		{"a bug and a documented cause", nil, []Ruling{
			{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, bug, "d")}},
			{Oracle: "wss", Findings: []oracle.Finding{finding(oracle.KindPermitted, documented, "d")}},
		}, 0},
		{"a bug and a cause that product does not know", nil, []Ruling{
			{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, bug, "d")}},
			{Oracle: "wss", Findings: []oracle.Finding{finding(oracle.KindPermitted, "weather", "d")}},
		}, 1},
		{"a violation without a cause and a documented cause", nil, []Ruling{
			{Oracle: "wss", Findings: []oracle.Finding{finding(oracle.KindPermitted, documented, "")}},
			{Oracle: "txcheck", Findings: []oracle.Finding{finding(oracle.KindViolation, "", "d")}},
		}, 2},
		{"two events", nil, []Ruling{
			{Oracle: "troc", Findings: []oracle.Finding{finding(oracle.KindViolation, bug, "d")}},
			{Oracle: "wss", Findings: []oracle.Finding{finding(oracle.KindPermitted, "weather", "e")}},
		}, 0},
		{"a cycle and a serial order", []oracle.Finding{cycle}, []Ruling{{Oracle: "serial"}}, 2},
		{"a cycle and no serial order", []oracle.Finding{cycle}, []Ruling{{Oracle: "serial", Findings: []oracle.Finding{finding(oracle.KindAnomaly, "", "d")}}}, 1},
		{"a cycle, and serial does not know", []oracle.Finding{cycle}, []Ruling{{Oracle: "serial", Unknown: "more than 4 sessions"}}, 1},
		{"a cycle that the level allows", []oracle.Finding{allowed}, []Ruling{{Oracle: "serial"}}, 0},
	} {
		d := &Judgement{Rulings: test.rulings}
		d.Isolation.Findings = test.isolation
		if got := contradictions(product.Of("mariadb"), d); len(got) != test.want {
			t.Errorf("%s: %d, want %d: %q", test.name, len(got), test.want, got)
		}
	}
}
