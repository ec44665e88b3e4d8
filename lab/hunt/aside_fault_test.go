package hunt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// aside is a connection of the injector's own to the database of a case.
type aside struct {
	engine.Conn
	purpose string
}

// readUncommitted is the level at which InnoDB reads what others have not committed.
const readUncommitted = "READ UNCOMMITTED"

// impatient are the statements that keep a connection from waiting for locks: nobody sees it wait, so the lab would take the
// session that it works for to be slow.
func (in *Injector) impatient() string {
	switch {
	case in.engine.Protocol == engine.ProtocolPostgres:
		return "SET lock_timeout = '20ms'"
	case in.engine.Name == "mariadb":
		return "SET SESSION innodb_lock_wait_timeout = 0"
	}
	return "SET SESSION innodb_lock_wait_timeout = 1" // the least that MySQL and TiDB take
}

// dirties reports whether the engine itself has a level that reads uncommitted data.
func (in *Injector) dirties() bool {
	return in.engine.Protocol == engine.ProtocolMySQL && in.engine.Name != "tidb"
}

// aside gives the connection for a purpose, opened and set up when it is first asked for.
func (f *fault) aside(ctx context.Context, c *conn, purpose string, setup ...string) (engine.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(ctx, c, purpose, setup)
}

// open is aside. mu is held.
func (f *fault) open(ctx context.Context, c *conn, purpose string, setup []string) (engine.Conn, error) {
	for _, a := range f.asides {
		if a.purpose == purpose {
			return a, nil
		}
	}
	t := f.in.server
	t.Database = c.target.Database
	real, err := f.in.engine.Connect(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("fault: open a connection of its own: %w", err)
	}
	f.asides = append(f.asides, &aside{Conn: real, purpose: purpose})
	for _, sql := range append([]string{f.in.impatient()}, setup...) {
		if err := engine.Exec(ctx, real, sql); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
	}
	return real, nil
}

// close ends the connections of the injector's own, and waits until the server has let go of what they held.
func (f *fault) close() (errs []error) {
	for _, a := range f.asides {
		errs = append(errs, engine.Exec(context.Background(), a.Conn, "ROLLBACK"), a.Close())
	}
	return errs
}

// begin is called with each step; when it is the first, it keeps the database as it is for StaleRead.
func (f *fault) begin(ctx context.Context, c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun || f.kind != StaleRead {
		return
	}
	f.begun = true
	begin := []string{f.in.engine.SetLevel("REPEATABLE READ"), "START TRANSACTION WITH CONSISTENT SNAPSHOT"}
	if f.in.engine.Protocol == engine.ProtocolPostgres {
		begin = []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"} // the first query takes the snapshot
	}
	var err error
	if f.snapshot, err = f.open(ctx, c, "snapshot", begin); err != nil {
		f.errs = append(f.errs, err)
	}
}

// table is a table of the case's database.
type table struct {
	name    string // for people
	quoted  string
	columns []column
}

type column struct {
	name, kind string
	generated  bool
}

// table finds a table of the case's database; false if there is none of that name.
func (f *fault) table(ctx context.Context, c *conn, name string) (table, bool, error) {
	catalog, err := f.aside(ctx, c, "catalog")
	if err != nil {
		return table{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tables == nil {
		rows, err := engine.Query(ctx, catalog, f.in.engine.Lab.Columns)
		if err != nil {
			return table{}, false, fmt.Errorf("fault: list tables: %w", err)
		}
		for _, r := range rows {
			if n := len(f.tables); n == 0 || f.tables[n-1].quoted != string(r[1]) {
				f.tables = append(f.tables, table{name: string(r[0]), quoted: string(r[1])})
			}
			t := &f.tables[len(f.tables)-1]
			t.columns = append(t.columns, column{string(r[3]), string(r[4]), string(r[5]) == "t" || string(r[5]) == "1"})
		}
	}
	i := slices.IndexFunc(f.tables, func(t table) bool { return strings.EqualFold(t.name, name) })
	if i < 0 {
		return table{}, false, nil
	}
	return f.tables[i], true, nil
}

// list is the columns as a SELECT list; ref qualifies them and may be empty.
func (f *fault) list(t table, ref string) string {
	lab := f.in.engine.Lab
	var parts []string
	for _, col := range t.columns {
		parts = append(parts, lab.Expression(qualified(ref, lab.Identifier(col.name)), col.kind))
	}
	return strings.Join(parts, ", ")
}

// is is the condition that a row has these values, which list has read.
func (f *fault) is(t table, ref string, row []answer.Value) string {
	lab := f.in.engine.Lab
	var parts []string
	for i, col := range t.columns {
		name := qualified(ref, lab.Identifier(col.name))
		if f.in.engine.Protocol == engine.ProtocolPostgres {
			parts = append(parts, name+" IS NOT DISTINCT FROM "+f.literal(col, row[i])) // the literal becomes the column's type
		} else {
			parts = append(parts, lab.Expression(name, col.kind)+" <=> "+f.literal(col, row[i]))
		}
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

func qualified(ref, column string) string {
	if ref == "" {
		return column
	}
	return ref + "." + column
}

func (f *fault) literal(col column, v answer.Value) string {
	if v == nil {
		return "NULL"
	}
	return string(f.in.engine.Lab.Literal(nil, v, col.kind))
}

// typed is a literal that has the column's type, whatever stands around it.
func (f *fault) typed(col column, v answer.Value) string {
	if f.in.engine.Protocol != engine.ProtocolPostgres {
		return f.literal(col, v)
	}
	return f.literal(col, v) + "::" + f.in.engine.Lab.Identifier(col.kind)
}

// same reports whether two answers have the same rows, in any order.
func same(a, b answer.Answer) bool {
	if len(a.Results) != len(b.Results) {
		return false
	}
	for i := range a.Results {
		if !answer.DiffRows(a.Results[i].Rows, b.Results[i].Rows).Equal() {
			return false
		}
	}
	return true
}
