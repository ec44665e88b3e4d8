package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// A query over an inner join asks something of each table: of booking the rows that fulfil the conditions on booking, and of which the room is one of those
// that fulfil the conditions on room. The same statement tells which rooms do, in one more column, so that they are the ones which it could see:
//
//	SELECT COUNT(*), IF((SELECT 1 FROM room FORCE INDEX (PRIMARY) WHERE id>0 LIMIT 1000,1) IS NULL, (SELECT ... r.id ... FROM room r FORCE INDEX (PRIMARY) WHERE
//	r.id>0 AND r.floor = 3), NULL) FROM booking b JOIN room r ON r.id = b.room WHERE r.floor = 3 AND b.hour = 9
//
// The column comes with a row of the answer, which aggregates and EXISTS have in any case. The servers say in their status flags whether a query scanned a table
// without an index. A range of the primary key is none, so a list is read by one that has all rows, of tables with few rows.

// joining is a join whose tables can be asked for one by one.
type joining struct {
	rewrite.JoinTree[term]
	s    *planner
	q    *ast.SelectStmt
	list []source

	exists  bool
	absent  bool // see rewrite.Ask.Absent
	rows    bool // the answer has the rows, and no groups or aggregates of them
	grouped bool // GROUP BY
	// distinct says that rows which look alike are one. Then keyed are the tables of which the answer shows the primary keys.
	distinct bool
	keyed    map[int]bool
	sole     int // the table of which alone such an answer shows columns, and the primary key among them; -1: there is none
	limit    *ast.Limit
	order    *ast.OrderByClause
	around   string                  // the name of the derived table that the query is
	on       []ast.ExprNode          // the conditions of joins
	texts    map[ast.ExprNode]string // of conditions that WHERE or ON joins by AND
	lists    []string                // the SQL text of hidden columns
	told     []string                // the SQL text of hidden columns with what each row of the answer tells
}

// term is a condition. As one on the column as, it is of a table of which that column refers to the one that it names.
type term struct {
	ast.ExprNode
	of int // the number of the table that it names
	as string
}

// A list has so many values at most. It is read of tables that have few rows, fewer the more tables there are.
const maxListed = 200

var maxListRows = []int{0, 1000, 200, 60}

// maxJoined is how many tables such a join has at most.
const maxJoined = 8

