package mysql

import (
	"reflect"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// The clauses of a statement are found by their keywords outside of parentheses. That they are what they seem is proven by
// parsing a query made of them: its clauses must be the statement's own.

// begins reports whether token i begins a clause. GROUP and ORDER also stand in index hints, behind FOR.
func begins(t *statement.Text, i int, words []string) bool {
	if !t.Is(i, words...) {
		return false
	}
	switch {
	case t.Is(i, "GROUP", "ORDER"):
		return t.Is(i+1, "BY") && !t.Is(i-1, "FOR")
	case t.Is(i, "FOR"):
		return t.Is(i+1, "UPDATE", "SHARE")
	case t.Is(i, "LOCK"):
		return t.Is(i+1, "IN")
	case t.Is(i, "FETCH"):
		return t.Is(i+1, "FIRST", "NEXT")
	case t.Is(i, "WINDOW"):
		return t.Is(i+2, "AS")
	}
	return true
}

// clauses cuts the tokens from i to end at the words.
func clauses(t *statement.Text, i, end int, words ...string) []statement.Clause {
	return t.Clauses(i, end, func(i int) bool { return begins(t, i, words) })
}

// body takes parentheses statement.Around a query and WITH away and gives the range of tokens that is left.
func (d *describer) body() (first, end int) {
	t := d.text
	first, end = t.Unwrap(0, len(t.Tokens))
	if !t.Is(first, "WITH") {
		return first, end
	}
	depth := t.Tokens[first].Depth
	for i := first + 1; i < end; i++ {
		if t.Tokens[i].Depth == depth && t.Is(i-1, ")") && t.Is(i, "SELECT", "UPDATE", "DELETE", "TABLE", "VALUES", "(") && !t.Is(i-1, "AS") {
			d.st.Clauses.With = t.Between(first, i)
			return i, end
		}
	}
	return end, end
}

func (d *describer) selectStmt(n *ast.SelectStmt) {
	st := &d.st
	all := walkOwn(n)
	st.Aggregate = all.aggregate || n.GroupBy != nil || n.Having != nil
	st.Distinct, st.Window, st.Limit = n.Distinct, all.window, n.Limit != nil
	if n.Kind == ast.SelectStmtKindSelect && n.Fields != nil {
		for _, f := range n.Fields.Fields {
			name := ""
			if column, ok := f.Expr.(*ast.ColumnNameExpr); ok {
				name = column.Name.Name.O
			} else if f.WildCard != nil {
				name = "*"
			}
			st.Columns = append(st.Columns, name)
		}
	}
	d.fixed(n.From, n.Where)
	d.locking(n.LockInfo)
	first, end := d.body()
	t := d.text
	switch {
	case first >= end:
	case t.Is(first, "TABLE"):
		i := first + 1
		if _, _, next, ok := t.Qualified(i); ok {
			st.Clauses.From = t.Between(i, next)
			d.st.Clauses.Fill(t, clauses(t, next-1, end, "ORDER", "LIMIT", "FETCH", "FOR", "LOCK", "INTO"))
		}
	case t.Is(first, "SELECT"):
		d.st.Clauses.Fill(t, clauses(t, first, end, "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FETCH", "PROCEDURE", "FOR", "LOCK", "INTO"))
	}
	switch {
	case st.Aggregate:
		d.st.Unaddressed("groups")
	case n.From == nil:
		d.st.Unaddressed("no tables")
	case all.strange != "":
		d.st.Unaddressed("function " + all.strange + " may be an aggregate")
	case n.Distinct && st.Limit:
		d.st.Unaddressed("DISTINCT that chooses rows")
	case len(n.WindowSpecs) > 0 && st.Limit:
		d.st.Unaddressed("a window's name that ORDER BY may use")
	case st.Limit && labelled(n):
		d.st.Unaddressed("ORDER BY names the select list")
	}
	st.Addressing.Unorder = !st.Limit && (n.Distinct || len(n.WindowSpecs) > 0 || labelled(n))
	d.prove(&ast.SelectStmt{
		From: n.From, Where: n.Where, GroupBy: n.GroupBy, Having: n.Having, WindowSpecs: n.WindowSpecs, OrderBy: n.OrderBy, Limit: n.Limit, With: n.With,
	})
}

// fixed notes the columns of the only table that a condition equates with constants.
func (d *describer) fixed(from *ast.TableRefsClause, where ast.ExprNode) {
	if from != nil && from.TableRefs.Right == nil {
		if _, ok := from.TableRefs.Left.(*ast.TableSource); ok {
			d.equated(where)
		}
	}
}

func (d *describer) equated(where ast.ExprNode) {
	switch e := where.(type) {
	case *ast.ParenthesesExpr:
		d.equated(e.Expr)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd:
			d.equated(e.L)
			d.equated(e.R)
		case opcode.EQ:
			for _, side := range [2][2]ast.ExprNode{{e.L, e.R}, {e.R, e.L}} {
				column, ok := side[0].(*ast.ColumnNameExpr)
				value, constant := side[1].(ast.ValueExpr)
				if ok && constant {
					_, text := value.GetValue().(string)
					d.st.Fix(column.Name.Name.O, !text)
				}
			}
		}
	}
}

