package radar_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// enginesVariable names further engines to test on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

// place is a private server with a lab in which cases are executed, and a lab for each stage.
type place struct {
	name   string // as the engine was asked for: "tidb:2023-01"
	d      engine.Descriptor
	server *engine.Server
	labs   *engine.Labs
	opened []*lab.Lab

	described lab.Describe
}

func eachEngine(t *testing.T, test func(t *testing.T, p *place)) {
	for _, name := range append([]string{"postgres", "mariadb"}, strings.Fields(os.Getenv(enginesVariable))...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := openPlace(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			test(t, p)
		})
	}
}

func openPlace(ctx context.Context, name string) (*place, error) {
	p := &place{name: name}
	var err error
	if p.d, err = backends.ByName(name); err != nil {
		return nil, err
	}
	if p.server, err = p.d.Start(ctx, engine.Options{Settings: p.d.LabSettings}); err != nil {
		return nil, err
	}
	if p.labs, err = engine.OpenLabs(ctx, p.d, p.server.Target()); err != nil {
		return nil, errors.Join(err, p.server.Close())
	}
	return p, nil
}

func (p *place) close(ctx context.Context) error {
	return errors.Join(p.closeLabs(), p.labs.Close(ctx), p.server.Close())
}

func (p *place) closeLabs() error {
	var errs []error
	for _, l := range p.opened {
		errs = append(errs, l.Close())
	}
	p.opened = nil
	return errors.Join(errs...)
}

func (p *place) family() bool { return p.d.Protocol != engine.ProtocolPostgres }

func (p *place) level(sql string) product.Level {
	i := slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.SQL == sql })
	return p.d.Levels[i]
}

func (p *place) version() string {
	if _, v, ok := strings.Cut(p.name, ":"); ok {
		return p.server.Version + " " + v
	}
	return p.server.Version
}

// lab opens a lab in a database of its own.
func (p *place) lab(t *testing.T, level product.Level) *lab.Lab {
	t.Helper()
	target, err := p.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(t.Context(), lab.Config{Backend: p.d, Target: target, Side: target, Level: level, Reset: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	p.opened = append(p.opened, l)
	return l
}

func (p *place) describe() lab.Describe {
	if p.described == nil {
		if p.described = lab.Remember(postgres.Describe); p.family() {
			p.described = lab.Remember(mysql.New(mysql.Flavor(p.d.Name)).Describe)
		}
	}
	return p.described
}

func (p *place) define() func(string) statement.Definition {
	if p.family() {
		return mysql.Define
	}
	return postgres.Define
}

// stages are two labs for the oracle, and one in which cases are executed.
type stages struct {
	lab             *lab.Lab
	run, first, raw *lab.Stage
	options         radar.Options
}

func (p *place) stages(t *testing.T, level product.Level) *stages {
	t.Helper()
	s := &stages{lab: p.lab(t, level)}
	s.run = lab.NewStage(s.lab, p.version(), p.describe())
	s.first = lab.NewStage(p.lab(t, level), p.version(), p.describe())
	s.raw = lab.NewStage(p.lab(t, level), p.version(), p.describe())
	s.options = radar.Options{Describe: p.describe(), Define: p.define(), Raw: s.raw}
	return s
}

// execute runs a case and gives its schedule.
func (s *stages) execute(t *testing.T, spec *scenario.Spec) *schedule.Schedule {
	t.Helper()
	r, err := s.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	sch, err := s.run.Schedule(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	return sch
}

func (s *stages) radar(t *testing.T, spec *scenario.Spec) schedule.Verdict {
	t.Helper()
	v, err := radar.Check(t.Context(), s.execute(t, spec), s.first, s.options)
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	return v
}

// TestCases executes the known cases that have raw lines, which the oracle does not look at: it speaks where they say so, and is
// silent elsewhere.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/cases/*.spec")
	if err != nil {
		t.Fatal(err)
	}
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		n := 0
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := scenario.Parse(filepath.Base(file), src)
			if err != nil {
				t.Fatal(err)
			}
			target := scenario.Target{Engine: p.d.Name, Version: p.version(), Level: p.level(p.d.Default).History}
			if !spec.For(spec.Permutations[0], target) {
				continue
			}
			n++
			want := false
			if len(spec.Raw()) > 0 {
				seen, _ := spec.Observe(spec.Permutations[0], target)
				want = seen[0].Holds
			}
			v := s.radar(t, spec)
			found := slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindViolation })
			if found != want || v.Unknown != "" && len(spec.Raw()) > 0 {
				t.Errorf("%s: found %v, want %v; unknown %q\n%s", spec.Name, found, want, v.Unknown, tell(v))
			}
		}
		if n == 0 {
			t.Log("no case is for this engine")
		}
	})
}

// tell prints a verdict.
func tell(v schedule.Verdict) string {
	var b strings.Builder
	for _, f := range v.Findings {
		b.WriteString(tellFinding(f))
	}
	for _, n := range v.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String()
}

func tellFinding(f oracle.Finding) string {
	var b strings.Builder
	d := f.Difference
	b.WriteString(string(f.Kind) + " " + f.Name + " " + d.Table + " " + d.SQL + "\n  " + d.Reason + "\n")
	for name, side := range map[string]oracle.Side{"expected": d.Expected, "observed": d.Observed} {
		b.WriteString("  " + name + ": " + side.Text)
		for _, row := range side.Rows {
			b.WriteString(" (")
			for i, v := range row {
				if i > 0 {
					b.WriteString(", ")
				}
				if v == nil {
					b.WriteString("NULL")
				} else {
					b.WriteString(*v)
				}
			}
			b.WriteString(")")
		}
		b.WriteString("\n")
	}
	b.WriteString("  " + strings.Join(d.Reference, "\n  ") + "\n")
	return b.String()
}
