package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"wirecheck/internal/shop"
)

// TestSeveralProxies: two clients use two proxies in front of one server. Neither proxy can see that an update is lost; their histories together tell.
func TestSeveralProxies(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, engine, "CREATE TABLE coupon (id int PRIMARY KEY, n int)")
			w.clock = time.Now
			one := w.observe(t, "INSERT INTO coupon VALUES (1, 5)")
			two := w.observe(t)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			var clients [2]shop.Client
			for i, th := range []*through{one, two} {
				c, err := th.target.Connect(ctx, shop.Driver)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				clients[i] = c
			}
			for range 10 { // so the first proxy's ticks are ahead of the other one's
				if _, err := clients[0].Do(ctx, "SELECT n FROM coupon WHERE id = 2"); err != nil {
					t.Fatal(err)
				}
			}
			const read, write = "SELECT n FROM coupon WHERE id = 1", "UPDATE coupon SET n = 4 WHERE id = 1"
			for _, step := range []struct {
				client int
				sql    string
			}{{0, "BEGIN"}, {1, "BEGIN"}, {0, read}, {1, read}, {0, write}, {0, "COMMIT"}, {1, write}, {1, "COMMIT"}} {
				if _, err := clients[step.client].Do(ctx, step.sql); err != nil {
					t.Fatalf("%s: %v", step.sql, err)
				}
			}
			for i, th := range []*through{one, two} {
				clients[i].Close()
				if got := th.stop(t); len(got.findings) > 0 {
					t.Errorf("proxy %d alone: %s", i+1, got.report)
				}
			}
			out, said, status := command(t, "check", one.file, two.file)
			if status != exitFound || strings.Count(out, "ANOMALY: LOST UPDATE") != 1 {
				t.Errorf("exit status %d\n%s\n%s", status, out, said)
			}
			if !strings.Contains(out, "  2. Session 1 (") || !strings.Contains(out, "  3. Session 2 set") {
				t.Errorf("what came first stands behind:\n%s", out)
			}
			for i, th := range []*through{one, two} { // the numbers of the transactions are those of the proxies' own histories
				if p := regexp.MustCompile(fmt.Sprintf(`= transaction \d{1,2} of session %d \(proxy %s, `, i+1, regexp.QuoteMeta(th.file))); !p.MatchString(out) {
					t.Errorf("%s is not in\n%s", p, out)
				}
			}
			if _, said, status := command(t, "check", one.file, two.file, one.file); status != exitFailed || !strings.Contains(said, "are of one proxy") {
				t.Errorf("one of them twice: exit status %d, %s", status, said)
			}
		})
	}
}
