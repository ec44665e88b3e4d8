package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
)

// A rental shop on MariaDB: binary protocol and interpolated parameters, autocommit off, names with databases, LAST_INSERT_ID(), what
// drivers and ORMs ask information_schema; a view, a trigger and a routine with a definer.

const rentalSchema = `
CREATE TABLE customer (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(80) NOT NULL UNIQUE, name VARCHAR(80), points INT NOT NULL DEFAULT 0, joined TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3));
CREATE TABLE product (id INT AUTO_INCREMENT PRIMARY KEY, sku VARCHAR(20) UNIQUE, title VARCHAR(100), price DECIMAL(10,2) NOT NULL, stock INT NOT NULL, attrs JSON, kind ENUM('book','tea') DEFAULT 'book', lock_version INT NOT NULL DEFAULT 0, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE coupon (code VARCHAR(20) PRIMARY KEY, uses_left INT NOT NULL, note VARCHAR(200));
CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL, total DECIMAL(12,2), state VARCHAR(10) DEFAULT 'new', placed DATETIME(6) DEFAULT NOW(6), FOREIGN KEY (customer_id) REFERENCES customer (id));
CREATE TABLE order_item (order_id BIGINT, line INT, product_id INT, qty INT, price DECIMAL(10,2), PRIMARY KEY (order_id, line), FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE);
CREATE TABLE cart_item (cart VARCHAR(40), product_id INT, qty INT, PRIMARY KEY (cart, product_id));
CREATE TABLE staff (name VARCHAR(20) PRIMARY KEY, on_call BOOLEAN);
CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(200));
CREATE VIEW bestseller AS SELECT product_id, SUM(qty) AS sold FROM order_item GROUP BY product_id;
CREATE TRIGGER order_paid AFTER UPDATE ON orders FOR EACH ROW INSERT INTO audit (what) VALUES (CONCAT('order ', NEW.state));
CREATE FUNCTION vat(n DECIMAL(12,2)) RETURNS DECIMAL(12,2) DETERMINISTIC RETURN ROUND(n * 0.19, 2);
INSERT INTO customer (email, name) VALUES ('a@example.com', 'Ann "A" O\'Hara'), ('b@example.com', 'Ben'), ('c@example.com', NULL);
INSERT INTO product (sku, title, price, stock, attrs, kind) VALUES ('S1', 'Moby\\Dick', 9.99, 50, '{"pages": 600}', 'book'), ('S2', 'Earl Grey', 4.50, 80, NULL, 'tea'), ('S3', 'Emma', 7.00, 20, '{}', 'book');
INSERT INTO coupon VALUES ('WELCOME', 10, ''), ('ONCE', 1, ''), ('LOG', 5, 'start');
INSERT INTO staff VALUES ('ada', 1), ('bob', 1);
`

// rental is the application at work.
type rental struct {
	t     *testing.T
	s     *engine.Server
	admin *clerk
	last  *clerk // who has executed something and may not be in the logs yet; nil: nobody
}

// clerk is a connection.
type clerk struct {
	t    *testing.T
	w    *rental
	conn *sql.Conn
	id   int
}

// turn waits until what the other one has executed is in the logs, before c does something: MariaDB writes to the slow and the audit log after it
// has answered, so that two sessions may stand there in the wrong order.
func (c *clerk) turn() {
	if c == c.w.admin {
		return
	}
	if before := c.w.last; before != nil && before != c {
		c.w.settle(before)
	}
	c.w.last = c
}

// settle waits until what c has executed is in the logs: then its session sleeps.
func (w *rental) settle(c *clerk) {
	w.t.Helper()
	for end := time.Now().Add(patience); w.admin.number("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = ? AND COMMAND = 'Sleep'", c.id) == 0; {
		if time.Now().After(end) {
			w.t.Fatalf("session %d does not come to its end", c.id)
		}
	}
}

func (w *rental) connect(database string, interpolate bool) *clerk {
	w.t.Helper()
	o := driver.NewConfig()
	o.User, o.Passwd, o.Net, o.Addr, o.DBName = w.s.User, w.s.Password, "tcp", w.s.Address(), database
	o.InterpolateParams, o.Collation = interpolate, "utf8mb4_general_ci"
	connector, err := driver.NewConnector(o)
	if err != nil {
		w.t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	c := &clerk{t: w.t, w: w, conn: conn}
	if err := conn.QueryRowContext(w.t.Context(), "SELECT CONNECTION_ID()").Scan(&c.id); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close(); db.Close() })
	return c
}

