package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/mysql"
	"wirecheck/backends/postgres"
)

const (
	busySessions = 200
	attackers    = 8
	quietShare   = 10               // of the whole time: how long the well-behaved clients work alone at first
	quietLeast   = 20 * time.Second // but so long at least: on a busy machine 200 sessions take seconds to begin
	attackTime   = 5 * time.Second  // an attack ends after that, if nothing else ends it
	attackBytes  = 25 << 20
	manySessions = 20                    // that one attacker has, where each does not do much
	hostilePoll  = 50 * time.Millisecond // between looks at the proxy's descriptors: nothing tells that one is closed
	peakGoal     = 280                   // MiB of the proxy's resident set beyond which its heap is written down, at each
	peakStep     = 10                    // more
	visitLimit   = 30 * time.Second      // a visitor that waits longer gives up, and what all wait for is kept
)

// hostile is a protocol that clients abuse.
type hostile struct {
	scheme string
	start  func(context.Context, engine.Options) (*engine.Server, error)
	opens  func(context.Context, engine.Target) (engine.Conn, error)                      // without the proxy
	waits  []string                                                                       // queries that tell what the server's sessions do and wait for
	busy   func(context.Context, options, *engine.Server) (func(seconds int) load, error) // what well-behaved clients do meanwhile
	login  func(ctx context.Context, s *engine.Server, port int) (net.Conn, error)
	frame  func(kind byte, body string) string
	query  func(sql string) string
	lock   string   // locks a row that the well-behaved clients want
	floods []string // are sent over and over, without reading the answers
	deeds  []deed   // what attackers do besides
	// table is one of the well-behaved clients, key and value are columns of it, of which key is the primary key, and big is a larger table.
	table, key, value, big string
	setting                func(i int) string // a statement that sets something
	sleep                  string             // an expression that takes a few seconds
}

// benchHostile has clients that break the protocol, read nothing or say nothing work for o.length beside well-behaved ones. It prints the
// memory and the descriptors of the proxy, and what the well-behaved clients notice: the first line of figures is theirs without the others.
func benchHostile(ctx context.Context, o options) error {
	for _, h := range []hostile{hostilePostgres(), hostileMariaDB()} {
		if h.deeds = slices.DeleteFunc(append(h.common(), h.deeds...), func(d deed) bool { return !matches(o.match, h.scheme+": "+d.name) }); len(h.deeds) == 0 {
			continue
		}
		if err := h.run(ctx, o); err != nil {
			return fmt.Errorf("hostile clients, %s: %w", h.scheme, err)
		}
	}
	return nil
}

func hostilePostgres() hostile {
	frame := func(kind byte, body string) string {
		return string([]byte{kind}) + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
	}
	query := func(sql string) string { return frame('Q', sql+"\x00") }
	parse, bind, execute, sync := frame('P', "\x00SELECT 1\x00\x00\x00"), frame('B', strings.Repeat("\x00", 8)), frame('E', strings.Repeat("\x00", 5)), frame('S', "")
	return hostile{
		scheme: "postgres", sleep: "pg_sleep(4)", table: "pgbench_branches", key: "bid", value: "bbalance", big: "pgbench_accounts", deeds: slices.Concat(postgresDeeds(frame, query), postgresStatements(query), oddPostgres(frame, query)),
		setting: func(i int) string { return fmt.Sprintf("SET application_name = 'a%d'", i) },
		waits: []string{"SELECT pid, state, wait_event_type, wait_event, xact_start, query_start, pg_blocking_pids(pid), left(query, 200) FROM pg_stat_activity ORDER BY xact_start",
			"SELECT pid, locktype, relation::regclass, transactionid, mode, granted FROM pg_locks ORDER BY pid"},
		start: postgres.Start, opens: postgres.Connect, frame: frame, query: query, lock: query("BEGIN") + query("UPDATE pgbench_branches SET bbalance = bbalance WHERE bid = 1"),
		floods: []string{frame('c', ""), frame('f', "\x00"), sync, frame('H', ""), parse, parse + sync, parse + bind + execute, parse + bind + execute + sync,
			frame('P', "\x00SELEC\x00\x00\x00"), frame('D', "S\x00"), frame('C', "Sx\x00"), query("SELECT 1"), query(""), frame('F', "\x00\x00\x05\x75\x00\x00\x00\x00\x00\x00"),
			query("COPY pgbench_history FROM STDIN") + strings.Repeat(sync, 1000), frame('P', "\x00SELECT '"+strings.Repeat("x", 1<<20)+"'\x00\x00\x00"),
			frame('d', strings.Repeat("x", 1<<16)), frame('?', "x"), query("PREPARE a AS SELECT 1; DEALLOCATE a")},
		login: func(ctx context.Context, s *engine.Server, port int) (net.Conn, error) {
			c, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable", s.User, s.Password, port))
			if err != nil {
				return nil, err
			}
			raw, err := c.Hijack()
			if err != nil {
				return nil, err
			}
			return raw.Conn, nil
		},
		busy: func(ctx context.Context, o options, s *engine.Server) (func(int) load, error) {
			pgbench, err := preparePgbench(ctx, o, s)
			if err != nil {
				return nil, err
			}
			return func(seconds int) load {
				return pgbench("-M", "prepared", "-R", "200", "-b", "select-only@9", "-b", "tpcb-like@1", "-T", strconv.Itoa(seconds))
			}, nil
		},
	}
}

