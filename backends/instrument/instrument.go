// Package instrument adds the hidden columns wc_row_id and wc_writers to the tables of a live database, removes them
// without a trace, and says of each table how exactly its reads and writes can be seen.
//
// Every table is changed by one statement that the server does as a whole or not at all, so an interrupted run leaves
// some tables changed and others not: adding again resumes it, removing undoes it.
package instrument

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/rewrite"
)

// State says whether a table has the hidden columns.
type State string

// The states of a table.
const (
	StateNone    State = "none"    // it has no hidden columns
	StateAdded   State = "added"   // it has them
	StatePartial State = "partial" // it has some of them: a change was interrupted
	StateForeign State = "foreign" // it has columns of these names that are not wirecheck's
)

// Table is one table of the database.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	State  State  `json:"state"`
	Rows   int64  `json:"rows"` // as the server estimates them; -1 if it does not
	// Cannot says why the table cannot have the columns. Such a table is left alone.
	Cannot string `json:"cannot,omitempty"`
	// Limits say what of the table's reads and writes will not be exact.
	Limits []string `json:"limits,omitempty"`

	fixed   bool     // its columns are not to be changed
	columns []string // those of the hidden columns that it has
	// What adding them on MySQL needs to know.
	touched  []string // columns with ON UPDATE CURRENT_TIMESTAMP
	triggers bool
}

// String gives schema.name.
func (t Table) String() string { return t.Schema + "." + t.Name }

// Options says what is wanted.
type Options struct {
	Capture rewrite.Capture
	// Tables are patterns (path.Match) of table names, or of schema.name where they have a dot. None means all.
	Tables []string
	// Password is used if the URL has a user without one.
	Password string
	// LockWait limits the wait for a table that others use, since others queue behind us meanwhile.
	LockWait time.Duration
}

// DefaultLockWait is short, for the sake of those who queue behind us.
const DefaultLockWait = 10 * time.Second

// Database is an open database.
type Database struct {
	Engine  engine.Descriptor
	Version string
	Name    string          // empty: all schemas of the server
	Capture rewrite.Capture // never CaptureAuto
	Tables  []Table         // those that were asked for, sorted

	server server
}

// server is one product's way of doing it.
type server interface {
	// tables lists all tables outside of the product's own schemas.
	tables(ctx context.Context) ([]Table, error)
	// add and remove change one table and say how the server did it. They must not wait longer than the lock wait.
	add(ctx context.Context, t Table) (how string, err error)
	remove(ctx context.Context, t Table) (how string, err error)
	close(ctx context.Context) error
}

// Open connects to the database that the URL names and lists its tables.
func Open(ctx context.Context, rawURL string, o Options) (*Database, error) {
	d, u, err := parse(rawURL, o)
	if err != nil {
		return nil, err
	}
	if o.LockWait <= 0 {
		o.LockWait = DefaultLockWait
	}
	db := &Database{Engine: d, Name: strings.TrimPrefix(u.Path, "/"), Capture: o.Capture}
	open := openMySQL
	if d.Protocol == engine.ProtocolPostgres {
		open = openPostgres
	}
	if err := open(ctx, db, u, o); err != nil {
		return nil, fmt.Errorf("open %s: %w", u.Redacted(), err)
	}
	all, err := db.server.tables(ctx)
	if err == nil {
		db.Tables, err = choose(d, all, o.Tables)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("list tables of %s: %w", u.Redacted(), err), db.Close())
	}
	return db, nil
}

func parse(rawURL string, o Options) (engine.Descriptor, *url.URL, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of net/url repeats the URL, password included.
		return engine.Descriptor{}, nil, errors.New("the URL cannot be read: it should look like postgres://user:password@host:5432/database, with % escapes in the password")
	}
	d, err := backends.ByName(u.Scheme)
	if err != nil {
		return engine.Descriptor{}, nil, fmt.Errorf("URL %s: %w", u.Redacted(), err)
	}
	if d.Embedded {
		return engine.Descriptor{}, nil, fmt.Errorf("%s is a library: no proxy stands in front of it, so its tables need no columns", d.Title)
	}
	if _, has := u.User.Password(); !has && o.Password != "" && u.User.Username() != "" {
		u.User = url.UserPassword(u.User.Username(), o.Password)
	}
	return d, u, nil
}

// choose picks the tables that the patterns name.
func choose(d engine.Descriptor, all []Table, patterns []string) ([]Table, error) {
	slices.SortFunc(all, func(a, b Table) int { return strings.Compare(a.String(), b.String()) })
	if len(patterns) == 0 {
		return all, nil
	}
	wanted := make([]bool, len(all))
	for _, p := range patterns {
		if schema, _, qualified := strings.Cut(p, "."); qualified && d.System(schema) {
			return nil, fmt.Errorf("schema %s belongs to the server and is never changed", schema)
		}
		found := false
		for i, t := range all {
			name := t.Name
			if strings.Contains(p, ".") {
				name = t.String()
			}
			ok, err := path.Match(p, name)
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
			if ok {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no table matches %q", p)
		}
	}
	var chosen []Table
	for i, t := range all {
		if wanted[i] {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// Native reports whether the engine itself tells what is needed, so that there is nothing to add.
func (db *Database) Native() bool { return db.Capture == rewrite.CaptureNative }

// Result is what was done to one table.
type Result struct {
	Table Table  `json:"table"`
	How   string `json:"how,omitempty"` // how the server did it; empty if there was nothing to do
	Error string `json:"error,omitempty"`
}

// Add gives t the hidden columns. A table that has them, or cannot have them, stays as it is.
func (db *Database) Add(ctx context.Context, t Table) Result {
	if db.Native() || t.fixed || t.State == StateAdded {
		return Result{Table: t}
	}
	return change(ctx, t, db.server.add, StateAdded)
}

// Remove takes the hidden columns away from t.
func (db *Database) Remove(ctx context.Context, t Table) Result {
	if t.fixed || t.State == StateNone {
		return Result{Table: t}
	}
	return change(ctx, t, db.server.remove, StateNone)
}

func change(ctx context.Context, t Table, do func(context.Context, Table) (string, error), then State) Result {
	if t.State == StateForeign {
		return Result{Table: t, Error: "it has columns of these names that are not wirecheck's"}
	}
	if err := ctx.Err(); err != nil {
		return Result{Table: t, Error: err.Error()}
	}
	how, err := do(ctx, t)
	if err != nil {
		return Result{Table: t, Error: err.Error()}
	}
	t.State = then
	return Result{Table: t, How: how}
}

// Close closes the connections.
func (db *Database) Close() error { return db.server.close(context.Background()) }

// state judges which of the hidden columns a table has; ours tells of each of them whether it is as wirecheck makes it.
func state(ours map[string]bool) (State, []string) {
	if len(ours) == 0 {
		return StateNone, nil
	}
	var columns []string
	for _, name := range []string{rewrite.ColumnRowID, rewrite.ColumnWriters} {
		mine, has := ours[name]
		if has && !mine {
			return StateForeign, nil
		}
		if has {
			columns = append(columns, name)
		}
	}
	if len(columns) == 2 {
		return StateAdded, columns
	}
	return StatePartial, columns
}
