package report

import (
	"fmt"
	"io"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// Difference writes a finding that compares two executions: what was expected by which rule, what was seen, and how often.
func Difference(w io.Writer, f *oracle.Finding) {
	f = new(Printable(*f))
	d := f.Difference
	verdict := map[oracle.Kind]string{
		oracle.KindViolation: "a DBMS bug", oracle.KindAnomaly: "allowed at this level", oracle.KindUnknown: "not decided",
		oracle.KindPermitted: "permitted: " + d.Cause,
	}[f.Kind]
	if d.Flaky {
		verdict = "flaky, " + verdict
	}
	fmt.Fprintf(w, "%s: %s (%s), %s\n", f.Oracle, f.Title(), f.Class, verdict)
	fmt.Fprintf(w, "  rule: %s\n", d.Rule)
	if d.Step != "" {
		fmt.Fprintf(w, "  step %s of %s: %s\n", d.Step, d.Session, prose.Line(d.SQL, 0))
	}
	if d.Table != "" {
		fmt.Fprintf(w, "  table %s at the end\n", d.Table)
	}
	Side(w, "expected", d.Expected)
	Side(w, "observed", d.Observed)
	if len(d.Reference) > 0 && d.Parts == nil {
		fmt.Fprintln(w, "  expected of:")
		for _, line := range d.Reference {
			fmt.Fprintf(w, "    %s\n", prose.Line(line, 0))
		}
	}
	for i := range d.Parts {
		part, wrong := &d.Parts[i], ""
		if part.Wrong {
			wrong = ", which is wrong"
		}
		where := ""
		if part.Database != "" {
			where = " (" + part.Database + " database)"
		}
		fmt.Fprintf(w, "  %s%s: %s%s\n", prose.Line(part.SQL, 0), where, SideText(part.Answer), wrong)
	}
	if d.Origin != "" {
		fmt.Fprintf(w, "  the type of %s: %s\n", prose.Line(d.Origin, 0), d.Types)
	}
	if d.Opinion != "" {
		fmt.Fprintf(w, "  by: %s\n", prose.Line(d.Opinion, 0))
	}
	if d.Reason != "" {
		why := "explained by"
		if f.Kind == oracle.KindPermitted {
			why = "why it is permitted"
		}
		fmt.Fprintf(w, "  %s: %s\n", why, d.Reason)
	}
	if f.Source != "" {
		fmt.Fprintf(w, "  source: %s\n", f.Source)
	}
	if d.Attempts > 0 {
		fmt.Fprintf(w, "  seen again in %d of %d executions\n", d.Reproduced, d.Attempts)
	}
}

// Side writes one of the two results.
func Side(w io.Writer, name string, s oracle.Side) {
	fmt.Fprintf(w, "  %s: %s\n", name, SideText(s))
}

// SideText is one of the results in one line.
func SideText(s oracle.Side) string {
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
	return prose.Printable(strings.Join(parts, "; "))
}
