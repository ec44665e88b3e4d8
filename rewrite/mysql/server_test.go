package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// The client's statements answer alike with CLIENT_FOUND_ROWS and under other modes.
func TestFormsFoundRows(t *testing.T) {
	p := newPair(t, clientFoundRows)
	for _, forms := range [][]form{updates, inserts, deletes} {
		runForms(t, p, forms)
	}
}

func TestFormsOtherModes(t *testing.T) {
	every := 3 // in make soak, each mode gets all forms
	if *shapeRounds > shapeSample {
		every = 1
	}
	for n, mode := range []string{"", "ANSI_QUOTES", "ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE", "NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE"} {
		t.Run(mode, func(t *testing.T) {
			p := newPair(t, 0)
			for _, s := range []*side{p.plain, p.wired} {
				s.exec(t, "SET sql_mode='"+mode+"'")
			}
			p.load(t)
			for _, forms := range [][]form{selects, updates, inserts, deletes, joinForms} {
				for i, f := range forms {
					if (i+n)%every > 0 {
						continue
					}
					p.check(t, f.sql)
				}
			}
			p.check(t, `SELECT "id" FROM account WHERE "owner" = 'ann'`)
			p.check(t, `SELECT a."id" FROM "account" a`)
			p.check(t, `UPDATE "account" SET "balance" = 5 WHERE "id" = 1`)
			p.check(t, `SELECT '\' FROM account -- '`)
		})
	}
}

// Whatever the client's character set and collation are, nothing changes for it.
func TestFormsCharacterSets(t *testing.T) {
	for _, names := range []string{"latin1", "latin5", "binary", "utf8mb4 COLLATE " + map[Flavor]string{MariaDB: "utf8mb4_unicode_520_nopad_ci", MySQL: "utf8mb4_0900_as_cs"}[flavor()]} {
		t.Run(names, func(t *testing.T) {
			p := newPair(t, 0)
			// the session's variables get their character set from the first SET
			p.wired.exec(t, SetToken("T1.1.first"))
			for _, s := range []*side{p.plain, p.wired} {
				s.exec(t, "SET NAMES "+names)
			}
			p.load(t)
			for _, forms := range [][]form{updates[:30], inserts[:20], deletes[:10], selects[:30]} {
				for _, f := range forms {
					p.check(t, f.sql)
				}
			}
			p.check(t, "UPDATE kinds SET v = 'x', c = 'y', t = 'z', e = 'a', j = '{}', i = 7, d = 9, dt = '2001-01-01' WHERE id = 1")
		})
	}
}

func TestParameters(t *testing.T) {
	p := newPair(t, 0)
	for _, f := range []struct {
		form
		args []string
	}{
		{form{"SELECT * FROM account WHERE id = ?", exact, 1}, []string{"2"}},
		{form{"SELECT ?, note FROM account WHERE id = ? LIMIT ?", exact, 1}, []string{"x", "2", "1"}},
		{form{"SELECT COUNT(*), SUM(balance), MAX(note) FROM account WHERE id > ?", exact, 3}, []string{"1"}},
		{form{"SELECT COUNT(*) FROM account a JOIN item i ON i.account_id = a.id WHERE a.note = ?", exact, 0}, []string{"no such"}},
		{form{"SELECT owner, COUNT(*) n FROM account WHERE balance >= ? GROUP BY owner HAVING n > ? ORDER BY n DESC, owner LIMIT ?", exact, 4}, []string{"100", "0", "1"}},
		{form{"SELECT note, COUNT(*) n, ? FROM account WHERE id < ? GROUP BY note", exact, 2}, []string{"x", "3"}},
		{form{"SELECT COUNT(*) FROM (SELECT id, note FROM account WHERE note IS NOT NULL) d WHERE d.id > ?", map[Flavor]history.Coverage{MySQL: opaque, MariaDB: exact}[flavor()], map[Flavor]int{MySQL: 0, MariaDB: 2}[flavor()]}, []string{"1"}},
		{form{"SELECT MAX(id) FROM account WHERE id < ?", opaque, 0}, []string{"3"}}, // the end of an index
		{form{"SELECT note, COUNT(*), ? FROM account GROUP BY note WITH ROLLUP", exact, 4}, []string{"x"}},
		{form{"UPDATE account SET balance = ?, owner = ? WHERE id = ?", exact, 1}, []string{"5", "eve", "1"}},
		{form{"UPDATE account SET balance = ? WHERE id = ?", exact, 1}, []string{"100", "1"}},
		{form{"UPDATE account SET balance = balance + ? WHERE id = ? LIMIT ?", exact, 1}, []string{"5", "1", "1"}},
		{form{"INSERT INTO account (id, owner, balance) VALUES (?, ?, ?), (?, ?, ?)", exact, 0}, []string{"10", "a", "1", "11", "b", "2"}},
		{form{"INSERT INTO account VALUES (?, ?, ?, NULL, NULL)", exact, 0}, []string{"10", "a", "1"}},
		{form{"INSERT INTO item (account_id, name, qty) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE qty = ?", exact, 1}, []string{"1", "pen", "1", "77"}},
		{form{"DELETE FROM account WHERE id = ? OR balance > ?", exact, 3}, []string{"1", "250"}},
		{form{"REPLACE INTO account VALUES (?, ?, ?, NULL, NULL)", approx, 0}, []string{"1", "a", "1"}},
	} {
		plan, accesses := p.check(t, f.sql, f.args...)
		if plan.Coverage != f.coverage || len(accesses) != f.n {
			t.Errorf("%s: coverage %q (%s), %d accesses; want %q, %d", f.sql, plan.Coverage, plan.Why, len(accesses), f.coverage, f.n)
		}
	}
}

