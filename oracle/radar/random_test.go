package radar_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/lab/generate"
	"wirecheck/oracle"
	"wirecheck/oracle/dqe"
	"wirecheck/oracle/norec"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/tlp"
)

// casesVariable is how many random databases are tried on each engine, seedVariable the first one's seed.
const (
	casesVariable = "WIRECHECK_RADAR_CASES"
	seedVariable  = "WIRECHECK_RADAR_SEED"
	// queriesVariable is how many queries each database gets.
	queriesVariable = "WIRECHECK_RADAR_QUERIES"
)

func number(t *testing.T, variable string, standard int) int {
	v := os.Getenv(variable)
	if v == "" {
		return standard
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// mixed are features by which MySQL and TiDB show bugs (docs/lab/hunts.md).
var mixed = []string{"mixed-types", "cast-types", "bit-operator", "unary-minus"}

// TestQueries holds the oracle to random databases and queries: each difference is a bug of the server, or one of the oracle.
func TestQueries(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, p *place) {
		cases, seed, each := number(t, casesVariable, 4), number(t, seedVariable, 1), number(t, queriesVariable, 100)
		s := p.stages(t, p.level(p.d.Default))
		queries := 0
		tallies := map[string]*counts{}
		novel := map[string]bool{} // abstract metadata
		for n := range cases {
			r := rand.New(rand.NewPCG(uint64(seed+n), 7))
			g, err := generate.New(generate.Dialect(p.d.Name), generate.Limits{Rows: 12, Columns: 4, Exclude: mixed}, r.IntN)
			if err != nil {
				t.Fatal(err)
			}
			db := g.Database()
			sch := &schedule.Schedule{Product: p.d.Name, Version: p.version(), Level: p.level(p.d.Default).History, Sessions: []schedule.Session{{Name: "s1"}}}
			for _, st := range db.Setup {
				sch.Setup = append(sch.Setup, st.SQL)
			}
			novel[radar.Abstract(sch.Setup, s.options)] = true
			for i := range each {
				list, err := p.describe()(g.Query(db).SQL)
				if err != nil {
					t.Fatal(err)
				}
				sch.Steps = append(sch.Steps, schedule.Step{Name: fmt.Sprintf("q%d", i), Statement: list[0], Sent: 2*i + 1, Done: 2*i + 2})
			}
			queries += each
			for _, o := range s.oracles() {
				tally := tallies[o.name]
				if tally == nil {
					tally = &counts{}
					tallies[o.name] = tally
				}
				begun := time.Now()
				v, err := o.check(t.Context(), sch)
				tally.took += time.Since(begun)
				if err != nil {
					t.Fatalf("seed %d: %v", seed+n, err)
				}
				tally.judge(t, seed+n, o.name, sch, v)
			}
		}
		t.Logf("%d databases (%d of new metadata), %d queries", cases, len(novel), queries)
		for _, o := range s.oracles() {
			tally := tallies[o.name]
			t.Logf("%s: %d notes, %d permitted, %d unknown, %d known bugs, %.0f queries a second", o.name, tally.notes, tally.permitted, tally.unknown, tally.known, float64(queries)/tally.took.Seconds())
		}
	})
}

// referential are errors of foreign keys, and MySQL's refusal to change a table that a subquery reads.
var referential = regexp.MustCompile(`error (23503|1451|1093):`)

// counts is what one oracle said of all cases.
type counts struct {
	notes, permitted, unknown, known int
	took                             time.Duration
}

// judge counts a verdict; a finding that is not permitted fails the test.
func (c *counts) judge(t *testing.T, seed int, name string, s *schedule.Schedule, v schedule.Verdict) {
	t.Helper()
	show := os.Getenv("WIRECHECK_RADAR_NOTES") != ""
	if v.Unknown != "" {
		c.unknown++
		if !strings.Contains(v.Unknown, "trigger") { // which DQE says so of
			t.Errorf("seed %d: %s: unknown: %s", seed, name, v.Unknown)
		}
	}
	c.notes += len(v.Notes)
	for _, note := range v.Notes {
		if show || strings.Contains(note, "differ") || strings.Contains(note, "error") && !referential.MatchString(note) {
			t.Logf("seed %d: %s: note: %s", seed, name, note)
		}
	}
	for _, f := range v.Findings {
		if f.Kind == oracle.KindPermitted {
			c.permitted++
			t.Logf("seed %d: %s: %s", seed, name, tellFinding(f))
			continue
		}
		if why := known(s.Product, f.Difference.SQL); why != "" {
			c.known++
			t.Logf("seed %d: %s: %s: %s", seed, name, why, f.Difference.SQL)
			continue
		}
		t.Errorf("seed %d: %s: %s", seed, name, tellFinding(f))
		for _, sql := range s.Setup {
			t.Log(sql)
		}
	}
}

