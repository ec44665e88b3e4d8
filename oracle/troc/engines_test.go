package troc_test

import (
	"encoding/json"
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/scenario"
)

// TestCases judges the known cases on each engine, at each level that they are for.
func TestCases(t *testing.T) {
	specs := cases(t)
	eachEngine(t, func(t *testing.T, p *place) {
		for _, level := range p.d.Levels {
			pair := p.at(t, level)
			for _, spec := range specs {
				target := scenario.Target{Engine: p.d.Name, Version: version(p.name), Level: level.History}
				if !spec.For(spec.Permutations[0], target) || len(spec.Raw()) > 0 {
					continue
				}
				s := pair.execute(t, spec)
				v := pair.check(t, s)
				t.Logf("%-22s %-18s %s", spec.Name, level.History, short(v))
				show(t, v)
			}
		}
	})
}

func show(t *testing.T, v schedule.Verdict) {
	t.Helper()
	for _, f := range v.Findings {
		if f.Kind == oracle.KindViolation {
			b, err := json.MarshalIndent(f.Difference, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", b)
		}
	}
}
