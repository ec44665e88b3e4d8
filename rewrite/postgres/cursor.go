package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
)

// cursorHold is CURSOR_OPT_HOLD (src/include/nodes/parsenodes.h).
const cursorHold = 0x20

// declare plans DECLARE CURSOR: the versions come with the rows that are fetched. Only columns are added to the cursor's query, as it may be run backwards,
// in parts, and under UPDATE ... WHERE CURRENT OF. A Parse message is left alone: a prepared FETCH may have been described before.
func (x *planner) declare(d *pg.DeclareCursorStmt) {
	q := d.Query.GetSelectStmt()
	x.plan.Cursor = &rewrite.Cursor{Name: d.Portalname, Hold: d.Options&cursorHold != 0}
	switch from := x.cursorQuery(); {
	case len(x.content(d).tables) == 0:
		return
	case x.prepared, !x.native, q == nil, from < 0:
		x.opaque("the cursor's rows do not tell their versions")
	default:
		x.from = from
		x.selectStmt(q)
		if x.plan.Hidden > 0 && (x.wrapped || !x.columnsOnly()) {
			x.opaque("a cursor over a query that must be read twice")
			x.plan.Hidden, x.plan.Lists, x.plan.Decode, x.plan.WithRows = 0, 0, nil, ""
		}
		x.plan.Predicate = true
		x.rows()
	}
}

// rows makes what was planned for the query the plan of the rows that are fetched. DECLARE itself has no rows.
func (x *planner) rows() {
	p := x.plan
	if p.Hidden > 0 {
		rows := *p
		rows.Cursor, rows.Verb = nil, "select"
		p.Cursor.Rows = &rows
		for i := range p.Hidden {
			p.Cursor.Hidden = append(p.Cursor.Hidden, x.hiddenName(i+1))
		}
	}
	p.Hidden, p.Decode = 0, nil
}

// columnsOnly reports whether what was added are columns of the query's own tables.
func (x *planner) columnsOnly() bool {
	for _, p := range x.parts {
		if p.scan != nil || p.group || p.nested {
			return false
		}
	}
	return len(x.arms) == 0
}

// cursorQuery is where the query of a DECLARE begins, or -1.
func (x *planner) cursorQuery() int {
	toks := x.tokens(x.from)
	for i, named := 0, false; i < len(toks)-1; i++ {
		switch toks[i].Token {
		case pg.Token_CURSOR:
			named = true
		case pg.Token_FOR:
			if named {
				return int(toks[i+1].Start)
			}
		}
	}
	return -1
}