func hostileMariaDB() hostile {
	frame := func(kind byte, body string) string {
		h := binary.LittleEndian.AppendUint32(nil, uint32(len(body)+1)) // the fourth byte is the sequence number, 0
		return string(h) + string([]byte{kind}) + body
	}
	const query, prepare, execute, long, reset, ping = 3, 0x16, 0x17, 0x18, 0x1a, 0x0e
	return hostile{
		scheme: "mariadb", sleep: "SLEEP(4)", table: "sbtest.sbtest1", key: "id", value: "k", big: "sbtest.sbtest2", deeds: append(mariadbDeeds(frame), oddMariaDB(frame)...),
		setting: func(i int) string {
			return fmt.Sprintf("SET @v%d = %d, lock_wait_timeout = %d", i%100_000, i, i%1000+1)
		},
		waits: []string{"SELECT ID, COMMAND, TIME, STATE, LEFT(INFO, 200) FROM information_schema.PROCESSLIST",
			"SELECT trx_mysql_thread_id, trx_state, trx_started, trx_rows_locked, LEFT(trx_query, 200) FROM information_schema.INNODB_TRX"},
		start: mariadb.Start, opens: mysql.Connect, frame: frame, query: func(sql string) string { return frame(query, sql) },
		lock: frame(query, "BEGIN") + frame(query, "UPDATE sbtest.sbtest1 SET k = k WHERE id < 100"),
		floods: []string{frame(query, "SELECT 1"), frame(query, ""), frame(query, "SELEC"), frame(prepare, "SELECT ?"), frame(prepare, "SELEC"), frame(ping, ""),
			frame(execute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00"), frame(execute, ""), frame(long, "\x01\x00\x00\x00\x00\x00"+strings.Repeat("x", 1<<16)), frame(reset, "\x01\x00\x00\x00"),
			frame(0x1b, "\x00\x00"), frame(0x04, "x\x00"), frame(0x99, "x"), frame(prepare, "SELECT '"+strings.Repeat("x", 1<<20)+"'"),
			"\xff\xff\xff\x00\x03" + strings.Repeat("x", 1<<24-2), frame(query, "LOAD DATA LOCAL INFILE 'x' INTO TABLE sbtest.sbtest1")},
		login: func(ctx context.Context, s *engine.Server, port int) (net.Conn, error) {
			c, err := client.ConnectWithContext(ctx, fmt.Sprintf("127.0.0.1:%d", port), s.User, s.Password, "", attackTime)
			if err != nil {
				return nil, err
			}
			return c.Conn.Conn, nil
		},
		busy: func(ctx context.Context, o options, s *engine.Server) (func(int) load, error) {
			run, err := prepareSysbench(ctx, o, s)
			if err != nil {
				return nil, err
			}
			return func(seconds int) load {
				return run("oltp_read_write", "--rate=20", "--point-selects=4", "--time="+strconv.Itoa(seconds))
			}, nil
		},
	}
}

func (h hostile) run(ctx context.Context, o options) (err error) {
	s, err := h.start(ctx, engine.Options{Settings: map[string]string{"max_connections": "400"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	busy, err := h.busy(ctx, o, s)
	if err != nil {
		return err
	}
	page, err := freePort()
	if err != nil {
		return err
	}
	p, err := startProxy(o, h.scheme, s.Address(), "observe", "--http", fmt.Sprintf("127.0.0.1:%d", page))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	work := func(length time.Duration) error {
		f, err := busy(int(length.Seconds()))(ctx, p.port, busySessions)
		fmt.Printf("%s: %d sessions: %.0f transactions/s, p50 %.1f ms, p99 %.1f ms; load of the machine %s\n", h.scheme, busySessions, f.rate, f.p50, f.p99, loadAverage())
		return err
	}
	idle := p.descriptors()
	if err := work(max(o.length/quietShare, quietLeast)); err != nil {
		return err
	}
	attacking, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		defer stop()
		return work(o.length)
	})
	for p.descriptors() < idle+2*busySessions-10 && attacking.Err() == nil {
		time.Sleep(hostilePoll)
	}
	counts := make([]int, attackers)
	var phase atomic.Int64
	for i := range attackers {
		r := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
		g.Go(func() error {
			for ; attacking.Err() == nil; counts[i]++ {
				d := h.deeds[r.IntN(len(h.deeds))]
				if at := phase.Load(); at%2 == 0 {
					d = h.deeds[int(at)/2%len(h.deeds)]
				}
				h.attack(attacking, s, p.port, r, d)
			}
			return nil
		})
	}
	for attacking.Err() == nil {
		if err := h.look(attacking, o, s, p, page, &phase, o.length/time.Duration(2*len(h.deeds))); err != nil {
			return err
		}
		if o.profiles != "" && attacking.Err() == nil {
			if err := saveProfile(ctx, profile(page, "heap"), filepath.Join(o.profiles, fmt.Sprintf("%s-%02d.pb.gz", h.scheme, phase.Load()))); err != nil {
				return err
			}
		}
		phase.Add(1)
	}
	err = g.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	began, late := time.Now(), 5*time.Second
	for p.descriptors() > idle && time.Since(began) < 2*time.Minute {
		time.Sleep(hostilePoll)
		if o.profiles != "" && time.Since(began) > late {
			late = 2 * time.Minute
			if err := saveProfile(ctx, profile(page, "goroutine?debug=2"), filepath.Join(o.profiles, h.scheme+"-late.txt")); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%s: %d attacks; %d descriptors before, %d %.1f s after\n", h.scheme, total, idle, p.descriptors(), time.Since(began).Seconds())
	return err
}

// look watches one phase, in which all attackers do the same deed, or any: how large the proxy becomes, and how long a client waits that comes, asks
// and goes. One that waits longer than visitLimit has what all wait for written down.
func (h hostile) look(ctx context.Context, o options, s *engine.Server, p *process, page int, phase *atomic.Int64, length time.Duration) error {
	name := "any"
	if at := int(phase.Load()); at%2 == 0 {
		name = h.deeds[at/2%len(h.deeds)].name
	}
	if err := p.forgetPeak(); err != nil {
		return err
	}
	began, slowest, refused, kept := time.Now(), time.Duration(0), 0, float64(peakGoal)
	for ctx.Err() == nil && time.Since(began) < length {
		asked := time.Now()
		visiting, cancel := context.WithTimeout(ctx, visitLimit)
		err := h.visit(visiting, s, p.port)
		late := visiting.Err() != nil && ctx.Err() == nil
		cancel()
		if late {
			if err := h.testify(ctx, o, s, page); err != nil {
				return err
			}
		}
		if err != nil && ctx.Err() == nil {
			refused++
		}
		slowest = max(slowest, time.Since(asked))
		time.Sleep(hostilePoll)
		if peak, err := p.peak(); err == nil && o.profiles != "" && peak > kept { // while it lasts
			kept = peak + peakStep
			if err := saveProfile(ctx, profile(page, "heap?debug=1"), filepath.Join(o.profiles, fmt.Sprintf("%s-%02d-%.0f.txt", h.scheme, phase.Load(), peak))); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	peak, err := p.peak()
	fmt.Printf("%s %s: %-40s largest resident set %4.0f MiB, %4d descriptors, a visitor waits %.2f s at most, %d refused\n",
		time.Now().Format(time.TimeOnly), h.scheme, name, peak, p.descriptors(), slowest.Seconds(), refused)
	return err
}

// profile is where the proxy with a page on that port gives a profile.
func profile(page int, name string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/%s", page, name)
}

// testify writes what the proxy's goroutines and the server's sessions wait for into the folder for profiles, or a temporary one.
func (h hostile) testify(ctx context.Context, o options, s *engine.Server, page int) error {
	dir := o.profiles
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "wirecheck-hostile-"); err != nil {
			return err
		}
	}
	name := filepath.Join(dir, h.scheme+time.Now().Format("-150405"))
	fmt.Printf("%s: a visitor gave up after %v; what the proxy and the server wait for: %s-*.txt\n", h.scheme, visitLimit, name)
	if err := saveProfile(ctx, profile(page, "goroutine?debug=2"), name+"-proxy.txt"); err != nil {
		return err
	}
	c, err := h.opens(ctx, s.Target())
	if err != nil {
		return err
	}
	defer c.Close()
	var text strings.Builder
	for _, sql := range h.waits {
		rows, err := engine.Query(ctx, c, sql)
		if err != nil {
			return err
		}
		for _, row := range rows {
			fmt.Fprintln(&text, row)
		}
	}
	return os.WriteFile(name+"-server.txt", []byte(text.String()), 0o600)
}

// visit logs in, asks and waits for the first of the answer.
func (h hostile) visit(ctx context.Context, s *engine.Server, port int) error {
	c, err := h.login(ctx, s, port)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(c, h.query("SELECT "+h.key+" FROM "+h.table+" WHERE "+h.key+" = 1")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// saveProfile writes what the page at url answers to a file.
func saveProfile(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true // its descriptor must not count
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// descriptors counts those of the process.
func (p *process) descriptors() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return -1
	}
	return len(list)
}

// matches reports whether a workload's name matches the regular expression; a wrong one matches none.
func matches(expression, name string) bool {
	ok, err := regexp.MatchString(expression, name)
	return err == nil && ok
}
