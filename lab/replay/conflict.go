package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/statement"
	"wirecheck/trace/flow"
)

// Conflict says what the refusal of a statement, for a row that has changed behind the transaction's snapshot, has prevented.
type Conflict string

// The conflicts.
const (
	// TrueConflict: it would have overwritten a column that another transaction had changed behind its snapshot.
	TrueConflict Conflict = "true conflict"
	// RowLevelOnly: the two change different columns of the row, or the server computes the new value from the newest one.
	RowLevelOnly Conflict = "row-level only"
	// UnknownConflict: the texts do not tell which row and columns it was about.
	UnknownConflict Conflict = "unknown"
)

// Refusal is a statement that the server refused because of other transactions.
type Refusal struct {
	Txn      *Txn
	Step     *Noted
	Code     string
	Reason   answer.Reason
	Conflict Conflict // empty: the reason is no such conflict (a deadlock, a lock time-out)
	Columns  []string // that both change
	Writer   *Txn     // that changed the row; nil: unknown
	Table    string
	// Read are the columns of the row that it had read and the writer changed, where it changes others: what it writes may rest on what is no longer so.
	Read []string
	Why  string // where no writer is known
}

// Refusals are the statements that the server refused because of other transactions, in order.
func (t *Trail) Refusals() (list []*Refusal) {
	for _, x := range t.Txns {
		for i, n := range x.Steps {
			if n.Answer.Err == nil || !n.Outcome.Reason.Contention() {
				continue
			}
			r := &Refusal{Txn: x, Step: n, Code: n.Answer.Err.Code, Reason: n.Outcome.Reason}
			if r.Reason == answer.ReasonSerialization {
				t.judge(r, i)
			}
			list = append(list, r)
		}
	}
	return list
}

// change is what a transaction does to a row of a table.
type change struct {
	columns map[string]bool // true: computed by the server from the row as it is
	all     bool            // the row goes away
}

func (c *change) has(column string) bool { _, ok := c.columns[column]; return ok || c.all }

// aim is the table and the row that a statement aims at, as far as its text tells.
type aim struct {
	table string
	keys  map[string]string // columns that the condition fixes
}

// judge finds the writer that a refused step met, and compares columns.
func (t *Trail) judge(r *Refusal, at int) {
	r.Conflict = UnknownConflict
	at0, ok := t.aims(r.Step.Step)
	if !ok {
		r.Why = "the statement names no row: what it met, the server does not say"
		return
	}
	r.Table = at0.table
	mine := t.changes(r.Txn, at0)
	read := t.read(r.Txn, at, at0)
	for _, o := range t.writers(r) {
		theirs := t.changes(o, at0.without(mine))
		if !t.meets(o, at0, mine, &theirs) {
			continue
		}
		t.unchanged(o, at0, &theirs, read)
		found := RowLevelOnly
		var columns, stale []string
		for c := range theirs.columns {
			computed := mine.columns[c]
			switch _, seen := read[c]; {
			case mine.has(c) && (!computed || seen):
				found, columns = TrueConflict, append(columns, c)
			case seen:
				stale = append(stale, c)
			}
		}
		if theirs.all && (len(mine.columns) > 0 || mine.all) {
			found = TrueConflict
		}
		if r.Writer == nil || found == TrueConflict && r.Conflict != TrueConflict {
			r.Writer, r.Conflict, r.Columns, r.Read = o, found, columns, stale
		}
	}
	slices.Sort(r.Columns)
	slices.Sort(r.Read)
	if r.Writer == nil {
		r.Why = "no other transaction that committed meanwhile changed a row that this statement names"
	}
}

// writers are the transactions that committed behind the snapshot of a refused one and before it was refused.
func (t *Trail) writers(r *Refusal) (list []*Txn) {
	began := 0
	for _, n := range r.Txn.Steps {
		if len(n.tables) > 0 && n.sent > 0 {
			began = n.sent
			break
		}
	}
	for _, o := range t.Txns {
		if o != r.Txn && o.ended > began && o.ended < r.Step.done {
			list = append(list, o)
		}
	}
	return list
}

// aims finds the row that a statement locks or changes.
func (t *Trail) aims(s *Step) (a aim, ok bool) {
	if len(s.verbs) != 1 {
		return a, false
	}
	v := &s.verbs[0]
	switch {
	case (v.Verb == "update" || v.Verb == "delete") && len(v.Targets()) == 1:
		a.table = strings.ToLower(v.Targets()[0].Name)
	case v.Verb == "select" && len(v.Reads()) == 1:
		a.table = strings.ToLower(v.Reads()[0].Name)
	default:
		return a, false
	}
	a.keys = map[string]string{}
	if words(v.Clauses.Where)["or"] {
		return a, true
	}
	for _, l := range flow.Literals(s.SQL, t.dialect) {
		if l.Clause == "where" && l.Column != "" {
			a.keys[l.Column] = l.Value
		}
	}
	return a, true
}

