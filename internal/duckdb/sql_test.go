package duckdb

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report/columnar"
)

// page is the document whose SQL is executed.
const page = "../../docs/how-to/sql.md"

// queries gives the SQL of the page by the comment in its first line.
func queries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for i, block := range strings.Split(string(text), "```sql\n-- ") {
		name, query, ok := strings.Cut(block, "\n")
		query, _, closed := strings.Cut(query, "```")
		if i > 0 && ok && closed {
			found[name] = query
		}
	}
	return found
}

// lake is what DuckDB has of one history, and what the checker found in it.
type lake struct {
	t       *testing.T
	db      *sql.DB
	queries map[string]string
	found   []oracle.Finding
}

// newLake writes a history as columns, as the command does, and makes the page's views of them.
func newLake(t *testing.T, events []history.Event) *lake {
	t.Helper()
	dir := t.TempDir()
	w, err := columnar.Create(filepath.Join(dir, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	l := &lake{t: t, queries: queries(t)}
	c := isolation.New(isolation.Options{Repeats: true, Keep: -1, Dependencies: w.Edge})
	for i := range events {
		if err := w.Event(1, &events[i]); err != nil {
			t.Fatal(err)
		}
		l.found = append(l.found, c.Add(&events[i])...)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if l.db, err = sql.Open("duckdb", ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.db.Close() })
	l.db.SetMaxOpenConns(1) // a database in memory, with its settings, belongs to one connection
	l.exec("SET file_search_path = '" + dir + "'")
	l.exec("SET threads = 1")
	l.exec(l.named("view of edges"))
	return l
}

func (l *lake) named(name string) string {
	l.t.Helper()
	if l.queries[name] == "" {
		l.t.Fatalf("%s has no query %q", page, name)
	}
	return l.queries[name]
}

func (l *lake) exec(query string) {
	l.t.Helper()
	if _, err := l.db.ExecContext(l.t.Context(), query); err != nil {
		l.t.Fatalf("%v in\n%s", err, query)
	}
}

// rows gives the rows of one of the page's queries, with blanks between the columns.
func (l *lake) rows(name string) []string {
	l.t.Helper()
	rows, err := l.db.QueryContext(l.t.Context(), l.named(name))
	if err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		l.t.Fatal(err)
	}
	list := []string{}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			l.t.Fatal(err)
		}
		list = append(list, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
	}
	if err := rows.Err(); err != nil {
		l.t.Fatalf("%s: %v", name, err)
	}
	return list
}

func parse(t *testing.T, text string) []history.Event {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// brief is a finding's name or class, with its transactions.
func brief(f *oracle.Finding) string {
	var ids []uint64
	for i := range f.Transactions {
		ids = append(ids, f.Transactions[i].ID)
	}
	slices.Sort(ids)
	name := f.Name
	if name == "" {
		name = string(f.Class)
	}
	return fmt.Sprint(name, " ", ids)
}
