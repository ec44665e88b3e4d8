package radar_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"wirecheck/generate"
	"wirecheck/oracle"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
)

// casesVariable is how many random databases are tried on each engine, SeedVariable the first one's seed.
const (
	casesVariable = "WIRECHECK_RADAR_CASES"
	seedVariable  = "WIRECHECK_RADAR_SEED"
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

const queriesEach = 100

// TestQueries holds the oracle to random databases and queries: each difference is a bug of the server, or one of the oracle.
func TestQueries(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		cases, seed := number(t, casesVariable, 12), number(t, seedVariable, 1)
		s := p.stages(t, p.level(p.d.Default))
		queries, notes, novel, permitted := 0, 0, 0, 0
		var checking time.Duration
		filter := radar.Novelty{}
		for n := range cases {
			r := rand.New(rand.NewPCG(uint64(seed+n), 7))
			g, err := generate.New(generate.Dialect(p.d.Name), generate.Limits{Rows: 12, Columns: 4}, r.IntN)
			if err != nil {
				t.Fatal(err)
			}
			db := g.Database()
			sch := &schedule.Schedule{Product: p.d.Name, Version: p.version(), Level: p.level(p.d.Default).History, Sessions: []schedule.Session{{Name: "s1"}}}
			for _, st := range db.Setup {
				sch.Setup = append(sch.Setup, st.SQL)
			}
			if filter.New(radar.Abstract(sch.Setup, s.options)) {
				novel++
			}
			for i := range queriesEach {
				list, err := p.describe()(g.Query(db).SQL)
				if err != nil {
					t.Fatal(err)
				}
				sch.Steps = append(sch.Steps, schedule.Step{Name: fmt.Sprintf("q%d", i), Statement: list[0], Sent: 2*i + 1, Done: 2*i + 2})
			}
			queries += queriesEach
			begun := time.Now()
			v, err := radar.Check(t.Context(), sch, s.first, s.options)
			checking += time.Since(begun)
			if err != nil {
				t.Fatalf("seed %d: %v", seed+n, err)
			}
			if v.Unknown != "" {
				t.Errorf("seed %d: unknown: %s", seed+n, v.Unknown)
			}
			notes += len(v.Notes)
			for _, note := range v.Notes {
				if os.Getenv("WIRECHECK_RADAR_NOTES") != "" {
					t.Log(note)
				}
			}
			for _, f := range v.Findings {
				if f.Kind == oracle.KindPermitted {
					permitted++
					t.Logf("seed %d: %s", seed+n, tellFinding(f))
					continue
				}
				t.Errorf("seed %d: %s", seed+n, tellFinding(f))
				for _, sql := range sch.Setup {
					t.Log(sql)
				}
			}
		}
		t.Logf("%d databases (%d of new metadata), %d queries, %d notes, %d permitted, %.0f queries a second", cases, novel, queries, notes, permitted, float64(queries)/checking.Seconds())
	})
}
