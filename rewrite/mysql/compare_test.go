package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// schema is what both databases of a comparison have. @@ stands for the database.
var schema = []string{
	"CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(20) NOT NULL, balance INT NOT NULL, note TEXT, updated TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, KEY (balance), KEY ob (owner, balance))",
	"INSERT INTO account VALUES (1,'ann',100,'x','2001-01-01'),(2,'bob',200,NULL,'2001-01-01'),(3,'cat',300,'y',NULL),(4,'Dan',300,'z',NULL)",
	"CREATE TABLE item (id INT AUTO_INCREMENT PRIMARY KEY, account_id INT, name VARCHAR(30) NOT NULL DEFAULT 'none', qty INT DEFAULT 1, UNIQUE KEY (account_id, name)) AUTO_INCREMENT=10",
	"INSERT INTO item (account_id,name,qty) VALUES (1,'pen',3),(1,'ink',1),(2,'pen',5),(NULL,'lost',0)",
	"CREATE TABLE bare (a INT, b VARCHAR(10))",
	"INSERT INTO bare VALUES (1,'one'),(2,'two'),(2,'two'),(NULL,NULL)",
	"CREATE TABLE kinds (id BIGINT PRIMARY KEY, i INT, u BIGINT UNSIGNED, d DECIMAL(10,2), f FLOAT, g DOUBLE, c CHAR(5), v VARCHAR(300) COLLATE utf8mb4_general_ci, bin BINARY(4), vb VARBINARY(10), t TEXT, b BLOB, j JSON, e ENUM('a','b','c'), s SET('x','y','z'), bt BIT(9), dt DATE, tm TIME(3), ts TIMESTAMP(6) NOT NULL DEFAULT '2001-01-01', dtm DATETIME, y YEAR, sg INT AS (i+1) STORED, vg INT AS (i*2) VIRTUAL) CHARACTER SET utf8mb4",
	"INSERT INTO kinds (id,i,u,d,f,g,c,v,bin,vb,t,b,j,e,s,bt,dt,tm,dtm,y) VALUES (1,1,18446744073709551615,1.50,0.1,0.1,'ab','Émile','a','b','text','blob','{\"a\": 1}','b','x,z',5,'2020-02-29','01:02:03.456','2020-01-01 00:00:00',2020),(2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
	"CREATE TABLE pair (a INT, b INT, c INT, PRIMARY KEY (a,b), UNIQUE KEY (c))",
	"INSERT INTO pair VALUES (1,1,11),(1,2,12),(2,1,21)",
	"CREATE TABLE coded (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL, n BIGINT NOT NULL, UNIQUE KEY (code), UNIQUE KEY (n))",
	"INSERT INTO coded VALUES (1,'zeta',3),(2,'beta',2),(3,'alpha',1)",
	"CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
	"CREATE TABLE child (id INT PRIMARY KEY, parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent(id) ON DELETE CASCADE ON UPDATE CASCADE)",
	"INSERT INTO parent VALUES (1,1),(2,2)",
	"INSERT INTO child VALUES (1,1),(2,1),(3,2)",
	"CREATE TABLE watched (id INT PRIMARY KEY, v INT)",
	"INSERT INTO watched VALUES (1,1),(2,2)",
	"CREATE TRIGGER watched_bu BEFORE UPDATE ON watched FOR EACH ROW SET NEW.v = NEW.v + 1",
	"CREATE TABLE old (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
	"CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 3",
	"INSERT INTO parts VALUES (1,1),(2,2),(3,3),(4,4)",
	"CREATE TABLE `größe` (`schlüssel` INT PRIMARY KEY, `select` INT, `a b` INT, `q``q` INT)",
	"INSERT INTO `größe` VALUES (1,2,3,4)",
	"CREATE VIEW rich AS SELECT id, owner, balance FROM account WHERE balance > 100",
	"CREATE VIEW richer AS SELECT id AS rid, UPPER(owner) AS owner FROM rich WHERE id > 2",
	"CREATE ALGORITHM=TEMPTABLE VIEW apart AS SELECT id, owner FROM account WHERE balance > 100",
	"CREATE VIEW owned AS SELECT i.id, a.id AS owner_id, a.owner, i.name FROM item i JOIN account a ON a.id = i.account_id",
	"CREATE VIEW nameless AS SELECT owner FROM account",
	"CREATE VIEW totals AS SELECT account_id AS id, SUM(qty) AS qty FROM item GROUP BY account_id",
	"CREATE VIEW maybe AS SELECT a.id, i.id AS item FROM account a LEFT JOIN item i ON i.account_id = a.id",
	"CREATE VIEW busy AS SELECT id FROM account WHERE EXISTS (SELECT 1 FROM item WHERE account_id = account.id)",
	"CREATE VIEW couples AS SELECT a.id, b.id AS other FROM account a JOIN account b ON b.id > a.id",
	"CREATE VIEW outdated AS SELECT id FROM old",
	"CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x*2",
	"CREATE VIEW doubled AS SELECT id, twice(balance) AS balance FROM account",
	"CREATE TABLE zero (id INT PRIMARY KEY, d DATE NOT NULL DEFAULT '0000-00-00', ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)",
	"CREATE TABLE logged (id INT PRIMARY KEY, a TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, b DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3), c TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), d DATETIME DEFAULT '2020-01-01')",
	"INSERT INTO zero VALUES (1,'0000-00-00','2001-01-01'),(2,'2001-00-00','2001-01-01')",
}

