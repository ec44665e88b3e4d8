package trace

import (
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/trace/lex"
	"wirecheck/trace/secret"
)

// session is what hide must know of a session.
type session struct {
	dialect lex.Dialect
	secret  bool // the last statement had to do with a secret: SHOW WARNINGS may show it
}

// hide gives a record without passwords: r itself, or a copy.
func (w *Writer) hide(r *Record) *Record {
	switch r.Kind {
	case KindSession:
		w.sessions[r.Session] = session{dialect: lex.Of(product.Of(r.Open.Product).Dialect)}
	case KindEnd:
		delete(w.sessions, r.Session)
	case KindStatement:
		s := w.sessions[r.Session]
		words := lex.Words(r.Statement.SQL, s.dialect, 2)
		again := len(words) == 2 && words[0] == "show" && (words[1] == "warnings" || words[1] == "errors")
		st, about := hideStatement(r.Statement, s.dialect, s.secret && again)
		if about = about || s.secret && again; about != s.secret {
			s.secret = about
			w.sessions[r.Session] = s
		}
		if st != r.Statement {
			hidden := *r
			hidden.Statement = st
			return &hidden
		}
	case KindHistory: // what a proxy recorded has none; an older file may
		if h := secret.SQL(r.History.SQL, w.sessions[r.Session].dialect); h.Found {
			hidden, event := *r, *r.History
			event.SQL, event.Error = h.SQL, secret.Error(event.Error)
			hidden.History = &event
			return &hidden
		}
	}
	return r
}

// hideStatement hides what a statement, its parameters and its answer hold of passwords. The tracker of a proxy's sessions
// hides those of the history. about says that the statement, or the one whose warnings it shows, has to do with passwords.
func hideStatement(st *Statement, d lex.Dialect, warnings bool) (shown *Statement, about bool) {
	sql, prepared := secret.SQL(st.SQL, d), secret.SQL(st.Prepared, d)
	hidden := *st
	hidden.SQL, hidden.Prepared = sql.SQL, prepared.SQL
	changed := sql.Any() || prepared.Any()
	about = changed
	params := sql.Params || prepared.Params
	for i, p := range st.Params {
		v := p.Value
		switch {
		case p.Null:
		case params:
			v = secret.Mark
		case !p.Binary:
			v = secret.Value(v, d)
		}
		if v != p.Value {
			if &hidden.Params[0] == &st.Params[0] {
				hidden.Params = slices.Clone(st.Params)
			}
			hidden.Params[i].Value, hidden.Params[i].Binary = v, false
			changed = true
		}
	}
	if changed {
		hidden.Error = secret.Error(st.Error)
	}
	for i, res := range st.Results {
		shown := hideResult(res, d, about, warnings)
		if shown == nil {
			continue
		}
		if &hidden.Results[0] == &st.Results[0] {
			hidden.Results = slices.Clone(st.Results)
		}
		hidden.Results[i], changed = *shown, true
	}
	if !changed {
		return st, about
	}
	return &hidden, about
}

// hideResult gives a result without what it holds of passwords; nil if it holds none. about says that the statement has to
// do with passwords: the server may have made one. warnings are those of such a statement.
func hideResult(res Result, d lex.Dialect, about, warnings bool) *Result {
	var rows [][]Value
	var columns []answer.Column
	for k, c := range res.Columns { // MySQL family: an expression's text is its column's name
		if name := secret.Value(c.Name, d); name != c.Name {
			if columns == nil {
				columns = slices.Clone(res.Columns)
			}
			columns[k].Name = name
		}
	}
	for i, row := range res.Rows {
		for k, v := range row {
			shown := v.Text
			switch {
			case v.Null || v.Binary:
			case warnings:
				shown = secret.Mark
			case about && k < len(res.Columns) && strings.Contains(strings.ToLower(res.Columns[k].Name), "password"):
				shown = secret.Mark
			default:
				shown = secret.Value(shown, d)
			}
			if shown == v.Text {
				continue
			}
			if rows == nil {
				rows = slices.Clone(res.Rows)
			}
			if &rows[i][0] == &res.Rows[i][0] {
				rows[i] = slices.Clone(row)
			}
			rows[i][k].Text = shown
		}
	}
	switch {
	case rows == nil && columns == nil:
		return nil
	case columns != nil:
		res.Columns = columns
	}
	if rows == nil {
		return &res
	}
	res.Rows, res.Digest = rows, "" // a digest would tell whether a secret is guessed right
	return &res
}
