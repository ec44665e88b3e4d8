package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/oracle"
)

// Scenario makes the scenario that shows a finding of a trace: its transactions in the order of the trace, and a setup that makes the state in
// which they began. The scenario was executed, and showed an anomaly of that name.
func Scenario(ctx context.Context, path string, f oracle.Finding, o Options) (string, error) {
	o.Oracles, o.Order, o.Requests = panel.IsolationName, replay.OrderCommit, slices.ContainsFunc(f.Edges, func(e oracle.Edge) bool { return e.Kind == oracle.EdgeRequest })
	r := &replayer{o: o, path: path, wanted: &f}
	if err := r.execute(ctx); err != nil {
		return "", err
	}
	x := r.report.Explored
	if x == nil {
		return "", fmt.Errorf("%s: its transactions were not executed again: %s", f.ID, r.report.Undecided)
	}
	for _, w := range slices.Concat(x.Anomalies, x.Possible) {
		if w.Unprintable != "" {
			return "", fmt.Errorf("%s cannot be a scenario: %s", f.ID, w.Unprintable)
		}
		if o.Requests || slices.Contains(w.Found, f.Title()) {
			return w.Spec, nil
		}
	}
	why := "executed again, its transactions do not show it"
	if list := slices.Concat(x.Unjudged, x.Unconfirmed); len(list) > 0 {
		why = list[0]
	}
	return "", fmt.Errorf("%s: no scenario shows it: %s", f.ID, why)
}

// taking gives the group of the units that take part in the finding.
func (r *replayer) taking(units []*replay.Unit) ([]*replay.Group, error) {
	if why := r.report.Lacking.undecided(); why != "" && r.o.Snapshot == "" {
		return nil, fmt.Errorf("%s needs the tables as they were before the first statement of %s: add a dump of the database from that time, --snapshot FILE (%s)", r.wanted.ID, r.path, why)
	}
	var part []*replay.Unit
	for i := range r.wanted.Transactions {
		t := &r.wanted.Transactions[i]
		said := make([]replay.Said, 0, len(t.Statements))
		for _, st := range t.Statements {
			said = append(said, replay.Said{SQL: cmp.Or(st.SQL, st.Verb), At: st.At})
		}
		u := replay.Of(units, t.Session, said, r.dialect())
		if u == nil {
			return nil, fmt.Errorf("%s: executed again, %s of session %d did not come to its end", r.wanted.ID, t.Label, t.Session)
		}
		if !slices.Contains(part, u) {
			part = append(part, u)
		}
	}
	if len(part) == 0 {
		return nil, errors.New(r.wanted.ID + " has no transactions that could be executed again")
	}
	return []*replay.Group{replay.Together(part, r.dialect())}, nil
}
