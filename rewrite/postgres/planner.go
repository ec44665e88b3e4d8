package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
	describe "wirecheck/statement/postgres"
)

// planner makes the plan of one statement.
type planner struct {
	instrumentation
	plan   *rewrite.Plan
	silent bool // an answer without rows does not tell what was read
	facts  int  // tables whose versions are captured, as they are mentioned

	join  *joining // the query is about an inner join, for which lists are to be told
	lists int      // hidden columns that have them

	clocks  []string // expressions of the server's time
	scalar  *scalar  // a subquery whose value is told behind them
	having  *shownGroups
	counts  *counts
	moments int // hidden columns that have them, see rewrite.Plan.Moments

	top, alike condition.Condition // see rewrite.Ask.Beyond,
	leads      *pg.RangeVar        // the table of which that is,
	told       []string            // and the hidden columns that it needs

	prepared bool // the text comes with a Parse message
	settled  bool // it is known, or a column tells, whether LIMIT chose among rows (another)

	inside    insides // the parts of WITH that write
	collected bool    // the answer has what they told,
	unsaid    bool    // but perhaps no row for it
	inWith    bool    // it is such a part itself
}

func newPlanner(s *scene) *planner {
	return &planner{instrumentation: instrumentation{judge: judge{scene: s}}, plan: &rewrite.Plan{}}
}

// opaque ends the understanding of a statement that touches tables in a way that is not seen.
func (x *planner) opaque(format string, args ...any) {
	x.missing(format, args...)
	x.facts, x.idle, x.parts, x.edits, x.wrapped, x.silent, x.collected = 0, 0, nil, nil, false, false, false
	x.finish()
}

// finish fills what the answer will tell into the plan.
func (x *planner) finish() {
	p := x.plan
	x.addInside()
	switch {
	case x.facts > 0 && len(x.whys) == 0:
		p.Coverage = history.CoverageExact
	case x.facts > 0:
		p.Coverage = history.CoverageApproximate
	case len(x.whys) > 0:
		p.Coverage = history.CoverageOpaque
	}
	if p.Coverage == history.CoverageExact && x.silent {
		p.Coverage, p.WithRows = history.CoverageApproximate, history.CoverageExact
		x.missing("an answer without rows does not tell what it read")
	}
	if p.Coverage == history.CoverageApproximate && (x.below > 0 || x.bounded) && len(x.whys) == 1 && !x.silent {
		p.WithRows, p.Below, p.Bounded = history.CoverageExact, x.below, x.bounded // LIMIT hides groups only where that many came
	}
	if len(x.told) != p.Keys && x.join != nil {
		p.Asks, p.Predicate, p.Unread = nil, true, "the rows of a join were not listed"
	}
	p.Why, p.Views = strings.Join(x.whys, "; "), x.views
	if len(x.edits) == 0 {
		return
	}
	p.Lists, p.Moments = x.lists, x.moments
	p.Hidden = len(x.parts) + x.lists + x.moments
	p.Decode = decoder(x.parts)
	if x.arms != nil {
		p.Hidden, p.Decode = armDecoder(x.arms, x.parts)
	}
}

func (x *planner) understand(n *pg.Node) {
	x.node = n
	x.findCTEs(n)
	e := describe.EffectOf(n)
	x.plan.Verb, x.plan.Control, x.plan.Schema = e.Verb, e.Control, e.Schema
	client := n
	n = x.apart(n)
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		x.selectStmt(s.SelectStmt)
	case *pg.Node_InsertStmt:
		x.insertStmt(s.InsertStmt)
	case *pg.Node_UpdateStmt:
		x.updateStmt(s.UpdateStmt)
	case *pg.Node_DeleteStmt:
		x.deleteStmt(s.DeleteStmt)
	default:
		x.utility(n)
	}
	x.plan.CurrentRead = x.inside.currentRead(client, n, x.plan.CurrentRead)
	x.predicates(n)
}

// proven parses what is to be sent and compares it with the client's tree, the additions taken away: whatever the
// splicing did, the server understands the client's own statement in it.
func proven(sent string, client *pg.ParseResult, list []*planner) bool {
	tree, err := pgsyntax.Parse(sent)
	if err != nil || len(tree.Stmts) != len(client.Stmts) {
		return false
	}
	for i, raw := range tree.Stmts {
		if len(list[i].edits) > 0 && !list[i].strip(raw.Stmt) {
			return false
		}
		if !pgsyntax.Same(raw.Stmt, client.Stmts[i].Stmt) {
			return false
		}
	}
	return true
}

// strip takes the additions out of the tree of a changed statement. No name in the client's text is like theirs.
func (x *planner) strip(n *pg.Node) bool {
	prefix := x.hiddenPrefix()
	ours := func(n *pg.Node) bool { return strings.HasPrefix(n.GetResTarget().GetName(), prefix) }
	hidden := x.plan.Hidden
	if d := n.GetDeclareCursorStmt(); d != nil {
		n, hidden = d.Query, len(x.plan.Cursor.Hidden)
	}
	if !x.inside.strip(n) {
		return false
	}
	if x.wrapped {
		n, ok := x.unwrap(n, ours, len(x.inside) > 0)
		if !ok {
			return false
		}
		hidden -= n
	}
	var top *[]*pg.Node
	keep := func(list *[]*pg.Node) {
		if top == nil {
			top = list
			for _, n := range (*list)[max(0, len(*list)-hidden):] {
				if !ours(n) {
					top = nil // the answer does not end with our columns
					return
				}
			}
		}
		*list = slices.DeleteFunc(*list, ours)
	}
	switch s := n.Node.(type) {
	case *pg.Node_InsertStmt:
		keep(&s.InsertStmt.ReturningList)
	case *pg.Node_UpdateStmt:
		keep(&s.UpdateStmt.ReturningList)
		if x.linked && !unlink(&s.UpdateStmt.WhereClause) {
			return false
		}
	case *pg.Node_DeleteStmt:
		keep(&s.DeleteStmt.ReturningList)
	case *pg.Node_SelectStmt:
		arm := s.SelectStmt // it is the client's, if the statement was wrapped
		for arm.Op != pg.SetOperation_SETOP_NONE {
			arm = arm.Larg
		}
		keep(&arm.TargetList)
	}
	if top == nil || x.plan.NoRows && len(*top) != 0 {
		return false
	}
	left := slices.Clone(x.written)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if s, ok := m.(*pg.SelectStmt); ok {
			s.TargetList = unwritten(slices.DeleteFunc(s.TargetList, ours), &left)
		}
		return true
	})
	return true
}

// unlink takes the condition that was added last out of a WHERE clause.
func unlink(where **pg.Node) bool {
	if (*where).GetNullTest() != nil {
		*where = nil
		return true
	}
	b := (*where).GetBoolExpr()
	if b == nil || b.Boolop != pg.BoolExprType_AND_EXPR || len(b.Args) < 2 || b.Args[len(b.Args)-1].GetNullTest() == nil {
		return false
	}
	if b.Args = b.Args[:len(b.Args)-1]; len(b.Args) == 1 {
		*where = b.Args[0]
	}
	return true
}
