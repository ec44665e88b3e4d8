package mysql

import (
	"reflect"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
)

// The clauses of a statement are found by their keywords outside of parentheses. That they are what they seem is proven by
// parsing a query made of them: its clauses must be the statement's own.

// clause is a clause with its keyword, as a range of tokens.
type clause struct {
	word       string
	start, end int
}

// begins reports whether token i begins a clause. GROUP and ORDER also stand in index hints, behind FOR.
func (t *text) begins(i int, words []string) bool {
	if !t.is(i, words...) {
		return false
	}
	switch {
	case t.is(i, "GROUP", "ORDER"):
		return t.is(i+1, "BY") && !t.is(i-1, "FOR")
	case t.is(i, "FOR"):
		return t.is(i+1, "UPDATE", "SHARE")
	case t.is(i, "LOCK"):
		return t.is(i+1, "IN")
	case t.is(i, "FETCH"):
		return t.is(i+1, "FIRST", "NEXT")
	case t.is(i, "WINDOW"):
		return t.is(i+2, "AS")
	}
	return true
}

// clauses cuts the tokens from i to end at the words, each of which counts once.
func (t *text) clauses(i, end int, words ...string) (list []clause) {
	seen := map[string]bool{}
	depth := t.tokens[i].depth
	for ; i < end; i++ {
		word := strings.ToUpper(t.at(i))
		if t.tokens[i].depth != depth || seen[word] || !t.begins(i, words) {
			continue
		}
		seen[word] = true
		if n := len(list); n > 0 {
			list[n-1].end = i
		}
		list = append(list, clause{word, i, end})
	}
	return list
}

// between is the text of the tokens from i to j.
func (t *text) between(i, j int) string {
	if i >= j || j > len(t.tokens) {
		return ""
	}
	return t.sql[t.tokens[i].start:t.tokens[j-1].end]
}

// split cuts the tokens from i to end at the commas outside of parentheses.
func (t *text) split(i, end int) (parts [][2]int) {
	if i >= end {
		return nil
	}
	depth := t.tokens[i].depth
	for i < end {
		j := t.find(i, depth, ",")
		if j < 0 || j > end {
			j = end
		}
		parts = append(parts, [2]int{i, j})
		i = j + 1
	}
	return parts
}

// body takes parentheses around a query and WITH away and gives the range of tokens that is left.
func (d *describer) body() (first, end int) {
	t := d.text
	end = len(t.tokens)
	for first < end && t.is(first, "(") && t.close(first) == end-1 {
		first, end = first+1, end-1
	}
	if !t.is(first, "WITH") {
		return first, end
	}
	depth := t.tokens[first].depth
	for i := first + 1; i < end; i++ {
		if t.tokens[i].depth == depth && t.is(i-1, ")") && t.is(i, "SELECT", "UPDATE", "DELETE", "TABLE", "VALUES", "(") && !t.is(i-1, "AS") {
			d.st.Clauses.With = t.between(first, i)
			return i, end
		}
	}
	return end, end
}

func (d *describer) unaddressed(why string) {
	if d.st.Addressing.Why == "" {
		d.st.Addressing.Why = why
	}
}

func (d *describer) selectStmt(n *ast.SelectStmt) {
	st := &d.st
	all := walkOwn(n)
	st.Aggregate = all.aggregate || n.GroupBy != nil || n.Having != nil
	st.Distinct, st.Window, st.Limit = n.Distinct, all.window, n.Limit != nil
	d.locking(n.LockInfo)
	first, end := d.body()
	t := d.text
	switch {
	case first >= end:
	case t.is(first, "TABLE"):
		i := first + 1
		if _, _, next, ok := t.qualified(i); ok {
			st.Clauses.From = t.between(i, next)
			d.fill(t.clauses(next-1, end, "ORDER", "LIMIT", "FETCH", "FOR", "LOCK", "INTO"))
		}
	case t.is(first, "SELECT"):
		d.fill(t.clauses(first, end, "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FETCH", "PROCEDURE", "FOR", "LOCK", "INTO"))
	}
	switch {
	case st.Aggregate:
		d.unaddressed("groups")
	case n.From == nil:
		d.unaddressed("no tables")
	case all.strange != "":
		d.unaddressed("function " + all.strange + " may be an aggregate")
	case n.Distinct && st.Limit:
		d.unaddressed("DISTINCT that chooses rows")
	case len(n.WindowSpecs) > 0 && st.Limit:
		d.unaddressed("a window's name that ORDER BY may use")
	case st.Limit && labelled(n):
		d.unaddressed("ORDER BY names the select list")
	}
	st.Addressing.Unorder = !st.Limit && (n.Distinct || len(n.WindowSpecs) > 0 || labelled(n))
	d.prove(&ast.SelectStmt{
		From: n.From, Where: n.Where, GroupBy: n.GroupBy, Having: n.Having, WindowSpecs: n.WindowSpecs, OrderBy: n.OrderBy, Limit: n.Limit, With: n.With,
	})
}

