package statement_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement"
)

// The rows that Addressed tells are those that the statement changes or gives, on real servers. Each table has a key id and a
// column wkey, into which a spliced assignment puts 7.

const rowsSchema = `CREATE TABLE t (id int PRIMARY KEY, v int, s varchar(20), wkey int);
INSERT INTO t VALUES (1, 10, 'a', 0), (2, 20, 'b', 0), (3, 30, 'a', 0), (4, 40, 'WHERE', 0), (5, NULL, 'c;d', 0), (6, 20, 'b', 0);
CREATE TABLE u (id int PRIMARY KEY, v int, t int, wkey int);
INSERT INTO u VALUES (1, 1, 1, 0), (2, 2, 1, 0), (3, 20, 3, 0), (7, 4, 9, 0);
CREATE TABLE n (id int PRIMARY KEY, x int, wkey int);
INSERT INTO n VALUES (1, 3, 0), (3, 1, 0)`

// Statements that both dialects have, and those of one.
var (
	rowsOfAll = []string{
		"UPDATE t SET v = v + 1",
		"UPDATE t SET v = v + 1 WHERE v > 15 /* WHERE v > 100 */ AND s <> 'WHERE'",
		"UPDATE t AS x SET s = 'x, wkey = 3 WHERE' WHERE x.id IN (SELECT u.t FROM u WHERE u.v < 20 ORDER BY u.id)",
		"UPDATE t SET v = (SELECT max(u.v) FROM u WHERE u.t = t.id) WHERE EXISTS (SELECT 1 FROM u WHERE u.t = t.id) OR s = 'c;d'",
		"UPDATE t SET v = 1 WHERE v IS NULL OR NOT (v BETWEEN 15 AND 35)",
		"UPDATE t SET v = CASE WHEN s = 'a' THEN 1 ELSE 2 END, s = s WHERE CASE WHEN v = 20 THEN true ELSE false END",
		"UPDATE t SET v = 1 WHERE false",
		"DELETE FROM t",
		"DELETE FROM t WHERE id > 2 AND s IN ('a', 'b') -- WHERE id = 1",
		"DELETE FROM u WHERE t NOT IN (SELECT id FROM t)",
		"SELECT id FROM t WHERE v > 15 ORDER BY v DESC, id LIMIT 2",
		"SELECT id FROM t WHERE v > 15 ORDER BY v DESC, id LIMIT 2 OFFSET 1 FOR UPDATE",
		"SELECT t.id FROM t JOIN u ON u.t = t.id ORDER BY u.v DESC LIMIT 2",
		"SELECT t.id FROM t LEFT JOIN u ON u.t = t.id WHERE u.id IS NULL",
		"(SELECT id FROM t WHERE s = 'a')",
		"WITH w AS (SELECT id AS i FROM u WHERE v < 20) SELECT t.id FROM t JOIN w ON w.i = t.id",
		"WITH t AS (SELECT id FROM u) SELECT id FROM t",
		"SELECT id FROM (SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3) t WHERE v < 35",
	}
	rowsOfPostgres = []string{
		"UPDATE t SET v = u.v FROM u WHERE u.t = t.id",
		"UPDATE t AS x SET (v, s) = (SELECT u.v, 'y' FROM u WHERE u.id = n.x), wkey = 0 FROM n JOIN u ON u.id = n.id WHERE x.id = n.x AND u.v IS DISTINCT FROM 20 RETURNING x.id",
		"WITH w AS (SELECT t AS i FROM u WHERE v < 20) UPDATE t SET v = 0 FROM w WHERE w.i = t.id",
		"WITH t AS (SELECT 1 AS id) UPDATE public.t SET v = 0 WHERE t.id IN (SELECT id FROM t)",
		`UPDATE ONLY public."t" SET v = 2 WHERE "t".id <= 2`,
		"DELETE FROM t USING u JOIN n USING (id) WHERE t.id = n.x RETURNING *",
		"DELETE FROM public.t x WHERE x.id = ANY (ARRAY[1, 3])",
		"SELECT id FROM t ORDER BY id FETCH FIRST 2 ROWS ONLY",
	}
	rowsOfMySQL = []string{
		"UPDATE t SET v = v + 1 WHERE v > 5 ORDER BY v DESC, id LIMIT 2",
		"UPDATE LOW_PRIORITY IGNORE t SET s = \"it's, wkey = 1\" ORDER BY id LIMIT 3",
		"UPDATE t JOIN u ON u.t = t.id SET t.v = 0 WHERE u.v < 20",
		"UPDATE t AS x, n SET x.v = n.x, x.s = 'b' WHERE x.id = n.x",
		"UPDATE t x LEFT JOIN u USE INDEX FOR JOIN (PRIMARY) ON u.t = x.id SET x.v = 3 WHERE u.id IS NULL",
		"DELETE QUICK FROM t WHERE s = 'b' ORDER BY id DESC LIMIT 1",
		"DELETE x FROM t AS x JOIN u USING (id) WHERE u.v < 3",
		"DELETE FROM x USING t AS x JOIN n ON n.x = x.id WHERE n.id > 1",
		"SELECT `id` FROM `t` FORCE INDEX FOR ORDER BY (PRIMARY) WHERE v > 1 ORDER BY -v LIMIT 1, 2 FOR UPDATE",
	}
	insertsOfAll = []string{
		"INSERT INTO t (id, v, s) VALUES (10, 1, 'a'), (11, 2, concat('x', ', ')), (12, (SELECT max(u.v) FROM u), 'VALUES (1)')",
		"INSERT INTO t VALUES (10, 1, 'a', 0)",
		"INSERT INTO n (id) VALUES (20)",
	}
	upsertsOf = map[string]string{
		"postgres": "INSERT INTO t (id, v) VALUES (1, 1), (2, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = 'SET' WHERE t.id = 2",
		"mysql":    "INSERT INTO t (id, v) VALUES (1, 1), (10, 2) ON DUPLICATE KEY UPDATE v = VALUES(v), s = 'SET'",
	}
)

