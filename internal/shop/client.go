package shop

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/mysql"
)

// Target is where clients connect: a server, or a proxy in front of it.
type Target struct {
	Engine         string // "postgres", "mariadb"
	Host           string
	Port           int
	User, Password string
	Database       string
	Bin            string // folder of psql or mariadb; empty: PATH
}

// Client is one connection.
type Client interface {
	// Do sends one statement, prepared where it has parameters, and gives its answer as a person reads it: rows, or nothing. An error of the server is an
	// error.
	Do(ctx context.Context, sql string, params ...any) (string, error)
	// Heard gives the warnings that came with the answers since it was last called, as this client gets them.
	Heard(ctx context.Context) ([]string, error)
	// Name is the program's or the library's name.
	Name() string
	Close() error
}

// Connect opens a client of the given kind.
func (t Target) Connect(ctx context.Context, part Part) (Client, error) {
	switch {
	case part == Terminal:
		return t.terminal(ctx)
	case t.Engine == "postgres":
		return t.pgx(ctx)
	}
	return t.goMySQL(ctx)
}

func (t Target) address() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

type pgxClient struct {
	conn  *pgx.Conn
	heard []string
}

func (t Target) pgx(ctx context.Context) (Client, error) {
	where := url.URL{Scheme: "postgres", User: url.UserPassword(t.User, t.Password), Host: t.address(), Path: t.Database, RawQuery: "application_name=shop"}
	cfg, err := pgx.ParseConfig(where.String())
	if err != nil {
		return nil, fmt.Errorf("configure pgx: %w", err)
	}
	c := &pgxClient{}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		text := fmt.Sprintf("%s %s: %s", n.Severity, n.Code, n.Message)
		if n.Detail != "" {
			text += "\nDETAIL: " + n.Detail
		}
		if n.Hint != "" {
			text += "\nHINT: " + n.Hint
		}
		c.heard = append(c.heard, text)
	}
	if c.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect with pgx: %w", err)
	}
	return c, nil
}

func (c *pgxClient) Name() string { return "pgx" }

func (c *pgxClient) Do(ctx context.Context, sql string, params ...any) (string, error) {
	rows, err := c.conn.Query(ctx, sql, params...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return "", err
		}
		out = append(out, join(values))
	}
	return strings.Join(out, "; "), rows.Err()
}

func join(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, " | ")
}

func (c *pgxClient) Heard(context.Context) ([]string, error) {
	h := c.heard
	c.heard = nil
	return h, nil
}

func (c *pgxClient) Close() error { return c.conn.Close(context.Background()) }

type mysqlClient struct {
	db   *sql.DB
	conn *sql.Conn
}

func (t Target) goMySQL(ctx context.Context) (Client, error) {
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = t.User, t.Password, "tcp", t.address(), t.Database
	connector, err := mysql.Connector(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure go-sql-driver/mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("connect with go-sql-driver/mysql: %w", err)
	}
	return &mysqlClient{db, conn}, nil
}

func (c *mysqlClient) Name() string { return "go-sql-driver/mysql" }

func (c *mysqlClient) Do(ctx context.Context, text string, params ...any) (string, error) {
	rows, err := c.rows(ctx, text, params...)
	return strings.Join(rows, "; "), err
}

// rows executes a statement and gives the rows of its answer.
func (c *mysqlClient) rows(ctx context.Context, text string, params ...any) (out []string, err error) {
	if !strings.HasPrefix(strings.ToUpper(text), "S") { // SELECT, SHOW; SET answers without rows to both calls
		_, err := c.conn.ExecContext(ctx, text, params...)
		return nil, err
	}
	rows, err := c.conn.QueryContext(ctx, text, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		raw, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range raw {
			into[i] = &raw[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		words := make([]string, len(raw))
		for i, v := range raw {
			words[i] = v.String
		}
		out = append(out, strings.Join(words, " | "))
	}
	return out, rows.Err()
}

// Heard asks for the warnings, as a program does that wants to know: the driver itself tells only errors.
func (c *mysqlClient) Heard(ctx context.Context) ([]string, error) {
	return c.rows(ctx, "SHOW WARNINGS")
}

func (c *mysqlClient) Close() error {
	err := c.conn.Close()
	if e := c.db.Close(); err == nil {
		err = e
	}
	return err
}

// terminal is psql or mariadb, fed statement by statement through a pipe; its outputs are read as they come.
type terminal struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	echo  func(marker string) string
	marks int
	heard []string
}

func (t Target) terminal(ctx context.Context) (Client, error) {
	c := &terminal{}
	var env []string
	var args []string
	if t.Engine == "postgres" {
		c.name = "psql"
		args = []string{"-X", "-q", "-A", "-t", "-h", t.Host, "-p", strconv.Itoa(t.Port), "-U", t.User, "-d", t.Database}
		env = []string{"PGPASSWORD=" + t.Password}
		c.echo = func(m string) string { return "\\warn " + m + "\n" }
	} else {
		c.name = "mariadb"
		args = []string{"--no-defaults", "--show-warnings", "--skip-column-names", "--unbuffered", "--force", "-h", t.Host, "-P", strconv.Itoa(t.Port), "-u", t.User, t.Database}
		env = []string{"MYSQL_PWD=" + t.Password}
		c.echo = func(m string) string { return "SELECT '" + m + "';\n" }
	}
	path := c.name
	if t.Bin != "" {
		path = filepath.Join(t.Bin, c.name)
	}
	c.cmd = exec.CommandContext(ctx, path, args...)
	c.cmd.Env = append(os.Environ(), env...)
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	c.out = bufio.NewReader(r)
	c.cmd.Stdout, c.cmd.Stderr = w, w // in the order in which a person sees them
	err = c.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	return c, nil
}

func (c *terminal) Name() string { return c.name }

// Do sends the statement and a marker behind it, and reads up to the marker.
func (c *terminal) Do(_ context.Context, sql string, params ...any) (string, error) {
	if len(params) > 0 {
		return "", fmt.Errorf("a terminal has no parameters")
	}
	c.marks++
	marker := fmt.Sprintf("-- answered %d", c.marks)
	if _, err := io.WriteString(c.in, sql+";\n"+c.echo(marker)); err != nil {
		return "", fmt.Errorf("talk to %s: %w", c.name, err)
	}
	var rows, said []string
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("listen to %s: %w: %s", c.name, err, strings.Join(said, "\n"))
		}
		line = strings.TrimRight(line, "\r\n")
		if line == marker {
			break
		}
		switch {
		case len(said) > 0 || speech(line):
			said = append(said, line)
		default:
			rows = append(rows, line)
		}
	}
	for _, line := range said {
		if strings.HasPrefix(line, "ERROR") {
			return "", fmt.Errorf("%s: %s", c.name, strings.Join(said, "\n"))
		}
	}
	if len(said) > 0 {
		c.heard = append(c.heard, strings.Join(said, "\n"))
	}
	return strings.Join(rows, "; "), nil
}

// speech tells a terminal's messages from rows.
func speech(line string) bool {
	starts := []string{"WARNING:", "NOTICE:", "ERROR", "Warning (Code", "Note (Code", "psql:"}
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(line, start) })
}

func (c *terminal) Heard(context.Context) ([]string, error) {
	h := c.heard
	c.heard = nil
	return h, nil
}

func (c *terminal) Close() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, c.out); err != nil {
		return err
	}
	return c.cmd.Wait()
}
