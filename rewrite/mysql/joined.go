package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// An UPDATE of a join, or one whose subqueries read its own table, is executed in one of two ways: the assignments see each other, or their values
// are first collected for all rows (MariaDB 10.11 and MySQL 9.7, sql_update.cc; a row that several others join is then looked at several times, the
// missing row of an outer join never). So wc_writers is assigned first, when the columns have their old values in either way. Whether the row changes
// is computed from the client's own expressions, where that is certain. What the log tells counts only if it has as many rows as the server
// says that it found (Counted).
//
// A DELETE of a join could log its rows in a condition. But an index often gives all that it needs of its table, and a condition that needs more makes the
// server execute it in another way, with other locks (TestLocks).

// joined is an UPDATE of a join.
type joined struct {
	*planner
	list []source // its tables
	src  *source  // the one that it changes
}

// joinOf resolves the tables of an UPDATE; ok is false if it stays as it is.
func joinOf(s *planner, n *ast.UpdateStmt) (j joined, ok bool) {
	const several = "it writes several tables"
	list, ok := s.sources(n.TableRefs.TableRefs, nil)
	if !ok || s.r.flavor == TiDB {
		s.opaque(several)
		return j, false
	}
	for i := range list {
		if rel := list[i].rel; rel == nil || rel.Kind != "table" && rel.Kind != "partitioned" {
			s.opaque(several)
			return j, false
		}
	}
	j = joined{s, list, assignedBy(n, list)}
	if j.src == nil {
		s.opaque(several)
		return j, false
	}
	for i := range list {
		if &list[i] != j.src && list[i].rel.RelationName == j.src.rel.RelationName { // the server may change their order (10.11.19)
			s.opaque("it joins a table with itself")
			return j, false
		}
	}
	if len(list) > 1 {
		s.partial("what it reads of other tables is not seen")
	}
	return j, writable(s, j.src)
}

// joins reports whether a write names several tables.
func joins(refs *ast.TableRefsClause) bool {
	_, inside := refs.TableRefs.Left.(*ast.Join)
	return inside || refs.TableRefs.Right != nil
}

// assignedBy gives the table to which all columns belong that an UPDATE assigns, or nil.
func assignedBy(n *ast.UpdateStmt, list []source) (src *source) {
	for _, a := range n.List {
		var own *source
		for i := range list {
			if name := a.Column.Table.O; name != "" && !strings.EqualFold(name, list[i].alias) || list[i].column(a.Column.Name.O) == nil {
				continue
			} else if own != nil {
				return nil
			}
			own = &list[i]
		}
		if own == nil || src != nil && src != own {
			return nil
		}
		src = own
	}
	return src
}

// update puts in what marks the rows that the assignments really change.
func (j *joined) update(n *ast.UpdateStmt, all finding) {
	if j.callsStored(all) {
		j.opaque("a stored function")
		return
	}
	if j.cascades(j.src, false, n.List) {
		j.partial("foreign keys may change other tables")
	}
	t := j.text
	depth := t.Tokens[0].Depth
	set := t.Find(1, depth, "SET")
	switch {
	case n.With != nil || n.IgnoreErr || n.Order != nil || n.Limit != nil:
		j.opaque("it writes several tables, or its own in another order")
		return
	case set < 0 || set+1 >= len(t.Tokens):
		j.opaque("SET is not found")
		return
	}
	end := t.Find(set, depth, "WHERE", "RETURNING")
	if end < 0 {
		end = len(t.Tokens)
	}
	texts := j.assigned(set, end)
	same, after, ok := j.unchanged(n.List, texts)
	if !ok {
		j.opaque("whether it changes a row cannot be computed beforehand")
		return
	}
	w, op := j.src.ref+"."+columnWriters, "u"
	var images []string
	now := j.image(j.src, func(a *rewrite.Attribute) bool {
		text, assigned := after[a.Name]
		return !a.Touched && (!assigned || text != "")
	})
	if before := j.image(j.src, func(*rewrite.Attribute) bool { return true }); before != "" && now != "" {
		op, images = "U", []string{before, j.put(after).Replace(now)}
	}
	j.edits = append(j.edits, edit{at: t.Tokens[set+1].Start, check: " " + columnWriters + "=1,",
		add: w + "=IF(" + strings.Join(same, " AND ") + "," + logging(logEntry("m", j.src), w) + "," + logging(logEntry(op, j.src, images...), nextWriters(w)) + "),"})
	j.plan.Stamp, j.plan.Log, j.plan.Counted, j.copies = true, true, true, true
	j.plan.Coverage = history.CoverageExact
}

