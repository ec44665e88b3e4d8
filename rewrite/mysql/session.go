package mysql

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	describe "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// Session is what the rewriting of a statement depends on besides its text and the catalog. It is comparable.
type Session struct {
	Database        string // the default database; empty if there is none
	Mode            mysqlsyntax.Mode
	MultiStatements bool // the client may send several statements in one text
	// LockingReads says that a plain SELECT locks what it reads: the level is SERIALIZABLE, and a transaction is open or
	// autocommit is off (InnoDB: then it is LOCK IN SHARE MODE).
	LockingReads bool
	Once         bool   // a statement may name a table once only (LOCK TABLES), or has no one view of it (READ UNCOMMITTED)
	Fresh        bool   // what one statement sees says nothing of what the next one sees: READ COMMITTED, or no transaction is open
	GroupConcat  uint64 // how long an added aggregate may become: group_concat_max_len, on MySQL and TiDB max_allowed_packet
	Temporary    string // see WithTemporary
	// Stale says that what was known of tables may be used although it may have changed since.
	Stale  bool
	Wanted uint64 // Rewriter.Generation
	UTF8   bool   // the client's texts are in UTF-8
	Cut    bool   // sql_select_limit hides rows of queries without a LIMIT, or texts are sorted by less than their beginning (max_sort_length)
	UTC    bool   // the session's time zone is certainly UTC
	Past   bool   // what plain reads see may be older than their statement and their transaction (TiDB)
	Lax    bool   // a value that cannot be converted warns where it is an error otherwise: sql_mode is not strict
}

// WithTemporary adds the qualified name of a temporary table, which hides a table of that name (Plan.Temporary).
func (s Session) WithTemporary(name string) Session {
	names := strings.Split(s.Temporary, "\n")
	if name == "" || slices.Contains(names, name) {
		return s
	}
	names = append(names, name)
	slices.Sort(names)
	s.Temporary = strings.TrimLeft(strings.Join(names, "\n"), "\n")
	return s
}

func (s Session) temporary(name string) bool {
	if s.Temporary == "" {
		return false
	}
	return slices.ContainsFunc(strings.Split(s.Temporary, "\n"), func(t string) bool { return strings.EqualFold(t, name) })
}

// Facts is what SessionQuery tells.
type Facts struct {
	Version    string
	Flavor     Flavor
	Level      string // of the next transactions, as history.Event.Level
	Autocommit bool
	FoldNames  bool // lower_case_table_names is not 0
	Snapshot   bool // REPEATABLE READ is snapshot isolation (innodb_snapshot_isolation; TiDB's optimistic transactions)
	Packet     int  // how long a command may be (max_allowed_packet)
	// Session has Mode and GroupConcat set; the other fields the session loop knows better.
	Session Session
}

// SessionQuery asks for what a session must know when it begins, and again after Plan.Control.Verb is ControlReset.
// It is one SHOW statement, so that a server that lacks a variable still answers; each row is a name and a value.
func SessionQuery() string {
	return "SHOW SESSION VARIABLES WHERE Variable_name IN " + settings
}

const settings = "('version','version_comment','tx_isolation','transaction_isolation','autocommit'," +
	"'sql_mode','innodb_snapshot_isolation','character_set_client','character_set_connection','character_set_results'," +
	"'group_concat_max_len','max_allowed_packet','sql_select_limit','max_sort_length','log_bin','binlog_format','lower_case_table_names','tidb_txn_mode'," +
	"'time_zone','system_time_zone','tidb_disable_txn_auto_retry','tidb_snapshot','tidb_read_staleness','tidb_low_resolution_tso','tidb_enable_external_ts_read')"

// WholeSessionQuery asks for the same where sql_select_limit cuts the answer to SessionQuery, see CutOff: a SELECT may have a LIMIT of its own.
func WholeSessionQuery(flavor Flavor) string {
	table := "information_schema.SESSION_VARIABLES"
	if flavor == MySQL {
		table = "performance_schema.session_variables"
	}
	return "SELECT LOWER(VARIABLE_NAME),VARIABLE_VALUE FROM " + table + " WHERE VARIABLE_NAME IN " + settings + noLimit
}

// CutOff reports whether sql_select_limit may have cut the answer to SessionQuery.
func CutOff(rows [][]string) bool {
	for _, r := range rows {
		if len(r) == 2 && strings.EqualFold(r[0], "sql_select_limit") {
			most, err := strconv.ParseUint(r[1], 10, 64)
			return err == nil && most <= uint64(len(rows))
		}
	}
	return true
}

// Variables are the names in a whole answer to SessionQuery, for KnownQuery; none on products where reading a variable may warn.
func Variables(flavor Flavor, rows [][]string) (names []string) {
	if flavor != MariaDB {
		return nil
	}
	for _, r := range rows {
		names = append(names, strings.ToLower(r[0]))
	}
	if slices.Contains(names, "transaction_isolation") { // the other is its old name, with which a version may warn
		names = slices.DeleteFunc(names, func(name string) bool { return name == "tx_isolation" })
	}
	return names
}

// KnownQuery asks for the values of variables that the server has, in one row. For SessionQuery the server makes a list of all that it has, which takes it six
// times as long (MariaDB 10.11). Like that, it names a table, so that the list of warnings is empty behind it.
func KnownQuery(names []string) string {
	return "SELECT @@" + strings.Join(names, ",@@") + " FROM (SELECT 1) wc_d LIMIT 1"
}

