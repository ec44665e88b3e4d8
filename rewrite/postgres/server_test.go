package postgres_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// schema is what the statements of this package's tests are about.
const schema = `
CREATE SCHEMA s2;
CREATE TABLE account (id int PRIMARY KEY, owner text, balance int NOT NULL DEFAULT 0, tags text[] DEFAULT '{}');
INSERT INTO account VALUES (1, 'ann', 100, '{a,b}'), (2, 'bob', 200, '{}'), (3, 'cid', 300, NULL), (4, NULL, 400, '{c}');
CREATE TABLE orders (id int PRIMARY KEY, account_id int, amount numeric, note text UNIQUE);
INSERT INTO orders VALUES (10, 1, 1.5, 'x'), (11, 1, 2.5, 'y'), (12, 2, 3.5, 'z'), (13, 99, 4.5, NULL);
CREATE TABLE pair (a int, b text, v int, PRIMARY KEY (a, b));
INSERT INTO pair VALUES (1, 'x y', 1), (1, 'o''x', 2), (2, 'äöü', 3);
CREATE TABLE "Odd Name" ("Id" int PRIMARY KEY, "select" int, "a""b" text);
INSERT INTO "Odd Name" VALUES (1, 10, 'q'), (2, 20, 'r');
CREATE TABLE nokey (v int, w text);
INSERT INTO nokey VALUES (1, 'a'), (1, 'a'), (2, 'b');
CREATE TABLE stamped (at timestamptz PRIMARY KEY, d date, v int);
INSERT INTO stamped VALUES ('2024-01-01 00:00Z', '2024-01-01', 1), ('infinity', 'infinity', 2);
CREATE TABLE part (id int, region text, v int, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
CREATE TABLE part_us (v int, extra int, region text NOT NULL, id int NOT NULL);
ALTER TABLE part_us DROP COLUMN extra;
ALTER TABLE part ATTACH PARTITION part_us FOR VALUES IN ('us');
INSERT INTO part VALUES (1, 'eu', 10), (1, 'us', 20), (2, 'eu', 30);
CREATE TABLE parent (id int PRIMARY KEY, v int);
CREATE TABLE child (w int) INHERITS (parent);
INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (2, 2, 2);
CREATE TABLE s2.remote (id int PRIMARY KEY, v int);
INSERT INTO s2.remote VALUES (1, 5), (2, 6);
CREATE TABLE s2.account2 (id int PRIMARY KEY);
CREATE TABLE s2.orders2 (id int PRIMARY KEY);
CREATE VIEW rich AS SELECT id, owner FROM account WHERE balance > 150;
CREATE VIEW richer AS SELECT id AS key, upper(owner) AS owner FROM rich WHERE id > 2;
CREATE VIEW placed AS SELECT o.*, a.id AS by, a.owner FROM orders o JOIN account a ON a.id = o.account_id WHERE a.balance < 300;
CREATE VIEW placed_rich AS SELECT p.id, p.by, r.key FROM placed p, richer r;
CREATE VIEW nameless AS SELECT owner FROM account;
CREATE VIEW totals AS SELECT account_id AS id, sum(amount) FROM orders GROUP BY account_id;
CREATE VIEW maybe AS SELECT a.id, o.id AS order_id FROM account a LEFT JOIN orders o ON o.account_id = a.id;
CREATE VIEW busy AS SELECT id FROM account a WHERE EXISTS (SELECT FROM orders o WHERE o.account_id = a.id);
CREATE VIEW couples AS SELECT a.id, b.id AS other FROM account a JOIN account b ON b.id > a.id;
CREATE VIEW first AS SELECT id FROM account ORDER BY id LIMIT 1;
CREATE MATERIALIZED VIEW rich_now AS SELECT id FROM account;
CREATE TABLE logged (id int PRIMARY KEY, v int);
CREATE TABLE log (id serial PRIMARY KEY, what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log (what) VALUES (TG_OP); RETURN NEW; END';
CREATE TRIGGER note AFTER INSERT OR UPDATE ON logged FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO logged VALUES (1, 1);
CREATE TABLE ruled (id int PRIMARY KEY, v int);
CREATE RULE r AS ON INSERT TO ruled DO ALSO INSERT INTO log (what) VALUES ('rule');
CREATE TABLE secured (id int PRIMARY KEY, v int);
INSERT INTO secured VALUES (1, 1);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
ALTER TABLE secured FORCE ROW LEVEL SECURITY;
CREATE POLICY w ON secured FOR ALL USING (v = 1);
CREATE TABLE parent_fk (id int PRIMARY KEY, v int);
CREATE TABLE child_fk (id int PRIMARY KEY, p int REFERENCES parent_fk ON DELETE CASCADE);
INSERT INTO parent_fk VALUES (1, 1); INSERT INTO child_fk VALUES (1, 1);
CREATE TABLE code_fk (id int PRIMARY KEY, code int UNIQUE, v int);
CREATE TABLE twice_fk (id int PRIMARY KEY, v int, w int GENERATED ALWAYS AS (v * 2) STORED UNIQUE, x int);
CREATE TABLE codes_fk (id int PRIMARY KEY, c int REFERENCES code_fk (code) ON UPDATE CASCADE, w int REFERENCES twice_fk (w) ON UPDATE SET NULL);
INSERT INTO code_fk VALUES (1, 7, 1); INSERT INTO twice_fk VALUES (1, 1); INSERT INTO codes_fk VALUES (1, 7, 2);
CREATE UNLOGGED TABLE fast (id int PRIMARY KEY, v int);
INSERT INTO fast VALUES (1, 1);
CREATE TABLE gen (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED);
INSERT INTO gen (v) VALUES (1), (2);
CREATE FUNCTION touch() RETURNS int LANGUAGE sql VOLATILE AS 'UPDATE account SET balance = balance WHERE id = 1; SELECT 1';
CREATE AGGREGATE mysum (int) (SFUNC = int4pl, STYPE = int);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE feels (m mood PRIMARY KEY, v int);
INSERT INTO feels VALUES ('sad', 1), ('ok', 2);
CREATE TABLE big (id int PRIMARY KEY, grp int, v int);
INSERT INTO big SELECT g, g % 10, g FROM generate_series(1, 60000) g;
CREATE INDEX ON big (grp);
ANALYZE;
`

