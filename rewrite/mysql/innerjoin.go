package mysql

import (
	"fmt"
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

// joint is one table of an inner join.
type joint struct {
	source
	own []ast.ExprNode // the conditions that name its columns alone
}

// joining is an inner join whose tables can be asked for one by one.
type joining struct {
	s      *planner
	q      *ast.SelectStmt
	list   []source
	tables []joint
	ties   []rewrite.Tie
	other  bool // there are other conditions on several tables
	exists bool
	limit  *ast.Limit              // of the one row of aggregates
	on     []ast.ExprNode          // the conditions of joins
	texts  map[ast.ExprNode]string // of conditions that WHERE or ON joins by AND
	lists  []string                // the SQL text of hidden columns
}

// A list has so many values at most. It is read of tables that have few rows, fewer the more tables there are.
const maxListed = 200

var maxListRows = []int{0, 1000, 200, 60}

// joiningOf gives the join of a query that has one row in any case; nil if it is none, or not of such a form.
func joiningOf(s *planner, n *ast.SelectStmt) *joining {
	j := &joining{s: s, q: n, texts: map[ast.ExprNode]string{}}
	plain := func(q *ast.SelectStmt) bool {
		return q.Kind == ast.SelectStmtKindSelect && q.With == nil && q.GroupBy == nil && q.Having == nil && q.Limit == nil && q.LockInfo == nil && q.SelectIntoOpt == nil && q.WindowSpecs == nil
	}
	alone := *n
	if alone.Limit != nil && alone.Limit.Offset == nil && n.GroupBy == nil && s.aggregates(n) { // Hibernate's getSingleResult()
		j.limit, alone.Limit = n.Limit, nil
	}
	switch in := existence(n); {
	case !plain(&alone) || s.r.flavor == TiDB || s.session.Once || s.session.LockingReads || s.session.Cut:
		return nil
	case in != nil:
		j.exists, j.q = true, in
	case !s.aggregates(n):
		return nil
	}
	for in := counted(j.q); in != nil; in = counted(j.q) {
		j.q = in
	}
	if j.q == n {
		j.q = &alone
	}
	if j.q.From == nil || !plain(j.q) || walk(j.q).queries != 1 || j.q != &alone && s.aggregates(j.q) {
		return nil
	}
	var ok bool
	if j.list, ok = s.sources(j.q.From.TableRefs, nil); !ok || len(j.list) < 2 || len(j.list) > len(maxListRows) || !innerJoins(j.q.From.TableRefs, &j.on) {
		return nil
	}
	for i := range j.list {
		src := &j.list[i]
		if src.rel == nil || src.why != "" || src.rel.Kind != "table" || !strings.EqualFold(src.rel.Engine, "InnoDB") || slices.ContainsFunc(j.list[:i], func(o source) bool { return o.rel == src.rel }) {
			return nil
		}
		j.tables = append(j.tables, joint{source: *src})
	}
	for _, all := range append(j.on, j.q.Where) {
		for _, c := range conjuncts(all) {
			if !j.sort(c) {
				return nil
			}
		}
	}
	return j
}

// innerJoins takes the conditions of a FROM clause that has inner joins alone, in the order of the text; false if there is anything else in it.
func innerJoins(n ast.ResultSetNode, conditions *[]ast.ExprNode) bool {
	switch n := n.(type) {
	case *ast.Join:
		if n.NaturalJoin || len(n.Using) > 0 || n.Right != nil && n.Tp != ast.CrossJoin {
			return false
		}
		if !innerJoins(n.Left, conditions) || n.Right != nil && !innerJoins(n.Right, conditions) {
			return false
		}
		if n.On != nil {
			*conditions = append(*conditions, n.On.Expr)
		}
		return true
	case *ast.TableSource:
		if in, ok := n.Source.(*ast.Join); ok {
			return innerJoins(in, conditions)
		}
		_, ok := n.Source.(*ast.TableName)
		return ok
	}
	return false
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
func (j *joining) sort(e ast.ExprNode) bool {
	of := map[int]bool{}
	for _, c := range walk(e).columns {
		of[j.tableOf(c)] = true
	}
	b, _ := e.(*ast.BinaryOperationExpr)
	switch {
	case of[-1]:
		return false
	case len(of) == 0: // 1 = 1
		for i := range j.tables {
			j.tables[i].own = append(j.tables[i].own, e)
		}
	case len(of) == 1:
		for i := range of {
			j.tables[i].own = append(j.tables[i].own, e)
		}
	default:
		t, ok := j.tie(b)
		if j.other = j.other || !ok; ok {
			j.ties = append(j.ties, t)
		}
	}
	return true
}

// tie gives the equality of two columns that a condition is.
func (j *joining) tie(b *ast.BinaryOperationExpr) (t rewrite.Tie, ok bool) {
	if b == nil || b.Op != opcode.EQ {
		return t, false
	}
	for k, side := range []ast.ExprNode{b.L, b.R} {
		c, ok := unwrapped(side).(*ast.ColumnNameExpr)
		if !ok {
			return t, false
		}
		t.Table[k], t.Column[k] = j.tableOf(c.Name), c.Name.Name.O
	}
	return t, true
}

// asks notes what the query asks of each table, and puts the lists that it needs behind the other hidden columns. It gives the reason if it cannot.
func (j *joining) asks() string {
	s := j.s
	first := s.whereOf(false)
	j.textsOf(j.q.Where, first)
	j.textsOfJoins()
	places := s.places(j.q.Where, first)
	var own []condition.Condition
	var limit condition.Value
	searched := !j.other && j.apart()
	for i := range j.tables {
		t := &j.tables[i]
		a := &asker{planner: s, src: &t.source, places: places}
		var all []condition.Condition
		for _, c := range t.own {
			all = append(all, a.condition(c))
		}
		own = append(own, condition.And(all...))
		if j.limit != nil {
			a.placeOf(j.limit)
			if limit = a.value(j.limit.Count, condition.Number); limit == nil {
				return "LIMIT hides rows"
			}
		}
		alone := rewrite.Ask{Relation: t.rel, Limit: limit, Where: own[i].Bind(func(int) (condition.Value, bool) { return nil, false })}
		searched = searched && alone.Looks()
	}
	for i := range j.tables {
		t := &j.tables[i]
		a := &asker{planner: s, src: &t.source, ask: rewrite.Ask{Exists: j.exists, Limit: limit, Single: !j.exists, Searched: searched, Where: condition.Unknown("a condition on several tables")}, places: places}
		if !j.other {
			a.ask.Where = condition.And(append(j.tied(i, searched || s.session.Fresh), own[i])...)
		}
		if why := a.note(j.q.From.TableRefs, s.point(j.q.Where, j.list, &t.source, t.rel.Unique) && !nullSafe(j.q.Where)); why != "" {
			return why
		}
	}
	if tellLists(s, j.lists) {
		s.copies = true
	}
	return ""
}

// apart reports whether the conditions of one table cannot make those of another one impossible: of the columns that join tables, which are all of one type, one
// at most has other conditions, and none if they are integers of several types, as no INT is 5000000000. Else the server might see that there is no row, and the transaction take no view of the database (rewrite.Ask.Looks), where a list
// would take one.
func (j *joining) apart() bool {
	type column struct {
		table int
		name  string
	}
	bound, tied, several := map[column]bool{}, map[column]bool{}, false
	for i := range j.tables {
		for _, e := range j.tables[i].own {
			for _, c := range walk(e).columns {
				bound[column{i, c.Name.L}] = true
			}
		}
	}
	for _, t := range j.ties {
		a, b := j.tables[t.Table[0]].column(t.Column[0]), j.tables[t.Table[1]].column(t.Column[1])
		if several = several || a.Type != b.Type; several && !(integer(a) && integer(b)) {
			return false
		}
		for k := range t.Table {
			if c := (column{t.Table[k], strings.ToLower(t.Column[k])}); bound[c] {
				tied[c] = true
			}
		}
	}
	return len(tied) == 0 || len(tied) == 1 && !several
}

// tied gives the conditions on the columns of table i that tie it to others.
func (j *joining) tied(i int, listed bool) (list []condition.Condition) {
	for _, p := range rewrite.Parts(len(j.tables), i, j.ties) {
		c := condition.Unknown("tables that no single column joins")
		switch {
		case p.Tie != nil && listed:
			c = j.in(p.Tie, p.Members)
		case p.Tie != nil:
			c = condition.Unknown("a join whose rows are not listed")
		}
		list = append(list, c)
	}
	return list
}

// in is the condition that a column has one of the values that a list of the hidden columns tells, of the tables that are members.
func (j *joining) in(t *rewrite.Tie, members []int) condition.Condition {
	unsure := condition.Unknown("a join whose rows are not listed")
	own, other := j.tables[t.Table[0]].column(t.Column[0]), j.tables[t.Table[1]].column(t.Column[1])
	if !integer(own) || !integer(other) || j.s.r.flavor == MySQL && len(members) > 1 { // which may scan one of them in the list alone
		return unsure
	}
	var few, from, where []string
	for _, k := range members {
		m := &j.tables[k]
		table, hint := mysqlsyntax.Quote(m.rel.Schema)+"."+mysqlsyntax.Quote(m.rel.Name), ""
		if !j.s.point(j.q.Where, j.list, &m.source, m.rel.Unique) {
			if len(m.rel.Key) == 0 || !integer(m.column(m.rel.Key[0])) {
				return unsure
			}
			hint = " FORCE INDEX (PRIMARY)"
			key := mysqlsyntax.Quote(m.rel.Key[0])
			few = append(few, fmt.Sprintf("(SELECT 1 FROM %s%s WHERE %s<=0 LIMIT 1) IS NULL", table, hint, key), fmt.Sprintf("(SELECT 1 FROM %s%s WHERE %s>0 LIMIT %d,1) IS NULL", table, hint, key, maxListRows[len(members)]))
			where = append(where, j.column(k, m.rel.Key[0])+">0")
		}
		from = append(from, table+" AS "+mysqlsyntax.Quote(m.alias)+hint)
		for _, c := range m.own {
			if j.texts[c] == "" || !(quietly{s: j.s, list: j.list}).condition(c) {
				return unsure
			}
			where = append(where, j.texts[c])
		}
	}
	for _, o := range j.ties {
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
	return mysqlsyntax.Quote(j.tables[table].alias) + "." + mysqlsyntax.Quote(name)
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
	i := listsPlace(s)
	if i < 0 || len(lists) == 0 {
		return false
	}
	e := &s.edits[i]
	behind := e.add[len(strings.TrimRight(e.add, " ")):]
	e.add = strings.TrimRight(e.add, " ") + "," + strings.Join(lists, ",") + behind
	e.check = strings.Repeat(",wc_probe", len(lists)) + e.check
	s.plan.Hidden, s.plan.Lists = s.plan.Hidden+len(lists), len(lists)
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

var endsOfCondition = strings.Fields("WHERE GROUP ORDER LIMIT HAVING FOR LOCK PROCEDURE INTO WINDOW JOIN INNER CROSS STRAIGHT_JOIN , ;")

// textsOfJoins is textsOf for the conditions of joins, which stand in the order of the text.
func (j *joining) textsOfJoins() {
	var at []int
	for i := range j.s.text.Tokens {
		if j.s.text.Is(i, "ON") {
			at = append(at, i)
		}
	}
	for i := range j.on {
		if len(at) == len(j.on) {
			j.textsOf(j.on[i], at[i])
		}
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
