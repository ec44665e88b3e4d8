package source_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/source"
)

// said is a statement as a client knows it.
type said struct {
	SQL    string
	Params string // values, NULL as such
	Rows   string
	Tag    string
	Error  string
}

// pgClient is a client that notes what it does.
type pgClient struct {
	t    *testing.T
	conn *pgconn.PgConn
	said []said
}

func connectPg(t *testing.T, port int, name, password string) *pgClient {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?application_name=%s&sslmode=disable", password, port, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return &pgClient{t: t, conn: conn}
}

func errorCode(err error) string {
	if e, ok := err.(*pgconn.PgError); ok {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func rowsText(rows [][][]byte) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteByte('(')
		for i, v := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			if v == nil {
				b.WriteString("NULL")
			} else {
				b.Write(v)
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// simple sends a simple query.
func (c *pgClient) simple(sql string) {
	c.t.Helper()
	results, err := c.conn.Exec(c.t.Context(), sql).ReadAll()
	s := said{SQL: sql, Error: errorCode(err)}
	var tags []string
	for _, r := range results {
		s.Rows += rowsText(r.Rows)
		if r.CommandTag.String() != "" {
			tags = append(tags, r.CommandTag.String())
		}
	}
	s.Tag = strings.Join(tags, ";")
	c.said = append(c.said, s)
}

// params executes with parameters in text form. null stands for NULL.
const null = "\x00"

func (c *pgClient) params(sql string, values ...string) {
	c.t.Helper()
	s := said{SQL: sql, Params: strings.ReplaceAll(strings.Join(values, ","), null, "NULL")}
	var raw [][]byte
	for _, v := range values {
		if v == null {
			raw = append(raw, nil)
		} else {
			raw = append(raw, []byte(v))
		}
	}
	r := c.conn.ExecParams(c.t.Context(), sql, raw, nil, nil, nil).Read()
	s.Rows, s.Tag, s.Error = rowsText(r.Rows), r.CommandTag.String(), errorCode(r.Err)
	c.said = append(c.said, s)
}

// seen is what a trace says, in the same form. results says whether the source tells them.
func seen(sts []*trace.Statement, results bool) []said {
	var out []said
	for _, st := range sts {
		s := said{SQL: st.SQL}
		var params []string
		for _, p := range st.Params {
			if p.Null {
				p.Value = "NULL"
			}
			params = append(params, p.Value)
		}
		s.Params = strings.Join(params, ",")
		var tags []string
		for _, r := range st.Results {
			for _, row := range r.Rows {
				var values []string
				for _, v := range row {
					if v.Null {
						v.Text = "NULL"
					}
					values = append(values, v.Text)
				}
				s.Rows += "(" + strings.Join(values, ",") + ")"
			}
			if r.Tag != "" {
				tags = append(tags, r.Tag)
			}
		}
		s.Tag = strings.Join(tags, ";")
		if st.Error != nil {
			s.Error = st.Error.Code
		}
		if !results {
			s.Rows, s.Tag = "", ""
		}
		out = append(out, s)
	}
	return out
}

// withoutResults is what a log can tell of what a client knows.
func withoutResults(all []said) []said {
	var out []said
	for _, s := range all {
		s.Rows, s.Tag = "", ""
		out = append(out, s)
	}
	return out
}

// TestPostgres plays a few sessions on a real server that writes all its logs, behind something that captures the packets, and demands that each
// of the readers tells what the clients know.
func TestPostgres(t *testing.T) {
	server, err := postgres.Start(t.Context(), engine.Options{Settings: map[string]string{
		"logging_collector": "on", "log_destination": "stderr,csvlog,jsonlog", "log_filename": "server.log", "log_statement": "all", "log_duration": "on",
		"log_connections": "on", "log_disconnections": "on", "log_lock_waits": "on", "deadlock_timeout": "10ms", "log_line_prefix": "%m|%u|%d|%c|%p|%l|%v|%x|%a|%e|",
		"log_timezone": "Europe/Berlin", "log_parameter_max_length_on_error": "-1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			server.Close()
		}
	})
	passed := newTap(t, server.Address())
	a, b := connectPg(t, passed.port(), "shop-A", server.Password), connectPg(t, passed.port(), "shop-B", server.Password)
	a.simple("CREATE TABLE item (id int PRIMARY KEY, name text, n numeric, raw bytea)")
	a.simple("INSERT INTO item VALUES (1, 'it''s; \"x\"', 1.50, '\\x00ff'), (2, NULL, -3, NULL)\n-- über\n")
	a.simple("BEGIN; UPDATE item SET n = 2 WHERE id = 2; SELECT 1, 'a'; COMMIT")
	a.simple("BEGIN ISOLATION LEVEL REPEATABLE READ")
	a.params("SELECT name, n, raw FROM item WHERE id = $1 /*action='a%2Cb',traceparent='00-1-2-01'*/", "1")
	a.params("UPDATE item SET name = $1, n = $2 WHERE id = $3", "o'hara\nnew\\line, $1 = 'x'", null, "2")
	a.simple("SAVEPOINT s")
	a.params("INSERT INTO item VALUES ($1)", "1") // violates the key
	a.simple("SELECT 1")                          // in a failed transaction
	a.simple("ROLLBACK TO SAVEPOINT s")
	a.simple("DECLARE c CURSOR FOR SELECT id FROM item ORDER BY id")
	a.simple("FETCH 1 FROM c")

	blocked := make(chan struct{})
	go func() { // waits until A has committed
		defer close(blocked)
		b.params("UPDATE item SET name = $1 WHERE id = $2", "b", "2")
	}()
	awaitLock(t, server, b.conn.PID())
	a.simple("COMMIT")
	<-blocked
	b.simple("PREPARE p(int) AS SELECT name FROM item WHERE id = $1")
	b.simple("EXECUTE p(2)")
	b.simple("SELEKT 1")
	b.params("SELECT nothing FROM item WHERE id = $1", "1") // refused when it is prepared
	b.simple("COPY item (id, name) TO STDOUT")
	b.simple("")
	b.simple("BEGIN")
	b.params("SELECT 1/$1::int", "0")
	b.simple("COMMIT")
	for _, c := range []*pgClient{a, b} {
		if err := c.conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	pieces := passed.close()
	logs := filepath.Join(server.Folder(), "data", "log", "server")
	for _, ending := range []string{".csv", ".json", ".log"} {
		awaitLogged(t, logs+ending, "shop-", 2)
	}

	want := map[string][]said{"shop-A": a.said, "shop-B": b.said}
	t.Run("recorder", func(t *testing.T) {
		records := recordPieces(t, pieces, wire.Postgres)
		compareSaid(t, want, records, &source.Report{}, true)
		checkPgStatus(t, records)
	})
	t.Run("pcap", func(t *testing.T) {
		all := packetsOf(t, pieces, server.Port)
		for _, ng := range []bool{false, true} {
			records, report := importBytes(t, pcapFile(t, all, ng), source.Options{})
			compareSaid(t, want, records, report, true)
		}
		shuffled := disorder(all)
		records, report := importBytes(t, pcapFile(t, shuffled, false), source.Options{})
		compareSaid(t, want, records, report, true)
		checkPgStatus(t, records)
		joinedLate(t, all, want)
	})
	// What is refused before it is bound is logged without its parameters.
	for name, all := range want {
		var told []said
		for _, s := range withoutResults(all) {
			if s.SQL == "SELECT nothing FROM item WHERE id = $1" {
				s.Params = ""
			}
			told = append(told, s)
		}
		want[name] = told
	}
	var first []*trace.Record
	for _, ending := range []string{".csv", ".json", ".log"} {
		t.Run(ending[1:], func(t *testing.T) {
			o := source.Options{}
			if ending == ".log" {
				o = source.Options{Format: "stderr", Prefix: "%m|%u|%d|%c|%p|%l|%v|%x|%a|%e|"}
			}
			records, report := importFiles(t, []string{logs + ending}, o)
			compareSaid(t, want, records, report, false)
			if ending == ".csv" {
				first = records
				checkPgStatus(t, records)
				checkPgWait(t, records)
			}
			if g, w := waits(records), waits(first); g != w {
				t.Errorf("waits: got\n%s\nwant\n%s", g, w)
			}
		})
	}
	closed = true
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// awaitLock waits until the server says that a backend waits for a lock.
func awaitLock(t *testing.T, server *engine.Server, pid uint32) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://postgres:%s@%s/postgres?application_name=watcher", server.Password, server.Address()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for t.Context().Err() == nil {
		r := conn.ExecParams(t.Context(), "SELECT cardinality(pg_blocking_pids($1))", [][]byte{fmt.Append(nil, pid)}, nil, nil, nil).Read()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		// deadlock_timeout has passed when the log says that it waits; the wait is older than that then.
		data, err := os.ReadFile(filepath.Join(server.Folder(), "data", "log", "server.csv"))
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Rows[0][0]) == "1" && bytes.Contains(data, []byte("still waiting for")) {
			return
		}
	}
}

// awaitLogged waits until the collector has written that n sessions whose names begin so are gone.
func awaitLogged(t *testing.T, path, name string, n int) {
	t.Helper()
	for t.Context().Err() == nil {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		gone := 0
		for _, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, "disconnection:") && strings.Contains(line, name) {
				gone++
			}
		}
		if gone == n {
			return
		}
	}
}

