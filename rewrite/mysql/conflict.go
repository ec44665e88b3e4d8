package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// met notes what INSERT IGNORE asks for each of its rows: whether there is a row with its key. It reports whether that is certain: one key alone can be
// in the way, no other constraint makes the statement pass over a row, and the text or its parameters give the values of the key.
func met(s *planner, n *ast.InsertStmt, src *source) bool {
	first := s.text.Find(1, s.text.Tokens[0].Depth, "VALUES", "VALUE", "SET")
	if s.r.flavor == TiDB || n.Select != nil || len(n.Lists) == 0 || len(n.Lists) > maxImagedRows || src.rel.Kind != "table" || src.rel.Partitioned || s.session.Past || first < 0 {
		return false
	}
	names := columnsOfInsert(n, src)
	every := &ast.RowExpr{}
	for _, row := range n.Lists {
		every.Values = append(every.Values, row...)
	}
	a := &asker{planner: s, src: src, places: s.places(every, first)}
	asks := len(s.plan.Asks)
	for _, row := range n.Lists {
		given := map[string]ast.ExprNode{}
		for i, e := range row {
			if _, standard := e.(*ast.DefaultExpr); !standard && i < len(names) {
				given[strings.ToLower(names[i])] = e
			}
		}
		a.ask = rewrite.Ask{Table: src.table(), Relation: src.rel, Met: true, Current: true, Pinned: true}
		if a.ask.Where = a.key(given); len(a.ask.Where.Args) == 0 {
			s.plan.Asks = s.plan.Asks[:asks]
			return false
		}
		s.plan.Asks = append(s.plan.Asks, a.ask)
	}
	return true
}

// key is the condition that a row has the given values of the only key by which it can be in the way; without parts if that is not certain.
func (a *asker) key(given map[string]ast.ExprNode) (c condition.Condition) {
	c.Op = "and"
	fixed := func(column string) bool { // by the text or, unless the server counts, by a default that each row may have
		at := a.src.column(column)
		return given[strings.ToLower(column)] != nil || at == nil || !at.Auto
	}
	for _, name := range a.src.rel.Arbiter(fixed) {
		at, value := a.src.column(name), given[strings.ToLower(name)]
		if at == nil || value == nil {
			return condition.Condition{}
		}
		if v, ok := unwrapped(value).(*mysqlsyntax.Value); ok && v.V == nil { // NULL is in nobody's way
			return condition.Condition{}
		}
		v := a.value(value, kindOf(at))
		if fits := integer(at) || kindOf(at) == condition.Folded && strings.HasSuffix(typeName(at.Type), "char") || typeName(at.Type) == "varbinary"; v == nil || !fits {
			return condition.Condition{}
		}
		c.Args = append(c.Args, condition.Open("=", kindOf(at), at.Name, v))
	}
	return c
}
