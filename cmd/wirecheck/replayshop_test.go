package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A shop on PostgreSQL: what web applications send, by pgx's extended protocol and as ORMs write it, without races but for those that a test
// seeds. Each step waits for a sign of the server, so that every run of it overlaps in the same way.

const webshopSchema = `
CREATE SCHEMA shop;
CREATE SCHEMA audit;
CREATE TYPE shop.order_state AS ENUM ('new', 'paid', 'shipped');
CREATE TABLE shop.category (id serial PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE shop.product (id serial PRIMARY KEY, sku varchar(20) NOT NULL UNIQUE, name text NOT NULL, category_id int REFERENCES shop.category,
	price numeric(10,2) NOT NULL CHECK (price > 0), stock int NOT NULL CHECK (stock >= 0), attrs jsonb NOT NULL DEFAULT '{}', version int NOT NULL DEFAULT 0,
	updated_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE shop.customer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE, name text, born date, points int NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE shop.cart (id uuid PRIMARY KEY, customer_id bigint REFERENCES shop.customer, touched timestamptz DEFAULT clock_timestamp());
CREATE TABLE shop.cart_item (cart_id uuid REFERENCES shop.cart ON DELETE CASCADE, product_id int REFERENCES shop.product, qty int NOT NULL, PRIMARY KEY (cart_id, product_id));
CREATE TABLE shop.coupon (code text PRIMARY KEY, uses_left int NOT NULL, used boolean NOT NULL DEFAULT false);
CREATE TABLE shop.coupon_use (coupon text REFERENCES shop.coupon, customer_id bigint, PRIMARY KEY (coupon, customer_id));
CREATE TABLE shop."order" (id bigserial PRIMARY KEY, customer_id bigint NOT NULL REFERENCES shop.customer, state shop.order_state NOT NULL DEFAULT 'new',
	total numeric(12,2), placed_at timestamptz NOT NULL DEFAULT now(), note text);
CREATE TABLE shop.order_item (order_id bigint REFERENCES shop."order", line int, product_id int, qty int, price numeric(10,2), PRIMARY KEY (order_id, line));
CREATE TABLE shop.payment (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), order_id bigint REFERENCES shop."order", amount numeric(12,2), card bytea);
CREATE TABLE shop.job (id serial PRIMARY KEY, kind text, body jsonb);
CREATE TABLE shop.staff (name text PRIMARY KEY, on_call boolean NOT NULL);
CREATE TABLE shop.slot (room int, hour int, guest text);
CREATE TABLE shop.import (sku text, n int);
CREATE TABLE audit.entry (id bigserial PRIMARY KEY, what text, at timestamptz DEFAULT now());
CREATE VIEW shop.bestseller AS SELECT product_id, sum(qty) AS sold FROM shop.order_item GROUP BY product_id;
CREATE FUNCTION shop.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := clock_timestamp(); RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON shop.product FOR EACH ROW EXECUTE FUNCTION shop.touch();
CREATE FUNCTION shop.order_total(o bigint) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT coalesce(sum(qty * price), 0) FROM shop.order_item WHERE order_id = o';
CREATE FUNCTION shop.log(what text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN INSERT INTO audit.entry (what) VALUES (what) RETURNING id INTO n; RETURN n; END $$;
INSERT INTO shop.category (name) VALUES ('books'), ('tea');
INSERT INTO shop.product (sku, name, category_id, price, stock, attrs) SELECT 'SKU-' || n, 'Product ' || n, 1 + n % 2, n + 0.99, 100, jsonb_build_object('color', (ARRAY['red', 'blue'])[1 + n % 2]) FROM generate_series(1, 12) n;
INSERT INTO shop.customer (email, name, born) SELECT 'c' || n || '@example.com', E'Cust\\omer "' || n || '"', date '1990-01-01' + n FROM generate_series(1, 8) n;
INSERT INTO shop.coupon VALUES ('WELCOME10', 10), ('ONCE', 1), ('SUMMER', 50);
INSERT INTO shop.staff VALUES ('ada', true), ('bob', true);
INSERT INTO shop.job (kind, body) SELECT 'mail', jsonb_build_object('to', n) FROM generate_series(1, 6) n;
`

// webshop is the application at work.
type webshop struct {
	t *testing.T
	p *production
	n int // of carts
	m int // of checkouts
}

// request is one of the application's, with its sqlcommenter tags.
type request struct {
	*shopper
	tags string
}