// joiningOf gives the join of a query that aggregates, asks for existence, or looks for rows; nil if it is none, or not of such a form.
func joiningOf(s *planner, n *ast.SelectStmt) *joining {
	j := &joining{s: s, q: n, sole: -1, order: n.OrderBy, texts: map[ast.ExprNode]string{}, JoinTree: rewrite.JoinTree[term]{Around: []int{0}, Checked: condition.ForeignKeys}}
	j.Merges, j.Moved, j.Only = j.merges, j.moved, func(e term, column string) bool { return only(e, column) }
	plain := func(q *ast.SelectStmt) bool {
		return q.Kind == ast.SelectStmtKindSelect && q.With == nil && q.Having == nil && q.LockInfo == nil && q.SelectIntoOpt == nil && q.WindowSpecs == nil &&
			(q.GroupBy == nil || !q.GroupBy.Rollup)
	}
	if !plain(n) || s.r.flavor == TiDB || s.session.Once || s.session.Cut {
		return nil
	}
	alone := *n
	switch in, absent := existence(n); {
	case in != nil:
		j.exists, j.absent, j.q = true, absent, in
	default:
		j.grouped = n.GroupBy != nil
		j.rows, j.limit, alone.Limit = !j.grouped && !s.aggregates(n), n.Limit, nil
		if j.limit != nil && j.limit.Offset != nil && !j.rows {
			return nil
		}
	}
	if in := paged(n); in != nil && j.rows {
		if in.GroupBy != nil || s.aggregates(in) {
			return nil
		}
		j.q, j.distinct, j.around = in, true, n.From.TableRefs.Left.(*ast.TableSource).AsName.O
	}
	for in := counted(j.q); in != nil && !j.rows && !j.grouped; in = counted(j.q) {
		j.q = in
	}
	if j.q == n {
		j.q = &alone
	}
	if j.q.From == nil || !plain(j.q) || j.q.Limit != nil || walk(j.q).queries != 1 || j.q != &alone && (s.aggregates(j.q) || j.q.GroupBy != nil) || j.q != &alone && j.rows && walk(n).queries != 2 {
		return nil
	}
	var ok bool
	if j.list, ok = s.sources(j.q.From.TableRefs, nil); !ok || len(j.list) < 2 || len(j.list) > maxJoined {
		return nil
	}
	s.eliminate(j.q, j.list)
	for i := range j.list {
		src := &j.list[i]
		if src.rel == nil || src.why != "" || src.rel.Kind != "table" || !strings.EqualFold(src.rel.Engine, "InnoDB") || slices.ContainsFunc(j.list[:i], func(o source) bool { return o.alias == src.alias }) {
			return nil
		}
	}
	if !j.gather(j.q.From.TableRefs, 0) {
		return nil
	}
	for _, e := range conjuncts(j.q.Where) {
		j.Clauses = append(j.Clauses, rewrite.Clause[term]{Node: term{ExprNode: e}, To: len(j.list)})
	}
	for i := range j.Clauses {
		if !j.sort(&j.Clauses[i]) {
			return nil
		}
	}
	if !j.Reduce(j.strict) {
		return nil
	}
	if j.distinct = j.distinct || j.q.Distinct; j.distinct {
		j.keys(n)
	}
	j.drop()
	return j
}

// conjuncts are the conditions that AND joins.
func conjuncts(e ast.ExprNode) []ast.ExprNode {
	if e == nil {
		return nil
	}
	if b, ok := unwrapped(e).(*ast.BinaryOperationExpr); ok && b.Op == opcode.LogicAnd {
		return append(conjuncts(b.L), conjuncts(b.R)...)
	}
	return []ast.ExprNode{unwrapped(e)}
}

// tableOf gives the number of the table that has a column; -1 if that is not certain.
func (j *joining) tableOf(c *ast.ColumnName) int {
	return slices.IndexFunc(j.list, func(src source) bool {
		return c.Schema.O == "" && src.column(c.Name.O) != nil && j.s.owns(c, j.list, &src, 1)
	})
}

// sort finds out of which tables a condition is; false if that is not certain.
func (j *joining) sort(c *rewrite.Clause[term]) bool {
	for _, name := range walk(c.Node.ExprNode).columns {
		i := j.tableOf(name)
		if i < 0 {
			return false
		}
		if !slices.Contains(c.Tables, i) {
			c.Tables = append(c.Tables, i)
		}
	}
	switch len(c.Tables) {
	case 1:
		c.Node.of = c.Tables[0]
	case 2:
		b, _ := c.Node.ExprNode.(*ast.BinaryOperationExpr)
		c.Tie = j.tie(b)
	}
	return true
}

// tie gives the equality of two columns that a condition is; nil if it is none.
func (j *joining) tie(b *ast.BinaryOperationExpr) *rewrite.Tie {
	if b == nil || b.Op != opcode.EQ {
		return nil
	}
	t := &rewrite.Tie{}
	for k, side := range []ast.ExprNode{b.L, b.R} {
		c, ok := unwrapped(side).(*ast.ColumnNameExpr)
		if !ok {
			return nil
		}
		t.Table[k] = j.tableOf(c.Name)
		t.Column[k] = j.list[t.Table[k]].column(c.Name.Name.O).Name
	}
	return t
}

