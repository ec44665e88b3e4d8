package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// Touches says what the statements of a text do, one by one. plain reports whether a name is that of a table of which all is known
// that a statement on it touches; nil: of none.
func Touches(sql string, plain func(table string) bool) []statement.Touch {
	tree, err := pgsyntax.Parse(sql)
	if err != nil {
		return []statement.Touch{{Kind: statement.TouchOpaque}}
	}
	all := make([]statement.Touch, 0, len(tree.Stmts))
	for _, raw := range tree.Stmts {
		all = append(all, touch(raw.Stmt, plain))
	}
	return all
}

func touch(n *pg.Node, plain func(string) bool) statement.Touch {
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		return touchRows(n, plain)
	case *pg.Node_TransactionStmt:
		return touchTransaction(s.TransactionStmt)
	case *pg.Node_VariableSetStmt:
		return touchSet(s.VariableSetStmt)
	case *pg.Node_VariableShowStmt:
		return statement.Touch{Kind: statement.TouchLocal}
	case *pg.Node_LockStmt, *pg.Node_TruncateStmt, *pg.Node_CopyStmt, *pg.Node_VacuumStmt, *pg.Node_CommentStmt, *pg.Node_ListenStmt,
		*pg.Node_NotifyStmt, *pg.Node_UnlistenStmt, *pg.Node_DeclareCursorStmt, *pg.Node_FetchStmt, *pg.Node_ClosePortalStmt, *pg.Node_CheckPointStmt:
		return statement.Touch{Kind: statement.TouchUnknown}
	}
	return touchDefinition(n)
}

// touched is what a tree mentions.
type touched struct {
	tables, written []string
	locks           bool
	strange         bool // something of which it is not known what it touches
}

func mentioned(n proto.Message) touched {
	var c touched
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.RangeVar:
			c.tables = append(c.tables, tableName(m))
		case *pg.InsertStmt:
			c.written = append(c.written, tableName(m.Relation))
		case *pg.UpdateStmt:
			c.written = append(c.written, tableName(m.Relation))
		case *pg.DeleteStmt:
			c.written = append(c.written, tableName(m.Relation))
		case *pg.MergeStmt:
			c.written = append(c.written, tableName(m.Relation))
		case *pg.IntoClause, *pg.CurrentOfExpr:
			c.strange = true
		case *pg.LockingClause:
			c.locks = true
			return false // it names tables of the FROM clause
		case *pg.FuncCall:
			c.strange = c.strange || !statement.Harmless(pgsyntax.LastName(m.Funcname))
		case *pg.ColumnRef:
			c.strange = c.strange || transactional(m)
		}
		return true
	})
	return c
}

// transactional reports whether a column tells the numbers of transactions, which depend on the order of all.
func transactional(c *pg.ColumnRef) bool {
	switch pgsyntax.LastName(c.Fields) {
	case "xmin", "xmax", "ctid":
		return true
	}
	return false
}

func tableName(rv *pg.RangeVar) string {
	if rv.GetCatalogname() != "" || rv.GetSchemaname() != "" {
		return rv.GetCatalogname() + "." + rv.GetSchemaname() + "." + rv.GetRelname()
	}
	return rv.GetRelname()
}

// touchRows is for statements that read and write rows. A name of a common table expression stands for nothing else unless it
// is also a table's.
func touchRows(n *pg.Node, plain func(string) bool) statement.Touch {
	c := mentioned(n)
	ctes := map[string]bool{}
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if e, ok := m.(*pg.CommonTableExpr); ok {
			ctes[e.Ctename] = true
		}
		return true
	})
	t := statement.Touch{Kind: statement.TouchRead}
	for _, name := range c.tables {
		switch {
		case plain != nil && plain(name):
			t.Reads = append(t.Reads, name)
		case !ctes[name] || slices.Contains(c.written, name):
			return statement.Touch{Kind: statement.TouchUnknown}
		}
	}
	switch {
	case c.strange:
		return statement.Touch{Kind: statement.TouchUnknown}
	case c.locks:
		t.Kind, t.Writes, t.Reads = statement.TouchWrite, t.Reads, nil
	case len(c.written) > 0:
		t.Kind, t.Writes = statement.TouchWrite, c.written
	}
	return t
}

func touchTransaction(s *pg.TransactionStmt) statement.Touch {
	switch s.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		if options(s.Options) {
			return statement.Touch{Kind: statement.TouchBegin, Level: optionLevel(s.Options)}
		}
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
		if !s.Chain {
			return statement.Touch{Kind: statement.TouchEnd}
		}
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		return statement.Touch{Kind: statement.TouchEnd, Partial: true}
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT, pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		return statement.Touch{Kind: statement.TouchLocal}
	}
	return statement.Touch{} // two-phase commit goes on in other sessions
}

