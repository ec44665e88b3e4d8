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
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// groupEntry is the most that one row takes in the column that GROUP_CONCAT makes: row id, space, writers, separator;
// with its name some more.
const (
	groupEntry      = 20 + 1 + writersSize + 1
	groupEntryNamed = groupEntry + 400
)

// groupRows is the most rows of a group that are named.
const groupRows = 1000

// maxTables is how many tables a SELECT may name: the servers join 61 (MySQL manual, 10.11), and TiDB has no limit.
const maxTables = 64

// query plans a SELECT.
func (s *planner) query(n *ast.SelectStmt) {
	p := s.plan
	all := walk(n)
	if s.callsStored(all) {
		s.partial("a stored function")
	}
	if n.Kind != ast.SelectStmtKindSelect {
		if n.Kind == ast.SelectStmtKindTable {
			s.opaque("TABLE")
		} else if all.sub > 0 || len(s.why) > 0 {
			s.opaque("VALUES with queries")
		}
		return
	}
	if n.SelectIntoOpt != nil {
		s.opaque("its result goes to variables or a file")
		return
	}
	s.with(n)
	var list []source
	if n.From != nil {
		var ok bool
		if list, ok = s.sources(n.From.TableRefs, nil); !ok {
			s.opaque("a FROM clause that is not understood")
			return
		}
		if len(list) > maxTables {
			s.opaque(fmt.Sprintf("more than %d tables", maxTables))
			return
		}
		s.eliminate(n, list)
		if s.r.flavor == MariaDB && s.mixes(n, list) {
			s.opaque("a join of an indexed text with a number")
			return
		}
		n = withoutLimit(s, n, list)
	}
	nested := all.sub
	if n.From != nil {
		nested--
	}
	if nested > 0 && noRows(n) {
		s.opaque("subqueries of a query for no rows")
		return
	}
	if s.readable(n, all, list, nested); s.plan.Coverage == history.CoverageNone && nested > 0 {
		s.partial("what subqueries read is not seen")
	}
	s.askedBySelect(n)
	if p.Coverage == history.CoverageNone {
		if len(s.why) > 0 { // no table that we know of, but something
			s.opaque(strings.Join(s.why, "; "))
		}
	}
}

// noRows reports whether a query asks for no rows. The server executes no more of it than constant subqueries, and its plan decides which ones those are.
func noRows(n *ast.SelectStmt) bool {
	if n.Limit == nil || n.SelectStmtOpts != nil && n.SelectStmtOpts.CalcFoundRows {
		return false
	}
	v, ok := n.Limit.Count.(ast.ValueExpr)
	return ok && v.GetValue() == uint64(0)
}