// without leaves out the columns that somebody changes: they say nothing of which row it is.
func (a aim) without(changed ...change) aim {
	keys := maps.Clone(a.keys)
	for _, c := range changed {
		maps.DeleteFunc(keys, func(column, _ string) bool { _, is := c.columns[column]; return is })
	}
	return aim{a.table, keys}
}

// same reports whether two statements can be about the same row.
func (a aim) same(b aim) bool {
	if a.table != b.table {
		return false
	}
	for column, v := range a.keys {
		if w, ok := b.keys[column]; ok && !flow.Same(v, w) {
			return false
		}
	}
	return true
}

// changes is what a transaction does to the row, whether it came to that or not.
func (t *Trail) changes(x *Txn, row aim) change {
	c := change{columns: map[string]bool{}}
	for _, n := range x.Steps {
		a, ok := t.aims(n.Step)
		if !ok || !row.same(a.without(assigned(n.Step))) {
			continue
		}
		c.all = c.all || n.verbs[0].Verb == "delete"
		for column, computed := range assigned(n.Step).columns {
			before, known := c.columns[column]
			c.columns[column] = computed && (before || !known)
		}
	}
	return c
}

// assigned are the columns that a statement sets.
func assigned(s *Step) change {
	c := change{columns: map[string]bool{}}
	for _, v := range s.verbs {
		if v.Verb != "update" {
			continue
		}
		for _, a := range v.Assignments {
			column := strings.ToLower(a.Column)
			c.columns[column] = words(a.Expr)[column]
		}
	}
	return c
}

// meets reports whether a transaction changes the row that a refused one aims at. What either of them changes does not tell rows apart.
func (t *Trail) meets(o *Txn, row aim, mine change, theirs *change) bool {
	return slices.ContainsFunc(o.Steps, func(n *Noted) bool {
		a, ok := t.aims(n.Step)
		return ok && n.verbs[0].Verb != "select" && row.without(mine, *theirs).same(a.without(mine, *theirs))
	})
}

// read are the columns of the row that a transaction has read before a step, and their values where the answer has one row.
func (t *Trail) read(x *Txn, before int, row aim) map[string]string {
	list := map[string]string{}
	for _, n := range x.Steps[:before] {
		if len(n.verbs) != 1 || n.verbs[0].Verb != "select" || n.verbs[0].Locking.Lock != statement.LockNone ||
			!slices.ContainsFunc(n.tables, func(u use) bool { return u.name == row.table }) {
			continue
		}
		if a, ok := t.aims(n.Step); ok && !row.same(a) {
			continue
		}
		for _, r := range n.Answer.Results {
			for i, c := range r.Columns {
				v := ""
				if len(r.Rows) == 1 {
					v = string(r.Rows[0][i])
				}
				list[strings.ToLower(c.Name)] = v
			}
		}
	}
	return list
}

// unchanged leaves out the columns that a transaction sets to the value that they have: an ORM that saves all columns changes few.
func (t *Trail) unchanged(o *Txn, row aim, c *change, read map[string]string) {
	before := t.read(o, len(o.Steps), row.without(*c))
	for _, n := range o.Steps {
		if len(n.verbs) != 1 || n.verbs[0].Verb != "update" {
			continue
		}
		for _, l := range flow.Literals(n.SQL, t.dialect) {
			had, known := before[l.Column]
			if !known {
				had, known = read[l.Column]
			}
			if l.Clause == "set" && l.Column != "" && known && had != "" && flow.Same(had, l.Value) {
				delete(c.columns, l.Column)
			}
		}
	}
}

// Text says it for people; names gives a transaction's name.
func (r *Refusal) Text(name func(*Txn) string) string {
	switch {
	case r.Conflict == "":
		return string(r.Reason)
	case r.Writer == nil:
		return r.Why
	case r.Conflict == TrueConflict && len(r.Columns) > 0:
		return fmt.Sprintf("%s: it would have overwritten %s, which %s had changed", r.Table, strings.Join(r.Columns, ", "), name(r.Writer))
	case r.Conflict == TrueConflict:
		return fmt.Sprintf("%s: %s had removed the row", r.Table, name(r.Writer))
	case len(r.Read) > 0:
		return fmt.Sprintf("%s: %s had changed other columns, of which it had read %s", r.Table, name(r.Writer), strings.Join(r.Read, ", "))
	}
	return fmt.Sprintf("%s: nothing that %s had changed would have been overwritten", r.Table, name(r.Writer))
}
