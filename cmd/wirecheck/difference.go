package main

import (
	"fmt"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// ruling says what one re-executing oracle found.
func (p *printer) ruling(v ruling) {
	for i := range v.findings {
		p.difference(v.Oracle, &v.findings[i])
	}
	if len(v.findings) == 0 && v.Unknown == "" {
		fmt.Fprintf(p.out, "%s: nothing found\n", v.Oracle)
	}
	for i, note := range v.Notes {
		if i == firstShown {
			fmt.Fprintf(p.out, "%s: left out: and %d more (--format json has all)\n", v.Oracle, len(v.Notes)-i)
			break
		}
		fmt.Fprintf(p.out, "%s: left out: %s\n", v.Oracle, note)
	}
}

// difference tells of one finding: what was expected by which rule, what was seen, and how often.
func (p *printer) difference(name string, f *oracle.Finding) {
	d := f.Difference
	verdict := map[oracle.Kind]string{
		oracle.KindViolation: "a DBMS bug", oracle.KindAnomaly: "allowed at this level", oracle.KindUnknown: "not decided",
		oracle.KindPermitted: "permitted: " + d.Cause,
	}[f.Kind]
	if d.Flaky {
		verdict = "flaky, " + verdict
	}
	fmt.Fprintf(p.out, "%s: %s (%s), %s\n", name, f.Title(), f.Class, verdict)
	fmt.Fprintf(p.out, "  rule: %s\n", d.Rule)
	if d.Step != "" {
		fmt.Fprintf(p.out, "  step %s of %s: %s\n", d.Step, d.Session, prose.Line(d.SQL, 0))
	}
	if d.Table != "" {
		fmt.Fprintf(p.out, "  table %s at the end\n", d.Table)
	}
	p.side("expected", d.Expected)
	p.side("observed", d.Observed)
	if len(d.Reference) > 0 {
		fmt.Fprintln(p.out, "  expected of:")
		for _, line := range d.Reference {
			fmt.Fprintf(p.out, "    %s\n", prose.Line(line, 0))
		}
	}
	if d.Reason != "" {
		why := "explained by"
		if f.Kind == oracle.KindPermitted {
			why = "why it is permitted"
		}
		fmt.Fprintf(p.out, "  %s: %s\n", why, d.Reason)
	}
	if f.Source != "" {
		fmt.Fprintf(p.out, "  source: %s\n", f.Source)
	}
	if d.Attempts > 0 {
		fmt.Fprintf(p.out, "  seen again in %d of %d executions\n", d.Reproduced, d.Attempts)
	}
}

// side prints one of the two results.
func (p *printer) side(name string, s oracle.Side) {
	var parts []string
	if s.Text != "" {
		parts = append(parts, s.Text)
	}
	if s.Columns != nil || s.Rows != nil {
		rows := make([]string, len(s.Rows))
		for i, row := range s.Rows {
			values := make([]string, len(row))
			for n, v := range row {
				if values[n] = "NULL"; v != nil {
					values[n] = *v
				}
			}
			rows[i] = strings.Join(values, "|")
		}
		if len(rows) == 0 {
			rows = []string{"no rows"}
			if s.Omitted > 0 {
				rows = []string{"nothing more"}
			}
		}
		if s.Omitted > 0 {
			rows = append(rows, fmt.Sprintf("besides %d that both have", s.Omitted))
		}
		parts = append(parts, strings.Join(rows, ", "))
	}
	fmt.Fprintf(p.out, "  %s: %s\n", name, strings.Join(parts, "; "))
}
