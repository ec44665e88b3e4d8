package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/internal/shop"
	"wirecheck/oracle"
	"wirecheck/product"
)

var (
	truthSeed = flag.Uint64("truth-seed", 1, "seed of the random workload")
	truthTxns = flag.Int("truth-txns", 60, "transactions of each of its clients")
)

// truth is what the clients of a random workload know for certain. Every write appends a number that no other statement
// appends, so each row that is read tells which statements wrote it, in which order.
type truth struct {
	mu       sync.Mutex
	asked    map[string]*asked // statements by their mark
	authors  map[int64]int64   // the client's number of the transaction that appended a number
	outcomes map[int64]history.Outcome
	numbers  atomic.Int64
}

// asked is one statement as its client saw it.
type asked struct {
	txn  int64
	rows [][2]string // key and list of what was returned
	done bool        // without an error
}

const truthClients = 6

// TestRandomWorkload runs random transactions through the proxy and compares what was recorded with what the rows
// themselves say, and what was reported with what the level can let through.
func TestRandomWorkload(t *testing.T) {
	t.Parallel()
	never := []oracle.Class{anomaly.G0, anomaly.G1a, anomaly.G1b, anomaly.G1c}
	for level, let := range map[string]func(f oracle.Finding) bool{
		"serializable": func(oracle.Finding) bool { return false },
		// A key that was deleted and inserted again is not protected by snapshots.
		"repeatable read": func(f oracle.Finding) bool { return f.Kind == oracle.KindAnomaly && !slices.Contains(never, f.Class) },
		"read committed":  func(f oracle.Finding) bool { return !slices.Contains(never, f.Class) },
	} {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t, "postgres",
				"CREATE TABLE listed (id INT PRIMARY KEY, list TEXT NOT NULL)", "CREATE TABLE pair (a INT, b TEXT, list TEXT NOT NULL, PRIMARY KEY (a, b))",
				"CREATE TABLE loose (id INT NOT NULL, list TEXT NOT NULL)",
				"INSERT INTO listed SELECT i, '0' FROM generate_series(1, 6) i", "INSERT INTO pair SELECT i, 'k', '0' FROM generate_series(1, 6) i",
				"INSERT INTO loose SELECT i, '0' FROM generate_series(1, 6) i")
			th := w.observe(t)
			tr := &truth{asked: map[string]*asked{}, authors: map[int64]int64{}, outcomes: map[int64]history.Outcome{}}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			stop := make(chan struct{})
			var movers, clients sync.WaitGroup
			movers.Go(func() { w.move(ctx, t, stop) })
			for i := range truthClients {
				clients.Go(func() {
					rng := rand.New(rand.NewPCG(*truthSeed, uint64(i)))
					if err := tr.client(ctx, th, rng, level); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				})
			}
			clients.Wait()
			close(stop)
			movers.Wait()
			got := th.stop(t)
			for _, f := range got.findings {
				if !let(f) {
					t.Errorf("%s is reported at %s:\n%s", f.Class, level, got.report)
					break
				}
			}
			tr.check(t, th.file)
			t.Logf("%d findings; %s", len(got.findings), got.coverage)
		})
	}
}

// move does to the tables what an administrator does while clients work: rows get other places, nothing else changes.
func (w *world) move(ctx context.Context, t *testing.T, stop chan struct{}) {
	c, err := pgx.Connect(ctx, postgresURL(w.direct))
	if err != nil {
		t.Errorf("connect: %v", err)
		return
	}
	defer c.Close(ctx)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		for _, sql := range []string{"VACUUM listed, pair, loose", "VACUUM FULL listed", "CLUSTER pair USING pair_pkey", "VACUUM FULL loose"} {
			if _, err := c.Exec(ctx, sql); err != nil && !strings.Contains(err.Error(), "40P01") {
				t.Errorf("%s: %v", sql, err)
				return
			}
		}
	}
}

// client runs transactions of one session.
func (tr *truth) client(ctx context.Context, th *through, rng *rand.Rand, level string) error {
	c, err := pgx.Connect(ctx, postgresURL(th.target))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "+level); err != nil {
		return err
	}
	for range *truthTxns {
		if err := tr.transaction(ctx, c, rng); err != nil {
			return err
		}
	}
	return nil
}

