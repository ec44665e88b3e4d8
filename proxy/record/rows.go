package record

import (
	"strings"

	"wirecheck/history"
	"wirecheck/trace/flow"
)

// Rows that statements name by their values: an INSERT that makes a row anew in the place of one that its request had read, a REPLACE, and the rows of an
// upsert or of UPDATE ... FROM (VALUES ...). What people know a row by (history.Access.Name) tells which row that is.

// rowName is a row by the name that people know it by.
type rowName struct{ table, name string }

// called notes the name of a row that was read. A row that has the name of another one stands in its place (MySQL family: it was deleted and inserted
// anew), and what the request knows of that one is what it knows of this one. mu is held.
func (known *reads) called(a *history.Access) {
	if a.Name == "" {
		return
	}
	if known.names == nil {
		known.names, known.named = map[history.Row]string{}, map[rowName]history.Row{}
	}
	key := rowName{a.Row.Table, a.Name}
	if old, ok := known.named[key]; ok && old != a.Row {
		if values := known.rows[old]; values != nil && known.rows[a.Row] == nil {
			known.rows[a.Row] = values
			delete(known.rows, old)
		}
		delete(known.names, old)
	}
	known.names[a.Row], known.named[key] = a.Name, a.Row
}

// compared notes that a DELETE compares a column with what the request read of it last: an INSERT behind it rests on that read. mu is held.
func (known *reads) compared(ev *history.Event) {
	for row, values := range known.rows {
		if !strings.Contains(strings.ToLower(ev.SQL), strings.ToLower(history.Bare(row.Table))) || !addresses(values, ev.Operands) || !renews(values, ev.Operands) {
			continue
		}
		for column, v := range values {
			v.earlier = nil
			values[column] = v
		}
	}
}

// hasRead reports whether a request has read rows.
func (rs *Requests) hasRead(request string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.reads[request]
	return known != nil && len(known.rows) > 0
}

// rowNamed finds the row of a statement that a row's name names. It is not certain that the statement does not write the row if one of its rows does not tell the
// values of the columns.
func rowNamed(rows []flow.Row, name string) (row *flow.Row, certain bool) {
	certain = name != ""
	for i := range rows {
		switch is, known := names(rows[i].Named, name); {
		case is && known:
			return &rows[i], true
		case !known:
			certain = false
		}
	}
	return nil, certain
}

// names reports whether values are those of a name such as "shop=1, id='x'"; it is not known if one of the columns has none.
func names(values map[string]string, name string) (is, known bool) {
	is = name != ""
	for part := range strings.SplitSeq(name, ", ") {
		column, value, _ := strings.Cut(part, "=")
		given, ok := values[strings.ToLower(column)]
		if !ok {
			return false, false
		}
		if n := len(value); n >= 2 && value[0] == '\'' && value[n-1] == '\'' {
			value = value[1 : n-1]
		}
		is = is && (given == value || flow.SameNumber(given, value))
	}
	return is, true
}
