package troc_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/troc"
	"wirecheck/product"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// enginesVariable names further engines to test on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

var onlyEngine = flag.String("engine", "", "test on this engine only")

func engines() []string {
	if *onlyEngine != "" {
		return []string{*onlyEngine}
	}
	return append([]string{"postgres", "mariadb"}, strings.Fields(os.Getenv(enginesVariable))...)
}

// place is a private server.
type place struct {
	d      engine.Descriptor
	server *engine.Server
	labs   *engine.Labs
	name   string
}

// eachEngine runs a test on a private server of each engine.
func eachEngine(t *testing.T, test func(t *testing.T, p *place)) {
	for _, name := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &place{name: name}
			if err := p.open(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(p.labs.Close(context.Background()), p.server.Close()); err != nil {
					t.Error(err)
				}
			}()
			test(t, p)
		})
	}
}

func (p *place) open(ctx context.Context, name string) (err error) {
	if p.d, err = backends.ByName(name); err != nil {
		return err
	}
	if p.server, err = p.d.Start(ctx, engine.Options{Settings: p.d.LabSettings}); err != nil {
		return err
	}
	if p.labs, err = engine.OpenLabs(ctx, p.d, p.server.Target()); err != nil {
		return errors.Join(err, p.server.Close())
	}
	return nil
}

// pair is a lab that executes cases, and the stage beside it.
type pair struct {
	lab   *lab.Lab
	actor *lab.Stage
	stage *lab.Stage
}

func (p *place) at(t *testing.T, level product.Level) *pair {
	t.Helper()
	describe := lab.Describe(postgres.Describe)
	if p.d.Name != "postgres" {
		describe = mysql.New(mysql.Flavor(p.d.Name)).Describe
	}
	var labs []*lab.Lab
	for range 2 {
		target, err := p.labs.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := lab.Open(t.Context(), lab.Config{Backend: p.d, Target: target, Side: target, Level: level, Reset: lab.Quick})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		labs = append(labs, l)
	}
	return &pair{lab: labs[0], actor: lab.NewStage(labs[0], "test", describe), stage: lab.NewStage(labs[1], "test", describe)}
}

// execute executes one permutation.
func (p *pair) execute(t *testing.T, spec *scenario.Spec) *schedule.Schedule {
	t.Helper()
	r, err := p.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	s, err := p.actor.Schedule(spec, r)
	if err != nil {
		t.Fatalf("%s: %v", spec.Name, err)
	}
	return s
}

func (p *pair) check(t *testing.T, s *schedule.Schedule) schedule.Verdict {
	t.Helper()
	v, err := troc.Check(t.Context(), s, p.stage, troc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// short says what a verdict is: the kinds, names and causes of its findings.
func short(v schedule.Verdict) string {
	var list []string
	for _, f := range v.Findings {
		text := string(f.Kind) + ": " + f.Name
		if f.Difference.Cause != "" {
			text = string(f.Kind) + ": " + f.Difference.Cause
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if v.Unknown != "" {
		list = append(list, "unknown: "+v.Unknown)
	}
	return strings.Join(list, "; ")
}

// cases reads the known cases.
func cases(t *testing.T) (list []*scenario.Spec) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/cases/*.spec")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := scenario.Parse(filepath.Base(file), text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, spec)
	}
	return list
}

// version is what stands behind the colon of an engine's name.
func version(name string) string {
	_, v, _ := strings.Cut(name, ":")
	return v
}
