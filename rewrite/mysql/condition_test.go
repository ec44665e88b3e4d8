package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// conditions for the table many of the tests below.
var conditions = []string{
	"", "1=1", "1=0", "id=5", "id=5 AND k=5", "id=5 AND k=6", "id=5 AND note='n9'", "id=1000", "id BETWEEN 10 AND 50", "id IN (1,2,3)", "id>390 OR k=4", "id=5 OR id=6 AND k=6",
	"k=3", "k BETWEEN 2 AND 3", "k=3 AND c='c1'", "k=3 AND id<100", "k=3 OR id=7", "k=3 AND note=c", "k=3 AND (c='c1' OR note='n2')", "NOT (k=3)", "k<>3", "k IS NULL",
	"note='n1' AND k=2 AND id>50", "id=k", "id=k AND k=4", "id=k AND k=4 AND c='c4'", "k=m AND m=id", "k=m AND m=4 AND note<>'n1'", "(k,id) IN ((1,1),(2,2))", "m=3 AND k=3", "m=3 AND k>2 AND note LIKE 'n%'",
	"m=3 AND MOD(k,2)=1 AND MOD(id,2)=1", "k=3 AND m=3", "u=10", "u=10 AND k=1", "u IS NULL", "u IS NULL AND k=3 AND c='c2'", "u<20 OR m=5", "c='c1' AND note='n1'", "c LIKE 'c1%' AND u>3",
	"c>'c5' AND k=1", "MOD(id,3)=0 AND k>5", "k+0=3 AND c='c1'", "IF(k=1,c='c1',c='c2') AND m<10", "CASE k WHEN 1 THEN 1 WHEN 2 THEN u END", "k XOR 1", "k=3 AND k=3 AND k<5 AND k>1", "k=3 AND k=4",
}

