package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/oracle"
	"wirecheck/product"
)

var (
	mariaSeed   = flag.Int64("mariadb.truth.seed", 1, "first seed of the random workloads")
	mariaTxns   = flag.Int("mariadb.truth.txns", 40, "transactions of each session of a random workload")
	mariaRounds = flag.Int("mariadb.truth.rounds", 1, "random workloads at each level")
)

// mariaTruth is a random workload that knows what it read and wrote. Every write has a value of its own, so that a read's
// value tells who wrote it, and every statement has a mark by which it is found in the history.
type mariaTruth struct {
	mu     sync.Mutex
	serial int64
	wrote  map[int64]int64              // by mark: the value
	read   map[int64]map[string][]int64 // by mark: the values by key
}

func (w *mariaTruth) next() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	return w.serial
}

// mariaConflict reports whether an error ended the transaction, or the statement at least: what is to be expected of conflicts.
func mariaConflict(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (e.Number == 1062 || product.Of(cmp.Or(os.Getenv(testserver.FamilyVariable), "mariadb")).Error(strconv.Itoa(int(e.Number)), e.Message).Retry)
}

// session runs random transactions on one connection. bypass: it does not go through the proxy, so it writes values that
// nobody can name.
func (w *mariaTruth) session(ctx context.Context, db *sql.DB, level string, seed int64, bypass bool) (err error) {
	r := rand.New(rand.NewSource(seed))
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL "+level); err != nil {
		return err
	}
	for range *mariaTxns {
		end, n := "", 1
		if r.Intn(4) > 0 {
			n = 1 + r.Intn(5)
			if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
				return err
			}
			end = []string{"COMMIT", "COMMIT", "COMMIT", "ROLLBACK"}[r.Intn(4)]
		}
		saved := false
		for range n {
			switch k := r.Intn(12); {
			case end != "" && k == 0:
				saved = true
				_, err = c.ExecContext(ctx, "SAVEPOINT s")
			case saved && k == 1:
				_, err = c.ExecContext(ctx, "ROLLBACK TO s")
			case k < 7:
				err = w.reads(ctx, c, r)
			default:
				err = w.writes(ctx, c, r, bypass)
			}
			if mariaConflict(err) {
				break
			}
			if err != nil {
				return err
			}
		}
		if err != nil {
			end = "ROLLBACK"
		}
		if end != "" {
			if _, err := c.ExecContext(ctx, end); err != nil && !mariaConflict(err) {
				return err
			}
		}
	}
	return nil
}