func (tr *truth) transaction(ctx context.Context, c *pgx.Conn, rng *rand.Rand) error {
	txn := tr.numbers.Add(1)
	if rng.IntN(4) == 0 { // autocommit
		err := tr.statement(ctx, c, rng, txn)
		tr.ended(txn, err == nil)
		return tolerated(err)
	}
	if _, err := c.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	saved := false
	for range 1 + rng.IntN(5) {
		var err error
		switch k := rng.IntN(12); {
		case k == 0:
			_, err = c.Exec(ctx, "SAVEPOINT s")
			saved = err == nil
		case k == 1 && saved:
			_, err = c.Exec(ctx, "ROLLBACK TO s")
		case k == 2 && saved:
			_, err = c.Exec(ctx, "RELEASE s")
			saved = false
		default:
			err = tr.statement(ctx, c, rng, txn)
		}
		if err == nil {
			continue
		}
		if err := tolerated(err); err != nil {
			return err
		}
		if !saved || rng.IntN(2) == 0 {
			break
		}
		if _, err := c.Exec(ctx, "ROLLBACK TO s"); err != nil {
			return err
		}
	}
	end := "COMMIT"
	if rng.IntN(6) == 0 {
		end = "ROLLBACK"
	}
	tag, err := c.Exec(ctx, end)
	tr.ended(txn, err == nil && tag.String() == "COMMIT")
	return tolerated(err)
}

// ended notes how a transaction ended, as its client knows it.
func (tr *truth) ended(txn int64, committed bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.outcomes[txn] = history.OutcomeAborted
	if committed {
		tr.outcomes[txn] = history.OutcomeCommitted
	}
}

// tolerated drops the errors that a correct program meets: serialization failures, deadlocks, duplicate keys.
func tolerated(err error) error {
	if err == nil {
		return nil
	}
	for _, code := range []string{"40001", "40P01", "23505", "25P02"} {
		if strings.Contains(err.Error(), code) {
			return nil
		}
	}
	return err
}

// statement asks one random question or makes one random change.
func (tr *truth) statement(ctx context.Context, c *pgx.Conn, rng *rand.Rand, txn int64) error {
	n := tr.numbers.Add(1)
	id := 1 + rng.IntN(6)
	mark := fmt.Sprintf("%d = %d", n, n)
	table, key := "listed", "id::text"
	set := fmt.Sprintf("list = list || ',%d'", n)
	where := fmt.Sprintf("id = %d", id)
	switch rng.IntN(3) {
	case 0:
		table, key, where = "pair", "a || ' ' || quote_literal(b)", fmt.Sprintf("a = %d AND b = 'k'", id)
	case 1:
		table, key = "loose", "''"
	}
	if rng.IntN(4) == 0 {
		where = strings.Replace(where, "=", "<=", 1)
	}
	column := strings.Fields(where)[0]
	var sql string
	a := &asked{txn: txn}
	switch rng.IntN(14) {
	case 12: // the same row twice: outside and by a subquery
		sql = fmt.Sprintf("SELECT id::text, (SELECT l.list FROM listed l WHERE l.id >= o.id ORDER BY l.id LIMIT 1) FROM listed o WHERE id = %d AND %s", id, mark)
	case 13: // a worker takes a job
		sql = fmt.Sprintf("UPDATE listed SET %s WHERE id = (SELECT id FROM listed WHERE id <= %d AND %s ORDER BY id DESC FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id::text, list", set, id, mark)
	case 0, 1, 2, 3:
		sql = fmt.Sprintf("SELECT %s, list FROM %s WHERE %s AND %s", key, table, where, mark)
	case 4:
		sql = fmt.Sprintf("SELECT %s, list FROM %s WHERE %s AND %s FOR %s", key, table, where, mark, []string{"UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE"}[rng.IntN(4)])
	case 5:
		sql = fmt.Sprintf("DELETE FROM %s WHERE %s AND %s RETURNING %s, list", table, where, mark, key)
	case 6:
		sql = fmt.Sprintf("INSERT INTO listed SELECT %d, '%d' WHERE %s RETURNING id::text, list", id, n, mark)
	case 7:
		sql = fmt.Sprintf("INSERT INTO listed VALUES (%d, '%d') ON CONFLICT (id) DO UPDATE SET list = listed.list || ',%d' WHERE %s RETURNING id::text, list", id, n, n, mark)
	case 8:
		sql = fmt.Sprintf("INSERT INTO loose SELECT %d, '%d' WHERE %s RETURNING '', list", id, n, mark)
	case 9:
		sql = fmt.Sprintf("UPDATE %s SET %s, %s = %d WHERE %s AND %s RETURNING %s, list", table, set, column, 1+rng.IntN(6), where, mark, key)
	default:
		sql = fmt.Sprintf("UPDATE %s SET %s WHERE %s AND %s RETURNING %s, list", table, set, where, mark, key)
	}
	tr.mu.Lock()
	tr.asked[mark] = a
	tr.authors[n] = txn
	tr.mu.Unlock()
	mode := []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec}[rng.IntN(3)]
	rows, err := c.Query(ctx, sql, mode)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (row [2]string, err error) {
		return row, r.Scan(&row[0], &row[1])
	})
	if err != nil {
		return err
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	a.rows, a.done = all, true
	return nil
}

