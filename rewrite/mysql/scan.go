package mysql

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// What neither the rows of an answer nor the log can tell, a second scan does: one more column, in which a subquery evaluates the query's own
// FROM and WHERE once more. It names nothing of the query around it, so it is evaluated once and is the same for each row: groups and DISTINCT
// stay what they are, and so does the plan of the query. A statement has one view of the database for all its plain reads (covering.go), so the
// scan finds the rows that the query read, if the query reads all that its clauses give.

const (
	scanRows     = 1000 // of a query whose answer has one row
	scanRowsEach = 200  // of others, each row of which has them all
	scanTooMany  = "-"  // stands for more
)

// scanned adds the column. It reports false if the query stays as it is.
func (r *reader) scanned(n *ast.SelectStmt, all finding, around []source, grouped bool) bool {
	s := r.s
	rows, several := scanRows, n.GroupBy != nil || !grouped
	if several {
		rows = scanRowsEach
	}
	at := s.selectListEnd()
	if s.r.flavor == TiDB && (n.Distinct || s.prepared || s.points(n, around)) || s.session.Once || s.session.LockingReads || s.session.Cut && several || noRows(n) || n.LockInfo != nil || at < 0 || !placesFit(n, around) || !s.readsAll(n, all, around, grouped) {
		return false
	}
	q := n
	if len(around) == 1 && around[0].query != nil && n.Where == nil && n.With == nil && walk(n).queries == 2 {
		q = around[0].query
		from, ok := s.sources(refsOf(q), nil)
		if !ok || q.Limit != nil || s.r.flavor == TiDB && s.points(q, from) || !s.readsAll(q, walk(q), from, q.GroupBy != nil || s.aggregates(q)) {
			return false
		}
		grouped = q.GroupBy != nil || s.aggregates(q) || !q.Distinct
	}
	list, text, ok := r.scan(q)
	if !ok || s.r.flavor == MariaDB && seesNone(s, q, list) {
		return false
	}
	if rows = min(rows, int(min(s.session.GroupConcat, 1<<24))/groupEntryNamed/len(list)); rows < 1 {
		return false
	}
	for i := range list {
		src := &list[i]
		if (n.Distinct || q.Distinct) && !grouped && len(list) > 1 && !s.showsOf(q, list, src) { // the server stops at the first row of such a table
			return false
		}
		indexed := s.r.flavor == MariaDB && s.ofIndex(q, list, src)
		if s.r.flavor == MySQL && (several || q.Distinct || q.GroupBy != nil || q.OrderBy != nil) && s.sorts(q, list, src) && !s.scansIndex(q, list, src) {
			return false
		}
		if s.r.flavor == MySQL || indexed {
			if len(src.rel.Key) == 0 {
				return false
			}
			src.byKey(s.r.flavor)
		}
	}
	tables, value := scannedVersions(list)
	add := "," + s.collected(value, rows, text)
	s.edits = append(s.edits, edit{at: at, add: add + " ", check: ",wc_probe "})
	s.silent = n.Having != nil || n.Limit != nil || q.Having != nil
	s.copies = true
	p := s.plan
	p.Predicate = s.predicate(n.Where, around)
	p.Hidden, p.Same, p.Coverage, p.Decode = 1, 1, history.CoverageExact, decodeScan(tables, rows)
	return true
}

// seesNone reports whether MariaDB may find out from an index, before it reads a table, that a query has no rows, where it would not of a second scan, whose status
// flag then says that no index was used (10.11.19). It finds out that a table is empty where it looks for MIN or MAX, and for columns of GROUP BY and DISTINCT it
// looks at the conditions on all columns of their indexes, behind the first one, too.
func seesNone(s *planner, q *ast.SelectStmt, list []source) bool {
	grouped := q.GroupBy != nil || s.aggregates(q)
	if q.GroupBy == nil && grouped && extreme(walk(q.Fields).extremes, list) {
		return true
	}
	if q.Where == nil || grouped && q.GroupBy == nil {
		return false
	}
	where, by := walk(q.Where).columns, walk(q.Fields).columns
	if q.GroupBy != nil {
		by = append(by, walk(q.GroupBy).columns...)
	}
	return slices.ContainsFunc(list, func(src source) bool {
		names := func(columns []*ast.ColumnName, ix []string) bool {
			return slices.ContainsFunc(columns, func(c *ast.ColumnName) bool { return src.mayOwn(c) && mysqlsyntax.ContainsName(ix, c.Name.O) })
		}
		return slices.ContainsFunc(append([][]string{src.rel.Key}, src.rel.Indexes...), func(ix []string) bool {
			return len(ix) > 1 && names(where, ix[1:]) && (walk(q.Fields).wildcard || names(by, ix))
		})
	})
}