func (d *describer) fill(list []clause) {
	c, t := &d.st.Clauses, d.text
	for _, l := range list {
		switch l.word {
		case "FROM":
			c.From = t.between(l.start+1, l.end)
		case "WHERE":
			c.Where = t.between(l.start+1, l.end)
		case "GROUP":
			c.GroupBy = t.between(l.start+2, l.end)
		case "HAVING":
			c.Having = t.between(l.start+1, l.end)
		case "WINDOW":
			c.Window = t.between(l.start+1, l.end)
		case "ORDER":
			c.OrderBy = t.between(l.start+2, l.end)
		case "LIMIT", "FETCH":
			c.Limit = t.between(l.start, l.end)
		}
	}
}

// prove compares what the clauses mean with what the statement's do. If they differ, there are none.
func (d *describer) prove(want *ast.SelectStmt) {
	c := &d.st.Clauses
	var b strings.Builder
	for _, part := range [][2]string{{"", c.With}, {" FROM ", c.From}, {" WHERE ", c.Where}, {" GROUP BY ", c.GroupBy}, {" HAVING ", c.Having},
		{" WINDOW ", c.Window}, {" ORDER BY ", c.OrderBy}, {" ", c.Limit}} {
		if part[1] != "" {
			b.WriteString(part[0] + part[1])
		}
		if part[0] == "" {
			b.WriteString(" SELECT 1")
		}
	}
	if n, err := d.of.r.parse(b.String(), 0); err == nil {
		if got, ok := n.(*ast.SelectStmt); ok && sameClauses(got, want) {
			return
		}
	}
	*c = rewrite.Clauses{}
	d.unaddressed("its clauses are not certain")
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
		for _, c := range walk(item.Expr).columns {
			if c.Table.O == "" && containsFold(names, c.Name.O) {
				return true
			}
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
	for _, c := range t.clauses(min(first, len(t.tokens)-1), end, "FOR", "LOCK") {
		for i := c.start; i < c.end; i++ {
			l.NoWait = l.NoWait || t.is(i, "NOWAIT")
			l.SkipLocked = l.SkipLocked || t.seq(i, "SKIP", "LOCKED")
			l.Wait = l.Wait || t.is(i, "WAIT")
		}
	}
}

func (d *describer) updateStmt(n *ast.UpdateStmt) {
	st, t := &d.st, d.text
	st.Ignore, st.Limit = n.IgnoreErr, n.Limit != nil
	first, end := d.body()
	if first >= end {
		d.unaddressed("its clauses are not certain")
		return
	}
	list := t.clauses(first, end, "UPDATE", "SET", "WHERE", "ORDER", "LIMIT", "RETURNING")
	for _, l := range list {
		switch l.word {
		case "UPDATE":
			st.Clauses.From = t.between(t.skip(l.start+1, "LOW_PRIORITY", "IGNORE"), l.end)
		case "SET":
			st.Assignments, st.AssignAt = t.assignments(l.start+1, l.end, n.List)
		}
	}
	d.fill(list)
	d.prove(&ast.SelectStmt{From: n.TableRefs, Where: n.Where, OrderBy: n.Order, Limit: n.Limit, With: n.With})
}

// skip gives the first token from i on that is none of the words.
func (t *text) skip(i int, words ...string) int {
	for t.is(i, words...) {
		i++
	}
	return i
}

func (d *describer) deleteStmt(n *ast.DeleteStmt) {
	st, t := &d.st, d.text
	st.Ignore, st.Limit = n.IgnoreErr, n.Limit != nil
	first, end := d.body()
	if first >= end {
		d.unaddressed("its clauses are not certain")
		return
	}
	words := []string{"FROM", "WHERE", "ORDER", "LIMIT", "RETURNING"}
	if n.IsMultiTable && !n.BeforeFrom {
		words = append(words, "USING")
	}
	list := t.clauses(first, end, words...)
	d.fill(list)
	for _, l := range list {
		if l.word == "USING" {
			st.Clauses.From = t.between(l.start+1, l.end)
		}
	}
	d.prove(&ast.SelectStmt{From: n.TableRefs, Where: n.Where, OrderBy: n.Order, Limit: n.Limit, With: n.With})
}

// assigned gives the ranges of tokens of the values that are assigned between two tokens; nil if they are not certain.
func (t *text) assigned(from, end int) (values [][2]int) {
	for _, p := range t.split(from, end) {
		eq := t.find(p[0], t.tokens[from].depth, "=")
		if eq < 0 || eq+1 >= p[1] {
			return nil
		}
		values = append(values, [2]int{eq + 1, p[1]})
	}
	return values
}

// assignments describes those between two tokens. They are nil, and the place 0, if they are not certain.
func (t *text) assignments(from, end int, list []*ast.Assignment) (out []rewrite.Assignment, at int) {
	values := t.assigned(from, end)
	if len(values) != len(list) || len(list) == 0 {
		return nil, 0
	}
	for i, a := range list {
		v := values[i]
		out = append(out, rewrite.Assignment{Column: a.Column.Name.O, Table: a.Column.Table.O, Expr: t.between(v[0], v[1]), At: t.tokens[v[0]].start})
	}
	return out, t.tokens[end-1].end
}

func (d *describer) insertStmt(n *ast.InsertStmt) {
	st, t := &d.st, d.text
	in := &rewrite.Insert{Conflict: len(n.OnDuplicate) > 0, Set: n.Setlist}
	st.Insert, st.Ignore = in, n.IgnoreErr
	d.unaddressed("an INSERT")
	i := t.skip(1, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
	_, _, i, ok := t.qualified(i)
	if !ok {
		return
	}
	end := len(t.tokens)
	for j := i; j < end; j++ {
		if t.tokens[j].depth != 0 {
			continue
		}
		if t.is(j, "RETURNING") {
			end = j
		}
		if t.seq(j, "ON", "DUPLICATE", "KEY", "UPDATE") {
			stop := end
			if r := t.find(j, 0, "RETURNING"); r >= 0 {
				stop = r
			}
			in.Updates, in.UpdateAt = t.assignments(j+4, stop, n.OnDuplicate)
			end = j
		}
	}
	if t.is(i, "PARTITION") && t.is(i+1, "(") {
		i = t.close(i+1) + 1
	}
	if n.Setlist {
		st.Assignments, st.AssignAt = t.set(i, end, n)
		var row []string
		for _, a := range st.Assignments {
			in.Columns, row = append(in.Columns, a.Column), append(row, a.Expr)
		}
		in.Rows = [][]string{row}
		return
	}
	if t.is(i, "(") && !t.is(t.skip(i, "("), "SELECT", "WITH", "VALUES", "TABLE") {
		last := t.close(i)
		if last < 0 {
			return
		}
		in.Columns = []string{}
		for _, c := range n.Columns {
			in.Columns = append(in.Columns, c.Name.O)
		}
		if len(in.Columns) > 0 {
			in.ColumnAt = t.tokens[last-1].end
		}
		i = last + 1
	} else {
		in.NewListAt = t.tokens[i-1].end
	}
	if n.Select != nil || !t.is(i, "VALUES", "VALUE") {
		in.Select = t.between(i, end)
		return
	}
	t.rows(in, i+1, end, n.Lists)
}

// set describes INSERT ... SET, of which the parser makes a list of columns and one of values.
func (t *text) set(i, end int, n *ast.InsertStmt) ([]rewrite.Assignment, int) {
	if len(n.Lists) != 1 || len(n.Lists[0]) != len(n.Columns) {
		return nil, 0
	}
	var list []*ast.Assignment
	for k, c := range n.Columns {
		list = append(list, &ast.Assignment{Column: c, Expr: n.Lists[0][k]})
	}
	return t.assignments(i+1, end, list)
}

// rows describes the rows of VALUES.
func (t *text) rows(in *rewrite.Insert, i, end int, lists [][]ast.ExprNode) {
	for _, row := range t.split(i, end) {
		var values []string
		at := 0
		for _, v := range t.split(row[0]+1, row[1]-1) {
			values = append(values, t.between(v[0], v[1]))
			at = t.tokens[v[1]-1].end
		}
		in.Rows, in.RowAt = append(in.Rows, values), append(in.RowAt, at)
	}
	certain := len(in.Rows) == len(lists)
	for k := 0; certain && k < len(lists); k++ {
		certain = len(in.Rows[k]) == len(lists[k])
	}
	if !certain {
		in.Rows, in.RowAt, in.Select = nil, nil, t.between(i-1, end)
	}
}
