// Package report turns findings into what people and tools read: text, JSON, JUnit and SARIF, and the warnings that go
// to a client over the wire. It prints only what is known, and the same input gives the same bytes.
package report

import (
	"fmt"
	"io"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// Result is what a run found.
type Result struct {
	Source   string // the history or trace that was judged; empty for a live run
	Findings []oracle.Finding
	Known    int      // findings that were known before, and are left out
	Coverage Coverage // printed as a line or two; in JSON with its fields. May be nil
	Dropped  Dropped
	// Between are the ids of the findings that wirecheck collect told this proxy of: they are between its sessions and those of other proxies.
	Between []string
	// Explained says in text which statements were not seen exactly, behind the summary. May be empty.
	Explained string
	// Levels says which isolation levels the history satisfies and breaks. May be nil.
	Levels *Levels
	// Again gives the commands that show a finding again; nil: there are none.
	Again func(*oracle.Finding) []string
	// Undecided says why it means nothing that nothing more was found; empty: it means something.
	Undecided string
}

// Coverage says how much was seen.
type Coverage interface {
	fmt.Stringer
	// Caution says where an anomaly may hide although nothing was found; empty: nowhere that is known.
	Caution() string
	// Doubts counts the findings that are only possible, and not shown.
	Doubts() int
}

// seen is what was left out and the coverage, in lines.
func (r *Result) seen() (lines []string) {
	if r.Known > 0 {
		lines = append(lines, "known before, and left out: "+prose.Count(r.Known, "finding"))
	}
	if n := len(r.Between); n > 0 {
		lines = append(lines, fmt.Sprintf("between sessions of this proxy and of others, wirecheck collect found %d: %s", n, strings.Join(r.Between, ", ")))
	}
	if r.Coverage == nil {
		return lines
	}
	lines = append(lines, strings.Split(r.Coverage.String(), "\n")...)
	if caution := r.Coverage.Caution(); caution != "" {
		lines = append(lines, caution)
	}
	for i := range lines {
		lines[i] = prose.Printable(lines[i])
	}
	return lines
}

// Dropped counts what a live run had to leave out, because a pipe, a file or NATS stalled.
type Dropped struct {
	Log     int `json:"log,omitempty"`     // lines
	Report  int `json:"report,omitempty"`  // findings
	Stream  int `json:"stream,omitempty"`  // findings
	History int `json:"history,omitempty"` // events, all of those behind the first one
	Trace   int `json:"trace,omitempty"`   // bytes of sessions
	Gaps    int `json:"gaps,omitempty"`    // in the histories that proxies have published
	Lost    int `json:"lost,omitempty"`    // events that proxies could not publish
}

// String lists the counts that are not 0.
func (d Dropped) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{d.Log, "lines of the log"}, {d.Report, "findings of the report"}, {d.Stream, "findings of the stream"}, {d.History, "events of the history"},
		{d.Trace, "bytes of sessions in the trace"}, {d.Lost, "events that proxies could not publish"}, {d.Gaps, "gaps in what proxies published"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Formats are the names that Write knows.
var Formats = []string{"text", "json", "junit", "sarif", "markdown"}

// Write writes r in one of Formats.
func Write(w io.Writer, r Result, format string) error {
	switch format {
	case "text":
		if err := (Look{Again: r.Again}).Text(w, r.Findings); err != nil {
			return err
		}
		return Summary(w, r)
	case "json":
		return JSON(w, r)
	case "junit":
		return JUnit(w, r)
	case "sarif":
		return SARIF(w, r)
	case "markdown":
		return Markdown(w, r)
	}
	return fmt.Errorf("unknown format %q: known are %v", format, Formats)
}

// JSON writes one object with all findings and the coverage.
func JSON(w io.Writer, r Result) error {
	findings := r.Findings
	if findings == nil {
		findings = []oracle.Finding{}
	}
	caution := ""
	if r.Coverage != nil {
		caution = r.Coverage.Caution()
	}
	return Indented(w, struct {
		Source    string           `json:"source,omitempty"`
		Groups    []jsonGroup      `json:"groups,omitempty"`
		Findings  []oracle.Finding `json:"findings"`
		Known     int              `json:"known,omitempty"`
		Between   []string         `json:"between,omitempty"`
		Undecided string           `json:"undecided,omitempty"`
		Levels    *Levels          `json:"levels,omitempty"`
		Caution   string           `json:"caution,omitempty"`
		Coverage  Coverage         `json:"coverage,omitempty"`
		Dropped   Dropped          `json:"dropped,omitzero"`
	}{r.Source, jsonGroups(findings), findings, r.Known, r.Between, r.Undecided, r.Levels, caution, r.Coverage, r.Dropped})
}

// Indented writes a value as JSON that people can read, too.
func Indented(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// JSONLine writes one finding as one line, for streams.
func JSONLine(w io.Writer, f oracle.Finding) error { return writeJSON(w, f, "") }