// side is one database with one connection to it.
type side struct {
	db   testserver.Database
	conn *wire
}

func (s *side) exec(t testing.TB, sql string) reply {
	t.Helper()
	r := s.conn.query(t, sql)
	if r.err != "" {
		t.Fatalf("%s: %s", sql, r.err)
	}
	return r
}

func (s *side) texts(t testing.TB, sql string) [][]string {
	t.Helper()
	return s.exec(t, sql).texts()
}

func (r reply) texts() [][]string {
	rows := make([][]string, len(r.rows))
	for i, row := range r.rows {
		for _, cell := range row {
			rows[i] = append(rows[i], string(cell))
		}
	}
	return rows
}

func newSide(t testing.TB, srv *testserver.Server, capabilities uint32) *side {
	t.Helper()
	s := &side{db: srv.Database(t)}
	s.conn = dial(t, s.db, capabilities)
	for _, sql := range append([]string{"SET NAMES utf8mb4", "SET sql_mode='NO_ENGINE_SUBSTITUTION'"}, schema...) {
		if flavor() == TiDB && (strings.HasPrefix(sql, "CREATE TRIGGER") || strings.HasPrefix(sql, "CREATE FUNCTION") || strings.Contains(sql, "twice(")) {
			continue // it has none
		}
		s.exec(t, sql)
	}
	s.exec(t, "SET sql_mode=DEFAULT")
	s.exec(t, "SET timestamp=1700000000")
	return s
}

// pair is a plain database and an equal one with the hidden columns.
type pair struct {
	plain, wired *side
	rewriter     *Rewriter
	catalog      *rewrite.Catalog
	session      Session
	stamp        int
	tables       []*rewrite.Relation
	images       bool // of all rows that are written; otherwise of none
	known        known
}

// known are the rows of the instrumented side in front of a statement that was rolled back. They are the same as long as nothing else is sent.
type known struct {
	rows map[history.Row]row
	sent int // the connection's commands by then
}

