package panel

import (
	"slices"
	"strings"

	"wirecheck/oracle"
)

// Said lists what the oracles say of a case, a line each: the oracle, the kind of finding, and its cause or name ("wss permitted missing
// gap locks"); or "unknown" and the reason. An oracle that finds nothing and could decide is not in the list.
func (d *Judgement) Said() (lines []string) {
	add := func(name string, findings []oracle.Finding, unknown string) {
		for i := range findings {
			f := &findings[i]
			what := f.Title()
			if f.Difference != nil && f.Difference.Cause != "" {
				what = f.Difference.Cause
			}
			lines = append(lines, strings.Join([]string{name, string(f.Kind), what}, " "))
		}
		if unknown != "" {
			// The format separates by semicolons.
			lines = append(lines, strings.Join([]string{name, string(oracle.KindUnknown), strings.ReplaceAll(unknown, ";", ",")}, " "))
		}
	}
	if d.Judged {
		why := ""
		if d.Unseen() {
			why = unseen
		}
		add(IsolationName, d.Isolation.Findings, why)
	}
	for _, v := range d.Rulings {
		add(v.Oracle, v.Findings, v.Unknown)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// compareVerdict says where oracles that judged say something else than the scenario states. A statement may leave out the end: "troc
// violation" stands for every violation, "txcheck unknown" for every reason.
func (d *Judgement) compareVerdict(want []string) (wrong []string) {
	fits := func(stated, said string) bool {
		rest, ok := strings.CutPrefix(said, stated)
		return ok && (rest == "" || strings.ContainsAny(rest[:1], " :,("))
	}
	said := d.Said()
	for _, line := range said {
		if !slices.ContainsFunc(want, func(stated string) bool { return fits(stated, line) }) {
			wrong = append(wrong, "not stated: "+line)
		}
	}
	for _, stated := range want {
		name, _, _ := strings.Cut(stated, " ")
		asked := name == IsolationName && d.Judged || slices.ContainsFunc(d.Rulings, func(v Ruling) bool { return v.Oracle == name })
		if asked && !slices.ContainsFunc(said, func(line string) bool { return fits(stated, line) }) {
			wrong = append(wrong, "not said: "+stated)
		}
	}
	return wrong
}
