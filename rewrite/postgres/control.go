package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
)

// level gives the level that the server really runs: READ UNCOMMITTED is READ COMMITTED (manual, 13.2).
func level(name string) string {
	switch l := strings.ToLower(strings.TrimSpace(name)); l {
	case "read uncommitted", "read committed":
		return "read committed"
	case "repeatable read", "serializable":
		return l
	}
	return ""
}

// utility understands everything that is not SELECT, INSERT, UPDATE or DELETE. None of it is changed.
func (x *statement) utility(n *pg.Node) {
	p := x.plan
	p.Verb = "other"
	switch s := n.Node.(type) {
	case *pg.Node_TransactionStmt:
		x.transaction(s.TransactionStmt)
	case *pg.Node_VariableSetStmt:
		x.set(s.VariableSetStmt)
	case *pg.Node_DiscardStmt:
		if s.DiscardStmt.Target == pg.DiscardMode_DISCARD_ALL {
			p.Control.Verb, p.Schema = rewrite.ControlReset, true
		}
	case *pg.Node_MergeStmt:
		p.Verb = "merge"
		p.Predicate = true
		x.unseen(n, "MERGE cannot tell what it did")
	case *pg.Node_CopyStmt:
		p.Verb = "copy"
		if x.unseen(n, "COPY cannot tell which versions it read or wrote") && s.CopyStmt.IsFrom {
			p.Writes = []string{x.named(s.CopyStmt.Relation)}
		}
	case *pg.Node_TruncateStmt:
		p.Verb = "ddl"
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
		p.Schema = true
		x.opaque("DO may read and write tables")
	case *pg.Node_CallStmt:
		x.opaque("a procedure may read and write tables")
	case *pg.Node_RefreshMatViewStmt:
		p.Writes = []string{x.named(s.RefreshMatViewStmt.Relation)}
		x.opaque("REFRESH MATERIALIZED VIEW reads tables")
	case *pg.Node_VariableShowStmt, *pg.Node_PrepareStmt, *pg.Node_DeallocateStmt, *pg.Node_ClosePortalStmt,
		*pg.Node_ListenStmt, *pg.Node_UnlistenStmt, *pg.Node_NotifyStmt, *pg.Node_LockStmt, *pg.Node_CheckPointStmt,
		*pg.Node_LoadStmt, *pg.Node_ConstraintsSetStmt, *pg.Node_ReindexStmt, *pg.Node_CommentStmt, *pg.Node_SecLabelStmt:
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
func (x *statement) unseen(n *pg.Node, why string) bool {
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

func (x *statement) explain(s *pg.ExplainStmt) {
	for _, o := range s.Options {
		if o.GetDefElem().GetDefname() == "analyze" {
			x.unseen(s.Query, "EXPLAIN ANALYZE does not show what it reads")
			return
		}
	}
}

func (x *statement) ddl(n *pg.Node) {
	p := x.plan
	p.Verb, p.Schema = "ddl", true
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
		x.opaque("ALTER TABLE may write the table anew")
	}
}

func (x *statement) transaction(s *pg.TransactionStmt) {
	p := x.plan
	c := &p.Control
	c.Chain = s.Chain
	c.Name = s.SavepointName
	switch s.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		p.Verb, c.Verb = "begin", rewrite.ControlBegin
		c.Level = optionLevel(s.Options)
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
		p.Verb, c.Verb = "commit", rewrite.ControlCommit
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		p.Verb, c.Verb = "rollback", rewrite.ControlRollback
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		p.Verb, c.Verb = "savepoint", rewrite.ControlSavepoint
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		p.Verb, c.Verb = "release", rewrite.ControlRelease
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		p.Verb, c.Verb = "rollback to", rewrite.ControlRollbackTo
	default:
		// PREPARE TRANSACTION takes the transaction out of the session; the server's status says so, and how it ends is
		// decided elsewhere. COMMIT PREPARED and ROLLBACK PREPARED end a transaction that is not this session's.
		*c = rewrite.Control{}
	}
}

// optionLevel finds the isolation level among the options of BEGIN or SET TRANSACTION; the last one holds.
func optionLevel(options []*pg.Node) string {
	l := ""
	for _, o := range options {
		if d := o.GetDefElem(); d.GetDefname() == "transaction_isolation" {
			l = level(d.GetArg().GetAConst().GetSval().GetSval())
		}
	}
	return l
}

// followed are the settings that change what names mean or which policies apply.
var followed = map[string]bool{
	"search_path": true, "role": true, "session_authorization": true, "row_security": true,
}

func (x *statement) set(s *pg.VariableSetStmt) {
	x.plan.Verb = "set"
	c := &x.plan.Control
	value := ""
	if len(s.Args) == 1 {
		value = s.Args[0].GetAConst().GetSval().GetSval()
	}
	name := strings.ToLower(s.Name)
	switch {
	case s.Kind == pg.VariableSetKind_VAR_RESET_ALL:
		c.Verb, x.plan.Schema = rewrite.ControlReset, true
	case s.Kind == pg.VariableSetKind_VAR_SET_MULTI:
		l := optionLevel(s.Args)
		if l == "" {
			return // SET TRANSACTION READ ONLY, SNAPSHOT
		}
		*c = rewrite.Control{Verb: rewrite.ControlLevel, Level: l, Scope: rewrite.ScopeTransaction}
		if name == "session characteristics" {
			c.Scope = rewrite.ScopeSession
		}
	default:
		x.setting(name, value, s.Kind == pg.VariableSetKind_VAR_SET_VALUE && value != "", s.IsLocal)
	}
}

// setting follows the assignment of one setting.
func (x *statement) setting(name, value string, known, local bool) {
	c := &x.plan.Control
	switch {
	case followed[name]:
		*c = rewrite.Control{Verb: rewrite.ControlReset}
		x.plan.Schema = true
	case name == "transaction_isolation":
		*c = rewrite.Control{Verb: rewrite.ControlLevel, Level: level(value), Scope: rewrite.ScopeTransaction}
	case name == "default_transaction_isolation" && local:
		// It is the default of transactions that begin before this one ends: none.
	case name == "default_transaction_isolation" && known && level(value) != "":
		*c = rewrite.Control{Verb: rewrite.ControlLevel, Level: level(value), Scope: rewrite.ScopeSession}
	case name == "default_transaction_isolation":
		*c = rewrite.Control{Verb: rewrite.ControlReset}
	}
}

// settings follows calls of set_config in a query.
func (x *statement) settings(c content) {
	for _, f := range c.config {
		if len(f.Args) != 3 {
			continue
		}
		name := f.Args[0].GetAConst().GetSval()
		value := f.Args[1].GetAConst().GetSval()
		local := f.Args[2].GetAConst().GetBoolval()
		if name == nil {
			x.plan.Control = rewrite.Control{Verb: rewrite.ControlReset}
			x.plan.Schema = true
			continue
		}
		x.setting(strings.ToLower(name.Sval), value.GetSval(), value != nil, local.GetBoolval())
	}
}