// prove compares what the clauses mean with what the statement's do. If they differ, there are none.
func (d *describer) prove(want *ast.SelectStmt) {
	c := &d.st.Clauses
	if n, err := d.parser.Parse(c.Query("1"), 0); err == nil {
		if got, ok := n.(*ast.SelectStmt); ok && sameClauses(got, want) {
			return
		}
	}
	*c = statement.Clauses{}
	d.st.Unaddressed("its clauses are not certain")
}

func sameClauses(a, b *ast.SelectStmt) bool {
	for _, pair := range [][2]any{{a.From, b.From}, {a.Where, b.Where}, {a.GroupBy, b.GroupBy}, {a.Having, b.Having}, {a.WindowSpecs, b.WindowSpecs},
		{a.OrderBy, b.OrderBy}, {a.Limit, b.Limit}, {a.With, b.With}} {
		if !sameTree(reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1])) {
			return false
		}
	}
	return true
}

// sameTree compares two trees, places in the text aside.
func sameTree(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameTree(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameTree(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			switch f := a.Type().Field(i); {
			case f.Name == "node" && f.Anonymous, f.Name == "Offset" && f.Type.Kind() == reflect.Int, f.Name == "QueryBlockOffset":
			default:
				if !sameTree(a.Field(i), b.Field(i)) {
					return false
				}
			}
		}
		return true
	case reflect.Map, reflect.Func, reflect.Chan, reflect.Array:
		return a.IsZero() && b.IsZero()
	}
	return a.Equal(b)
}

// labelled reports whether ORDER BY may mean a column of the select list rather than of a table: by a number or a name (MySQL
// manual, SELECT: "MySQL resolves unqualified column or alias references in ORDER BY clauses by searching in the select_expr
// values, then in the columns of the tables").
func labelled(n *ast.SelectStmt) bool {
	if n.OrderBy == nil || n.Fields == nil {
		return false
	}
	var names []string
	several := n.From != nil && n.From.TableRefs.Right != nil
	for _, f := range n.Fields.Fields {
		c, isColumn := f.Expr.(*ast.ColumnNameExpr)
		switch {
		case f.AsName.O != "":
			names = append(names, f.AsName.O)
		case f.WildCard != nil:
		case isColumn && (c.Name.Table.O == "" || !several):
		case isColumn:
			names = append(names, c.Name.Name.O)
		}
	}
	for _, item := range n.OrderBy.Items {
		if _, ok := item.Expr.(*ast.PositionExpr); ok {
			return true
		}
		shown := false
		mysqlsyntax.Visit(item.Expr, func(n ast.Node) bool {
			c, ok := n.(*ast.ColumnNameExpr)
			shown = shown || ok && c.Name.Table.O == "" && mysqlsyntax.ContainsName(names, c.Name.Name.O)
			return shown
		})
		if shown {
			return true
		}
	}
	return false
}

// locking describes FOR UPDATE and the like. What waits the tokens tell, as the parser does not know all of it.
func (d *describer) locking(info *ast.SelectLockInfo) {
	if info == nil {
		return
	}
	l, t := &d.st.Locking, d.text
	l.Lock = strength(info.LockType)
	for _, n := range info.Tables {
		l.Of = append(l.Of, n.Name.O)
	}
	first, end := d.body()
	for _, c := range clauses(t, min(first, len(t.Tokens)-1), end, "FOR", "LOCK") {
		for i := c.Start; i < c.End; i++ {
			l.NoWait = l.NoWait || t.Is(i, "NOWAIT")
			l.SkipLocked = l.SkipLocked || t.Seq(i, "SKIP", "LOCKED")
			l.Wait = l.Wait || t.Is(i, "WAIT")
		}
	}
}

// change begins the description of an UPDATE or a DELETE, whose clauses stand between two tokens.
func (d *describer) change(ignore bool, limit *ast.Limit) (first, end int, ok bool) {
	d.st.Ignore, d.st.Limit = ignore, limit != nil
	if first, end = d.body(); first >= end {
		d.st.Unaddressed("its clauses are not certain")
	}
	return first, end, first < end
}

func (d *describer) updateStmt(n *ast.UpdateStmt) {
	st, t := &d.st, d.text
	first, end, ok := d.change(n.IgnoreErr, n.Limit)
	if !ok {
		return
	}
	list := clauses(t, first, end, "UPDATE", "SET", "WHERE", "ORDER", "LIMIT", "RETURNING")
	for _, l := range list {
		switch l.Word {
		case "UPDATE":
			st.Clauses.From = t.Between(t.Skip(l.Start+1, "LOW_PRIORITY", "IGNORE"), l.End)
		case "SET":
			st.Assignments, st.AssignAt = assignments(t, l.Start+1, l.End, n.List)
		}
	}
	d.st.Clauses.Fill(t, list)
	d.fixed(n.TableRefs, n.Where)
	d.prove(&ast.SelectStmt{From: n.TableRefs, Where: n.Where, OrderBy: n.Order, Limit: n.Limit, With: n.With})
}

