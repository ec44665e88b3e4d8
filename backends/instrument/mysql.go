package instrument

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"wirecheck/backends"
	"wirecheck/backends/mysql"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// Errors of the server that are told apart (MySQL and MariaDB manuals, "Server Error Message Reference").
const (
	errLockWait         = 1205
	errAccessDenied     = 1227
	errInterrupted      = 1317
	errAlgorithm        = 1845 // ER_ALTER_OPERATION_NOT_SUPPORTED
	errAlgorithmBecause = 1846 // ER_ALTER_OPERATION_NOT_SUPPORTED_REASON
	errRowVersions      = 4092 // ER_INNODB_MAX_ROW_VERSION: too many instant changes since the table was last copied
)

// mysqlServer is a member of the MySQL family. All is done on one connection, whose session settings let the server
// copy each table as it is.
type mysqlServer struct {
	pool   *sql.DB
	conn   *sql.Conn
	id     uint64 // of conn, for KILL
	flavor dialect.Flavor
	schema string // empty: all
	wait   time.Duration
	binlog bool
}

func openMySQL(ctx context.Context, db *Database, u *url.URL, o Options) (err error) {
	switch o.Capture {
	case rewrite.CaptureAuto, rewrite.CaptureColumns, "":
		db.Capture = rewrite.CaptureColumns
	default:
		return fmt.Errorf("%s has no %s capture", db.Engine.Title, o.Capture)
	}
	cfg, err := mysqlConfig(u, db.Engine.Port)
	if err != nil {
		return err
	}
	connector, err := mysql.Connector(cfg)
	if err != nil {
		return err
	}
	s := &mysqlServer{pool: sql.OpenDB(connector), schema: db.Name, wait: o.LockWait}
	if err := s.setUp(ctx, db); err != nil {
		return errors.Join(err, s.close(ctx))
	}
	db.server = s
	return nil
}

// mysqlConfig takes the URL's parameters tls (true: verified, skip-verify, preferred, false), ca (a file of
// certificates to trust) and socket (a path, instead of host and port).
func mysqlConfig(u *url.URL, port int) (*driver.Config, error) {
	cfg := driver.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.Logger = &driver.NopLogger{} // the errors come back as errors
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), fmt.Sprint(port))
	if u.Hostname() == "" {
		cfg.Addr = net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
	}
	if u.Port() != "" {
		cfg.Addr = u.Host
	}
	for name, values := range u.Query() {
		value := values[0]
		switch name {
		case "socket":
			cfg.Net, cfg.Addr = "unix", value
		case "tls":
			cfg.TLSConfig = value
		case "ca":
			pem, err := os.ReadFile(value)
			if err != nil {
				return nil, err
			}
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("%s holds no certificate", value)
			}
			cfg.TLS = &tls.Config{RootCAs: pool, ServerName: u.Hostname()}
		default:
			return nil, fmt.Errorf("unknown parameter %q of the URL: known are tls, ca, socket", name)
		}
	}
	return cfg, nil
}

func (s *mysqlServer) setUp(ctx context.Context, db *Database) error {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	if err := conn.QueryRowContext(ctx, "SELECT VERSION(), CONNECTION_ID()").Scan(&db.Version, &s.id); err != nil {
		return err
	}
	s.flavor = dialect.FlavorOf(db.Version)
	if db.Engine, err = backends.ByName(string(s.flavor)); err != nil { // mysql:// also stands before MariaDB and TiDB
		return err
	}
	if s.flavor != dialect.TiDB { // not each version of it knows of a binary log
		if err := conn.QueryRowContext(ctx, "SELECT @@log_bin").Scan(&s.binlog); err != nil {
			return err
		}
	}
	for _, set := range []string{
		// A table is copied with the values and options that it has, valid by today's rules or not: zero dates, an
		// AUTO_INCREMENT value of 0, a row format that the strict mode refuses, a foreign key to a table that is gone.
		"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', SESSION foreign_key_checks = 0",
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(math.Ceil(s.wait.Seconds()))),
	} {
		if _, err := conn.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	// MySQL 8.0.26 and later want a privilege for this one; without it most tables can be copied all the same.
	if _, err := conn.ExecContext(ctx, "SET SESSION innodb_strict_mode = OFF"); err != nil && code(err) != errAccessDenied {
		return err
	}
	return nil
}