// TiDB evaluates the subquery before it plans the query, which keeps its plan; DISTINCT would compare its value, too, a prepared statement would have no cached
// plan, of which the server warns (1105), and a query of one row by its key reads what is current, where the subquery reads a snapshot.

// points reports whether a query may find its row by a key alone. It does not where it shows several tables.
func (s *judge) points(n *ast.SelectStmt, list []source) bool {
	hidden := func(src source) bool { return src.rel == nil || !s.showsOf(n, list, &src) }
	return (len(list) == 1 || slices.ContainsFunc(list, hidden)) &&
		slices.ContainsFunc(list, func(src source) bool { return src.rel != nil && s.point(n.Where, list, &src, src.rel.Unique) })
}

// MySQL says in its status flags whether it scanned a table without an index. The scan may do so only if the query does. As it finds the hidden
// columns by the primary key, it needs no column that the query does not need; so all that can differ is that the query takes the rows in the
// order of an index, which makes its groups.

// sorts reports whether an index may have a table's rows in the order that a query wants.
func (s *judge) sorts(n *ast.SelectStmt, list []source, src *source) bool {
	columns := walk(n.Fields).columns
	if n.GroupBy != nil {
		columns = append(columns, walk(n.GroupBy).columns...)
	}
	if n.OrderBy != nil {
		columns = append(columns, walk(n.OrderBy).columns...)
	}
	first := func(ix []string) bool {
		return len(ix) > 0 && slices.ContainsFunc(columns, func(c *ast.ColumnName) bool {
			return strings.EqualFold(c.Name.O, ix[0]) && (c.Table.O == "" || s.owns(c, list, src, 1))
		})
	}
	return walk(n.Fields).wildcard || first(src.rel.Key) || slices.ContainsFunc(src.rel.Indexes, first)
}

// scansIndex reports whether an index has all that a scan needs of a table.
func (s *judge) scansIndex(n *ast.SelectStmt, list []source, src *source) bool {
	var used []string
	visit(n.From, func(n ast.Node) {
		if c, ok := n.(*ast.ColumnNameExpr); ok {
			used = append(used, c.Name.Name.L)
		}
	})
	if n.Where != nil {
		for _, c := range walk(n.Where).columns {
			used = append(used, c.Name.L)
		}
	}
	used = slices.DeleteFunc(used, func(c string) bool { return src.column(c) == nil })
	return s.holds(src, used) || !slices.ContainsFunc(used, func(c string) bool { return !mysqlsyntax.ContainsName(src.rel.Key, c) })
}

// ofIndex reports whether an index may answer a query alone, so that a scan that needs more columns would be one of the table, as the status
// flags say.
func (s *judge) ofIndex(n *ast.SelectStmt, list []source, src *source) bool {
	all := walk(n)
	return s.covered(n, all, list, src) || s.keyCovered(n, all, list, src)
}

// readsAll reports whether a query reads, and depends on, all rows that its clauses FROM and WHERE give.
func (s *judge) readsAll(n *ast.SelectStmt, all finding, list []source, grouped bool) bool {
	switch {
	case n.Limit != nil && (n.GroupBy != nil || !grouped) && !ordersGroups(n), n.Having != nil && (n.GroupBy == nil || !judgesGroups(n)):
		return false
	case grouped && n.GroupBy == nil && len(all.aggregates) == 0: // they are of an outer query
		return false
	}
	return !extremesOnly(n, list) && !s.loose(n, all, list)
}