func (c *clerk) exec(query string, args ...any) {
	c.t.Helper()
	c.turn()
	if _, err := c.conn.ExecContext(context.Background(), query, args...); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
}

func (c *clerk) refused(code uint16, query string, args ...any) {
	c.t.Helper()
	c.turn()
	_, err := c.conn.ExecContext(context.Background(), query, args...)
	var e *driver.MySQLError
	if !errors.As(err, &e) || e.Number != code {
		c.t.Fatalf("%s: got %v, want error %d", query, err, code)
	}
}

func (c *clerk) query(query string, args ...any) (first string) {
	c.t.Helper()
	c.turn()
	rows, err := c.conn.QueryContext(context.Background(), query, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for n := 0; rows.Next(); n++ {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			c.t.Fatal(err)
		}
		if n == 0 {
			first = values[0].String
		}
	}
	if err := rows.Err(); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return first
}

func (c *clerk) number(query string, args ...any) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.query(query, args...))
	if err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// waits executes something in the background, and returns when its session waits for a lock.
func (w *rental) waits(c *clerk, do func()) (join func()) {
	w.t.Helper()
	c.turn()
	var wait sync.WaitGroup
	wait.Go(do)
	for end := time.Now().Add(patience); w.admin.number("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = ? AND trx_state = 'LOCK WAIT'", c.id) == 0; {
		if time.Now().After(end) {
			w.t.Fatalf("session %d does not wait for a lock", c.id)
		}
		time.Sleep(110 * time.Millisecond) // INNODB_TRX is a copy that is renewed after a tenth of a second
	}
	w.last = nil
	return func() {
		wait.Wait()
		w.settle(c)
	}
}

// work is everything that is right.
func (w *rental) work(a, b *clerk) {
	for _, c := range []*clerk{a, b} {
		c.exec("SET NAMES utf8mb4")
		c.exec("SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'")
		c.query("SELECT @@session.tx_isolation, @@max_allowed_packet")
	}
	a.query("SELECT TABLE_NAME, COLUMN_NAME, COLUMN_KEY FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, ORDINAL_POSITION")
	a.query("SHOW FULL TABLES")
	a.query("SHOW FULL COLUMNS FROM `product`")
	a.query("SELECT `product`.`id`, `product`.`title`, `product`.`price` FROM `product` WHERE `product`.`sku` = ? LIMIT 1", "S2")
	b.query("select p1_0.id,p1_0.title from shop.product p1_0 where p1_0.price between ? and ? order by p1_0.id", "4", 9.5)
	a.query("SELECT JSON_EXTRACT(attrs, '$.pages'), vat(price), kind FROM product WHERE id IN (?, ?, ?) ORDER BY id", 1, 2, 3)
	a.exec("INSERT INTO cart_item VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE qty = qty + VALUES(qty)", "cart-1", 1, 2)
	a.exec("INSERT INTO cart_item VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE qty = qty + VALUES(qty)", "cart-1", 1, 1)
	a.exec("REPLACE INTO shop.cart_item VALUES (?, ?, ?)", "cart-1", 2, 4)
	for i, c := range []*clerk{a, b} {
		c.exec("START TRANSACTION")
		c.query("SELECT p.id, p.stock FROM product p JOIN cart_item i ON i.product_id = p.id WHERE i.cart = ? ORDER BY p.id FOR UPDATE", "cart-1")
		c.exec("UPDATE shop.product p JOIN cart_item i ON i.product_id = p.id SET p.stock = p.stock - i.qty WHERE i.cart = ?", "cart-1")
		c.exec("INSERT INTO orders (customer_id, total) VALUES (?, ?)", i+1, nil)
		id := c.number("SELECT LAST_INSERT_ID()")
		c.exec("INSERT INTO order_item SELECT LAST_INSERT_ID(), product_id, product_id, qty, 1.5 FROM cart_item WHERE cart = ?", "cart-1")
		c.exec("SAVEPOINT paid")
		c.exec("UPDATE orders SET total = (SELECT SUM(qty * price) FROM order_item WHERE order_id = ?), state = 'paid', placed = NOW(6) WHERE id = ?", id, id)
		c.refused(1062, "INSERT INTO customer (email) VALUES (?)", "a@example.com")
		c.exec("ROLLBACK TO SAVEPOINT paid")
		c.exec("UPDATE orders SET total = 1, state = ? WHERE id = ?", "it's \\ ü\n", id)
		c.exec("COMMIT")
	}
	b.query("SELECT p.title, s.sold FROM bestseller s JOIN product p ON p.id = s.product_id ORDER BY 2 DESC, 1")
	// Autocommit off, as some drivers have it.
	b.exec("SET autocommit = 0")
	b.query("SELECT COUNT(*) FROM customer")
	b.exec("UPDATE customer SET points = points + 5 WHERE id = ?", 2)
	b.exec("COMMIT")
	b.query("SELECT points FROM customer WHERE id = ?", 2)
	b.exec("ROLLBACK")
	b.exec("SET autocommit = 1")
	a.exec("CREATE TEMPORARY TABLE basket AS SELECT id, price FROM product")
	a.exec("UPDATE basket SET price = price * 2")
	a.query("SELECT COUNT(*) FROM basket")
	a.exec("DROP TEMPORARY TABLE basket")
	a.query("SELECT GET_LOCK('report', 1)")
	a.query("SELECT RELEASE_LOCK('report')")
	a.exec("SET @total = 0")
	a.exec("UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'WELCOME' AND uses_left > 0")
	a.exec("DELETE FROM cart_item WHERE cart = ?", "cart-1")
	// Optimistic locking.
	version := a.number("SELECT lock_version FROM product WHERE id = ?", 3)
	a.exec("UPDATE product SET title = ?, lock_version = ? WHERE id = ? AND lock_version = ?", "Emma (2)", version+1, 3, version)
	a.exec("INSERT INTO customer (email, name) VALUES (?, ?), (?, ?)", "d@example.com", []byte{0xc3, 0xbc}, "e@example.com", "")
	a.refused(1146, "SELECT * FROM missing")
	a.refused(1064, "SELEKT 1")
	// A counter, by the server's own arithmetic, and a lock that somebody waits for.
	a.exec("BEGIN")
	a.exec("UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'WELCOME'")
	join := w.waits(b, func() { b.exec("UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'WELCOME'") })
	a.exec("COMMIT")
	join()
}

