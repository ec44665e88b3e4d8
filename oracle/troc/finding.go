package troc

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// mismatch is one difference between what a world expects and what was seen.
type mismatch struct {
	step  int // -1: the tables at the end
	name  string
	table string
	rule  string
	want  oracle.Side
	got   oracle.Side
	views map[string]relation // on which the statement was executed; nil where executing it again tells nothing
	trail []string
}

// about says in words what an answer is.
func about(a *answer.Result, kind product.Kind) oracle.Side {
	switch {
	case a.Err != nil:
		return oracle.Side{Text: a.Err.Text()}
	case !kind.Writes() || a.Columns != nil:
		return schedule.SideOf(a.Columns, a.Rows, 0)
	}
	return oracle.Side{Text: prose.Count(a.Affected, "row") + " affected"}
}

// differ says how an answer that was seen differs from one that was expected: the name of the difference, empty if it does not.
func differ(st *schedule.Step, want *answer.Result) string {
	got := &st.Answer
	switch {
	case answer.BreaksConstraint(got.Err) && answer.BreaksConstraint(want.Err): // which of several broken constraints a server names is not defined
		return ""
	case !answer.SameError(got.Err, want.Err):
		return oracle.NameError
	case got.Err != nil:
		return ""
	case !diffRows(got.Columns, want.Rows, got.Rows).Equal() && !schedule.Represents(st.Statement.Text, answer.DiffRows(want.Rows, got.Rows)):
		return oracle.NameResult
	case st.Statement.Verb != "select" && got.Affected != want.Affected:
		return oracle.NameResult
	}
	return ""
}

func sameAnswer(a, b *answer.Result) bool {
	if a.Err != nil || b.Err != nil {
		return answer.SameError(a.Err, b.Err)
	}
	return a.Affected == b.Affected && diffRows(a.Columns, a.Rows, b.Rows).Equal()
}

// diffRows compares rows as multisets. Floating-point numbers that differ in their last digits are the same: a sum depends on the order of
// its terms.
func diffRows(columns []answer.Column, want, got [][]answer.Value) answer.Difference {
	d := answer.DiffRows(want, got)
	if d.Equal() || len(d.Missing) != len(d.Extra) {
		return d
	}
	rest := slices.Clone(d.Extra)
	for _, m := range d.Missing {
		i := slices.IndexFunc(rest, func(r []answer.Value) bool { return close(columns, m, r) })
		if i < 0 {
			return d
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return answer.Difference{}
}

// close reports whether two rows are equal but for rounding.
func close(columns []answer.Column, a, b []answer.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) {
			return false
		}
		if bytes.Equal(a[i], b[i]) {
			continue
		}
		if i >= len(columns) {
			return false
		}
		switch kind := strings.ToLower(columns[i].Type); {
		case strings.Contains(kind, "float"), strings.Contains(kind, "double"), kind == "real":
		default:
			return false
		}
		x, errX := strconv.ParseFloat(string(a[i]), 64)
		y, errY := strconv.ParseFloat(string(b[i]), 64)
		if errX != nil || errY != nil || math.Abs(x-y) > 1e-9*math.Max(math.Abs(x), math.Abs(y)) {
			return false
		}
	}
	return true
}

// verdict makes findings of the worlds that are left, or of the last ones that died.
func (c *check) verdict(worlds []*world) schedule.Verdict {
	v := c.out
	if len(worlds) == 0 {
		best := c.lastDeath()
		if best == nil {
			panic("troc: no course of the schedule is left, and none has ended")
		}
		for _, n := range best.causes {
			v.Findings = append(v.Findings, c.known(n, best.causes))
		}
		if !c.judged[best.step] { // else its answer is a finding already
			v.Findings = append(v.Findings, c.finding(&best.mismatch, nil))
		}
		return v
	}
	best := slices.MinFunc(worlds, func(a, b *world) int {
		return cmp.Or(len(a.causes)-len(b.causes), len(a.taint)-len(b.taint), len(a.notes)-len(b.notes))
	})
	v.Notes = slices.DeleteFunc(slices.Clone(v.Notes), func(n string) bool { return !slices.Contains(best.notes, n) })
	for _, n := range best.causes {
		v.Findings = append(v.Findings, c.known(n, best.causes))
	}
	for _, name := range c.t.names {
		if why, ok := best.taint[name]; ok && v.Unknown == "" {
			v.Unknown = fmt.Sprintf("table %s was not compared to the end: %s", name, why)
		}
	}
	return v
}