// asks notes what the query asks of each table, and puts the lists that it needs behind the other hidden columns. It gives the reason if it cannot.
func (j *joining) asks() string {
	s := j.s
	first := s.whereOf(false)
	j.textsOf(j.q.Where, first)
	places := s.places(j.q.Where, first)
	if places == nil {
		places = map[ast.Node]int{}
	}
	j.onText(places)
	limits := asker{planner: s, places: places}
	limits.ask.Joined, limits.ask.Merged, limits.ask.Single, limits.ask.Exists = j.rows || j.grouped, j.grouped || j.distinct && j.sole < 0, !j.rows && !j.grouped && !j.exists, j.exists
	limits.ask.Absent = j.absent
	limits.ask.Current = s.session.LockingReads
	if j.limit != nil {
		limits.placeOf(j.limit)
		if limits.ask.Limit = limits.value(j.limit.Count, condition.Number); limits.ask.Limit == nil {
			return "LIMIT hides rows"
		}
		if limits.ask.Skip = limits.value(j.limit.Offset, condition.Number); j.limit.Offset != nil && limits.ask.Skip == nil {
			return rewrite.SkipsRows
		}
	}
	leads, beyond, alike := -1, condition.Condition{}, condition.Condition{}
	if j.limit != nil && j.rows && (!j.distinct || j.sole >= 0) {
		leads, beyond, alike = j.leader()
	}
	limits.ask.Searched = j.searched(limits)
	pinned := j.pinned()
	for i := range j.list {
		if j.Tables[i].Group < 0 {
			continue
		}
		v := j.View(i)
		if j.Steady(v) {
			continue
		}
		a := limits
		a.src, a.ask.Types = &j.list[i], maps.Clone(limits.ask.Types)
		switch {
		case j.limit == nil || !j.rows || j.distinct && j.sole < 0:
		case j.order == nil:
			a.ask.Beyond = condition.Never
		case i == leads:
			a.ask.Beyond, a.ask.Alike = beyond, alike
		}
		a.ask.Where = j.where(&a, v)
		if why := a.note(j.q.From.TableRefs, pinned[i]); why != "" {
			return why
		}
	}
	s.plan.Predicate = slices.ContainsFunc(s.plan.Asks, func(a rewrite.Ask) bool { return !a.Pinned })
	if len(j.told) > 0 {
		tellKeys(s, j.told)
	} else if tellLists(s, j.lists) {
		s.copies = true
	}
	return ""
}

// where is the condition on the rows of one table.
func (j *joining) where(a *asker, v *rewrite.JoinView[term]) condition.Condition {
	var all, unsure []condition.Condition
	add := func(list []term) {
		for _, e := range list {
			a.src = &j.list[v.Table]
			if e.as != "" {
				a.src = &j.list[e.of]
			}
			c := a.condition(e.ExprNode)
			if e.as != "" {
				c = c.Renamed(e.as)
			}
			all = append(all, c)
		}
		a.src = &j.list[v.Table]
	}
	for _, p := range v.Parts {
		if moved, c, ok := j.Assured(v, p); ok {
			add(moved)
			unsure = append(unsure, c)
			continue
		}
		c := condition.Unknown("tables that no single column joins")
		switch {
		case p.Tie == nil || v.Other:
		case j.shown(v, p):
			c = j.toldBy(p)
		case j.rows || j.grouped || !a.ask.Searched && !j.s.session.Fresh:
			c = condition.Unknown("a join whose rows are not listed")
		default:
			c = j.in(v, p)
		}
		unsure = append(unsure, c)
	}
	if v.Other {
		unsure = append(unsure, condition.Unknown("a condition on several tables"))
	}
	add(v.Own[v.Table])
	return condition.And(append(unsure, all...)...)
}

