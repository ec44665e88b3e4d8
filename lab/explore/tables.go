package explore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/replay"
	dialect "wirecheck/rewrite/mysql"
)

// Table is a table as the replay left it.
type Table struct {
	Name   string `json:"name"`
	Rows   int    `json:"rows"`
	Digest string `json:"sha256"` // of its lines, see writeTables
	// Differs says how it differs from --compare: rows that only one of the two has, and the columns that differ in any row.
	OnlyHere  int      `json:"only_here,omitempty"`
	OnlyThere int      `json:"only_there,omitempty"`
	Columns   []string `json:"columns,omitempty"`
}

// finish reads the tables that the replay left, if the options ask for them.
func (r *replayer) finish(ctx context.Context) error {
	if r.o.Tables == "" && r.o.Compare == "" {
		return nil
	}
	here, err := r.read(ctx, r.target)
	if err != nil {
		return err
	}
	for _, t := range here {
		sum := sha256.New()
		writeTable(sum, t)
		r.report.Tables = append(r.report.Tables, Table{Name: t.Name, Rows: len(t.Rows), Digest: hex.EncodeToString(sum.Sum(nil))})
	}
	if r.o.Tables != "" {
		if err := writeTables(r.o.Tables, here); err != nil {
			return err
		}
	}
	if r.o.Compare == "" {
		return nil
	}
	target, err := r.labs.Create(ctx)
	if err != nil {
		return err
	}
	conn, err := r.instance.Engine.Connect(ctx, target)
	if err != nil {
		return err
	}
	s := replay.Snapshot{Conn: conn, Dialect: r.dialect(), Confined: !r.private(), Archive: r.instance.Engine.Lab.Archive, Database: r.main}
	if err := errors.Join(s.Restore(ctx, r.o.Compare), conn.Close()); err != nil {
		return err
	}
	there, err := r.read(ctx, target)
	if err != nil {
		return err
	}
	r.compareTables(here, there)
	return r.labs.Drop(ctx, target)
}

// read reads all tables of a database.
func (r *replayer) read(ctx context.Context, target engine.Target) (_ []engine.Table, err error) {
	conn, err := r.instance.Engine.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	b := r.instance.Engine.Lab
	if err := b.PrepareConn(ctx, conn); err != nil {
		return nil, err
	}
	tables, err := b.ReadTables(ctx, conn)
	if !r.postgres() {
		for i := range tables {
			tables[i].Hide(dialect.HiddenColumn)
		}
	}
	return tables, err
}

// compareTables says where two databases differ.
func (r *replayer) compareTables(here, there []engine.Table) {
	for i, t := range here {
		f := &r.report.Tables[i]
		j := slices.IndexFunc(there, func(o engine.Table) bool { return o.Name == t.Name })
		if j < 0 {
			f.OnlyHere = len(t.Rows)
			f.Columns = []string{"(no such table)"}
			continue
		}
		other := there[j]
		d := answer.DiffRows(t.Rows, other.Rows)
		f.OnlyHere, f.OnlyThere = len(d.Missing), len(d.Extra)
		if f.OnlyHere+f.OnlyThere == 0 || len(t.Columns) != len(other.Columns) {
			continue
		}
		for c := range t.Columns {
			if !slices.Equal(column(t, c), column(other, c)) {
				f.Columns = append(f.Columns, t.Columns[c].Name)
			}
		}
	}
	for _, t := range there {
		if !slices.ContainsFunc(here, func(o engine.Table) bool { return o.Name == t.Name }) {
			r.report.Tables = append(r.report.Tables, Table{Name: t.Name, OnlyThere: len(t.Rows), Columns: []string{"(no such table)"}})
		}
	}
}

// column gives a column's values, sorted.
func column(t engine.Table, c int) []string {
	values := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		values[i] = field(row[c])
	}
	slices.Sort(values)
	return values
}

// field writes a value so that tabs and line ends in it stay apart from those between values, as COPY does.
func field(v answer.Value) string {
	if v == nil {
		return `\N`
	}
	return strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`).Replace(string(v))
}

func line(row []answer.Value) string {
	fields := make([]string, len(row))
	for i, v := range row {
		fields[i] = field(v)
	}
	return strings.Join(fields, "\t")
}

// writeTable writes a table's rows, a line each, in canonical order.
func writeTable(w io.Writer, t engine.Table) {
	for _, row := range t.Rows {
		fmt.Fprintln(w, line(row))
	}
}

func writeTables(path string, tables []engine.Table) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	w := bufio.NewWriter(f)
	for _, t := range tables {
		fmt.Fprintf(w, "# %s (%s)\n", t.Name, strings.Join(answer.Names(t.Columns), ", "))
		writeTable(w, t)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}
