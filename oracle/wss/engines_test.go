package wss_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/wss"
	"wirecheck/product"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// enginesVariable names further engines to test on, as in package backends: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

func engines() []string {
	return append([]string{"postgres", "mariadb"}, strings.Fields(os.Getenv(enginesVariable))...)
}

// site is a server for a test.
type site struct {
	engine  engine.Descriptor
	version string
	labs    *engine.Labs
}

// open starts a private server.
func openSite(t testing.TB, name string) *site {
	t.Helper()
	d, err := backends.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server, err := d.Start(ctx, engine.Options{Settings: d.LabSettings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	labs, err := engine.OpenLabs(t.Context(), d, server.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := labs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &site{engine: d, version: server.Version, labs: labs}
}

func describer(d engine.Descriptor) lab.Describe {
	if d.Protocol == engine.ProtocolPostgres {
		return postgres.Describe
	}
	return mysql.New(mysql.Flavor(d.Name)).Describe
}

// bench executes cases at one level, and judges them.
type bench struct {
	site  *site
	lab   *lab.Lab
	stage *lab.Stage
}

func (s *site) open(t testing.TB, level product.Level) *bench {
	t.Helper()
	target, err := s.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(t.Context(), lab.Config{Backend: s.engine, Target: target, Side: target, Level: level, Reset: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{s, l, lab.NewStage(l, s.version, describer(s.engine))}
}

// run executes a case.
func (b *bench) run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*schedule.Schedule, error) {
	r, err := b.lab.Run(ctx, spec, p, func(bool) {})
	if err != nil {
		return nil, err
	}
	return b.stage.Schedule(spec, r)
}

func (b *bench) check(ctx context.Context, s *schedule.Schedule) (schedule.Verdict, error) {
	return wss.Check(ctx, s, b.stage, wss.Options{})
}

// said is a verdict in one line.
func said(v schedule.Verdict) string {
	if v.Unknown != "" {
		return "unknown: " + v.Unknown
	}
	var words []string
	for _, f := range v.Findings {
		text := fmt.Sprintf("%s %s: %s", f.Kind, f.Class, f.Name)
		if f.Difference.Cause != "" {
			text += " (" + f.Difference.Cause + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

// story tells a schedule with a verdict.
func story(s *schedule.Schedule, v schedule.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s at %s\n", s.Product, s.Version, s.Level)
	for _, sql := range s.Setup {
		fmt.Fprintf(&b, "  setup %s\n", sql)
	}
	for _, st := range s.Steps {
		fmt.Fprintf(&b, "  %d-%d %s: %s", st.Sent, st.Done, s.Sessions[st.Session].Name, st.Statement.Text)
		if st.Waited {
			fmt.Fprintf(&b, "  waited for %v", st.For)
		}
		if st.Failed() {
			fmt.Fprintf(&b, "  %s: %v", st.Reason, st.Answer.Err)
		}
		b.WriteByte('\n')
	}
	for _, t := range s.Final {
		fmt.Fprintf(&b, "  final %s: %s\n", t.Name, rowsText(t.Rows))
	}
	fmt.Fprintf(&b, "  notes %v\n  verdict %s\n", v.Notes, said(v))
	for _, f := range v.Findings {
		d := f.Difference
		fmt.Fprintf(&b, "  expected %s %s, observed %s %s; reason %s\n", d.Expected.Text, sideText(d.Expected.Rows), d.Observed.Text, sideText(d.Observed.Rows), d.Reason)
	}
	return b.String()
}

func rowsText(rows [][]answer.Value) string {
	var out []string
	for _, r := range rows {
		var f []string
		for _, v := range r {
			if v == nil {
				f = append(f, "NULL")
			} else {
				f = append(f, string(v))
			}
		}
		out = append(out, strings.Join(f, "|"))
	}
	return strings.Join(out, ", ")
}

func sideText(rows [][]*string) string {
	var out []string
	for _, r := range rows {
		var f []string
		for _, v := range r {
			if v == nil {
				f = append(f, "NULL")
			} else {
				f = append(f, *v)
			}
		}
		out = append(out, strings.Join(f, "|"))
	}
	return strings.Join(out, ", ")
}

// TestCases executes the known cases at the levels that they are for.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/cases/*.spec")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, name := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, name)
			for _, level := range s.engine.Levels {
				b := s.open(t, level)
				for _, file := range files {
					src, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					spec, err := scenario.Parse(file, src)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Contains(spec.Engines(), s.engine.Name) || len(spec.Levels()) > 0 && !slices.Contains(spec.Levels(), level.History) {
						continue
					}
					got, err := b.run(t.Context(), spec, spec.Permutations[0])
					if err != nil {
						t.Fatalf("%s: %v", file, err)
					}
					v, err := b.check(t.Context(), got)
					if err != nil {
						t.Fatal(errors.Join(err))
					}
					name := strings.TrimSuffix(filepath.Base(file), ".spec")
					t.Logf("%-20s %-18s %s", name, level.History, said(v))
					want := judgedAs[name][s.engine.Name+" "+level.History]
					if relaxed := level.History == rc || level.History == ru; relaxed && want == "" {
						want = judgedAs[name][s.engine.Name]
					}
					if said := brief(v); said != want {
						t.Errorf("%s at %s: got %q, want %q\n%s", name, level.History, said, want, story(got, v))
					}
				}
			}
		})
	}
}

// judgedAs is what the oracle says of the known cases; of all else nothing. A product's name alone stands for READ COMMITTED and below.
var judgedAs = map[string]map[string]string{
	"mysql-104833":  {"mariadb": "violation " + string(product.TornUpdate), "mysql": "violation " + string(product.TornUpdate)},
	"mariadb-26643": {"mariadb": "violation " + string(product.TornUpdate), "mysql": "violation " + string(product.TornUpdate)},
	"mariadb-27992": {"mariadb": "violation " + string(product.MovedRow), "mysql": "permitted " + string(product.MovedRow)},
	"mariadb-30835": {
		"mariadb": "violation " + string(product.PassedInsert), "mysql": "permitted " + string(product.PassedInsert), "postgres": "permitted " + string(product.StatementSnapshot),
		"tidb": "permitted " + string(product.SemiConsistent),
	},
	"pg-rc-evalplanqual": {
		"postgres": "permitted " + string(product.StatementSnapshot), "postgres repeatable read": "permitted " + string(product.OlderSnapshot),
		"mariadb": "permitted " + string(product.SemiConsistent), "mysql": "permitted " + string(product.SemiConsistent), "tidb": "permitted " + string(product.SemiConsistent),
		"tidb repeatable read": "permitted " + string(product.SemiConsistent),
	},
	"wc-listing5": {
		"postgres": "permitted " + string(product.StatementSnapshot), "mariadb": "permitted " + string(product.SemiConsistent),
		"mysql": "permitted " + string(product.SemiConsistent), "tidb": "permitted " + string(product.SemiConsistent),
	},
	"wc-listing6": {
		"postgres": "permitted " + string(product.NoGapLocks), "postgres repeatable read": "permitted " + string(product.OlderSnapshot),
		"mariadb": "permitted " + string(product.NoGapLocks), "mysql": "permitted " + string(product.NoGapLocks), "tidb": "permitted " + string(product.NoGapLocks),
		"tidb repeatable read": "permitted " + string(product.NoGapLocks),
	},
	"mysql-119707":        {"mariadb serializable": "permitted " + string(product.Counter), "mysql serializable": "permitted " + string(product.Counter)},
	"hermitage-pmp-write": {"postgres": "permitted " + string(product.EvalPlanQual)},
	"isorel-fig1":         {"postgres repeatable read": "permitted " + string(product.OlderSnapshot), "postgres serializable": "permitted " + string(product.OlderSnapshot)},
	"mysql-108528":        {"postgres repeatable read": "permitted " + string(product.OlderSnapshot), "tidb repeatable read": "permitted " + string(product.NonlockingRead)},
	"tidb-42121":          {"tidb": "violation", "tidb repeatable read": "violation"},
	"tidb-42486":          {"tidb repeatable read": "violation " + string(product.EarlySnapshot)},
}
