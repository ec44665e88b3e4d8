package fleet_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// store is a database whose sessions go through several proxies. Each proxy numbers its sessions and transactions, and has a clock of its own.
type store struct {
	engine  string
	proxies []*recorder
	rows    map[string]version
	writes  uint64
	now     int64
}

type version struct {
	name, writer string
	order        uint64
}

type recorder struct {
	events          []history.Event
	tick            uint64
	skew            int64 // of its wall clock
	sessions, txns  uint64
	begunAtOrder    uint64 // what has a smaller place counts as initial
	transactionsAre string
}

func newStore(engine string, rnd *rand.Rand, proxies int) *store {
	s := &store{engine: engine, rows: map[string]version{}}
	for i := range proxies {
		s.proxies = append(s.proxies, &recorder{tick: uint64(rnd.IntN(1000)), skew: rnd.Int64N(200) - 100, transactionsAre: fmt.Sprintf("run%d", i)})
	}
	return s
}

// session is a client's connection through a proxy.
type session struct {
	s       *store
	p       *recorder
	id, txn uint64
	token   string
	n       int
	wrote   map[string]version
}

func (s *store) add(p *recorder, e history.Event) {
	s.now++
	p.tick++
	e.At, e.From, e.To = s.now+p.skew, p.tick, p.tick+1
	p.tick++
	p.events = append(p.events, e)
}

func (s *store) connect(p *recorder) *session {
	p.sessions++
	c := &session{s: s, p: p, id: p.sessions}
	s.add(p, history.Event{Kind: history.EventSession, Session: c.id, Engine: s.engine})
	return c
}

func (c *session) begin() {
	c.p.txns++
	c.txn, c.n, c.wrote = c.p.txns, 0, map[string]version{}
	c.token = fmt.Sprintf("T%d.%s", c.txn, c.p.transactionsAre)
	c.s.add(c.p, history.Event{Kind: history.EventBegin, Session: c.id, Txn: c.txn, Level: "serializable", Tokens: []string{c.token}})
}

func (c *session) statement(a history.Access, verb string) {
	c.n++
	a.Row.Table = "t"
	c.s.add(c.p, history.Event{Kind: history.EventStmt, Session: c.id, Txn: c.txn, N: c.n, SQL: verb, Verb: verb, Coverage: history.CoverageExact, Accesses: []history.Access{a}})
}

// read reads the version that was committed last, or, where that is given, another one.
func (c *session) read(key string, v version) {
	a := history.Access{Op: history.OpRead, Row: history.Row{Key: key}, Version: v.name, Writer: v.writer, Order: v.order}
	if v.order <= c.p.begunAtOrder {
		a.Writer, a.Order = "", history.OrderInitial
	}
	c.statement(a, "select")
}

func (c *session) write(key string) {
	prev := c.s.rows[key]
	c.s.writes++
	v := version{fmt.Sprintf("v%d", c.s.writes), c.token, c.s.writes + 10}
	c.wrote[key] = v
	c.s.rows[key] = v
	a := history.Access{Op: history.OpUpdate, Row: history.Row{Key: key}, Version: v.name, Order: v.order, Prev: prev.name, PrevWriter: prev.writer, PrevOrder: prev.order}
	if prev.order <= c.p.begunAtOrder {
		a.PrevWriter, a.PrevOrder = "", history.OrderInitial
	}
	c.statement(a, "update")
}

func (c *session) commit() {
	c.s.add(c.p, history.Event{Kind: history.EventEnd, Session: c.id, Txn: c.txn, Outcome: history.OutcomeCommitted, Sent: c.p.tick})
}

// transaction reads and writes a few rows, and commits.
func (c *session) transaction(rnd *rand.Rand) {
	c.begin()
	for range 1 + rnd.IntN(3) {
		if key := fmt.Sprint(rnd.IntN(4)); rnd.IntN(2) == 0 {
			c.read(key, c.s.rows[key])
		} else {
			c.write(key)
		}
	}
	c.commit()
}

