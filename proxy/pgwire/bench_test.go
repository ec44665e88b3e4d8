package pgwire_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// BenchmarkSelect plays pgbench's prepared select through the proxy, from 1 and 64 clients. ns of processor time are those of the proxy and of the clients here, which
// do nothing but send the same bytes and count those that come; allocations are the proxy's.
func BenchmarkSelect(b *testing.B) {
	srv := testserver.Postgres(b)
	db := srv.Database(b).As(testserver.AppTrust)
	db.Exec(b, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i")
	batch := string(message('B', []byte("\x00s\x00\x00\x00\x00\x01\x00\x00\x00\x0217\x00\x00"))) + string(message('D', []byte("P\x00"))) +
		string(message('E', []byte("\x00\x00\x00\x00\x00"))) + string(message('S', nil))
	recorder := record.NewRecorder("test", func(*history.Event) []record.Warning { return nil })
	recorder.Requests = record.NewRequests(nil)
	recorder.Requests.Values = true
	silent := pgwire.NewObserver(pgwire.ObserverConfig{Rewriter: postgres.New(rewrite.CaptureAuto), Recorder: recorder})
	for _, mode := range modes {
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", mode, clients), func(b *testing.B) {
				r := start(b, proxy.Config{Upstream: upstream(srv), Mode: mode}, silent)
				var list []*wire
				size := 0
				for range clients {
					w := dialWire(b, r.addr.String(), db.User, db.Name)
					w.step("P s|SELECT v FROM t WHERE id = $1")
					w.step("S")
					w.raw([]byte(batch))
					var answer bytes.Buffer
					for kind := byte(0); kind != 'Z'; {
						var body []byte
						kind, body = w.read()
						answer.Write(message(kind, body))
					}
					_ = w.conn.SetDeadline(time.Time{})
					list, size = append(list, w), answer.Len()
				}
				b.ReportAllocs()
				var before, after syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
				b.ResetTimer()
				var all sync.WaitGroup
				for i, w := range list {
					all.Go(func() {
						got := make([]byte, size)
						for range (b.N + clients - 1 - i) / clients {
							if _, err := w.conn.Write([]byte(batch)); err != nil {
								b.Error(err)
								return
							}
							if _, err := io.ReadFull(w.in, got); err != nil || !strings.HasSuffix(string(got), "Z\x00\x00\x00\x05I") {
								b.Errorf("%q, %v", got, err)
								return
							}
						}
					})
				}
				all.Wait()
				b.StopTimer()
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
				spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
				b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