func (s *mysqlServer) tables(ctx context.Context) ([]Table, error) {
	const list = `SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_TYPE, IFNULL(t.ENGINE, ''), IFNULL(t.TABLE_ROWS, -1), IFNULL(e.TRANSACTIONS, 'NO'),
  EXISTS (SELECT 1 FROM information_schema.TABLE_CONSTRAINTS c WHERE c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME AND c.CONSTRAINT_TYPE = 'PRIMARY KEY')
FROM information_schema.TABLES t LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
WHERE t.TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') AND t.TABLE_TYPE NOT IN ('SEQUENCE', 'TEMPORARY', 'SYSTEM VIEW')`
	var tables []Table
	err := s.query(ctx, list, "t.TABLE_SCHEMA", func(scan func(...any) error) error {
		var t Table
		var kind, storage, transactions string
		var key bool
		if err := scan(&t.Schema, &t.Name, &kind, &storage, &t.Rows, &transactions, &key); err != nil {
			return err
		}
		switch {
		case kind == "VIEW":
			t.Cannot, t.Rows = "a view has no rows of its own", -1
		case kind == "SYSTEM VERSIONED":
			t.Cannot = "system versioning keeps the history of columns, so they could not be removed without a trace"
		case transactions != "YES":
			t.Cannot = "engine " + storage + " knows no transactions"
		case s.binlog && !key:
			t.Limits = append(t.Limits, "it has no primary key and the binary log is on: a replica compares whole rows, and gives its own row ids")
		}
		t.fixed = t.Cannot != ""
		tables = append(tables, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.states(ctx, tables); err != nil {
		return nil, err
	}
	if err := s.touched(ctx, tables); err != nil {
		return nil, err
	}
	return tables, s.limits(ctx, tables)
}

// query runs a query over information_schema, for the one schema if only that is wanted.
func (s *mysqlServer) query(ctx context.Context, text, schemaColumn string, row func(scan func(...any) error) error) (err error) {
	var args []any
	if s.schema != "" {
		text += " AND " + schemaColumn + " = ?"
		args = append(args, s.schema)
	}
	rows, err := s.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// each gives a function the table and the name of each row of such a query.
func (s *mysqlServer) each(ctx context.Context, text, schemaColumn string, note func(table, name string)) error {
	return s.query(ctx, text, schemaColumn, func(scan func(...any) error) error {
		var t Table
		var name string
		if err := scan(&t.Schema, &t.Name, &name); err != nil {
			return err
		}
		note(t.String(), name)
		return nil
	})
}

func (s *mysqlServer) states(ctx context.Context, tables []Table) error {
	const list = `SELECT c.TABLE_SCHEMA, c.TABLE_NAME, LOWER(c.COLUMN_NAME),
  c.EXTRA LIKE '%INVISIBLE%' OR VERSION() LIKE '%TiDB%' AND c.DATA_TYPE = 'varchar'
FROM information_schema.COLUMNS c WHERE LOWER(c.COLUMN_NAME) IN ('` + rewrite.ColumnRowID + `', '` + rewrite.ColumnWriters + `')`
	ours := map[string]map[string]bool{}
	err := s.query(ctx, list, "c.TABLE_SCHEMA", func(scan func(...any) error) error {
		var t Table
		var column string
		var invisible bool
		if err := scan(&t.Schema, &t.Name, &column, &invisible); err != nil {
			return err
		}
		if ours[t.String()] == nil {
			ours[t.String()] = map[string]bool{}
		}
		ours[t.String()][column] = invisible
		return nil
	})
	for i, t := range tables {
		tables[i].State, tables[i].columns = state(ours[t.String()])
	}
	return err
}

// touched notes the columns that an UPDATE changes by itself.
func (s *mysqlServer) touched(ctx context.Context, tables []Table) error {
	const list = `SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.COLUMNS c WHERE c.EXTRA LIKE '%on update%'`
	return s.each(ctx, list, "c.TABLE_SCHEMA", func(table, column string) {
		if i := slices.IndexFunc(tables, func(t Table) bool { return t.String() == table }); i >= 0 {
			tables[i].touched = append(tables[i].touched, column)
		}
	})
}

// limits notes what changes rows behind the back of the statement.
func (s *mysqlServer) limits(ctx context.Context, tables []Table) error {
	find := func(name string) *Table {
		i := slices.IndexFunc(tables, func(t Table) bool { return t.String() == name })
		if i < 0 || tables[i].Cannot != "" {
			return &Table{} // nobody asked for it
		}
		return &tables[i]
	}
	const triggers = `SELECT g.EVENT_OBJECT_SCHEMA, g.EVENT_OBJECT_TABLE, g.TRIGGER_NAME FROM information_schema.TRIGGERS g WHERE g.TRIGGER_NAME <> ''`
	err := s.each(ctx, triggers, "g.EVENT_OBJECT_SCHEMA", func(table, name string) {
		t := find(table)
		t.Limits, t.triggers = append(t.Limits, "what trigger "+name+" reads and writes is not seen"), true
	})
	if err != nil {
		return err
	}
	const cascades = `SELECT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, r.CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS r
WHERE (r.DELETE_RULE IN ('CASCADE', 'SET NULL') OR r.UPDATE_RULE IN ('CASCADE', 'SET NULL'))`
	return s.each(ctx, cascades, "r.CONSTRAINT_SCHEMA", func(table, name string) {
		t := find(table)
		t.Limits = append(t.Limits, "what foreign key "+name+" changes by cascading is not seen")
	})
}

func (s *mysqlServer) add(ctx context.Context, t Table) (string, error) {
	return s.alter(ctx, dialect.AddColumns(s.flavor, relation(t)))
}

func (s *mysqlServer) remove(ctx context.Context, t Table) (string, error) {
	return s.alter(ctx, dialect.RemoveColumns(s.flavor, relation(t)))
}

// relation is what the dialect needs to know of the table.
func relation(t Table) *rewrite.Relation {
	rel := &rewrite.Relation{RelationName: rewrite.RelationName{Schema: t.Schema, Name: t.Name}}
	for _, name := range t.columns {
		rel.Columns = append(rel.Columns, rewrite.Attribute{Name: name})
	}
	for _, name := range t.touched {
		rel.Columns = append(rel.Columns, rewrite.Attribute{Name: name, Touched: true})
	}
	rel.HasTriggers = t.triggers
	return rel
}

// algorithms are the server's ways to change a table, the least disturbing first (MySQL and MariaDB manuals, "Online DDL").
var algorithms = []struct{ clause, how string }{
	{", ALGORITHM=INSTANT", "instant"},
	{", ALGORITHM=INPLACE, LOCK=NONE", "in place; others read and wrote meanwhile"},
	{", ALGORITHM=COPY", "copied; others read meanwhile, writers waited"},
}

// alter executes ALTER TABLE statements, each of them in the first way that works. A statement is atomic (MariaDB 10.6,
// MySQL 8.0), and those that were done are not done again.
func (s *mysqlServer) alter(ctx context.Context, stmts []string) (how string, err error) {
	if len(stmts) == 0 {
		return "", nil
	}
	worst, filled := 0, ""
	for _, text := range stmts {
		if !strings.HasPrefix(text, "ALTER") {
			if err := s.exec(ctx, text); err != nil {
				return "", err
			}
			filled = ", then filled with row ids"
			continue
		}
		for i, a := range algorithms {
			worst = max(worst, i)
			err = s.exec(ctx, text+a.clause)
			if !slices.Contains([]uint16{errAlgorithm, errAlgorithmBecause, errRowVersions}, code(err)) {
				break
			}
		}
		if code(err) == errLockWait {
			return "", fmt.Errorf("it was in use for longer than %v; try again", s.wait)
		}
		if err != nil {
			return "", err
		}
	}
	return algorithms[worst].how + filled, nil
}

// exec executes a statement; if ctx ends, the statement is killed on the server, which would otherwise go on with it
// after we have left.
func (s *mysqlServer) exec(ctx context.Context, text string) error {
	killed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		_, err := s.pool.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("KILL QUERY %d", s.id))
		killed <- err
	})
	_, err := s.conn.ExecContext(context.WithoutCancel(ctx), text)
	if !stop() {
		kill := <-killed
		if code(err) == errInterrupted {
			return ctx.Err()
		}
		return errors.Join(err, kill)
	}
	return err
}

func (s *mysqlServer) close(context.Context) error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.pool.Close())
}

// code gives the number of a server's error, or 0.
func code(err error) uint16 {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
