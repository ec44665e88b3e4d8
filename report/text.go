package report

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/product"
)

// Text writes findings for people, without colour.
func Text(w io.Writer, findings []oracle.Finding) error { return text(w, findings, false) }

// ColorText writes findings for people at a terminal.
func ColorText(w io.Writer, findings []oracle.Finding) error { return text(w, findings, true) }

// Summary writes the last lines of a text report: how many were found, and the coverage.
func Summary(w io.Writer, r Result) error {
	violations := 0
	for i := range r.Findings {
		if r.Findings[i].Kind == oracle.KindViolation {
			violations++
		}
	}
	line := "nothing found"
	if n := len(r.Findings); n > 0 {
		line = fmt.Sprintf("found: %d (violations: %d, anomalies: %d)", n, violations, n-violations)
	}
	if r.Coverage != nil {
		line += "\n" + r.Coverage.String()
	}
	if r.Dropped != (Dropped{}) {
		line += "\ndropped, because an output stalled: " + r.Dropped.String()
	}
	if r.Explained != "" {
		line += "\n\n" + strings.TrimSuffix(r.Explained, "\n")
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func text(out io.Writer, findings []oracle.Finding, color bool) error {
	w := bufio.NewWriter(out)
	for i := range findings {
		textFinding(w, &findings[i], color)
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func textFinding(w io.Writer, f *oracle.Finding, color bool) {
	head := fmt.Sprintf("%s: %s (%s)", strings.ToUpper(string(f.Kind)), strings.ToUpper(f.Title()), shape(f))
	if color {
		code := "33" // yellow
		if f.Kind == oracle.KindViolation {
			code = "31" // red
		}
		head = "\x1b[1;" + code + "m" + head + "\x1b[0m"
	}
	head += "  " + f.ID
	if f.Seen > 0 {
		head += fmt.Sprintf(" · seen %dx", f.Seen)
	}
	if f.FirstAt != 0 {
		head += " · first " + clock(f.FirstAt)
	}
	fmt.Fprintln(w, head)
	fmt.Fprintf(w, "  on      %s\n", strings.Join(rows(f), ", "))
	fmt.Fprintf(w, "  level   %s\n", level(f))
	if f.Source != "" {
		fmt.Fprintf(w, "          promised in: %s\n", f.Source)
	}
	if by := preventedBy(f); by != "" {
		fmt.Fprintf(w, "          prevented from: %s\n", by)
	}
	fmt.Fprintln(w, "Let:")
	for i := range f.Transactions {
		fmt.Fprintf(w, "  %s\n", transaction(&f.Transactions[i], f.Level == "mixed"))
	}
	timeline(w, f)
	fmt.Fprintln(w, "Then:")
	for _, s := range Argument(f) {
		fmt.Fprintf(w, "  - %s\n", s)
	}
	if len(f.Remedies) > 0 {
		fmt.Fprintln(w, "Fix (pick one):")
		for i, r := range f.Remedies {
			fmt.Fprintf(w, "  %d. %s\n", i+1, r)
		}
	}
}

// Argument is the finding's proof: a sentence for each edge, the last one the contradiction (after Elle).
func Argument(f *oracle.Finding) []string {
	var out []string
	for i, e := range f.Edges {
		a, b := f.Transactions[e.From].Label, f.Transactions[e.To].Label
		switch {
		case f.Class == anomaly.G1a || f.Class == anomaly.G1b:
			out = append(out, e.Text+".")
		case i == len(f.Edges)-1:
			out = append(out, fmt.Sprintf("However, %s < %s, because %s (%s): a contradiction!", a, b, e.Text, e.Kind))
		default:
			out = append(out, fmt.Sprintf("%s < %s, because %s (%s).", a, b, e.Text, e.Kind))
		}
	}
	return out
}

// shape is the formal name with the kinds of edges.
func shape(f *oracle.Finding) string {
	s := string(f.Class)
	if f.Name == anomaly.LostUpdate {
		s = "P4, " + s
	}
	if f.Class == anomaly.G1a || f.Class == anomaly.G1b {
		return s
	}
	var kinds []string
	for _, e := range f.Edges {
		kinds = append(kinds, string(e.Kind))
	}
	return s + ", cycle " + strings.Join(kinds, " ")
}

// rows names the rows of the edges, each once.
func rows(f *oracle.Finding) []string {
	var out []string
	seen := map[history.Row]bool{}
	for _, e := range f.Edges {
		if e.Row.Table == "" || seen[e.Row] {
			continue
		}
		seen[e.Row] = true
		out = append(out, e.RowText())
	}
	return out
}

// level says at which level it ran and who is to blame.
func level(f *oracle.Finding) string {
	engine, server := f.Transactions[0].Engine, f.Transactions[0].Server
	s := "ran at " + product.Of(engine).LevelTitle(f.Level)
	switch f.Level {
	case "":
		s = "ran at a level that is not known"
	case "mixed":
		s = "ran at different levels"
	}
	if engine != "" {
		s += " on " + product.Of(engine).Title
		if server != "" {
			s += " " + server
		}
	}
	switch {
	case f.Promised:
		return s + ". It promises to prevent this: a DBMS bug."
	case f.Level == "" || f.PreventedBy == "":
		return s + "."
	case f.Level == "mixed":
		return s + ", not all of which prevent this: an application bug, not a DBMS bug."
	}
	return s + ". Allowed there: an application bug, not a DBMS bug."
}

func preventedBy(f *oracle.Finding) string {
	if f.PreventedBy == "" || f.Promised {
		return ""
	}
	return product.Of(f.Transactions[0].Engine).LevelTitle(f.PreventedBy)
}

// transaction introduces a transaction.
func transaction(t *oracle.Transaction, withLevel bool) string {
	var who []string
	add := func(format string, v any, known bool) {
		if known {
			who = append(who, fmt.Sprintf(format, v))
		}
	}
	add("backend %d", t.Backend, t.Backend != 0)
	add("user %s", t.User, t.User != "")
	add("%s", t.Client, t.Client != "")
	add("%s", strings.Join(t.Tags, ", "), len(t.Tags) > 0)
	s := fmt.Sprintf("%s = transaction %d of session %d", t.Label, t.ID, t.Session)
	if len(who) > 0 {
		s += " (" + strings.Join(who, ", ") + ")"
	}
	if withLevel {
		if t.Level == "" {
			s += ", level not known"
		} else {
			s += ", " + product.Of(t.Engine).LevelTitle(t.Level)
		}
	}
	if t.Implicit {
		s += ", autocommit"
	}
	if t.Outcome != history.OutcomeCommitted {
		s += ", rolled back"
	}
	return s
}

// timeline lists the statements that take part in the order in which they were answered, a column for each transaction.
func timeline(w io.Writer, f *oracle.Finding) {
	type line struct {
		to   uint64
		txn  int
		text string
	}
	var lines []line
	for i, t := range f.Transactions {
		for _, s := range t.Statements {
			sql := prose.Line(s.SQL, prose.Width)
			if sql == "" {
				sql = s.Verb
			}
			lines = append(lines, line{s.To, i, fmt.Sprintf("%s.%d  %s", t.Label, s.N, sql)})
		}
		if t.To == 0 || t.Implicit {
			continue
		}
		end := "commit"
		if t.Outcome != history.OutcomeCommitted {
			end = "rollback"
		}
		lines = append(lines, line{t.To, i, t.Label + "    " + end})
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].to < lines[j].to })
	if len(lines) > 0 {
		fmt.Fprintln(w, "Order of answers:")
	}
	for _, l := range lines {
		fmt.Fprintf(w, "  %s%s\n", strings.Repeat("    ", l.txn), l.text)
	}
}

// clock prints a wall clock in UTC, so that a report does not depend on where it is printed.
func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000Z") }
