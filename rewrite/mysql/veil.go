package mysql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// Where the hidden columns are ordinary ones (TiDB), what would show them, or count them, is written out: *, TABLE t, INSERT
// without a list of columns, NATURAL JOIN. That is done for every statement that is understood, also where what it reads or writes
// cannot be seen. What cannot be written out with certainty goes through as it is, opaque: then the session takes the
// columns out of the answer if they are its last ones, and otherwise they show.

// showing is why such a statement is not seen.
const showing = "it may show the hidden columns, which are ordinary ones on this server"

// veil finds what must be written out in a statement. It reports whether that is certain.
func (s *draft) veil(n ast.Node) bool {
	v := veiler{s: s, ok: true}
	visit(n, func(n ast.Node) {
		if c, ok := n.(*ast.CommonTableExpression); ok {
			v.ctes = append(v.ctes, c.Name.O)
		}
	})
	visit(n, v.enter)
	if insert, is := n.(*ast.InsertStmt); is {
		v.insert(insert)
	}
	if v.ok {
		s.veils = append(s.veils, v.edits...)
	}
	return v.ok
}

// veilView does the same for CREATE VIEW, whose columns are those of its SELECT for ever.
func (s *draft) veilView() {
	if !alwaysVisible(s.r.flavor) || !s.catalog.Usable() || s.session.Mode&mysqlsyntax.Foreign != 0 || !s.text.Is(0, "CREATE") {
		return
	}
	n, err := s.r.parser.Parse(s.plan.Text, s.session.Mode)
	if view, ok := n.(*ast.CreateViewStmt); err == nil && ok && view.Select != nil {
		s.veil(view.Select)
	}
}

// putVeil makes the plan's edits of what is written out alone.
func (s *draft) putVeil(parsed string) {
	list := s.veils
	if s.veilList != nil {
		list = append([]edit{*s.veilList}, list...)
	}
	if len(list) == 0 {
		s.plan.Edits = nil
		return
	}
	list = inOrder(list)
	if _, err := s.r.parser.Parse(rewrite.Apply(parsed, s.checks(list)), s.session.Mode); err != nil {
		if _, err = s.r.parser.Parse(parsed, s.session.Mode); err == nil {
			return
		} // else the server finds out: if it refuses the new text, it gets the client's own
	}
	s.plan.Edits = nil
	for _, e := range list {
		s.plan.Edits = append(s.plan.Edits, rewrite.Edit{At: e.at, Cut: e.cut, Add: e.add})
	}
}

// checks are the edits of the text that is parsed again.
func (s *draft) checks(list []edit) []rewrite.Edit {
	out := make([]rewrite.Edit, len(list))
	for i, e := range list {
		out[i] = rewrite.Edit{At: e.at - s.base, Cut: e.cut, Add: e.check}
	}
	return out
}

// inOrder sorts edits; what is cut out stands before what is put in behind it.
func inOrder(list []edit) []edit {
	slices.SortStableFunc(list, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return b.cut - a.cut
	})
	return list
}

type veiler struct {
	s      *draft
	ctes   []string
	exists []*ast.SelectStmt // those of EXISTS: their columns never show
	edits  []edit
	ok     bool
}

func (v *veiler) enter(n ast.Node) {
	switch n := n.(type) {
	case *ast.ExistsSubqueryExpr: // where it has no other name, a column of the answer is named by its text
		if sub, ok := n.Sel.(*ast.SubqueryExpr); ok {
			if q, ok := sub.Query.(*ast.SelectStmt); ok {
				v.exists = append(v.exists, q)
			}
		}
	case *ast.SelectStmt:
		if n.From != nil && v.ok {
			v.query(n)
		}
	}
}

func (v *veiler) edit(at, cut int, add string) {
	v.edits = append(v.edits, edit{at: at, cut: cut, add: add, check: add})
}

// query writes out one SELECT.
func (v *veiler) query(n *ast.SelectStmt) {
	list, ok := v.s.sources(n.From.TableRefs, v.ctes)
	if !slices.ContainsFunc(list, func(src source) bool { return src.shows() }) {
		v.ok = v.ok && ok
		return
	}
	if !ok {
		v.ok = false
		return
	}
	if n.Kind == ast.SelectStmtKindTable {
		v.table(&list[0])
		return
	}
	merged, ok := v.merged(n.From.TableRefs, list)
	if !ok {
		v.ok = false
		return
	}
	for _, f := range n.Fields.Fields {
		if f.WildCard != nil && !slices.Contains(v.exists, n) {
			v.wildcard(f, list, merged)
		}
	}
}

// shows reports whether * of the table has our columns.
func (src *source) shows() bool {
	return src.rel != nil && (has(src.rel, columnRowID) || has(src.rel, columnWriters))
}

// fields are the client's columns of a source as SQL text, without those of skip.
func (src *source) fields(skip []string) []string {
	if !src.shows() {
		ref := cmp.Or(src.ref, mysqlsyntax.Quote(src.alias))
		return []string{ref + ".*"}
	}
	var out []string
	for _, c := range src.rel.Columns {
		if !c.Hidden && !mysqlsyntax.ContainsName(skip, c.Name) {
			out = append(out, src.ref+"."+mysqlsyntax.Quote(c.Name))
		}
	}
	return out
}

