package main

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"wirecheck/anomaly"
)

// application is a program with connections to a proxy, as frameworks use them: each statement is a transaction unless it says otherwise.
type application struct {
	t        *testing.T
	postgres bool
	connect  func() *requester
	leave    func()
	requests map[string]*requester
	order    []string // of requests
	warned   []string
}

// requester is a request under way, on a connection of its own.
type requester struct {
	exec  func(sql string, args ...any) error
	query func(sql string, arg any, to ...any) error
	close func()
	known map[string]int
}

// newApplication connects through ordinary drivers. Plain sends parameters within the text, else they go to prepared statements.
func newApplication(t *testing.T, th *through, plain bool) *application {
	t.Helper()
	ctx, to := t.Context(), th.target
	a := &application{t: t, postgres: to.Engine == "postgres", requests: map[string]*requester{}}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.postgres {
		config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", to.Host, to.Port, to.User, to.Password, to.Database))
		must(err)
		if plain {
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		}
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			a.warned = append(a.warned, n.Code+" "+n.Message+"\n"+n.Detail)
		}
		a.connect = func() *requester {
			c, err := pgx.ConnectConfig(ctx, config)
			must(err)
			return &requester{
				exec:  func(sql string, args ...any) error { _, err := c.Exec(ctx, sql, args...); return err },
				query: func(sql string, arg any, to ...any) error { return c.QueryRow(ctx, sql, arg).Scan(to...) },
				close: func() { c.Close(ctx) },
			}
		}
		return a
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.DBName = to.User, to.Password, "tcp", to.Database
	config.Addr, config.InterpolateParams = fmt.Sprintf("%s:%d", to.Host, to.Port), plain
	connector, err := mysql.NewConnector(config)
	must(err)
	db := sql.OpenDB(connector)
	a.leave = func() { db.Close() }
	a.connect = func() *requester {
		c, err := db.Conn(ctx)
		must(err)
		return &requester{
			exec:  func(sql string, args ...any) error { _, err := c.ExecContext(ctx, sql, args...); return err },
			query: func(sql string, arg any, to ...any) error { return c.QueryRowContext(ctx, sql, arg).Scan(to...) },
			close: func() { c.Close() },
		}
	}
	return a
}

// close ends the connections in the order in which they came. What an autocommit statement overwrote on MariaDB comes with the session's next statement.
func (a *application) close() {
	for _, who := range a.order {
		r := a.requests[who]
		if err := r.exec("SELECT 1"); err != nil {
			a.t.Error(err)
		}
		r.close()
	}
	if a.leave != nil {
		a.leave()
	}
}

// play runs steps such as "A read stock", each on its request's connection, with its request's tags.
//
//	A select stock        reads columns of product 1 and remembers them
//	A set stock stock-1   writes a column, computed from what it has read
//	A where version       the same, and checks that the column is as it was
//	A begin, A commit     a transaction
//	A: SQL                any statement
func (a *application) play(untagged bool, steps ...string) {
	a.t.Helper()
	for _, step := range steps {
		who, what, _ := strings.Cut(step, " ")
		r := a.requests[who]
		if r == nil {
			r = a.connect()
			r.known = map[string]int{}
			a.requests[who], a.order = r, append(a.order, who)
		}
		verb, rest, _ := strings.Cut(what, " ")
		var err error
		switch verb {
		case "select":
			column, lock, _ := strings.Cut(rest, " ")
			var v any
			err = r.query(a.text("SELECT id, "+column+" FROM product WHERE id = ? "+lock, who, untagged), 1, new(int), &v)
			r.known[column] = wholePart(a.t, v)
		case "set":
			f := strings.Fields(rest)
			from, by, minus := strings.Cut(f[1], "-")
			v := r.known[from]
			if minus {
				n := 0
				fmt.Sscan(by, &n)
				v -= n
			}
			where, args := "", []any{v, 1}
			for _, c := range f[2:] {
				where += " AND " + c + " = ?"
				args = append(args, r.known[c])
			}
			err = r.exec(a.text("UPDATE product SET "+f[0]+" = ? WHERE id = ?"+where, who, untagged), args...)
		default:
			err = r.exec(a.text(what, who, untagged))
		}
		if err != nil {
			a.t.Fatalf("%s: %v", step, err)
		}
	}
}

