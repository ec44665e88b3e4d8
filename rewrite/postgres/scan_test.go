package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestOrder checks statements that leave the order of their rows to the server: it stays what it is.
func TestOrder(t *testing.T) {
	conn, _, _ := setUp(t)
	exec(t, conn, `CREATE TABLE scattered (id int PRIMARY KEY, grp int, v int);
		INSERT INTO scattered SELECT g, g * 37 % 101, g % 2500 FROM generate_series(1, 5000) g; CREATE INDEX ON scattered (grp)`)
	exec(t, conn, "VACUUM ANALYZE scattered")
	c := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	for _, sql := range []string{
		"SELECT grp FROM scattered WHERE grp > 95",
		"SELECT s.grp FROM scattered s WHERE s.grp IN (5, 3)",
		"SELECT v, count(*) FROM scattered GROUP BY v",
		"SELECT v, count(DISTINCT grp) FROM scattered GROUP BY v",
		"SELECT v % 10, grp % 3, count(*) FROM scattered GROUP BY ROLLUP (1, 2)",
		"SELECT a.v, count(*) FROM scattered a JOIN scattered b ON a.id = b.v GROUP BY a.v",
		"SELECT DISTINCT grp FROM scattered",
		"SELECT v FROM scattered UNION SELECT grp FROM scattered",
		"SELECT v FROM scattered EXCEPT SELECT grp FROM scattered",
		"SELECT a.v FROM scattered a LEFT JOIN scattered b ON b.id = a.id WHERE a.v > 1000",
		"SELECT a.v, b.v FROM scattered a JOIN scattered b ON b.id = a.v WHERE a.grp = 3",
		"SELECT v FROM scattered WHERE grp > 3 AND id IN (SELECT id FROM scattered WHERE id = 70)",
		"SELECT string_agg(grp::text, ',') FROM scattered WHERE grp > 98",
		"SELECT v, (SELECT count(*) FROM scattered b WHERE b.grp = a.id) FROM scattered a WHERE a.grp = 7",
		"SELECT a.v FROM scattered a WHERE EXISTS (SELECT 1 FROM scattered b WHERE b.id = a.v) AND a.grp < 5",
	} {
		sc := r.Script(sql, c, postgres.Session{})
		if sc.SQL == sql {
			t.Errorf("%s is left alone: %s", sql, sc.Plans[0].Why)
		}
		want, _ := once(t, conn, sql, nil)
		got, acc := once(t, conn, sc.SQL, sc.Plans[0])
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s\nsent %s\n(-direct +rewritten):\n%.2000s", sql, sc.SQL, d)
		}
		if len(acc) == 0 {
			t.Errorf("%s tells nothing", sql)
		}
	}
}

