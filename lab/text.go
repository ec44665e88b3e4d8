package lab

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
)

// Text writes the schedule as it happened, for people: a line for each event, what it returned below it. Nothing in it
// differs from run to run: no times, no numbers of connections.
func (r *Result) Text(w io.Writer, spec *scenario.Spec) error {
	var text strings.Builder
	out := bufio.NewWriter(&text)
	t := texter{w: out, spec: spec}
	for _, st := range r.Permutation.Steps {
		t.step = max(t.step, utf8.RuneCountInString(st.Step.Name))
		t.session = max(t.session, utf8.RuneCountInString(spec.Sessions[st.Step.Session].Name))
	}
	for _, o := range r.Setup {
		t.output(o)
	}
	for _, ev := range r.Events {
		t.event(ev)
	}
	for i, sql := range spec.Finals() {
		if i < len(r.Finals) {
			fmt.Fprintf(out, "  final %s\n", oneLine(sql))
			t.answer(r.Finals[i])
		}
	}
	tables := r.Tables
	if len(r.Finals) > 0 {
		tables = nil // the scenario itself says what to look at
	}
	for _, tab := range tables {
		fmt.Fprintf(out, "  table %s\n", tab.Name)
		table(out, "    ", answer.Result{Columns: tab.Columns, Rows: tab.Rows})
	}
	for _, o := range r.Teardown {
		t.output(o)
	}
	if r.Trouble != nil {
		fmt.Fprintf(out, "  not finished: %v\n", r.Trouble)
	}
	for _, m := range r.Marks {
		fmt.Fprintf(out, "  may go differently the next time: %s\n", m)
	}
	_ = out.Flush()                                         // a Builder takes all
	_, err := io.WriteString(w, prose.Lines(text.String())) // values and messages are the server's
	return err
}

// texter writes the lines of one result.
type texter struct {
	w             *bufio.Writer
	spec          *scenario.Spec
	session, step int // widths of the columns
}

// indent is in front of what a step returned.
func (t *texter) indent() string { return strings.Repeat(" ", 2+t.session+2+t.step+2) }

func (t *texter) output(o Output) {
	if len(o.Answer.Notices) == 0 && o.Answer.Err == nil && !hasRows(o.Answer) {
		return
	}
	who := "setup, teardown"
	if o.Session >= 0 {
		who = t.spec.Sessions[o.Session].Name
	}
	fmt.Fprintf(t.w, "  %s  %s\n", who, oneLine(o.SQL))
	t.answer(o.Answer)
}

func hasRows(a answer.Answer) bool {
	return slices.ContainsFunc(a.Results, func(r answer.Result) bool { return r.Columns != nil })
}

func (t *texter) event(ev Event) {
	head := fmt.Sprintf("  %-*s  %-*s  ", t.session, t.spec.Sessions[ev.Step.Session].Name, t.step, ev.Step.Name)
	switch ev.Kind {
	case Ran:
		fmt.Fprintf(t.w, "%s%s\n", head, oneLine(ev.Step.SQL))
	case Waits:
		fmt.Fprintf(t.w, "%s%s  ... waits%s%s\n", head, oneLine(ev.Step.SQL), t.names(ev.For), kindText(ev.Wait))
		return
	case Resumed:
		fmt.Fprintf(t.w, "%s... resumed\n", head)
	case Skipped:
		fmt.Fprintf(t.w, "%s%s  ... skipped: %s\n", head, oneLine(ev.Step.SQL), ev.Why)
		return
	}
	t.answer(ev.Answer)
	if text := outcomeText(ev.Outcome); text != "" {
		fmt.Fprintf(t.w, "%s%s\n", t.indent(), text)
	}
}

func (t *texter) names(sessions []int) string {
	if len(sessions) == 0 {
		return ""
	}
	names := make([]string, len(sessions))
	for i, s := range sessions {
		names[i] = t.spec.Sessions[s].Name
	}
	return " for " + strings.Join(names, ", ")
}

func kindText(k engine.WaitKind) string {
	if k == "" {
		return ""
	}
	return " (" + string(k) + ")"
}

// outcomeText says what an error did to the transaction.
func outcomeText(o answer.Outcome) string {
	switch o.Effect {
	case answer.EffectFailed:
		return "the transaction has failed and can only be rolled back"
	case answer.EffectRolledBack:
		return "the transaction is rolled back"
	case answer.EffectCommitted:
		return "what came before in the transaction is committed"
	case answer.EffectGone:
		return "the connection is gone"
	}
	return ""
}

// answer writes what a step returned.
func (t *texter) answer(a answer.Answer) {
	in := t.indent()
	for _, n := range a.Notices {
		fmt.Fprintf(t.w, "%s%s\n", in, noticeText(n))
	}
	for _, r := range a.Results {
		switch {
		case r.Columns != nil:
			table(t.w, in, r)
		case r.Affected > 0:
			fmt.Fprintf(t.w, "%s%s\n", in, prose.Count(r.Affected, "row"))
		}
	}
	if a.Err != nil {
		fmt.Fprintf(t.w, "%sERROR %s: %s\n", in, a.Err.Code, prose.Printable(a.Err.Message))
	}
}

func noticeText(n answer.Notice) string {
	if n.Channel != "" {
		return fmt.Sprintf("NOTIFY %q with payload %q", n.Channel, n.Payload)
	}
	return fmt.Sprintf("%s: %s", n.Severity, n.Message)
}

// table writes the rows as psql does. NULL is shown as such, unlike an empty text.
func table(w io.Writer, indent string, r answer.Result) {
	widths := make([]int, len(r.Columns))
	for i, c := range r.Columns {
		widths[i] = utf8.RuneCountInString(c.Name)
		for _, row := range r.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell(row[i])))
		}
	}
	line := func(text func(i int) string, numeric bool) {
		var b strings.Builder
		for i := range r.Columns {
			if i > 0 {
				b.WriteString(" | ")
			}
			s := text(i)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if numeric && r.Columns[i].Numeric {
				s, pad = pad, s
			}
			b.WriteString(s + pad)
		}
		fmt.Fprintf(w, "%s%s\n", indent, strings.TrimRight(b.String(), " "))
	}
	line(func(i int) string { return r.Columns[i].Name }, false)
	rules := make([]string, len(widths))
	for i, n := range widths {
		rules[i] = strings.Repeat("-", n)
	}
	fmt.Fprintf(w, "%s%s\n", indent, strings.Join(rules, "-+-"))
	for _, row := range r.Rows {
		line(func(i int) string { return cell(row[i]) }, true)
	}
	fmt.Fprintf(w, "%s(%s)\n", indent, prose.Count(len(r.Rows), "row"))
}

// cell is a value on one line.
func cell(v answer.Value) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(strings.ToValidUTF8(answer.Text(v), "\uFFFD"))
}

// oneLine is a statement on one line.
func oneLine(sql string) string { return strings.TrimSuffix(prose.Line(sql, 0), ";") }
