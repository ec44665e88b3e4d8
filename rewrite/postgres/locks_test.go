package postgres_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// footprint is what a statement leaves on the server until its transaction ends, and how the server executes it.
type footprint struct {
	Locks []string // of its transaction, by kind and object
	Rows  []string // that it has locked or changed
	Scans []string // the parts of its plan that read tables, each once
}

// footprintOf executes a statement in a transaction that is rolled back; ok is false if the server refuses it, or does not explain it.
func footprintOf(t *testing.T, conn *pgconn.PgConn, sql string) (f footprint, ok bool) {
	t.Helper()
	plan, err := conn.Exec(t.Context(), "BEGIN; EXPLAIN (COSTS OFF) "+sql).ReadAll()
	if err == nil {
		for _, line := range plan[len(plan)-1].Rows {
			// A Bitmap Index Scan stands below the Bitmap Heap Scan that says the same.
			if m := scan.FindStringSubmatch(string(line[0])); m != nil && !strings.Contains(string(line[0]), "Bitmap Index Scan") {
				f.Scans = append(f.Scans, strings.Replace(m[1]+" on "+m[2], "Bitmap Heap", "Index", 1))
			}
		}
		_, err = conn.Exec(t.Context(), sql).ReadAll()
	}
	if err != nil {
		exec(t, conn, "ROLLBACK")
		return f, false
	}
	held, err := conn.Exec(t.Context(), heldLocks+"; "+heldRows+"; ROLLBACK").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range held[0].Rows {
		f.Locks = append(f.Locks, string(r[0]))
	}
	for _, r := range held[1].Rows {
		f.Rows = append(f.Rows, string(r[0]))
	}
	slices.Sort(f.Locks)
	slices.Sort(f.Rows)
	slices.Sort(f.Scans)
	f.Scans = slices.Compact(f.Scans)
	return f, true
}

const heldLocks = `SELECT locktype || ' ' || mode || ' ' || coalesce(relation::regclass::text, '') FROM pg_locks
	WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation IS DISTINCT FROM 'pg_locks'::regclass`

var heldRows = func() string {
	var each []string
	for _, table := range []string{"account", "orders", "pair", "part", "nokey", "logged", "parent_fk", "child_fk"} {
		each = append(each, "SELECT '"+table+" ' || x::text FROM "+table+" x WHERE xmax::text = pg_current_xact_id_if_assigned()::xid::text")
	}
	return strings.Join(each, " UNION ALL ")
}()

// scan tells how a table is read. Which kind of scan of an index it is depends on the statistics, a random sample, and on whether the index has all columns.
var scan = regexp.MustCompile(`(Seq|Index|Bitmap Heap|Tid|Sample|LockRows|Update|Insert|Delete)(?: Only)?(?: Scan)?(?: Backward)?(?: using \S+)? on (\S+)`)

// TestLocks: a changed text takes the same locks as the client's own, by kind and object, and reads the tables in the same way.
func TestLocks(t *testing.T) {
	conn, c, _ := setUp(t)
	all, n := slices.Concat(forms, nativeForms, existenceForms, viewForms, []form{{sql: `DELETE FROM parent_fk`}}), 0
	cascades := 0
	rewriters := []*postgres.Rewriter{postgres.New(rewrite.CaptureAuto), postgres.New(rewrite.CaptureAuto)}
	for i, f := range slices.Concat(all, all) {
		sc := rewriters[i/len(all)].Script(f.sql, c, postgres.Session{Firm: i >= len(all)})
		if len(sc.Plans) != 1 || !sc.Changed(f.sql) {
			continue
		}
		if _, ok := footprintOf(t, conn, f.sql); !ok { // the first time, the server also fills its caches
			continue
		}
		want, _ := footprintOf(t, conn, f.sql)
		got, ok := footprintOf(t, conn, sc.SQL)
		if strings.Contains(sc.SQL, "pg_rewrite") { // outside of a transaction it ends with the statement; the tables of the view are read by their keys, too
			got.Locks = slices.DeleteFunc(got.Locks, func(l string) bool { return strings.Contains(l, "pg_rewrite") })
			want.Scans, got.Scans = nil, nil
		}
		if sc.Plans[0].Cascades != nil { // where the foreign key deletes, it has locked the tables for writing
			got.Locks = slices.DeleteFunc(got.Locks, func(l string) bool {
				table, shared := strings.CutPrefix(l, "relation AccessShareLock ")
				return strings.HasPrefix(table, "pg_trigger") || shared && slices.Contains(want.Locks, "relation RowExclusiveLock "+table)
			})
			want.Scans, got.Scans = nil, nil
			cascades++
		}
		if n++; !ok {
			t.Errorf("%s\nsent %s: refused", f.sql, sc.SQL)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\nsent %s (-direct +sent)\n%s", f.sql, sc.SQL, diff)
		}
	}
	if cascades == 0 {
		t.Error("no form has cascades")
	}
	if n < 100 {
		t.Errorf("only %d forms are compared", n)
	}
}