// bugs are wrong answers that servers are known to give, found by these tests and shown by hand (docs/explain/radar.md).
var bugs = []struct {
	product string
	query   *regexp.Regexp
	why     string
}{
	{"mariadb", regexp.MustCompile(`\(\w[\w.]*, \w[\w.]*\) (=|<>|<=>|IN|NOT IN) \(`), "MariaDB: IS NULL of a comparison of rows is false although it is NULL"},
	{"mariadb", regexp.MustCompile(` (ALL|ANY) \(SELECT`), "MariaDB: NOT of a comparison with ALL or ANY"},
	{"mariadb", regexp.MustCompile(` IN \(SELECT`), "MariaDB: IN with an index on a column of another type rounds what is looked for"},
}

func known(product, query string) string {
	for _, b := range bugs {
		if b.product == product && b.query.MatchString(query) {
			return b.why
		}
	}
	return ""
}

// judge is one of the four oracles.
type judge struct {
	name  string
	check func(context.Context, *schedule.Schedule) (schedule.Verdict, error)
}

func (s *stages) oracles() []judge {
	return []judge{
		{"radar", func(ctx context.Context, sch *schedule.Schedule) (schedule.Verdict, error) {
			return radar.Check(ctx, sch, s.first, s.options)
		}},
		{"tlp", func(ctx context.Context, sch *schedule.Schedule) (schedule.Verdict, error) {
			return tlp.Check(ctx, sch, s.first)
		}},
		{"norec", func(ctx context.Context, sch *schedule.Schedule) (schedule.Verdict, error) {
			return norec.Check(ctx, sch, s.first)
		}},
		{"dqe", func(ctx context.Context, sch *schedule.Schedule) (schedule.Verdict, error) {
			return dqe.Check(ctx, sch, s.first, dqe.Options{Describe: s.options.Describe, Define: s.options.Define})
		}},
	}
}

// TestTransactions holds the oracles to random cases of several sessions at every level, so also to queries within transactions.
func TestTransactions(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, p *place) {
		cases, seed := number(t, casesVariable, 3), number(t, seedVariable, 1)
		tallies := map[string]*counts{}
		inside := 0
		for _, level := range p.d.Levels {
			s := p.stages(t, level)
			for n := range cases {
				r := rand.New(rand.NewPCG(uint64(seed+n), 11))
				g, err := generate.New(generate.Dialect(p.d.Name), generate.Limits{Transactions: 3, Exclude: mixed}, r.IntN)
				if err != nil {
					t.Fatal(err)
				}
				sch := s.execute(t, g.Case().Spec)
				wrote := make([]bool, len(sch.Sessions))
				for i := range sch.Steps {
					st := &sch.Steps[i]
					wrote[st.Session] = st.After == answer.Open && (wrote[st.Session] || st.Statement.Insert != nil || st.Statement.Verb == "update" || st.Statement.Verb == "delete")
					if st.Statement.Verb == "select" && st.Before == answer.Open && wrote[st.Session] {
						inside++
					}
				}
				for _, o := range s.oracles() {
					if tallies[o.name] == nil {
						tallies[o.name] = &counts{}
					}
					begun := time.Now()
					v, err := o.check(t.Context(), sch)
					tallies[o.name].took += time.Since(begun)
					if err != nil {
						t.Fatalf("seed %d at %s: %s: %v", seed+n, level.History, o.name, err)
					}
					tallies[o.name].judge(t, seed+n, o.name, sch, v)
				}
			}
			if err := p.closeLabs(); err != nil {
				t.Error(err)
			}
		}
		if inside == 0 {
			t.Error("no query came after its transaction's own writes")
		}
		for name, tally := range tallies {
			t.Logf("%s: %d cases at each of %d levels (%d queries after own writes), %d notes, %d permitted, %d unknown, %d known bugs, %.0f cases a second", name, cases, len(p.d.Levels), inside,
				tally.notes, tally.permitted, tally.unknown, tally.known, float64(cases*len(p.d.Levels))/tally.took.Seconds())
		}
	})
}
