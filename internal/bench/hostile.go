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
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

const (
	busySessions = 200
	attackers    = 8
	hostileLooks = 10              // at the proxy's memory
	attackTime   = 5 * time.Second // an attack ends after that, if nothing else ends it
	attackBytes  = 25 << 20
	hostilePoll  = 50 * time.Millisecond // between looks at the proxy's descriptors: nothing tells that one is closed
)

// hostile is a protocol that clients abuse.
type hostile struct {
	scheme string
	start  func(context.Context, engine.Options) (*engine.Server, error)
	busy   func(context.Context, options, *engine.Server) (func(seconds int) load, error) // what well-behaved clients do meanwhile
	login  func(ctx context.Context, s *engine.Server, port int) (net.Conn, error)
	frame  func(kind byte, body string) string
	query  func(sql string) string
	lock   string   // locks a row that the well-behaved clients want
	floods []string // are sent over and over, without reading the answers
}

// benchHostile has clients that break the protocol, read nothing or say nothing work for o.length beside well-behaved ones. It prints the
// memory and the descriptors of the proxy, and what the well-behaved clients notice: the first line of figures is theirs without the others.
func benchHostile(ctx context.Context, o options) error {
	for _, h := range []hostile{hostilePostgres(), hostileMariaDB()} {
		if matched, err := regexp.MatchString(o.match, h.scheme); err != nil || !matched {
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
		scheme: "postgres", start: postgres.Start, frame: frame, query: query, lock: query("BEGIN") + query("UPDATE pgbench_branches SET bbalance = bbalance WHERE bid = 1"),
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
		scheme: "mariadb", start: mariadb.Start, frame: frame, query: func(sql string) string { return frame(query, sql) },
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
	if err := work(o.length / hostileLooks); err != nil {
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
	for i := range attackers {
		r := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
		g.Go(func() error {
			for ; attacking.Err() == nil; counts[i]++ {
				h.attack(attacking, s, p.port, r)
			}
			return nil
		})
	}
	for look := 0; attacking.Err() == nil; look++ {
		peak, err := p.peak()
		if err != nil {
			return err
		}
		fmt.Printf("%s %s: largest resident set %.0f MiB, %d descriptors\n", time.Now().Format(time.TimeOnly), h.scheme, peak, p.descriptors())
		if o.profiles != "" {
			if err := saveProfile(ctx, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap", page), filepath.Join(o.profiles, fmt.Sprintf("%s-%02d.pb.gz", h.scheme, look))); err != nil {
				return err
			}
		}
		select {
		case <-attacking.Done():
		case <-time.After(o.length / hostileLooks):
		}
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
			if err := saveProfile(ctx, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/goroutine?debug=2", page), filepath.Join(o.profiles, h.scheme+"-late.txt")); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%s: %d attacks; %d descriptors before, %d %.1f s after\n", h.scheme, total, idle, p.descriptors(), time.Since(began).Seconds())
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

// attack is one client. What it meets does not matter: only what others notice does.
func (h hostile) attack(ctx context.Context, s *engine.Server, port int, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, attackTime)
	defer cancel()
	noise := make([]byte, 1+r.IntN(1<<16))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	early := r.IntN(4) == 0
	c, err := net.Conn(nil), error(nil)
	if early {
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	} else {
		c, err = h.login(ctx, s, port)
	}
	if err != nil {
		return
	}
	defer c.Close()
	if tcp, ok := c.(*net.TCPConn); ok && r.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // it ends with a reset
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if early {
		_, _ = c.Write([]byte("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00")[:r.IntN(17)])
		if r.IntN(2) == 0 {
			_, _ = c.Write(noise)
		}
		<-ctx.Done() // half a login
		return
	}
	flood := func(text string, n int) {
		for b := []byte(strings.Repeat(text, 1+(1<<16)/len(text))); n > 0 && err == nil; n -= len(b) {
			_, err = c.Write(b)
		}
	}
	switch r.IntN(6) {
	case 0:
		_, _ = c.Write(noise)
	case 1: // the row stays locked if nobody notices that the client is gone
		flood(h.lock, 1)
		flood(h.query("SELECT 'x'"), 7<<20)
		return
	case 2: // a long answer of which little is read
		flood(h.query("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 1000) SELECT a.n, b.n, repeat('x', 100) FROM t a, t b"), 1)
		_, _ = io.CopyN(io.Discard, c, r.Int64N(1<<20))
	case 3:
		one := []string{"+1", "||1", " IS NULL", "::int", "(", "[1]", " COLLATE x", " UNION SELECT 1", " AND 1", "-(", " BETWEEN 1 AND 2", ",(SELECT 1", ".a", " NOT NULL"}[r.IntN(14)]
		flood(h.query("SELECT 1"+strings.Repeat(one, r.IntN(100_000))), 1)
	case 4: // a frame that announces more than ever comes
		flood(h.frame(byte(r.Uint32()), strings.Repeat("x", 1<<20))[:r.IntN(1<<20)], 1)
	default:
		flood(h.floods[r.IntN(len(h.floods))], attackBytes)
	}
	if r.IntN(2) == 0 {
		_, _ = io.Copy(io.Discard, c)
	}
}
