package main

import (
	"bytes"
	first "cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"wirecheck/backends/instrument"
	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/internal/shop"
	"wirecheck/internal/testserver"
	"wirecheck/live"
	"wirecheck/offline"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/proxy"
	"wirecheck/report"
	"wirecheck/rewrite"
	"wirecheck/trace"
)

// world is a database of a real server with its tables, ready to be observed.
type world struct {
	direct shop.Target
	admin  shop.Target // the same as the superuser, who may look at the locks
	side   shop.Client
	server testserver.Database
	// capture is CaptureAuto if it is empty.
	capture rewrite.Capture
	others  bool // --show-others
	items   bool // --predicates off
	clock   func() time.Time
	publish func() *stream.Publisher // for the next proxy; nil: it publishes nothing
}

func newWorld(t *testing.T, engine string, tables ...string) *world {
	t.Helper()
	var s *testserver.Server
	switch engine {
	case "postgres":
		s = testserver.Postgres(t)
	case "mysql":
		s = testserver.MySQL(t)
	case "tidb":
		s = testserver.TiDB(t)
	default:
		s = testserver.MariaDB(t)
	}
	d := s.Database(t)
	w := &world{direct: shop.Target{Engine: engine, Host: d.Host, Port: d.Port, User: d.User, Password: d.Password, Database: d.Name}}
	w.server = d
	w.admin = w.direct
	w.admin.User, w.admin.Password = s.User, s.Server.Password
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if w.side, err = w.direct.Connect(ctx, shop.Driver); err != nil {
		t.Fatalf("connect to %s: %v", engine, err)
	}
	t.Cleanup(func() { w.side.Close() })
	w.run(t, tables...)
	w.instrumentAll(t)
	return w
}

