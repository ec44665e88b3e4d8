package main

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/internal/shop"
)

// lose makes a lost update between two connections of a driver, and gives the finding's id.
func lose(t *testing.T, ctx context.Context, th *through) string {
	t.Helper()
	var sessions [2]shop.Client
	for i := range sessions {
		c, err := th.target.Connect(ctx, shop.Driver)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		sessions[i] = c
	}
	a, b := sessions[0], sessions[1]
	for _, step := range []struct {
		c   shop.Client
		sql string
	}{
		{a, "BEGIN"}, {a, "SELECT n FROM coupon WHERE id = 1"}, {b, "BEGIN"}, {b, "SELECT n FROM coupon WHERE id = 1"},
		{b, "UPDATE coupon SET n = 4 WHERE id = 1"}, {b, "COMMIT"}, {a, "UPDATE coupon SET n = 3 WHERE id = 1"}, {a, "COMMIT"},
	} {
		if _, err := step.c.Do(ctx, step.sql); err != nil {
			t.Fatalf("%s: %v", step.sql, err)
		}
	}
	found := th.live.Result().Findings
	if len(found) != 1 {
		t.Fatalf("%d findings", len(found))
	}
	return found[0].ID
}

// TestAskedPostgreSQL: pgx asks in each of its modes, and prepares, describes and executes by itself; a statement that was prepared before there
// was a finding tells of it.
func TestAskedPostgreSQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres", "CREATE TABLE coupon (id INT PRIMARY KEY, n INT)")
	w.run(t, "INSERT INTO coupon VALUES (1, 5)")
	th := w.observe(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	u := "postgres://" + th.target.User + ":" + strings.ReplaceAll(th.target.Password, " ", "%20") + "@" + th.target.Host + ":" + strconv.Itoa(th.target.Port) + "/" + th.target.Database
	conn, err := pgx.Connect(ctx, u)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	lines := func(mode pgx.QueryExecMode, sql string, params ...any) string {
		t.Helper()
		rows, err := conn.Query(ctx, sql, append([]any{mode}, params...)...)
		if err != nil {
			t.Fatalf("%v: %s: %v", mode, sql, err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%v: %s: %v", mode, sql, err)
		}
		return strings.Join(list, "\n")
	}
	const explain = "SELECT wirecheck.explain($1)"
	if said := lines(pgx.QueryExecModeCacheStatement, explain, "WC-000000"); !strings.Contains(said, "There is no finding WC-000000") {
		t.Errorf("before: %q", said)
	}
	list := func(want int) {
		t.Helper()
		rows, _ := conn.Query(ctx, "SHOW WIRECHECK")
		got, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil || len(got) != want {
			t.Errorf("the list: %v, %v", got, err)
		}
	}
	list(0)
	id := lose(t, ctx, th)
	list(1)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, sql := range []string{explain, "SELECT wirecheck.explain($1::text)", "select * from wirecheck.explain($1) as result"} {
			if mode == pgx.QueryExecModeSimpleProtocol && sql != explain { // pgx writes the value in parentheses or with spaces of its own
				continue
			}
			if said := lines(mode, sql, id); !strings.Contains(said, "a contradiction!") {
				t.Errorf("%v: %s: %q", mode, sql, said)
			}
		}
		if said := lines(mode, explain, "WC-0"); !strings.Contains(said, "There is no finding WC-0") {
			t.Errorf("%v: another one: %q", mode, said)
		}
	}
	described, err := conn.Prepare(ctx, "ask", explain)
	if err != nil || len(described.ParamOIDs) != 1 || described.ParamOIDs[0] != 25 || len(described.Fields) != 1 || described.Fields[0].Name != "wirecheck" || described.Fields[0].DataTypeOID != 25 {
		t.Errorf("described as %+v, %v", described, err)
	}
	askInPipeline(t, ctx, conn.PgConn(), id)
	if _, err := conn.Exec(ctx, explain); err == nil {
		t.Error("a question without its parameter was answered")
	}
	askInFailed(t, ctx, conn, id)
	askWithPgbench(t, ctx, th, id)
}

// askInPipeline asks for different findings by one statement before the first answer is there.
func askInPipeline(t *testing.T, ctx context.Context, conn *pgconn.PgConn, id string) {
	t.Helper()
	batch := &pgconn.Batch{}
	for _, name := range []string{"WC-1", id, "WC-2"} {
		batch.ExecPrepared("ask", [][]byte{[]byte(name)}, nil, []int16{1})
		batch.ExecParams("SELECT wirecheck.explain($1)", [][]byte{[]byte(name)}, []uint32{1043}, []int16{1}, nil)
		batch.ExecParams("SELECT 7", nil, nil, nil, nil)
	}
	results, err := conn.ExecBatch(ctx, batch).ReadAll()
	if err != nil || len(results) != 9 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, want := range []string{"no finding WC-1", "no finding WC-1", "7", id, id, "7", "no finding WC-2", "no finding WC-2", "7"} {
		if said := string(results[i].Rows[0][0]); !strings.Contains(said, want) {
			t.Errorf("answer %d of a pipeline: %q, want %q", i, said, want)
		}
	}
}

