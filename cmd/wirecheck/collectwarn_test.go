package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/internal/shop"
)

// warned is a world in which each client has a proxy of its own, which listens for warnings.
type warned struct {
	*world
	fleet   *fleetOf
	proxies []*through
	clients []shop.Client
	told    []string          // what each client heard of anomalies
	heard   chan stream.Heard // what became of each warning that came
}

const testTable = "CREATE TABLE test (id INT PRIMARY KEY, value INT)"

// newWarned starts so many proxies, and two clients that use them in turn.
func newWarned(t *testing.T, ctx context.Context, in *world, proxies int) *warned {
	t.Helper()
	in.run(t, "DELETE FROM test")
	in.clock = time.Now
	w := &warned{world: in, heard: make(chan stream.Heard, 100), fleet: newFleet(t)}
	for i := range proxies {
		run := fmt.Sprintf("p%d", i+1)
		w.publish = func() *stream.Publisher { return w.fleet.publisher(t, run) }
		th := w.observe(t)
		err := stream.Hear(w.fleet.bus, w.fleet.name, run, func(data []byte) (stream.Heard, error) {
			heard, err := th.live.Hear(data)
			if err == nil {
				w.heard <- heard
			}
			return heard, err
		})
		if err != nil {
			t.Fatal(err)
		}
		w.proxies = append(w.proxies, th)
	}
	for i := range 2 {
		c, err := w.proxies[i%proxies].target.Connect(ctx, shop.Driver)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		w.clients, w.told = append(w.clients, c), append(w.told, "")
	}
	w.play(t, ctx, "1 INSERT INTO test (id, value) VALUES (1, 10), (2, 20), (3, 30)")
	return w
}

// play plays lines such as "1 BEGIN" and keeps what the clients hear of anomalies.
func (w *warned) play(t *testing.T, ctx context.Context, steps string) {
	t.Helper()
	for _, step := range lines(steps) {
		who, sql, _ := strings.Cut(step, " ")
		i := int(who[0] - '1')
		if _, err := w.clients[i].Do(ctx, sql); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		heard, err := w.clients[i].Heard(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range heard {
			if strings.Contains(text, "WC-") {
				w.told[i] += text + "\n"
			}
		}
	}
}

// hears waits until each client has heard of so many anomalies, at its next answers.
func (w *warned) hears(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	const another = "1 SELECT value FROM test WHERE id = 9\n2 SELECT value FROM test WHERE id = 9"
	for w.play(t, ctx, another); min(strings.Count(w.told[0], warningBegins), strings.Count(w.told[1], warningBegins)) < n; w.play(t, ctx, another) {
		select {
		case got := <-w.heard:
			if got != (stream.Heard{Told: 1}) {
				t.Fatalf("%+v", got)
			}
		case <-ctx.Done():
			t.Fatalf("no warning comes; heard:\n%s", w.told)
		}
	}
}

// warningBegins begins each warning.
const warningBegins = "wirecheck: "

// collector starts wirecheck collect and waits until it collects.
func (w *warned) collector(t *testing.T, args ...string) *program {
	t.Helper()
	p := startProgram(t, append([]string{"collect", "--from", w.fleet.where}, args...)...)
	p.until(t, "it collects", func() bool { return strings.Contains(p.stderr.String(), "collecting") })
	return p
}

const (
	updateLost = `
		1 BEGIN
		2 BEGIN
		1 SELECT value FROM test WHERE id = 1
		2 SELECT value FROM test WHERE id = 1
		1 UPDATE test SET value = 11 WHERE id = 1
		1 COMMIT
		2 UPDATE test SET value = 12 WHERE id = 1
		2 COMMIT`
	writesSkewed = `
		1 BEGIN
		2 BEGIN
		1 SELECT value FROM test WHERE id = 2
		2 SELECT value FROM test WHERE id = 1
		1 UPDATE test SET value = 0 WHERE id = 1
		2 UPDATE test SET value = 0 WHERE id = 2
		1 COMMIT
		2 COMMIT`
	// oneByOne is no anomaly: the second transaction begins when the first one has ended.
	oneByOne = `
		1 BEGIN
		1 SELECT value FROM test WHERE id = 3
		1 UPDATE test SET value = 31 WHERE id = 3
		1 COMMIT
		2 BEGIN
		2 SELECT value FROM test WHERE id = 3
		2 UPDATE test SET value = 32 WHERE id = 3
		2 COMMIT`
)

var sessionNumber = regexp.MustCompile(`([Ss]ession) \d+`)

// TestCollectWarns: of an anomaly between two proxies both sessions hear with their next answers, word for word as of one within one proxy, and can ask
// for its proof. What happens one by one they hear nothing of, and messages that are no warnings change nothing.
func TestCollectWarns(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		in := newWorld(t, engine, testTable)
		for name, steps := range map[string]string{"lost update": updateLost, "write skew": writesSkewed} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				one := newWarned(t, ctx, in, 1)
				one.play(t, ctx, oneByOne+steps)
				one.hears(t, ctx, 1)
				two := newWarned(t, ctx, in, 2)
				two.collector(t)
				for _, garbage := range []string{"", "{", "null", `{"finding":{"id":"WC-123456","edges":[{"from":7}]},"sessions":{"1":1}}`, strings.Repeat("x", 1<<19)} {
					if err := two.fleet.bus.Conn().Publish("wirecheck."+two.fleet.name+".warnings.p1", []byte(garbage)); err != nil {
						t.Fatal(err)
					}
				}
				two.play(t, ctx, oneByOne+steps)
				two.hears(t, ctx, 1)
				for i := range two.told {
					got, want := sessionNumber.ReplaceAllString(two.told[i], "$1 N"), sessionNumber.ReplaceAllString(one.told[i], "$1 N")
					if diff := cmp.Diff(want, got); diff != "" || strings.Count(want, "wirecheck: "+name) != 1 {
						t.Errorf("client %d (-one proxy +two):\n%s\nwith one:\n%s", i+1, diff, want)
					}
					two.explains(t, ctx, i)
				}
				for _, p := range two.proxies {
					if got, want := p.live.Result().Between, []string{findingIn.FindString(one.told[0])}; !slices.Equal(got, want) {
						t.Errorf("a proxy's result names %v, want %v", got, want)
					}
				}
				if s := two.proxies[0].live.Status(); s.NotHeard != 5 || s.Heard.Told != 1 {
					t.Errorf("%d messages were left out, want 5; %+v", s.NotHeard, s.Heard)
				}
			})
		}
	}
}