func compareSaid(t *testing.T, want map[string][]said, records []*trace.Record, report *source.Report, results bool) {
	t.Helper()
	if report.Unknown != 0 {
		t.Errorf("unknown lines:\n%s", reportText(t, report))
	}
	for name, w := range want {
		if d := cmp.Diff(w, seen(statements(records, name), results)); d != "" {
			t.Errorf("%s: -client +trace:\n%s\n%s", name, d, shown(records))
		}
	}
}

// disorder exchanges packets of the same direction with their neighbours, and repeats some.
func disorder(all []packet) []packet {
	rng := rand.New(rand.NewPCG(1, 2))
	var out []packet
	for i := 0; i < len(all); i++ {
		if i+1 < len(all) && all[i].conn == all[i+1].conn && all[i].server == all[i+1].server && i > 4 {
			out = append(out, all[i+1], all[i], all[i+1])
			i++
			continue
		}
		out = append(out, all[i])
		if rng.IntN(4) == 0 {
			out = append(out, all[i])
		}
	}
	return out
}

// joinedLate leaves out the beginning: what is told then must be the last of what was said, but for prepared statements that nobody saw.
func joinedLate(t *testing.T, all []packet, want map[string][]said) {
	t.Helper()
	tried := 0
	for from := 10; from < len(all); from += 7 {
		data := pcapFile(t, all[from:], false)
		records, report := importBytes(t, data, source.Options{})
		if report.Unknown != 0 {
			t.Errorf("from packet %d: unknown:\n%s", from, reportText(t, report))
		}
		bySession := map[uint64][]*trace.Statement{}
		for _, r := range records {
			if r.Kind == trace.KindStatement {
				bySession[r.Session] = append(bySession[r.Session], r.Statement)
			}
		}
		for _, sts := range bySession {
			tried++
			got := seen(sts, true)
			found := false
			for _, w := range want {
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

// checkPgStatus demands the transaction status before each statement of A.
func checkPgStatus(t *testing.T, records []*trace.Record) {
	t.Helper()
	var got strings.Builder
	for _, st := range statements(records, "shop-A") {
		got.WriteByte(byte(st.Before))
		got.WriteByte(byte(st.After))
		got.WriteByte(' ')
	}
	if want := "II II II IT TT TT TT TE EE ET TT TT TI "; got.String() != want {
		t.Errorf("status before and after each statement:\n got %s\nwant %s", got.String(), want)
	}
}

// checkPgWait demands that B's wait for A is told.
func checkPgWait(t *testing.T, records []*trace.Record) {
	t.Helper()
	number := map[string]uint64{}
	var states []string
	for _, r := range records {
		if r.Kind == trace.KindSession {
			number[r.Open.Application] = r.Session
		}
		if r.Kind == trace.KindWait && r.Session == number["shop-B"] {
			states = append(states, fmt.Sprint(r.Wait.State, len(r.Wait.For) == 1 && r.Wait.For[0] == number["shop-A"]))
		}
	}
	if want := []string{"1 true", "2 false"}; !cmp.Equal(states, want) {
		t.Errorf("waits: %v, want %v", states, want)
	}
	for _, st := range statements(records, "shop-B") {
		if strings.HasPrefix(st.SQL, "UPDATE") && st.Took < 10e6 {
			t.Errorf("the statement that waited took %d ns", st.Took)
		}
	}
}

func waits(records []*trace.Record) string {
	var b strings.Builder
	for _, r := range records {
		if r.Kind == trace.KindWait {
			fmt.Fprintf(&b, "%d %d %s %v\n", r.Session, r.Wait.State, r.Wait.Lock, r.Wait.For)
		}
	}
	return b.String()
}