func (w *webshop) visitor(name string) *shopper {
	c := w.p.connectAs(w.t, "shop", "app", "webshop-"+name)
	c.exec("SET search_path TO shop, public")
	c.exec("SET SESSION timezone TO 'UTC'")
	return c
}

func (c *shopper) as(route string, trace int) request {
	return request{c, fmt.Sprintf(" /*action='%s',framework='gin%%3A1.9',route='%%2F%s',traceparent='00-%032x-%016x-01'*/", route, route, trace, trace)}
}

func (r request) do(sql string, args ...any) { r.t.Helper(); r.exec(sql+r.tags, args...) }

func (r request) one(sql string, args ...any) int { r.t.Helper(); return r.number(sql+r.tags, args...) }

// refused executes what the server refuses with the code.
func (c *shopper) refused(code, sql string, args ...any) {
	c.t.Helper()
	_, err := c.conn.Exec(context.Background(), sql, args...)
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != code {
		c.t.Fatalf("%s: got %v, want %s", sql, err, code)
	}
}

func (c *shopper) pid() uint32 { return c.conn.PgConn().PID() }

// waits executes something in the background, and returns when its session waits for a lock; the function that it gives waits for its end.
func (w *webshop) waits(c *shopper, do func()) (join func()) {
	w.t.Helper()
	var wait sync.WaitGroup
	wait.Go(do)
	w.p.awaitBlocked(w.t, c.pid())
	return wait.Wait
}

