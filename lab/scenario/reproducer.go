package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"wirecheck/history/prose"
)

// Reproducer makes a scenario that shows a finding with one command: it holds one permutation of the scenario, and says where to execute
// it and which oracles judge it.
func (s *Spec) Reproducer(p *Permutation, t Target, oracles []string, seed uint64) *Spec {
	w := &Spec{Name: s.Name, Header: slices.Clone(s.Header), Setup: s.Setup, Teardown: s.Teardown}
	add := func(key, value string) {
		w.Directives = append(w.Directives, Directive{Key: key, Value: value})
	}
	add("engine", t.Engine)
	add("level", t.Level)
	add("oracle", strings.Join(oracles, ", "))
	if seed != 0 {
		add("seed", strconv.FormatUint(seed, 10))
	}
	for _, sql := range s.Finals() {
		add("final", sql)
	}
	steps := map[*Step]*Step{}
	for n, session := range s.Sessions {
		kept := &Session{Name: session.Name, Setup: session.Setup, Teardown: session.Teardown}
		for _, st := range session.Steps {
			if !slices.ContainsFunc(p.Steps, func(ps PermutationStep) bool { return ps.Step == st }) {
				continue
			}
			steps[st] = &Step{Name: st.Name, SQL: st.SQL, Session: n, Index: len(kept.Steps)}
			kept.Steps = append(kept.Steps, steps[st])
		}
		w.Sessions = append(w.Sessions, kept)
	}
	order := &Permutation{}
	for _, ps := range p.Steps {
		markers := slices.Clone(ps.Markers)
		for i := range markers {
			if st := markers[i].Step; st != nil {
				markers[i].Step = steps[st]
			}
		}
		order.Steps = append(order.Steps, PermutationStep{Step: steps[ps.Step], Markers: markers})
	}
	w.Permutations = []*Permutation{order}
	return w
}

// Size says how large the scenario with its first permutation is.
func (s *Spec) Size() string {
	sessions := map[int]bool{}
	for _, ps := range s.Permutations[0].Steps {
		sessions[ps.Step.Session] = true
	}
	return fmt.Sprintf("%s, %s, %d in the setup", prose.Count(len(sessions), "session"), prose.Count(len(s.Permutations[0].Steps), "statement"), len(s.Setup))
}