func newPair(t testing.TB, capabilities uint32) *pair {
	t.Helper()
	srv := testserver.Family(t)
	p := &pair{plain: newSide(t, srv, capabilities), wired: newSide(t, srv, capabilities), rewriter: New(flavor(), rewrite.CaptureAuto)}
	p.load(t)
	mode := p.wired.texts(t, "SELECT @@sql_mode")[0][0]
	p.wired.exec(t, "SET SESSION sql_mode=''")
	for _, rel := range p.catalog.All() {
		if _, ok := Instrumentable(rel); !ok || rel.Schema != p.wired.db.Name {
			continue
		}
		for _, sql := range AddColumns(flavor(), rel) {
			p.wired.exec(t, sql)
		}
	}
	p.wired.exec(t, "SET sql_mode='"+mode+"'")
	p.load(t)
	if flavor() == MySQL { // both sides choose plans by the same statistics: a thread of the server's would count again in the middle
		for _, s := range []*side{p.plain, p.wired} {
			mode := s.texts(t, "SELECT @@sql_mode")[0][0]
			s.exec(t, "SET SESSION sql_mode=''")
			for _, rel := range p.tables {
				s.exec(t, "ALTER TABLE "+mysqlsyntax.Quote(rel.Name)+" STATS_AUTO_RECALC=0")
				s.exec(t, "ANALYZE TABLE "+mysqlsyntax.Quote(rel.Name))
			}
			s.exec(t, "SET sql_mode='"+mode+"'")
		}
	}
	return p
}

// relation is a table of the instrumented side.
func (p *pair) relation(name string) *rewrite.Relation {
	return p.catalog.View(false).Relation(p.wired.db.Name, name)
}

func (p *pair) load(t testing.TB) {
	t.Helper()
	var err error
	if p.catalog, err = LoadCatalog(p.wired.texts(t, CatalogQuery(flavor()))); err != nil {
		t.Fatal(err)
	}
	f, err := DecodeSession(p.wired.texts(t, SessionQuery()))
	if err != nil {
		t.Fatal(err)
	}
	p.session = f.Session
	p.session.Database = p.wired.db.Name
	p.tables = nil
	for _, rel := range p.catalog.All() {
		if rel.Schema == p.wired.db.Name && rel.Kind == "table" {
			p.tables = append(p.tables, rel)
		}
	}
	slices.SortFunc(p.tables, func(a, b *rewrite.Relation) int { return strings.Compare(a.Name, b.Name) })
}

// row is a row of an instrumented table.
type row struct {
	visible string
	writers string
	name    string
}

// state reads all tables: visible rows by table, and rows by table and row id.
func (p *pair) state(t testing.TB, s *side) (visible map[string][]string, rows map[history.Row]row) {
	return p.read(t, s, p.tables)
}

// before gives the rows of the instrumented side. Both sides execute the same query last, so that FOUND_ROWS() is the same.
func (p *pair) before(t testing.TB, sent int) (rows map[history.Row]row) {
	last := p.tables[len(p.tables)-1:]
	p.read(t, p.plain, last)
	if p.known.rows != nil && p.known.sent == sent {
		p.read(t, p.wired, last)
		return p.known.rows
	}
	_, rows = p.state(t, p.wired)
	return rows
}

func (p *pair) read(t testing.TB, s *side, tables []*rewrite.Relation) (visible map[string][]string, rows map[history.Row]row) {
	visible, rows = make(map[string][]string), make(map[history.Row]row)
	named := func(rel *rewrite.Relation) bool { return s == p.wired && rel.Instrumented }
	var queries []string
	for _, rel := range tables {
		columns, hidden := "*", ""
		if named(rel) {
			hidden = ", " + keyOf(rel) + ", wc_writers"
			if alwaysVisible(flavor()) {
				columns = strings.Join((&source{rel: rel}).clientColumns(), ",")
			}
		}
		queries = append(queries, "SELECT "+columns+hidden+" FROM "+mysqlsyntax.Quote(rel.Name))
	}
	for i, answer := range s.conn.queries(t, queries) {
		if answer.err != "" {
			t.Fatalf("%s: %s", queries[i], answer.err)
		}
		rel := tables[i]
		for _, r := range answer.texts() {
			if named(rel) {
				n := len(r) - 2
				rows[history.Row{Table: rel.String(), Key: r[n]}] = row{strings.Join(r[:n], "|"), r[n+1], plainName(rel, r)}
				r = r[:n]
			}
			visible[rel.Name] = append(visible[rel.Name], strings.Join(r, "|"))
		}
		slices.Sort(visible[rel.Name])
	}
	return visible, rows
}

// plainName is the name of a row of a table with numbers for keys, all of them visible columns.
func plainName(rel *rewrite.Relation, cells []string) string {
	var parts []string
	for _, k := range rel.Key {
		for i, c := range rel.Columns {
			if c.Name == k {
				parts = append(parts, k+"="+cells[i])
			}
		}
	}
	return strings.Join(parts, ", ")
}