// Statements that tell what they read by a part of their condition log exactly the rows that fulfil the rest of it, each
// once, and are executed as without it.
func TestConditionLogs(t *testing.T) {
	if flavor() == MySQL {
		t.Skip("there only writes are logged: TestDeleteConditions")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	settings := []string{
		"SET @x=1",
		"SET optimizer_switch='mrr=on,mrr_sort_keys=on,index_merge_sort_intersection=on,rowid_filter=on,condition_pushdown_for_subquery=on', optimizer_use_condition_selectivity=5",
		"SET optimizer_switch='index_condition_pushdown=off', tmp_memory_table_size=0, sort_buffer_size=32768",
	}
	const at = "/**/"
	statements := []string{
		"SELECT DISTINCT c FROM many" + at,
		"SELECT DISTINCT c, note FROM many" + at + " ORDER BY id",
		"SELECT DISTINCT c, note FROM many" + at + " ORDER BY c DESC, note",
		"SELECT DISTINCT id, note FROM many" + at,
		"SELECT DISTINCT k, note FROM many" + at + " ORDER BY k",
		"SELECT DISTINCT SQL_BIG_RESULT note FROM many" + at + " ORDER BY note DESC",
		"SELECT DISTINCT note, COUNT(*), MAX(note) FROM many" + at + " GROUP BY note",
		"SELECT DISTINCT UPPER(note) FROM many FORCE INDEX (k)" + at + " ORDER BY 1",
		"SELECT DISTINCT k, note FROM many FORCE INDEX (PRIMARY)" + at + " ORDER BY id",
		"SELECT DISTINCT note FROM many FORCE INDEX (m)" + at,
		"SELECT DISTINCT note FROM many FORCE INDEX (c)" + at,
		"SELECT k, note, COUNT(*) FROM many" + at + " GROUP BY k, note WITH ROLLUP",
		"SELECT note FROM many" + at + " UNION SELECT 'x'",
		"SELECT note FROM many FORCE INDEX (k)" + at + " UNION ALL SELECT 'x'",
		"(SELECT c FROM many" + at + " ORDER BY c) INTERSECT SELECT 'c1'",
		"SELECT note FROM many" + at + " EXCEPT SELECT 'n1'",
		"SELECT 'x' UNION (SELECT COUNT(note) FROM many" + at + ")",
	}
	n, rows := 0, 0
	for _, set := range settings {
		p.plain.exec(t, set)
		p.wired.exec(t, set)
		for _, head := range statements {
			for _, where := range conditions {
				if where != "" {
					where = " WHERE " + where
				}
				sql := strings.ReplaceAll(head, at, where)
				script := p.rewriter.Script(sql, p.catalog, p.session)
				if plan := script.Plans[0]; plan.Coverage != history.CoverageExact || !plan.Log || plan.Hidden != 0 {
					if !strings.Contains(plan.Why, "index") || strings.Contains(head, "note") {
						t.Errorf("%s: %+v", sql, *plan)
					}
					continue
				}
				n++
				p.wired.exec(t, SetToken("T1.1.x"))
				want, got := p.plain.exec(t, sql), p.wired.exec(t, script.SQL)
				if diff := cmp.Diff(want.rows, got.rows); diff != "" || want.warnings != got.warnings {
					t.Errorf("%s: warnings %d and %d (-plain +wired):\n%s", sql, want.warnings, got.warnings, diff)
				}
				log, truncated, err := DecodeLog([]byte(p.wired.fetchLog(t)))
				if err != nil || truncated {
					t.Fatal(sql, truncated, err)
				}
				var read, fulfil []string
				for _, a := range log["T1.1.x"] {
					read = append(read, a.Row.Key)
				}
				for _, r := range p.wired.texts(t, "SELECT "+keyOf(p.relation("many"))+" FROM many"+where) {
					fulfil = append(fulfil, r[0])
				}
				slices.Sort(read)
				slices.Sort(fulfil)
				rows += len(read)
				if !slices.Equal(read, fulfil) {
					t.Errorf("%s: %d rows logged, %d fulfil the condition", sql, len(read), len(fulfil))
				}
				explain := func(s *side, sql string) (lines []string) {
					for _, r := range s.texts(t, "EXPLAIN "+sql) {
						r[1] = strings.TrimPrefix(r[1], "UNCACHEABLE ") // it would be executed again if it were a subquery
						r[len(r)-1] = strings.Trim(strings.ReplaceAll(r[len(r)-1], "Using where", ""), "; ")
						lines = append(lines, strings.ReplaceAll(strings.Join(r, "|"), "; ;", ";"))
					}
					return lines
				}
				if diff := cmp.Diff(explain(p.plain, sql), explain(p.wired, script.SQL)); diff != "" {
					t.Errorf("%s: plans (-plain +wired):\n%s", sql, diff)
				}
			}
		}
	}
	if n < 2000 || rows < 50_000 {
		t.Errorf("only %d statements that read %d rows", n, rows)
	}
}

func TestPlainConditions(t *testing.T) {
	cat := testCatalog(t)
	list := strings.Repeat("1,", listLimit)
	for where, want := range map[string]bool{
		"": true, " WHERE note = ? AND balance BETWEEN ? AND -1": true, " WHERE NOT note LIKE 'x%' OR (id, note) = (1, 'x')": true,
		" WHERE balance IN (" + list[:len(list)-1] + ")": true, " WHERE balance IN (" + list + "1)": false,
		" WHERE DATE(note) = CURDATE() - INTERVAL 1 DAY": true, " WHERE note REGEXP 'x' IS TRUE": true,
		" WHERE RAND() < 1": false, " WHERE @x": false, " WHERE @@sql_mode = ''": false, " WHERE (@x := 1) = 1": false, " WHERE SLEEP(0) = 0": false, " WHERE UUID() = note": false,
		" WHERE EXISTS (SELECT 1)": false, " WHERE id = (SELECT 1)": false, " WHERE f(id)": false, " WHERE shop.lower(note)": false, " WHERE MATCH (note) AGAINST ('x')": false,
		" WHERE DEFAULT(id) = 1": false, " WHERE LAST_INSERT_ID(id) = 1": false, " WHERE GET_LOCK('x', 1)": false,
	} {
		p := New(MariaDB, "").Script("SELECT DISTINCT note FROM account"+where, cat, Session{Database: "shop"}).Plans[0]
		if got := p.Coverage == history.CoverageExact; got != want || got != p.Log || got != p.Stamp || got != (len(p.Edits) > 0) {
			t.Errorf("%s: %+v", where, *p)
		}
	}
}

// makeMany makes the table many in both databases.
func makeMany(t *testing.T, p *pair) {
	t.Helper()
	for _, s := range []*side{p.plain, p.wired} {
		s.exec(t, "CREATE TABLE many (id INT PRIMARY KEY, k INT, m INT, c VARCHAR(40), note TEXT, u INT NULL, KEY k (k), KEY m (m, k), UNIQUE KEY u (u), KEY c (c(3)))")
	}
	p.load(t)
	for _, sql := range AddColumns(flavor(), p.relation("many")) {
		p.wired.exec(t, sql)
	}
	p.load(t)
	for _, s := range []*side{p.plain, p.wired} {
		s.exec(t, "INSERT INTO many (id,k,m,c,note,u) SELECT seq, seq%10, seq%23, CONCAT('c',seq%7), CONCAT('n',seq%5), IF(seq%3, seq, NULL) FROM "+sequence(400))
		if flavor() == MySQL {
			s.exec(t, "ANALYZE TABLE many")
		} else {
			s.exec(t, "ANALYZE TABLE many PERSISTENT FOR ALL")
		}
	}
}

// A DELETE logs exactly the rows that it deletes, whatever plan the server makes for its condition.
var subqueryConditions = []string{
	"k IN (SELECT qty FROM item)",
	"k IN (SELECT qty FROM item) AND m > 1",
	"m > 1 AND k NOT IN (SELECT qty FROM item WHERE qty IS NOT NULL)",
	"EXISTS (SELECT 1 FROM item WHERE item.qty = many.k)",
	"NOT EXISTS (SELECT 1 FROM item WHERE item.qty = many.k AND item.account_id < many.id)",
	"k = (SELECT MAX(qty) FROM item)",
	"k > (SELECT MIN(qty) FROM item) AND c LIKE 'c%'",
	"k > ALL (SELECT qty FROM item WHERE qty IS NOT NULL) OR m = ANY (SELECT id FROM item)",
	"(k, m) IN (SELECT qty, account_id FROM item) OR id < 5",
	"id IN (SELECT id FROM item WHERE account_id IN (SELECT id FROM account))",
	"id IN (SELECT q.id FROM (SELECT id FROM item ORDER BY id DESC LIMIT 2) q)",
	"m IN (SELECT qty FROM item GROUP BY qty HAVING COUNT(*) > 1)",
}

func TestDeleteConditions(t *testing.T) {
	p := newPair(t, 0)
	makeMany(t, p)
	many := p.relation("many")
	n, rows := 0, 0
	all := conditions
	if flavor() == MariaDB {
		all = slices.Concat(conditions, subqueryConditions)
	}
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		p.wired.exec(t, "SET SESSION TRANSACTION ISOLATION LEVEL "+level)
		for _, tail := range []string{"", " LIMIT 3"} {
			for i, where := range all {
				want := history.CoverageExact
				if i >= len(conditions) {
					want = history.CoverageApproximate
				}
				sql := "DELETE FROM many"
				if where != "" {
					sql += " WHERE " + where
				}
				script := p.rewriter.Script(sql+tail, p.catalog, p.session)
				if plan := script.Plans[0]; plan.Coverage != want || !plan.Log {
					t.Errorf("%s: %+v", sql, *plan)
					continue
				}
				n++
				keys := func() (list []string) {
					for _, r := range p.wired.texts(t, "SELECT "+keyOf(many)+" FROM many") {
						list = append(list, r[0])
					}
					return list
				}
				p.wired.exec(t, "BEGIN")
				before := keys()
				p.wired.exec(t, SetToken("T1.1.x"))
				if r := p.wired.conn.send(t, script); r.err != "" || r.warnings != 0 {
					t.Errorf("%s: %s, %d warnings", sql, r.err, r.warnings)
				}
				log, truncated, err := DecodeLog([]byte(p.wired.fetchLog(t)))
				if err != nil || truncated {
					t.Fatal(sql, truncated, err)
				}
				after := keys()
				p.wired.exec(t, "ROLLBACK")
				gone := slices.DeleteFunc(before, func(k string) bool { return slices.Contains(after, k) })
				var logged []string
				for _, a := range log["T1.1.x"] {
					logged = append(logged, a.Row.Key)
				}
				rows += len(gone)
				slices.Sort(gone)
				slices.Sort(logged)
				if !slices.Equal(gone, logged) {
					t.Errorf("%s%s: %d rows are gone, %d are logged", sql, tail, len(gone), len(logged))
				}
			}
		}
	}
	if n < 190 || rows < 4000 {
		t.Errorf("only %d statements that deleted %d rows", n, rows)
	}
}
