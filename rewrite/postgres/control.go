package postgres

import (
	"cmp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
	describe "wirecheck/statement/postgres"
)

// utility understands everything that is not SELECT, INSERT, UPDATE or DELETE. None of it is changed.
func (x *planner) utility(n *pg.Node) {
	p := x.plan
	switch s := n.Node.(type) {
	case *pg.Node_MergeStmt:
		p.Predicate = true
		x.unseen(n, "MERGE cannot tell what it did")
	case *pg.Node_CopyStmt:
		x.unseen(n, "COPY cannot tell which versions it read or wrote")
	case *pg.Node_TruncateStmt:
		x.opaque("TRUNCATE does not tell which rows it removed")
	case *pg.Node_ExplainStmt:
		x.explain(s.ExplainStmt)
	case *pg.Node_ExecuteStmt:
		x.opaque("EXECUTE of a statement that was prepared with SQL is not followed")
	case *pg.Node_DeclareCursorStmt:
		x.declare(s.DeclareCursorStmt)
	case *pg.Node_FetchStmt:
		x.opaque("the cursor's rows do not tell their versions")
		if !s.FetchStmt.Ismove { // MOVE reads rows and does not show them
			p.Cursor = &rewrite.Cursor{Name: s.FetchStmt.Portalname, Does: rewrite.CursorFetch}
		}
	case *pg.Node_ClosePortalStmt:
		p.Cursor = &rewrite.Cursor{Name: s.ClosePortalStmt.Portalname, Does: rewrite.CursorClose}
	case *pg.Node_DeallocateStmt:
		p.Deallocates = cmp.Or(s.DeallocateStmt.Name, "*\x00")
	case *pg.Node_DiscardStmt:
		if s.DiscardStmt.Target == pg.DiscardMode_DISCARD_ALL {
			p.Deallocates = "*\x00"
		}
	case *pg.Node_DoStmt:
		x.opaque("DO may read and write tables")
	case *pg.Node_CallStmt:
		x.opaque("a procedure may read and write tables")
	case *pg.Node_RefreshMatViewStmt:
		x.opaque("REFRESH MATERIALIZED VIEW reads tables")
	case *pg.Node_VacuumStmt:
		if vacuumFull(s.VacuumStmt) {
			x.opaque("VACUUM FULL moves row versions")
		}
	case *pg.Node_ClusterStmt:
		x.opaque("CLUSTER moves row versions")
	default:
		x.ddl(n)
	}
}

// unseen makes a statement opaque if it mentions a table that is watched.
func (x *planner) unseen(n *pg.Node, why string) {
	c := x.content(n)
	if len(c.tables)+len(c.user) > 0 {
		x.opaque("%s", why)
	}
}

func vacuumFull(s *pg.VacuumStmt) bool {
	for _, o := range s.Options {
		if o.GetDefElem().GetDefname() == "full" {
			return true
		}
	}
	return false
}

func (x *planner) explain(s *pg.ExplainStmt) {
	for _, o := range s.Options {
		if o.GetDefElem().GetDefname() == "analyze" {
			x.unseen(s.Query, "EXPLAIN ANALYZE does not show what it reads")
			return
		}
	}
}

// ddl is for the definitions that matter: those of temporary tables, and those that read or write rows.
func (x *planner) ddl(n *pg.Node) {
	p := x.plan
	switch s := n.Node.(type) {
	case *pg.Node_CreateStmt:
		p.Temp = s.CreateStmt.Relation.GetRelpersistence() == "t" || strings.HasPrefix(s.CreateStmt.Relation.GetSchemaname(), "pg_temp")
	case *pg.Node_CreateTableAsStmt:
		rv := s.CreateTableAsStmt.Into.GetRel()
		p.Temp = rv.GetRelpersistence() == "t" || strings.HasPrefix(rv.GetSchemaname(), "pg_temp")
		x.unseen(s.CreateTableAsStmt.Query, "CREATE TABLE AS is left alone")
	case *pg.Node_ViewStmt:
		p.Temp = s.ViewStmt.View.GetRelpersistence() == "t" || strings.HasPrefix(s.ViewStmt.View.GetSchemaname(), "pg_temp")
	case *pg.Node_CreateSeqStmt:
		p.Temp = s.CreateSeqStmt.Sequence.GetRelpersistence() == "t"
	case *pg.Node_AlterTableStmt:
		x.opaque("ALTER TABLE may rewrite the table")
	}
}

// mention looks up what a text names, where no catalog may be used: so it is known that one is needed. Definitions need
// none, unless columns are hidden.
func mention(c *rewrite.View, tree *pg.ParseResult, hides bool) {
	for _, raw := range tree.Stmts {
		if !hides && describe.EffectOf(raw.Stmt).Schema {
			continue
		}
		pgsyntax.Walk(raw.Stmt, func(m proto.Message) bool {
			switch n := m.(type) {
			case *pg.RangeVar:
				c.Named(n.Relname)
			case *pg.FuncCall:
				c.Function(pgsyntax.LastName(n.Funcname))
			}
			return true
		})
	}
}