// answer is what a client sees of a statement.
type answer struct {
	Error    string
	Affected uint64
	InsertID uint64
	Status   uint16
	Info     string
	Count    uint16
	Warnings []string
	Diag     []string
	Fields   []string
	Rows     []string
}

func (p *pair) answerOf(t testing.TB, s *side, sql string, plan *rewrite.Plan, prepared bool, args []string) (answer, []history.Access, error) {
	t.Helper()
	var accesses []history.Access
	var partial error
	var r reply
	if prepared || plan != nil && plan.ParsedApart > 0 {
		if r = s.conn.execute(t, sql, args); r.refused && plan != nil && plan.ParsedApart > 0 {
			r = s.conn.execute(t, plan.Text, args) // as the proxy does
		}
	} else {
		r = s.conn.query(t, sql)
	}
	rename := func(x string) string { return strings.ReplaceAll(x, s.db.Name, "@@") }
	a := answer{Error: rename(r.err)}
	if r.err != "" {
		return a, nil, nil
	}
	a.Affected, a.InsertID, a.Status, a.Info, a.Count = r.affected, r.insertID, r.status, r.info, r.warnings
	a.Status &^= 0x10 | 0x800 // whether a good index was there, and whether it was slow
	own := sql
	if plan != nil {
		own = plan.Text
	}
	// Whether an index was used. On MySQL a subquery, and the join of an UPDATE, have several plans, and statistics that the server renews in its own time decide.
	if flavor() == MariaDB || strings.Contains(own, "(SELECT") || strings.HasPrefix(own, "UPDATE") && strings.Contains(own, " JOIN ") {
		a.Status &^= 0x20
	}
	n := len(r.columns)
	if plan != nil {
		n -= plan.Hidden
	}
	for _, c := range r.columns[:n] {
		if flavor() == TiDB {
			c = withoutOriginalName(c)
		}
		a.Fields = append(a.Fields, fmt.Sprintf("%q", bytes.ReplaceAll(c, lenenc([]byte(s.db.Name)), lenenc([]byte("@@")))))
	}
	for _, row := range r.rows {
		cells := make([]string, n)
		for i := range cells {
			cells[i] = fmt.Sprintf("%q", row[i])
			if row[i] == nil {
				cells[i] = "NULL"
			}
		}
		a.Rows = append(a.Rows, strings.Join(cells, "|"))
		if n == len(row) {
			continue
		}
		got, err := plan.DecodeRow(nil, row[n:], true)
		if errors.Is(err, rewrite.ErrPartial) {
			partial = err
		} else if err != nil {
			t.Errorf("%s: decode %q: %v", sql, row[n:], err)
		}
		if plan.Same > 0 && plan.Verb == "select" && len(a.Rows) > 1 {
			if diff := cmp.Diff(accesses, got); diff != "" {
				t.Errorf("%s: its rows tell different things: %s", sql, diff)
			}
			if again, err := plan.DecodeRow(nil, row[n:], false); err != nil || len(again) > 0 {
				t.Errorf("%s: what the first row told, another tells again: %v, %v", sql, again, err)
			}
			continue
		}
		accesses = append(accesses, got...)
	}
	if flavor() == TiDB || !strings.Contains(strings.ToUpper(sql), "ORDER BY") { // the server may take another index
		slices.Sort(a.Rows)
	}
	return a, accesses, partial
}

func (p *pair) diagnose(t testing.TB, s *side, a *answer) {
	t.Helper()
	if flavor() == MySQL { // each SELECT has a list of warnings of its own there
		for _, w := range s.texts(t, "SHOW WARNINGS") {
			a.Warnings = append(a.Warnings, strings.ReplaceAll(strings.Join(w, "|"), s.db.Name, "@@"))
		}
		s.exec(t, "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT")
		s.exec(t, "GET DIAGNOSTICS CONDITION 1 @c = MYSQL_ERRNO")
		if a.Diag = s.texts(t, "SELECT @n, @r, IF(@n, @c, 0), LAST_INSERT_ID()")[0]; a.Error != "" {
			a.Diag = nil
		}
		return
	}
	if a.Error == "" { // after an error these belong to an earlier statement
		a.Diag = s.texts(t, "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), @@warning_count")[0]
	}
	for _, w := range s.texts(t, "SHOW WARNINGS") {
		a.Warnings = append(a.Warnings, strings.ReplaceAll(strings.Join(w, "|"), s.db.Name, "@@"))
	}
}