// KnownRows gives the answer to KnownQuery the form of that to SessionQuery.
func KnownRows(names []string, answer [][]string) (rows [][]string) {
	for i, value := range answer[0] {
		rows = append(rows, []string{names[i], value})
	}
	return rows
}

// DecodeSession reads the rows of SessionQuery.
func DecodeSession(rows [][]string) (Facts, error) {
	v := make(map[string]string, len(rows))
	for _, r := range rows {
		if len(r) != 2 {
			return Facts{}, fmt.Errorf("a variable has %d columns", len(r))
		}
		v[strings.ToLower(r[0])] = r[1]
	}
	f := Facts{Version: v["version"], Flavor: FlavorOf(v["version"])}
	f.Autocommit = on(v["autocommit"])
	f.FoldNames = v["lower_case_table_names"] != "" && v["lower_case_table_names"] != "0"
	level := cmp.Or(v["transaction_isolation"], v["tx_isolation"])
	f.Level = describe.Level(level)
	if f.Level == "" {
		return Facts{}, fmt.Errorf("isolation level %q is not known", level)
	}
	f.Snapshot = on(v["innodb_snapshot_isolation"])
	if f.Flavor == TiDB { // optimistic transactions read from a snapshot at each level (TiDB docs, "Transaction Isolation Levels")
		mode, told := v["tidb_txn_mode"] // an empty one is optimistic, too (TiDB docs, "System Variables")
		f.Snapshot = told && (mode == "" || strings.EqualFold(mode, "optimistic"))
		stale := v["tidb_read_staleness"]
		f.Session.Past = v["tidb_snapshot"] != "" || stale != "" && stale != "0" || on(v["tidb_low_resolution_tso"]) || on(v["tidb_enable_external_ts_read"])
		if f.Snapshot && f.Level == "read committed" {
			f.Level, f.Session.Past = "repeatable read", true // BEGIN PESSIMISTIC is at READ COMMITTED
		}
		// A transaction that is executed again at COMMIT may lose an update (TiDB docs, optimistic transactions: automatic retry).
		if retry, told := v["tidb_disable_txn_auto_retry"]; told && !on(retry) {
			f.Snapshot, f.Session.Past = false, true
		}
	}
	if f.Level == "repeatable read" && f.Snapshot {
		f.Level = "snapshot"
	}
	f.Session.Mode = modeOf(v["sql_mode"])
	f.Session.Lax = !slices.ContainsFunc(strings.Split(v["sql_mode"], ","), func(m string) bool {
		return slices.Contains([]string{"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL"}, strings.ToUpper(m))
	})
	if f.Flavor == MariaDB {
		f.Session.Mode |= mysqlsyntax.MariaDB
	}
	f.Session.UTC = isUTC(v["time_zone"]) || v["time_zone"] == "SYSTEM" && isUTC(v["system_time_zone"])
	f.Session.UTF8 = strings.HasPrefix(v["character_set_client"], "utf8")
	for _, cs := range []string{v["character_set_client"], v["character_set_connection"], v["character_set_results"]} {
		if !mysqlsyntax.PlainCharset(cs) {
			f.Session.Mode |= mysqlsyntax.Foreign
		}
	}
	if on(v["log_bin"]) && strings.EqualFold(v["binlog_format"], "STATEMENT") {
		f.Session.Mode |= mysqlsyntax.Foreign
	}
	most := "group_concat_max_len"
	if f.Flavor != MariaDB {
		most = "max_allowed_packet"
	}
	n, err := strconv.ParseUint(v[most], 10, 64)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", most, err)
	}
	f.Session.GroupConcat = n
	if f.Packet, err = strconv.Atoi(v["max_allowed_packet"]); err != nil {
		f.Packet = math.MaxInt
	}
	// Its default is the largest number that the server knows. A count that no answer reaches hides nothing.
	limit, err := strconv.ParseUint(v["sql_select_limit"], 10, 64)
	f.Session.Cut = err != nil || limit < math.MaxInt32
	if sorted, err := strconv.ParseUint(v["max_sort_length"], 10, 64); err == nil && sorted < 1024 { // the default
		f.Session.Cut = true
	}
	return f, nil
}

func on(s string) bool { return s == "1" || strings.EqualFold(s, "ON") }

func modeOf(s string) mysqlsyntax.Mode {
	var m mysqlsyntax.Mode
	for name := range strings.SplitSeq(strings.ToUpper(s), ",") {
		switch name {
		case "ANSI_QUOTES", "ANSI":
			m |= mysqlsyntax.AnsiQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= mysqlsyntax.NoBackslashEscapes
		case "PIPES_AS_CONCAT":
			m |= mysqlsyntax.PipesAsConcat
		case "IGNORE_SPACE":
			m |= mysqlsyntax.IgnoreSpace
		case "HIGH_NOT_PRECEDENCE":
			m |= mysqlsyntax.HighNotPrecedence
		case "SIMULTANEOUS_ASSIGNMENT":
			m |= mysqlsyntax.Simultaneous
		case "ORACLE", "MSSQL", "DB2", "POSTGRESQL", "MAXDB", "PAD_CHAR_TO_FULL_LENGTH":
			m |= mysqlsyntax.Foreign
		}
	}
	return m
}

func isUTC(zone string) bool { return zone == "+00:00" || zone == "UTC" || zone == "Etc/UTC" }
