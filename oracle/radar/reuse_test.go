package radar_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
)

// counting is a stage that notes which queries it is asked.
type counting struct {
	faulty
	asked []string
}

func (c *counting) Execute(ctx context.Context, session int, sql string) (schedule.Step, error) {
	if strings.HasPrefix(sql, "SELECT") {
		c.asked = append(c.asked, sql)
	}
	return c.faulty.Execute(ctx, session, sql)
}

// TestReuse: the answers of a schedule with one session are compared, and a query is asked again where they differ, where it fails its transaction, and where the schedule was
// executed elsewhere. An answer that is wrong in the schedule alone is no finding; one that is wrong each time is.
func TestReuse(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT PRIMARY KEY, b INT);\nINSERT INTO t VALUES (1, 10), (2, 20);\n"
	const low, high, inside, broken = "SELECT a FROM t WHERE b < 15", "SELECT a FROM t WHERE b > 15", "SELECT b FROM t WHERE a = 3", "SELECT nothing FROM t"
	list := table + strings.Join([]string{low, high, broken, "BEGIN", "INSERT INTO t VALUES (3, 30)", inside, broken, inside, "ROLLBACK", high}, ";\n") + ";"
	tests := []struct {
		name      string
		elsewhere bool
		executed  string // whose answer in the schedule loses its rows
		stage     string // whose answer on the stage does
		postgres  []string
		mariadb   []string // what is asked again
		findings  int
	}{
		{"all is well", false, "", "", []string{broken}, nil, 0},
		{"executed elsewhere", true, "", "", []string{low, high, broken, inside, broken, high}, []string{low, high, broken, inside, broken, inside, high}, 0},
		{"wrong in the schedule alone", false, low, "", []string{low, broken}, []string{low}, 0},
		{"wrong each time", false, low, low, []string{low, broken}, []string{low}, 1},
		{"wrong on the stage alone", false, "", low, []string{broken}, nil, 0},
		{"wrong elsewhere", true, "", low, []string{low, high, broken, inside, broken, high}, []string{low, high, broken, inside, broken, inside, high}, 1},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		for i, test := range tests {
			spec, err := lab.Script(fmt.Sprint("reuse", i), list, p.describe())
			if err != nil {
				t.Fatal(err)
			}
			sch := s.execute(t, spec)
			for n := range sch.Steps {
				if st := &sch.Steps[n]; st.Statement.Text == test.executed {
					st.Answer.Rows = nil
				}
			}
			stage := &counting{faulty: faulty{Stage: s.first, spoil: func(sql string, st *schedule.Step) {
				if sql == test.stage {
					st.Answer.Rows = nil
				}
			}}}
			o := s.options
			o.Executed = !test.elsewhere
			v, err := radar.Check(t.Context(), sch, stage, o)
			if err != nil || v.Unknown != "" {
				t.Fatalf("%s: %v, %s", test.name, err, v.Unknown)
			}
			want, compared := test.mariadb, 7
			if !p.family() {
				want, compared = test.postgres, 6
			}
			asked := slices.DeleteFunc(stage.asked, func(sql string) bool { return !slices.Contains([]string{low, high, inside, broken}, sql) })
			if test.findings > 0 { // what the oracle asks of a finding may be the query itself
				asked = slices.Compact(asked)
			}
			if !slices.Equal(asked, want) || len(v.Findings) != test.findings || v.Compared != compared {
				t.Errorf("%s: asked %q, want %q; %d findings, want %d; %d compared, want %d", test.name, asked, want, len(v.Findings), test.findings, v.Compared, compared)
			}
		}
	})
}

// TestReuseOfSeveral: where sessions interleave, an answer of the schedule may be of another state.
func TestReuseOfSeveral(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		spec, err := lab.Script("several", "CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\nSELECT a FROM t;", p.describe())
		if err != nil {
			t.Fatal(err)
		}
		sch := s.execute(t, spec)
		sch.Sessions = append(sch.Sessions, schedule.Session{Name: "s2"})
		stage, o := &counting{faulty: faulty{Stage: s.first}}, s.options
		o.Executed = true
		v, err := radar.Check(t.Context(), sch, stage, o)
		if err != nil || len(v.Findings) != 0 || v.Compared != 1 || !slices.Equal(stage.asked, []string{"SELECT a FROM t"}) || sch.Steps[0].Before != answer.Idle {
			t.Errorf("%v: asked %q, %d compared, %d findings", err, stage.asked, v.Compared, len(v.Findings))
		}
	})
}

// loading is a raw database that notes which tables it is given rows for.
type loading struct {
	schedule.Stage
	tables []string
}

func (l *loading) Load(ctx context.Context, tables []answer.Table) error {
	for _, t := range tables {
		l.tables = append(l.tables, t.Name)
	}
	return l.Stage.Load(ctx, tables)
}

// TestLoadsWhatChanged: behind a write, the raw database is given the rows of the tables that have others now. Near misses: a write that changes no row; a table whose rows it had not
// as they are, since what it was given was written out.
func TestLoadsWhatChanged(t *testing.T) {
	t.Parallel()
	const tables = "CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1), (2);\nCREATE TABLE u (a INT);\nINSERT INTO u VALUES (1);\n"
	tests := []struct {
		name, list string
		setup      func(sql string) string
		want       []string
		findings   int
	}{
		{"one table", tables + "SELECT a FROM t;\nBEGIN;\nUPDATE t SET a = a + 1;\nSELECT a FROM t;\nROLLBACK;\nSELECT a FROM u;", nil, []string{"t", "t"}, 0},
		{"both", tables + "SELECT a FROM t;\nDELETE FROM u;\nSELECT a FROM t;\nDELETE FROM t;\nSELECT a FROM u;", nil, []string{"u", "t"}, 0},
		{"nothing", tables + "SELECT a FROM t;\nUPDATE t SET a = a WHERE a > 7;\nSELECT a FROM t;", nil, nil, 0},
		{"other rows than were written", tables + "SELECT a FROM t WHERE a > 7;\nDELETE FROM u;\nSELECT a FROM t WHERE a > 7;", func(sql string) string { return strings.Replace(sql, "(1), (2)", "(1), (3)", 1) }, []string{"t", "u"}, 1},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		for i, test := range tests {
			spec, err := lab.Script(fmt.Sprint("loads", i), test.list, p.describe())
			if err != nil {
				t.Fatal(err)
			}
			raw, o := &loading{Stage: s.raw}, s.options
			o.Raw = raw
			v, err := radar.Check(t.Context(), s.execute(t, spec), faulty{Stage: s.first, setup: test.setup}, o)
			if err != nil || v.Unknown != "" {
				t.Fatalf("%s: %v, %s", test.name, err, v.Unknown)
			}
			if !slices.Equal(raw.tables, test.want) || len(v.Findings) != test.findings {
				t.Errorf("%s: loaded %q, want %q; %d findings, want %d", test.name, raw.tables, test.want, len(v.Findings), test.findings)
			}
		}
	})
}
