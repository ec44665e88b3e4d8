package source

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"wirecheck/trace"
)

// Report says what an import found in one log, and what it could not find.
type Report struct {
	Format, Title string
	Unit          string // what its files consist of: lines, packets
	Files         []string
	Lines         int // or what the unit is
	Sessions      int
	Statements    int
	Errors        int
	Waits         int
	Lost          int // statements whose text is not there, or not whole
	NoParams      int // statements whose parameters are not there
	Other         []Count
	Unknown       int // lines that were not understood
	Samples       []UnknownLine
	Missing       []Missing
	Notes         []string
}

// Count is how often something was found.
type Count struct {
	What string
	N    int
}

// UnknownLine is one of the lines that were not understood.
type UnknownLine struct {
	File string
	Line int
	Why  string
	Text string // its beginning
}

// Missing is something that a source does not show, and what makes the server show it.
type Missing struct{ What, Remedy string }

// Unknown lines that a report shows, and how much of each.
const (
	maxSamples  = 5
	sampleWidth = 100
)

func (r *Report) other(what string, n int) {
	if i := slices.IndexFunc(r.Other, func(c Count) bool { return c.What == what }); i >= 0 {
		r.Other[i].N += n
		return
	}
	r.Other = append(r.Other, Count{what, n})
}

// Count is how often an import found something that has no place in a trace.
func (r *Report) Count(what string) int {
	for _, c := range r.Other {
		if c.What == what {
			return c.N
		}
	}
	return 0
}

// Lacks reports what the source does not show.
func (r *Report) Lacks(what, remedy string) { r.Missing = append(r.Missing, Missing{what, remedy}) }

// Note adds a note.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Source is the report as it stands in the trace file.
func (r *Report) Source() trace.Source {
	s := trace.Source{Name: strings.Join(r.Files, ", "), Format: r.Format}
	for _, u := range r.Missing {
		s.Missing = append(s.Missing, u.What)
	}
	return s
}

// Text prints the report.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", strings.Join(r.Files, ", "), r.Title)
	fmt.Fprintf(&b, "  %s: %d; sessions: %d, statements: %d (errors: %d), lock waits: %d\n", r.Unit, r.Lines, r.Sessions, r.Statements, r.Errors, r.Waits)
	if len(r.Other) > 0 {
		var parts []string
		for _, c := range r.Other {
			parts = append(parts, fmt.Sprintf("%s: %d", c.What, c.N))
		}
		fmt.Fprintf(&b, "  not part of a trace: %s\n", strings.Join(parts, ", "))
	}
	fmt.Fprintf(&b, "  unknown %s: %d\n", r.Unit, r.Unknown)
	for _, u := range r.Samples {
		fmt.Fprintf(&b, "    %s:%d: %s: %s\n", u.File, u.Line, u.Why, u.Text)
	}
	if more := r.Unknown - len(r.Samples); more > 0 {
		fmt.Fprintf(&b, "    and %d more\n", more)
	}
	if r.Lost > 0 {
		fmt.Fprintf(&b, "  statements whose text is not there or not whole: %d\n", r.Lost)
	}
	if r.NoParams > 0 {
		fmt.Fprintf(&b, "  statements without their parameters: %d\n", r.NoParams)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if len(r.Missing) > 0 {
		b.WriteString("  it does not tell:\n")
	}
	for _, u := range r.Missing {
		fmt.Fprintf(&b, "    %s", u.What)
		if u.Remedy != "" {
			fmt.Fprintf(&b, ": %s", u.Remedy)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
