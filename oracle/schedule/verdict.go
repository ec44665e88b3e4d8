package schedule

import (
	"fmt"
	"slices"

	"wirecheck/oracle"
)

// Verdict is what a re-executing oracle says of one schedule.
type Verdict struct {
	Findings []oracle.Finding // with Difference set; Reproduced, Attempts and Flaky are the caller's to fill
	// Unknown says why nothing, or not all, could be decided; empty: it was decided.
	Unknown string
	// Notes say what was left out of the comparison and why, a sentence each: silence about what was not compared would be read
	// as agreement.
	Notes []string
	// Compared is how many queries an oracle of single queries asked in two ways.
	Compared int
}

// Note adds a note that is not there yet.
func (v *Verdict) Note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(v.Notes, n) {
		v.Notes = append(v.Notes, n)
	}
}

// Add completes a finding and adds it, unless it is there.
func (v *Verdict) Add(f oracle.Finding) {
	f.ID = f.Fingerprint()
	if !slices.ContainsFunc(v.Findings, func(o oracle.Finding) bool { return o.ID == f.ID }) {
		v.Findings = append(v.Findings, f)
	}
}