// judged is what the histories of all proxies tell together.
func (s *store) judged(t *testing.T) ([]oracle.Finding, *isolation.Checker) {
	t.Helper()
	var sources []fleet.Source
	for i, p := range s.proxies {
		k := 0
		sources = append(sources, fleet.Source{Name: fmt.Sprint(i), Next: func(e *history.Event) error {
			if k == len(p.events) {
				return io.EOF
			}
			*e = p.events[k]
			e.Accesses = slices.Clone(e.Accesses)
			k++
			return nil
		}})
	}
	m := fleet.Merge(sources...)
	c := isolation.New(isolation.Options{Strict: true, Recorder: m.Recorder, Keep: -1})
	for {
		var e history.Event
		if err := m.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		c.Add(&e)
	}
	return c.Summary(), c
}

// TestSerial: what ran one after the other has no anomaly, whatever the proxies' clocks say, and though each has seen a part of it and begun at
// another moment.
func TestSerial(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newStore([]string{"postgres", "mariadb"}[seed%2], rnd, 1+rnd.IntN(4))
		var open []*session
		for range 40 {
			if p := s.proxies[rnd.IntN(len(s.proxies))]; len(open) < 6 {
				if p.sessions == 0 && s.engine == "postgres" {
					p.begunAtOrder = s.writes + 10
				}
				open = append(open, s.connect(p))
			}
			c := open[rnd.IntN(len(open))]
			c.transaction(rnd)
		}
		found, c := s.judged(t)
		if len(found) > 0 || len(c.Coverage().Contradictions) > 0 {
			t.Fatalf("seed %d: %v %v", seed, found, c.Coverage().Contradictions)
		}
	}
}

// TestAcross: anomalies between sessions of different proxies are found.
func TestAcross(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		for _, tt := range []struct {
			name  string
			plays func(s *store, a, b *session)
			want  anomaly.Class
		}{
			{"lost update", func(s *store, a, b *session) {
				old := s.rows["x"]
				a.read("x", old)
				b.read("x", old)
				a.write("x")
				a.commit()
				b.write("x")
				b.commit()
			}, anomaly.GSingle},
			{"write skew", func(s *store, a, b *session) {
				x, y := s.rows["x"], s.rows["y"]
				a.read("x", x)
				b.read("y", y)
				a.write("y")
				b.write("x")
				a.commit()
				b.commit()
			}, anomaly.G2Item},
			{"the near miss: one after the other", func(s *store, a, b *session) {
				a.read("x", s.rows["x"])
				a.write("x")
				a.commit()
				b.read("x", s.rows["x"])
				b.write("x")
				b.commit()
			}, ""},
		} {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				s := newStore(engine, rand.New(rand.NewPCG(7, 7)), 2)
				first := s.connect(s.proxies[0])
				first.begin()
				first.write("x")
				first.write("y")
				first.commit()
				if engine == "postgres" {
					s.proxies[1].begunAtOrder = s.writes + 10 // for the second proxy these versions are initial
				}
				a, b := s.connect(s.proxies[0]), s.connect(s.proxies[1])
				a.begin()
				b.begin()
				tt.plays(s, a, b)
				found, _ := s.judged(t)
				if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Class != tt.want) {
					t.Errorf("found %v, want %s", found, tt.want)
				}
			})
		}
	}
}

// TestClocks: that one transaction was over before another one began is known within a proxy, and between two proxies it is not.
func TestClocks(t *testing.T) {
	for _, proxies := range []int{1, 2} {
		s := newStore("mariadb", rand.New(rand.NewPCG(1, 1)), proxies)
		first := s.connect(s.proxies[0])
		first.begin()
		first.write("x")
		first.commit()
		old := s.rows["x"]
		a := s.connect(s.proxies[0])
		a.begin()
		a.write("x")
		a.commit()
		late := s.connect(s.proxies[proxies-1])
		late.begin()
		late.read("x", old) // stale: serializable, but not in real time
		late.commit()
		found, _ := s.judged(t)
		if (len(found) > 0) != (proxies == 1) {
			t.Errorf("%d proxies: found %v", proxies, found)
		}
	}
}
