package hunt

import (
	"testing"

	"wirecheck/lab/panel"
	"wirecheck/oracle"
)

// TestNamed: a smallest case's bug has the name that another oracle knows. Near misses: two names, a name of what is permitted, and a finding that has its own.
func TestNamed(t *testing.T) {
	finding := func(kind oracle.Kind, cause string) oracle.Finding {
		return oracle.Finding{Kind: kind, Class: oracle.Troc, Source: "report of " + cause, Difference: &oracle.Difference{Cause: cause, Reason: "reason of " + cause}}
	}
	for _, test := range []struct {
		name, own string
		others    []oracle.Finding
		want      string
	}{
		{"one name", "", []oracle.Finding{finding(oracle.KindViolation, "a"), finding(oracle.KindViolation, ""), finding(oracle.KindViolation, "a")}, "a"},
		{"two names", "", []oracle.Finding{finding(oracle.KindViolation, "a"), finding(oracle.KindViolation, "b")}, ""},
		{"permitted", "", []oracle.Finding{finding(oracle.KindPermitted, "a")}, ""},
		{"its own", "c", []oracle.Finding{finding(oracle.KindViolation, "a")}, "c"},
		{"none", "", nil, ""},
	} {
		g := finding(oracle.KindViolation, test.own)
		named(&g, []panel.Ruling{{Oracle: "troc"}, {Oracle: "txcheck"}})
		if g.Difference.Cause != test.own {
			t.Errorf("%s: named without others", test.name)
		}
		r := panel.Ruling{Oracle: "troc"}
		r.Findings = test.others
		named(&g, []panel.Ruling{r})
		if g.Difference.Cause != test.want || test.want == "a" && (g.Source != "report of a" || g.Difference.Reason != "reason of a") {
			t.Errorf("%s: got %q (%s), want %q", test.name, g.Difference.Cause, g.Source, test.want)
		}
	}
}