// readable adds the columns that tell what was read, one for each source that can be seen. nested is how many queries with tables stand in n.
func (s *planner) readable(n *ast.SelectStmt, all finding, list []source, nested int) {
	p := s.plan
	if existenceTold(s, n) {
		return
	}
	op, locking := history.OpRead, s.session.LockingReads
	if n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone {
		op, locking = history.OpLock, true
		if len(n.LockInfo.Tables) > 0 && len(n.LockInfo.Tables) < len(list) {
			op = history.OpRead // FOR UPDATE OF: the others are plain reads; a read is the weaker fact
		}
	}
	if s.session.LockingReads {
		op = history.OpLock
	}
	grouped := n.GroupBy != nil || s.aggregates(n)
	rows, named := 0, true
	if grouped {
		named = s.session.GroupConcat/groupEntryNamed >= groupRows
		rows = min(groupRows, int(min(s.session.GroupConcat, 1<<24)/groupEntry))
	}
	whole := &reader{s: s}
	keyed := n.Distinct && !grouped && !locking && s.keyed(n, list, &exposure{})
	if s.r.flavor != MariaDB && (grouped || n.Distinct && !keyed) && whole.scanned(n, all, list, grouped) {
		return
	}
	inner := exposure{s: s, locking: locking, logged: n.GroupBy != nil || grouped && s.unwarned(), named: named}
	keyed = keyed && s.keyed(n, list, &inner)
	sub := readerOf(s, n, list, locking)
	inner.sub = sub
	why := s.why
	seen := s.seen(n, all, list, &inner, nested-sub.queries)
	if s.sole && len(seen) == 0 {
		s.sole, sub.lookups = false, nil
	}
	missing := len(seen)+len(sub.lookups) == 0 && len(list) == 1 && list[0].query != nil || s.r.flavor == TiDB && len(s.why) > len(why)
	if missing && whole.scanned(n, all, list, grouped) {
		s.why = why
		return
	}
	p.Predicate = s.predicate(n.Where, list)
	if len(seen)+len(sub.lookups) == 0 {
		return
	}
	switch {
	case n.Distinct && !keyed, grouped && (walk(n.Fields).window || len(n.WindowSpecs) > 0), n.GroupBy != nil && n.GroupBy.Rollup:
		if first := s.outerSelect(); first < 0 || !s.logged(n, all, list, op, first) {
			if s.r.flavor == MariaDB && whole.scanned(n, all, list, grouped) {
				s.why = why
				return
			}
			s.opaque(strings.Join(append(s.why, "DISTINCT, ROLLUP, or window functions over groups"), "; "))
			return
		}
		s.inLog()
		return
	case n.GroupBy != nil:
		s.groups(n, all, list, seen, op, locking)
		s.expose(n, list, &inner)
		return
	case grouped && len(all.aggregates) == 0:
		s.opaque("aggregates of an outer query")
		return
	case grouped && (locking && extreme(all.extremes, list) || extremesOnly(n, list)):
		s.opaque("MIN or MAX of an index")
		return
	}
	if grouped && s.unwarned() {
		s.groups(n, all, list, seen, op, locking)
		s.expose(n, list, &inner)
		return
	}
	if grouped {
		if rows < 1 || s.r.flavor != MariaDB {
			s.opaque("groups that cannot be listed here")
			return
		}
		s.silent = n.Having != nil || n.Limit != nil
	}
	at := s.selectListEnd()
	if n.From == nil {
		at = s.bareListEnd()
	}
	if at < 0 || !placesFit(n, list) {
		s.opaque("the end of the select list is not certain")
		return
	}
	space := ""
	if s.r.flavor == MySQL && s.session.Mode&mysqlsyntax.IgnoreSpace != 0 {
		// There the name of the last column has the space behind it, if it ends with a word (9.7.4).
		at, space = fromBehind(s.text, at), " "
	}
	add, tables := columnsOf(seen, sub.lookups, named, grouped, rows)
	p.Hidden = len(seen) + len(sub.lookups)
	s.edits = append(s.edits, edit{at: at, add: add + space, check: strings.Repeat(",wc_probe", p.Hidden) + " "})
	p.Coverage = history.CoverageExact
	s.silent, s.copies = s.silent || sub.silent, s.copies || len(sub.lookups) > 0 // literals
	p.Decode = decodeReads(tables, op)
	s.expose(n, list, &inner)
}

// columnsOf gives the text of the columns that are added, and what each of them tells.
func columnsOf(seen []source, lookups []lookup, named, grouped bool, rows int) (string, []told) {
	var add strings.Builder
	tables := make([]told, len(seen))
	for i := range seen {
		tables[i].table = seen[i].table()
		if _, _, values := nameParts(&seen[i]); named && len(values) > 0 {
			tables[i].key = keyNames(seen[i].rel)
		}
		if grouped {
			tables[i].limit = rows
			fmt.Fprintf(&add, ",GROUP_CONCAT(%s SEPARATOR ';' LIMIT %d)", seen[i].version(named), rows)
		} else {
			add.WriteString("," + seen[i].version(true))
		}
	}
	for _, l := range lookups {
		add.WriteString(l.add)
		tables = append(tables, l.told)
	}
	return add.String(), tables
}

// seen gives the tables whose versions can be told, those of derived tables included.
func (s *planner) seen(n *ast.SelectStmt, all finding, list []source, inner *exposure, nested int) (seen []source) {
	for i := range list {
		src := &list[i]
		switch why := s.indexed(n, all, list, src, inner.locking); {
		case !src.watched() || inner.skips(n, src):
		case src.query != nil && n.LockInfo == nil:
			told, why := inner.of(src, n)
			if why != "" {
				s.partial(why)
			}
			seen = append(seen, told...)
		case src.rel != nil && src.rel.Kind == "view":
			told, why := inner.viewed(n, all, list, src)
			if why != "" {
				s.partial(why)
			}
			seen = append(seen, told...)
		case src.why != "":
			s.partial(src.why)
		case why != "":
			s.partial(why)
		default:
			seen = append(seen, *src)
		}
	}
	if nested > inner.queries {
		s.partial("what subqueries read is not seen")
	}
	return seen
}