// wholePart is the whole part of a value, in whatever form the driver gives it.
func wholePart(t *testing.T, v any) (n int) {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if d, ok := v.(pgtype.Numeric); ok {
		f, err := d.Float64Value()
		if err != nil {
			t.Fatal(err)
		}
		v = f.Float64
	}
	if _, err := fmt.Sscan(fmt.Sprint(v), &n); err != nil {
		t.Fatalf("%T %v: %v", v, v, err)
	}
	return n
}

// text is a statement in the dialect of the server, with the request's tags.
func (a *application) text(s, who string, untagged bool) string {
	for n := 1; a.postgres && strings.Contains(s, "?"); n++ {
		s = strings.Replace(s, "?", fmt.Sprintf("$%d", n), 1)
	}
	if !a.postgres {
		s = strings.ReplaceAll(s, `"`, "`")
	}
	if untagged {
		return s
	}
	return fmt.Sprintf("%s /*route='%%2Fbuy%%2F%s',traceparent='00-%032x-%016x-01'*/", s, who, who[0], len(s))
}

// claim is the race of two requests for a row without a name.
func claim(read, write string) []string {
	return []string{"C UPDATE product SET name = NULL WHERE id = 1", read, "B" + read[1:], "B UPDATE product SET name = 'bob' WHERE id = 1" + write[strings.Index(write, "= 1")+3:], write}
}

