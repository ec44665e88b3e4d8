package mysql

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/history"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// A derived table, or a common table expression that is used once, gets more columns, which tell the versions of its tables' rows to the query
// around it. So what is told are the rows that come to the answer, as if the tables stood in the query itself; and the server may merge the
// two, or not, as without us. Wildcards that would show the columns are written out.

// upPrefix begins the names of such columns.
const upPrefix = "wc_u"

// exposure is what one query tells of its derived tables.
type exposure struct {
	s       *planner
	locking bool
	logged  bool // the log tells, so that the key comes in a column of its own, with the columns' names
	named   bool // the row's key is told
	// of the tables of distinct, those that are idle change nothing in the answer
	distinct *ast.SelectStmt
	idle     map[string]bool // by the alias in lower case
	edits    []edit
	count    int     // columns
	queries  int     // derived tables
	sub      *reader // of the query that gets the columns
}

// with notes the common table expressions of a query. Only what is named once, and in the query itself, may be looked into.
func (s *planner) with(n *ast.SelectStmt) {
	if n.With == nil {
		return
	}
	s.ctes = map[string]*ast.SelectStmt{}
	for _, c := range n.With.CTEs {
		s.ctes[c.Name.L] = nil
	}
	uses := map[string]int{}
	visit(n, func(n ast.Node) {
		if t, ok := n.(*ast.TableName); ok {
			uses[t.Name.L]++
		}
	})
	for _, c := range n.With.CTEs {
		if uses[c.Name.L] == 1 && !n.With.IsRecursive && len(c.ColNameList) == 0 {
			s.ctes[c.Name.L], _ = c.Query.Query.(*ast.SelectStmt)
		}
	}
}

// expose puts the columns of derived tables into the text of a query that tells them.
func (s *planner) expose(n *ast.SelectStmt, list []source, e *exposure) {
	if s.plan.Coverage == history.CoverageOpaque || e.count == 0 {
		return
	}
	s.ups = e.count
	s.edits = append(append(s.edits, e.edits...), s.writtenOut(n, list)...)
}

// of gives the tables of a derived table as sources of the query around it; why says what is not seen.
func (e *exposure) of(up *source, around *ast.SelectStmt) (list []source, why string) {
	q, s := up.query, e.s
	all := walk(q)
	if q.From == nil && all.sub == 0 && !s.callsStored(all) {
		return nil, ""
	}
	first := s.selectOf(q)
	star := func(f *ast.SelectField) bool { return f.WildCard != nil && f.WildCard.Table.O == "" }
	switch {
	case slices.ContainsFunc(around.Fields.Fields, star) && joinsByName(around.From.TableRefs):
		return nil, up.why + " whose columns are joined by name"
	case e.grouped(up, q, around):
		e.queries++
		return nil, ""
	case q.Distinct, q.GroupBy != nil, q.Having != nil, q.From == nil, s.aggregates(q), len(all.aggregates) > 0 && all.queries > 1:
		return nil, up.why + " with groups or DISTINCT"
	case slices.ContainsFunc(around.Fields.Fields, func(f *ast.SelectField) bool { return f.WildCard != nil && shows(f, up) }) && s.names(q) == nil:
		return nil, up.why + " whose columns the text does not name"
	case q.LockInfo != nil, q.SelectIntoOpt != nil, q.With != nil, q.Kind != ast.SelectStmtKindSelect, first < 0, s.r.flavor == TiDB:
		return nil, up.why
	}
	in, ok := s.sources(q.From.TableRefs, nil)
	at := listEnd(s.text, first)
	if !ok || at < 0 || !placesFit(q, in) || len(in) > maxTables {
		return nil, up.why
	}
	s.eliminate(q, in)
	var add, check strings.Builder
	for i := range in {
		src := &in[i]
		var told []source
		switch {
		case !src.watched() || e.skips(q, src):
			continue
		case src.query != nil && s.r.flavor == MySQL:
			return nil, up.why + " on this server"
		case src.query != nil:
			if told, why = e.of(src, q); why != "" {
				return nil, why
			}
		case src.why != "":
			return nil, src.why
		case s.r.flavor == MySQL && q.Limit == nil: // a subquery in its select list would keep the server from merging it (9.7.4)
			seen, ok := e.byShownKey(up, q, in, src)
			if !ok || e.locking || e.logged { // nor does it merge anything into a query that assigns variables
				return nil, up.why + " on this server"
			}
			list = append(list, seen)
			continue
		case !e.fetched(src):
			return nil, "rows of an index that may cover the query"
		default:
			told = []source{*src}
		}
		for _, src := range told {
			out := source{rel: src.rel, alias: up.alias, ref: mysqlsyntax.Quote(up.alias)}
			if e.logged {
				out.found, out.label = e.put(&add, &check, &out, "CONCAT("+src.state()+")"), e.put(&add, &check, &out, "CONCAT(''"+nameOf(&src, true)+")")
			} else {
				out.up = e.put(&add, &check, &out, src.version(e.named))
			}
			list = append(list, out)
		}
	}
	if e.queries++; add.Len() > 0 {
		e.edits = append(e.edits, edit{at: at, add: add.String() + " ", check: check.String() + " "})
		e.edits = append(e.edits, s.writtenOut(q, in)...)
	}
	return list, ""
}