var findingIn = regexp.MustCompile(`WC-[0-9a-f]+`)

// explains asks for the proof of what a client heard.
func (w *warned) explains(t *testing.T, ctx context.Context, i int) {
	t.Helper()
	proof, err := w.clients[i].Do(ctx, "SELECT wirecheck.explain('"+findingIn.FindString(w.told[i])+"')")
	if err != nil || !strings.Contains(proof, "Proof (") || strings.Count(proof, "(proxy p") != 2 || !strings.Contains(strings.ToLower(proof), "you") {
		t.Errorf("client %d asks: %v\n%s", i+1, err, proof)
	}
}

// TestCollectWarnsOnce: a collector is killed at any moment after the sessions heard. The next one does not warn of the same again; what is new it warns of.
// So it is with the collector behind two parts.
func TestCollectWarnsOnce(t *testing.T) {
	t.Parallel()
	in := newWorld(t, "postgres", testTable)
	t.Run("one", func(t *testing.T) { warnsOnce(t, in) })
	t.Run("parts", func(t *testing.T) { warnsOnce(t, in, "1/2", "2/2") })
}

func warnsOnce(t *testing.T, in *world, parts ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWarned(t, ctx, in, 2)
	var args []string
	for _, part := range parts {
		w.collector(t, "--part", part)
		args = []string{"--parts", fmt.Sprint(len(parts))}
	}
	for i := range 3 {
		p := w.collector(t, args...)
		w.play(t, ctx, updateLost)
		w.hears(t, ctx, i+1)
		for k, told := range w.told {
			if whole, again := strings.Count(told, "wirecheck: lost update"), strings.Count(told, " again, "); whole != 1 || again != i {
				t.Errorf("collector %d: client %d heard %d times, and %d times again:\n%s", i+1, k+1, whole, again, told)
			}
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.ended
	}
	w.play(t, ctx, writesSkewed)
	w.collector(t, args...)
	w.hears(t, ctx, 4)
	for k, told := range w.told {
		if strings.Count(told, warningBegins) != 4 || strings.Count(told, "wirecheck: write skew") != 1 {
			t.Errorf("client %d heard:\n%s", k+1, told)
		}
	}
	for i := range w.told {
		w.explains(t, ctx, i)
	}
}

// TestCollectWarnsNobody: a session that has ended and a proxy that is gone are counted, and no error. What is between sessions of one proxy, that proxy told.
func TestCollectWarnsNobody(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w := newWarned(t, ctx, newWorld(t, "mariadb", testTable), 2)
	other, err := w.proxies[1].target.Connect(ctx, shop.Driver)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w.play(t, ctx, updateLost)
	first := w.clients[0]
	w.clients[0] = other // both clients at one proxy
	w.play(t, ctx, strings.ReplaceAll(updateLost, "id = 1", "id = 2"))
	first.Close()
	for _, th := range w.proxies {
		if err := th.end(); err != nil {
			t.Error(err)
		}
	}
	w.fleet.published(t)
	w.fleet.bus.Close() // nobody listens any more
	if w.fleet.bus, err = bus.Open(ctx, w.fleet.where, bus.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.fleet.bus.Close)
	_, said, status := command(t, "collect", "--from", w.fleet.where, "--until-end")
	if status != exitFound || !regexp.MustCompile(`"told":0,"ended":(0,"gone":2|1,"gone":1|2,"gone":0)\D`).MatchString(said) {
		t.Errorf("exit status %d: %s", status, said)
	}
}