func (w *world) run(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := w.side.Do(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// through is a proxy in observe mode in front of the world's server.
type through struct {
	target shop.Target
	file   string // the recorded history
	live   *live.Checker
	first  *atomic.Int64 // wall clock of the first finding
	end    func() error
}

// results is what a proxy found while it ran.
type results struct {
	findings []oracle.Finding
	coverage isolation.Coverage
	report   string
}

// settle waits until every transaction that wrote before has ended, those of other tests too. What a proxy sees of PostgreSQL is older than itself for certain
// if it is older than each transaction that still runs.
func (w *world) settle(t *testing.T) {
	t.Helper()
	if w.direct.Engine != "postgres" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var next int64
	err = conn.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&next)
	for old, pause := true, 0.0; old && err == nil; pause = 0.01 { // seconds: each question costs the server, which those transactions need
		err = conn.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint < $1 FROM pg_sleep($2)", next, pause).Scan(&old)
	}
	if err != nil {
		t.Fatalf("wait for older transactions: %v", err)
	}
}

// observe runs the statements directly and then starts a proxy, so that they are not part of its history.
func (w *world) observe(t *testing.T, statements ...string) *through {
	t.Helper()
	w.run(t, statements...)
	w.settle(t)
	th := &through{target: w.direct, file: filepath.Join(t.TempDir(), "history.jsonl")}
	f, err := os.OpenFile(th.file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	th.first = &atomic.Int64{}
	found := func(oracle.Finding) { th.first.CompareAndSwap(0, time.Now().UnixNano()) }
	o := live.Options{Record: f, OnFind: found, ShowOthers: w.others, NoPredicates: w.items, Clock: w.clock, Log: log, Now: time.Now()}
	if w.publish != nil {
		o.Publish = w.publish()
	}
	if th.live, err = live.New(o); err != nil {
		t.Fatal(err)
	}
	protocol := proxy.Postgres
	if w.direct.Engine != "postgres" {
		protocol = proxy.MySQL
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := proxy.Listen(ctx, log, func(c proxy.Config) (proxy.Handler, error) {
		return th.live.Handler(c, live.Observation{Capture: first.Or(w.capture, rewrite.CaptureAuto), Warn: true})
	}, proxy.Config{
		Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}, Protocol: protocol, Mode: proxy.Observe,
		Upstream: proxy.Address{Network: "tcp", Addr: net.JoinHostPort(w.direct.Host, strconv.Itoa(w.direct.Port))},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	th.target.Port = p.Addrs()[0].(*net.TCPAddr).Port
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()
	ended := false
	th.end = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := th.end(); err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	return th
}

// stop ends the proxy and gives what it found. The recorded history must say the same.
func (th *through) stop(t *testing.T) results {
	t.Helper()
	if err := th.end(); err != nil {
		t.Fatalf("proxy: %v", err)
	}
	found, err := th.live.Finish()
	if err != nil {
		t.Fatalf("finish: %v", err)
	}
	var b bytes.Buffer
	if err := report.Write(&b, report.Result{Findings: found.Findings, Coverage: found.Coverage}, "text"); err != nil {
		t.Fatal(err)
	}
	again, coverageAgain := judgeFile(t, th.file)
	if diff := cmp.Diff(found.Findings, again); diff != "" {
		t.Errorf("the recorded history says something else than the live run (-live +recorded):\n%s", diff)
	}
	if diff := cmp.Diff(found.Coverage, coverageAgain); diff != "" {
		t.Errorf("coverage of the recorded history (-live +recorded):\n%s", diff)
	}
	traced, coverageTraced := judgeTraced(t, th.file)
	if diff := cmp.Diff(found.Findings, traced); diff != "" {
		t.Errorf("a trace of the history says something else than the live run (-live +trace):\n%s", diff)
	}
	if diff := cmp.Diff(found.Coverage, coverageTraced); diff != "" {
		t.Errorf("coverage of a trace of the history (-live +trace):\n%s", diff)
	}
	return results{found.Findings, found.Coverage, b.String()}
}

// judgeTraced does what wirecheck check does with a trace file that has the events of a history.
func judgeTraced(t *testing.T, path string) ([]oracle.Finding, isolation.Coverage) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "history.wct")
	w, err := trace.Create(file, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for ev := range recorded(t, path) {
		if err := w.Write(&trace.Record{Kind: trace.KindHistory, Session: ev.Session, History: &ev}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j, err := offline.Judge([]offline.Input{{In: io.MultiReader(f), Path: file, Name: file}}, isolation.Options{}, false, func(said string) { t.Error(said) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return j.Checker.Summary(), j.Checker.Coverage()
}

// judgeFile does what wirecheck check does.
func judgeFile(t *testing.T, path string) ([]oracle.Finding, isolation.Coverage) {
	t.Helper()
	c := isolation.New(isolation.Options{})
	for ev := range recorded(t, path) {
		c.Add(&ev)
	}
	return c.Summary(), c.Coverage()
}

// recorded gives the events of a history file, which must be whole. Each is the receiver's to keep.
func recorded(t *testing.T, path string) iter.Seq[history.Event] {
	t.Helper()
	return func(yield func(history.Event) bool) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := history.NewReader(f, path)
		if err != nil {
			t.Fatal(err)
		}
		for {
			var ev history.Event
			if err := r.Next(&ev); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if !yield(ev) {
				return
			}
		}
		if r.Warning() != "" {
			t.Error(r.Warning())
		}
	}
}

// instrumentAll adds the hidden columns to all tables of the database, where the engine needs them.
func (w *world) instrumentAll(t *testing.T) {
	t.Helper()
	db, err := instrument.Open(context.Background(), w.server.URL(), instrument.Options{Capture: w.capture})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range db.Tables {
		if r := db.Add(context.Background(), table); r.Error != "" {
			t.Fatalf("instrument %s: %v", table, r.Error)
		}
	}
}

// globally runs a statement as the superuser, and another one when the test ends. It changes what tests beside it would meet, so it panics in one that is
// parallel.
func (w *world) globally(t *testing.T, do, undo string) {
	t.Helper()
	t.Setenv("WIRECHECK_TEST_GLOBALLY", do)
	c, err := w.admin.Connect(context.Background(), shop.Driver)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(context.Background(), do); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Do(context.Background(), undo); err != nil {
			t.Errorf("%s: %v", undo, err)
		}
		c.Close()
	})
}