func (d *describer) deleteStmt(n *ast.DeleteStmt) {
	st, t := &d.st, d.text
	first, end, ok := d.change(n.IgnoreErr, n.Limit)
	if !ok {
		return
	}
	words := []string{"FROM", "WHERE", "ORDER", "LIMIT", "RETURNING"}
	if n.IsMultiTable && !n.BeforeFrom {
		words = append(words, "USING")
	}
	list := clauses(t, first, end, words...)
	d.st.Clauses.Fill(t, list)
	for _, l := range list {
		if l.Word == "USING" {
			st.Clauses.From = t.Between(l.Start+1, l.End)
		}
	}
	d.fixed(n.TableRefs, n.Where)
	d.prove(&ast.SelectStmt{From: n.TableRefs, Where: n.Where, OrderBy: n.Order, Limit: n.Limit, With: n.With})
}

// assignments describes those between two tokens. They are nil, and the place 0, if they are not certain.
func assignments(t *statement.Text, from, end int, list []*ast.Assignment) (out []statement.Assignment, at int) {
	values := t.Assigned(from, end)
	if len(values) != len(list) || len(list) == 0 {
		return nil, 0
	}
	for i, a := range list {
		v := values[i]
		out = append(out, statement.Assignment{Column: a.Column.Name.O, Table: a.Column.Table.O, Expr: t.Between(v[0], v[1]), At: t.Tokens[v[0]].Start})
	}
	return out, t.Tokens[end-1].End
}

func (d *describer) insertStmt(n *ast.InsertStmt) {
	st, t := &d.st, d.text
	in := &statement.Insert{Conflict: len(n.OnDuplicate) > 0, Set: n.Setlist}
	st.Insert, st.Ignore = in, n.IgnoreErr
	d.st.Unaddressed("an INSERT")
	i := t.Skip(1, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
	_, _, i, ok := t.Qualified(i)
	if !ok {
		return
	}
	end := len(t.Tokens)
	for j := i; j < end; j++ {
		if t.Tokens[j].Depth != 0 {
			continue
		}
		if t.Is(j, "RETURNING") {
			end = j
		}
		if t.Seq(j, "ON", "DUPLICATE", "KEY", "UPDATE") {
			stop := end
			if r := t.Find(j, 0, "RETURNING"); r >= 0 {
				stop = r
			}
			in.Updates, in.UpdateAt = assignments(t, j+4, stop, n.OnDuplicate)
			end = j
		}
	}
	if t.Is(i, "PARTITION") && t.Is(i+1, "(") {
		i = t.Close(i+1) + 1
	}
	if n.Setlist {
		st.Assignments, st.AssignAt = assignedSet(t, i, end, n)
		var row []string
		for _, a := range st.Assignments {
			in.Columns, row = append(in.Columns, a.Column), append(row, a.Expr)
		}
		in.Rows = [][]string{row}
		return
	}
	if t.Is(i, "(") && !t.Is(t.Skip(i, "("), "SELECT", "WITH", "VALUES", "TABLE") {
		last := t.Close(i)
		if last < 0 {
			return
		}
		in.Columns = []string{}
		for _, c := range n.Columns {
			in.Columns = append(in.Columns, c.Name.O)
		}
		if len(in.Columns) > 0 {
			in.ColumnAt = t.Tokens[last-1].End
		}
		i = last + 1
	} else {
		in.NewListAt = t.Tokens[i-1].End
	}
	if n.Select != nil || !t.Is(i, "VALUES", "VALUE") {
		in.Select = t.Between(i, end)
		return
	}
	rows(t, in, i+1, end, n.Lists)
}

// assignedSet describes INSERT ... SET, of which the parser makes a list of columns and one of values.
func assignedSet(t *statement.Text, i, end int, n *ast.InsertStmt) ([]statement.Assignment, int) {
	if len(n.Lists) != 1 || len(n.Lists[0]) != len(n.Columns) {
		return nil, 0
	}
	var list []*ast.Assignment
	for k, c := range n.Columns {
		list = append(list, &ast.Assignment{Column: c, Expr: n.Lists[0][k]})
	}
	return assignments(t, i+1, end, list)
}

// rows describes the rows of VALUES.
func rows(t *statement.Text, in *statement.Insert, i, end int, lists [][]ast.ExprNode) {
	for _, row := range t.Split(i, end) {
		var values []string
		at := 0
		for _, v := range t.Split(row[0]+1, row[1]-1) {
			values = append(values, t.Between(v[0], v[1]))
			at = t.Tokens[v[1]-1].End
		}
		in.Rows, in.RowAt = append(in.Rows, values), append(in.RowAt, at)
	}
	certain := len(in.Rows) == len(lists)
	for k := 0; certain && k < len(lists); k++ {
		certain = len(in.Rows[k]) == len(lists[k])
	}
	if !certain {
		in.Rows, in.RowAt, in.Select = nil, nil, t.Between(i-1, end)
	}
}