// server is a connection on which a test's statements run.
type server struct {
	exec func(sql string) error
	ints func(sql string) ([]int, error) // the first column of the answer
}

func servers(t *testing.T) map[string]server {
	ctx := t.Context()
	conn := testserver.Postgres(t).Database(t).Postgres(t)
	family, err := testserver.Family(t).Database(t).MariaDB(t).Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { family.Close() })
	return map[string]server{
		"postgres": {
			exec: func(q string) error { _, err := conn.Exec(ctx, q); return err },
			ints: func(q string) ([]int, error) {
				res, err := conn.PgConn().Exec(ctx, q).ReadAll()
				if err != nil {
					return nil, err
				}
				var list []int
				for _, row := range res[0].Rows {
					var n int
					if _, err := fmt.Sscan(string(row[0]), &n); err != nil {
						return nil, err
					}
					list = append(list, n)
				}
				slices.Sort(list)
				return list, nil
			},
		},
		"mysql": {
			exec: func(q string) error { _, err := family.ExecContext(ctx, q); return err },
			ints: func(q string) ([]int, error) { return queryInts(ctx, family, q) },
		},
	}
}

func queryInts(ctx context.Context, conn *sql.Conn, q string) (list []int, err error) {
	rows, err := conn.QueryContext(ctx, q)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list, rows.Err()
}

func TestAddressedOnServers(t *testing.T) {
	own := map[string][]string{"postgres": rowsOfPostgres, "mysql": rowsOfMySQL}
	for name, s := range servers(t) {
		t.Run(name, func(t *testing.T) {
			r := run{t: t, server: s}
			schema, err := dialects[name](rowsSchema)
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range schema { // the script is cut by what is under test
				r.do(st.Text)
			}
			for _, q := range append(slices.Clone(rowsOfAll), own[name]...) {
				list, err := dialects[name](q)
				if err != nil || len(list) != 1 {
					t.Fatalf("%s: %v, %v", q, list, err)
				}
				r.addressed(&list[0])
			}
			for _, q := range append(slices.Clone(insertsOfAll), upsertsOf[name]) {
				list, err := dialects[name](q)
				if err != nil || len(list) != 1 {
					t.Fatalf("%s: %v, %v", q, list, err)
				}
				r.inserted(&list[0])
			}
		})
	}
}

