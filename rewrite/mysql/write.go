package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// The SQL texts of the stamp, and of the stamps of a new row. The marks stand for them in an edit; statement.finish puts
// them in. No name has one of these characters (MariaDB knowledge base, "Identifier Names": U+0000 is not allowed, and the
// others are escaped by escapeName or refused by markable).
const (
	stampMark, stampText       = "\x00", "IFNULL(@wc_t,'')"
	insertedMark, insertedText = "\x01", "IFNULL(CONCAT('1:',@wc_t),'0:')"
)

var (
	stampVariable = strings.NewReplacer(stampMark, stampText, insertedMark, insertedText)
	stampLiteral  = strings.NewReplacer(stampMark, "'"+rewrite.StampMark+"'", insertedMark, "'1:"+rewrite.StampMark+"'")
)

// target resolves the one table that a statement writes; ok is false if the statement stays as it is.
func (s *planner) target(refs *ast.TableRefsClause) (source, bool) {
	if refs == nil || refs.TableRefs == nil || refs.TableRefs.Right != nil {
		s.opaque("it writes several tables")
		return source{}, false
	}
	list, ok := s.sources(refs.TableRefs, nil)
	if !ok || len(list) != 1 {
		s.opaque("it writes several tables")
		return source{}, false
	}
	src := list[0]
	return src, writable(s, &src)
}

// writable reports whether the writes of a table can be seen; if not the statement stays as it is.
func writable(s *planner, src *source) bool {
	why := src.why
	if src.rel == nil && why == "" {
		why = "a system table"
	}
	switch {
	case why != "":
		s.opaque(why)
	case s.several:
		s.opaque("several statements in one request")
	case src.rel.HasTriggers:
		s.opaque("a table with triggers")
	case src.rel.Engine != "" && !strings.EqualFold(src.rel.Engine, "InnoDB"):
		s.opaque("a table of another storage engine")
	case s.prepared && s.r.flavor == TiDB: // 1105: it keeps no plans of statements with variables
		s.opaque("a prepared statement, where the server would warn of our variables")
	case s.session.Mode&mysqlsyntax.Simultaneous != 0:
		s.opaque("sql_mode SIMULTANEOUS_ASSIGNMENT")
	default:
		return true
	}
	return false
}

// parent gives what foreign keys change with the rows of a source, or nil.
func (s *planner) parent(src *source) *rewrite.Cascade {
	return s.catalog.Parent(folded(s.catalog.Server, src.rel.Name))
}

// cascades reports whether foreign keys may change other rows when rows of the source are deleted, or when these columns are assigned, besides
// those that change with any other one.
func (s *planner) cascades(src *source, deletes bool, list []*ast.Assignment) bool {
	if !deletes && len(list) == 0 {
		return false
	}
	c := s.parent(src)
	if c == nil || deletes && c.Delete {
		return c != nil
	}
	rel := &rewrite.Relation{Columns: src.rel.Columns}
	for _, index := range c.Update {
		columns, ok := rewrite.ColumnsOf(index)
		if !ok {
			columns = src.rel.Named[index]
		}
		if columns == nil {
			columns = []string{""} // it may be any column
		}
		if rel.AddCascade(columns); s.r.flavor == TiDB { // it says PRIMARY of all
			for _, columns := range src.rel.Named {
				rel.AddCascade(columns)
			}
		}
	}
	return slices.ContainsFunc(rel.CascadesUpdate, func(name string) bool {
		return slices.ContainsFunc(rel.Columns, func(a rewrite.Attribute) bool { return a.Name == name && a.Touched }) ||
			slices.ContainsFunc(list, func(a *ast.Assignment) bool { return a.Column == nil || strings.EqualFold(a.Column.Name.O, name) })
	})
}

