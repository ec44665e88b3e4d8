package mysqlwire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

const ours = "lost update on shop.coupon (WC-1)"

// rowsOf gives the text rows of a reply with one result set of n columns, in the form that ends with EOF packets.
func rowsOf(t *testing.T, r *reply) []string {
	t.Helper()
	n := int(r.packets[0][0])
	var rows []string
	for _, p := range r.packets[n+2 : len(r.packets)-1] {
		var cells []string
		for len(p) > 0 {
			v, _, size, err := mysql.LengthEncodedString(p)
			if err != nil {
				t.Fatal(err)
			}
			cells = append(cells, string(v))
			p = p[size:]
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows
}

func expectRows(t *testing.T, c *rawClient, sql string, want ...string) {
	t.Helper()
	if got := rowsOf(t, c.query(sql)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", sql, got, want)
	}
}

func TestWarnings(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{warn: "UPDATE t"}
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
	c.query("SET sql_mode=''")
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.query("INSERT INTO t VALUES (1,1),(2,2)")

	server := "Warning|1366|Incorrect integer value: 'x' for column `" + d.Name + "`.`t`.`v` at row 1"
	if testserver.IsMySQL() {
		server = "Warning|1366|Incorrect integer value: 'x' for column 'v' at row 1"
	}
	mine, hint := "Warning|51002|"+ours, "Note|51002|lock the read"
	ok := c.query("UPDATE t SET v = 'x' WHERE id = 1").last()
	if got := c.okWarnings(ok); got != 3 {
		t.Errorf("UPDATE: got %d warnings, want 3 (the server's, ours and our note)", got)
	}
	expectRows(t, c, "SHOW WARNINGS", server, mine, hint)
	expectRows(t, c, "show warnings limit 1", server)
	expectRows(t, c, "SHOW WARNINGS LIMIT 1, 5", mine, hint)
	expectRows(t, c, "SHOW WARNINGS LIMIT 5 OFFSET 2", hint)
	expectRows(t, c, "SHOW WARNINGS LIMIT 5 OFFSET 3")
	expectRows(t, c, "SHOW COUNT(*) WARNINGS", "3")
	expectRows(t, c, "SELECT @@warning_count", "3")
	expectRows(t, c, "SHOW ERRORS")

	if testserver.IsMySQL() { // it cannot prepare SHOW WARNINGS, and each statement has a list of its own
		c.query("SELECT 1")
		expectRows(t, c, "SHOW WARNINGS")
		return
	}
	r := c.do(mysql.COM_STMT_PREPARE, []byte("SHOW WARNINGS"))
	id := binary.LittleEndian.Uint32(r.packets[0][1:])
	r = c.do(mysql.COM_STMT_EXECUTE, executeArg(id, 0, nil))
	if rows := r.packets[5 : len(r.packets)-1]; len(rows) != 3 || !strings.HasSuffix(string(rows[1]), ours) ||
		!strings.HasPrefix(string(rows[1]), "\x00\x00\x07Warning\x3a\xc7\x00\x00") {
		t.Errorf("prepared SHOW WARNINGS: got %q", rows)
	}
	c.query("SELECT 1")
	expectRows(t, c, "SHOW WARNINGS", server, mine, hint) // SELECT 1 does not clear the server's list either
	c.query("SELECT * FROM t")
	expectRows(t, c, "SHOW WARNINGS")
	expectRows(t, c, "SHOW COUNT(*) WARNINGS", "0")

	c.query("BEGIN")
	if got := c.okWarnings(c.query("UPDATE t SET v = 5 WHERE id = 2").last()); got != 0 {
		t.Errorf("UPDATE in a transaction: got %d warnings, want 0: its log is not fetched yet", got)
	}
	if got := c.okWarnings(c.query("COMMIT").last()); got != 2 {
		t.Errorf("COMMIT: got %d warnings, want 2", got)
	}
	expectRows(t, c, "SHOW WARNINGS", mine, hint)
}

func TestWarningsOff(t *testing.T) {
	d := testserver.Family(t).Database(t)
	o := observer(&sink{warn: "UPDATE t"})
	o.Warn = false
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o), baseCaps)
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	if got := c.okWarnings(c.query("UPDATE t SET v = 1").last()); got != 0 {
		t.Errorf("got %d warnings, want 0", got)
	}
	expectRows(t, c, "SHOW WARNINGS")
}

func TestWarningsOnTheCommandLine(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{warn: "UPDATE t"}))
	out, err := mariadb(through, "--show-warnings", "-v", "-e", "CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1,1); UPDATE t SET v = 2; SELECT * FROM t")
	if want := "Warning (Code 51002): " + ours; err != nil || strings.Count(out, want) != 1 {
		t.Errorf("got %q, %v; want %q once", out, err, want)
	}
}
