package panel

import (
	"fmt"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/product"
)

// reconcile gives one event one verdict. Where one oracle names a confirmed bug, and another one explains the same event by what the vendor
// documents, no bug is proven: the finding is permitted, and a note names both causes. A violation without a cause stays: nobody has
// explained it. Neither does an oracle explain an event that it calls a violation itself.
func reconcile(rulings []Ruling) {
	documented := make([]map[*oracle.Finding]string, len(rulings)) // before anything is changed
	for i := range rulings {
		documented[i] = map[*oracle.Finding]string{}
		for k := range rulings[i].Findings {
			f := &rulings[i].Findings[k]
			if f.Kind != oracle.KindViolation {
				continue
			}
			for j := range rulings {
				if g := ownUnseen(f, &rulings[j]); j != i && g != nil {
					documented[i][f] = fmt.Sprintf("%s: %s explains it by what the vendor documents (%s; %s)", f.Name, rulings[j].Oracle, g.Difference.Cause, g.Source)
				}
			}
			if f.Difference == nil || f.Difference.Cause == "" {
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
			switch note := documented[i][f]; {
			case note == "":
				continue
			case f.Difference == nil:
				f.Kind = oracle.KindAnomaly
			default:
				f.Kind = oracle.KindPermitted
			}
			f.Promised = false
			rulings[i].Notes = append(rulings[i].Notes, documented[i][f])
		}
	}
}

// ownUnseen says what explains that a transaction does not see its own write: where the vendor documents that a row under a new key is another row, which its
// snapshot does not show, and the old one stays, the history alone cannot tell them apart. Nothing explains a violation that the explaining oracle saw itself.
func ownUnseen(f *oracle.Finding, by *Ruling) *oracle.Finding {
	if f.Class != anomaly.Internal {
		return nil
	}
	var permitted *oracle.Finding
	for i := range by.Findings {
		g := &by.Findings[i]
		if g.Difference == nil || g.Difference.Flaky || !slices.ContainsFunc(f.Tables, func(name string) bool { return slices.Contains(g.Tables, name) }) {
			continue
		}
		if g.Kind == oracle.KindViolation {
			return nil
		}
		if g.Kind == oracle.KindPermitted && g.Difference.Cause == string(product.MovedAway) {
			permitted = g
		}
	}
	return permitted
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