// TestSameLocks checks that a scan locks nothing at SERIALIZABLE that the client's own statement leaves.
func TestSameLocks(t *testing.T) {
	conn, _, _ := setUp(t)
	exec(t, conn, `CREATE TABLE shop (id int PRIMARY KEY, town int); INSERT INTO shop SELECT g, g % 50 FROM generate_series(1, 2000) g; CREATE INDEX ON shop (town);
		CREATE TABLE sale (id int PRIMARY KEY, shop_id int, v int); INSERT INTO sale SELECT g, g % 2000 + 1, g % 7 FROM generate_series(1, 4000) g; CREATE INDEX ON sale (shop_id)`)
	exec(t, conn, "VACUUM ANALYZE shop, sale")
	c := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	for _, sql := range []string{
		"SELECT * FROM sale WHERE shop_id IN (SELECT id FROM shop WHERE town = 3)",
		"SELECT * FROM sale WHERE id < 30 AND shop_id IN (SELECT s.id FROM shop s WHERE s.town < 40)",
		"SELECT id FROM shop WHERE town = 4 AND EXISTS (SELECT 1 FROM sale WHERE sale.shop_id = shop.id AND v = 1)",
		"SELECT EXISTS (SELECT 1 FROM shop WHERE town = 77)",
		"SELECT id, EXISTS (SELECT 1 FROM sale WHERE sale.shop_id = shop.id AND v = 9) FROM shop WHERE id = 9",
		"DELETE FROM sale WHERE shop_id IN (SELECT id FROM shop WHERE town = 3)",
		"UPDATE sale SET v = 8 WHERE shop_id IN (SELECT id FROM shop WHERE id = 6)",
		"INSERT INTO sale SELECT id + 10000, town FROM shop WHERE id = 77",
		"SELECT town, count(*) AS n FROM shop GROUP BY town ORDER BY n DESC LIMIT 3",
	} {
		sc := r.Script(sql, c, postgres.Session{})
		if sc.SQL == sql {
			t.Errorf("%s is left alone: %s", sql, sc.Plans[0].Why)
		}
		owner := map[string]string{}
		locks := func(sql string) map[string]bool {
			exec(t, conn, "BEGIN ISOLATION LEVEL SERIALIZABLE;"+sql)
			held := map[string]bool{}
			for _, l := range rows(t, conn, "SELECT relation::regclass, coalesce(page, -1), coalesce(tuple, -1), coalesce(indrelid, relation)::regclass FROM pg_locks LEFT JOIN pg_index ON indexrelid = relation WHERE mode = 'SIReadLock'") {
				held[strings.Join(l[:3], " ")] = true
				owner[l[0]] = l[3]
			}
			exec(t, conn, "ROLLBACK")
			return held
		}
		want := locks(sql)
		for l := range locks(sc.SQL) {
			f := strings.Fields(l)
			if !want[l] && !want[f[0]+" -1 -1"] && !want[f[0]+" "+f[1]+" -1"] && !want[owner[f[0]]+" -1 -1"] {
				t.Errorf("%s\nsent %s\nlocks %s, too", sql, sc.SQL, l)
			}
		}
	}
}

// TestTemplates checks that a plan that copies parts of a text holds for other literals in it.
func TestTemplates(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct{ sql, facts string }{
		{"SELECT sum(v) FROM big WHERE id = 7", "read big 7"},
		{"SELECT sum(v) FROM big WHERE id = 12", "read big 12"},
		{"SELECT DISTINCT owner FROM account WHERE id = 1 -- 1", "read account 1"},
		{"SELECT DISTINCT owner FROM account WHERE id = 0000004 -- 1", "read account 4"},
		{"SELECT 'a', id FROM account WHERE owner = 'ann' EXCEPT SELECT 'b', 22", "read account 1"},
		{"SELECT 'äöü', id FROM account WHERE owner = 'bob' EXCEPT SELECT '', 2", "read account 2"},
	} {
		sc := r.Script(f.sql, c, postgres.Session{})
		a, acc := once(t, conn, sc.SQL, sc.Plans[0])
		if facts(acc) != f.facts || a.Err != "" {
			t.Errorf("%s\nsent %s\ntells %q, want %q %s", f.sql, sc.SQL, facts(acc), f.facts, a.Err)
		}
	}
}

// TestRunCondition checks that the second scan of a large table ends when it has found too many rows.
func TestRunCondition(t *testing.T) {
	conn, c, _ := setUp(t)
	sc := postgres.New(rewrite.CaptureAuto).Script("SELECT count(*) FROM big WHERE grp = 3", c, postgres.Session{})
	var plan strings.Builder
	for _, r := range rows(t, conn, "EXPLAIN (ANALYZE, TIMING off, COSTS off) "+sc.SQL) {
		plan.WriteString(r[0] + "\n")
	}
	if !strings.Contains(plan.String(), "Run Condition") || strings.Contains(plan.String(), "Seq Scan") {
		t.Errorf("%s\n%s", sc.SQL, plan.String())
	}
	_, acc := once(t, conn, sc.SQL, sc.Plans[0])
	if len(acc) != 0 {
		t.Errorf("%d rows are told of too many", len(acc))
	}
}

