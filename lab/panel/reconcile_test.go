package panel

import (
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/lab"
	"wirecheck/oracle"
	"wirecheck/product"
)

// TestReconcile: a documented cause beside a confirmed bug for one event leaves one verdict. Other findings stay as they are.
func TestReconcile(t *testing.T) {
	// "permitted gaps d t": kind, cause ("-": none), step ("-": the tables at the end), table
	parse := func(text string) Ruling {
		r := Ruling{}
		name, list, _ := strings.Cut(text, ": ")
		r.Oracle = name
		for _, one := range strings.Split(list, ", ") {
			w := strings.Fields(strings.ReplaceAll(one, "-", "\x00"))
			for i := range w {
				w[i] = strings.Trim(w[i], "\x00")
			}
			d := &oracle.Difference{Cause: w[1], Step: w[2]}
			if w[2] == "" {
				d.Table = w[3]
			}
			r.Findings = append(r.Findings, oracle.Finding{Kind: oracle.Kind(w[0]), Promised: w[0] == "violation", Tables: []string{w[3]}, Difference: d})
		}
		return r
	}
	for _, test := range []struct{ name, a, b, want string }{ // the kinds of a's findings, and how many notes it has
		{"one step", "troc: violation moved d t", "wss: permitted gaps d t", "permitted 1"},
		{"the tables at the end of one", "troc: violation moved d t", "wss: permitted gaps - t", "permitted 1"},
		{"the tables at the end of the other", "wss: violation moved - t", "troc: permitted gaps d t", "permitted 1"},
		{"another step", "troc: violation moved d t", "txcheck: permitted gaps e t", "violation 0"},
		{"another table", "troc: violation moved d t", "wss: permitted gaps - u", "violation 0"},
		{"nobody has explained it", "troc: violation - d t", "wss: permitted gaps d t", "violation 0"},
		{"both call it a bug", "troc: violation moved d t", "wss: violation moved - t", "violation 0"},
		{"the other one calls it a violation, too", "troc: violation moved d t", "wss: permitted gaps d t, violation - - t", "violation 0"},
		{"the other one names no cause", "troc: violation moved d t", "wss: permitted - d t", "violation 0"},
		{"two events", "troc: violation moved d t, violation torn e u", "wss: permitted gaps - t", "permitted violation 1"},
	} {
		rulings := []Ruling{parse(test.a), parse(test.b)}
		reconcile(rulings)
		var got []string
		for _, f := range rulings[0].Findings {
			if got = append(got, string(f.Kind)); f.Promised != (f.Kind == oracle.KindViolation) {
				t.Errorf("%s: %s, promised: %v", test.name, f.Kind, f.Promised)
			}
		}
		if text := strings.Join(got, " ") + " " + string(rune('0'+len(rulings[0].Notes))); text != test.want {
			t.Errorf("%s: %s, want %s (%q)", test.name, text, test.want, rulings[0].Notes)
		}
		other := parse(test.b)
		for i, f := range rulings[1].Findings {
			if f.Kind != other.Findings[i].Kind {
				t.Errorf("%s: the other oracle's finding is %s now", test.name, f.Kind)
			}
		}
	}
	flaky := []Ruling{parse("troc: violation moved d t"), parse("wss: permitted gaps d t")}
	flaky[1].Findings[0].Difference.Flaky = true
	if reconcile(flaky); flaky[0].Findings[0].Kind != oracle.KindViolation {
		t.Error("what is not there each time explains nothing")
	}
}

// TestShare: a step's wrong answer has the cause that any oracle names of it. Near misses: another step, another kind of difference, the tables at the end, and
// a cause of what the vendor documents.
func TestShare(t *testing.T) {
	finding := func(kind oracle.Kind, name, cause, step string) oracle.Finding {
		return oracle.Finding{Kind: kind, Name: name, Class: oracle.Troc, Tables: []string{"t"}, Difference: &oracle.Difference{Cause: cause, Step: step}}
	}
	known := finding(oracle.KindViolation, oracle.NameResult, "moved", "d")
	for _, test := range []struct {
		f    oracle.Finding
		want string
	}{
		{finding(oracle.KindViolation, oracle.NameResult, "", "d"), "moved"},
		{finding(oracle.KindViolation, oracle.NameResult, "gaps", "d"), "gaps"},
		{finding(oracle.KindViolation, oracle.NameResult, "", "e"), ""},
		{finding(oracle.KindViolation, oracle.NameError, "", "d"), ""},
		{finding(oracle.KindViolation, oracle.NameFinalState, "", ""), ""},
		{finding(oracle.KindPermitted, oracle.NameResult, "", "d"), ""},
	} {
		other := known
		other.Difference = &oracle.Difference{Cause: "moved", Step: "d"}
		rulings := []Ruling{{Oracle: "txcheck", Findings: []oracle.Finding{test.f}}, {Oracle: "troc", Findings: []oracle.Finding{other}}}
		reconcile(rulings)
		if got := rulings[0].Findings[0].Difference.Cause; got != test.want {
			t.Errorf("%s of %q, step %q: the cause is %q, want %q", test.f.Kind, test.f.Name, test.f.Difference.Step, got, test.want)
		}
	}
	permitted := finding(oracle.KindPermitted, oracle.NameResult, "documented", "d")
	rulings := []Ruling{{Oracle: "txcheck", Findings: []oracle.Finding{finding(oracle.KindViolation, oracle.NameResult, "", "d")}}, {Oracle: "troc", Findings: []oracle.Finding{permitted}}}
	if reconcile(rulings); rulings[0].Findings[0].Difference.Cause != "" {
		t.Error("what one oracle permits became the cause of another one's violation")
	}
}

// TestBehind: troc names the bug behind a cycle of the isolation oracle, and what the cycle is made of is told without the names of a run. Near miss: at REPEATABLE READ
// the same cycle is no bug.
func TestBehind(t *testing.T) {
	s, err := backends.Open(t.Context(), "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	selection, err := Select("isolation,troc")
	if err != nil {
		t.Fatal(err)
	}
	spec := readSpecs(t, "../../testdata/corpus/snapshot-secondary-index.spec")[0]
	for _, level := range s.Engine.Levels {
		want, ok := map[string]string{product.Snapshot: string(product.DeletedRow), product.RepeatableRead: ""}[level.History]
		if !ok {
			continue
		}
		b, err := Open(t.Context(), s, lab.Config{Level: level}, selection, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Run(t.Context(), spec, spec.Permutations[0])
		if err != nil || len(d.Isolation.Findings) != 1 {
			t.Fatalf("%s: %d findings of the isolation oracle, error %v", level.SQL, len(d.Isolation.Findings), err)
		}
		f, got := &d.Isolation.Findings[0], ""
		if g := d.Behind(f); g != nil {
			got = g.Difference.Cause
		}
		if got != want {
			t.Errorf("%s: the bug behind it is %q, want %q", level.SQL, got, want)
		}
		text := strings.Join(d.Dependencies(spec, f), "\n")
		if !strings.Contains(text, "s1 in ") || !strings.Contains(text, "s2 in w") || strings.Contains(text, "wirecheck") {
			t.Errorf("%s: the dependencies are told as\n%s", level.SQL, text)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
