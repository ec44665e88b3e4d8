package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// Effect is what a statement does to its transaction, its session and the catalog.
type Effect struct {
	Verb    string // as history.Event.Verb
	Control statement.Control
	Schema  bool // it may change the catalog, or what names mean
}

// EffectOf tells the effect of a statement.
func EffectOf(n *pg.Node) Effect {
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		return effectOfRows("select", s.SelectStmt)
	case *pg.Node_InsertStmt:
		return effectOfRows("insert", s.InsertStmt)
	case *pg.Node_UpdateStmt:
		return effectOfRows("update", s.UpdateStmt)
	case *pg.Node_DeleteStmt:
		return effectOfRows("delete", s.DeleteStmt)
	case *pg.Node_MergeStmt:
		return Effect{Verb: "merge"}
	case *pg.Node_CopyStmt:
		return Effect{Verb: "copy"}
	case *pg.Node_TruncateStmt:
		return Effect{Verb: "ddl"}
	case *pg.Node_TransactionStmt:
		return effectOfTransaction(s.TransactionStmt)
	case *pg.Node_VariableSetStmt:
		return effectOfSet(s.VariableSetStmt)
	case *pg.Node_DiscardStmt:
		e := Effect{Verb: "other"}
		if s.DiscardStmt.Target == pg.DiscardMode_DISCARD_ALL {
			e.reset()
		}
		return e
	case *pg.Node_DoStmt:
		return Effect{Verb: "other", Schema: true}
	case *pg.Node_ExplainStmt, *pg.Node_ExecuteStmt, *pg.Node_DeclareCursorStmt, *pg.Node_FetchStmt, *pg.Node_CallStmt, *pg.Node_RefreshMatViewStmt,
		*pg.Node_VariableShowStmt, *pg.Node_PrepareStmt, *pg.Node_DeallocateStmt, *pg.Node_ClosePortalStmt, *pg.Node_ListenStmt, *pg.Node_UnlistenStmt,
		*pg.Node_NotifyStmt, *pg.Node_LockStmt, *pg.Node_CheckPointStmt, *pg.Node_LoadStmt, *pg.Node_ConstraintsSetStmt, *pg.Node_ReindexStmt,
		*pg.Node_CommentStmt, *pg.Node_SecLabelStmt, *pg.Node_VacuumStmt, *pg.Node_ClusterStmt:
		return Effect{Verb: "other"}
	}
	return Effect{Verb: "ddl", Schema: true}
}

// reset says that the session must be asked again what holds.
func (e *Effect) reset() { e.Control, e.Schema = statement.Control{Verb: statement.ControlReset}, true }

// effectOfRows is for statements that read and write rows: SELECT INTO defines a table, and set_config is a SET.
func effectOfRows(verb string, m proto.Message) Effect {
	e := Effect{Verb: verb}
	into := false
	var calls []*pg.FuncCall
	pgsyntax.Walk(m, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.IntoClause:
			into = true
		case *pg.FuncCall:
			if pgsyntax.LastName(m.Funcname) == "set_config" && len(m.Args) == 3 {
				calls = append(calls, m)
			}
		}
		return true
	})
	if into {
		return Effect{Verb: "ddl", Schema: true}
	}
	for _, f := range calls {
		name := f.Args[0].GetAConst().GetSval()
		value := f.Args[1].GetAConst().GetSval()
		local := f.Args[2].GetAConst().GetBoolval()
		if name == nil {
			e.reset()
			continue
		}
		e.set(strings.ToLower(name.Sval), value.GetSval(), value != nil, local.GetBoolval())
	}
	return e
}

func effectOfTransaction(s *pg.TransactionStmt) Effect {
	e := Effect{Verb: "other"}
	c := statement.Control{Chain: s.Chain, Name: s.SavepointName}
	switch s.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		e.Verb, c.Verb = "begin", statement.ControlBegin
		c.Level = optionLevel(s.Options)
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
		e.Verb, c.Verb = "commit", statement.ControlCommit
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		e.Verb, c.Verb = "rollback", statement.ControlRollback
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		e.Verb, c.Verb = "savepoint", statement.ControlSavepoint
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		e.Verb, c.Verb = "release", statement.ControlRelease
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		e.Verb, c.Verb = "rollback to", statement.ControlRollbackTo
	default:
		// PREPARE TRANSACTION takes the transaction out of the session; the server's status says so, and how it ends is
		// decided elsewhere. COMMIT PREPARED and ROLLBACK PREPARED end a transaction that is not this session's.
		return e
	}
	e.Control = c
	return e
}

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

func effectOfSet(s *pg.VariableSetStmt) Effect {
	e := Effect{Verb: "set"}
	value := ""
	if len(s.Args) == 1 {
		value = s.Args[0].GetAConst().GetSval().GetSval()
	}
	name := strings.ToLower(s.Name)
	switch {
	case s.Kind == pg.VariableSetKind_VAR_RESET_ALL:
		e.reset()
	case s.Kind == pg.VariableSetKind_VAR_SET_MULTI:
		l := optionLevel(s.Args)
		if l == "" {
			return e // SET TRANSACTION READ ONLY, SNAPSHOT
		}
		e.Control = statement.Control{Verb: statement.ControlLevel, Level: l, Scope: statement.ScopeTransaction}
		if name == "session characteristics" {
			e.Control.Scope = statement.ScopeSession
		}
	default:
		e.set(name, value, s.Kind == pg.VariableSetKind_VAR_SET_VALUE && value != "", s.IsLocal)
	}
	return e
}

// set follows the assignment of one setting.
func (e *Effect) set(name, value string, known, local bool) {
	switch {
	case followed[name]:
		e.reset()
	case name == "transaction_isolation":
		e.Control = statement.Control{Verb: statement.ControlLevel, Level: level(value), Scope: statement.ScopeTransaction}
	case name == "default_transaction_isolation" && local:
		// It is the default of transactions that begin before this one ends: none.
	case name == "default_transaction_isolation" && known && level(value) != "":
		e.Control = statement.Control{Verb: statement.ControlLevel, Level: level(value), Scope: statement.ScopeSession}
	case name == "default_transaction_isolation":
		e.Control = statement.Control{Verb: statement.ControlReset}
	}
}