// unwarned reports whether a SELECT may assign variables where MySQL would warn of it: a prepared statement of the client has one of ours beside it
// (rewrite.Plan.ParsedApart).
func (s *scene) unwarned() bool { return s.r.flavor == MySQL && s.prepared }

// groups plans a SELECT with GROUP BY, and on MySQL one with aggregates alone. What it reads goes to the log, by an assignment within COUNT, which is evaluated
// for each row of each group. GROUP_CONCAT would make the server group in another way, and then metadata (flags,
// lengths) and even a MIN(bit) come out differently (MariaDB 10.11.19).
func (s *planner) groups(n *ast.SelectStmt, all finding, list, seen []source, op history.Op, locking bool) {
	switch {
	case s.r.flavor != MariaDB && !s.unwarned():
		s.opaque("GROUP BY on this server")
		return
	case s.several:
		s.opaque("several statements in one request")
		return
	case locking && slices.ContainsFunc(all.aggregates, func(f string) bool { return f == "min" || f == "max" }):
		s.opaque("MIN or MAX")
		return
	case locking && len(all.aggregates) == 0:
		s.opaque("GROUP BY that an index may answer")
		return
	case len(all.aggregates) == 0 && n.GroupBy != nil && !(quietly{s: s, list: list}).quietGroups(n):
		s.opaque("groups by a value that may warn")
		return
	}
	at := s.selectListEnd()
	if at < 0 || !placesFit(n, list) {
		s.opaque("the end of the select list is not certain")
		return
	}
	kind := "r"
	if op == history.OpLock {
		kind = "l"
	}
	kind, images := hiddenImages(s, n, list, seen, kind)
	var add strings.Builder
	for i := range seen {
		// The branch that never runs has its reason at captured. The missing row of an outer join makes NULL.
		fmt.Fprintf(&add, ",COUNT(IF(0,@wc_log:=%s,IF(LENGTH(@wc_log)<%d,@wc_log:=IFNULL(%s,@wc_log),1)))", emptyLog, logLimit, appended(kind, &seen[i], images...))
	}
	s.edits = append(s.edits, edit{at: at, add: add.String(), check: strings.Repeat(",wc_probe", len(seen)) + " "})
	p := s.plan
	p.Hidden, p.Stamp, p.Log = len(seen), true, true
	p.Coverage = history.CoverageExact
	p.Decode = func(list []history.Access, _ [][]byte) ([]history.Access, error) { return list, nil }
}

// extremesOnly reports whether all aggregates of a query, subqueries apart, are MIN and MAX, one of them of a column of an index: they may come from the end of an
// index without reading, or locking, anything else, and then the server does not look at ORDER BY either.
func extremesOnly(n *ast.SelectStmt, list []source) bool {
	var own finding
	mysqlsyntax.Visit(n, func(n ast.Node) bool {
		own.enter(n)
		_, nested := n.(*ast.SubqueryExpr)
		return nested
	})
	return len(own.extremes) == len(own.aggregates) && extreme(own.extremes, list)
}

// extreme reports whether one of the expressions may be a column of an index: MIN and MAX of an expression are never
// taken from an index.
func extreme(list []ast.ExprNode, sources []source) bool {
	return slices.ContainsFunc(list, func(e ast.ExprNode) bool {
		for {
			p, ok := e.(*ast.ParenthesesExpr)
			if !ok {
				break
			}
			e = p.Expr
		}
		c, ok := e.(*ast.ColumnNameExpr)
		return ok && slices.ContainsFunc(sources, func(src source) bool {
			in := func(ix []string) bool { return mysqlsyntax.ContainsName(ix, c.Name.Name.O) }
			return src.rel == nil || src.rel.Kind == "view" || in(src.rel.Key) || slices.ContainsFunc(src.rel.Indexes, in)
		})
	})
}