// TestRequestsLive has the races of an application in autocommit, made to happen on real servers, and the corrected versions.
func TestRequestsLive(t *testing.T) {
	t.Parallel()
	const (
		load = `SELECT "Product"."id" AS "Product_id", "Product"."stock" AS "Product_stock" FROM "product" "Product" WHERE "Product"."id" IN (1)`
		save = `UPDATE "product" SET "stock" = %d WHERE "id" IN (1)`
	)
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, engine, "CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(20), stock INT, price DECIMAL(8,2), version INT)")
			for _, tt := range []struct {
				name  string
				lost  int
				maybe int // possible
				steps []string
			}{
				{"lost update", 1, 0, []string{"A select stock", "B select stock", "B set stock stock-1", "A set stock stock-2"}},
				{"one after the other", 0, 0, []string{"B select stock", "B set stock stock-1", "A select stock", "A set stock stock-2"}},
				{"three at once", 2, 0, []string{"A select stock", "B select stock", "C select stock", "A set stock stock-1", "B set stock stock-1", "C set stock stock-1"}},
				{"written back in transactions of their own", 1, 0, []string{"A select stock", "B begin", "B select stock", "B set stock stock-1", "B commit", "A begin", "A set stock stock-2", "A commit"}},
				{"computed by the server", 0, 1, []string{"A select stock", "B select stock", "B UPDATE product SET stock = stock - 1 WHERE id = 1", "A UPDATE product SET stock = stock - 1 WHERE id = 1"}},
				{"computed by the server, checked in the WHERE", 0, 0, []string{"A select stock", "B select stock", "B UPDATE product SET stock = stock - 1 WHERE id = 1 AND stock >= 1", "A UPDATE product SET stock = stock - 1 WHERE id = 1 AND stock >= 1"}},
				{"computed by the server, locked", 0, 0, []string{"A select stock", "B UPDATE product SET stock = stock - 1 WHERE id = 1", "A begin", "A select stock FOR UPDATE", "A UPDATE product SET stock = stock - 1 WHERE id = 1", "A commit"}},
				{"computed by the server, one after the other", 0, 0, []string{"A select stock", "A UPDATE product SET stock = stock - 1 WHERE id = 1", "B select stock", "B UPDATE product SET stock = stock - 1 WHERE id = 1"}},
				{"computed by the server, not read", 0, 0, []string{"A select version", "B UPDATE product SET stock = stock - 1 WHERE id = 1", "A UPDATE product SET stock = stock - 1 WHERE id = 1"}},
				{"another column", 0, 0, []string{"A select stock", "B select version", "B set version version-1", "A set stock stock-2"}},
				{"a version column", 0, 0, []string{"A select stock", "A select version", "B UPDATE product SET stock = 7, version = version + 0 WHERE id = 1", "A set stock stock-2 version"}},
				{"locked", 0, 1, []string{"A select stock", "B select stock", "B set stock stock-1", "A begin", "A select stock FOR UPDATE", "A set stock stock-2", "A commit"}},
				{"locked by another column", 1, 0, []string{"A select stock", "B select stock", "B set stock stock-1", "A begin", "A select version FOR UPDATE", "A set stock stock-2", "A commit"}},
				{"locked by a constant", 1, 0, []string{"A select stock", "B select stock", "B set stock stock-1", "A begin", "A SELECT 1 AS one FROM product WHERE id = 1 FOR UPDATE", "A set stock stock-2", "A commit"}},
				{"locked by an expression", 0, 1, []string{"A select stock", "B select stock", "B set stock stock-1", "A begin", "A SELECT stock + 0 FROM product WHERE id = 1 FOR UPDATE", "A set stock stock-2", "A commit"}},
				{"locked, and nothing in between", 0, 0, []string{"A select stock", "A begin", "A select stock FOR UPDATE", "A set stock stock-2", "A commit", "B select stock", "B set stock stock-1"}},
				{"the lock's value thrown away", 1, 0, []string{"A SELECT name FROM product WHERE id = 1", "B UPDATE product SET name = 'xyz' WHERE id = 1", "A begin", "A SELECT id, name FROM product WHERE id = 1 FOR UPDATE", "A UPDATE product SET name = 'abc; c' WHERE id = 1", "A commit"}},
				{"the lock's value used", 0, 0, []string{"A SELECT name FROM product WHERE id = 1", "B UPDATE product SET name = 'abc; b' WHERE id = 1", "A begin", "A SELECT id, name FROM product WHERE id = 1 FOR UPDATE",
					"A UPDATE product SET name = 'abc; b; c' WHERE id = 1", "A commit"}},
				{"the lock shows NULL", 0, 1, []string{"A SELECT name FROM product WHERE id = 1", "B UPDATE product SET name = NULL WHERE id = 1", "A begin", "A SELECT id, name FROM product WHERE id = 1 FOR UPDATE",
					"A UPDATE product SET name = 'abc; c' WHERE id = 1", "A commit"}},
				{"save() of TypeORM", 1, 0, []string{"A select stock", "B select stock", "B " + load, "B begin", "B " + fmt.Sprintf(save, 9), "B commit", "A " + load, "A begin", "A " + fmt.Sprintf(save, 8), "A commit"}},
				{"save() of TypeORM, one after the other", 0, 0, []string{"B select stock", "B " + load, "B begin", "B " + fmt.Sprintf(save, 9), "B commit", "A select stock", "A " + load, "A begin", "A " + fmt.Sprintf(save, 8), "A commit"}},
				{"save() of TypeORM, locked", 0, 1, []string{"A select stock", "B UPDATE product SET stock = 9 WHERE id = 1", "A begin", "A select stock FOR UPDATE", "A " + load, "A " + fmt.Sprintf(save, 8), "A commit"}},
				{"save() of TypeORM, nothing read before", 0, 0, []string{"A " + load, "B UPDATE product SET stock = 9 WHERE id = 1", "A begin", "A " + fmt.Sprintf(save, 8), "A commit"}},
				{"read for display", 0, 0, []string{"A select stock", "B select stock", "B set stock stock-1", "A UPDATE product SET name = 'x' WHERE id = 1"}},
				{"claimed by NULL", 1, 0, claim("A SELECT id FROM product WHERE name IS NULL ORDER BY id LIMIT 1", "A UPDATE product SET name = 'ann' WHERE id = 1")},
				{"claimed by NULL, read by key too", 1, 0, claim("A SELECT id, name, stock FROM product WHERE id = 1 AND name IS NULL", "A UPDATE product SET name = 'ann' WHERE id = 1")},
				{"claimed by NULL, checked", 0, 0, claim("A SELECT id FROM product WHERE name IS NULL", "A UPDATE product SET name = 'ann' WHERE id = 1 AND name IS NULL")},
				{"claimed by NULL, read by key alone", 0, 0, claim("A SELECT id FROM product WHERE id = 1", "A UPDATE product SET name = 'ann' WHERE id = 1")},
				{"claimed by NULL, locked", 0, 0, []string{"A UPDATE product SET name = NULL WHERE id = 1", "A SELECT id FROM product WHERE name IS NULL", "B UPDATE product SET name = 'bob' WHERE id = 1",
					"A begin", "A SELECT id FROM product WHERE id = 1 AND name IS NULL FOR UPDATE", "A commit"}},
				{"claimed by NULL, locked by key alone", 1, 0, []string{"A UPDATE product SET name = NULL WHERE id = 1", "A SELECT id FROM product WHERE name IS NULL", "B SELECT id FROM product WHERE name IS NULL",
					"B UPDATE product SET name = 'bob' WHERE id = 1", "A begin", "A SELECT id FROM product WHERE id = 1 FOR UPDATE", "A UPDATE product SET name = 'ann' WHERE id = 1", "A commit"}},
				{"claimed by state", 1, 0, []string{"A SELECT id FROM product WHERE name = 'abc' AND stock > 5", "B SELECT id FROM product WHERE name = 'abc'", "B UPDATE product SET name = 'bob' WHERE id = 1",
					"A UPDATE product SET name = 'ann' WHERE id = 1"}},
				{"claimed by state, one after the other", 0, 0, []string{"A SELECT id FROM product WHERE name = 'abc'", "A UPDATE product SET name = 'ann' WHERE id = 1", "B SELECT id FROM product WHERE name = 'ann'",
					"B UPDATE product SET name = 'bob' WHERE id = 1"}},
				{"decimals", 1, 0, []string{"A select price", "B UPDATE product SET price = 8.50 WHERE id = 1", "A set price price-1"}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					for _, plain := range []bool{true, false} {
						w.run(t, "DELETE FROM product", "INSERT INTO product VALUES (1, 'abc', 10, 9.00, 3)")
						th := w.observe(t)
						a := newApplication(t, th, plain)
						a.play(false, tt.steps...)
						a.close()
						got := th.stop(t)
						lost := 0
						for _, f := range got.findings {
							if f.Name == anomaly.LostBetween {
								lost += f.Seen
							}
							if tags := strings.Join(f.Transactions[2].Tags, ", "); !strings.Contains(tags, "route=/buy/") || !strings.Contains(tags, "traceparent=") {
								t.Errorf("plain %v: tags %q", plain, tags)
							}
						}
						if lost != tt.lost || len(got.findings) > 1 || got.coverage.Apart != 0 || got.coverage.Requests == 0 || got.coverage.Possible != tt.maybe {
							t.Errorf("plain %v: %d lost updates, want %d\n%s", plain, lost, tt.lost, got.report)
						}
						// The other party is told, too, where it is sent another answer.
						own := slices.DeleteFunc(slices.Clone(a.warned), func(w string) bool { return strings.Contains(w, "overwrote a change by you ") })
						if warned := len(own); a.postgres && warned != tt.lost || len(a.warned) > 2*tt.lost || warned > 0 && !strings.Contains(own[0], "01WC7 wirecheck: lost update between requests: your UPDATE of product id=1 overwrote a change by session ") {
							t.Errorf("plain %v: warnings %q", plain, a.warned)
						}
						if lost > 0 && !strings.Contains(got.report, "product id=1") {
							t.Errorf("plain %v: the row is not named\n%s", plain, got.report)
						}
					}
				})
			}
			t.Run("without tags", func(t *testing.T) {
				w.run(t, "DELETE FROM product", "INSERT INTO product VALUES (1, 'a', 10, 9.00, 3)")
				th := w.observe(t)
				a := newApplication(t, th, false)
				a.play(true, "A select stock", "B select stock", "B set stock stock-1", "A set stock stock-2")
				a.close()
				if got := th.stop(t); len(got.findings) > 0 || got.coverage.Apart != 2 || !strings.Contains(got.report, "2 rows read outside of a transaction") {
					t.Errorf("%s", got.report)
				}
			})
		})
	}
}