// in is the condition that a column has one of the values that a list of the hidden columns tells, of the tables that are members.
func (j *joining) in(v *rewrite.JoinView[term], p rewrite.Part) condition.Condition {
	t, members := p.Tie, p.Members
	unsure := condition.Unknown("a join whose rows are not listed")
	own, other := j.list[t.Table[0]].column(t.Column[0]), j.list[t.Table[1]].column(t.Column[1])
	if j.s.session.LockingReads || len(members) >= len(maxListRows) || !integer(own) || !integer(other) || j.s.r.flavor == MySQL && len(members) > 1 { // which may scan one of them in the list alone
		return unsure
	}
	var few, from, where []string
	for _, k := range members {
		m := &j.list[k]
		if m.rel == j.list[v.Table].rel || abs(j.Tables[k].Group) > 0 {
			return unsure
		}
		table, hint := mysqlsyntax.Quote(m.rel.Schema)+"."+mysqlsyntax.Quote(m.rel.Name), ""
		if !j.s.point(j.q.Where, j.list, m, m.rel.Unique) {
			if len(m.rel.Key) == 0 || !integer(m.column(m.rel.Key[0])) {
				return unsure
			}
			hint = " FORCE INDEX (PRIMARY)"
			key := mysqlsyntax.Quote(m.rel.Key[0])
			few = append(few, fmt.Sprintf("(SELECT 1 FROM %s%s WHERE %s<=0 LIMIT 1) IS NULL", table, hint, key), fmt.Sprintf("(SELECT 1 FROM %s%s WHERE %s>0 LIMIT %d,1) IS NULL", table, hint, key, maxListRows[len(members)]))
			where = append(where, j.column(k, m.rel.Key[0])+">0")
		}
		from = append(from, table+" AS "+mysqlsyntax.Quote(m.alias)+hint)
		for _, c := range v.Own[k] {
			if j.texts[c.ExprNode] == "" || !(quietly{s: j.s, list: j.list}).condition(c.ExprNode) {
				return unsure
			}
			where = append(where, j.texts[c.ExprNode])
		}
	}
	for _, o := range v.Ties {
		if a, b := o.Table[0], o.Table[1]; slices.Contains(members, a) && slices.Contains(members, b) {
			where = append(where, j.column(a, o.Column[0])+"="+j.column(b, o.Column[1]))
		}
	}
	value := j.column(t.Table[1], t.Column[1])
	where = append(where, value+" IS NOT NULL")
	values := "JSON_ARRAYAGG(" + value + ")"
	if j.s.r.flavor == MariaDB {
		if j.s.session.GroupConcat < maxListed*24 {
			return unsure
		}
		values = "CONCAT('[',GROUP_CONCAT(DISTINCT " + value + "),']')"
	}
	text := fmt.Sprintf("(SELECT IF(COUNT(DISTINCT %s)<=%d,IFNULL(%s,'[]'),NULL) FROM %s WHERE (%s))", value, maxListed, values, strings.Join(from, ","), strings.Join(where, ") AND ("))
	if len(few) > 0 {
		text = "IF(" + strings.Join(few, " AND ") + "," + text + ",NULL)"
	}
	j.lists = append(j.lists, text)
	return condition.Listed(condition.Number, own.Name, len(j.lists)-1)
}

func integer(a *rewrite.Attribute) bool {
	return a != nil && strings.HasSuffix(typeName(a.Type), "int")
}

func (j *joining) column(table int, name string) string {
	return mysqlsyntax.Quote(j.list[table].alias) + "." + mysqlsyntax.Quote(name)
}

// listsPlace gives the edit behind which columns with lists can stand: that of the hidden columns of the statement's select list; -1 if there is none.
func listsPlace(s *planner) int {
	at := s.selectListEnd()
	if at < 0 {
		at = s.bareListEnd()
	}
	i := slices.IndexFunc(s.edits, func(e edit) bool { return e.at >= at && strings.HasPrefix(e.check, ",wc_probe") })
	if at < 0 || i < 0 || s.plan.Hidden == 0 || s.edits[i].at != at && s.edits[i].at != fromBehind(s.text, at) {
		return -1
	}
	return i
}

// tellLists puts columns with lists behind the hidden columns of the statement's select list, if there are some.
func tellLists(s *planner, lists []string) bool {
	ok := tellBehind(s, lists)
	if ok {
		s.plan.Lists = len(lists)
	}
	return ok
}