// check executes sql on both sides in a transaction that is rolled back, compares what the client sees, and holds what
// was captured against what happened. It returns the plan and the accesses.
func (p *pair) check(t *testing.T, sql string, args ...string) (*rewrite.Plan, []history.Access) {
	t.Helper()
	if flavor() == MySQL && (strings.Contains(sql, "VALUES(qty)") || strings.Contains(sql, "@n := 5")) {
		// The server warns of the text itself, where it is parsed; what the proxy does about it TestParsedApart tells.
		return p.try(t, sql, true, args)
	}
	plan, accesses := p.try(t, sql, len(args) > 0, args)
	if len(args) == 0 && !strings.Contains(sql, ";") {
		p.try(t, sql, true, nil)
	}
	return plan, accesses
}

func (p *pair) try(t *testing.T, sql string, prepared bool, args []string) (*rewrite.Plan, []history.Access) {
	t.Helper()
	sent := p.wired.conn.sent
	p.plain.exec(t, "BEGIN")
	p.wired.exec(t, "BEGIN")
	var before map[history.Row]row
	undone := false // the transaction was open until its ROLLBACK
	defer func() {
		p.wired.exec(t, "ROLLBACK")
		p.plain.exec(t, "ROLLBACK")
		if p.known = (known{}); undone {
			p.known = known{before, p.wired.conn.sent}
		}
	}()
	mine := strings.ReplaceAll(sql, "@@db", p.wired.db.Name)
	if p.rewriter.Generation() > 0 && !p.images {
		p.rewriter = New(flavor(), rewrite.CaptureAuto)
	}
	make := p.rewriter.Script
	if prepared {
		make = p.rewriter.Prepare
	}
	script := make(mine, p.catalog, p.session)
	if len(script.Plans) != 1 {
		t.Fatalf("%s: %d plans", sql, len(script.Plans))
	}
	plan := script.Plans[0]
	if got := rewrite.Apply(mine, plan.Edits); got != script.SQL {
		t.Errorf("%s: edits give %s, not %s", sql, got, script.SQL)
	}
	if strings.Count(mine, "?") != strings.Count(script.SQL, "?") {
		t.Errorf("%s: parameters: %s", sql, script.SQL)
	}
	before = p.before(t, sent)
	p.stamp++
	stamp := fmt.Sprintf("T%d.1.test", p.stamp)
	sending := script.SQL
	if plan.Marked != nil && !prepared { // as sessions send it: the variable must not matter
		sending = plan.WithStamp(mine, stamp)
		p.wired.exec(t, SetToken("T0.0.wrong"))
	} else {
		p.wired.exec(t, SetToken(stamp))
	}
	// On MySQL texts are parsed apart from their execution, so the stamp is a variable.
	if marked := plan.Stamp && flavor() != MySQL; marked != (plan.Marked != nil) || strings.ContainsAny(script.SQL+sending, "\x00") {
		t.Errorf("%s: stamps, but is not marked, or marks are left: %q", sql, sending)
	}
	want, _, _ := p.answerOf(t, p.plain, strings.ReplaceAll(sql, "@@db", p.plain.db.Name), nil, prepared, args)
	p.diagnose(t, p.plain, &want)
	got, accesses, partial := p.answerOf(t, p.wired, sending, plan, prepared, args)
	p.diagnose(t, p.wired, &got)
	undone = got.Error == "" && got.Status&1 > 0 // SERVER_STATUS_IN_TRANS
	if flavor() == TiDB && want.Error == "" && got.Error == "" {
		want.Diag[1], got.Diag[1] = "", "" // rows that are found without a plan set FOUND_ROWS() by what was asked before
	}
	if flavor() == MariaDB && plan.Verb != "select" && want.Error == "" && got.Error == "" {
		want.Diag[1], got.Diag[1] = "", "" // FOUND_ROWS() belongs to an earlier query, or a subquery
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\nsent %s\nthe client sees (-plain +wired):\n%s", sql, script.SQL, diff)
	}
	log, truncated, err := DecodeLog([]byte(p.wired.fetchLog(t)))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	wantState, _ := p.state(t, p.plain)
	gotState, after := p.state(t, p.wired)
	if diff := cmp.Diff(wantState, gotState); diff != "" {
		t.Errorf("%s\nsent %s\nthe tables hold (-plain +wired):\n%s", sql, script.SQL, diff)
	}
	if got.Error == "" {
		held := *plan
		if plan.Counted {
			count := int(got.Affected)
			_, info, _ := strings.Cut(got.Info, "Rows matched: ")
			if _, err := fmt.Sscan(info, &count); err != nil && plan.Verb == "update" {
				t.Fatalf("%s: %q", sql, got.Info)
			}
			if log[stamp] = Counted(log[stamp], count); log[stamp] != nil && !strings.Contains(plan.Why, "foreign keys") {
				held.Coverage = history.CoverageExact // of what it wrote
			}
		}
		p.verify(t, script.SQL, &held, stamp, before, after, log, truncated)
		for _, a := range accesses {
			p.verifyRead(t, script.SQL, a, before)
		}
		if partial == nil && plan.Coverage == history.CoverageExact && plan.Verb == "select" && len(got.Rows) > 0 && plan.Hidden == 0 && !plan.Log {
			t.Errorf("%s: exact, but nothing is captured", sql)
		}
	}
	return plan, append(accesses, log[stamp]...)
}

