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
	all   bool              // there is no condition: it is about every row
	sure  bool              // only what is surely about the same row is to count
}

// Keys are the columns of the unique keys of each table, by its name. One whose name stands for several tables has none.
type Keys map[string][][]string

// judge finds the writer that a refused step met, and compares columns. What it says must hold whether or not those statements are about the row of
// which the texts do not tell it.
func (t *Trail) judge(r *Refusal, at int) {
	r.Conflict = UnknownConflict
	row, ok := t.aims(r.Step.Step)
	if !ok {
		r.Why = "the statement names no row: what it met, the server does not say"
		return
	}
	r.Table = row.table
	if t.Keys.of(row) == nil {
		r.Why = "the statement fixes no whole key of " + row.table + ": which row it met, the server does not say"
		return
	}
	may := *r
	t.weigh(&may, row, at)
	row.sure = true
	t.weigh(r, row, at)
	switch {
	case may.Writer == nil:
		r.Why = "no other transaction that committed meanwhile changed a row that this statement names"
	case r.Writer == nil || may.Conflict != r.Conflict:
		r.Writer, r.Conflict, r.Columns, r.Read = nil, UnknownConflict, nil, nil
		r.Why = "it is not known which statements are about the same row: they fix no whole key of " + row.table
	}
}

// weigh compares what a refused transaction does to a row with what the others do.
func (t *Trail) weigh(r *Refusal, row aim, at int) {
	mine, read := t.changes(r.Txn, row), t.read(r.Txn, at, row)
	for _, o := range t.writers(r) {
		theirs := t.changes(o, row.without(mine))
		if !t.meets(o, row, mine, &theirs) {
			continue
		}
		t.unchanged(o, row, &theirs, read)
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
	if len(s.verbs()) != 1 {
		return a, false
	}
	v := &s.verbs()[0]
	switch {
	case (v.Verb == "update" || v.Verb == "delete") && len(v.Targets()) == 1:
		a.table = strings.ToLower(v.Targets()[0].Name)
	case v.Verb == "select" && len(v.Reads()) == 1:
		a.table = strings.ToLower(v.Reads()[0].Name)
	default:
		return a, false
	}
	a.keys, a.all = map[string]string{}, v.Clauses.Where == "" && v.Clauses.Limit == ""
	if w := words(v.Clauses.Where); w["or"] || w["not"] || w["select"] || len(v.Tables) > 1 {
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
	a.keys = maps.Clone(a.keys)
	for _, c := range changed {
		maps.DeleteFunc(a.keys, func(column, _ string) bool { _, is := c.columns[column]; return is })
	}
	return a
}

// same reports whether a statement can be about the row that another one aims at, or surely is, if that asks for it.
func (k Keys) same(row, b aim) bool {
	if row.table != b.table {
		return false
	}
	both := map[string]string{}
	for column, v := range row.keys {
		w, ok := b.keys[column]
		switch {
		case !ok:
		case flow.Same(v, w):
			both[column] = v
		case !strings.EqualFold(v, w): // some columns take them for the same
			return false
		}
	}
	return !row.sure || b.all || k.of(aim{table: row.table, keys: both}) != nil
}

// of gives the columns of a unique key that an aim fixes; nil: it fixes none.
func (k Keys) of(a aim) []string {
	return statement.Whole(k[a.table], func(column string) bool { _, ok := a.keys[column]; return ok })
}

// changes is what a transaction does to the row, whether it came to that or not.
func (t *Trail) changes(x *Txn, row aim) change {
	c := change{columns: map[string]bool{}}
	for _, n := range x.Steps {
		a, ok := t.aims(n.Step)
		if !ok || !t.Keys.same(row, a.without(assigned(n.Step))) {
			continue
		}
		c.all = c.all || n.verbs()[0].Verb == "delete"
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
	for _, v := range s.verbs() {
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
		return ok && n.verbs()[0].Verb != "select" && t.Keys.same(row.without(mine, *theirs), a.without(mine, *theirs))
	})
}

// read are the columns of the row that a transaction has read before a step, and their values where the answer has one row.
func (t *Trail) read(x *Txn, before int, row aim) map[string]string {
	list := map[string]string{}
	for _, n := range x.Steps[:before] {
		if len(n.verbs()) != 1 || n.verbs()[0].Verb != "select" || n.verbs()[0].Locking.Lock != statement.LockNone ||
			!slices.ContainsFunc(n.tables, func(u use) bool { return u.name == row.table }) {
			continue
		}
		a, ok := t.aims(n.Step)
		about := !ok && !row.sure || ok && t.Keys.same(row, a)
		for _, r := range n.Answer.Results {
			values, known := t.Keys.find(row, n.SQL, &r)
			switch {
			case known && values == nil, !known && !about:
				continue
			case !known && len(r.Rows) == 1:
				values = r.Rows[0]
			}
			for i, c := range r.Columns {
				v := ""
				if values != nil {
					v = string(values[i])
				}
				list[aliased(n.SQL, strings.ToLower(c.Name))] = v
			}
		}
	}
	return list
}

// find finds the row in an answer that has the columns of the key by which the row is known. known: it has them.
func (k Keys) find(row aim, sql string, r *answer.Result) (values []answer.Value, known bool) {
	key := k.of(row)
	at := make([]int, len(key))
	for i, column := range key {
		at[i] = slices.IndexFunc(r.Columns, func(c answer.Column) bool { return aliased(sql, strings.ToLower(c.Name)) == column })
	}
	if len(key) == 0 || slices.Contains(at, -1) {
		return nil, false
	}
	for _, values := range r.Rows {
		is := true
		for i, column := range key {
			is = is && flow.Same(string(values[at[i]]), row.keys[column])
		}
		if is {
			return values, true
		}
	}
	return nil, true
}

// unchanged leaves out the columns that a transaction sets to the value that they have: an ORM that saves all columns changes few.
func (t *Trail) unchanged(o *Txn, row aim, c *change, read map[string]string) {
	before := t.read(o, len(o.Steps), row.without(*c))
	for _, n := range o.Steps {
		a, ok := t.aims(n.Step)
		if len(n.verbs()) != 1 || n.verbs()[0].Verb != "update" || !ok || !t.Keys.same(row.without(*c), a.without(*c)) {
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