// judgesGroups reports whether HAVING looks at aggregates only, so that each row of a group matters, also of one that is left out.
func judgesGroups(n *ast.SelectStmt) bool {
	bare := 0
	visit(n.Having, func(e ast.Node) {
		switch e := e.(type) {
		case *ast.AggregateFuncExpr:
			bare -= len(walk(e).columns)
		case *ast.ColumnNameExpr:
			if bare++; e.Name.Table.O == "" && slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
				return f.AsName.L == e.Name.Name.L && f.Expr != nil && ast.HasAggFlag(f.Expr)
			}) {
				bare--
			}
		}
	})
	return bare == 0 && ast.HasAggFlag(n.Having.Expr)
}

func refsOf(q *ast.SelectStmt) ast.ResultSetNode {
	if q.From == nil {
		return nil
	}
	return q.From.TableRefs
}

// ordersGroups reports whether the groups are ordered by an aggregate, so that all of them are made before LIMIT takes the first ones.
func ordersGroups(n *ast.SelectStmt) bool {
	if n.OrderBy == nil || n.GroupBy == nil {
		return false
	}
	e := n.OrderBy.Items[0].Expr
	if c, ok := e.(*ast.ColumnNameExpr); ok && c.Name.Table.O == "" {
		for _, f := range n.Fields.Fields {
			if f.AsName.O != "" && f.AsName.L == c.Name.Name.L {
				e = f.Expr
			}
		}
	}
	return ast.HasAggFlag(e)
}

// loose reports whether an index alone may answer, of which a part is read: only MIN, MAX and DISTINCT are asked for, or nothing.
func (s *judge) loose(n *ast.SelectStmt, all finding, list []source) bool {
	return (n.GroupBy != nil || n.Distinct || all.distinct) && len(list) == 1 && all.plain == 0 && list[0].rel != nil &&
		(s.keyCovered(n, all, list, &list[0]) || s.covered(n, all, list, &list[0]))
}

// showsOf reports whether the select list has a column of a table.
func (s *judge) showsOf(n *ast.SelectStmt, list []source, src *source) bool {
	return slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		return f.WildCard != nil && shows(f, src) || ok && s.owns(c.Name, list, src, 1)
	})
}

// collected is a subquery that gives a value of each of the rows that clauses find, in the form that entries reads. If there are as many as
// most, some may be missing. MySQL finds all rows of wc_s by a key that it makes, where it would otherwise say that no index was used.
func (s *scene) collected(value string, most int, clauses string) string {
	if s.r.flavor == MariaDB {
		return fmt.Sprintf("(SELECT GROUP_CONCAT(%s SEPARATOR ';' LIMIT %d) %s)", value, most, clauses)
	}
	return fmt.Sprintf("(SELECT IF(COUNT(*)<%[2]d,JSON_ARRAYAGG(wc_s.v),JSON_ARRAY('"+scanTooMany+"')) FROM (SELECT 1 k,CONVERT(%[1]s USING ascii) v %[3]s LIMIT %[2]d) wc_s WHERE wc_s.k=1)", value, most, clauses)
}

// entries takes what collected gave apart. An entry may be empty.
func entries(cell []byte) [][]byte {
	if bytes.HasPrefix(cell, []byte("[")) { // JSON, of texts without quotes and backslashes
		cell = bytes.Trim(cell, "[]")
		cell = bytes.ReplaceAll(bytes.ReplaceAll(cell, []byte(", "), []byte(";")), []byte("null"), nil)
		cell = bytes.ReplaceAll(cell, []byte(`"`), nil)
	}
	return bytes.Split(cell, []byte(";"))
}

// toldOf says how the version of a table's row is told with its key.
func toldOf(src *source) told {
	t := told{table: src.table()}
	if _, _, values := nameParts(src); len(values) > 0 {
		t.key = keyNames(src.rel)
	}
	return t
}

