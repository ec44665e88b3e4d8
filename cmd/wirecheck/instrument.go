package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/backends/instrument"
	"wirecheck/product"
	"wirecheck/rewrite"
)

// instrumentFlags are the flags of the instrument commands.
type instrumentFlags struct {
	tables   []string
	capture  string
	lockWait time.Duration
}

func newInstrumentCommand(c *common) *cobra.Command {
	var f instrumentFlags
	cmd := &cobra.Command{
		Use:   "instrument",
		Short: "Add or remove the hidden columns that show row versions",
		Long: `MariaDB and MySQL show row versions only through two invisible columns,
wc_row_id and wc_writers. "add" adds them to the tables of a database, "remove"
removes them without a trace, "status" shows which tables have them and how
exactly wirecheck sees each table. SELECT * and INSERT without a column list do
not notice the columns.

PostgreSQL needs no columns: the server keeps the versions with every row.

TiDB has no invisible columns. There they are ordinary columns, which only the
proxy hides. Use them in a test database, not in one that other clients use.

URL names the server and the database: postgres://user@host:5432/database,
mariadb://user@host:3306/database. A MariaDB or MySQL URL without a database
means all databases but the server's own. The password stands in the URL or in
` + backends.PasswordVariable + ` (wirecheck --help). MariaDB and MySQL URLs take
?tls=true, ?tls=skip-verify, ?ca=FILE and ?socket=PATH; PostgreSQL URLs take
what libpq takes.

"remove" locks each table for a moment. "add" on MariaDB copies each table, and
writers of that table wait; on PostgreSQL (with --capture columns) readers wait,
too. "add" on MySQL changes the table at once and fills it by one UPDATE. If
other sessions use a table for longer than --lock-wait, wirecheck leaves it as
it is and reports it. You can interrupt and repeat each command at any time.`,
		Example: `  wirecheck instrument status mariadb://app@127.0.0.1:3306/shop
  wirecheck instrument add mariadb://root@127.0.0.1:3306/shop --tables 'account,order*'
  wirecheck instrument remove mariadb://root@127.0.0.1:3306/shop`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	flags.StringSliceVar(&f.tables, "tables", nil, "patterns of tables, as in 'account,shop.order*' (default: all)")
	flags.StringVar(&f.capture, "capture", string(rewrite.CaptureAuto), "how wirecheck sees row versions: auto, columns, native")
	flags.DurationVar(&f.lockWait, "lock-wait", instrument.DefaultLockWait, "longest wait for a table that other sessions use")
	for _, verb := range []struct{ name, short, long string }{
		{"add", "Add the hidden columns", "add adds the hidden columns to each table and prints what it did. A table that\nhas them already stays as it is."},
		{"remove", "Remove the hidden columns", "remove removes the hidden columns. The tables are then as they were before add."},
		{"status", "Show which tables have the hidden columns, and what wirecheck cannot see of each", ""},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:   verb.name + " URL",
			Short: verb.short,
			Long:  verb.long,
			Example: fmt.Sprintf("  wirecheck instrument %s mariadb://root@127.0.0.1:3306/shop\n  wirecheck instrument %s postgres://postgres@127.0.0.1:5432/shop",
				verb.name, verb.name),
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return runInstrument(cmd.Context(), c, verb.name, args[0], f)
			},
		})
	}
	return cmd
}

// instrumentReport is what the commands say.
type instrumentReport struct {
	Engine   string              `json:"engine"`
	Version  string              `json:"version"`
	Database string              `json:"database,omitempty"`
	Capture  rewrite.Capture     `json:"capture"`
	Note     string              `json:"note,omitempty"`
	Tables   []instrument.Result `json:"tables"`
	Changed  int                 `json:"changed"`
	Failed   int                 `json:"failed"`
}