// update plans a single-table UPDATE.
func (s *planner) update(n *ast.UpdateStmt) {
	all := walk(n)
	if n.MultipleTable || joins(n.TableRefs) {
		if j, ok := joinOf(s, n); ok {
			s.plan.Predicate, s.plan.Unread = true, rewrite.SeveralTables
			if all.sub > 0 {
				s.partial("what subqueries read is not seen")
			}
			j.update(n, all)
		}
		return
	}
	if n.With != nil {
		s.opaque("it writes several tables")
		return
	}
	src, ok := s.target(n.TableRefs)
	if !ok {
		return
	}
	if all.sub > 0 {
		s.partial("what subqueries read is not seen")
	}
	var values []ast.ExprNode
	for _, a := range n.List {
		values = append(values, a.Expr)
	}
	s.plan.Predicate = s.predicate(n.Where, []source{src})
	s.askedByWrite(n.TableRefs, &src, n.Where, all, n.Limit, values...)
	switch {
	case s.callsStored(all):
		s.opaque("a stored function")
		return
	case all.sub > 0 && n.Order != nil && s.r.flavor == MySQL: // the status flags tell that the order is made otherwise (9.7.4)
		s.opaque("UPDATE with subqueries and ORDER BY")
		return
	}
	if s.r.flavor == MariaDB && s.readsToo(src.rel, all.tables[1:]) {
		(&joined{s, []source{src}, &src}).update(n, all)
		return
	}
	if s.cascades(&src, false, n.List) {
		s.partial("foreign keys may change other tables")
	}
	t := s.text
	depth := t.Tokens[0].Depth
	set := t.Find(1, depth, "SET")
	if set < 0 || set+1 >= len(t.Tokens) {
		s.opaque("SET is not found")
		return
	}
	end := t.Find(set, depth, "WHERE", "ORDER", "LIMIT", "RETURNING")
	if end < 0 {
		end = len(t.Tokens)
	}
	if s.r.flavor == TiDB {
		ok = s.stampChanged(n.List, &src, set, end, !n.IgnoreErr)
	} else {
		ok = s.stampAssignments(n.List, &src, t.Tokens[set+1].Start, t.Tokens[end-1].End, !n.IgnoreErr)
	}
	if !ok {
		return
	}
	if n.IgnoreErr {
		s.partial("UPDATE IGNORE may leave rows as they were")
	}
	p := s.plan
	p.Coverage = history.CoverageExact
	p.CurrentRead = s.current(n.List, &src)
}

// readsToo reports whether a table may be among these. MariaDB then collects the changes before it makes the first one, so that the
// assignments do not see each other (10.11).
func (s *scene) readsToo(target *rewrite.Relation, tables []*ast.TableName) bool {
	return slices.ContainsFunc(tables, func(t *ast.TableName) bool {
		rel, why := s.resolve(t.Schema.O, t.Name.O)
		return rel == nil && why != "" || rel != nil && (rel.Kind != "table" && rel.Kind != "partitioned" || rel.RelationName == target.RelationName)
	})
}

// stampAssignments puts in, before and behind a list of assignments, what marks a row that they really change. The list
// is evaluated from left to right, and a column may be assigned twice (MariaDB knowledge base and MySQL manual, UPDATE; measured):
//
//	SET wc_writers = IF((@wc_o := <assigned columns>) IS NULL, '', wc_writers),   -- unchanged, but the old values are kept
//	    <the client's assignments>,
//	    wc_writers = IF(@wc_o = <assigned columns>, <log, then wc_writers>, <log, then the next value>)
//
// The text made of the assigned columns is a function of their values, so if it differs the row differs, and the server
// counts it as changed without us. A row that keeps its values was found all the same, and read under its lock: the second
// of two sessions that both compute the same new value must be seen (history.OpMatch). Where the text is equal although the row differs (-0.0 and 0.0, a DST change) the version
// keeps its old name, which only hides it.
func (s *planner) stampAssignments(list []*ast.Assignment, src *source, first, last int, log bool) bool {
	var columns []string
	for _, a := range list {
		c := src.column(a.Column.Name.O)
		if c == nil {
			s.opaque("a column that is not known")
			return false
		}
		if c.Generated || mysqlsyntax.ContainsName(columns, c.Name) {
			continue
		}
		columns = append(columns, c.Name)
	}
	if len(columns) == 0 {
		s.opaque("no column is assigned")
		return false
	}
	parts := make([]string, len(columns))
	for i, c := range columns {
		part, ok := signature(s.r.flavor, src.ref+"."+mysqlsyntax.Quote(c), src.column(c).Type)
		if !ok {
			s.opaque("a column of a type that is not known")
			return false
		}
		parts[i] = part
	}
	all := "CAST(CONCAT_WS('~'," + strings.Join(parts, ",") + ") AS BINARY)"
	w := src.ref + "." + columnWriters
	never := " IS NULL"
	if s.r.flavor == MySQL { // it does not evaluate what cannot be NULL to find out that it is not (9.7.4, without strict mode)
		never = "='!'"
	}
	note := "(@wc_o:=" + all + ")" + never
	same, next := w, nextWriters(w)
	if log {
		op, images := "u", []string(nil)
		image := s.image(src, func(a *rewrite.Attribute) bool { return !a.Touched || mysqlsyntax.ContainsName(columns, a.Name) })
		if image != "" {
			note += " OR (@wc_b:=" + image + ")" + never
			op, images = "U", []string{"@wc_b", image}
		}
		same, next = logging(logEntry("m", src), same), logging(logEntry(op, src, images...), next)
		s.plan.Log = true
	}
	s.plan.Stamp = true
	s.edits = append(s.edits,
		edit{at: first, add: w + "=IF(" + note + ",''," + w + "),", check: " " + columnWriters + "=1,"},
		edit{at: last, add: "," + w + "=IF(@wc_o=" + all + "," + same + "," + next + ")", check: "," + columnWriters + "=1 "})
	return true
}