// lastDeath is that of the world that lived longest, with the fewest causes.
func (c *check) lastDeath() (best *death) {
	for i := range c.died {
		d := &c.died[i]
		if best == nil || d.place > best.place || d.place == best.place && len(d.causes) < len(best.causes) {
			best = d
		}
	}
	return best
}

// known makes the finding of a departure that a world contains. Its evidence is what ended the world that was like it without
// the departure, at the same statement if one ended there: others took another snapshot before.
func (c *check) known(n note, causes []note) oracle.Finding {
	var evidence *death
	near := func(d *death) int {
		s := 2 * shared(d.causes, causes)
		if d.step == n.step {
			s++
		}
		return s
	}
	for i := range c.died {
		d := &c.died[i]
		if slices.Contains(d.causes, n) {
			continue
		}
		if evidence == nil || near(d) > near(evidence) {
			evidence = d
		}
	}
	if n.evidence != nil {
		return c.finding(n.evidence, n.cause)
	}
	if evidence != nil && evidence.step == n.step && (n.cause.ID == product.DeletedRow || n.cause.ID == product.CoveringIndex) {
		m := evidence.mismatch // what the snapshot gives is not what should have come
		m.want = oracle.Side{Text: "refused: serialization failure"}
		m.rule = "the first updater wins: a statement that locks a row, or misses one, that others have changed and committed since the snapshot, is refused"
		if view, ok := c.p.View(c.txs[c.txOf[n.step]].Level, product.Update); ok {
			m.rule += " (" + view.Source + ")"
		}
		return c.finding(&m, n.cause)
	}
	if evidence == nil { // the worlds were told apart by nothing: cannot be, since one without causes is preferred
		return c.finding(&mismatch{step: n.step, name: oracle.NameResult, rule: n.cause.Reason}, n.cause)
	}
	return c.finding(&evidence.mismatch, n.cause)
}

func shared(a, b []note) (n int) {
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// finding fills the common form.
func (c *check) finding(m *mismatch, cause *product.Cause) oracle.Finding {
	f := oracle.Finding{Oracle: Descriptor.Name, Kind: oracle.KindViolation, Class: oracle.Troc, Name: m.name, Level: c.s.Level, Promised: true}
	d := &oracle.Difference{Rule: m.rule, Table: m.table, Expected: m.want, Observed: m.got, Reference: m.trail}
	if m.step >= 0 {
		st := &c.s.Steps[m.step]
		d.Step, d.Session, d.SQL = st.Name, c.s.Sessions[st.Session].Name, st.Statement.Text
		f.Session = uint64(st.Session + 1)
		if x := c.txOf[m.step]; x >= 0 {
			f.Level = c.txs[x].Level
		}
		for _, u := range st.Statement.Tables {
			if name, ok := c.t.known(u); ok && !slices.Contains(f.Tables, name) {
				f.Tables = append(f.Tables, name)
			}
		}
	} else {
		f.Tables = []string{m.table}
	}
	slices.Sort(f.Tables)
	if s, ok := c.p.View(f.Level, product.Select); ok {
		f.Source = s.Source
	}
	if cause != nil {
		f.Source, f.Promised = cause.Source, cause.Confirmed
		if !cause.Confirmed {
			f.Kind = oracle.KindPermitted
		}
		d.Cause, d.Reason = string(cause.ID), cause.Reason
	}
	f.Difference = d
	if m.step >= 0 {
		c.s.Attribute(&f, m.step)
	}
	f.ID = f.Fingerprint()
	return f
}
