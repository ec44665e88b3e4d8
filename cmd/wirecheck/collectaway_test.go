package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"wirecheck/internal/shop"
)

// TestCollectAway: NATS is away for longer than a proxy's buffer lasts. The sessions go on. The proxy counts what it loses, collect says how much is missing and
// infers nothing across the gap: not from what was in it, and not from a transaction that began before and ended behind. What comes later is found. A proxy
// that ends while NATS is away says what was not sent.
func TestCollectAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)", "CREATE TABLE other (id INT PRIMARY KEY, value INT)",
		"CREATE TABLE later (id INT PRIMARY KEY, value INT)")
	w.run(t, "INSERT INTO later VALUES (1, 10), (2, 20)", "INSERT INTO test VALUES (1, 10), (2, 20)", "INSERT INTO other VALUES (1, 10), (2, 20)")
	n := startNATS(t)
	first, at1 := publishingProxy(t, w, n.url(), "--publish-buffer", "32KiB")
	second, at2 := publishingProxy(t, w, n.url())
	told := filepath.Join(t.TempDir(), "told")
	c := startProgram(t, "collect", "--from", n.url(), "--stream", told, "--format", "json")
	finds := func(n int) {
		t.Helper()
		c.until(t, fmt.Sprint(n, " findings"), func() bool {
			text, err := os.ReadFile(told)
			return err == nil && strings.Count(string(text), "\n") == n
		})
	}
	across(t, w, named(t, "P4")[0].steps, at1, at2)
	finds(1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	busy, err := at1.Connect(ctx, shop.Driver)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	until := func(p *program, what string) {
		t.Helper()
		p.until(t, what, func() bool {
			if _, err := busy.Do(ctx, "SELECT id FROM test WHERE id = 1"); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(p.stderr.String(), what)
		})
	}
	s := newStage(t, ctx, w.admin, at1, "REPEATABLE READ")
	s.spread = []shop.Target{at2, at1} // 1 at the first proxy, 2 at the second one
	s.play(ctx, lines("1 begin\n1 select * from other where id = 1"))
	n.kill(t)
	until(first, "EVENTS ARE LOST")
	across(t, w, named(t, "G2-item")[0].steps, at1, at2) // half of it is lost
	s.play(ctx, lines("2 begin\n2 select * from other where id = 1\n2 update other set value = 11 where id = 1\n2 commit"))
	n.start(t)
	until(first, "no more events are lost")
	s.play(ctx, lines("1 update other set value = 12 where id = 1\n1 commit")) // the update of 2 is lost, across the gap
	s.close()
	across(t, w, strings.ReplaceAll(named(t, "G-single, write of what the other wrote")[0].steps, "test", "later"), at1, at2)
	finds(2)
	gap := regexp.MustCompile(`"run":"\w+","time":"[^"]*","message":"(\d+) events were lost`)
	c.until(t, "what is missing", func() bool { return gap.MatchString(c.stderr.String()) })

	n.kill(t)
	until(second, "NATS is away")
	until(first, "NATS is away")
	began := time.Now()
	if status := first.end(t); status != int(exitFailed) || !regexp.MustCompile(`publish to nats://127.0.0.1:\d+: \d+ events? could not be published`).MatchString(first.stderr.String()) {
		t.Errorf("exit status %d of a proxy that could not publish:\n%s", status, first.stderr.String())
	}
	t.Logf("it ended in %s", time.Since(began).Round(time.Millisecond))
	n.start(t)
	if status := second.end(t); status != int(exitClean) && status != int(exitUnknown) {
		t.Errorf("exit status %d of a proxy that lost nothing:\n%s", status, second.stderr.String())
	}
	status, lost := c.end(t), gap.FindStringSubmatch(c.stderr.String())
	if got := titles(found(t, c.stdout.String())); status != int(exitFound) || got != "lost update, read-write skew" || !strings.Contains(c.stdout.String(), `"lost": `+lost[1]) {
		t.Errorf("exit status %d, found %s, %s events lost:\n%s\n%s", status, got, lost[1], c.stdout.String(), c.stderr.String())
	}
}

// TestCollectStalledEnd: NATS takes nothing, but its connection stays, and the proxy has more to send than the system's buffers hold. The sessions go on, and
// the proxy ends when it is asked to, and says what was not sent.
func TestCollectStalledEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	n := startNATS(t)
	b, way := newBreakable(t, n.url())
	p, at := publishingProxy(t, w, way, "--http", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	busy, err := at.Connect(ctx, shop.Driver)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	defer b.hold()()
	long := "SELECT 1 /* " + strings.Repeat("x", 1<<20) + " */"
	for range 16 {
		if _, err := busy.Do(ctx, long); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if status := p.end(t); status != int(exitFailed) || !strings.Contains(p.stderr.String(), "could not be published") {
		t.Errorf("exit status %d of a proxy that could not publish:\n%s", status, p.stderr.String())
	}
	t.Logf("it ended in %s", time.Since(began).Round(time.Millisecond))
}