// TestMovedVersions gives the last version of a row the place that its first one had, which the same transaction wrote.
func TestMovedVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres", "CREATE TABLE moved (id INT PRIMARY KEY, v INT)", "INSERT INTO moved VALUES (2, 0)")
	th := w.observe(t)
	c, err := th.target.Connect(t.Context(), shop.Driver)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, sql := range []string{"BEGIN", "INSERT INTO moved VALUES (1, 1)", "UPDATE moved SET v = 2 WHERE id = 1", "COMMIT", "", "SELECT * FROM moved", "UPDATE moved SET v = 3"} {
		if sql == "" {
			w.run(t, "VACUUM FULL moved")
			continue
		}
		if _, err := c.Do(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if got := th.stop(t); len(got.findings) > 0 {
		t.Errorf("moved versions are taken for others:\n%s", got.report)
	}
}

// TestRenewedKey deletes and inserts a key under the eyes of a snapshot. PostgreSQL lets that through at REPEATABLE READ
// and does not promise otherwise.
func TestRenewedKey(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{"repeatable read": "anomaly", "serializable": ""} {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t, "postgres", "CREATE TABLE renewed (id INT PRIMARY KEY, v INT)", "INSERT INTO renewed VALUES (1, 0)")
			th := w.observe(t)
			s := newStage(t, t.Context(), w.direct, th.target, level)
			s.play(t.Context(), []string{"1 begin", "1 select * from renewed where id = 1", "2 begin", "2 delete from renewed where id = 1", "2 commit",
				"1 insert into renewed values (1, 7)", "1 commit"})
			got, kind := th.stop(t), ""
			for _, f := range got.findings {
				kind += string(f.Kind)
				if f.PreventedBy != product.Serializable {
					t.Errorf("prevented by %q, want serializable", f.PreventedBy)
				}
			}
			if kind != want {
				t.Errorf("reported %q, want %q\n%s\n%s", kind, want, strings.Join(s.told, "\n"), got.report)
			}
		})
	}
}

func postgresURL(t shop.Target) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(t.User, t.Password), Host: net.JoinHostPort(t.Host, strconv.Itoa(t.Port)), Path: t.Database}
	return u.String()
}

var marked = regexp.MustCompile(`(\d+) = (\d+)(?: |$)`)