// wildcard writes out *, t.* or s.t.*.
func (v *veiler) wildcard(f *ast.SelectField, list []source, merged []string) {
	t := v.s.text
	first := slices.IndexFunc(t.Tokens, func(tok statement.Token) bool { return tok.Start == v.s.base+f.Offset })
	last, table := first, f.WildCard.Table.O
	if table != "" {
		last += 2
	}
	if f.WildCard.Schema.O != "" {
		last += 2
	}
	if first < 0 || !t.Is(last, "*") {
		v.ok = false
		return
	}
	var columns []string
	if table == "" {
		for _, c := range merged {
			columns = append(columns, list[0].ref+"."+mysqlsyntax.Quote(c))
		}
	}
	for i := range list {
		src := &list[i]
		switch {
		case table == "":
			if src.alias == "" {
				v.ok = false
				return
			}
			columns = append(columns, src.fields(merged)...)
		case strings.EqualFold(table, src.alias) && (f.WildCard.Schema.O == "" || src.rel != nil && strings.EqualFold(f.WildCard.Schema.O, src.rel.Schema)):
			columns = append(columns, src.fields(nil)...)
		}
	}
	if len(columns) == 0 {
		return // the server's error
	}
	from := t.Tokens[first].Start
	v.edit(from, t.Tokens[last].End-from, strings.Join(columns, ","))
}

// table writes out TABLE t, if there is one only.
func (v *veiler) table(src *source) {
	t := v.s.text
	at := -1
	for i := range t.Tokens {
		if t.Is(i, "TABLE") {
			if at >= 0 {
				v.ok = false
				return
			}
			at = i
		}
	}
	if at < 0 {
		v.ok = false
		return
	}
	tok := t.Tokens[at]
	v.edit(tok.Start, tok.End-tok.Start, "SELECT "+strings.Join(src.fields(nil), ",")+" FROM")
}

// merged gives the columns that NATURAL JOIN or USING make one, in the order in which * shows them first. A NATURAL JOIN gets
// USING instead, as it would compare our columns too. Only joins of two tables that keep the left one's rows are understood.
func (v *veiler) merged(n ast.ResultSetNode, list []source) (columns []string, ok bool) {
	j, isJoin := n.(*ast.Join)
	if !isJoin || j.Right == nil {
		if isJoin {
			return v.merged(j.Left, list)
		}
		return nil, true
	}
	if !joinsByName(n) {
		return nil, true
	}
	_, left := j.Left.(*ast.TableSource)
	right, isSource := j.Right.(*ast.TableSource)
	if !left || !isSource || len(list) != 2 || list[0].rel == nil || list[1].rel == nil || j.Tp == ast.RightJoin {
		return nil, false
	}
	in := list[1].visible()
	if !j.NaturalJoin {
		in = nil
		for _, c := range j.Using {
			in = append(in, c.Name.L)
		}
	}
	for _, c := range list[0].rel.Columns {
		if !c.Hidden && mysqlsyntax.ContainsName(in, c.Name) {
			columns = append(columns, c.Name)
		}
	}
	if !j.NaturalJoin {
		return columns, len(columns) == len(in)
	}
	return columns, len(columns) > 0 && v.using(right, columns)
}

func joinsByName(n ast.ResultSetNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		return n.NaturalJoin || len(n.Using) > 0 || joinsByName(n.Left) || n.Right != nil && joinsByName(n.Right)
	case *ast.TableSource:
		j, ok := n.Source.(*ast.Join)
		return ok && joinsByName(j)
	}
	return false
}

// using makes a NATURAL JOIN with a table one with USING.
func (v *veiler) using(right *ast.TableSource, columns []string) bool {
	t := v.s.text
	at := slices.IndexFunc(t.Tokens, func(tok statement.Token) bool { return strings.EqualFold(t.SQL[tok.Start:tok.End], "NATURAL") })
	if at < 0 || t.Find(at+1, t.Tokens[at].Depth, "NATURAL") >= 0 {
		return false
	}
	join := t.Find(at, t.Tokens[at].Depth, "JOIN")
	_, _, i, ok := t.Qualified(join + 1)
	if join < 0 || !ok {
		return false
	}
	if right.AsName.O != "" {
		if t.Is(i, "AS") {
			i++
		}
		if name, ok := t.Name(i); !ok || !strings.EqualFold(name, right.AsName.O) {
			return false
		}
		i++
	}
	if t.Is(i, "USE", "IGNORE", "FORCE", "PARTITION", "TABLESAMPLE", "AS") {
		return false
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = mysqlsyntax.Quote(c)
	}
	v.edit(t.Tokens[at].Start, t.Tokens[at].End-t.Tokens[at].Start, "")
	v.edit(t.Tokens[i-1].End, 0, " USING ("+strings.Join(quoted, ",")+") ")
	return true
}

// insert gives an INSERT the list of columns that it lacks.
func (v *veiler) insert(n *ast.InsertStmt) {
	if n.Setlist || len(n.Columns) > 0 || n.Select == nil && (len(n.Lists) == 0 || len(n.Lists[0]) == 0) || n.Table == nil {
		return
	}
	list, ok := v.s.sources(n.Table.TableRefs, nil)
	if !ok || len(list) != 1 || !list[0].shows() {
		return
	}
	i, ok := v.s.behindTable()
	if !ok || v.s.text.Is(i, "(") && !v.s.text.Is(i+1, "SELECT", "WITH", "(", "TABLE", "VALUES") {
		v.ok = v.ok && ok
		return
	}
	add := " (" + strings.Join(list[0].clientColumns(), ",") + ") "
	v.s.veilList = &edit{at: v.s.text.Tokens[i-1].End, add: add, check: add}
}

// clientColumns are the quoted names of the columns that the client knows, in order.
func (src *source) clientColumns() (names []string) {
	for _, name := range src.rel.ClientColumns() {
		names = append(names, mysqlsyntax.Quote(name))
	}
	return names
}
