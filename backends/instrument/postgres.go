package instrument

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/postgres"
)

// postgresServer is PostgreSQL. With native capture it only reports; with columns it adds ordinary columns, since
// PostgreSQL has no invisible ones.
type postgresServer struct {
	conn    *pgx.Conn
	capture rewrite.Capture
	wait    time.Duration
}

func openPostgres(ctx context.Context, db *Database, u *url.URL, o Options) error {
	if o.Capture == rewrite.CaptureAuto || o.Capture == "" {
		db.Capture = rewrite.CaptureNative
	}
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		var bad *pgconn.ParseConfigError // its text holds the URL, password included
		if errors.As(err, &bad) {
			err = bad.Unwrap()
		}
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	db.Version, db.Name = conn.PgConn().ParameterStatus("server_version"), cfg.Database
	db.Name = cmp.Or(db.Name, cfg.User)
	s := &postgresServer{conn: conn, capture: db.Capture, wait: o.LockWait}
	if _, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", s.wait.Milliseconds())); err != nil {
		return errors.Join(err, s.close(ctx))
	}
	db.server = s
	return nil
}

func (s *postgresServer) tables(ctx context.Context) ([]Table, error) {
	// The same catalog that the proxy reads, so that the answers agree.
	rows, err := s.conn.Query(ctx, dialect.CatalogQuery(), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	texts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		var text string
		err := row.Scan(&text)
		return []string{text}, err
	})
	if err != nil {
		return nil, err
	}
	catalog, err := dialect.LoadCatalog(texts)
	if err != nil {
		return nil, err
	}
	var tables []Table
	for _, rel := range catalog.All() {
		if rel.Kind == "sequence" {
			continue
		}
		t := Table{Schema: rel.Schema, Name: rel.Name, Rows: int64(rel.Rows), Cannot: cannot(rel), Limits: limits(rel)}
		tables = append(tables, t)
	}
	if err := s.states(ctx, tables); err != nil {
		return nil, err
	}
	for i := range tables {
		t := &tables[i]
		t.fixed = t.Cannot != ""
		if s.capture == rewrite.CaptureNative {
			t.Cannot = "" // nobody wants columns
		}
	}
	return tables, nil
}

// limits says what of a relation the native capture does not see.
func limits(rel *rewrite.Relation) []string {
	var l []string
	say := func(when bool, what string) {
		if when {
			l = append(l, what)
		}
	}
	switch rel.Kind {
	case "view":
		return []string{"what is read through a view is not seen"}
	case "matview":
		return []string{"a materialized view is a copy: the rows that it was made from are not seen"}
	case "foreign":
		return []string{"rows of a foreign table live on another server"}
	}
	say(!rel.Readable, "this user may not read it")
	say(rel.HasRules, "rewrite rules change what a statement does")
	say(rel.RowSecurity, "row security hides rows from this user")
	say(rel.ColumnGrants, "privileges on single columns may forbid the added columns")
	say(rel.Inherits, "inheritance: rows of several tables")
	say(rel.Unlogged, "its changes are not in the write-ahead log, so the order of versions is not known")
	say(rel.HasTriggers, "what its triggers read and write is not seen")
	say(rel.Cascades(), "what its foreign keys change by cascading is not seen")
	say(len(rel.Key) == 0, "no primary key: a row is followed from version to version")
	return l
}

// cannot says why a relation cannot get columns of its own.
func cannot(rel *rewrite.Relation) string {
	switch rel.Kind {
	case "table", "partitioned":
	case "view":
		return "a view has no rows of its own"
	default:
		return "a " + rel.Kind + " table cannot have hidden columns"
	}
	if rel.Root != nil {
		return "a partition has the columns of " + rel.Root.String()
	}
	if rel.Inherits {
		return "inheritance: the columns of parents and children depend on each other"
	}
	return ""
}

func (s *postgresServer) states(ctx context.Context, tables []Table) error {
	const list = `SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), c.reloftype <> 0
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND (a.attname IN ($1, $2) OR c.reloftype <> 0) AND c.relkind IN ('r', 'p')`
	types := map[string]string{rewrite.ColumnRowID: "uuid", rewrite.ColumnWriters: "text"}
	ours := map[string]map[string]bool{}
	typed := map[string]bool{}
	rows, err := s.conn.Query(ctx, list, rewrite.ColumnRowID, rewrite.ColumnWriters)
	if err != nil {
		return err
	}
	var t Table
	var column, kind string
	var isTyped bool
	_, err = pgx.ForEachRow(rows, []any{&t.Schema, &t.Name, &column, &kind, &isTyped}, func() error {
		if isTyped {
			typed[t.String()] = true
			return nil
		}
		if ours[t.String()] == nil {
			ours[t.String()] = map[string]bool{}
		}
		ours[t.String()][column] = types[column] == kind
		return nil
	})
	for i, t := range tables {
		tables[i].State, tables[i].columns = state(ours[t.String()])
		if typed[t.String()] {
			tables[i].Cannot = "the columns of a typed table are those of its type"
		}
	}
	return err
}

func (s *postgresServer) add(ctx context.Context, t Table) (string, error) {
	// They may be NULL: CREATE TABLE (LIKE t) copies a NOT NULL but not the default, and then no INSERT would succeed.
	definitions := []struct{ name, definition string }{
		{rewrite.ColumnRowID, "uuid DEFAULT gen_random_uuid()"},
		{rewrite.ColumnWriters, "text DEFAULT '" + dialect.StampUnknown + "'"},
	}
	var missing []string
	for _, c := range definitions {
		if !slices.Contains(t.columns, c.name) {
			missing = append(missing, "ADD COLUMN "+c.name+" "+c.definition)
		}
	}
	if !slices.Contains(t.columns, rewrite.ColumnWriters) {
		// The default of the rows that are there is not that of rows to come (manual, ALTER TABLE, examples).
		missing = append(missing, "ALTER COLUMN "+rewrite.ColumnWriters+" SET DEFAULT "+dialect.StampDefault)
	}
	// A volatile default makes the server write the table anew (manual, ALTER TABLE, notes).
	return s.alter(ctx, t, missing, "rewritten; others waited meanwhile")
}

func (s *postgresServer) remove(ctx context.Context, t Table) (string, error) {
	var drops []string
	for _, name := range t.columns {
		drops = append(drops, "DROP COLUMN "+name)
	}
	return s.alter(ctx, t, drops, "instant")
}

// alter changes a table by one statement, which is atomic.
func (s *postgresServer) alter(ctx context.Context, t Table, clauses []string, how string) (string, error) {
	_, err := s.conn.Exec(ctx, "ALTER TABLE "+pgx.Identifier{t.Schema, t.Name}.Sanitize()+" "+strings.Join(clauses, ", "))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "55P03" {
		return "", fmt.Errorf("it was in use for longer than %v, and nothing was changed", s.wait)
	}
	if err != nil {
		return "", err
	}
	return how, nil
}

func (s *postgresServer) close(ctx context.Context) error {
	return s.conn.Close(context.WithoutCancel(ctx))
}
