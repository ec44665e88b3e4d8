package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// utility understands everything that is not SELECT, INSERT, UPDATE or DELETE. None of it is changed.
func (x *planner) utility(n *pg.Node) {
	p := x.plan
	switch s := n.Node.(type) {
	case *pg.Node_MergeStmt:
		p.Predicate = true
		x.unseen(n, "MERGE cannot tell what it did")
	case *pg.Node_CopyStmt:
		if x.unseen(n, "COPY cannot tell which versions it read or wrote") && s.CopyStmt.IsFrom {
			p.Writes = []string{x.named(s.CopyStmt.Relation)}
		}
	case *pg.Node_TruncateStmt:
		for _, r := range s.TruncateStmt.Relations {
			p.Writes = append(p.Writes, x.named(r.GetRangeVar()))
		}
		x.opaque("TRUNCATE does not tell which rows it removed")
	case *pg.Node_ExplainStmt:
		x.explain(s.ExplainStmt)
	case *pg.Node_ExecuteStmt:
		x.opaque("EXECUTE of a statement that was prepared with SQL is not followed")
	case *pg.Node_DeclareCursorStmt, *pg.Node_FetchStmt:
		if d := n.GetDeclareCursorStmt(); d == nil || len(x.content(d).tables) > 0 {
			x.opaque("cursors are not followed")
		}
	case *pg.Node_DoStmt:
		x.opaque("DO may read and write tables")
	case *pg.Node_CallStmt:
		x.opaque("a procedure may read and write tables")
	case *pg.Node_RefreshMatViewStmt:
		p.Writes = []string{x.named(s.RefreshMatViewStmt.Relation)}
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
func (x *planner) unseen(n *pg.Node, why string) bool {
	c := x.content(n)
	for _, t := range c.targets {
		x.plan.Writes = append(x.plan.Writes, x.named(t))
	}
	if len(c.tables) == 0 && len(c.user) == 0 {
		return false
	}
	x.opaque("%s", why)
	return len(c.tables) > 0
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
		if s.AlterTableStmt.Relation != nil {
			p.Writes = []string{x.named(s.AlterTableStmt.Relation)}
		}
		x.opaque("ALTER TABLE may rewrite the table")
	}
}