// decodeScan reads the column of a second scan.
func decodeScan(tables []told, limit int) func([]history.Access, [][]byte) ([]history.Access, error) {
	return func(out []history.Access, hidden [][]byte) ([]history.Access, error) {
		if len(hidden) != 1 {
			return out, fmt.Errorf("%d hidden columns where 1 was added", len(hidden))
		}
		if len(hidden[0]) == 0 { // no rows, or an earlier row of the answer told them
			return out, nil
		}
		list := entries(hidden[0])
		partial := len(list) >= limit
		known := map[string]bool{}
		for _, entry := range list {
			if string(entry) == scanTooMany {
				return out, rewrite.ErrPartial
			}
			rest, more := entry, true
			for i := range tables {
				var one []byte
				if !more {
					return out, fmt.Errorf("%q has versions of %d tables, not of %d", entry, i, len(tables))
				}
				one, rest, more = bytes.Cut(rest, []byte("|"))
				if id := fmt.Sprint(i, " ", string(one)); len(one) == 0 || known[id] {
					continue
				} else {
					known[id] = true
				}
				a, err := decodeRead(one, tables[i], history.OpRead)
				if err != nil {
					return out, err
				}
				if partial = partial || a.Row.Key == noKey; a.Row.Key != noKey {
					out = append(out, a)
				}
			}
		}
		if partial {
			return out, rewrite.ErrPartial
		}
		return out, nil
	}
}

// scan gives the tables of a query and the text of its clauses FROM and WHERE. ok is false if they cannot be evaluated once more.
func (r *reader) scan(q *ast.SelectStmt) (list []source, text string, ok bool) {
	s := r.s
	if !plainQuery(q) {
		return nil, "", false
	}
	list, ok = s.sources(q.From.TableRefs, nil)
	if !ok || len(list) > maxTables || slices.ContainsFunc(list, func(src source) bool { return src.rel == nil || src.why != "" }) {
		return nil, "", false
	}
	quiet := quietly{s: s, list: slices.Concat(list, r.outer)}
	if !quiet.condition(q.Where) || !quiet.joins(q.From.TableRefs) {
		return nil, "", false
	}
	first := s.selectOf(q)
	if first < 0 || s.r.flavor == MariaDB && checksRanges(q, list) {
		return nil, "", false
	}
	t := s.text
	depth := t.Tokens[first].Depth
	from := t.Find(first+1, depth, "FROM")
	end := from
	for ; end >= 0 && end < len(t.Tokens) && t.Tokens[end].Depth >= depth; end++ {
		if t.Tokens[end].Depth == depth && t.Is(end, "ORDER", "LIMIT", "GROUP", "HAVING", "PROCEDURE", ")", ";", "UNION", "EXCEPT", "INTERSECT", "WINDOW") && !closes(t, from, end) {
			break
		}
		if t.Tokens[end].Kind == statement.TokenParam {
			return nil, "", false
		}
	}
	if from < 0 {
		return nil, "", false
	}
	s.eliminate(q, list)
	list = slices.DeleteFunc(list, func(src source) bool { return src.eliminated })
	text = t.SQL[t.Tokens[from].Start:t.Tokens[end-1].End]
	if where := t.Find(from, depth, "WHERE"); where > 0 && where < end { // so that a further condition can follow
		text = t.SQL[t.Tokens[from].Start:t.Tokens[where].End] + " (" + t.SQL[t.Tokens[where+1].Start:t.Tokens[end-1].End] + ")"
	} else {
		text += " WHERE 1"
	}
	return list, text, true
}

// checksRanges reports whether a join compares the first column of an index with a column of another table, but for equality. MariaDB may then look for each row which
// index serves, and says in the status flags that none is good, also where the query itself is executed otherwise (10.11.19).
func checksRanges(q *ast.SelectStmt, list []source) (found bool) {
	of := func(e ast.ExprNode) (owner int, leads bool) {
		c, ok := unwrapped(e).(*ast.ColumnNameExpr)
		if !ok {
			return -1, false
		}
		i := slices.IndexFunc(list, func(src source) bool { return src.mayOwn(c.Name) })
		return i, i >= 0 && slices.ContainsFunc(slices.Concat([][]string{list[i].rel.Key}, list[i].rel.Indexes), func(ix []string) bool {
			return len(ix) > 0 && strings.EqualFold(ix[0], c.Name.Name.O)
		})
	}
	look := func(n ast.Node) {
		e, ok := n.(*ast.BinaryOperationExpr)
		if !ok || !slices.Contains([]opcode.Op{opcode.LT, opcode.LE, opcode.GT, opcode.GE}, e.Op) {
			return
		}
		l, leads := of(e.L)
		r, too := of(e.R)
		found = found || l >= 0 && r >= 0 && l != r && (leads || too)
	}
	visit(q.From, look)
	if q.Where != nil {
		visit(q.Where, look)
	}
	return found
}
