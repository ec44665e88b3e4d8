package troc_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/troc"
)

// expectation is what is said of a case somewhere. Where none is listed nothing is said.
type expectation struct {
	spec            string
	engines, levels string // separated by commas
	want            string
}

var expectations = []expectation{
	{"mysql-104833", "mysql, mariadb", "read uncommitted, read committed", "violation: torn semi-consistent update"},
	{"mariadb-26643", "mysql, mariadb", "read uncommitted, read committed", "violation: torn semi-consistent update"},
	{"mariadb-27992", "mariadb", "read uncommitted, read committed", "violation: row moved behind the scan"},
	{"mariadb-27992", "mysql", "read uncommitted, read committed", "permitted: row moved behind the scan"},
	{"mariadb-26642", "mysql, mariadb, tidb:2025-11, tidb:2023-01", "repeatable read", "violation: an update that changes nothing is not a write"},
	{"tidb-42121", "tidb:2025-11", "read committed, repeatable read", "violation: " + oracle.NameResult},

	{"mariadb-30835", "mariadb", "read uncommitted, read committed", "violation: semi-consistent read passes an inserted row"},
	{"mariadb-30835", "mysql", "read uncommitted, read committed", "permitted: semi-consistent read passes an inserted row"},
	{"mariadb-30835", "postgres, tidb:2025-11, tidb:2023-01", "read uncommitted, read committed", "permitted: statement snapshot"},
	{"hermitage-pmp-write", "postgres", "read committed", "permitted: EvalPlanQual"},
	{"mysql-108528", "mysql, mariadb", "repeatable read", "permitted: current read in a write"},
	{"wc-listing5", "mysql, mariadb", "read committed", "permitted: semi-consistent read"},
	{"wc-listing5", "postgres, tidb:2025-11, tidb:2023-01", "read committed", "permitted: statement snapshot"},
	{"pg-rc-evalplanqual", "mysql, mariadb", "read committed", "permitted: semi-consistent read"},
	{"pg-rc-evalplanqual", "postgres, tidb:2025-11, tidb:2023-01", "read committed", "permitted: statement snapshot"},

	{"mysql-119707", "mysql, mariadb", "serializable", "unknown: table t was not compared to the end: s1c: the server fills in a column of table t"},
}

func expected(spec, engine, level string) string {
	listed := func(list, what string) bool { return slices.Contains(strings.Split(list, ", "), what) }
	for _, e := range expectations {
		if e.spec+".spec" == spec && listed(e.engines, engine) && listed(e.levels, level) {
			return e.want
		}
	}
	return ""
}

// TestCases judges the known cases on each engine, at each level that they are for.
func TestCases(t *testing.T) {
	specs := cases(t)
	eachEngine(t, func(t *testing.T, p *place) {
		n := 0
		for _, level := range p.d.Levels {
			t.Run(level.History, func(t *testing.T) {
				pair := p.at(t, level)
				for _, spec := range specs {
					target := scenario.Target{Engine: p.d.Name, Version: version(p.name), Level: level.History}
					if !spec.For(spec.Permutations[0], target) || len(spec.Raw()) > 0 {
						continue
					}
					n++
					s := pair.execute(t, spec)
					v := pair.check(t, s)
					if got, want := short(v), expected(spec.Name, p.name, level.History); got != want {
						t.Errorf("%s: got %q, want %q\n%s", spec.Name, got, want, account(spec, s, v))
					}
					for _, f := range v.Findings {
						d := f.Difference
						if f.Oracle != troc.Descriptor.Name || f.Class != oracle.Troc || f.ID == "" || f.Source == "" || d.Rule == "" || d.SQL == "" || len(d.Reference) == 0 ||
							(f.Kind == oracle.KindPermitted) != (d.Cause != "" && d.Reason != "" && !f.Promised) && d.Cause == "" {
							t.Errorf("%s: the finding lacks something: %+v, %+v", spec.Name, f, d)
						}
					}
				}
			})
		}
		if n < 20 {
			t.Errorf("%d cases were judged", n)
		}
	})
}