// grouped adds columns for the tables of a derived table with groups, if it shows the columns that make them: in each row of the answer a subquery finds
// the rows of the group again, and the query around asks nothing else of the groups, so that no other one matters.
func (e *exposure) grouped(up *source, q, around *ast.SelectStmt) bool {
	s, all := e.s, walk(q)
	if e.sub == nil || e.sub.around != around || q.GroupBy == nil || q.GroupBy.Rollup || q.Distinct || q.Having != nil || q.Limit != nil || all.plain == 0 || all.window || joinsByName(around.From.TableRefs) || s.r.flavor == TiDB {
		return false
	}
	list, text, ok := e.sub.scan(q)
	if !ok || !s.readsAll(q, all, list, true) || slices.ContainsFunc(list, func(src source) bool { return strings.EqualFold(src.alias, up.alias) }) {
		return false
	}
	var shown, same []string
	led := false
	for _, item := range q.GroupBy.Items {
		i := slices.IndexFunc(q.Fields.Fields, func(f *ast.SelectField) bool {
			a, ok1 := f.Expr.(*ast.ColumnNameExpr)
			b, ok2 := item.Expr.(*ast.ColumnNameExpr)
			return ok1 && ok2 && a.Name.Name.L == b.Name.Name.L && a.Name.Table.L == b.Name.Table.L
		})
		if i < 0 {
			return false
		}
		c := q.Fields.Fields[i].Expr.(*ast.ColumnNameExpr)
		at := slices.IndexFunc(list, func(src source) bool { return s.owns(c.Name, list, &src, 1) })
		if at < 0 || list[at].column(c.Name.Name.O) == nil {
			return false
		}
		shown = append(shown, cmp.Or(q.Fields.Fields[i].AsName.L, c.Name.Name.L))
		if _, equal := equatesIn(around.From.TableRefs, up.alias, shown[len(shown)-1]); !equal && (!list[at].column(c.Name.Name.O).Required || outerJoined(q.From.TableRefs)) {
			return false // the group of NULL
		}
		begins := func(ix []string) bool { return len(ix) > 0 && strings.EqualFold(ix[0], c.Name.Name.O) }
		led = led || begins(list[at].rel.Key) || slices.ContainsFunc(list[at].rel.Indexes, begins)
		same = append(same, list[at].ref+"."+mysqlsyntax.Quote(c.Name.Name.O)+"="+mysqlsyntax.Quote(up.alias)+"."+mysqlsyntax.Quote(shown[len(shown)-1]))
	}
	asks := []ast.Node{around.Where, around.From.TableRefs}
	if around.Having != nil {
		asks = append(asks, around.Having)
	}
	for _, n := range asks {
		mysqlsyntax.Visit(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectStmt: // of a derived table
				return true
			case *ast.SubqueryExpr:
				led = false
			case *ast.ColumnNameExpr:
				led = led && n.Name.Table.O != "" && (!strings.EqualFold(n.Name.Table.O, up.alias) || slices.Contains(shown, n.Name.Name.L))
			}
			return false
		})
	}
	return led && e.sub.again(q, list, text, scanRowsEach, strings.Join(same, " AND "))
}

