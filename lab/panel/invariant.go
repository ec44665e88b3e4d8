package panel

import (
	"context"
	"fmt"
	"strings"

	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
)

// Alone executes the sessions of a case one after the other, in every order, and gives for each invariant that such an order breaks the names of its sessions:
// that is not the interleaving's fault. untried says why an order said nothing; empty: all did.
func (b *Panel) Alone(ctx context.Context, spec *scenario.Spec) (broken map[int]string, untried string, err error) {
	broken = map[int]string{}
	if len(spec.Sessions) > serial.MaxSessions {
		return broken, fmt.Sprintf("there are more than %d sessions", serial.MaxSessions), nil
	}
	for order := range schedule.Permutations(spec.Sessions) {
		p, names := &scenario.Permutation{}, []string{}
		for _, s := range order {
			names = append(names, s.Name)
			for _, st := range s.Steps {
				p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
			}
		}
		name := strings.Join(names, ", ")
		r, err := b.Again(ctx, spec, p)
		if err != nil {
			return nil, "", err
		}
		if r.Trouble != nil || r.Crashed {
			untried = fmt.Sprintf("the order %s did not come to its end", name)
			continue
		}
		for i, reading := range r.Invariants { // one that cannot be judged here was told of before
			if why, err := reading.Broken(); err == nil && why != "" && broken[i] == "" {
				broken[i] = name
			}
		}
	}
	return broken, untried, nil
}
