package scenario

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
)

// Truth is true, false or not known. The zero value is Unknown.
type Truth int

// The three truths.
const (
	Unknown Truth = iota
	False
	True
)

func (t Truth) String() string { return [...]string{"unknown", "false", "true"}[t] }

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Results is what a condition asks of a run.
type Results interface {
	// Step gives the result of a step, or of a final query (final, final1, final2, ...); false if it was not executed. If a
	// permutation has the step more than once, it is the last one's.
	Step(name string) (StepResult, bool)
	// Found says whether the oracle reported something, and whether it was asked and could decide.
	Found(oracle string) (found, known bool)
	// Crashed reports whether the server ended or a connection was lost.
	Crashed() bool
}

// StepResult is what one step brought back: the rows of its last statement that returned some, what its last statement without rows
// affected, and the error that ended it.
type StepResult struct {
	answer.Result
	Blocked bool // it waited for another session, even if it went on later
}

// Condition is a parsed condition of an outcome line.
type Condition struct{ root node }

// Eval says whether the condition holds. It is Unknown only where an oracle would have to be asked that was not.
//
// A step that was not executed or that failed returned no rows, not even none: rows, count and affected are false for it.
func (c Condition) Eval(r Results) Truth { return c.root.eval(r) }

// String gives the condition as it is written in a file.
func (c Condition) String() string { return c.root.String() }

// Steps names the steps that the condition looks at, each once, in order.
func (c Condition) Steps() []string {
	var names []string
	c.root.steps(func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}

func and(a, b Condition) Condition { return Condition{junction{"and", []node{a.root, b.root}}} }

// node is a part of a condition.
type node interface {
	eval(Results) Truth
	steps(yield func(string))
	String() string
}

// junction is a list of parts joined by and, or by or.
type junction struct {
	word  string
	parts []node
}

func (j junction) eval(r Results) Truth {
	decisive := False
	if j.word == "or" {
		decisive = True
	}
	result := True + False - decisive
	for _, p := range j.parts {
		switch p.eval(r) {
		case decisive:
			return decisive
		case Unknown:
			result = Unknown
		}
	}
	return result
}

func (j junction) steps(yield func(string)) {
	for _, p := range j.parts {
		p.steps(yield)
	}
}

func (j junction) String() string {
	var texts []string
	for _, p := range j.parts {
		text := p.String()
		if _, nested := p.(junction); nested {
			text = "(" + text + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " "+j.word+" ")
}

type negation struct{ of node }

func (n negation) eval(r Results) Truth {
	t := n.of.eval(r)
	if t == Unknown {
		return Unknown
	}
	return True + False - t
}

func (n negation) steps(yield func(string)) { n.of.steps(yield) }

func (n negation) String() string {
	if _, nested := n.of.(junction); nested {
		return "not (" + n.of.String() + ")"
	}
	return "not " + n.of.String()
}

// term is one statement about a step, an oracle or the server.
type term struct {
	word  string // rows, count, affected, ok, failed, blocked, found, crashed
	of    string // the step or oracle
	how   string // rows: are, contain, lack
	rows  [][]answer.Value
	n     int64    // count, affected
	codes []string // failed: one of these, if any
}

func (t term) steps(yield func(string)) {
	if t.word != "found" && t.word != "crashed" {
		yield(t.of)
	}
}

func (t term) eval(r Results) Truth {
	switch t.word {
	case "crashed":
		return truth(r.Crashed())
	case "found":
		found, known := r.Found(t.of)
		if !known {
			return Unknown
		}
		return truth(found)
	}
	st, ran := r.Step(t.of)
	switch t.word {
	case "ok":
		return truth(ran && st.Err == nil)
	case "failed":
		return truth(ran && st.Err != nil && (len(t.codes) == 0 || slices.Contains(t.codes, st.Err.Code)))
	case "blocked":
		return truth(ran && st.Blocked)
	}
	if !ran || st.Err != nil {
		return False
	}
	switch t.word {
	case "count":
		return truth(int64(len(st.Rows)) == t.n)
	case "affected":
		return truth(st.Affected == t.n)
	}
	return truth(compareRows(t.how, st.Rows, t.rows))
}

// compareRows compares rows as multisets: the order in which a server returns them is not looked at.
func compareRows(how string, got, want [][]answer.Value) bool {
	left := slices.Clone(got)
	missing := 0
	for _, row := range want {
		i := slices.IndexFunc(left, func(x []answer.Value) bool { return answer.SameRow(x, row) })
		if i < 0 {
			missing++
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	switch how {
	case "are":
		return missing == 0 && len(left) == 0
	case "contain":
		return missing == 0
	}
	return missing == len(want) // lack: none of them is there
}

func (t term) String() string {
	switch t.word {
	case "crashed":
		return t.word
	case "rows":
		rows := make([]string, len(t.rows))
		for i, row := range t.rows {
			rows[i] = RowText(row)
		}
		if len(rows) == 0 {
			rows = []string{"none"}
		}
		return fmt.Sprintf("rows(%s) %s %s", quoteName(t.of), t.how, strings.Join(rows, ", "))
	case "count", "affected":
		return fmt.Sprintf("%s(%s) = %d", t.word, quoteName(t.of), t.n)
	case "failed":
		if len(t.codes) > 0 {
			return fmt.Sprintf("failed(%s) with %s", quoteName(t.of), strings.Join(t.codes, ", "))
		}
	case "found":
		return fmt.Sprintf("found(%s)", t.of)
	}
	return fmt.Sprintf("%s(%s)", t.word, quoteName(t.of))
}

// RowText gives a row as conditions write it: values joined by |, quoted where needed, NULL for NULL.
func RowText(row []answer.Value) string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = answer.Text(v)
		if v == nil {
			continue
		}
		switch text := texts[i]; {
		case text == "" || text == "NULL" || text == "none" || text == "and" || text == "or" || strings.ContainsAny(text, " \t,|()'\"="):
			texts[i] = "'" + strings.ReplaceAll(text, "'", "''") + "'"
		}
	}
	return strings.Join(texts, "|")
}
