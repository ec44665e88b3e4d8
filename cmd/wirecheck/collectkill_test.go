package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/certificate"
	"wirecheck/internal/shop"
	"wirecheck/oracle"
)

// TestCollectServerKilled: the NATS server, a process of its own, is killed and started again on its folder, while proxies and a collector are connected
// and sessions play. Nothing is lost, and nothing is there twice. Who does not prove who they are reads nothing.
func TestCollectServerKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority, err := certificate.NewAuthority("fleet")
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Issue("nats", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.Issue("proxy")
	if err != nil {
		t.Fatal(err)
	}
	ca, cert, key := file("ca.pem", authority.PEM()), file("cert.pem", client.CertPEM), file("key.pem", client.KeyPEM)
	for _, tt := range []struct {
		name  string
		flags []string
		where func(port int) string
		wrong string // what who does not prove it hears
	}{
		{"open", nil, func(port int) string { return fmt.Sprintf("nats://127.0.0.1:%d", port) }, ""},
		{"token", []string{"--auth", "s3cret"}, func(port int) string { return fmt.Sprintf("nats://s3cret@127.0.0.1:%d", port) }, "Authorization Violation"},
		{"password", []string{"--user", "ann", "--pass", "s3cret"}, func(port int) string { return fmt.Sprintf("nats://ann:s3cret@127.0.0.1:%d", port) }, "Authorization Violation"},
		{"tls", []string{"--tlsverify", "--tlscert", file("server.pem", server.CertPEM), "--tlskey", file("server.key", server.KeyPEM), "--tlscacert", ca},
			func(port int) string {
				return fmt.Sprintf("tls://127.0.0.1:%d?ca=%s&cert=%s&key=%s", port, ca, cert, key)
			}, "certificate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
			w.clock = time.Now
			list := repeatable(t)
			want := asOne(t, w, list)
			n := startNATS(t, tt.flags...)
			f := fleetAt(t, tt.where(n.port))
			if tt.wrong != "" {
				_, said, status := command(t, "collect", "--from", n.url(), "--until-end")
				if status != exitFailed || !strings.Contains(said, tt.wrong) {
					t.Errorf("who proves nothing: exit status %d, %s", status, said)
				}
			}
			told := filepath.Join(t.TempDir(), "told")
			p := startProgram(t, "collect", "--from", f.where, "--stream", told)
			p.until(t, "it collects", func() bool { return strings.Contains(p.stderr.String(), "collecting") })
			publishInTurn(t, w, f)
			for i, in := range list {
				in.spread(t, w, "REPEATABLE READ", 2)
				switch i {
				case 1:
					n.kill(t)
				case 4:
					n.start(t)
				}
			}
			n.kill(t) // right behind the last one
			n.start(t)
			f.published(t)
			got := f.collected(t)
			if diff := cmp.Diff(want, ids(got)); diff != "" || len(got) != len(want) {
				t.Errorf("%d findings (-one +several):\n%s", len(got), diff)
			}
			p.until(t, "the server is there again", func() bool { return strings.Contains(p.stderr.String(), "NATS is there again") })
			tells(t, p, told, len(want))
			if status := p.end(t); status != int(exitFound) || strings.Contains(p.stderr.String(), `"run":`) || strings.Contains(p.stderr.String(), "s3cret") {
				t.Errorf("exit status %d, or something is missing, or a secret is told:\n%s", status, p.stderr.String())
			}
		})
	}
}

// publishingProxy is a proxy as a process that publishes.
func publishingProxy(t *testing.T, w *world, where string, more ...string) (*program, shop.Target) {
	t.Helper()
	p := startProgram(t, append([]string{"proxy", "--publish", where, "--listen", "mysql://" + anyPort, "--upstream", fmt.Sprintf("mariadb://127.0.0.1:%d", w.direct.Port)}, more...)...)
	target := w.direct
	target.Port = p.port(t, "mysql", nil)
	return p, target
}

// across plays steps, actor 1 at the first target, actor 2 at the second one.
func across(t *testing.T, w *world, steps string, targets ...shop.Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := newStage(t, ctx, w.admin, targets[0], "REPEATABLE READ")
	s.spread = append(targets[len(targets)-1:], targets[:len(targets)-1]...) // actor n is at target n modulo their number
	s.play(ctx, lines(steps))
	s.close()
}

// tells waits until a collector has written so many findings to the file of --stream.
func tells(t *testing.T, p *program, file string, n int) {
	t.Helper()
	p.until(t, fmt.Sprint(n, " findings"), func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Count(string(text), "\n") == n
	})
}