// tellBehind puts columns behind those that were added to the statement's select list, if there are some.
func tellBehind(s *planner, columns []string) bool {
	i := listsPlace(s)
	if i < 0 || len(columns) == 0 {
		return false
	}
	e := &s.edits[i]
	behind := e.add[len(strings.TrimRight(e.add, " ")):]
	e.add = strings.TrimRight(e.add, " ") + "," + strings.Join(columns, ",") + behind
	e.check = strings.Repeat(",wc_probe", len(columns)) + e.check
	s.plan.Hidden += len(columns)
	return true
}

// textsOf notes the texts of the conditions that AND joins behind the token WHERE or ON, each of them proven by reading it alone.
func (j *joining) textsOf(e ast.ExprNode, first int) {
	s, all := j.s, conjuncts(e)
	if first < 0 || len(all) == 0 {
		return
	}
	t, end := s.text, first+1
	for depth := t.Tokens[first].Depth; end < len(t.Tokens) && t.Tokens[end].Depth >= depth; end++ {
		if t.Tokens[end].Depth == depth && (t.Is(end, endsOfCondition...) || t.Is(end, ")") && !closes(t, first+1, end)) {
			break
		}
	}
	parts := s.ands(first+1, end)
	if len(parts) != len(all) {
		return
	}
	for i, p := range parts {
		text := t.Between(p[0], p[1])
		again, err := s.r.parser.Parse("SELECT 1 FROM t WHERE "+text, s.session.Mode)
		if q, ok := again.(*ast.SelectStmt); err != nil || !ok || q.Where == nil || restored(unwrapped(q.Where)) != restored(all[i]) {
			return
		}
		if !strings.Contains(text, "?") { // a parameter cannot stand twice in the text
			j.texts[all[i]] = text
		}
	}
}

var endsOfCondition = strings.Fields("WHERE ON LEFT RIGHT NATURAL GROUP ORDER LIMIT HAVING FOR LOCK PROCEDURE INTO WINDOW JOIN INNER CROSS STRAIGHT_JOIN , ;")

// onText is textsOf for the conditions of joins, which stand in the order of the text, and finds the places of their literals.
func (j *joining) onText(places map[ast.Node]int) {
	var at []int
	for i := range j.s.text.Tokens {
		if j.s.text.Is(i, "ON") {
			at = append(at, i)
		}
	}
	if len(at) != len(j.on) {
		return
	}
	for i, e := range j.on {
		j.textsOf(e, at[i])
		maps.Copy(places, j.s.places(e, at[i]))
	}
}

// ands cuts the tokens from i to end where AND joins them.
func (s *scene) ands(i, end int) (parts [][2]int) {
	t := s.text
	if i, end = t.Unwrap(i, end); i >= end {
		return nil
	}
	depth, from, between := t.Tokens[i].Depth, i, false
	for k := i; k < end; k++ {
		switch {
		case t.Tokens[k].Depth != depth:
		case t.Is(k, "OR", "XOR"):
			return [][2]int{{i, end}}
		case t.Is(k, "BETWEEN"):
			between = true
		case t.Is(k, "AND") && between:
			between = false
		case t.Is(k, "AND"):
			parts, from = append(parts, s.ands(from, k)...), k+1
		}
	}
	if from == i {
		return [][2]int{{i, end}}
	}
	return append(parts, s.ands(from, end)...)
}

// restored is a text that is the same for the same expressions.
func restored(e ast.ExprNode) string {
	var b strings.Builder
	if err := e.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
		return ""
	}
	return b.String()
}

// nullSafe reports whether a condition has <=>, by which a unique key holds many NULLs.
func nullSafe(where ast.ExprNode) bool {
	found := false
	visit(where, func(n ast.Node) {
		b, ok := n.(*ast.BinaryOperationExpr)
		found = found || ok && b.Op == opcode.NullEQ
	})
	return found
}
