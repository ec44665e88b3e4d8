package source_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/source"
)

// myClient is a client that notes what it does. In a log a prepared statement stands with its values.
type myClient struct {
	t      *testing.T
	conn   *sql.Conn
	close  func()
	said   []said
	logged []string
}

func connectMy(t *testing.T, server *engine.Server, port int, name string) *myClient {
	t.Helper()
	o := driver.NewConfig()
	o.User, o.Passwd, o.Net, o.Addr = server.User, server.Password, "tcp", fmt.Sprintf("127.0.0.1:%d", port)
	o.ConnectionAttributes = "program_name:" + name
	connector, err := driver.NewConnector(o)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &myClient{t: t, conn: conn, close: func() { conn.Close(); db.Close() }}
	t.Cleanup(c.close)
	return c
}

func myCode(err error) string {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return strconv.Itoa(int(e.Number))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// exec sends a statement that returns no rows; logged is what a log shows of it, empty: the same text.
func (c *myClient) exec(query, logged string, args ...any) {
	c.t.Helper()
	s := said{SQL: query, Params: paramsText(args)}
	r, err := c.conn.ExecContext(c.t.Context(), query, args...)
	if s.Error = myCode(err); err == nil {
		n, err := r.RowsAffected()
		if err != nil {
			c.t.Fatal(err)
		}
		s.Tag = strconv.FormatInt(n, 10)
	}
	c.note(s, logged)
}

func (c *myClient) query(query, logged string, args ...any) {
	c.t.Helper()
	s := said{SQL: query, Params: paramsText(args)}
	rows, err := c.conn.QueryContext(c.t.Context(), query, args...)
	if s.Error = myCode(err); err == nil {
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			c.t.Fatal(err)
		}
		for rows.Next() {
			values := make([]sql.NullString, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				c.t.Fatal(err)
			}
			var texts []string
			for _, v := range values {
				if !v.Valid {
					v.String = "NULL"
				}
				texts = append(texts, v.String)
			}
			s.Rows += "(" + strings.Join(texts, ",") + ")"
		}
		if err := rows.Err(); err != nil {
			c.t.Fatal(err)
		}
	}
	c.note(s, logged)
}

func (c *myClient) note(s said, logged string) {
	c.said = append(c.said, s)
	if logged == "" {
		logged = s.SQL
	}
	c.logged = append(c.logged, logged)
}

func paramsText(args []any) string {
	var out []string
	for _, a := range args {
		switch v := a.(type) {
		case nil:
			out = append(out, "NULL")
		case []byte:
			out = append(out, string(v))
		default:
			out = append(out, fmt.Sprint(v))
		}
	}
	return strings.Join(out, ",")
}

// seenMy is what a trace of packets says, in the client's form.
func seenMy(sts []*trace.Statement) []said {
	out := seen(sts, true)
	for i, st := range sts {
		if n := len(st.Results); n > 0 && st.Results[n-1].Affected != trace.Unknown {
			out[i].Tag = strconv.FormatInt(st.Results[n-1].Affected, 10)
		}
	}
	return out
}