func runInstrument(ctx context.Context, c *common, verb, url string, f instrumentFlags) (err error) {
	capture := rewrite.Capture(f.capture)
	switch capture {
	case rewrite.CaptureAuto, rewrite.CaptureColumns, rewrite.CaptureNative:
	default:
		return fmt.Errorf("unknown capture %q: known are auto, columns, native", f.capture)
	}
	password, err := backends.Password()
	if err != nil {
		return err
	}
	db, err := instrument.Open(ctx, url, instrument.Options{
		Capture: capture, Tables: f.tables, Password: password, LockWait: f.lockWait,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	report := instrumentReport{
		Engine: db.Engine.Title, Version: db.Version, Database: db.Name, Capture: db.Capture, Note: instrumentNote(db, verb),
		Tables: []instrument.Result{},
	}
	do := map[string]func(context.Context, instrument.Table) instrument.Result{
		"add": db.Add, "remove": db.Remove,
		"status": func(_ context.Context, t instrument.Table) instrument.Result { return instrument.Result{Table: t} },
	}[verb]
	for i, t := range db.Tables {
		if ctx.Err() != nil {
			break
		}
		if verb != "status" {
			c.progressOf(int64(i), int64(len(db.Tables)), "%s: table %d of %d, %s", verb, i+1, len(db.Tables), t)
		}
		r := do(ctx, t)
		report.Tables = append(report.Tables, r)
		if r.How != "" {
			report.Changed++
		}
		if r.Error != "" {
			report.Failed++
		}
	}
	c.clearProgress()
	if err := report.write(c, verb); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: %d of %d tables are done; run it again to go on", len(report.Tables)-report.Failed, len(db.Tables))
	case report.Failed > 0:
		return fmt.Errorf("%d of %d tables could not be changed", report.Failed, len(db.Tables))
	}
	return nil
}

// instrumentNote says what a person should know about the capture.
func instrumentNote(db *instrument.Database, verb string) string {
	switch {
	case db.Native() && verb == "add":
		return db.Engine.Title + " itself tells what is needed: nothing to add"
	case !db.Native() && !db.Engine.InvisibleColumns && db.Engine.Dialect == product.DialectMySQL && verb != "remove":
		return "on " + db.Engine.Title + " the columns are visible to whoever does not come through a proxy in observe mode, and an INSERT without a column list fails there: for tests"
	case db.Engine.TransactionIDs && db.Capture == rewrite.CaptureColumns && verb != "remove":
		return "on " + db.Engine.Title + " the columns are visible to SELECT * of whoever does not come through a proxy with --capture columns; native capture needs none"
	}
	return ""
}

func (r *instrumentReport) write(c *common, verb string) error {
	if c.format == "json" {
		return json.NewEncoder(c.stdout).Encode(r)
	}
	name := cmp.Or(r.Database, "all databases")
	fmt.Fprintf(c.stdout, "%s %s, %s, capture %s\n", r.Engine, r.Version, name, r.Capture)
	if r.Note != "" {
		fmt.Fprintln(c.stdout, r.Note)
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	if len(r.Tables) > 0 {
		fmt.Fprintln(w, "TABLE\tCOLUMNS\tROWS\tNOTES")
	}
	for _, t := range r.Tables {
		rows := "-"
		if t.Table.Rows >= 0 {
			rows = fmt.Sprintf("~%d", t.Table.Rows)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Table, t.Table.State, rows, instrumentNotes(t))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if verb == "status" {
		return nil
	}
	_, err := fmt.Fprintf(c.stdout, "%d changed, %d as they were, %d failed\n", r.Changed, len(r.Tables)-r.Changed-r.Failed, r.Failed)
	return err
}

// instrumentNotes is the last column of a table's line.
func instrumentNotes(r instrument.Result) string {
	var notes []string
	for _, s := range []string{r.Error, r.How} {
		if s != "" {
			notes = append(notes, s)
		}
	}
	if r.Table.Cannot != "" {
		notes = append(notes, "left alone: "+r.Table.Cannot)
	}
	return strings.Join(append(notes, r.Table.Limits...), "; ")
}
