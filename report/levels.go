package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle/level"
)

// Levels says which isolation levels a history satisfies and breaks.
type Levels struct {
	Weakest   []string `json:"weakest_broken"`      // none that they imply is broken
	Strongest []string `json:"strongest_satisfied"` // none that implies them is satisfied
	// Unsure says why more may be broken than was seen; empty: nothing more is.
	Unsure string `json:"unsure,omitempty"`
	// Apart says that the verdicts hold where nothing else was decided of the history.
	Apart    bool            `json:"-"`
	Verdicts []level.Verdict `json:"verdicts"`
	// Asked is the level that the user asked for; empty: none. Certificate is the order that proves it, if it is satisfied, with the views of it
	// (level.Certificate).
	Asked       string        `json:"asked,omitempty"`
	Certificate []level.Point `json:"certificate,omitempty"`
	Views       [][]uint64    `json:"views,omitempty"`
}

// Verdict is what is known of a level.
func (l *Levels) Verdict(name string) level.Verdict {
	i := slices.IndexFunc(l.Verdicts, func(v level.Verdict) bool { return v.Level == name })
	if i < 0 {
		return level.Verdict{Level: name, State: level.Unknown}
	}
	return l.Verdicts[i]
}

// State is what is known of the level that the user asked for. A level is only satisfied if nothing was left undecided.
func (l *Levels) State(undecided string) level.State {
	state := l.Verdict(l.Asked).State
	if state == level.Satisfied && (l.Unsure != "" || undecided != "") {
		return level.Unknown
	}
	return state
}

// answer is the sentence on the level that the user asked for.
func (l *Levels) answer() string {
	v := l.Verdict(l.Asked)
	line := fmt.Sprintf("%s: %s", v.Level, v.State)
	if v.Witness != nil {
		return line + ", by " + v.Witness.String()
	}
	if len(l.Certificate) > 0 {
		orders := ""
		if len(l.Views) > 0 {
			orders = fmt.Sprintf(" and %s", prose.Count(len(l.Views), "other order"))
		}
		line += fmt.Sprintf("; an order of %d points%s proves it, and was checked against all dependencies (--format json)", len(l.Certificate), orders)
	}
	return line
}

// text is the levels in lines. Where nothing was decided of the history, no level is known to be satisfied, but for Apart.
func (l *Levels) text(undecided string) string {
	var lines []string
	list := func(names []string) string { return cmp.Or(strings.Join(names, "; "), "none") }
	lines = append(lines, "weakest level broken: "+list(l.Weakest))
	for _, name := range l.Weakest {
		if w := l.Verdict(name).Witness; w != nil {
			lines = append(lines, "  "+w.String())
		}
	}
	line := "strongest level satisfied: " + list(l.Strongest)
	switch {
	case undecided != "" && (!l.Apart || len(l.Strongest) == 0):
		line = "strongest level satisfied: unknown"
	case l.Unsure != "":
		line += ", as far as wirecheck saw the history (" + l.Unsure + ")"
	}
	lines = append(lines, line)
	if v := l.Verdict(level.Mixed.Name); l.Asked != v.Level && len(l.Verdicts) > len(level.Levels) {
		line := "each transaction at its own level: " + string(v.State)
		if v.Witness != nil {
			line += ", by " + v.Witness.String()
		}
		lines = append(lines, line)
	}
	if l.Asked != "" {
		lines = append(lines, l.answer())
	}
	return strings.Join(lines, "\n")
}