// logEntry is the SQL text that appends a row's entry to the log. It is never NULL where the log is set.
func logEntry(op string, src *source, images ...string) string {
	return "(@wc_log:=" + appended(op, src, images...) + ")"
}

func appended(op string, src *source, images ...string) string {
	var list strings.Builder
	for _, image := range images {
		list.WriteString(",' '," + image)
	}
	return "CONCAT(@wc_log,'" + op + " " + escapeName(src.table()) + " '," + src.state() +
		",' '," + stampMark + list.String() + nameOf(src, true) + ",';')"
}

// signature is SQL text for a column's value as a string without NULL: numbers and times as they print, texts in hex,
// long ones by their digest.
func signature(flavor Flavor, ref, typ string) (string, bool) {
	digest := "IFNULL(MD5(" + ref + "),'N')"
	if flavor == MySQL { // 9.6 and later have no MD5
		digest = "IFNULL(SHA2(" + ref + ",224),'N')"
	}
	_, rest, _ := strings.Cut(typ, "(")
	switch typeName(typ) {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal", "numeric", "year", "date", "time", "datetime", "timestamp":
		return "IFNULL(" + ref + ",'N')", true
	case "float", "double", "real":
		return "IFNULL(" + ref + "*1e0,'N')", true
	case "bit", "enum", "set":
		return "IFNULL(" + ref + "+0,'N')", true
	case "char", "varchar", "binary", "varbinary":
		var n int
		if _, err := fmt.Sscanf(rest, "%d", &n); err == nil && n <= 128 {
			return "IFNULL(HEX(" + ref + "),'N')", true
		}
		return digest, true
	case "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob", "json":
		return digest, true
	}
	return "", false
}

// current reports whether every assigned value is computed by the server from the row itself. The primary key only tells which row it is: CASE WHEN id = 1
// THEN 7 END, as Django's bulk_update() has it, is a value of the client's.
func (s *judge) current(list []*ast.Assignment, src *source) bool {
	for _, a := range list {
		f := walk(a.Expr)
		own := func(c *ast.ColumnName) bool {
			at := src.column(c.Name.O)
			return at != nil && (!slices.Contains(src.rel.Key, at.Name) || c.Name.L == a.Column.Name.L)
		}
		if f.sub > 0 || !slices.ContainsFunc(f.columns, own) {
			switch e := a.Expr.(type) {
			case *ast.DefaultExpr:
				continue
			case *ast.FuncCallExpr:
				if len(e.Args) == 0 { // NOW(), CURRENT_TIMESTAMP
					continue
				}
			}
			return false
		}
	}
	return true
}

