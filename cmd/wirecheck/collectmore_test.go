package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/stream"
	"wirecheck/internal/shop"
	"wirecheck/oracle"
	"wirecheck/report"
)

// passing is what differs from run to run: numbers and times; and how far a transaction had come when it was told, since the proxies' events come in no
// order between them.
var passing = regexp.MustCompile(`(?i)(session|transaction|backend) \d+|(proxy) run\d+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+Z?|version (\d+:\S*|\(\d+,\d+\)/\d+)| and committed|(?m:^ +T\d +(begin|commit)\n)`)

// texts are findings as people read them, without what is passing.
func texts(t *testing.T, findings []oracle.Finding) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, report.Result{Findings: findings}, "text"); err != nil {
		t.Fatal(err)
	}
	return passing.ReplaceAllString(b.String(), "$1$2")
}

// TestCollectRequests: races between requests whose sessions are at different proxies are told as by one proxy; a write that checks what was read is no race.
func TestCollectRequests(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		w := newWorld(t, engine, "CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(20), stock INT, price DECIMAL(8,2), version INT)")
		for _, tt := range []struct {
			name  string
			found int
			steps []string
		}{
			{"lost update", 1, []string{"A select stock", "B select stock", "B set stock stock-1", "A set stock stock-2"}},
			{"lost update in transactions", 1, []string{"A select stock", "B begin", "B select stock", "B set stock stock-1", "B commit", "A begin", "A set stock stock-2", "A commit"}},
			{"claimed", 1, claim("A SELECT id FROM product WHERE name IS NULL ORDER BY id LIMIT 1", "A UPDATE product SET name = 'ann' WHERE id = 1")},
			{"the write checks", 0, []string{"A select stock", "A select version", "B UPDATE product SET stock = 7, version = version + 0 WHERE id = 1", "A set stock stock-2 version"}},
			{"the server computes", 0, []string{"A select stock", "B select stock", "B UPDATE product SET stock = stock - 1 WHERE id = 1", "A UPDATE product SET stock = stock - 1 WHERE id = 1"}},
			{"one after the other", 0, []string{"B select stock", "B set stock stock-1", "A select stock", "A set stock stock-2"}},
			{"claimed, the write checks", 0, claim("A SELECT id FROM product WHERE name IS NULL", "A UPDATE product SET name = 'ann' WHERE id = 1 AND name IS NULL")},
		} {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				play := func(proxies int) {
					w.run(t, "DELETE FROM product")
					var list []*through
					var apps []*application
					for range proxies {
						th := w.observe(t)
						list, apps = append(list, th), append(apps, newApplication(t, th, true))
					}
					apps[0].play(false, "C INSERT INTO product VALUES (1, 'a', 10, 9.00, 3)") // of rows from before, PostgreSQL does not tell the place
					for _, step := range tt.steps {
						apps[int(step[0])%proxies].play(false, step)
					}
					for i, a := range apps {
						a.close()
						if err := list[i].end(); err != nil {
							t.Error(err)
						}
					}
				}
				var got [2][]oracle.Finding
				for i, proxies := range []int{1, 2} {
					f := newFleet(t)
					w.publish = func() *stream.Publisher { return f.publisher(t, fmt.Sprint("run", len(f.list))) }
					play(proxies)
					f.published(t)
					got[i] = f.collected(t)
				}
				if len(got[0]) != tt.found {
					t.Errorf("one proxy: %v, want %d", ids(got[0]), tt.found)
				}
				if diff := cmp.Diff(ids(got[0]), ids(got[1])); diff != "" {
					t.Errorf("(-one +two):\n%s", diff)
				}
				if diff := cmp.Diff(texts(t, got[0]), texts(t, got[1])); diff != "" {
					t.Errorf("texts (-one +two):\n%s", diff)
				}
			})
		}
	}
}

// TestCollectSysbench: sysbench's read-write mix at SERIALIZABLE through three proxies at once has no anomaly, and collect has seen its transactions.
func TestCollectSysbench(t *testing.T) {
	w := newWorld(t, "mariadb")
	w.clock = time.Now
	tool(t, nil, "sysbench", sysbenchArgs(w.direct, "auto", "prepare")...)
	w.instrumentAll(t)
	w.globally(t, "SET GLOBAL tx_isolation = 'SERIALIZABLE'", "SET GLOBAL tx_isolation = 'REPEATABLE-READ'")
	f := newFleet(t)
	w.publish = func() *stream.Publisher { return f.publisher(t, fmt.Sprint("quiet", len(f.list))) }
	list := []*through{w.observe(t), w.observe(t), w.observe(t)}
	var all sync.WaitGroup
	outs := make([]string, len(list))
	for i, th := range list {
		all.Go(func() {
			outs[i] = tool(t, nil, "sysbench", sysbenchArgs(th.target, "auto", "--threads=3", "--time=0", length("--events=60", "--time=%d"), "--mysql-ignore-errors=1213,1020,1205", "run")...)
		})
	}
	all.Wait()
	committed := 0
	for i, th := range list {
		if err := th.end(); err != nil {
			t.Error(err)
		}
		committed += count(t, outs[i], `transactions:\s+(\d+)`)
	}
	f.published(t)
	out, said, status := command(t, "collect", "--from", f.where, "--until-end")
	if status != exitClean || !strings.Contains(out, "nothing found") || strings.Contains(said, `"run":`) {
		t.Errorf("exit status %d of a correct load:\n%s\n%s", status, out, said)
	}
	// Each transaction has 20 statements between BEGIN and COMMIT, of which each is seen exactly.
	if exact := count(t, out, `coverage: (\d+) exact`); exact < 18*committed {
		t.Errorf("%d transactions, and collect has seen %d statements exactly", committed, exact)
	}
	t.Logf("%d transactions: %s", committed, out)
}

// sysbenchArgs are the arguments of sysbench's read-write mix on two small tables.
func sysbenchArgs(at shop.Target, prepared string, more ...string) []string {
	return append([]string{"oltp_read_write", "--db-driver=mysql", "--mysql-host=" + at.Host, fmt.Sprintf("--mysql-port=%d", at.Port), "--mysql-user=" + at.User,
		"--mysql-password=" + at.Password, "--mysql-db=" + at.Database, "--tables=2", "--table-size=1000", "--db-ps-mode=" + prepared}, more...)
}