// awaitBlocked returns when the server says that a session waits for a lock.
func (p *production) awaitBlocked(t *testing.T, pid uint32) {
	t.Helper()
	c := p.connect(t, "postgres")
	defer c.close()
	for end := time.Now().Add(patience); c.number("SELECT cardinality(pg_blocking_pids($1))", pid) == 0; {
		if time.Now().After(end) {
			t.Fatalf("session %d does not wait for a lock", pid)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// browse is what only reads.
func (w *webshop) browse(c *shopper, n int) {
	r := c.as("browse", 1000+n)
	r.do(`SELECT p.*, c.name AS category FROM product p JOIN category c ON c.id = p.category_id WHERE p.attrs @> $1 ORDER BY p.id LIMIT 5`, `{"color": "red"}`)
	r.do(`SELECT "product"."id", "product"."sku", "product"."name", "product"."price" FROM "product" WHERE "product"."id" = $1 LIMIT 21`, n%12+1)
	r.do(`select p1_0.id,p1_0.attrs,p1_0.name from product p1_0 where p1_0.sku=$1`, fmt.Sprintf("SKU-%d", n%12+1))
	r.do(`SELECT count(*), max(price), string_agg(sku, ',' ORDER BY sku) FROM product WHERE price BETWEEN $1 AND $2 AND id = ANY($3)`, "2.50", "9", []int32{1, 2, 3, 4})
	r.do(`WITH top AS (SELECT product_id, sold FROM bestseller ORDER BY sold DESC, product_id LIMIT 3) SELECT p.name, t.sold FROM top t JOIN product p ON p.id = t.product_id ORDER BY 2, 1`)
	r.do(`SELECT * FROM customer WHERE email ILIKE '%' || $1 || '%' AND born < $2 ORDER BY id`, "c1@", time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC))
}

// shop fills a cart.
func (w *webshop) fill(c *shopper, customer int, products ...int) string {
	w.n++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
	r := c.as("cart", 2000+w.n)
	r.do(`INSERT INTO cart (id, customer_id) VALUES ($1, $2)`, id, customer)
	for _, p := range products {
		r.one(`INSERT INTO cart_item AS i (cart_id, product_id, qty) VALUES ($1, $2, $3) ON CONFLICT (cart_id, product_id) DO UPDATE SET qty = i.qty + EXCLUDED.qty RETURNING qty`, id, p, 2)
	}
	return id
}

// checkout locks what it reads: no race.
func (w *webshop) checkout(c *shopper, cart string, customer int, coupon string) {
	w.m++
	r := c.as("checkout", 3000+w.m)
	r.do("begin")
	r.do(`SELECT p.id, p.stock FROM product p JOIN cart_item i ON i.product_id = p.id WHERE i.cart_id = $1 ORDER BY p.id FOR UPDATE OF p`, cart)
	r.do(`UPDATE product SET stock = stock - i.qty FROM cart_item i WHERE i.product_id = product.id AND i.cart_id = $1`, cart)
	order := r.one(`INSERT INTO "order" (customer_id, note) VALUES ($1, $2) RETURNING id`, customer, "it's a gift\nwith \\ and ü")
	r.do(`INSERT INTO order_item SELECT $1, row_number() OVER (ORDER BY i.product_id), i.product_id, i.qty, p.price FROM cart_item i JOIN product p ON p.id = i.product_id WHERE i.cart_id = $2`, order, cart)
	r.do(`UPDATE "order" SET total = order_total(id), state = $2 WHERE id = $1`, order, "paid")
	r.do(`SAVEPOINT coupon`)
	if coupon != "" {
		if _, err := c.conn.Exec(context.Background(), `INSERT INTO coupon_use VALUES ($1, $2)`, coupon, customer); err != nil {
			r.do(`ROLLBACK TO SAVEPOINT coupon`)
		} else {
			r.do(`UPDATE coupon SET uses_left = uses_left - 1 WHERE code = $1 AND uses_left > 0`, coupon)
		}
	}
	r.do(`RELEASE SAVEPOINT coupon`)
	r.do(`INSERT INTO payment (order_id, amount, card) SELECT id, total, $2 FROM "order" WHERE id = $1`, order, []byte{0, 1, '\'', '\\', 0xff})
	r.one(`SELECT shop.log($1)`, fmt.Sprintf("order %d", customer))
	r.do(`DELETE FROM cart WHERE id = $1`, cart)
	r.do("commit")
}

// orm is what ORMs send besides: settings, catalogs, optimistic locking.
func (w *webshop) orm(c *shopper) {
	c.exec(`SET client_min_messages TO 'warning'`)
	c.exec(`SET standard_conforming_strings = on`)
	c.exec(`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED`)
	c.exec(`SET extra_float_digits = 3`)
	c.exec(`SHOW TRANSACTION ISOLATION LEVEL`)
	c.exec(`SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE a.attrelid = '"product"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`)
	c.exec(`SELECT table_name FROM information_schema.tables WHERE table_schema = ANY (current_schemas(false)) ORDER BY 1`)
	version := c.number(`select p1_0.version from product p1_0 where p1_0.id=$1`, 9)
	c.exec(`BEGIN`)
	c.exec(`update product set name=$1,version=$2 where id=$3 and version=$4`, "Renamed", version+1, 9, version)
	c.exec(`COMMIT`)
	c.exec(`SELECT nextval('category_id_seq')`)
	c.exec(`SELECT 1 AS one FROM "customer" WHERE "customer"."email" = 'nobody@example.com' LIMIT 1`)
	c.exec(`INSERT INTO "customer" ("email", "name", "created_at") VALUES ('new@example.com', NULL, '2026-01-01 10:00:00.123456+00') RETURNING "id"`)
	c.refused("23505", `INSERT INTO "customer" ("email", "name") VALUES ($1, $2) RETURNING "id"`, "new@example.com", "twice")
}

// odds are the rarer things.
func (w *webshop) odds(c, d *shopper) {
	ctx := context.Background()
	c.exec(`BEGIN`)
	c.exec(`DECLARE cur CURSOR FOR SELECT id, name FROM product ORDER BY id`)
	c.exec(`FETCH 3 FROM cur`)
	c.exec(`MOVE 2 IN cur`)
	c.exec(`FETCH NEXT FROM cur`)
	c.exec(`CLOSE cur`)
	c.exec(`CREATE TEMP TABLE basket ON COMMIT DROP AS SELECT id, price FROM product WHERE id < 4`)
	c.exec(`UPDATE basket SET price = price * 2`)
	c.number(`SELECT count(*) FROM basket`)
	c.exec(`COMMIT`)
	c.exec(`SELECT pg_advisory_lock(42)`)
	c.exec(`SELECT pg_advisory_unlock(42)`)
	if _, err := c.conn.PgConn().Exec(ctx, `BEGIN; UPDATE customer SET points = points + 1 WHERE id = 8; SELECT points FROM customer WHERE id = 8; COMMIT`).ReadAll(); err != nil {
		w.t.Fatal(err)
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO job (kind, body) VALUES ($1, $2)`, "index", `{"a": [1, 2.50]}`)
	b.Queue(`SELECT id FROM job WHERE kind = $1 ORDER BY id`, "index")
	b.Queue(`UPDATE job SET kind = 'reindex' WHERE kind = $1`, "index")
	if err := c.conn.SendBatch(ctx, b).Close(); err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.conn.CopyFrom(ctx, pgx.Identifier{"import"}, []string{"sku", "n"}, pgx.CopyFromRows([][]any{{"SKU-1", 5}, {"SKU-2", 6}})); err != nil {
		w.t.Fatal(err)
	}
	c.exec(`TRUNCATE import`)
	c.exec(`DO $$ BEGIN UPDATE shop.customer SET points = points + 1 WHERE id = 7; END $$`)
	c.exec(`PREPARE points (bigint) AS SELECT points FROM customer WHERE id = $1`)
	c.exec(`EXECUTE points (7)`)
	c.exec(`DEALLOCATE points`)
	c.exec(`LISTEN orders`)
	c.exec(`NOTIFY orders, 'one'`)
	c.exec(`UNLISTEN *`)
	c.exec(`EXPLAIN SELECT * FROM product WHERE id = 1`)
	c.exec(`MERGE INTO coupon c USING (VALUES ('SPRING', 5)) v (code, n) ON c.code = v.code WHEN MATCHED THEN UPDATE SET uses_left = v.n WHEN NOT MATCHED THEN INSERT (code, uses_left) VALUES (v.code, v.n)`)
	c.refused("23514", `UPDATE product SET stock = -1 WHERE id = 10`)
	c.exec(`BEGIN`)
	c.exec(`UPDATE customer SET name = 'x' WHERE id = 6`)
	c.refused("22012", `SELECT 1/0`)
	c.refused("25P02", `SELECT 1`)
	c.exec(`ROLLBACK`)
	c.exec(`BEGIN`)
	c.exec(`SET LOCAL statement_timeout = '30ms'`)
	c.refused("57014", `SELECT pg_sleep(5)`)
	c.exec(`ROLLBACK`)
	// What another session has locked.
	c.exec(`BEGIN`)
	c.exec(`SELECT * FROM coupon WHERE code = 'SUMMER' FOR UPDATE`)
	d.refused("55P03", `SELECT * FROM coupon WHERE code = 'SUMMER' FOR UPDATE NOWAIT`)
	if n := d.number(`SELECT count(*) FROM (SELECT * FROM coupon WHERE code = 'SUMMER' FOR UPDATE SKIP LOCKED) x`); n != 0 {
		w.t.Fatalf("%d rows that are not locked", n)
	}
	c.exec(`COMMIT`)
	// A transaction that somebody retries.
	c.exec(`BEGIN ISOLATION LEVEL SERIALIZABLE`)
	d.exec(`BEGIN ISOLATION LEVEL SERIALIZABLE`)
	c.number(`SELECT points FROM customer WHERE id = 5`)
	d.number(`SELECT points FROM customer WHERE id = 5`)
	c.exec(`UPDATE customer SET points = points + 10 WHERE id = 5`)
	c.exec(`COMMIT`)
	d.refused("40001", `UPDATE customer SET points = points + 20 WHERE id = 5`)
	d.exec(`ROLLBACK`)
	d.exec(`BEGIN ISOLATION LEVEL SERIALIZABLE`)
	d.exec(`UPDATE customer SET points = points + 20 WHERE id = 5`)
	d.exec(`COMMIT`)
}

// queue takes jobs that others have not locked, waits for locks, and is not wrong.
func (w *webshop) queue(c, d *shopper) {
	c.exec(`BEGIN`)
	c.number(`DELETE FROM job WHERE id = (SELECT id FROM job WHERE kind = 'mail' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id`)
	d.exec(`BEGIN`)
	d.number(`DELETE FROM job WHERE id = (SELECT id FROM job WHERE kind = 'mail' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id`)
	d.exec(`COMMIT`)
	c.exec(`COMMIT`)
	// A counter, by the server's own arithmetic.
	c.exec(`BEGIN`)
	c.exec(`UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'SUMMER'`)
	join := w.waits(d, func() { d.exec(`UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'SUMMER'`) })
	c.exec(`COMMIT`)
	join()
	c.exec(`BEGIN`)
	c.exec(`SELECT pg_advisory_xact_lock(7)`)
	join = w.waits(d, func() { d.exec(`SELECT pg_advisory_lock(7)`) })
	c.exec(`COMMIT`)
	join()
	d.exec(`SELECT pg_advisory_unlock(7)`)
}

// work is everything that is right.
func (w *webshop) work(a, b *shopper) {
	w.orm(a)
	w.browse(a, 1)
	one := w.fill(a, 1, 1, 2, 3)
	two := w.fill(b, 2, 3, 3, 5)
	w.checkout(a, one, 1, "WELCOME10")
	w.browse(b, 2)
	w.checkout(b, two, 2, "WELCOME10")
	w.checkout(b, w.fill(b, 2, 7), 2, "WELCOME10") // a second time: refused
	w.odds(a, b)
	w.queue(a, b)
	w.browse(b, 3)
}

// The races.

func (w *webshop) lostStock(a, b *shopper) {
	x, y := a.as("buy", 1), b.as("buy", 2)
	x.do("BEGIN")
	n := x.one(`SELECT stock FROM product WHERE id = $1`, 11)
	y.do("BEGIN")
	m := y.one(`SELECT stock FROM product WHERE id = $1`, 11)
	x.do(`UPDATE product SET stock = $1 WHERE id = $2`, n-1, 11)
	join := w.waits(b, func() { y.do(`UPDATE product SET stock = $1 WHERE id = $2`, m-3, 11) })
	x.do("COMMIT")
	join()
	y.do("COMMIT")
}

func (w *webshop) offDuty(a, b *shopper) {
	x, y := a.as("leave", 3), b.as("leave", 4)
	for _, r := range []request{x, y} {
		r.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
		r.one(`SELECT count(*) FROM staff WHERE on_call`)
	}
	x.do(`UPDATE staff SET on_call = false WHERE name = $1`, "ada")
	y.do(`UPDATE staff SET on_call = false WHERE name = $1`, "bob")
	x.do("COMMIT")
	y.do("COMMIT")
}

func (w *webshop) doubleBooking(a, b *shopper) {
	x, y := a.as("book", 5), b.as("book", 6)
	for _, r := range []request{x, y} {
		r.do("BEGIN")
		r.one(`SELECT count(*) FROM slot WHERE room = $1 AND hour = $2`, 101, 9)
	}
	x.do(`INSERT INTO slot VALUES ($1, $2, $3)`, 101, 9, "ann")
	y.do(`INSERT INTO slot VALUES ($1, $2, $3)`, 101, 9, "ben")
	x.do("COMMIT")
	y.do("COMMIT")
}

func (w *webshop) deadlock(a, b *shopper) {
	x, y := a.as("move", 7), b.as("move", 8)
	x.do("BEGIN")
	y.do("BEGIN")
	x.do(`UPDATE customer SET points = points - 1 WHERE id = $1`, 3)
	y.do(`UPDATE customer SET points = points - 1 WHERE id = $1`, 4)
	var first error
	join := w.waits(a, func() {
		_, first = a.conn.Exec(context.Background(), `UPDATE customer SET points = points + 1 WHERE id = $1`+x.tags, 4)
	})
	_, second := b.conn.Exec(context.Background(), `UPDATE customer SET points = points + 1 WHERE id = $1`+y.tags, 3)
	join()
	if (first == nil) == (second == nil) {
		w.t.Fatalf("one of two is the deadlock's victim: %v, %v", first, second)
	}
	for _, r := range []request{x, y} {
		r.do("COMMIT") // the victim's is a ROLLBACK
	}
}

// useOnce reads in one transaction and writes in another one of the same request.
func (w *webshop) useOnce(a, b *shopper) {
	x, y := a.as("redeem", 9), b.as("redeem", 10)
	for _, r := range []request{x, y} {
		r.one(`SELECT uses_left FROM coupon WHERE code = $1`, "ONCE")
	}
	for i, r := range []request{x, y} {
		r.do("BEGIN")
		r.do(`UPDATE coupon SET uses_left = $2 WHERE code = $1`, "ONCE", 0)
		r.do(`INSERT INTO coupon_use VALUES ($1, $2)`, "ONCE", 5+i)
		r.do("COMMIT")
	}
}

// TestReplayShop records the shop at work, in each form of log, and replays it: nothing differs, and the races are found, and nothing else.
func TestReplayShop(t *testing.T) {
	t.Parallel()
	for _, form := range []struct {
		name     string
		settings map[string]string
		whole    bool // it has the parameters of statements that failed, as log_parameter_max_length_on_error = -1 tells them otherwise
	}{
		{"start and end", map[string]string{"log_destination": "csvlog"}, true},
		{"end", map[string]string{"log_statement": "none", "log_min_duration_statement": "0", "log_duration": "off", "log_destination": "jsonlog"}, false},
	} {
		t.Run(form.name, func(t *testing.T) {
			p := startLogging(t, form.settings)
			owner := p.connect(t, "shop")
			owner.exec("CREATE ROLE app LOGIN PASSWORD 'app'")
			owner.exec(webshopSchema)
			owner.exec("GRANT ALL ON SCHEMA shop, audit TO app; GRANT ALL ON ALL TABLES IN SCHEMA shop, audit TO app; GRANT ALL ON ALL SEQUENCES IN SCHEMA shop, audit TO app; GRANT TEMP ON DATABASE shop TO app")
			owner.close()
			dump := p.dump(t)
			begin := time.Now()
			w := &webshop{t: t, p: p}
			a, b := w.visitor("A"), w.visitor("B")
			w.work(a, b)
			w.lostStock(a, b)
			w.offDuty(a, b)
			w.doubleBooking(a, b)
			w.deadlock(a, b)
			w.useOnce(a, b)
			a.close()
			b.close()
			path := p.trace(t, begin)
			if form.whole {
				r := replayed(t, exitFound, path, "--snapshot", dump, "--engine", "postgres", "--unit", "request")
				r.shop(t, true, false, []string{"not serializable: /redeem"})
			} else {
				r := replayed(t, exitFound, path, "--snapshot", dump, "--engine", "postgres", "--unit", "transaction")
				r.shop(t, false, seemToWait(t, filepath.Join(p.dir, "server"+p.ending)), nil)
			}
		})
	}
}

// waiters are parts of the statements of which one waits for a lock, and ends.
var waiters = []string{"WHERE code = 'SUMMER'", "pg_advisory_lock(7)", "UPDATE product SET stock = $1", "points = points + 1 WHERE id = $1"}

var duration = regexp.MustCompile(`duration: ([0-9.]+) ms`)

// seemToWait reports whether a log in JSON that tells ends only has statements of the shop that took as long as if they had waited, besides those that did. On a busy
// machine it may: then the order of a replay need not be one that can be kept.
func seemToWait(t *testing.T, log string) bool {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	waited := map[string]int{}
	for line := range strings.Lines(string(text)) {
		took := duration.FindStringSubmatch(line)
		if took == nil || !strings.Contains(line, `"user":"app"`) {
			continue
		}
		if ms, err := strconv.ParseFloat(took[1], 64); err != nil || ms < 10 {
			continue
		}
		who := ""
		for _, part := range waiters {
			if strings.Contains(line, part) {
				who = part
			}
		}
		if waited[who]++; who == "" || waited[who] > 1 {
			return true
		}
	}
	return false
}

// shop demands what the shop's trace should bring: its races, and nothing else. want are those that no oracle sees live.
func (r *replayed1) shop(t *testing.T, whole, unsure bool, want []string) {
	t.Helper()
	r.sameAsCaptured(t)
	kept := len(waiters) // from the ends alone, a wait may seem none: then what it waited for comes later in the replay
	if whole {
		kept = 0
	}
	if r.Replay.Deviated > kept && !unsure {
		t.Errorf("the order was not kept: %v", r.Replay.Deviations)
	}
	skipped := map[string]int{"the data of COPY is not in the trace": 1}
	if !whole {
		skipped["the trace does not have its parameters"] = 1
		skipped["the trace does not have its parameters; it had failed, and a statement that fails stands in for it"] = 2 // a savepoint's, and the deadlock's victim
	}
	if !maps.Equal(r.Replay.Skipped, skipped) {
		t.Errorf("not replayed: %v, want %v", r.Replay.Skipped, skipped)
	}
	if d := r.Replay.Deadlocks; len(d) != 1 || !d[0].Captured || d[0].Replayed != whole {
		t.Errorf("deadlocks %+v, want one", d)
	}
	var live []string
	for _, f := range r.Findings {
		live = append(live, string(f.Class)+" "+f.Name)
		for _, x := range f.Transactions {
			if x.User != "app" || !slices.ContainsFunc(x.Tags, func(tag string) bool { return strings.HasPrefix(tag, "route=/") }) {
				t.Errorf("%s: a transaction of user %q with tags %v, want app and its route", f.Name, x.User, x.Tags)
			}
		}
	}
	if !slices.Equal(live, []string{"G-single lost update", "G2-item write skew", "G2 write skew"}) {
		t.Errorf("found %q, want a lost update, a write skew, and the double booking over a condition", live)
	}
	var found []string
	for _, x := range r.Explored.Anomalies {
		route := ""
		for _, tag := range x.Tags {
			if tag.Key == "route" {
				route = tag.Value
			}
		}
		found = append(found, strings.Join(x.Found, ", ")+": "+route)
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if len(r.Explored.Unjudged)+r.Explored.NotShown > 0 {
		t.Errorf("not judged: %v, not shown: %v", r.Explored.Unjudged, r.Explored.Unconfirmed)
	}
}