// equatesIn reports whether a join holds a derived table, and whether a row of the table comes out of it only where a column of the row equals something.
func equatesIn(n ast.ResultSetNode, alias, column string) (holds, equal bool) {
	switch n := n.(type) {
	case *ast.TableSource:
		if j, ok := n.Source.(*ast.Join); ok {
			return equatesIn(j, alias, column)
		}
		return strings.EqualFold(cmp.Or(n.AsName.O, nameOfTable(n)), alias), false
	case *ast.Join:
		left, equal1 := equatesIn(n.Left, alias, column)
		right, equal2 := equatesIn(n.Right, alias, column)
		if equal = equal1 || equal2; n.On != nil && (left && n.Tp != ast.LeftJoin || right && n.Tp != ast.RightJoin) {
			equalities(n.On.Expr, func(op opcode.Op, l, r ast.ExprNode) {
				c, ok := l.(*ast.ColumnNameExpr)
				_, other := r.(*ast.ColumnNameExpr)
				equal = equal || ok && other && op == opcode.EQ && strings.EqualFold(c.Name.Table.O, alias) && c.Name.Name.L == column
			})
		}
		return left || right, equal
	}
	return false, false
}

// byShownKey is a table of a derived table whose version the query around finds by the columns that show its primary key.
func (e *exposure) byShownKey(up *source, q *ast.SelectStmt, in []source, src *source) (source, bool) {
	s := e.s
	seen := source{rel: src.rel, alias: up.alias, ref: mysqlsyntax.Quote(up.alias)}
	direct := func(src *source, column string) string {
		i := slices.IndexFunc(q.Fields.Fields, func(f *ast.SelectField) bool {
			c, ok := f.Expr.(*ast.ColumnNameExpr)
			return ok && strings.EqualFold(c.Name.Name.O, column) && s.owns(c.Name, in, src, 1)
		})
		if i < 0 {
			return ""
		}
		return cmp.Or(q.Fields.Fields[i].AsName.O, column)
	}
	shown := func(key string) string {
		if name := direct(src, key); name != "" {
			return name
		}
		for _, other := range joinedBy(s, q.From.TableRefs, in, src, key) {
			if name := direct(other.src, other.column); name != "" {
				return name
			}
		}
		return ""
	}
	if len(src.rel.Key) == 0 || s.session.Once || slices.ContainsFunc(src.rel.Key, func(key string) bool { return shown(key) == "" }) {
		return seen, false
	}
	row := behind(s.r.flavor, up.alias, seen.ref, src.rel, shown)
	seen.up = row.tell(row.version(true))
	return seen, true
}

// joinedColumn is a column of a table of a query.
type joinedColumn struct {
	src    *source
	column string
}

// joinedBy gives the columns of other tables that have, in each row of a query, the value of a column of src that is its whole primary key: those of the
// conditions of inner joins, and the one that is all that a left join asks of src. Where such a join has no row of src, the column is NULL, or there is no row with its
// value.
func joinedBy(s *planner, n ast.ResultSetNode, in []source, src *source, key string) (list []joinedColumn) {
	j, ok := n.(*ast.Join)
	if !ok || len(src.rel.Key) != 1 {
		return nil
	}
	list = append(joinedBy(s, j.Left, in, src, key), joinedBy(s, j.Right, in, src, key)...)
	if j.Right == nil || j.On == nil || j.NaturalJoin || len(j.Using) > 0 || j.Tp == ast.RightJoin {
		return list
	}
	all := conjuncts(j.On.Expr)
	if t, table := j.Right.(*ast.TableSource); j.Tp == ast.LeftJoin && (!table || len(all) != 1 || !strings.EqualFold(nameOfTable(t), src.alias)) {
		return list
	}
	for _, e := range all {
		equalities(e, func(op opcode.Op, l, r ast.ExprNode) {
			a, ok1 := l.(*ast.ColumnNameExpr)
			b, ok2 := r.(*ast.ColumnNameExpr)
			if op != opcode.EQ || !ok1 || !ok2 || !strings.EqualFold(a.Name.Name.O, key) || !s.owns(a.Name, in, src, 1) {
				return
			}
			for i := range in {
				if other := &in[i]; other.rel != nil && other.alias != src.alias && s.owns(b.Name, in, other, 1) && other.column(b.Name.Name.O) != nil && sameValues(src.column(key), other.column(b.Name.Name.O)) {
					list = append(list, joinedColumn{other, b.Name.Name.O})
				}
			}
		})
	}
	return list
}

// nameOfTable is the name by which a query's table is qualified.
func nameOfTable(t *ast.TableSource) string {
	n, _ := t.Source.(*ast.TableName)
	if n == nil {
		return ""
	}
	return cmp.Or(t.AsName.O, n.Name.O)
}

