package flow

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// Written is what a statement writes, as far as its text tells.
type Written struct {
	Table    string            // its bare name
	Operands []history.Operand // the columns that it assigns and compares
	// Rows are the rows that the statement names by their values: of an INSERT, a REPLACE or an upsert, of UPDATE ... FROM (VALUES ...), and of the branches of CASE.
	Rows []Row
	// New says that it makes these rows: it is an INSERT or a REPLACE.
	New bool
}

// Row is a row that a statement names by values of some of its columns, and the columns that it assigns there.
type Row struct {
	Named    map[string]string
	Operands []history.Operand
}

// Times says of the columns to which the statement, sent at a time in nanoseconds since 1970, gave just that time that they got it.
func (w *Written) Times(at int64) {
	Times(w.Operands, at)
	for i := range w.Rows {
		Times(w.Rows[i].Operands, at)
	}
}

// Write reads what an UPDATE, an INSERT, a REPLACE or a DELETE does, by tokens alone. all are the columns of an INSERT that does not list them.
func Write(sql string, d lex.Dialect, params []Param, all []string) (w Written) {
	u := readUpdate(sql, d, params)
	switch {
	case u.list != nil:
		w = Written{Table: u.name, Operands: u.list}
		switch {
		case u.tokens[0].Is("insert") && len(u.rows) > 0 && len(u.rows[0]) == 0 && len(all) > 0: // an upsert without a list of columns
			u = update{}
			u.read(sql, d, params)
			set, named := u.upsert(all)
			if _, ok := u.assignments(set + 1); ok {
				w.Operands, w.Rows = u.list, u.offeredRows()
			}
			w.Table = u.table(named)
		case len(u.rows) > 1 || u.from > 0:
			w.Rows = u.offeredRows()
		case len(u.branches) > 0:
			w.Rows = u.casedRows()
		}
		return w
	case len(u.tokens) == 0:
		return w
	}
	u = update{}
	u.read(sql, d, params)
	switch {
	case u.tokens[0].Is("delete"):
		return u.deletes()
	case !u.tokens[0].Is("insert") && !u.tokens[0].Is("replace"):
		return w
	}
	set, named := u.upsert(all)
	if set >= 0 || named == 0 || len(u.rows) == 0 {
		return w
	}
	w = Written{Table: u.table(named), New: true}
	for _, row := range u.rows {
		r := Row{Named: map[string]string{}}
		for name, o := range row {
			if r.Operands = append(r.Operands, o); o.Role == history.RoleSet {
				r.Named[name] = o.Value
			}
		}
		slices.SortFunc(r.Operands, func(a, b history.Operand) int { return strings.Compare(a.Column, b.Column) })
		w.Rows = append(w.Rows, r)
	}
	w.Operands = common(w.Rows)
	return w
}

// common are the operands of all rows: those whose values differ are not known.
func common(rows []Row) (list []history.Operand) {
	list = slices.Clone(rows[0].Operands)
	for i := range list {
		for _, r := range rows[1:] {
			if i >= len(r.Operands) || r.Operands[i] != list[i] {
				list[i] = history.Operand{Column: list[i].Column, Role: history.RoleUnknown}
			}
		}
	}
	return list[:min(len(list), maxOperands)]
}

// deletes reads a DELETE of one table.
func (u *update) deletes() Written {
	where := slices.IndexFunc(u.tokens, func(t lex.Token) bool { return t.Is("where") })
	if where < 0 {
		where = len(u.tokens)
	}
	if slices.ContainsFunc(u.tokens[:where], func(t lex.Token) bool { return t.Text == "," || t.Is("using") || t.Is("join") }) || len(u.tokens) < 3 || !u.tokens[1].Is("from") {
		return Written{}
	}
	u.begin = 1
	u.conditions(where + 1)
	return Written{Table: u.table(where), Operands: u.list[:min(len(u.list), maxOperands)]}
}

// offeredRows are the rows beside the table with what each assigns.
func (u *update) offeredRows() (list []Row) {
	keys := map[string]string{} // a column of the table, and the one of the row that it is compared with
	for i := u.from; u.from > 0 && i+4 < len(u.tokens); i++ {
		for _, from := range []int{i, i + 2} { // v . c = [t .] id, and id = v . c
			t := u.tokens[from:]
			if len(t) < 3 || t[1].Text != "." || column(t[0]) != u.alias {
				continue
			}
			switch other := i; {
			case from == i && u.tokens[i+3].Text == "=":
				if other = i + 4; i+6 < len(u.tokens) && u.tokens[i+5].Text == "." {
					other = i + 6
				}
				keys[column(u.tokens[other])] = column(t[2])
			case from == i+2 && u.tokens[i+1].Text == "=":
				keys[column(u.tokens[other])] = column(t[2])
			}
		}
	}
	for _, row := range u.rows {
		r := Row{Named: map[string]string{}}
		for name, o := range row {
			if u.from == 0 && o.Role == history.RoleSet {
				r.Named[name] = o.Value
			}
		}
		for name, of := range keys {
			if o := row[of]; o.Role == history.RoleSet {
				r.Named[name] = o.Value
			}
		}
		for _, o := range u.list {
			if of, ok := u.taken[o.Column]; ok && o.Role.Assigns() {
				if given, known := row[of]; known {
					o.Role, o.Value = given.Role, given.Value
				}
			}
			r.Operands = append(r.Operands, o)
		}
		list = append(list, r)
	}
	return list
}
