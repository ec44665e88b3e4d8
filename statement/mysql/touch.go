package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// maxTouched is how long a text may be, in bytes, to be looked at.
const maxTouched = 16 << 10

// Touches says what the statements of a text do, one by one. plain reports whether a name, in lower case, is that of a table of
// which all is known that a statement on it touches; nil: of none. It reads texts as a session with the default sql_mode does.
func (r *Reader) Touches(sql string, plain func(table string) bool) []statement.Touch {
	opaque := []statement.Touch{{Kind: statement.TouchOpaque}}
	whole, err := mysqlsyntax.Lex(sql, 0)
	if err != nil || len(sql) > maxTouched {
		return opaque
	}
	if slices.ContainsFunc(whole.Tokens, func(t statement.Token) bool { return t.Executable }) {
		return opaque
	}
	parts := whole.Statements()
	if slices.ContainsFunc(parts, mysqlsyntax.Compound) {
		return []statement.Touch{touchCompound(whole)}
	}
	all := make([]statement.Touch, 0, len(parts))
	for _, part := range parts {
		all = append(all, r.touch(part, plain))
	}
	return all
}

// touchCompound is for texts with statements that have statements in them. Of those, triggers belong to tables; every name in
// the text is taken for a table's.
func touchCompound(t *statement.Text) statement.Touch {
	if !t.Is(0, "CREATE") || t.Find(0, 0, "TRIGGER") < 0 || t.Find(0, 0, "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE") >= 0 {
		return statement.Touch{}
	}
	return statement.Touch{Kind: statement.TouchDefine, Writes: names(t)}
}

// names are all words of a text that may be a table's name.
func names(t *statement.Text) (list []string) {
	for i := range t.Tokens {
		if name, ok := t.Name(i); ok {
			list = append(list, strings.ToLower(name))
		}
	}
	return list
}

func (r *Reader) touch(t *statement.Text, plain func(string) bool) statement.Touch {
	switch {
	case t.Is(0, "SELECT", "WITH", "TABLE", "VALUES", "(", "INSERT", "REPLACE", "UPDATE", "DELETE"):
		return r.touchRows(t, plain)
	case t.Is(0, "BEGIN"), t.Seq(0, "START", "TRANSACTION"):
		return statement.Touch{Kind: statement.TouchBegin, Snapshot: t.Any(0, "SNAPSHOT")}
	case t.Is(0, "COMMIT", "ROLLBACK") && (t.Any(0, "AND", "CHAIN") || t.Find(0, 0, "RELEASE") >= 0):
		return statement.Touch{}
	case t.Is(0, "COMMIT"):
		return statement.Touch{Kind: statement.TouchEnd}
	case t.Is(0, "ROLLBACK"):
		return statement.Touch{Kind: statement.TouchEnd, Partial: t.Find(0, 0, "TO") >= 0}
	case t.Is(0, "SAVEPOINT"), t.Seq(0, "RELEASE", "SAVEPOINT"):
		return statement.Touch{Kind: statement.TouchLocal}
	case t.Is(0, "SET"):
		return r.touchSet(t)
	case t.Is(0, "DO", "SHOW", "EXPLAIN", "DESC", "DESCRIBE"):
		return statement.Touch{Kind: statement.TouchUnknown}
	case t.Is(0, "CREATE", "ALTER", "DROP"):
		return r.touchDefinition(t)
	}
	return statement.Touch{}
}

// touchSet knows SET TRANSACTION of the session, variables of the user's, and settings of the session that change what values look like or how much
// memory there is, but not what statements mean, lock or see.
func (r *Reader) touchSet(t *statement.Text) statement.Touch {
	j := 1
	if t.Is(j, "SESSION", "LOCAL") {
		j++
	}
	if t.Is(j, "TRANSACTION") {
		return statement.Touch{Kind: statement.TouchLocal, Level: levelWords(t, j+1)}
	}
	n, v, err := r.mentioned(t)
	set, ok := n.(*ast.SetStmt)
	if err != nil || !ok || v.strange || v.queries || len(v.tables) > 0 {
		return statement.Touch{}
	}
	for _, a := range set.Variables {
		if a.IsGlobal || a.Name != ast.SetNames && a.Name != ast.SetCharset && a.IsSystem && !harmless(strings.ToLower(a.Name), a.Value) {
			return statement.Touch{}
		}
	}
	return statement.Touch{Kind: statement.TouchLocal}
}

// literalText is the text of a value that is a word, a string or a number.
func literalText(n ast.ExprNode) (text string, ok bool) {
	switch n := n.(type) {
	case ast.ValueExpr:
		return strings.ToLower(fmt.Sprint(n.GetValue())), true
	case *ast.ColumnNameExpr: // ON
		return n.Name.Name.L, true
	}
	return "", false
}

// harmless reports whether a setting of the session, with this value, changes nothing of what statements mean, lock or see (MySQL and MariaDB manuals, system
// variables). innodb_snapshot_isolation makes of REPEATABLE READ a level that the order of statements matters for in the same way.
func harmless(name string, to ast.ExprNode) bool {
	value, literal := literalText(to)
	switch name {
	case "autocommit", "foreign_key_checks", "unique_checks":
		return value == "1" || value == "on" || value == "true" // as by default
	case "sql_mode":
		return literal && !foreignModes.MatchString(value) // whose quotes and escapes are not those of the parser
	}
	return quietSettings[name]
}