// setUp makes a database with the schema and gives a connection and its catalog.
func setUp(t testing.TB) (*pgconn.PgConn, *rewrite.Catalog, testserver.Database) {
	t.Helper()
	db := testserver.Postgres(t).Database(t)
	conn := db.Postgres(t).PgConn()
	exec(t, conn, schema)
	return conn, catalog(t, conn), db
}

func exec(t testing.TB, conn *pgconn.PgConn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func rows(t testing.TB, conn *pgconn.PgConn, sql string) [][]string {
	t.Helper()
	res, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out [][]string
	for _, row := range res[len(res)-1].Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, string(c))
		}
		out = append(out, cells)
	}
	return out
}

func catalog(t testing.TB, conn *pgconn.PgConn) *rewrite.Catalog {
	t.Helper()
	c, err := postgres.LoadCatalog(rows(t, conn, postgres.CatalogQuery()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is what a client sees of one statement.
type answer struct {
	Fields []pgconn.FieldDescription
	Rows   [][]string
	Tag    string
	Err    string
}

func cells(row [][]byte) []string {
	var out []string
	for _, c := range row {
		if c == nil {
			out = append(out, "NULL")
		} else {
			out = append(out, "="+string(c))
		}
	}
	return out
}

// reader is what simple and extended execution have in common.
type reader interface {
	FieldDescriptions() []pgconn.FieldDescription
	NextRow() bool
	Values() [][]byte
	Close() (pgconn.CommandTag, error)
}

// take reads one result as the proxy would: what the plan hides goes to Decode.
func take(t testing.TB, r reader, p *rewrite.Plan) (answer, []history.Access) {
	t.Helper()
	var a answer
	var acc []history.Access
	fields := r.FieldDescriptions()
	keep := len(fields)
	if p != nil {
		keep -= p.Hidden
	}
	if keep > 0 || p == nil || !p.NoRows {
		for _, f := range fields[:max(keep, 0)] {
			a.Fields = append(a.Fields, f)
		}
	}
	blank := false
	for first := true; r.NextRow(); {
		row := r.Values()
		if p != nil && p.IsBlank(row[keep:]) {
			blank = true
			continue
		}
		if p != nil && p.Decode != nil {
			got, err := p.DecodeRow(nil, row[keep:], first)
			first = false
			if err != nil && !errors.Is(err, rewrite.ErrPartial) {
				t.Errorf("decode %q: %v", row[keep:], err)
			}
			acc = append(acc, got...)
		}
		if p == nil || !p.NoRows {
			a.Rows = append(a.Rows, cells(row[:keep]))
		}
	}
	tag, err := r.Close()
	if a.Tag = tag.String(); blank {
		a.Tag = strings.Replace(a.Tag, "SELECT 1", "SELECT 0", 1)
	}
	a.Err = refusal(err)
	return a, acc
}

func refusal(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return fmt.Sprintf("%s %s at %d", pe.Code, pe.Message, pe.Position)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// simple executes a script by the simple protocol inside a transaction that is rolled back. dump has the versions before and after it, if there are plans.
func simple(t testing.TB, conn *pgconn.PgConn, sql string, plans []*rewrite.Plan, before string) (list []answer, accs [][]history.Access, dump map[string]bool) {
	t.Helper()
	exec(t, conn, "BEGIN;"+before)
	defer exec(t, conn, "ROLLBACK; DEALLOCATE ALL")
	if len(plans) > 0 {
		dump = versions(t, conn)
	}
	mrr := conn.Exec(t.Context(), sql)
	for mrr.NextResult() {
		var p *rewrite.Plan
		if len(list) < len(plans) {
			p = plans[len(list)]
		}
		a, acc := take(t, mrr.ResultReader(), p)
		list, accs = append(list, a), append(accs, acc)
	}
	err := mrr.Close()
	if err != nil {
		a := answer{Err: refusal(err)}
		var pe *pgconn.PgError
		if len(plans) > 0 && errors.As(err, &pe) && pe.Position > 0 {
			pe.Position = int32(rewrite.MapPosition(plans[0].Text, plans[0].Edits, int(pe.Position)))
			a.Err = refusal(pe)
		}
		list = append(list, a)
		return list, accs, dump
	}
	if len(plans) > 0 {
		maps.Copy(dump, versions(t, conn))
	}
	return list, accs, dump
}

// versions lists the rows of all tables that are visible now: "table (key) ctid/xmin" by other means than the
// rewriter's.
func versions(t testing.TB, conn *pgconn.PgConn) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	add := func(table, key, from string) {
		sql := fmt.Sprintf("SELECT %s, %s.ctid, %s.xmin, %s.tableoid FROM %s", key, quoteLast(from), quoteLast(from), quoteLast(from), from)
		for _, r := range rows(t, conn, sql) {
			v := r[1] + "/" + r[2]
			if table == "public.part" {
				v = r[3] + ":" + v
			}
			out[table+" "+r[0]+" "+v] = true
		}
	}
	for _, name := range []string{"account", "orders", "logged", "parent_fk", "child_fk", "code_fk", "twice_fk", "fast", "gen", "ruled", "secured"} {
		add("public."+name, "id", name)
	}
	for _, r := range rows(t, conn, "SELECT id, ctid, xmin FROM big WHERE id < 20") {
		out["public.big "+r[0]+" "+r[1]+"/"+r[2]] = true
	}
	add("public.pair", "a || ' ' || quote_literal(b)", "pair")
	add("public.Odd Name", `"Id"`, `"Odd Name"`)
	add("public.nokey", "''", "nokey")
	add("public.stamped", "encode(timestamptz_send(at), 'hex')", "stamped")
	add("public.part", "quote_literal(region) || ' ' || id", "part")
	add("s2.remote", "id", "s2.remote")
	add("public.feels", "m", "feels")
	return out
}

func quoteLast(from string) string {
	if i := strings.LastIndexByte(from, '.'); i >= 0 {
		return from[i+1:]
	}
	return from
}

// facts prints accesses without their versions.
func facts(acc []history.Access) string {
	var out []string
	for _, a := range acc {
		s := string(a.Op) + " " + strings.TrimPrefix(a.Row.Table, "public.")
		if a.Row.Key != "" {
			s += " " + a.Row.Key
		}
		if a.Approx {
			s = "perhaps " + s
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// verify compares one script, sent as the client wrote it and rewritten.
func verify(t *testing.T, conn *pgconn.PgConn, sc *rewrite.Script, sql, before string, opts ...cmp.Option) [][]history.Access {
	t.Helper()
	want, _, _ := simple(t, conn, sql, nil, before)
	got, accs, dump := simple(t, conn, sc.SQL, sc.Plans, before)
	if d := cmp.Diff(want, got, opts...); d != "" {
		t.Errorf("%s\nsent %s\nthe client sees another answer (-direct +rewritten):\n%s", sql, sc.SQL, d)
	}
	for i, acc := range accs {
		if sc.Unparsed || len(sc.Plans) == 0 {
			break
		}
		p := sc.Plans[i]
		if len(acc) > 0 && p.Coverage != history.CoverageExact && p.Coverage != history.CoverageApproximate {
			t.Errorf("%s\nhas facts, but coverage %q", sql, p.Coverage)
		}
		for _, a := range acc {
			v := a.Version
			if a.Op == history.OpDelete {
				v = a.Prev
			}
			if key := a.Row.Table + " " + a.Row.Key + " " + v; !dump[key] && !a.Approx {
				t.Errorf("%s\nsent %s\ntells a version that does not exist: %+v", sql, sc.SQL, a)
			}
			if a.Op == history.OpUpdate && a.Prev != "" && !dump[a.Row.Table+" "+a.Row.Key+" "+a.Prev] {
				t.Errorf("%s\ntells a replaced version that did not exist: %+v", sql, a)
			}
			if sc.Plans[i].Verb == "update" && !strings.HasPrefix(sql, "WITH") && a.Op == history.OpUpdate && a.Row.Key == "" && (a.Prev == "") != strings.Contains(sql, "(SELECT") {
				t.Errorf("%s\nunexpected link: %+v", sql, a)
			}
			if a.Op.Writes() && a.Order < 2 && a.Row.Table != "public.fast" {
				t.Errorf("%s\na write without place: %+v", sql, a)
			}
		}
	}
	return accs
}