func (w *rental) lostStock(a, b *clerk) {
	for _, c := range []*clerk{a, b} {
		c.exec("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
		c.exec("START TRANSACTION")
	}
	n := a.number("SELECT stock FROM product WHERE id = ?", 2)
	m := b.number("SELECT stock FROM product WHERE id = ?", 2)
	a.exec("UPDATE product SET stock = ? WHERE id = ?", n-1, 2)
	join := w.waits(b, func() { b.exec("UPDATE product SET stock = ? WHERE id = ?", m-3, 2) })
	a.exec("COMMIT")
	join()
	b.exec("COMMIT")
}

func (w *rental) offDuty(a, b *clerk) {
	for _, c := range []*clerk{a, b} {
		c.exec("START TRANSACTION")
		c.number("SELECT COUNT(*) FROM staff WHERE on_call")
	}
	a.exec("UPDATE staff SET on_call = 0 WHERE name = 'ada'")
	b.exec("UPDATE staff SET on_call = 0 WHERE name = 'bob'")
	a.exec("COMMIT")
	b.exec("COMMIT")
}

func (w *rental) deadlock(a, b *clerk) {
	a.exec("START TRANSACTION")
	b.exec("START TRANSACTION")
	a.exec("UPDATE customer SET points = points - 1 WHERE id = 1")
	b.exec("UPDATE customer SET points = points - 1 WHERE id = 2")
	var first error
	join := w.waits(a, func() {
		_, first = a.conn.ExecContext(context.Background(), "UPDATE customer SET points = points + 1 WHERE id = 2")
	})
	_, second := b.conn.ExecContext(context.Background(), "UPDATE customer SET points = points + 1 WHERE id = 1")
	join()
	w.settle(b)
	if (first == nil) == (second == nil) {
		w.t.Fatalf("one of two is the deadlock's victim: %v, %v", first, second)
	}
	a.exec("COMMIT")
	b.exec("COMMIT")
}

// startRental starts a server that writes the three logs.
func startRental(t *testing.T) (*rental, map[string]string) {
	t.Helper()
	for _, program := range []string{"mariadb-dump"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: what this test records cannot be restored", err)
		}
	}
	server, err := mariadb.Start(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	w := &rental{t: t, s: server}
	w.admin = w.connect("", true)
	w.admin.exec("CREATE DATABASE shop")
	owner := w.connect("shop", true)
	for sql := range strings.SplitSeq(rentalSchema, ";\n") {
		if strings.TrimSpace(sql) != "" {
			owner.exec(sql)
		}
	}
	logs := map[string]string{}
	for _, name := range []string{"general", "slow", "audit"} {
		logs[name] = filepath.Join(server.Folder(), "data", name+".log")
	}
	return w, logs
}

func (w *rental) log(logs map[string]string) {
	for _, sql := range []string{
		"SET GLOBAL log_output = 'FILE'", "SET GLOBAL long_query_time = 0", "SET GLOBAL slow_query_log_file = '" + logs["slow"] + "'",
		"SET GLOBAL general_log_file = '" + logs["general"] + "'", "SET GLOBAL log_slow_verbosity = 'full'", "INSTALL SONAME 'server_audit'",
		"SET GLOBAL server_audit_events = 'CONNECT,QUERY,TABLE'", "SET GLOBAL server_audit_file_path = '" + logs["audit"] + "'",
		"SET GLOBAL server_audit_logging = ON", "SET GLOBAL slow_query_log = ON", "SET GLOBAL general_log = ON",
	} {
		w.admin.exec(sql)
	}
}

func (w *rental) dump(path string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "mariadb-dump", "--routines", "--triggers", "-h", w.s.Host, "-P", strconv.Itoa(w.s.Port), "-u", w.s.User, "shop")
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+w.s.Password)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("mariadb-dump: %v: %s", err, said.Bytes())
	}
	// As if somebody else had made it.
	out = bytes.ReplaceAll(out, []byte("`"+w.s.User+"`@"), []byte("`shopowner`@"))
	if err := os.WriteFile(path, out, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// slowerThan counts the statements of a slow log that took longer.
func slowerThan(log string, limit time.Duration) (n int) {
	for _, m := range regexp.MustCompile(`Query_time: ([0-9.]+)`).FindAllStringSubmatch(log, -1) {
		if took, err := time.ParseDuration(m[1] + "s"); err == nil && took > limit {
			n++
		}
	}
	return n
}

// TestReplayRental records the rental shop in each of MariaDB's logs and replays it: nothing differs, as far as the log tells, and the
// races are found, and nothing else.
func TestReplayRental(t *testing.T) {
	t.Parallel()
	w, logs := startRental(t)
	dir := t.TempDir()
	dump := filepath.Join(dir, "dump.sql")
	w.dump(dump)
	w.log(logs)
	a, b := w.connect("shop", false), w.connect("shop", true)
	w.work(a, b)
	w.lostStock(a, b)
	w.offDuty(a, b)
	w.deadlock(a, b)
	w.settle(a)
	w.settle(b)
	a.conn.Close()
	b.conn.Close()
	for _, test := range []struct {
		name      string
		skipped   map[string]int
		deadlocks bool // it tells of errors
	}{
		{"general", map[string]int{}, false},
		{"slow", map[string]int{}, false},
		{"audit", map[string]int{"it administers the server": 3}, true},
	} {
		text, err := os.ReadFile(logs[test.name])
		if err != nil {
			t.Fatal(err)
		}
		path, wct := filepath.Join(dir, test.name+".log"), filepath.Join(dir, test.name+".wct")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, said, status := command(t, "trace", "import", path, "-o", wct); status != exitClean || !strings.Contains(out, "unknown lines: 0") {
			t.Fatalf("import: status %d\n%s%s", status, out, said)
		}
		r := replayed(t, exitFound, wct, "--snapshot", dump, "--engine", "mariadb")
		// MariaDB's slow log does not tell which statement failed, nor when one began: who is the deadlock's victim, and whether there is
		// one, is the server's choice.
		if d := r.Replay.Divergence; d.Same+d.Kinds["volatile"] != d.Compared && test.name != "slow" {
			t.Errorf("%s: divergence %+v", test.name, d)
		}
		// Nor does it tell who waited: a statement that took much longer than the one before it counts as having waited. On a busy machine
		// others than those three took as long, so that the order of the replay need not be one that can be kept.
		busy := test.name == "slow" && slowerThan(string(text), 10*time.Millisecond) > 3
		if !maps.Equal(r.Replay.Skipped, test.skipped) || r.Replay.Deviated > 0 && !busy {
			t.Errorf("%s: not replayed: %v, deviations %v", test.name, r.Replay.Skipped, r.Replay.Deviations)
		}
		if d := r.Replay.Deadlocks; test.name != "slow" && (len(d) != 1 || !d[0].Replayed || d[0].Captured != test.deadlocks) {
			t.Errorf("%s: deadlocks %+v, want one", test.name, d)
		}
		var found []string
		for _, f := range r.Findings {
			found = append(found, f.Name)
		}
		if !slices.Equal(found, []string{"lost update", "write skew"}) || len(r.Explored.Anomalies)+len(r.Explored.Unjudged)+r.Explored.NotShown > 0 {
			t.Errorf("%s: found %v and %+v, want a lost update and a write skew", test.name, found, r.Explored)
		}
	}
}