// put makes a replacer that puts literals in the place of columns.
func (j *joined) put(literals map[string]string) *strings.Replacer {
	var places []string
	for column, text := range literals {
		if text != "" {
			places = append(places, j.src.ref+"."+mysqlsyntax.Quote(column), text)
		}
	}
	return strings.NewReplacer(places...)
}

// unchanged gives the conditions that say together that a row keeps its values, and the literals that columns get; "" for another value.
func (j *joined) unchanged(list []*ast.Assignment, texts []string) (same []string, after map[string]string, ok bool) {
	after = map[string]string{}
	if len(texts) != len(list) {
		return nil, nil, false
	}
	for _, a := range list {
		c := j.src.column(a.Column.Name.O)
		if _, twice := after[c.Name]; twice || c.Generated {
			return nil, nil, false
		}
		after[c.Name], _ = literalFor(a.Expr, c)
	}
	for i, a := range list {
		c := j.src.column(a.Column.Name.O)
		others := slices.ContainsFunc(walk(a.Expr).columns, func(r *ast.ColumnName) bool {
			o := j.src.column(r.Name.O)
			_, assigned := after[r.Name.O]
			return o != nil && (assigned || after[o.Name] != "") && o.Name != c.Name
		})
		before, known := signature(j.r.flavor, j.src.ref+"."+mysqlsyntax.Quote(c.Name), c.Type)
		now, certain := j.assignedValue(c, texts[i], a.Expr)
		if others || !known || !certain {
			return nil, nil, false
		}
		same = append(same, before+"="+now)
	}
	return same, after, true
}

// wideSets are the character sets in which ASCII has another form.
var wideSets = []string{"ucs2", "utf16", "utf16le", "utf32"}

// assignedValue is the signature of the value that a column certainly gets.
func (j *joined) assignedValue(c *rewrite.Attribute, text string, e ast.ExprNode) (string, bool) {
	literal, plain := literalFor(e, c)
	switch name := typeName(c.Type); {
	case exactNumber(c):
		return j.assignedSignature(j.list, text, e, c.Type)
	case name == "varchar":
		set, _, _ := strings.Cut(c.Collation, "_")
		now, ok := signature(j.r.flavor, literal, c.Type)
		return now, ok && plain && !slices.Contains(wideSets, set)
	case slices.Contains([]string{"date", "datetime", "timestamp"}, name) && isTime(e):
		v := unwrapped(e).(*mysqlsyntax.Value).V.(string)
		length := map[string]int{"": 19, "0": 19, "3": 23, "6": 26}[sizeOf(c.Type)]
		return "'" + v + "'", name == "date" && len(v) == 10 || name != "date" && len(v) == length
	}
	return "", false
}

// Counted gives what a statement did to each row, by its entries of the log, of which a row may have several. It is nothing if there are not as
// many rows as the server counted: then some of them were left alone.
func Counted(entries []history.Access, count int) []history.Access {
	seen := map[history.Row]bool{}
	entries = slices.DeleteFunc(entries, func(a history.Access) bool {
		twice := seen[a.Row]
		seen[a.Row] = true
		return twice
	})
	if len(entries) != count {
		return nil
	}
	return entries
}