// TestFootprint: TestLocks sees another lock, another row and another way to read.
func TestFootprint(t *testing.T) {
	conn, _, _ := setUp(t)
	for _, tt := range [][2]string{
		{"SELECT id FROM account", "SELECT id FROM account FOR KEY SHARE"},
		{"SELECT id FROM account WHERE id = 1 FOR UPDATE", "SELECT id FROM account WHERE id = 2 FOR UPDATE"},
		{"SELECT v FROM big WHERE id = 1", "SELECT v FROM big WHERE id + 0 = 1"},
		{"UPDATE account SET balance = 1 WHERE id = 1", "UPDATE account SET balance = 1 WHERE id = 1 AND EXISTS (SELECT 1 FROM orders)"},
	} {
		a, ok := footprintOf(t, conn, tt[0])
		b, ok2 := footprintOf(t, conn, tt[1])
		if !ok || !ok2 || cmp.Equal(a, b) {
			t.Errorf("%s and %s leave the same: %v, %t, %t", tt[0], tt[1], a, ok, ok2)
		}
	}
}

// TestSerializableLocks: at SERIALIZABLE a changed text locks no row that the client's own does not read. At other levels the same text looks for a second row.
func TestSerializableLocks(t *testing.T) {
	conn, _, _ := setUp(t)
	exec(t, conn, "CREATE TABLE many (id int PRIMARY KEY, n int); INSERT INTO many SELECT i, i % 10 FROM generate_series(1, 2000) i; CREATE INDEX ON many (n); ANALYZE many")
	c := catalog(t, conn)
	read := func(level, sql string) (locks, answer string) {
		held := "SELECT string_agg(l, ', ' ORDER BY l) FROM (SELECT concat_ws(' ', relation::regclass, page, tuple) AS l FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid()) x"
		res, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL "+level+"; "+sql+"; "+held+"; ROLLBACK").ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return string(res[2].Rows[0][0]), string(bytes.Join(res[1].Rows[0], []byte("|")))
	}
	for _, sql := range []string{"SELECT 1 AS a FROM many WHERE id > 5 AND id < 9 LIMIT 1", "SELECT 1 AS a FROM many WHERE n = 3 ORDER BY id LIMIT 1", "SELECT EXISTS (SELECT 1 FROM many WHERE id > 5 AND id < 9)",
		"SELECT id FROM account WHERE id = 1 AND EXISTS (SELECT 1 FROM many WHERE id > 1995)"} {
		sent := postgres.New(rewrite.CaptureAuto).Script(sql, c, postgres.Session{}).SQL
		if sent == sql {
			t.Errorf("%s is sent as it is", sql)
		}
		want, _ := read("SERIALIZABLE", sql)
		got, blind := read("SERIALIZABLE", sent)
		if got != want || want == "" {
			t.Errorf("%s\nsent %s\nlocks %s, its own text %s", sql, sent, got, want)
		}
		if _, told := read("READ COMMITTED", sent); strings.Contains(sql, "LIMIT") && len(told) <= len(blind) { // EXISTS tells nothing of two rows
			t.Errorf("%s: tells %s at READ COMMITTED, %s at SERIALIZABLE", sql, told, blind)
		}
	}
}
