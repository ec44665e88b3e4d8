package panel

import (
	"fmt"
	"slices"

	"wirecheck/oracle"
)

// reconcile gives one event one verdict. Where one oracle explains a violation of a step by a confirmed bug, and another one cannot explain it, that bug is the cause for both.
// Where one oracle names a confirmed bug, and another one explains the same event by what the vendor documents, no bug is proven: the finding is permitted, and a note names
// both causes. A violation without a cause stays: nobody has explained it. Neither does an oracle explain an event that it calls a violation itself.
func reconcile(rulings []Ruling) {
	share(rulings)
	documented := make([]map[*oracle.Finding]string, len(rulings)) // before anything is changed
	for i := range rulings {
		documented[i] = map[*oracle.Finding]string{}
		for k := range rulings[i].Findings {
			f := &rulings[i].Findings[k]
			if f.Kind != oracle.KindViolation || f.Difference == nil || f.Difference.Cause == "" {
				continue
			}
			for j := range rulings {
				if g := rulings[j].explains(f); j != i && g != nil {
					documented[i][f] = fmt.Sprintf("%s: %s explains it by what the vendor documents (%s; %s), so that %q, a confirmed bug, is not proven",
						place(f), rulings[j].Oracle, g.Difference.Cause, g.Source, f.Difference.Cause)
					break
				}
			}
		}
	}
	for i := range rulings {
		for k := range rulings[i].Findings {
			f := &rulings[i].Findings[k]
			if note := documented[i][f]; note != "" {
				f.Kind, f.Promised = oracle.KindPermitted, false
				rulings[i].Notes = append(rulings[i].Notes, note)
			}
		}
	}
}

// share gives violations of a step without a cause that which another oracle names of the same answer.
func share(rulings []Ruling) {
	each := func(do func(d *oracle.Difference, f *oracle.Finding)) {
		for i := range rulings {
			for k := range rulings[i].Findings {
				if f := &rulings[i].Findings[k]; f.Kind == oracle.KindViolation && f.Difference != nil && f.Difference.Step != "" && !f.Difference.Flaky {
					do(f.Difference, f)
				}
			}
		}
	}
	type event struct{ step, name string }
	causes := map[event]*oracle.Finding{}
	each(func(d *oracle.Difference, f *oracle.Finding) {
		if at := (event{d.Step, f.Name}); d.Cause != "" && causes[at] == nil {
			causes[at] = f
		}
	})
	each(func(d *oracle.Difference, f *oracle.Finding) {
		if g := causes[event{d.Step, f.Name}]; d.Cause == "" && g != nil {
			d.Cause, d.Reason, f.Source = g.Difference.Cause, g.Difference.Reason, g.Source
			f.ID = f.Fingerprint()
		}
	})
}

// explains finds what an oracle permits of an event; nil if it permits nothing of it, or calls it a violation as well.
func (r *Ruling) explains(f *oracle.Finding) (permitted *oracle.Finding) {
	for i := range r.Findings {
		switch g := &r.Findings[i]; {
		case g.Difference == nil || g.Difference.Flaky || !sameEvent(f, g):
		case g.Kind == oracle.KindViolation:
			return nil
		case g.Kind == oracle.KindPermitted && g.Difference.Cause != "":
			permitted = g
		}
	}
	return permitted
}

// sameEvent reports whether two findings are about one step; or, where one of them compares the tables at the end, about one table.
func sameEvent(f, g *oracle.Finding) bool {
	if f.Difference.Step != "" && g.Difference.Step != "" {
		return f.Difference.Step == g.Difference.Step
	}
	return slices.ContainsFunc(f.Tables, func(name string) bool { return slices.Contains(g.Tables, name) })
}

// place names what a finding is about.
func place(f *oracle.Finding) string {
	if f.Difference.Step != "" {
		return f.Difference.Step
	}
	return "table " + f.Difference.Table
}