// verify holds the log and the stamps against the rows before and after.
func (p *pair) verify(t *testing.T, sql string, plan *rewrite.Plan, stamp string, before, after map[history.Row]row, log map[string][]history.Access, truncated bool) {
	t.Helper()
	changed := make(map[history.Row]history.Access)
	own := make(map[history.Row]string) // versions made by the statement
	for r, is := range after {
		if _, old := before[r]; !old && strings.HasPrefix(is.writers, "1:") {
			own[r] = "1:" + stamp
		}
	}
	for s, list := range log {
		if s != stamp {
			t.Errorf("%s: the log names %s", sql, s)
		}
		for _, a := range list {
			if a.Op == history.OpMatch && a.Version == own[a.Row] {
				continue // ON DUPLICATE KEY UPDATE came to a row of its own statement
			}
			if !a.Op.Writes() {
				p.verifyRead(t, sql, a, before)
				continue
			}
			p.verifyImages(t, sql, a, before[a.Row], after[a.Row])
			own[a.Row] = a.Version
			if a.Op == history.OpInsert {
				is, there := after[a.Row]
				if w, err := parseWriters([]byte(is.writers)); !there || err != nil || w.count == 1 && w.version() != a.Version || a.Name != is.name && !strings.HasSuffix(a.Name, "=!") && a.Name != "" {
					t.Errorf("%s: %+v is inserted, and the row is %v, there %v", sql, a, is, there)
				}
				continue
			}
			if first, again := changed[a.Row]; again { // ON DUPLICATE KEY UPDATE may come to a row twice
				if a.Prev != first.Version || a.PrevOrder != first.Order {
					t.Errorf("%s: %+v does not follow %+v", sql, a, first)
				}
				continue
			}
			changed[a.Row] = a
		}
	}
	done := 0
	for r, was := range before {
		is, alive := after[r]
		a, logged := changed[r]
		switch {
		case !alive && logged && a.Op != history.OpDelete, alive && logged && a.Op != history.OpUpdate:
			t.Errorf("%s: row %v: %s is logged", sql, r, a.Op)
		case alive && is.visible == was.visible && (logged || is.writers != was.writers):
			t.Errorf("%s: row %v did not change, but %s became %s, logged %v", sql, r, was.writers, is.writers, logged)
		case plan.Coverage == history.CoverageExact && !truncated && !logged && (!alive || is.visible != was.visible):
			t.Errorf("%s: row %v changed, but it is not logged: %v -> %v", sql, r, was, is)
		case logged:
			if alive && a.Name != was.name && (a.Op == history.OpDelete || a.Name != is.name) {
				t.Errorf("%s: row %v: %+v is named %q and %q", sql, r, a, was.name, is.name)
			}
			old, err := parseWriters([]byte(was.writers))
			if err != nil || a.Prev != old.version() || a.PrevOrder != old.order() || a.Order != a.PrevOrder+1 {
				t.Errorf("%s: row %v: %+v does not follow %q", sql, r, a, was.writers)
			}
			if alive && len(log[stamp]) == len(changed)+done { // otherwise rows were updated twice
				now, err := parseWriters([]byte(is.writers))
				if err != nil || a.Version != now.version() || a.Order != now.order() || string(now.last) != stamp {
					t.Errorf("%s: row %v: %+v is not %q", sql, r, a, is.writers)
				}
			}
		}
		if logged {
			delete(changed, r)
			done++
		}
	}
	if plan.Log && len(changed) > 0 {
		t.Errorf("%s: rows in the log that were not there: %v", sql, changed)
	}
	for r, is := range after {
		if _, ok := before[r]; ok || plan.Coverage == history.CoverageOpaque {
			continue
		}
		if w, err := parseWriters([]byte(is.writers)); err != nil || string(w.last) != stamp {
			t.Errorf("%s: new row %v has %q", sql, r, is.writers)
		}
	}
}

