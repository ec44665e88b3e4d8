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

// Look is how findings look as text. The zero value is for files.
type Look struct {
	Color bool
	// Width is that of the terminal: sentences are broken so that they fit. 0: they are not broken.
	Width int
	// Again gives the commands that show a finding again; nil: there are none.
	Again func(*oracle.Finding) []string
}

// Text writes findings for people.
func Text(w io.Writer, findings []oracle.Finding) error { return Look{}.Text(w, findings) }

// Summary writes the last lines of a text report: how many were found, and the coverage.
func Summary(w io.Writer, r Result) error {
	list := oracle.Groups(r.Findings)
	violations, unknown := 0, 0
	for i := range list {
		switch list[i].First().Kind {
		case oracle.KindViolation:
			violations++
		case oracle.KindUnknown:
			unknown++
		}
	}
	line := r.nothing()
	if n := len(list); n > 0 {
		line = fmt.Sprintf("found: %d (violations: %d, anomalies: %d", n, violations, n-violations-unknown)
		if unknown > 0 {
			line += fmt.Sprintf(", unknown: %d", unknown)
		}
		line += ")"
		if len(r.Findings) > n {
			line += fmt.Sprintf(", in %d variants", len(r.Findings))
		}
		if r.Undecided != "" {
			line += "\nundecided besides: " + prose.Printable(r.Undecided)
		}
	} else if r.Undecided != "" {
		line = "undecided: " + prose.Printable(r.Undecided)
	}
	line = strings.Join(append([]string{line}, r.seen()...), "\n")
	if r.Levels != nil {
		line += "\n" + r.Levels.text(r.Undecided)
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

// nothing says that there are no findings, and no more than that: a level may be broken without an anomaly, by the order of sessions or of time alone.
func (r *Result) nothing() string {
	switch {
	case r.Levels != nil && len(r.Levels.Weakest) > 0:
		return "no anomaly found, but a level is broken"
	case r.Known > 0:
		return "nothing new found"
	case r.Coverage != nil && r.Coverage.Doubts() > 0:
		return "nothing certain found, but " + prose.Count(r.Coverage.Doubts(), "possible finding")
	case len(r.Between) > 0:
		return "nothing found among the sessions of this proxy alone"
	}
	return "nothing found"
}

// Text writes findings for people.
func (k Look) Text(out io.Writer, findings []oracle.Finding) error {
	w := bufio.NewWriter(out)
	list := groups(findings)
	if len(list) > maxWhole {
		k.overview(w, list)
		fmt.Fprintln(w)
		return w.Flush()
	}
	for i := range list {
		list[i].text(w, k)
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// heading is the kind and the name of a finding.
func heading(f *oracle.Finding, color bool) string {
	head := strings.ToUpper(string(f.Kind)) + ": " + strings.ToUpper(f.Title())
	if !color {
		return head
	}
	code := "33" // yellow
	if f.Kind == oracle.KindViolation {
		code = "31" // red
	}
	return "\x1b[1;" + code + "m" + head + "\x1b[0m"
}

// Explain is a finding whole, for one session: the reader's own session is "you".
func Explain(f oracle.Finding, r Reader) string {
	f = Printable(For(f, r))
	var b strings.Builder
	Look{}.finding(&b, &f, r.Session)
	return b.String()
}

// line writes a sentence, the first line of it behind first and the others behind rest.
func (k Look) line(w io.Writer, first, rest, text string) {
	fmt.Fprintln(w, prose.Wrap(text, k.Width, first, rest))
}

func (k Look) finding(w io.Writer, f *oracle.Finding, you uint64) {
	head := heading(f, k.Color)
	head += "  " + f.ID
	if f.Seen > 0 {
		head += fmt.Sprintf(" · seen %dx", f.Seen)
	}
	if f.FirstAt != 0 {
		head += " · first " + clock(f.FirstAt)
	}
	fmt.Fprintln(w, head)
	t := teller{f: f, you: you}
	k.line(w, "  ", "  ", capital(t.sentence())+".\n")
	for i, a := range t.acts() {
		k.line(w, fmt.Sprintf("  %d. ", i+1), "     ", a.text)
		if a.sql != "" {
			fmt.Fprintf(w, "       %s\n", a.sql)
		}
	}
	k.line(w, "  ", "  ", t.effect())
	if level := t.level(); level != "" {
		k.line(w, "  ", "  ", level)
	}
	if f.Source != "" {
		k.line(w, "  ", "  ", "Promised in: "+f.Source)
	}
	if len(f.Remedies) > 0 {
		fmt.Fprintln(w, "\n  Fix, one of:")
		for i, r := range f.Remedies {
			k.line(w, fmt.Sprintf("  %d. ", i+1), "     ", withCost(r))
			if r.SQL != "" {
				fmt.Fprintf(w, "       %s\n", prose.Statement(r.SQL, prose.Width))
			}
		}
	}
	if k.Again != nil {
		if commands := k.Again(f); len(commands) > 0 {
			fmt.Fprintln(w, "\n  Show it again:")
			for _, c := range commands {
				fmt.Fprintf(w, "    %s\n", c)
			}
		}
	}
	fmt.Fprintf(w, "\n  Proof (%s):\n", shape(f))
	for i := range f.Transactions {
		fmt.Fprintf(w, "    %s\n", transaction(&f.Transactions[i], f.Level == "mixed"))
	}
	timeline(w, f)
	for _, s := range Argument(f) {
		k.line(w, "    - ", "      ", s)
	}
}

// withCost is a remedy with what the application has to expect of it.
func withCost(r oracle.Remedy) string {
	if r.Cost == "" {
		return r.Text
	}
	return r.Text + "; " + r.Cost
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
	return s + ": a cycle of " + strings.Join(kinds, " ")
}

// transaction introduces a transaction.
func transaction(t *oracle.Transaction, withLevel bool) string {
	var who []string
	add := func(format string, v any, known bool) {
		if known {
			who = append(who, fmt.Sprintf(format, v))
		}
	}
	number := t.ID
	if t.Proxy != "" {
		number = t.Number // the numbers among all are of no use to people
	}
	add("proxy %s", t.Proxy, t.Proxy != "")
	add("backend %d", t.Backend, t.Backend != 0)
	add("user %s", t.User, t.User != "")
	add("%s", t.Client, t.Client != "")
	add("%s", strings.Join(t.Tags, ", "), len(t.Tags) > 0)
	s := fmt.Sprintf("%s = transaction %d of session %d", t.Label, number, t.Session)
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

// timeline lists the statements that take part in the order in which they were answered, a column for each transaction. Where that is not known, a
// transaction's statements follow its beginning.
func timeline(w io.Writer, f *oracle.Finding) {
	type line struct {
		to   uint64
		txn  int
		text string
	}
	var lines []line
	for i, t := range f.Transactions {
		spans := t.To != 0 && !t.Implicit
		if spans {
			lines = append(lines, line{t.From, i, t.Label + "    begin"})
		}
		for _, s := range t.Statements {
			sql := prose.Statement(s.SQL, prose.Width)
			if sql == "" {
				sql = s.Verb
			}
			at := s.To
			if at == 0 { // a history of another checker knows when the transaction ran, and no more
				at = t.From
			}
			lines = append(lines, line{at, i, fmt.Sprintf("%s.%d  %s", t.Label, s.N, sql)})
		}
		if !spans {
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
		fmt.Fprintln(w, "    Order:")
	}
	for _, l := range lines {
		fmt.Fprintf(w, "      %s%s\n", strings.Repeat("    ", l.txn), l.text)
	}
}

// clock prints a wall clock in UTC, so that a report does not depend on where it is printed.
func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000Z") }