// check compares the recorded history with what the clients know.
func (tr *truth) check(t *testing.T, file string) {
	t.Helper()
	var all []history.Event
	txns := map[uint64]int64{}   // the clients' numbers of the history's transactions
	tokens := map[string]int64{} // and of their tokens
	for ev := range recorded(t, file) {
		if ev.Kind == history.EventEnd && txns[ev.Txn] != 0 && ev.Outcome != tr.outcomes[txns[ev.Txn]] {
			t.Errorf("transaction %d: recorded as %s, the client knows it %s", ev.Txn, ev.Outcome, tr.outcomes[txns[ev.Txn]])
		}
		if ev.Kind != history.EventStmt {
			continue
		}
		if a := tr.of(&ev); a != nil {
			txns[ev.Txn] = a.txn
			all = append(all, ev)
		}
		for _, token := range ev.Tokens {
			tokens[token] = txns[ev.Txn]
		}
	}
	orders := map[int64][2]uint64{} // of what appended a number: the lowest and the highest place
	checked := 0
	for i := range all {
		ev := &all[i]
		a := tr.of(ev)
		if a.done && ev.Error != nil {
			t.Errorf("%s: an error was recorded: %v", ev.SQL, ev.Error)
		}
		if !a.done || ev.Coverage == history.CoverageOpaque { // what came before an error does not count
			continue
		}
		twice := strings.Contains(ev.SQL, "SELECT l.list")
		if twice && len(a.rows) > 1 { // a snapshot shows a key that another transaction left and this one took: the subquery has a choice
			continue
		}
		var said, told []string
		for _, row := range a.rows {
			said = append(said, tr.said(ev, a, row))
		}
		for _, acc := range ev.Accesses {
			if text := tr.told(ev, a, &acc, tokens); text != "" {
				told = append(told, text)
			}
		}
		slices.Sort(said)
		slices.Sort(told)
		if twice {
			told = slices.Compact(told)
		}
		if strings.Join(said, "; ") != strings.Join(told, "; ") {
			t.Errorf("%s\nthe rows say  %v\nrecorded were %v", ev.SQL, said, told)
		}
		checked += len(said)
		for _, acc := range ev.Accesses {
			if n := tr.number(ev); acc.Version != "" && acc.Op.Writes() && acc.Order > 0 {
				o, ok := orders[n]
				if !ok {
					o = [2]uint64{acc.Order, acc.Order}
				}
				orders[n] = [2]uint64{min(o[0], acc.Order), max(o[1], acc.Order)}
			}
		}
	}
	for _, a := range tr.asked {
		for _, row := range a.rows {
			list := numbers(row[1])
			for i := 1; i < len(list); i++ {
				if was, now := orders[list[i-1]], orders[list[i]]; was[0] > 0 && now[1] > 0 && was[0] >= now[1] {
					t.Errorf("%d was written before %d, but the recorded places are %v and %v", list[i-1], list[i], was, now)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no access was compared")
	}
	t.Logf("%d accesses compared", checked)
}

// of finds the statement of an event.
func (tr *truth) of(ev *history.Event) *asked {
	m := marked.FindAllString(ev.SQL, -1)
	for _, mark := range m {
		if a := tr.asked[strings.TrimSpace(mark)]; a != nil {
			return a
		}
	}
	return nil
}

// number is what a statement appended.
func (tr *truth) number(ev *history.Event) int64 {
	for _, m := range marked.FindAllStringSubmatch(ev.SQL, -1) {
		if tr.asked[m[1]+" = "+m[2]] != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64) // it is digits
			return n
		}
	}
	return 0
}

func numbers(list string) (out []int64) {
	for _, s := range strings.Split(list, ",") {
		n, _ := strconv.ParseInt(s, 10, 64) // the tables hold nothing else
		out = append(out, n)
	}
	return out
}

// said is what a row that came back says of the access behind it: the row's key and, for reads and deletions, who wrote
// the version.
func (tr *truth) said(ev *history.Event, a *asked, row [2]string) string {
	list := numbers(row[1])
	if ev.Verb == "select" || ev.Verb == "delete" {
		return row[0] + " by " + tr.author(list[len(list)-1], a)
	}
	return row[0] + " written"
}

func (tr *truth) author(n int64, a *asked) string {
	switch by := tr.authors[n]; by {
	case 0:
		return "initial"
	case a.txn:
		return "itself"
	default:
		return fmt.Sprint(by)
	}
}

// told is the same of a recorded access.
func (tr *truth) told(ev *history.Event, a *asked, acc *history.Access, tokens map[string]int64) string {
	switch writer := acc.Writer; {
	case ev.Verb == "select" || ev.Verb == "delete":
		order := acc.Order
		if ev.Verb == "delete" {
			writer, order = acc.PrevWriter, acc.PrevOrder
		}
		by := "itself"
		switch {
		case order == history.OrderInitial:
			by = "initial"
		case tokens[writer] != 0 && tokens[writer] != a.txn:
			by = fmt.Sprint(tokens[writer])
		case writer != "" && tokens[writer] == 0:
			by = "unknown " + writer
		}
		return acc.Row.Key + " by " + by
	case acc.Op == history.OpDelete: // the former name of a row that got another key
		return ""
	}
	return acc.Row.Key + " written"
}