// verifyRead says whether the version that was read exists.
func (p *pair) verifyRead(t *testing.T, sql string, a history.Access, rows map[history.Row]row) {
	t.Helper()
	r, ok := rows[a.Row]
	if !ok {
		t.Errorf("%s: it read %v, which is not there", sql, a.Row)
		return
	}
	if w, err := parseWriters([]byte(r.writers)); err != nil || w.version() != a.Version || w.order() != a.Order || a.Name != r.name {
		t.Errorf("%s: it read %+v, the row has %q", sql, a, r.writers)
	}
}

// verifyImages holds the images of a write against the row before and after, where it was written once.
func (p *pair) verifyImages(t *testing.T, sql string, a history.Access, was, is row) {
	t.Helper()
	_, name, _ := strings.Cut(a.Row.Table, ".")
	rel := p.relation(name)
	for _, side := range []struct {
		text, version string
		row           row
	}{{a.Was, a.Prev, was}, {a.Image, a.Version, is}} {
		image, err := condition.ParseImage(side.text)
		if err != nil || p.images && side.row.visible != "" && len(image) == 0 && a.Op != history.OpInsert && kindsOf(rel) > 0 {
			t.Errorf("%s: %+v has image %q: %v", sql, a, side.text, err)
		}
		if w, err := parseWriters([]byte(side.row.writers)); err != nil || w.version() != side.version {
			continue // written again
		}
		cells, n := strings.Split(side.row.visible, "|"), 0
		for _, c := range rel.Columns {
			if c.Hidden {
				continue
			}
			got, known := image[c.Name]
			text := ""
			if got != nil {
				text = *got
			}
			if kindOf(&c) == condition.Timestamp {
				text = strings.Replace(text, "T", " ", 1)
			}
			if typeName(c.Type) == "timestamp" { // MySQL leaves these out of the image
				text, cells[n] = strings.TrimSuffix(text, ".000000"), strings.TrimSuffix(cells[n], ".000000")
			}
			if known && text != cells[n] {
				t.Errorf("%s: %s is %q in the image of %+v, and %q in the row", sql, c.Name, text, a, cells[n])
			}
			n++
		}
	}
}

// kindsOf is how many columns have an image.
func kindsOf(rel *rewrite.Relation) (n int) {
	for i := range rel.Columns {
		if c := &rel.Columns[i]; !c.Hidden && !c.Generated && !c.Touched && kindOf(c) != condition.Other {
			n++
		}
	}
	return n
}