type run struct {
	t *testing.T
	server
}

func (r run) do(sql string) {
	r.t.Helper()
	if err := r.exec(sql); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

func (r run) ask(sql string) []int {
	r.t.Helper()
	list, err := r.ints(sql)
	if err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return list
}

// addressed compares what Addressed tells with what the statement does.
func (r run) addressed(s *statement.Statement) {
	r.t.Helper()
	r.do("BEGIN")
	defer r.do("ROLLBACK")
	ref := s.Main()[0].Ref
	table := s.Main()[0].SQL
	if targets := s.Targets(); len(targets) > 0 {
		ref, table = targets[0].Ref, targets[0].SQL
	}
	q, ok := s.Addressed(ref + ".id")
	if !ok {
		r.t.Errorf("%s: no query of its rows: %s", s.Text, s.Addressing.Why)
		return
	}
	want := r.ask(q)
	var got []int
	switch s.Verb {
	case "select":
		got = r.ask(s.Text)
	case "update":
		qualified := ", wkey = 7"
		if len(s.Main()) > 1 && s.Assignments[0].Table != "" {
			qualified = ", " + ref + ".wkey = 7"
		}
		if slices.ContainsFunc(s.Assignments, func(a statement.Assignment) bool { return a.Column == "wkey" }) { // one column, one assignment
			r.do(strings.Replace(s.Text, "wkey = 0", "wkey = 7", 1))
		} else {
			r.do(rewrite.Apply(s.Text, []rewrite.Edit{{At: s.AssignAt, Add: qualified}}))
		}
		got = r.ask("SELECT id FROM " + table + " WHERE wkey = 7")
	case "delete":
		before := r.ask("SELECT id FROM " + table)
		r.do(s.Text)
		after := r.ask("SELECT id FROM " + table)
		got = slices.DeleteFunc(before, func(id int) bool { return slices.Contains(after, id) })
	}
	if s.Verb != "select" { // a join has a row once for each combination
		want = slices.Compact(want)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		r.t.Errorf("%s\n%s: rows of the statement (-), rows addressed (+):\n%s", s.Text, q, diff)
	}
}

// inserted puts a column into an INSERT and looks at the rows that have it.
func (r run) inserted(s *statement.Statement) {
	r.t.Helper()
	r.do("BEGIN")
	defer r.do("ROLLBACK")
	in := s.Insert
	var edits []rewrite.Edit
	want := len(in.Rows)
	switch {
	case in.UpdateAt > 0: // only the row that is there
		edits = []rewrite.Edit{{At: in.UpdateAt, Add: ", wkey = 7"}}
		want = 1
	case in.ColumnAt > 0:
		edits = []rewrite.Edit{{At: in.ColumnAt, Add: ", wkey"}}
		for _, at := range in.RowAt {
			edits = append(edits, rewrite.Edit{At: at, Add: ", 7"})
		}
	default: // the columns in another order: wkey has the value of the second
		edits = []rewrite.Edit{{At: in.NewListAt, Add: " (id, wkey, s, v)"}}
		edits = append(edits, rewrite.Edit{At: in.RowAt[0], Add: " + 0"})
		r.do(rewrite.Apply(s.Text, edits))
		if got := r.ask("SELECT wkey FROM t WHERE id = 10"); !slices.Equal(got, []int{1}) {
			r.t.Errorf("%s: with a list of columns wkey is %v", s.Text, got)
		}
		return
	}
	r.do(rewrite.Apply(s.Text, edits))
	if got := r.ask("SELECT id FROM " + s.Targets()[0].SQL + " WHERE wkey = 7"); len(got) != want {
		r.t.Errorf("%s: %d rows have the column, want %d", rewrite.Apply(s.Text, edits), len(got), want)
	}
}