// options reports whether a transaction's options are known not to make it wait (DEFERRABLE does).
func options(list []*pg.Node) bool {
	return !slices.ContainsFunc(list, func(o *pg.Node) bool {
		name := o.GetDefElem().GetDefname()
		return name != "transaction_isolation" && name != "transaction_read_only"
	})
}

func touchSet(s *pg.VariableSetStmt) statement.Touch {
	name := strings.ToLower(s.Name)
	local := statement.Touch{Kind: statement.TouchLocal}
	switch {
	case s.Kind == pg.VariableSetKind_VAR_SET_MULTI && (name == "transaction" || name == "session characteristics") && options(s.Args):
		local.Level = optionLevel(s.Args)
		return local
	case (name == "transaction_isolation" || name == "default_transaction_isolation") && s.Kind == pg.VariableSetKind_VAR_SET_VALUE && len(s.Args) == 1:
		local.Level = level(s.Args[0].GetAConst().GetSval().GetSval())
		return local
	case s.Kind != pg.VariableSetKind_VAR_SET_VALUE && s.Kind != pg.VariableSetKind_VAR_SET_DEFAULT:
	case strings.HasPrefix(name, "enable_"), quietSettings[name]:
		return local
	case name == "standard_conforming_strings" && len(s.Args) == 1 && strings.EqualFold(s.Args[0].GetAConst().GetSval().GetSval(), "on"): // as by default
		return local
	case strings.HasSuffix(name, "_timeout"): // without one nobody gives up, as by default
		if c := s.Args; len(c) == 1 && c[0].GetAConst().GetIval() != nil && c[0].GetAConst().GetIval().Ival == 0 && name != "deadlock_timeout" {
			return local
		}
	}
	return statement.Touch{} // time-outs, search_path, role
}

// quietSettings change what values look like or how much memory there is, but not what statements mean, lock or see (PostgreSQL manual, chapter 20).
var quietSettings = map[string]bool{
	"client_min_messages": true, "application_name": true, "timezone": true, "datestyle": true, "intervalstyle": true, "client_encoding": true,
	"extra_float_digits": true, "bytea_output": true, "xmloption": true, "lc_messages": true, "lc_monetary": true, "lc_numeric": true, "lc_time": true, "work_mem": true,
	"maintenance_work_mem": true, "temp_buffers": true, "jit": true, "synchronous_commit": true, "check_function_bodies": true, "random_page_cost": true,
	"log_statement": true, "log_min_duration_statement": true,
}

// touchDefinition is for the statements that define something.
func touchDefinition(n *pg.Node) statement.Touch {
	c := mentioned(n)
	define := statement.Touch{Kind: statement.TouchDefine, Writes: c.tables}
	switch s := n.Node.(type) {
	case *pg.Node_CreateStmt:
		rv := s.CreateStmt.Relation
		if rv.GetRelpersistence() == "t" {
			return statement.Touch{}
		}
		if !c.strange && plainTable(s.CreateStmt) {
			return statement.Touch{Kind: statement.TouchDefine, Plain: []string{tableName(rv)}}
		}
	case *pg.Node_IndexStmt:
		if !c.strange && !s.IndexStmt.Concurrent {
			define.Writes = nil
		}
	case *pg.Node_AlterTableStmt:
		if storage(s.AlterTableStmt) {
			define.Writes = nil
		}
	case *pg.Node_ViewStmt, *pg.Node_CreateSeqStmt, *pg.Node_CreateEnumStmt:
		define.Writes = nil // what reads them names what is no table
	case *pg.Node_CreateTrigStmt, *pg.Node_RuleStmt, *pg.Node_CreatePolicyStmt:
	case *pg.Node_DropStmt:
		define.Writes = dropped(s.DropStmt)
	default:
		return statement.Touch{}
	}
	return define
}

func dropped(s *pg.DropStmt) (names []string) {
	for _, o := range s.Objects {
		names = append(names, pgsyntax.LastName(o.GetList().GetItems()))
	}
	return names
}

// plainTable reports whether a new table has no ties to others, and nothing that is checked only at COMMIT.
func plainTable(s *pg.CreateStmt) bool {
	plain := len(s.InhRelations) == 0 && s.Partspec == nil && s.Partbound == nil && s.OfTypename == nil
	pgsyntax.Walk(s, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.TableLikeClause:
			plain = false
		case *pg.Constraint:
			switch m.Contype {
			case pg.ConstrType_CONSTR_FOREIGN, pg.ConstrType_CONSTR_EXCLUSION, pg.ConstrType_CONSTR_ATTR_DEFERRABLE:
				plain = false
			}
			plain = plain && !m.Deferrable
		}
		return true
	})
	return plain
}

// storage reports whether an ALTER TABLE sets nothing but storage parameters.
func storage(s *pg.AlterTableStmt) bool {
	return !slices.ContainsFunc(s.Cmds, func(n *pg.Node) bool {
		return n.GetAlterTableCmd().GetSubtype() != pg.AlterTableType_AT_SetRelOptions
	})
}
