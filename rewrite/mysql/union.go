package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// On MySQL, second scans (scan.go) tell what the arms of UNION read. Each arm gets all of them, so that each row of the answer has the same values, and UNION removes
// the rows that it removes without them:
//
//	SELECT id, <scan of product>, <scan of item> FROM product WHERE price < 5 UNION SELECT product_id, <scan of product>, <scan of item> FROM item
//
// EXCEPT and INTERSECT need not read all that their arms give.

// maxScannedArms bounds how often each of them is read.
const maxScannedArms = 3

// scannedArms adds the scans. It reports false if the statement stays as it is.
func scannedArms(s *planner, n *ast.SetOprStmt, arms []*ast.SelectStmt) bool {
	if s.r.flavor != MySQL || s.several || s.session.Once || s.session.LockingReads || s.session.Cut || len(arms) > maxScannedArms || len(arms) != len(n.SelectList.Selects) || // else some stand in parentheses
		ordersByPlace(n.OrderBy) {
		return false
	}
	r := &reader{s: s}
	var columns []string
	var all [][]told
	var limits []int
	most := int(min(s.session.GroupConcat, 1<<24)) / groupEntryNamed
	for _, arm := range arms {
		if op := arm.AfterSetOperator; op != nil && *op != ast.Union && *op != ast.UnionAll || arm.From == nil || arm.OrderBy != nil || arm.Distinct || arm.Having != nil || len(arm.WindowSpecs) > 0 {
			return false
		}
		list, text, ok := r.scan(arm)
		if !ok || arm.GroupBy != nil || s.aggregates(arm) || walk(arm.Fields).window || slices.ContainsFunc(list, func(src source) bool { return len(src.rel.Key) == 0 }) {
			return false
		}
		rows := min(scanRowsEach, most/len(list))
		if rows < 1 {
			return false
		}
		for i := range list {
			list[i].byKey(s.r.flavor)
		}
		tables, value := scannedVersions(list)
		columns, all, limits = append(columns, s.collected(value, rows, text)), append(all, tables), append(limits, rows)
	}
	var edits []edit
	for _, arm := range arms {
		first := s.selectOf(arm)
		if first < 0 || listEnd(s.text, first) < 0 {
			return false
		}
		edits = append(edits, edit{at: listEnd(s.text, first), add: "," + strings.Join(columns, ",") + " ", check: strings.Repeat(",wc_probe", len(columns)) + " "})
	}
	p := s.plan
	s.edits, s.copies, s.arms = append(s.edits, edits...), true, len(arms)
	p.Hidden, p.Same, p.Coverage = len(columns), len(columns), history.CoverageExact
	p.Decode = func(out []history.Access, hidden [][]byte) ([]history.Access, error) {
		if len(hidden) != len(all) {
			return out, fmt.Errorf("%d hidden columns where %d were added", len(hidden), len(all))
		}
		for i, cell := range hidden {
			var err error
			if out, err = decodeScan(all[i], limits[i])(out, [][]byte{cell}); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	return true
}

// ordersByPlace reports whether ORDER BY names a column by its place.
func ordersByPlace(order *ast.OrderByClause) bool {
	return order != nil && slices.ContainsFunc(order.Items, func(item *ast.ByItem) bool { return place(item.Expr) > 0 })
}

// scannedVersions gives what a scan tells of each row that it finds, and the text for it.
func scannedVersions(list []source) (tables []told, value string) {
	values := make([]string, len(list))
	for i := range list {
		tables, values[i] = append(tables, toldOf(&list[i])), "IFNULL("+list[i].version(true)+",'')"
	}
	if len(values) > 1 {
		return tables, "CONCAT_WS('|'," + strings.Join(values, ",") + ")"
	}
	return tables, values[0]
}

// askedByArms notes what the arms of a UNION ask, each of one table. It gives the reason if that cannot be told of all. Of rows that look alike, UNION shows one, unless
// it is UNION ALL: then each arm must show the primary key of its table.
func askedByArms(s *planner, arms []ast.Node) string {
	alike := true // rows of the answer may be
	for _, n := range arms {
		arm, ok := n.(*ast.SelectStmt)
		if !ok || arm.AfterSetOperator != nil && *arm.AfterSetOperator != ast.UnionAll && *arm.AfterSetOperator != ast.Union || arm.Distinct || arm.GroupBy != nil || arm.Having != nil {
			return "a set operation"
		}
		alike = alike && (arm.AfterSetOperator == nil || *arm.AfterSetOperator == ast.UnionAll)
	}
	for _, n := range arms {
		arm := n.(*ast.SelectStmt)
		if arm.From == nil {
			continue
		}
		list, ok := s.sources(arm.From.TableRefs, nil)
		switch {
		case !ok || len(list) != 1 || walk(arm).queries > 1:
			return rewrite.SeveralTables
		case s.session.Cut:
			return "sql_select_limit hides rows, or max_sort_length changes their order"
		case !list[0].watched():
		case !alike && !s.showsKey(arm, list):
			return "a set operation"
		default:
			if why := s.asked(arm.From.TableRefs, &list[0], arm.Where, nil, rewrite.Ask{Current: s.session.LockingReads, Single: s.aggregates(arm)}, s.whereIn(arm), nil); why != "" {
				return why
			}
		}
	}
	return ""
}

// showsKey reports whether the rows of a query of one table show its primary key, so that no two look alike.
func (s *judge) showsKey(q *ast.SelectStmt, list []source) bool {
	src := &list[0]
	return src.rel != nil && len(src.rel.Key) > 0 && !s.aggregates(q) && !slices.ContainsFunc(src.rel.Key, func(key string) bool {
		return !slices.ContainsFunc(q.Fields.Fields, func(f *ast.SelectField) bool {
			c, ok := f.Expr.(*ast.ColumnNameExpr)
			return f.WildCard != nil && shows(f, src) || ok && strings.EqualFold(c.Name.Name.O, key) && s.owns(c.Name, list, src, 1)
		})
	})
}