// askInFailed: in a transaction that has failed the server refuses a question as any other statement, and answers it again afterwards.
func askInFailed(t *testing.T, ctx context.Context, conn *pgx.Conn, id string) {
	t.Helper()
	for _, sql := range []string{"BEGIN", "SELECT 1/0", "SELECT 1", "ROLLBACK"} {
		if sql == "SELECT 1" {
			r := conn.PgConn().ExecPrepared(ctx, "ask", [][]byte{[]byte("WC-3")}, nil, nil).Read()
			if r.Err == nil || !strings.Contains(r.Err.Error(), "25P02") {
				t.Errorf("in a failed transaction: %v", r.Err)
			}
			continue
		}
		_, _ = conn.PgConn().Exec(ctx, sql).ReadAll()
	}
	r := conn.PgConn().ExecPrepared(ctx, "ask", [][]byte{[]byte(id)}, nil, nil).Read()
	if r.Err != nil || len(r.Rows) == 0 || !strings.Contains(string(r.Rows[0][0]), id) {
		t.Errorf("after it: %v", r)
	}
}

// askWithPgbench asks as pgbench prepares statements.
func askWithPgbench(t *testing.T, ctx context.Context, th *through, id string) {
	t.Helper()
	bench, err := exec.LookPath("pgbench")
	if err != nil {
		t.Skip("pgbench is not on the machine")
	}
	file := filepath.Join(t.TempDir(), "ask.sql")
	if err := os.WriteFile(file, []byte("SELECT wirecheck.explain(:id);\nSHOW WIRECHECK;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"prepared", "extended"} {
		cmd := exec.CommandContext(ctx, bench, "-n", "-t", "3", "-M", mode, "-D", "id="+id, "-f", file, "-h", th.target.Host, "-p", strconv.Itoa(th.target.Port), "-U", th.target.User, th.target.Database)
		cmd.Env = append(os.Environ(), "PGPASSWORD="+th.target.Password)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "processed: 3/3") {
			t.Errorf("pgbench -M %s: %v\n%s", mode, err, out)
		}
	}
}

// TestAskedMySQL: go-sql-driver asks by prepared statements, which it executes for several findings.
func TestAskedMySQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mariadb", "CREATE TABLE coupon (id INT PRIMARY KEY, n INT)")
	w.run(t, "INSERT INTO coupon VALUES (1, 5)")
	th := w.observe(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.DBName = th.target.User, th.target.Password, "tcp", th.target.Database
	cfg.Addr = th.target.Host + ":" + strconv.Itoa(th.target.Port)
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	prepare := func(text string) *sql.Stmt {
		t.Helper()
		st, err := db.PrepareContext(ctx, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		t.Cleanup(func() { st.Close() })
		return st
	}
	ask := func(st *sql.Stmt, params ...any) (columns, rows []string) {
		t.Helper()
		r, err := st.QueryContext(ctx, params...)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		columns, _ = r.Columns()
		for r.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new(string)
			}
			if err := r.Scan(cells...); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, *cells[0].(*string))
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		return columns, rows
	}
	show, one, call := prepare("SHOW WIRECHECK"), prepare("SELECT wirecheck.explain(?)"), prepare("CALL wirecheck.explain( ? )")
	if columns, rows := ask(show); len(columns) != 4 || len(rows) != 0 {
		t.Errorf("the list before: %q %q", columns, rows)
	}
	id := lose(t, ctx, th)
	if _, rows := ask(show); len(rows) != 1 || rows[0] != id {
		t.Errorf("the list: %q", rows)
	}
	for range 20 { // more than the server's statements that stand for one
		for _, st := range []*sql.Stmt{one, call} {
			if columns, rows := ask(st, id); len(columns) != 1 || columns[0] != "wirecheck" || !strings.Contains(strings.Join(rows, "\n"), "a contradiction!") {
				t.Errorf("explained: %q %q", columns, rows)
			}
			if _, rows := ask(st, "WC-1"); len(rows) != 1 || !strings.Contains(rows[0], "There is no finding WC-1") {
				t.Errorf("another one: %q", rows)
			}
			if _, rows := ask(st, nil); len(rows) != 1 || !strings.Contains(rows[0], "There is no finding") {
				t.Errorf("NULL: %q", rows)
			}
			if _, rows := ask(st, 7); len(rows) != 1 || !strings.Contains(rows[0], "There is no finding 7") {
				t.Errorf("a number: %q", rows)
			}
		}
	}
	if _, err := db.ExecContext(ctx, "SELECT wirecheck.explain(?, ?)", 1, 2); err == nil {
		t.Error("two parameters were answered")
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT n FROM coupon WHERE id = ?", 1).Scan(&n); err != nil || n != 3 {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}