// delete plans a single-table DELETE: its condition gets a last part that appends the row to the log, and is true. In
// MariaDB the parts of AND are evaluated in order, and a single-table DELETE evaluates its condition exactly for the
// rows that it has locked and deletes if it is true (measured, TestDeleteConditions; see makesJoins).
func (s *planner) delete(n *ast.DeleteStmt) {
	if n.IsMultiTable || n.With != nil {
		s.opaque("it writes several tables")
		return
	}
	src, ok := s.target(n.TableRefs)
	if !ok {
		return
	}
	all := walk(n)
	s.plan.Predicate = s.predicate(n.Where, []source{src})
	s.askedByWrite(n.TableRefs, &src, n.Where, all, n.Limit)
	switch {
	case all.sub > 0 && (s.r.flavor != MariaDB || s.makesJoins()):
		s.opaque("DELETE with subqueries")
		return
	case all.sub > 0 && s.readsToo(src.rel, all.tables[1:]):
		s.opaque("DELETE with subqueries that may read the same table")
		return
	case s.callsStored(all):
		s.opaque("a stored function")
		return
	case alone(n.Where), s.r.flavor == MariaDB && all.sub > 0 && s.decided(n.Where, &src, all.tables[1:]):
		s.opaque("DELETE with a constant condition")
		return
	case n.IgnoreErr:
		s.opaque("DELETE IGNORE")
		return
	case s.text.Find(1, s.text.Tokens[0].Depth, "RETURNING") > 0 && asksForNothing(n.Where, &src):
		s.opaque("DELETE ... RETURNING of rows that cannot be")
		return
	case s.r.flavor == MySQL && s.session.Lax && takesParams(n.Where): // as a part of AND, a comparison with a text that is no number warns once more (9.7.4)
		s.opaque("DELETE by parameters without strict mode")
		return
	case s.r.flavor == MySQL && computes(quietly{s: s, list: []source{src}}, n.Where):
		s.opaque("DELETE by a constant that is computed")
		return
	case n.Order != nil:
		s.opaque("DELETE with ORDER BY")
		return
	case n.Limit != nil && s.r.flavor == TiDB: // another plan would find other rows first
		s.opaque("DELETE with LIMIT")
		return
	}
	if all.sub > 0 {
		s.partial("what subqueries read is not seen")
	}
	if s.cascades(&src, true, nil) {
		s.partial("foreign keys may change other tables")
	}
	op, images := "d", []string(nil)
	if image := s.image(&src, func(*rewrite.Attribute) bool { return true }); image != "" {
		op, images = "D", []string{image}
	}
	capture := captured(op, &src, images...)
	t := s.text
	depth := t.Tokens[0].Depth
	end := t.Find(1, depth, "ORDER", "LIMIT", "RETURNING")
	if end < 0 {
		end = len(t.Tokens)
	}
	if where := t.Find(1, depth, "WHERE"); where >= 0 {
		if where+1 >= end {
			s.opaque("WHERE is not understood")
			return
		}
		s.edits = append(s.edits, edit{at: t.Tokens[where+1].Start, add: "(", check: "("},
			edit{at: t.Tokens[end-1].End, add: ") AND " + capture, check: ") AND wc_probe "})
	} else {
		s.edits = append(s.edits, edit{at: t.Tokens[end-1].End, add: " WHERE " + capture, check: " WHERE wc_probe "})
	}
	s.plan.Stamp, s.plan.Log = true, true
	s.plan.Coverage = history.CoverageExact
}

// computes reports whether a constant of a condition is computed, perhaps with an error. As a part of AND, MySQL computes it earlier, with its error, also where the condition
// is asked for no row (9.7.4).
func computes(q quietly, where ast.ExprNode) (found bool) {
	visit(where, func(n ast.Node) {
		switch e := n.(type) {
		case *ast.FuncCallExpr, *ast.FuncCastExpr, *ast.BinaryOperationExpr, *ast.UnaryOperationExpr, *ast.CaseExpr:
			found = found || len(walk(e).columns) == 0 && q.mayFail(e.(ast.ExprNode))
		}
	})
	return found
}

// takesParams reports whether a condition has parameters.
func takesParams(where ast.ExprNode) (takes bool) {
	visit(where, func(n ast.Node) {
		_, is := n.(*mysqlsyntax.ParamMarker)
		takes = takes || is
	})
	return takes
}

// asksForNothing reports whether a condition has IS NULL of a column that is never NULL. As a part of AND, MariaDB knows earlier that no row fulfils it,
// and answers RETURNING with an OK in place of no rows (10.11.19).
func asksForNothing(where ast.ExprNode, src *source) (asks bool) {
	visit(where, func(n ast.Node) {
		if is, ok := n.(*ast.IsNullExpr); ok {
			c, ok := unwrapped(is.Expr).(*ast.ColumnNameExpr)
			a := (*rewrite.Attribute)(nil)
			if ok {
				a = src.column(c.Name.Name.O)
			}
			asks = asks || a != nil && a.Required
		}
	})
	return asks
}

// makesJoins reports whether the server may turn the subqueries of a DELETE into joins (MariaDB 11.1 and later, MDEV-7487).
func (s *scene) makesJoins() bool {
	var major, minor int
	_, err := fmt.Sscanf(strings.TrimPrefix(s.catalog.Server.Version, "5.5.5-"), "%d.%d.", &major, &minor)
	return err != nil || major > 11 || major == 11 && minor > 0
}
