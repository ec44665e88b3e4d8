package panel

import (
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// TestCompareVerdict: what is said must be stated, and what is stated must be said by oracles that judged.
func TestCompareVerdict(t *testing.T) {
	gaps := oracle.Finding{Kind: oracle.KindPermitted, Class: oracle.WSSTx, Name: oracle.NameFinalState, Difference: &oracle.Difference{Cause: "missing gap locks"}}
	wrong := oracle.Finding{Kind: oracle.KindViolation, Class: oracle.Troc, Name: oracle.NameResult, Difference: &oracle.Difference{}}
	lost := oracle.Finding{Kind: oracle.KindAnomaly, Class: anomaly.GSingle, Name: anomaly.LostUpdate}
	seen, blind := isolation.Coverage{Exact: 1}, isolation.Coverage{Opaque: 1}
	d := &Judgement{Judged: true, Isolation: live.Result{Findings: []oracle.Finding{lost}, Coverage: seen}, Rulings: []Ruling{
		{Oracle: "wss", Findings: []oracle.Finding{gaps, gaps}}, {Oracle: "troc", Findings: []oracle.Finding{wrong}}, {Oracle: "txcheck", Unknown: "a trigger: t"},
	}}
	all := "isolation anomaly lost update; wss permitted missing gap locks; troc violation different result; txcheck unknown a trigger"
	for _, test := range []struct{ stated, want string }{
		{all, ""},
		{"isolation anomaly; wss permitted; troc violation; txcheck unknown", ""},
		{all + "; serial anomaly", ""}, // it did not judge
		{all + "; troc unknown", "not said: troc unknown"},
		{strings.Replace(all, "missing gap locks", "missing gap", 1), ""},
		{strings.Replace(all, "missing gap locks", "missing gap lock", 1), "not stated: wss permitted missing gap locks|not said: wss permitted missing gap lock"},
		{strings.Replace(all, "wss permitted missing gap locks; ", "", 1), "not stated: wss permitted missing gap locks"},
		{strings.Replace(all, "troc violation", "troc permitted", 1), "not stated: troc violation different result|not said: troc permitted different result"},
		{strings.Replace(all, "a trigger", "a view", 1), "not stated: txcheck unknown a trigger: t|not said: txcheck unknown a view"},
	} {
		if got := strings.Join(d.compareVerdict(strings.Split(test.stated, "; ")), "|"); got != test.want {
			t.Errorf("%s: %q, want %q", test.stated, got, test.want)
		}
	}
	quiet := &Judgement{Judged: true, Isolation: live.Result{Coverage: seen}, Rulings: []Ruling{{Oracle: "wss"}}}
	if wrong := quiet.compareVerdict(nil); len(wrong) > 0 {
		t.Errorf("nothing is said and stated: %q", wrong)
	}
	quiet.Isolation.Coverage, quiet.Rulings[0].Unknown = blind, "it does not know"
	if wrong := quiet.compareVerdict(nil); len(wrong) != 2 {
		t.Errorf("two oracles cannot decide any more: %q", wrong)
	}
}