// TestAddedStatementsAndDiagnostics measures the table in log.go.
func TestAddedStatementsAndDiagnostics(t *testing.T) {
	if flavor() == MySQL {
		t.Skip("each statement has a list of warnings of its own there, so nothing of ours can be seen in the next one's")
	}
	s := newSide(t, testserver.Family(t), 0)
	client := []string{"INSERT INTO item (account_id, name) VALUES (8, 'a'), (8, 'b')", "SELECT SQL_CALC_FOUND_ROWS CAST('x' AS SIGNED) FROM account LIMIT 1", "UPDATE account SET balance = 'y1' WHERE id < 3"}
	ask := func(t *testing.T, added string) []string {
		t.Helper()
		s.exec(t, "BEGIN")
		defer s.exec(t, "ROLLBACK")
		s.exec(t, "SET sql_mode=''")
		s.exec(t, client[0])
		s.exec(t, client[1])
		r := s.exec(t, client[2])
		if r.affected != 2 || r.warnings == 0 {
			t.Fatalf("the client's own statement: %+v", r)
		}
		if added != "" {
			s.exec(t, added)
		}
		row := s.texts(t, "SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count")[0]
		return append(row, fmt.Sprint(len(s.texts(t, "SHOW WARNINGS"))), s.texts(t, "SELECT LAST_INSERT_ID() > 0")[0][0])
	}
	want := ask(t, "")
	if diff := cmp.Diff([]string{"2", "4", "2", "2", "1"}, want); diff != "" {
		t.Fatalf("without us (-want +got):\n%s", diff)
	}
	set, fetched := append([]string{"0"}, want[1:]...), append([]string{"-1", "1"}, want[2:]...)
	if diff := cmp.Diff(set, ask(t, SetToken("T1.1.x"))); diff != "" {
		t.Errorf("after SET (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fetched, ask(t, FetchLog())); diff != "" {
		t.Errorf("after SELECT (-want +got):\n%s", diff)
	}
}

func TestLogIsBounded(t *testing.T) {
	p := newPair(t, 0)
	p.wired.exec(t, "INSERT INTO bare SELECT seq, 'x' FROM "+sequence(5000))
	for _, sql := range []string{"UPDATE bare SET a = a + 1", "UPDATE bare SET a = a", "DELETE FROM bare"} {
		script := p.rewriter.Script(sql, p.catalog, p.session)
		p.wired.exec(t, SetToken("T9.1.test"))
		p.wired.conn.send(t, script)
		value := p.wired.fetchLog(t)
		entries, truncated, err := DecodeLog([]byte(value))
		if err != nil || !truncated || len(value) > logLimit+1000 || len(entries["T9.1.test"]) < 500 {
			t.Errorf("%s: log of %d bytes, %d entries, truncated %v, error %v", sql, len(value), len(entries["T9.1.test"]), truncated, err)
		}
		if again := p.wired.fetchLog(t); again != "" {
			t.Errorf("%s: the log is not empty after it was fetched", sql)
		}
	}
}

// TestAddedRows: what the catalog is told of new hidden columns is what the server would say of them. A near miss: a table that has a column of such a name is
// asked for.
func TestAddedRows(t *testing.T) {
	p := newPair(t, 0)
	for _, definition := range []string{"id INT PRIMARY KEY, v VARCHAR(9)", "a INT, b INT AS (a + 1) VIRTUAL, KEY (b), CHECK (a > 0)", "a INT, wc_row_id INT"} {
		p.wired.exec(t, "DROP TABLE IF EXISTS told")
		p.wired.exec(t, "CREATE TABLE told ("+definition+")")
		names := []rewrite.Name{{Schema: p.session.Database, Name: "told"}}
		ask := func() [][]string { return p.wired.texts(t, NamesQuery(names, flavor())) }
		read := func(rows [][]string) *rewrite.Known {
			_, known, err := ReadCatalog(rows, names)
			if err != nil {
				t.Fatal(err)
			}
			return known[names[0]]
		}
		rows := ask()
		rel := read(rows).Relations[0]
		more := AddedRows(flavor(), rel)
		if certain := flavor() == MariaDB && !strings.Contains(definition, "wc_"); certain != (more != nil) {
			t.Errorf("%s: told %q", definition, more)
		}
		if more == nil {
			continue
		}
		for _, sql := range AddColumns(flavor(), rel) {
			p.wired.exec(t, sql)
		}
		if diff := cmp.Diff(read(ask()), read(append(rows, more...))); diff != "" {
			t.Errorf("%s: asked (-), told (+):\n%s", definition, diff)
		}
	}
}

// A table comes out of instrumentation as it went in, byte for byte.
func TestAddAndRemoveColumns(t *testing.T) {
	p := newPair(t, 0) // the columns are there
	p.wired.exec(t, "SET SESSION sql_mode=''")
	for _, rel := range slices.Clone(p.tables) {
		show := "SHOW CREATE TABLE " + mysqlsyntax.Quote(rel.Name)
		want := p.plain.texts(t, show)[0]
		rows := func(s *side) []string {
			var list []string
			for _, r := range s.texts(t, "SELECT * FROM "+mysqlsyntax.Quote(rel.Name)) {
				list = append(list, strings.Join(r, "|"))
			}
			return list
		}
		cells := [][]byte{[]byte(rel.Name), []byte(p.wired.texts(t, show)[0][1])}
		script := p.rewriter.Script(show, p.catalog, p.session)
		if !script.Plans[0].Conceal(cells) || string(cells[1]) != want[1] {
			t.Errorf("%s: concealed it is\n%s\nwant\n%s", rel.Name, cells[1], want[1])
		}
		for range 2 { // they may be executed again
			for _, change := range []func(Flavor, *rewrite.Relation) []string{AddColumns, RemoveColumns} {
				p.load(t) // MySQL has no IF EXISTS here
				for _, now := range p.tables {
					if now.Name != rel.Name || !rel.Instrumented {
						continue
					}
					for _, sql := range change(flavor(), now) {
						p.wired.exec(t, sql)
					}
				}
			}
		}
		if diff := cmp.Diff(want, p.wired.texts(t, show)[0]); diff != "" {
			t.Errorf("%s (-before +after):\n%s", rel.Name, diff)
		}
		if diff := cmp.Diff(rows(p.plain), rows(p.wired)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", rel.Name, diff)
		}
	}
}

func TestConcealColumns(t *testing.T) {
	p := newPair(t, 0)
	for _, sql := range []string{
		"SHOW COLUMNS FROM account", "SHOW FULL COLUMNS FROM account", "show full fields in account", "DESC account", "DESCRIBE account", "EXPLAIN account",
		"SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'account' AND TABLE_SCHEMA = DATABASE() ORDER BY ORDINAL_POSITION",
		"SELECT c.COLUMN_NAME, c.COLUMN_TYPE FROM information_schema.`columns` c WHERE c.TABLE_NAME = 'account' AND TABLE_SCHEMA = DATABASE() ORDER BY c.ORDINAL_POSITION",
		"SHOW INDEX FROM account", "SHOW CREATE VIEW rich",
	} {
		conceal := p.rewriter.Script(sql, p.catalog, p.session).Plans[0].Conceal
		var got [][]string
		for _, row := range p.wired.texts(t, sql) {
			cells := make([][]byte, len(row))
			for i := range row {
				cells[i] = []byte(row[i])
			}
			if conceal == nil || conceal(cells) {
				got = append(got, row)
			}
		}
		if diff := cmp.Diff(p.plain.texts(t, sql), got); diff != "" && !strings.Contains(sql, "VIEW") && !strings.Contains(sql, "INDEX") {
			t.Errorf("%s (-plain +wired):\n%s", sql, diff)
		}
	}
}

func TestCatalog(t *testing.T) {
	p := newPair(t, 0)
	for _, want := range []struct {
		name                     string
		kind                     string
		columns, key, unique     int
		triggers, cascades, ours bool
	}{
		{"account", "table", 7, 1, 1, false, false, true},
		{"item", "table", 6, 1, 2, false, false, true},
		{"bare", "table", 4, 0, 0, false, false, true},
		{"pair", "table", 5, 2, 2, false, false, true},
		{"parent", "table", 4, 1, 1, false, true, true},
		{"child", "table", 4, 1, 1, false, false, true},
		{"watched", "table", 4, 1, 1, true, false, true},
		{"old", "table", 2, 1, 1, false, false, false},
		{"rich", "view", 3, 0, 0, false, false, false},
		{"größe", "table", 6, 1, 1, false, false, true},
	} {
		r := p.relation(want.name)
		if r == nil {
			t.Errorf("%s is missing", want.name)
			continue
		}
		if r.Kind != want.kind || len(r.Columns) != want.columns || len(r.Key) != want.key || len(r.Unique) != want.unique || r.HasTriggers != want.triggers || (p.catalog.View(false).Parent(want.name) != nil) != want.cascades || r.Instrumented != want.ours {
			t.Errorf("%s: got %+v", want.name, *r)
		}
	}
	if p.catalog.View(false).Function("twice") == 0 || p.catalog.Version == "" || p.catalog.Database != p.wired.db.Name {
		t.Errorf("got version %q, database %q", p.catalog.Version, p.catalog.Database)
	}
	kinds := p.relation("kinds")
	for _, c := range kinds.Columns {
		if generated := c.Name == "sg" || c.Name == "vg"; c.Generated != generated || c.Hidden != HiddenColumn(c.Name) && kinds.Instrumented {
			t.Errorf("column %+v", c)
		}
	}
}

// sessionFacts asks in both ways that there are.
func sessionFacts(t *testing.T, s *side) (Facts, error) {
	t.Helper()
	rows := s.texts(t, SessionQuery())
	f, err := DecodeSession(rows)
	if names := Variables(flavor(), rows); names != nil {
		if g, err2 := DecodeSession(KnownRows(names, s.texts(t, KnownQuery(names)))); g != f || (err == nil) != (err2 == nil) {
			t.Errorf("by their names: got %+v, %v, want %+v, %v", g, err2, f, err)
		}
	}
	return f, err
}

func TestSessionFacts(t *testing.T) {
	s := newSide(t, testserver.Family(t), 0)
	s.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
	s.exec(t, "SET autocommit=0, sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES', group_concat_max_len=5000, time_zone='+00:00'")
	f, err := sessionFacts(t, s)
	if err != nil {
		t.Fatal(err)
	}
	want := Facts{Version: f.Version, Flavor: flavor(), Level: "read committed", Packet: 16 << 20, Session: Session{Mode: mysqlsyntax.AnsiQuotes | mysqlsyntax.NoBackslashEscapes, GroupConcat: 5000, UTF8: true, UTC: true, Lax: true}}
	if flavor() == MySQL {
		want.Packet, want.Session.GroupConcat = 64<<20, 64<<20
	}
	if flavor() == MariaDB {
		want.Session.Mode |= mysqlsyntax.MariaDB
	}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
	want.Session.Cut = true
	s.exec(t, "SET max_sort_length=64")
	if f, err = sessionFacts(t, s); err != nil || f != want {
		t.Errorf("sorted by the beginning: got %+v, want %+v, %v", f, want, err)
	}
	s.exec(t, "SET max_sort_length=DEFAULT, sql_mode='STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH'")
	if f, err = sessionFacts(t, s); err != nil || f.Session.Mode&mysqlsyntax.Foreign == 0 || f.Session.Lax {
		t.Errorf("with blanks, strict: got %+v, %v", f, err)
	}
	s.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	if flavor() == MySQL {
		s.exec(t, "SET sql_mode='', character_set_client='gbk'")
		if f, err = sessionFacts(t, s); err != nil || f.Level != "repeatable read" || f.Session.Mode != mysqlsyntax.Foreign {
			t.Errorf("got %+v, %v", f, err)
		}
		return
	}
	s.exec(t, "SET innodb_snapshot_isolation=ON, sql_mode='ORACLE'")
	if f, err = sessionFacts(t, s); err != nil || f.Level != "snapshot" || f.Session.Mode&mysqlsyntax.Foreign == 0 {
		t.Errorf("got %+v, %v", f, err)
	}
	s.exec(t, "SET sql_mode='', collation_connection='ucs2_bin'")
	if f, err = sessionFacts(t, s); err != nil || f.Session.Mode&mysqlsyntax.Foreign == 0 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// TestZones: which sessions certainly have the time zone UTC.
func TestZones(t *testing.T) {
	for _, c := range []struct {
		session, system string
		utc             bool
	}{{"+00:00", "CET", true}, {"SYSTEM", "UTC", true}, {"Etc/UTC", "", true}, {"SYSTEM", "CET", false}, {"SYSTEM", "", false}, {"Europe/London", "UTC", false}, {"+01:00", "UTC", false}, {"", "UTC", false}} {
		f, err := DecodeSession([][]string{{"version", "8.0.40"}, {"transaction_isolation", "READ-COMMITTED"}, {"max_allowed_packet", "1024"}, {"time_zone", c.session}, {"system_time_zone", c.system}})
		if err != nil || f.Session.UTC != c.utc {
			t.Errorf("%+v: %t, %v", c, f.Session.UTC, err)
		}
	}
}

// TestPast: what a session of TiDB sees may be older than its statements.
func TestPast(t *testing.T) {
	for _, c := range []struct {
		name, value string
		past        bool
	}{
		{"tidb_snapshot", "", false}, {"tidb_snapshot", "2026-11-28 01:02:03", true},
		{"tidb_read_staleness", "0", false}, {"tidb_read_staleness", "", false}, {"tidb_read_staleness", "-5", true},
		{"tidb_low_resolution_tso", "OFF", false}, {"tidb_low_resolution_tso", "ON", true}, {"tidb_enable_external_ts_read", "ON", true},
		{"tidb_disable_txn_auto_retry", "ON", false}, {"tidb_disable_txn_auto_retry", "OFF", true},
		{"tidb_txn_mode", "pessimistic", false}, {"tidb_txn_mode", "optimistic", true}, {"tidb_txn_mode", "", true}, // BEGIN PESSIMISTIC would be at READ COMMITTED
	} {
		f, err := DecodeSession([][]string{{"version", "8.0.11-TiDB-v8.4.0"}, {"transaction_isolation", "READ-COMMITTED"}, {"max_allowed_packet", "1024"}, {c.name, c.value}})
		if err != nil || f.Session.Past != c.past {
			t.Errorf("%s = %q: past %t, %v", c.name, c.value, f.Session.Past, err)
		}
	}
}

// TestSessionFactsUnderLimit: sql_select_limit cuts the answers to SHOW, and not what a session must know.
func TestSessionFactsUnderLimit(t *testing.T) {
	s := newSide(t, testserver.Family(t), 0)
	facts := func(cut bool) Facts {
		t.Helper()
		rows := s.texts(t, SessionQuery())
		if CutOff(rows) != cut {
			t.Errorf("cut off: %t, of %d rows", !cut, len(rows))
		}
		if CutOff(rows) {
			rows = s.texts(t, WholeSessionQuery(flavor()))
		}
		f, err := DecodeSession(rows)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := facts(false)
	names := Variables(flavor(), s.texts(t, SessionQuery()))
	if (len(names) > 0) != (flavor() == MariaDB) {
		t.Fatalf("variables that can be asked for by their names: %q", names)
	}
	known := func(want Facts) {
		t.Helper()
		if names == nil {
			return
		}
		s.exec(t, "SELECT 1/0")
		got, err := DecodeSession(KnownRows(names, s.texts(t, KnownQuery(names))))
		if err != nil || got != want {
			t.Errorf("by their names: got %+v, want %+v, %v", got, want, err)
		}
		if warnings := s.texts(t, "SHOW WARNINGS"); len(warnings) > 0 {
			t.Errorf("behind the query: %q", warnings)
		}
	}
	known(want)
	want.Session.Cut = true
	for limit, cut := range map[int]bool{0: true, 1: true, 5: true, 10: true, 1000: false} {
		s.exec(t, fmt.Sprintf("SET sql_select_limit=%d", limit))
		known(want)
		if got := facts(cut); got != want {
			t.Errorf("limit %d: got %+v, want %+v", limit, got, want)
		}
	}
}

// Reads under SERIALIZABLE lock, so nothing may be read that the client's own statement would not touch.
func TestLockingReadsUnderSerializable(t *testing.T) {
	p := newPair(t, 0)
	p.session.LockingReads = true
	for _, f := range []form{
		{"SELECT balance FROM account WHERE balance = 200", opaque, 0},
		{"SELECT note FROM account WHERE balance = 200", exact, 1},
		{"SELECT * FROM account WHERE id = 1", exact, 1},
		{"SELECT id FROM account WHERE id = 1", exact, 1},
		{"SELECT a.id, i.name FROM account a JOIN item i ON i.account_id = a.id", opaque, 0},
		{"SELECT a.note, i.name FROM account a JOIN item i ON i.account_id = a.id", approx, 3},
		{"SELECT SUM(qty) FROM item", exact, 4},
		{"SELECT COUNT(*) FROM item", opaque, 0},
		{"SELECT MAX(note) FROM account", exact, 4},
		{"SELECT MAX(id) FROM account", opaque, 0},
		{"SELECT DISTINCT note FROM account WHERE id > 1", exact, 3},
		{"SELECT DISTINCT balance FROM account", opaque, 0},
		{"SELECT note FROM account UNION SELECT b FROM bare", exact, 8},
	} {
		plan, accesses := p.check(t, f.sql)
		if want := f.expected(plan); plan.Coverage != want || want == f.coverage && len(accesses) != f.n {
			t.Errorf("%s: coverage %q (%s), %d accesses; want %q, %d", f.sql, plan.Coverage, plan.Why, len(accesses), want, f.n)
		}
		for _, a := range accesses {
			if a.Op != history.OpLock {
				t.Errorf("%s: %+v", f.sql, a)
			}
		}
	}
}

var lockLine = regexp.MustCompile(`(\d+ lock struct)\(s\), heap size \d+, (\d+) (row lock)\(s\)(, undo log entries \d+)?`)

// The same locks are held after a statement and after what is sent for it.
func TestLocksAreTheSame(t *testing.T) {
	p := newPair(t, 0)
	srv := testserver.Family(t)
	root := dial(t, srv.Database(t).As(srv.User), 0)
	seen := 0
	locks := func(s *side, sql string) (string, bool) {
		s.exec(t, "BEGIN")
		defer s.exec(t, "ROLLBACK")
		if s == p.wired {
			s.exec(t, SetToken("T1.1.x"))
			if r := s.conn.send(t, p.rewriter.Script(sql, p.catalog, p.session)); r.err != "" {
				return r.err, false
			}
		} else if r := s.conn.query(t, sql); r.err != "" {
			return r.err, false
		}
		id := map[Flavor]string{MariaDB: "MariaDB", MySQL: "MySQL"}[flavor()] + " thread id " + s.texts(t, "SELECT CONNECTION_ID()")[0][0] + ","
		status := string(root.query(t, "SHOW ENGINE INNODB STATUS").rows[0][2])
		_, status, _ = strings.Cut(status, "LIST OF TRANSACTIONS")
		for trx := range strings.SplitSeq(status, "---TRANSACTION ") {
			if m := lockLine.FindStringSubmatch(trx); strings.Contains(trx, id) && m != nil {
				if m[2] != "0" {
					seen++
				}
				return strings.Join(m[1:], " "), true
			}
		}
		return "none", true
	}
	// The optimizer chooses the order of a semijoin by statistics, which InnoDB gathers on its own time: both databases
	// must have the same ones, or also what is sent unchanged locks differently.
	for _, s := range []*side{p.plain, p.wired} {
		for _, table := range s.texts(t, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'") {
			s.conn.query(t, "ANALYZE TABLE `"+table[0]+"`")
		}
	}
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, s := range []*side{p.plain, p.wired} {
			s.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
		}
		p.session.LockingReads = level == "SERIALIZABLE"
		for _, forms := range [][]form{selects, updates, inserts, deletes, joinForms} {
			for _, f := range forms {
				if f.n < 0 || strings.Contains(f.sql, "@@") {
					continue // refused, or names the database
				}
				want, ok := locks(p.plain, f.sql)
				if !ok {
					continue
				}
				if got, _ := locks(p.wired, f.sql); got != want {
					t.Errorf("%s: %s: locks %s, without us %s", level, f.sql, got, want)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("only %d statements with locks", seen)
	}
}