// TestRequestChecksLive has checks of an application in autocommit that races pass, made to happen on real servers, and near misses.
func TestRequestChecksLive(t *testing.T) {
	t.Parallel()
	const (
		first  = "SELECT id, who FROM booking WHERE room = 1 AND hour = 9 ORDER BY id LIMIT 1"
		exists = "SELECT EXISTS (SELECT 1 FROM booking WHERE room = 1 AND hour = 9)"
		orm    = "SELECT 1 AS row_exists FROM (SELECT 1 AS dummy_column) dummy_table WHERE EXISTS (SELECT 1 FROM booking Booking WHERE (Booking.room = 1 AND Booking.hour = 9)) LIMIT 1"
		some   = "SELECT (1) AS a FROM booking WHERE (room = 1 AND hour = 9) LIMIT 1"
		count  = "SELECT COUNT(*) FROM booking WHERE room = 1 AND hour = 9"
		get    = "SELECT id, room, hour, who FROM booking WHERE room = 1 AND hour = 9 LIMIT 21"
		insert = "INSERT INTO booking (room, hour, who) VALUES (1, 9, 'x')"
	)
	race := func(check, write string) []string {
		return []string{"A " + check, "B " + check, "B " + write, "A " + write}
	}
	next := func(ask string) []string { return race(ask, "INSERT INTO invoice (y, no) VALUES (1, 3)") }
	leave := func(check string) []string {
		return []string{"A " + check, "B " + check, "B UPDATE doctor SET on_call = 0 WHERE id = 2", "A UPDATE doctor SET on_call = 0 WHERE id = 1"}
	}
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			serial := map[string]string{"postgres": "SERIAL", "mariadb": "INT AUTO_INCREMENT"}[engine]
			w := newWorld(t, engine, "CREATE TABLE booking (id "+serial+" PRIMARY KEY, room INT, hour INT, who VARCHAR(20))", "CREATE INDEX booking_room ON booking (room)",
				"CREATE TABLE doctor (id INT PRIMARY KEY, shift INT, on_call INT)", "CREATE TABLE invoice (id "+serial+" PRIMARY KEY, y INT, no INT)", "CREATE INDEX invoice_no ON invoice (y, no)")
			onCall := "SELECT COUNT(*) FROM doctor WHERE shift = 7 AND on_call = 1"
			if engine == "mariadb" { // as Django writes it there
				onCall = "SELECT COUNT(*) FROM doctor WHERE (on_call AND shift = 7)"
			}
			for _, tt := range []struct {
				name                  string
				named, seen, possible int
				steps                 []string
			}{
				{"double booking", 1, 1, 0, race(first, insert)},
				{"EXISTS", 1, 1, 0, race(exists, insert)},
				{"existsBy", 1, 1, 0, race(orm, insert)},
				{"existsBy, one after the other", 0, 0, 0, []string{"A " + orm, "A " + insert, "B " + orm, "B " + insert}},
				{"existsBy of another hour", 0, 0, 0, race(strings.Replace(orm, "= 9", "= 8", 1), insert)},
				{"SELECT 1", 1, 1, 0, race(some, insert)},
				{"COUNT", 1, 1, 0, race(count, insert)},
				{"get or create", 1, 1, 0, race(get, insert)},
				{"three at once", 1, 3, 0, []string{"A " + get, "B " + get, "C " + get, "B " + insert, "A " + insert, "C " + insert}},
				{"one after the other", 0, 0, 0, []string{"A " + first, "A " + insert, "B " + first, "B " + insert}},
				{"another hour", 0, 0, 0, []string{"A " + first, "B " + strings.Replace(first, "9", "8", 1), "B " + strings.Replace(insert, "9", "8", 1), "A " + insert}},
				{"one only reads", 0, 0, 0, []string{"A " + first, "B " + first, "B " + insert, "A " + first}},
				{"checked again", 0, 0, 0, []string{"A " + first, "B " + first, "B " + insert, "A begin", "A " + first, "A " + insert, "A commit"}},
				{"write skew by rows", 0, 0, 1, []string{"A " + strings.Replace(onCall, "COUNT(*)", "id, on_call", 1), "B " + strings.Replace(onCall, "COUNT(*)", "id, on_call", 1), "B UPDATE doctor SET on_call = 0 WHERE id = 2", "A UPDATE doctor SET on_call = 0 WHERE id = 1"}},
				{"another request left alone", 0, 0, 1, []string{"C UPDATE doctor SET on_call = 0 WHERE id = 2", "D " + onCall, "D UPDATE doctor SET on_call = 0 WHERE id = 1", "C UPDATE doctor SET on_call = 1",
					"A " + onCall, "B " + onCall, "B UPDATE doctor SET on_call = 0 WHERE id = 2", "A UPDATE doctor SET on_call = 0 WHERE id = 1"}},
				{"write skew by count, one after the other", 0, 0, 0, []string{"A " + onCall, "A UPDATE doctor SET on_call = 0 WHERE id = 1", "B " + onCall, "B UPDATE doctor SET on_call = 0 WHERE id = 2"}},
				{"write skew by count", 1, 1, 0, []string{"A " + onCall, "B " + onCall, "B UPDATE doctor SET on_call = 0 WHERE id = 2", "A UPDATE doctor SET on_call = 0 WHERE id = 1"}},
				{"write skew by count of a query", 1, 1, 0, leave("SELECT COUNT(*) FROM (SELECT id FROM doctor WHERE on_call = 1 LIMIT 9) sub")},
				{"write skew by rows of a query", 0, 0, 1, leave("SELECT * FROM (SELECT id FROM doctor WHERE on_call = 1 LIMIT 9) sub")},
				{"the next number", 1, 1, 0, next("SELECT MAX(no) FROM invoice WHERE y = 1")},
				{"the next number, or 1", 1, 1, 0, next("SELECT COALESCE(MAX(no), 0) + 1 AS n FROM invoice WHERE y = 1")},
				{"the next number of all", 1, 1, 0, next("SELECT MAX(no) AS no__max FROM invoice")},
				{"the next number, by the order of rows", 1, 1, 0, next("SELECT no FROM invoice WHERE y = 1 ORDER BY no DESC LIMIT 1")},
				{"the next number, one after the other", 0, 0, 0, []string{"A SELECT MAX(no) FROM invoice", "A INSERT INTO invoice (y, no) VALUES (1, 3)", "B SELECT MAX(no) FROM invoice", "B INSERT INTO invoice (y, no) VALUES (1, 4)"}},
				{"the next number of another year", 0, 0, 0, next("SELECT MAX(no) FROM invoice WHERE y = 2")},
				{"the server numbers rows", 0, 0, 1, race("SELECT MAX(id) FROM invoice", "INSERT INTO invoice (y, no) VALUES (1, 3)")},
				{"a number below the greatest", 0, 0, 0, race("SELECT MAX(no) FROM invoice WHERE y = 1", "INSERT INTO invoice (y, no) VALUES (1, 1)")},
				{"the write checks", 0, 0, 0, []string{"A " + onCall, "B " + onCall, "B UPDATE doctor SET on_call = 0 WHERE id = 2", "A UPDATE doctor SET on_call = 0 WHERE id = 1 AND on_call = 2"}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					w.run(t, "DELETE FROM booking", "DELETE FROM doctor", "INSERT INTO doctor VALUES (1, 7, 1), (2, 7, 1)", "DELETE FROM invoice", "INSERT INTO invoice (y, no) VALUES (1, 1), (1, 2)")
					th := w.observe(t)
					a := newApplication(t, th, true)
					a.play(false, tt.steps...)
					a.close()
					got := th.stop(t)
					if seen := 0; len(got.findings) == tt.named {
						for _, f := range got.findings {
							seen += f.Seen
							missed := "asked for rows of booking where room = 1 and hour = 9 and found none"
							switch {
							case strings.Contains(tt.name, "skew"):
								missed = "read doctor id="
							case strings.Contains(tt.name, "next number"):
								missed = "and each then inserted one with no = 3"
							}
							if f.Name != anomaly.SkewBetween || !strings.Contains(got.report, missed) || !strings.Contains(got.report, "route=/buy/") {
								t.Errorf("%s", got.report)
							}
						}
						if seen != tt.seen || got.coverage.Possible != tt.possible || tt.possible > 0 && got.coverage.Unevaluated() > 0 {
							t.Errorf("seen %d times, %d are possible\n%s", seen, got.coverage.Possible, got.report)
						}
					} else {
						t.Errorf("%d findings, want %d\n%s", len(got.findings), tt.named, got.report)
					}
					if warned := strings.Join(a.warned, "\n"); a.postgres && strings.Contains(warned, "01WC9 wirecheck: write skew between requests: you and session ") != (tt.named > 0) {
						t.Errorf("warnings %q", warned)
					}
				})
			}
			t.Run("predicates off", func(t *testing.T) {
				w.run(t, "DELETE FROM booking", "DELETE FROM doctor", "INSERT INTO doctor VALUES (1, 7, 1)")
				w.items = true
				defer func() { w.items = false }()
				th := w.observe(t)
				a := newApplication(t, th, true)
				a.play(false, race(first, insert)...)
				const read, write = "SELECT id, shift FROM doctor WHERE id = 1", "UPDATE doctor SET shift = 8 WHERE id = 1"
				a.play(false, "C "+read, "D "+read, "C "+write, "D "+strings.Replace(write, "8", "9", 1))
				a.close()
				got := th.stop(t)
				if len(got.findings) != 1 || got.findings[0].Name != anomaly.LostBetween || !strings.Contains(got.report, "predicates are off") {
					t.Errorf("%s", got.report)
				}
			})
			if engine == "mariadb" {
				t.Run("autocommit off", func(t *testing.T) { // as JDBC's setAutoCommit(false)
					w.run(t, "DELETE FROM doctor", "INSERT INTO doctor VALUES (1, 7, 1)")
					th := w.observe(t)
					a := newApplication(t, th, true)
					const read, write = "SELECT id, shift FROM doctor WHERE id = 1", "UPDATE doctor SET shift = 8 WHERE id = 1"
					a.play(true, "A SET autocommit = 0", "A "+read, "A "+write, "A COMMIT")
					a.play(true, "A SET autocommit = 1", "A "+read, "A "+strings.Replace(write, "8", "9", 1))
					a.close()
					if got := th.stop(t); len(got.findings) > 0 || got.coverage.Apart != 1 || !strings.Contains(got.report, "1 row read outside of a transaction") {
						t.Errorf("%s", got.report)
					}
				})
			}
			t.Run("without tags", func(t *testing.T) {
				w.run(t, "DELETE FROM booking")
				th := w.observe(t)
				a := newApplication(t, th, true)
				a.play(true, race(count, insert)...)
				a.close()
				if got := th.stop(t); len(got.findings) > 0 || got.coverage.Apart != 2 || !strings.Contains(got.report, "2 rows read outside of a transaction") {
					t.Errorf("%s", got.report)
				}
			})
		})
	}
}