var foreignModes = regexp.MustCompile(`ansi|oracle|mssql|db2|maxdb|postgresql|no_backslash_escapes|ignore_space|high_not_precedence|pipes_as_concat`)

var quietSettings = map[string]bool{
	"character_set_client": true, "character_set_connection": true, "character_set_results": true, "collation_connection": true, "time_zone": true, "lc_time_names": true,
	"innodb_snapshot_isolation": true, "sql_auto_is_null": true, "sql_notes": true, "sql_warnings": true, "sql_safe_updates": true, "group_concat_max_len": true,
	"wait_timeout": true, "interactive_timeout": true, "net_read_timeout": true, "net_write_timeout": true, "sort_buffer_size": true, "join_buffer_size": true,
	"tmp_table_size": true, "max_heap_table_size": true, "div_precision_increment": true, "profiling": true, "timestamp": true,
}

// toucher collects what a tree mentions.
type toucher struct {
	tables, ctes []string
	locks        bool
	queries      bool // it has a query
	strange      bool // something of which it is not known what it touches
}

func (v *toucher) enter(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.TableName:
		name := n.Name.L
		if n.Schema.L != "" {
			name = n.Schema.L + "." + name
		}
		v.tables = append(v.tables, name)
	case *ast.CommonTableExpression:
		v.ctes = append(v.ctes, n.Name.L)
	case *ast.SelectStmt:
		v.queries = true
		v.locks = v.locks || n.LockInfo != nil && n.LockInfo.LockType != ast.SelectLockNone
		v.strange = v.strange || n.SelectIntoOpt != nil
	case *ast.FuncCallExpr:
		v.strange = v.strange || !statement.Harmless(n.FnName.L)
	case *ast.VariableExpr:
		v.strange = v.strange || n.IsSystem
	}
	return false
}

func (r *Reader) mentioned(t *statement.Text) (ast.StmtNode, *toucher, error) {
	n, err := r.parser.Parse(t.SQL[t.Tokens[0].Start:t.Tokens[len(t.Tokens)-1].End], 0)
	if err != nil {
		return nil, nil, err
	}
	v := &toucher{}
	mysqlsyntax.Visit(n, v.enter)
	return n, v, nil
}

// touchRows is for statements that read and write rows. What a writing statement reads it locks (MySQL manual, 17.7.3, "Locks Set by
// Different SQL Statements in InnoDB"), at some levels at least.
func (r *Reader) touchRows(t *statement.Text, plain func(string) bool) statement.Touch {
	n, v, err := r.mentioned(t)
	if err != nil || v.strange {
		return statement.Touch{Kind: statement.TouchUnknown}
	}
	var tables []string
	for _, name := range v.tables {
		switch {
		case plain != nil && plain(name):
			tables = append(tables, name)
		case !slices.Contains(v.ctes, name):
			return statement.Touch{Kind: statement.TouchUnknown}
		}
	}
	switch n.(type) {
	case *ast.SelectStmt, *ast.SetOprStmt:
		if !v.locks {
			return statement.Touch{Kind: statement.TouchRead, Reads: tables}
		}
	case *ast.InsertStmt, *ast.UpdateStmt, *ast.DeleteStmt:
	default:
		return statement.Touch{Kind: statement.TouchUnknown}
	}
	return statement.Touch{Kind: statement.TouchWrite, Writes: tables}
}

// touchDefinition is for the statements that define something.
func (r *Reader) touchDefinition(t *statement.Text) statement.Touch {
	n, v, err := r.mentioned(t)
	if err != nil {
		return statement.Touch{}
	}
	define := statement.Touch{Kind: statement.TouchDefine, Writes: v.tables}
	if t.Any(0, "REFERENCES") {
		define.Writes = names(t) // the parser's trees hide some of the tables
	}
	switch n := n.(type) {
	case *ast.CreateTableStmt:
		if !v.strange && len(v.tables) == 1 && plainTable(n) {
			return statement.Touch{Kind: statement.TouchDefine, Plain: v.tables}
		}
		if n.TemporaryKeyword != ast.TemporaryNone {
			return statement.Touch{}
		}
	case *ast.CreateIndexStmt:
		if !v.strange {
			define.Writes = nil
		}
	case *ast.CreateViewStmt:
		define.Writes = nil // what reads it names what is no table
	case *ast.AlterTableStmt, *ast.DropTableStmt:
	default:
		return statement.Touch{}
	}
	return define
}

// plainTable reports whether a new table has no ties to others and is InnoDB's or TiDB's.
func plainTable(n *ast.CreateTableStmt) bool {
	if n.TemporaryKeyword != ast.TemporaryNone || n.ReferTable != nil || n.Select != nil || n.Partition != nil {
		return false
	}
	for _, c := range n.Constraints {
		if c.Tp == ast.ConstraintForeignKey {
			return false
		}
	}
	for _, c := range n.Cols {
		for _, o := range c.Options {
			if o.Tp == ast.ColumnOptionReference {
				return false
			}
		}
	}
	return !slices.ContainsFunc(n.Options, func(o *ast.TableOption) bool {
		return o.Tp == ast.TableOptionEngine && !strings.EqualFold(o.StrValue, "innodb")
	})
}
