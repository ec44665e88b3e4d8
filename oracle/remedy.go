package oracle

import (
	"wirecheck/anomaly"
	"wirecheck/product"
)

// Remedies lists what an application can do against a finding, cheapest first. What a product promises and did not hold
// is its vendor's to mend, so there the first advice is to report it.
func Remedies(p *product.Product, f *Finding) []string {
	var out []string
	if f.Promised {
		out = append(out, "report it to the vendor of "+p.Title+": the level promises to prevent this")
	}
	a, known := anomaly.Of(f.Class, f.Name)
	if !known { // a comparison of a re-executing oracle
		a, _ = anomaly.Of(anomaly.GSingle, "")
	}
	out = append(out, a.Remedies...)
	if f.PreventedBy == "" || f.Promised {
		return out
	}
	level := p.LevelTitle(f.PreventedBy)
	if !a.Refuses {
		return append(out, "run at "+level+" or higher")
	}
	return append(out, "run all transactions that take part at "+level+" and retry those that are refused ("+p.Refusals+")")
}