// TestMariaDB plays two sessions on a real server of the MySQL family that writes all its logs, behind something that captures the packets.
func TestMariaDB(t *testing.T) {
	start, product := mariadb.Start, "mariadb"
	if os.Getenv("WIRECHECK_TEST_FAMILY") == "mysql" {
		start, product = mysql.Start, "mysql"
	}
	server, err := start(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	logs := server.Folder()
	admin := connectMy(t, server, server.Port, "admin")
	set := []string{
		"SET GLOBAL log_output = 'FILE'", "SET GLOBAL long_query_time = 0", "SET GLOBAL slow_query_log_file = '" + logs + "/data/slow.log'",
		"SET GLOBAL general_log_file = '" + logs + "/data/general.log'", "SET GLOBAL slow_query_log = ON", "SET GLOBAL general_log = ON",
	}
	if product == "mariadb" {
		set = append(set, "SET GLOBAL log_slow_verbosity = 'full'", "INSTALL SONAME 'server_audit'", "SET GLOBAL server_audit_events = 'CONNECT,QUERY,TABLE'",
			"SET GLOBAL server_audit_file_path = '"+logs+"/data/audit.log'", "SET GLOBAL server_audit_logging = ON")
	} else {
		set = append(set, "SET GLOBAL log_slow_extra = ON")
	}
	for _, s := range set {
		if _, err := admin.conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	passed := newTap(t, server.Address())
	a, b := connectMy(t, server, passed.port(), "shop-A"), connectMy(t, server, passed.port(), "shop-B")
	a.exec("CREATE DATABASE shop", "")
	a.exec("USE shop", "")
	b.exec("USE shop", "")
	a.exec("CREATE TABLE item (id int unsigned PRIMARY KEY, name varchar(50), n decimal(8,2), d datetime(3), raw varbinary(20), big bigint, x double, t time)", "")
	a.exec("INSERT INTO item VALUES (1, 'it\\'s; \"x\"', 1.50, '2026-11-20 01:02:03.25', 0x00ff, -5, 1.25, '-01:02:03'), (2, NULL, -3, NULL, NULL, NULL, NULL, NULL)", "")
	a.query("SELECT * FROM item ORDER BY id", "")
	a.query("SELECT id, name, n, d, big, x, t FROM item WHERE id = ? /*action='a%2Cb'*/", "SELECT id, name, n, d, big, x, t FROM item WHERE id = 1 /*action='a%2Cb'*/", 1)
	a.exec("START TRANSACTION", "")
	a.exec("UPDATE item SET name = ?, n = ?, big = ? WHERE id = ?", "UPDATE item SET name = 'o\\'hara\\nnew\\\\line', n = NULL, big = -7 WHERE id = 2", "o'hara\nnew\\line", nil, int64(-7), 2)
	a.exec("SAVEPOINT s", "")
	a.exec("INSERT INTO item (id) VALUES (?)", "INSERT INTO item (id) VALUES (1)", 1) // violates the key
	a.exec("ROLLBACK TO SAVEPOINT s", "")

	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		b.exec("UPDATE item SET name = ? WHERE id = ?", "UPDATE item SET name = 'b' WHERE id = 2", "b", 2)
	}()
	awaitWait(t, admin.conn)
	a.exec("COMMIT", "")
	<-blocked
	b.query("SELECT name FROM item WHERE id > 5", "")
	b.query("SELEKT 1", "")
	b.query("SELECT 1", "")
	b.exec("SET autocommit = 0", "")
	b.query("SELECT count(*) FROM item\n  WHERE id < 3", "")
	b.exec("COMMIT", "")
	for _, c := range []*myClient{a, b} {
		c.close()
	}
	awaitGone(t, admin.conn)
	pieces := passed.close()

	t.Run("recorder", func(t *testing.T) {
		records := recordPieces(t, pieces, wire.MySQL)
		for name, c := range map[string]*myClient{"shop-A": a, "shop-B": b} {
			if d := cmp.Diff(c.said, seenMy(statements(records, name))); d != "" {
				t.Errorf("%s: -client +trace:\n%s\n%s", name, d, shown(records))
			}
		}
		checkMyStatus(t, records)
	})
	t.Run("pcap", func(t *testing.T) {
		all := packetsOf(t, pieces, server.Port)
		for _, data := range [][]byte{pcapFile(t, all, false), pcapFile(t, all, true), pcapFile(t, disorder(all), false)} {
			records, report := importBytes(t, data, source.Options{})
			if report.Unknown != 0 {
				t.Error(reportText(t, report))
			}
			for name, c := range map[string]*myClient{"shop-A": a, "shop-B": b} {
				got := seenMy(statements(records, name))
				if d := cmp.Diff(c.said, got); d != "" {
					t.Errorf("%s: -client +trace:\n%s\n%s", name, d, shown(records))
				}
			}
			checkMyStatus(t, records)
		}
		joinedLateMy(t, all, a.said, b.said)
	})
	backends := func(records []*trace.Record, name string) []*trace.Statement { // logs know no program names; A created the database
		byBackend := map[uint64][]*trace.Statement{}
		for _, r := range records {
			if r.Kind == trace.KindStatement {
				byBackend[r.Session] = append(byBackend[r.Session], r.Statement)
			}
		}
		for _, sts := range byBackend {
			isA := sts[0].SQL == "CREATE DATABASE shop"
			if isA && name == "shop-A" || sts[0].SQL == "USE shop" && name == "shop-B" {
				return sts
			}
		}
		return nil
	}
	compare := func(t *testing.T, records []*trace.Record, report *source.Report, leave func(string) bool) {
		t.Helper()
		if report.Unknown != 0 {
			t.Error(reportText(t, report))
		}
		for name, c := range map[string]*myClient{"shop-A": a, "shop-B": b} {
			var want, got []string
			for _, s := range c.logged {
				if !leave(s) {
					want = append(want, s)
				}
			}
			for _, st := range backends(records, name) {
				if !leave(st.SQL) {
					got = append(got, st.SQL)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: -client +trace:\n%s\n%s", name, d, shown(records))
			}
		}
	}
	refused := func(s string) bool { return s == "SELEKT 1" } // what is no SQL is in the general log of MariaDB alone
	t.Run("general", func(t *testing.T) {
		records, report := importFiles(t, []string{filepath.Join(logs, "data", "general.log")}, source.Options{})
		compare(t, records, report, func(s string) bool { return product == "mysql" && refused(s) })
	})
	t.Run("slow", func(t *testing.T) {
		records, report := importFiles(t, []string{filepath.Join(logs, "data", "slow.log")}, source.Options{})
		compare(t, records, report, refused)
		for _, st := range backends(records, "shop-B") {
			if strings.HasPrefix(st.SQL, "UPDATE") && st.Took == 0 {
				t.Error("the statement that waited took no time")
			}
		}
		if product == "mysql" {
			for _, st := range backends(records, "shop-A") {
				if strings.Contains(st.SQL, "VALUES (1)") && (st.Error == nil || st.Error.Code != "1062") {
					t.Errorf("the error is not told: %+v", st.Error)
				}
			}
		}
	})
	if product != "mariadb" {
		return
	}
	t.Run("audit", func(t *testing.T) {
		records, report := importFiles(t, []string{filepath.Join(logs, "data", "audit.log")}, source.Options{})
		compare(t, records, report, func(string) bool { return false })
		checkAudit(t, backends(records, "shop-A"), backends(records, "shop-B"))
	})
}

// awaitWait waits until a transaction waits for a row.
func awaitWait(t *testing.T, conn *sql.Conn) {
	t.Helper()
	for t.Context().Err() == nil {
		var kind, name, status string
		if err := conn.QueryRowContext(t.Context(), "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(status, "LOCK WAIT") {
			return
		}
	}
}

// awaitGone waits until only the administrator is connected.
func awaitGone(t *testing.T, conn *sql.Conn) {
	t.Helper()
	for t.Context().Err() == nil {
		var n int
		if err := conn.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.processlist WHERE command <> 'Daemon' AND user <> 'event_scheduler'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			return
		}
	}
}

func checkMyStatus(t *testing.T, records []*trace.Record) {
	t.Helper()
	var got strings.Builder
	for _, st := range statements(records, "shop-A") {
		got.WriteByte(byte(st.Before))
		got.WriteByte(byte(st.After))
		got.WriteByte(' ')
	}
	if want := "II II II II II II IT TT TT TT TT TI "; got.String() != want {
		t.Errorf("status before and after each statement:\n got %s\nwant %s", got.String(), want)
	}
}

// joinedLateMy leaves out the beginning. Prepared statements that nobody saw prepared have no text.
func joinedLateMy(t *testing.T, all []packet, wants ...[]said) {
	t.Helper()
	tried := 0
	for from := 20; from < len(all); from += 5 {
		records, report := importBytes(t, pcapFile(t, all[from:], false), source.Options{})
		if report.Unknown != 0 {
			t.Errorf("from packet %d: unknown:\n%s", from, reportText(t, report))
		}
		by := map[uint64][]*trace.Statement{}
		for _, r := range records {
			if r.Kind == trace.KindStatement {
				by[r.Session] = append(by[r.Session], r.Statement)
			}
		}
		for _, sts := range by {
			tried++
			got := seenMy(sts)
			if sts[0].Lost { // executed, but prepared before
				got = got[1:]
			}
			found := false
			for _, w := range wants {
				found = found || len(got) <= len(w) && cmp.Equal(w[len(w)-len(got):], got)
			}
			if !found {
				t.Errorf("from packet %d: not the end of what any client said: %+v", from, got)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d sessions were joined", tried)
	}
}

// checkAudit demands what server_audit tells beyond the text: tables, errors, and an order that does not claim that B's blocked statement was over
// before A's COMMIT began, nor the other way round.
func checkAudit(t *testing.T, a, b []*trace.Statement) {
	t.Helper()
	find := func(sts []*trace.Statement, text string) *trace.Statement {
		for _, st := range sts {
			if strings.Contains(st.SQL, text) {
				return st
			}
		}
		t.Fatalf("no %s", text)
		return nil
	}
	if st := find(a, "VALUES (1)"); st.Error == nil || st.Error.Code != "1062" {
		t.Errorf("the error is not told: %+v", st.Error)
	}
	waited, commit, before := find(b, "name = 'b'"), find(a, "COMMIT"), find(a, "CREATE TABLE")
	if len(waited.Tables) != 1 || waited.Tables[0] != (trace.Table{Name: "shop.item", Write: true}) {
		t.Errorf("tables: %+v", waited.Tables)
	}
	if waited.To < commit.From || commit.To < waited.From {
		t.Errorf("an order is told that is not: UPDATE %d to %d, COMMIT %d to %d", waited.From, waited.To, commit.From, commit.To)
	}
	if waited.ID > commit.ID { // which of the two is logged first is the server's choice: the lock is gone before COMMIT is over
		t.Errorf("the orders of starts and ends are wrong: UPDATE %d to %d, COMMIT %d to %d", waited.ID, waited.To, commit.ID, commit.To)
	}
	if before.To >= commit.From {
		t.Errorf("CREATE TABLE ended at %d, before COMMIT began (%d), which is not told", before.To, commit.From)
	}
}
