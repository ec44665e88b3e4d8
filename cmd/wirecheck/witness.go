package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"wirecheck/backends"
	"wirecheck/lab/scenario"
)

// witness is a scenario that holds one permutation of another one and says where and by whom it is judged: what shows a finding
// with one command.
func witness(spec *scenario.Spec, p *scenario.Permutation, t scenario.Target, oracles []string, seed uint64) *scenario.Spec {
	w := &scenario.Spec{Name: spec.Name, Header: slices.Clone(spec.Header), Setup: spec.Setup, Teardown: spec.Teardown}
	add := func(key, value string) {
		w.Directives = append(w.Directives, scenario.Directive{Key: key, Value: value})
	}
	add("engine", t.Engine)
	add("level", t.Level)
	add("oracle", strings.Join(oracles, ", "))
	if seed != 0 {
		add("seed", strconv.FormatUint(seed, 10))
	}
	for _, sql := range spec.Finals() {
		add("final", sql)
	}
	steps := map[*scenario.Step]*scenario.Step{}
	for n, session := range spec.Sessions {
		s := &scenario.Session{Name: session.Name, Setup: session.Setup, Teardown: session.Teardown}
		for _, st := range session.Steps {
			if !slices.ContainsFunc(p.Steps, func(ps scenario.PermutationStep) bool { return ps.Step == st }) {
				continue
			}
			steps[st] = &scenario.Step{Name: st.Name, SQL: st.SQL, Session: n, Index: len(s.Steps)}
			s.Steps = append(s.Steps, steps[st])
		}
		w.Sessions = append(w.Sessions, s)
	}
	order := &scenario.Permutation{}
	for _, ps := range p.Steps {
		markers := slices.Clone(ps.Markers)
		for i := range markers {
			if st := markers[i].Step; st != nil {
				markers[i].Step = steps[st]
			}
		}
		order.Steps = append(order.Steps, scenario.PermutationStep{Step: steps[ps.Step], Markers: markers})
	}
	w.Permutations = []*scenario.Permutation{order}
	return w
}

// keep writes the scenario that shows what was found in a permutation, and tells the command.
func (r *runner) keep(spec *scenario.Spec, p *scenario.Permutation, s *backends.Instance, report *caseReport) error {
	if len(report.Findings) == 0 {
		return nil
	}
	var oracles []string
	for i := range report.Findings {
		if name := report.Findings[i].Oracle; !slices.Contains(oracles, name) {
			oracles = append(oracles, name)
		}
	}
	w := witness(spec, p, scenario.Target{Engine: s.Engine.Name, Level: report.Level}, oracles, r.c.seed)
	text, err := w.Print()
	if err != nil {
		r.c.log.Warn().Err(err).Msg("the scenario that shows the finding cannot be written as a file")
		return nil
	}
	report.Case = text
	if r.f.out == "" {
		return nil
	}
	if err := os.MkdirAll(r.f.out, 0o700); err != nil {
		return fmt.Errorf("keep what was found: %w", err)
	}
	base := strings.TrimSuffix(filepath.Base(spec.Name), ".spec")
	name := fmt.Sprintf("%s-%s-%s-%d.spec", base, s.Engine.Name, strings.ReplaceAll(report.Level, " ", "-"), report.N)
	path := filepath.Join(r.f.out, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return errors.Join(errors.New("keep what was found"), err)
	}
	report.Kept = path
	return nil
}