// aggregates reports whether the query's own parts, not those of subqueries, use aggregate functions.
func (s *judge) aggregates(n *ast.SelectStmt) bool {
	for _, f := range n.Fields.Fields {
		if f.Expr != nil && ast.HasAggFlag(f.Expr) {
			return true
		}
	}
	if n.Having != nil && ast.HasAggFlag(n.Having.Expr) {
		return true
	}
	if n.OrderBy != nil {
		for _, item := range n.OrderBy.Items {
			if ast.HasAggFlag(item.Expr) {
				return true
			}
		}
	}
	return false
}

// told is what the hidden column of one table tells: versions of its rows, and their keys if it has some.
type told struct {
	table string
	key   []string
	limit int  // how many versions there may be; 0: one
	sole  bool // of several it is not certain which one was read
	tied  bool // if the two are not the same row, it is not certain which one was read
	// another says that the column tells whether there is a row beside those of the answer, in the place of which it would have done.
	another bool
}

// decodeReads reads the hidden columns of a row.
func decodeReads(tables []told, op history.Op) func([]history.Access, [][]byte) ([]history.Access, error) {
	return func(out []history.Access, hidden [][]byte) ([]history.Access, error) {
		before := len(out)
		if len(hidden) != len(tables) {
			return out, fmt.Errorf("%d hidden columns where %d were added", len(hidden), len(tables))
		}
		partial := false
		for i, cell := range hidden {
			t := &tables[i]
			if cell == nil {
				continue
			}
			if t.another {
				for k := range out[before:] {
					out[before+k].Approx = true
				}
				continue
			}
			if t.limit == 0 {
				a, err := decodeRead(cell, *t, op)
				if err != nil {
					return out, err
				}
				if a.Row.Key == noKey {
					partial = true
					continue
				}
				out = append(out, a)
				continue
			}
			list := entries(cell)
			if t.tied {
				list = slices.CompactFunc(list, bytes.Equal)
			}
			if t.tied && len(list) > 1 || t.sole && len(list) >= t.limit || string(list[0]) == scanTooMany { // any of them may have been read
				partial = true
				continue
			}
			several := t.sole && slices.ContainsFunc(list, func(one []byte) bool { return !bytes.Equal(one, list[0]) })
			n := 0
			for _, one := range list {
				if n++; len(one) == 0 {
					continue
				}
				a, err := decodeRead(one, *t, op)
				if err != nil {
					return out, err
				}
				if a.Approx = several; n > 64 || !holds(out[before:], &a) {
					out = append(out, a)
				}
			}
			partial = partial || n >= t.limit
		}
		if partial {
			return out, rewrite.ErrPartial
		}
		return out, nil
	}
}

// holds reports whether an access is in a list. Nearly all others differ in the row.
func holds(list []history.Access, a *history.Access) bool {
	for i := range list {
		if list[i].Row.Key == a.Row.Key && list[i] == *a {
			return true
		}
	}
	return false
}

// listEnd gives the offset behind the select list of the SELECT at token i that has a FROM clause.
func listEnd(t *statement.Text, i int) int {
	from := t.Find(i+1, t.Tokens[i].Depth, "FROM")
	if from < i+2 {
		return -1
	}
	return t.Tokens[from-1].End
}

// fromBehind gives the offset of the first token at or behind offset at.
func fromBehind(t *statement.Text, at int) int {
	for _, tok := range t.Tokens {
		if tok.Start >= at {
			return tok.Start
		}
	}
	return at
}

// exactNumber reports whether sums of a column are the same in any order.
func exactNumber(c *rewrite.Attribute) bool {
	if c == nil {
		return false
	}
	switch typeName(c.Type) {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal", "numeric", "year":
		return true
	}
	return false
}

func (src *source) visible() []string {
	var names []string
	for _, c := range src.rel.Columns {
		if !c.Hidden {
			names = append(names, strings.ToLower(c.Name))
		}
	}
	return names
}

func (src *source) column(name string) *rewrite.Attribute {
	for i := range src.rel.Columns {
		if strings.EqualFold(src.rel.Columns[i].Name, name) {
			return &src.rel.Columns[i]
		}
	}
	return nil
}