func (w *mariaTruth) reads(ctx context.Context, c *sql.Conn, r *rand.Rand) error {
	mark := w.next()
	table := []string{"t", "t", "nokey"}[r.Intn(3)]
	where := fmt.Sprintf("id = %d", r.Intn(6))
	if r.Intn(3) == 0 {
		where = fmt.Sprintf("id BETWEEN %d AND %d", r.Intn(3), 3+r.Intn(3))
	}
	lock := []string{"", "", "", " FOR UPDATE", " LOCK IN SHARE MODE"}[r.Intn(5)]
	if testserver.IsTiDB() {
		lock = strings.Replace(lock, "LOCK IN SHARE MODE", "FOR UPDATE", 1) // it has no shared locks
	}
	args := []any{}
	if r.Intn(2) == 0 { // binary protocol
		where, args = where+" AND 1 = ?", []any{1}
	}
	value := "v"
	if table == "t" && lock == "" && len(args) == 0 && r.Intn(3) == 0 { // the same row twice: outside and by a subquery
		value = "(SELECT b.v FROM t b WHERE b.id >= t.id ORDER BY b.id LIMIT 1)"
	}
	rows, err := c.QueryContext(ctx, fmt.Sprintf("SELECT /* q%d */ id, %s FROM %s WHERE %s%s", mark, value, table, where, lock), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	got := make(map[string][]int64)
	for rows.Next() {
		var id, v int64
		if err := rows.Scan(&id, &v); err != nil {
			return err
		}
		key := ""
		if table == "t" {
			key = fmt.Sprintf("id=%d", id)
		}
		got[key] = append(got[key], v)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[mark] = got
	return rows.Err()
}

func (w *mariaTruth) writes(ctx context.Context, c *sql.Conn, r *rand.Rand, bypass bool) error {
	mark := w.next()
	value := mark
	form := r.Intn(14)
	if bypass || form == 0 || form == 13 && testserver.IsTiDB() { // it does not see the latter
		value = -mark
	}
	w.mu.Lock()
	w.wrote[mark] = value
	w.mu.Unlock()
	id := r.Intn(6)
	q := fmt.Sprintf("/* q%d */", mark)
	v := strconv.FormatInt(value, 10)
	var args []any
	if r.Intn(2) == 0 && !testserver.IsTiDB() { // prepared writes are not seen there
		v, args = "?", []any{value}
	}
	var text string
	switch form {
	case 0: // not seen
		text = fmt.Sprintf("UPDATE %s t JOIN nokey k ON k.id = t.id SET t.v = %s WHERE t.id = %d", q, v, id)
	case 1:
		text = fmt.Sprintf("UPDATE %s t SET v = %s WHERE id BETWEEN %d AND %d", q, v, id, id+2)
	case 2:
		text = fmt.Sprintf("UPDATE %s nokey SET v = %s WHERE id = %d", q, v, id)
	case 3:
		text = fmt.Sprintf("UPDATE %s t SET v = v WHERE id = %d", q, id)
		args = nil
	case 4:
		text = fmt.Sprintf("DELETE %s FROM t WHERE id = %d", q, id)
		args = nil
	case 5:
		text = fmt.Sprintf("INSERT %s INTO t VALUES (%d, %s)", q, id, v)
	case 6:
		text = fmt.Sprintf("INSERT %s INTO t VALUES (%d, %s) ON DUPLICATE KEY UPDATE v = VALUES(v)", q, id, v)
	case 7:
		text = fmt.Sprintf("REPLACE %s INTO t (id, v) VALUES (%d, %s)", q, id, v)
	case 8:
		text = fmt.Sprintf("UPDATE %s t SET v = %s, id = id + 3 WHERE id = %d", q, v, id%3)
	case 12:
		text = fmt.Sprintf("DELETE %s FROM t WHERE id IN (SELECT id FROM nokey WHERE id = %d)", q, id)
		args = nil
	case 13:
		text = fmt.Sprintf("INSERT %s INTO nokey (id, v) SELECT %d, %s FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = %d)", q, id, v, id)
	case 9:
		text = fmt.Sprintf("INSERT %s INTO nokey SELECT id, %s FROM t WHERE id = %d", q, v, id)
	default:
		text = fmt.Sprintf("UPDATE %s t SET v = %s WHERE id = %d", q, v, id)
	}
	if bypass { // on TiDB the hidden columns are not hidden from it
		text = strings.NewReplacer("INTO t VALUES", "INTO t (id, v) VALUES", "INTO nokey SELECT", "INTO nokey (id, v) SELECT").Replace(text)
	}
	_, err := c.ExecContext(ctx, text, args...)
	return err
}

var (
	mariaMark  = regexp.MustCompile(`/\* q(\d+) \*/`)
	mariaStamp = regexp.MustCompile(`^\d+:T(\d+)\.(\d+)\.`)
)

// verify reads the history and compares what it says with what the sessions saw. It gives the number of reads that
// were compared.
func (w *mariaTruth) verify(t *testing.T, path string) (compared int) {
	t.Helper()
	type statement struct {
		txn uint64
		n   int
	}
	var events []history.Event
	marks := make(map[statement]int64)
	for ev := range recorded(t, path) {
		events = append(events, ev)
		if m := mariaMark.FindStringSubmatch(ev.SQL); m != nil {
			marks[statement{ev.Txn, ev.N}], _ = strconv.ParseInt(m[1], 10, 64)
		}
	}
	for _, ev := range events {
		if ev.Kind != history.EventStmt || ev.Verb != "select" || ev.Coverage != history.CoverageExact || ev.Error != nil {
			continue
		}
		saw, ok := w.read[marks[statement{ev.Txn, ev.N}]]
		if !ok {
			continue
		}
		named := make(map[string][]int64)
		rows := 0
		for _, a := range ev.Accesses {
			rows++
			m := mariaStamp.FindStringSubmatch(a.Version)
			if m == nil {
				named[a.Name] = append(named[a.Name], 0)
				continue
			}
			txn, _ := strconv.ParseUint(m[1], 10, 64)
			n, _ := strconv.Atoi(m[2])
			by, ok := marks[statement{txn, n}]
			if !ok {
				t.Errorf("%s read version %s, whose statement is not in the history", ev.SQL, a.Version)
				continue
			}
			named[a.Name] = append(named[a.Name], w.wrote[by])
		}
		for key, values := range saw {
			rows -= len(values)
			got := named[key]
			if key == "" {
				key = "row"
			}
			// Who is not seen leaves the stamp of whoever wrote before (negative values).
			known := slices.DeleteFunc(slices.Clone(values), func(v int64) bool { return v <= 0 })
			for _, v := range known {
				if !slices.Contains(got, v) {
					t.Errorf("%s: %s has the value %d, the history names the writers of %v", ev.SQL, key, v, got)
				}
				compared++
			}
		}
		if rows != 0 {
			t.Errorf("%s: %d more rows in the history than in the answer: %v, %v", ev.SQL, rows, ev.Accesses, saw)
		}
	}
	return compared
}

// TestTruthOnMariaDB runs random transactions at every level, and checks the history against the values that were read,
// and the findings against what the product promises.
func TestTruthOnMariaDB(t *testing.T) {
	for _, test := range []struct {
		level    string
		snapshot bool // innodb_snapshot_isolation
		bypass   bool // some writers are not seen
		never    func(f oracle.Finding) bool
	}{
		{"SERIALIZABLE", false, false, func(oracle.Finding) bool { return true }},
		{"SERIALIZABLE", false, true, func(oracle.Finding) bool { return true }},
		{"REPEATABLE READ", false, true, mariaNeverG1},
		{"REPEATABLE READ", true, true, func(f oracle.Finding) bool { return mariaNeverG1(f) || f.Title() == "lost update" }},
		{"READ COMMITTED", false, true, mariaNeverG1},
		{"READ UNCOMMITTED", false, true, func(f oracle.Finding) bool { return f.Class == anomaly.G0 }},
	} {
		t.Run(fmt.Sprintf("%s, snapshot %v, bypass %v", test.level, test.snapshot, test.bypass), func(t *testing.T) {
			if testserver.IsTiDB() && !slices.Contains([]string{"REPEATABLE READ", "READ COMMITTED"}, test.level) {
				t.Skip("TiDB has no such level")
			}
			for round := range int64(*mariaRounds) {
				seed := *mariaSeed + round
				if test.snapshot && testserver.IsMySQL() {
					t.Skip("MySQL has no innodb_snapshot_isolation")
				}
				w := newWorld(t, testserver.Family(t).Engine, "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT)", "CREATE TABLE nokey (id INT, v BIGINT)",
					"INSERT INTO t VALUES (0,0),(1,0),(2,0),(3,0),(4,0)", "INSERT INTO nokey VALUES (0,0),(1,0),(2,0),(3,0),(4,0)")
				if test.snapshot && testserver.IsTiDB() {
					w.globally(t, "SET GLOBAL tidb_txn_mode = 'optimistic'", "SET GLOBAL tidb_txn_mode = 'pessimistic'")
				} else if test.snapshot {
					w.globally(t, "SET GLOBAL innodb_snapshot_isolation = ON", "SET GLOBAL innodb_snapshot_isolation = OFF")
				}
				w.globally(t, "SET GLOBAL innodb_lock_wait_timeout = 1", "SET GLOBAL innodb_lock_wait_timeout = DEFAULT")
				th := w.observe(t)
				run := &mariaTruth{wrote: make(map[int64]int64), read: make(map[int64]map[string][]int64)}
				through := w.server.At(th.target.Host, th.target.Port).MariaDB(t)
				direct := w.server.MariaDB(t)
				g, ctx := errgroup.WithContext(context.Background())
				for i := range int64(5) {
					g.Go(func() error { return run.session(ctx, through, test.level, seed*100+i, false) })
				}
				if test.bypass {
					g.Go(func() error { return run.session(ctx, direct, test.level, seed*100+50, true) })
				}
				if err := g.Wait(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if err := through.Close(); err != nil {
					t.Fatal(err)
				}
				got := th.stop(t)
				for _, f := range got.findings {
					if test.never(f) {
						t.Errorf("seed %d: %s at %s\n%s", seed, f.Title(), test.level, got.report)
						break
					}
				}
				compared := run.verify(t, th.file)
				if compared < *mariaTxns {
					t.Errorf("seed %d: only %d reads were compared", seed, compared)
				}
				var names []string
				for _, f := range got.findings {
					names = append(names, f.Title())
				}
				t.Logf("seed %d: %d values compared; %s; %s", seed, compared, strings.Join(names, ", "), got.coverage)
			}
		})
	}
}

// mariaNeverG1 are the anomalies that a snapshot of committed rows rules out, whatever its age.
func mariaNeverG1(f oracle.Finding) bool {
	return slices.Contains([]oracle.Class{anomaly.G0, anomaly.G1a, anomaly.G1b, anomaly.G1c}, f.Class)
}