// TestCollectProxyKilled: a proxy is killed in the middle of transactions, and with it the NATS server that it has; another process has the server then,
// and another proxy takes its place. Of the transactions in the middle nothing is found. What came before and what comes behind is.
func TestCollectProxyKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)", "CREATE TABLE other (id INT PRIMARY KEY, value INT)")
	w.run(t, "INSERT INTO test VALUES (1, 10), (2, 20)", "INSERT INTO other VALUES (1, 10), (2, 20)")
	where := "embedded:" + t.TempDir() + "/fleet"
	first, at1 := publishingProxy(t, w, where)
	second, at2 := publishingProxy(t, w, where)
	told := filepath.Join(t.TempDir(), "told")
	c := startProgram(t, "collect", "--from", where, "--stream", told)
	finds := func(n int) {
		t.Helper()
		tells(t, c, told, n)
	}
	lost := named(t, "P4")[0].steps
	across(t, w, lost, at1, at2)
	finds(1)

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := newStage(t, ctx, w.admin, at1, "REPEATABLE READ")
	s.spread = []shop.Target{at2, at1, at2, at1}
	// 1 would lose 2's update, and 3's would be skewed with 2's, if they committed.
	s.play(ctx, lines(`
		1 begin
		3 begin
		2 begin
		1 select * from other where id = 1
		3 select * from other
		2 select * from other
		2 update other set value = 11 where id = 1
		2 commit
		1 update other set value = 12 where id = 1
		3 update other set value = 13 where id = 2`))
	first.kill(t)
	s.play(ctx, lines(`
		2 begin
		2 select * from other
		2 update other set value = 14 where id = 2
		2 commit`))
	s.close()
	third, at3 := publishingProxy(t, w, where)
	across(t, w, named(t, "G2-item")[0].steps, at3, at2)
	finds(2)
	for _, p := range []*program{second, third} {
		if status := p.end(t); status != int(exitClean) && status != int(exitUnknown) {
			t.Errorf("exit status %d of a proxy:\n%s", status, p.stderr.String())
		}
	}
	if status := c.end(t); status != int(exitFound) || strings.Contains(c.stderr.String(), `"run":`) {
		t.Errorf("exit status %d, or something is missing:\n%s", status, c.stderr.String())
	}
	out, said, status := command(t, "collect", "--from", where, "--until-end", "--format", "json")
	if titles(found(t, out)) != "lost update, write skew" || status != exitFound {
		t.Errorf("one lost update and one write skew, each once:\n%s\n%s", out, said)
	}
}

// titles are the names of findings, sorted.
func titles(findings []oracle.Finding) string {
	var list []string
	for i := range findings {
		list = append(list, findings[i].Title())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestCollectShuffled: what proxies published comes twice, and in another order, as far as a publisher lets that happen. That changes nothing. In an order
// that cannot be, there are holes, which are told, and nothing is found that is not there. Then an id may be another one (see told), so the transactions
// are compared.
func TestCollectShuffled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	w.clock = time.Now
	list := repeatable(t)
	want := asOne(t, w, list)
	f := newFleet(t)
	f.makeStream(t)
	publishInTurn(t, w, f)
	one, two := w.observe(t), w.observe(t)
	for len(f.messages(t)["run1"]) < 24 { // several times as many as may be on their way
		for _, in := range list {
			across(t, w, "1 delete from test\n1 insert into test values (1, 10), (2, 20)\n"+in.steps, one.target, two.target)
		}
	}
	for _, th := range []*through{one, two} {
		if err := th.end(); err != nil {
			t.Error(err)
		}
	}
	f.published(t)
	runs := f.messages(t)
	for seed := range uint64(8) {
		f.again(t, fmt.Sprint("shuffled", seed), runs, seed, 8)
		if diff := cmp.Diff(want, ids(f.collected(t))); diff != "" {
			t.Errorf("seed %d (-one +shuffled):\n%s", seed, diff)
		}
	}
	holes, all := 0, whatHappened(t, runs)
	for seed := range uint64(8) {
		f.again(t, fmt.Sprint("broken", seed), runs, seed, 1000)
		out, said, _ := command(t, "collect", "--from", f.where, "--fleet", f.name, "--until-end", "--format", "json")
		holes += strings.Count(said, "messages are gone from the stream")
		all.check(t, seed, found(t, out))
	}
	if holes == 0 {
		t.Error("no hole: the order is none that cannot be")
	}
}