// owns reports whether a column name certainly means a column of src.
func (s *judge) owns(c *ast.ColumnName, list []source, src *source, queries int) bool {
	if c.Table.O != "" {
		return strings.EqualFold(c.Table.O, src.alias)
	}
	if src.column(c.Name.O) == nil || queries > 1 {
		return false
	}
	for i := range list {
		if other := &list[i]; other.alias != src.alias && (other.rel == nil || other.column(c.Name.O) != nil) {
			return false
		}
	}
	return true
}

// predicate reports whether rows are chosen otherwise than by equality with a whole unique key of each table.
func (s *judge) predicate(where ast.ExprNode, list []source) bool {
	for i := range list {
		if list[i].rel != nil && !s.point(where, list, &list[i], list[i].rel.Unique) {
			return true
		}
		if list[i].rel == nil && list[i].why != "" {
			return true
		}
	}
	return false
}

// pointKey reports whether the primary key is given, so that the server reads one row by it. It does not so by <=> in the inner table of an outer join.
func (s *judge) pointKey(where ast.ExprNode, list []source, src *source) bool {
	return len(src.rel.Key) > 0 && s.point(where, list, src, [][]string{src.rel.Key}) && !(len(list) > 1 && nullSafe(where))
}

// point reports whether the condition equates all columns of one of the keys with values that are not of src, each of which equals one value of its
// column. Of a parameter that is compared with a text, its type shows this (proxy/mysqlwire, bound).
func (s *judge) point(where ast.ExprNode, list []source, src *source, keys [][]string) bool {
	return s.equates(where, list, src, keys, func(at *rewrite.Attribute, value ast.ExprNode) bool {
		_, param := value.(*mysqlsyntax.ParamMarker)
		kind := kindOf(at)
		return s.equalsOne(at, value) || param && (kind == condition.Folded || kind == condition.Bytes)
	})
}

// equalsOne reports whether a constant, a parameter or a variable equals one value of a column at most. Many texts equal one number, and one moment (MySQL
// manual, 14.3: strings are converted), many large integers one text that is no integer, and in a time zone two moments may show alike.
func (s *scene) equalsOne(at *rewrite.Attribute, value ast.ExprNode) bool {
	var of any
	if literal, ok := value.(*mysqlsyntax.Value); ok {
		of = literal.V
	}
	text, isText := of.(string)
	switch s.kindHere(at) {
	case condition.Number:
		return !isText || integer(at) && condition.Whole(text)
	case condition.Date, condition.Timestamp:
		return true
	}
	switch typeName(at.Type) {
	case "year", "time":
		return true
	case "timestamp":
		return false
	}
	if written, ok := of.(mysqlsyntax.Written); ok {
		_, isText = written.Bytes()
	}
	return isText
}

// equates is point, as far as the values that are equated with columns are accepted.
func (s *judge) equates(where ast.ExprNode, list []source, src *source, keys [][]string, accepted func(at *rewrite.Attribute, value ast.ExprNode) bool) bool {
	var fixed []string
	equalities(where, func(_ opcode.Op, l, r ast.ExprNode) {
		if c := s.equated(l, r, list, src); c != "" && src.column(c) != nil && accepted(src.column(c), r) {
			fixed = append(fixed, c)
		}
	})
	return statement.Whole(keys, func(c string) bool { return mysqlsyntax.ContainsName(fixed, c) }) != nil
}

// equalities calls each with the operands of all equalities that a condition asks for, from either side. op is EQ or NullEQ.
func equalities(e ast.ExprNode, each func(op opcode.Op, l, r ast.ExprNode)) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		equalities(e.Expr, each)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd:
			equalities(e.L, each)
			equalities(e.R, each)
		case opcode.EQ, opcode.NullEQ:
			each(e.Op, e.L, e.R)
			each(e.Op, e.R, e.L)
		}
	}
}

// equated gives the column of src that l is, if r is a literal, a parameter or a variable; else nothing.
func (s *judge) equated(l, r ast.ExprNode, list []source, src *source) string {
	c, ok := l.(*ast.ColumnNameExpr)
	if !ok || !s.owns(c.Name, list, src, 1) {
		return ""
	}
	switch r := r.(type) {
	case ast.ValueExpr, *ast.VariableExpr:
		return c.Name.Name.L
	case *ast.UnaryOperationExpr:
		if _, ok := r.V.(ast.ValueExpr); ok {
			return c.Name.Name.L
		}
	}
	return ""
}