// skips reports whether a table of a query has nothing to tell.
func (e *exposure) skips(q *ast.SelectStmt, src *source) bool {
	return q == e.distinct && e.idle[strings.ToLower(src.alias)]
}

// put adds a column and gives its name in the query around.
func (e *exposure) put(add, check *strings.Builder, up *source, value string) string {
	name := mysqlsyntax.Quote(fmt.Sprintf("%s%d", upPrefix, e.count))
	e.count++
	fmt.Fprintf(add, ",%s %s", value, name)
	fmt.Fprintf(check, ",wc_probe %s", name)
	return up.ref + "." + name
}

// fetched sees to it that no index is left that could have answered without the hidden columns: what the query around needs of a derived table is
// not looked at, so that may be less than it selects.
func (e *exposure) fetched(src *source) bool {
	if len(src.rel.Indexes) == 0 && e.s.r.flavor == MariaDB {
		return true
	}
	if e.locking || e.s.session.Once || len(src.rel.Key) == 0 {
		return false
	}
	src.byKey(e.s.r.flavor)
	return true
}

// selectOf gives the token SELECT of a query; -1 if it is not certain.
func (s *scene) selectOf(q *ast.SelectStmt) int {
	if q.Fields == nil || len(q.Fields.Fields) == 0 {
		return -1
	}
	at := s.base + q.Fields.Fields[0].Offset
	i := slices.IndexFunc(s.text.Tokens, func(t statement.Token) bool { return t.Start >= at })
	for i--; i >= 0 && !s.text.Is(i, "SELECT"); i-- {
		if s.text.Is(i, "FROM", "WHERE", ",", "UNION") {
			return -1
		}
	}
	return i
}

// shows reports whether a wildcard stands for the columns of a source, among others perhaps.
func shows(f *ast.SelectField, src *source) bool {
	return f.WildCard.Table.O == "" || strings.EqualFold(f.WildCard.Table.O, src.alias)
}

// names gives the names of a query's columns; nil if the text does not tell them. What is known of tables may be older than they are.
func (s *scene) names(q *ast.SelectStmt) (names []string) {
	for _, f := range q.Fields.Fields {
		c, column := f.Expr.(*ast.ColumnNameExpr)
		switch {
		case f.WildCard != nil:
			list, ok := s.sources(q.From.TableRefs, nil)
			if !ok || joinsByName(q.From.TableRefs) {
				return nil
			}
			for i := range list {
				if !shows(f, &list[i]) {
					continue
				}
				if list[i].query == nil {
					return nil
				}
				columns := s.names(list[i].query)
				if columns == nil {
					return nil
				}
				names = append(names, columns...)
			}
		case f.AsName.O != "":
			names = append(names, f.AsName.O)
		case column:
			names = append(names, c.Name.Name.O)
		default:
			return nil
		}
	}
	return names
}

// writtenOut writes out the wildcards of a query that would show the columns of its derived tables.
func (s *planner) writtenOut(q *ast.SelectStmt, list []source) (edits []edit) {
	for _, f := range q.Fields.Fields {
		if f.WildCard == nil {
			continue
		}
		var columns []string
		derived := false
		for i := range list {
			src := &list[i]
			if !shows(f, src) {
				continue
			}
			if derived = derived || src.query != nil; src.query == nil {
				columns = append(columns, src.ref+".*")
				continue
			}
			for _, name := range s.names(src.query) {
				columns = append(columns, mysqlsyntax.Quote(src.alias)+"."+mysqlsyntax.Quote(name))
			}
		}
		if !derived {
			continue
		}
		from := slices.IndexFunc(s.text.Tokens, func(t statement.Token) bool { return t.Start >= s.base+f.Offset })
		to := from
		for !s.text.Is(to, "*") {
			to++
		}
		text := strings.Join(columns, ",")
		edits = append(edits, edit{at: s.text.Tokens[from].Start, cut: s.text.Tokens[to].End - s.text.Tokens[from].Start, add: text, check: text})
	}
	return edits
}

// exposed counts the columns that stand at the end of select lists and have one of our names.
func exposed(n ast.Node) (count int) {
	visit(n, func(n ast.Node) {
		q, ok := n.(*ast.SelectStmt)
		for i := 0; ok && q.Fields != nil && i < len(q.Fields.Fields); i++ {
			f := q.Fields.Fields[len(q.Fields.Fields)-1-i]
			if !isProbe(f.Expr) || !strings.HasPrefix(f.AsName.O, upPrefix) {
				return
			}
			count++
		}
	})
	return count
}