// TestSavepoint checks that rows which are routed to a partition never get a version that they do not have: inside of a
// savepoint xmin is not the transaction's id.
func TestSavepoint(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	write := r.Script("INSERT INTO part VALUES (9, 'eu', 1)", c, postgres.Session{})
	read := r.Script("SELECT v FROM part WHERE id = 9", c, postgres.Session{})
	for _, before := range []string{"BEGIN", "BEGIN; SAVEPOINT s"} {
		exec(t, conn, before)
		_, wrote := once(t, conn, write.SQL, write.Plans[0])
		_, saw := once(t, conn, read.SQL, read.Plans[0])
		xid := "x" + rows(t, conn, "SELECT pg_current_xact_id()::xid")[0][0]
		exec(t, conn, "ROLLBACK")
		if len(wrote) != 1 || len(saw) != 1 {
			t.Fatalf("%s: wrote %+v, saw %+v", before, wrote, saw)
		}
		if w := wrote[0]; w.Writer != xid || !w.Approx || w.Version != "" {
			t.Errorf("%s: wrote %+v as %s", before, w, xid)
		}
		if s := saw[0]; (s.Writer == xid) == strings.Contains(before, "SAVEPOINT") {
			t.Errorf("%s: saw %+v, written by %s", before, s, xid)
		}
	}
	// A partition that is named itself tells the version in any case.
	direct := r.Script("INSERT INTO part_eu VALUES (9, 'eu', 1)", c, postgres.Session{})
	exec(t, conn, "BEGIN; SAVEPOINT s")
	_, wrote := once(t, conn, direct.SQL, direct.Plans[0])
	_, saw := once(t, conn, read.SQL, read.Plans[0])
	exec(t, conn, "ROLLBACK")
	if len(wrote) != 1 || len(saw) != 1 || wrote[0].Version != saw[0].Version || wrote[0].Approx {
		t.Errorf("wrote %+v, saw %+v", wrote, saw)
	}
}

// TestUnseenWriters checks what is told of rows that MERGE and COPY wrote, which do not say what they did: their
// versions are none that another statement wrote, have no place in the order, and lie before the position of reading.
func TestUnseenWriters(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	run := func(sql string) ([]history.Access, *rewrite.Plan) {
		sc := r.Script(sql, c, postgres.Session{})
		_, acc := once(t, conn, sc.SQL, sc.Plans[0])
		return acc, sc.Plans[0]
	}
	wrote, _ := run("UPDATE account SET balance = 1 WHERE id = 1")
	for _, f := range []struct {
		sql string
		key string
	}{
		{"MERGE INTO account a USING (VALUES (1)) v(id) ON a.id = v.id WHEN MATCHED THEN UPDATE SET balance = 2", "1"},
		{"COPY account FROM STDIN", "77"},
	} {
		var xid string
		exec(t, conn, "BEGIN")
		if strings.HasPrefix(f.sql, "COPY") {
			if _, err := conn.CopyFrom(t.Context(), strings.NewReader("77\tx\t1\t{}\n"), f.sql); err != nil {
				t.Fatal(err)
			}
		} else {
			exec(t, conn, f.sql)
		}
		xid = rows(t, conn, "SELECT pg_current_xact_id()::xid")[0][0]
		exec(t, conn, "COMMIT")
		p := r.Script(f.sql, c, postgres.Session{}).Plans[0]
		if p.Coverage != history.CoverageOpaque || p.Hidden != 0 {
			t.Errorf("%s: coverage %q", f.sql, p.Coverage)
		}
		saw, _ := run("SELECT balance FROM account WHERE id = " + f.key)
		over, _ := run("UPDATE account SET balance = balance + 1 WHERE id = " + f.key)
		if len(saw) != 1 || len(over) != 1 {
			t.Fatalf("%s: saw %+v, then wrote %+v", f.sql, saw, over)
		}
		s, o := saw[0], over[0]
		if s.Version == wrote[0].Version || s.Version == o.Version || s.Writer != "x"+xid || s.Order != history.OrderUnknown ||
			f.key == "1" && s.AsOf <= wrote[0].Order || s.AsOf > o.Order {
			t.Errorf("%s by %s after %+v: saw %+v, then wrote %+v", f.sql, xid, wrote[0], s, o)
		}
	}
}
