package main

import (
	"fmt"
	"math/rand/v2"

	"wirecheck/history"
)

// The load: transactions of two SELECTs and two UPDATEs by primary key, each proxy with a few sessions.
const (
	statements = 4      // of a transaction
	sessions   = 20     // of a proxy
	rows       = 200000 // of the table
	atOnce     = 250    // statements of a message: what a proxy of 5000 a second publishes in 50 ms
	lostOne    = 10000  // one of so many transactions loses an update
)

const (
	sqlRead  = "SELECT owner, balance FROM account WHERE id = $1"
	sqlWrite = "UPDATE account SET balance = balance + $1, changed = now() WHERE id = $2"
)

// load makes the messages of several proxies, in virtual time.
type load struct {
	rng     *rand.Rand
	proxies []*proxy
	rows    []version
	orders  uint64
	recent  [100]int // rows that were written last
	out     []message
}

type version struct {
	name, writer, before string
	order, beforeOrder   uint64
}

// message is a batch of a proxy.
type message struct {
	proxy int
	data  []byte
}

type proxy struct {
	number int
	batch  history.Batch
	count  int // statements in it
	tick   uint64
	txns   uint64
	open   []uint64 // the transaction of each session
	told   map[uint64]bool
}

func newLoad(proxies int) *load {
	l := &load{rng: rand.New(rand.NewPCG(1, 2)), rows: make([]version, rows), orders: 10}
	for i := range proxies {
		l.proxies = append(l.proxies, &proxy{number: i, open: make([]uint64, sessions), told: map[uint64]bool{}})
	}
	return l
}

// more makes so many more transactions, and gives their messages.
func (l *load) more(txns int) []message {
	l.out = nil
	for range txns {
		p := l.proxies[l.rng.IntN(len(l.proxies))]
		s := uint64(l.rng.IntN(sessions)) + 1
		if p.open[s-1] != 0 {
			l.transaction(p, s)
		}
		p.txns++
		p.open[s-1] = p.txns
		l.add(p, history.Event{Kind: history.EventBegin, Session: s, Txn: p.txns, Level: "repeatable read", Tokens: []string{p.token(p.txns)}})
	}
	for _, p := range l.proxies {
		l.send(p)
	}
	return l.out
}

func (p *proxy) token(txn uint64) string { return fmt.Sprintf("T%d.run%d", txn, p.number) }

func (l *load) add(p *proxy, e history.Event) {
	if !p.told[e.Session] {
		p.told[e.Session] = true
		p.batch.Add(&history.Event{Kind: history.EventSession, Session: e.Session, Engine: "mariadb"})
	}
	p.tick += 2
	e.From, e.To, e.At = p.tick-1, p.tick, int64(p.tick)*1000
	p.batch.Add(&e)
	if e.Kind == history.EventStmt {
		p.count++
	}
	if p.count >= atOnce {
		l.send(p)
	}
}

func (l *load) send(p *proxy) {
	if p.batch.Len() > 0 {
		l.out = append(l.out, message{p.number, p.batch.Take()})
	}
	p.count = 0
	clear(p.told)
}

// transaction tells what the open transaction of a session did, and its end.
func (l *load) transaction(p *proxy, session uint64) {
	txn := p.open[session-1]
	token := p.token(txn)
	lost := l.rng.IntN(lostOne) == 0
	for n := 1; n <= statements; n++ {
		k := l.rng.IntN(rows)
		if lost && n == statements {
			k = l.recent[l.rng.IntN(len(l.recent))]
		}
		v := &l.rows[k]
		a := history.Access{Op: history.OpRead, Row: history.Row{Table: "account", Key: fmt.Sprint(k)}, Version: v.name, Writer: v.writer, Order: v.order}
		if v.name == "" {
			a.Version, a.Order = "initial", history.OrderInitial
		}
		e := history.Event{Kind: history.EventStmt, Session: session, Txn: txn, N: n, SQL: sqlRead, Verb: "select", Coverage: history.CoverageExact}
		if n > statements/2 {
			l.orders++
			e.SQL, e.Verb, e.CurrentRead = sqlWrite, "update", !lost
			next := version{fmt.Sprintf("%s.%d", token, n), token, a.Version, l.orders, a.Order}
			if lost && n == statements && v.before != "" { // it read what the last writer replaced
				old := a
				old.Version, old.Writer, old.Order = v.before, "", v.beforeOrder
				e.Accesses = append(e.Accesses, old)
			}
			a.Op, a.Prev, a.PrevWriter, a.PrevOrder = history.OpUpdate, a.Version, a.Writer, a.Order
			a.Version, a.Writer, a.Order = next.name, "", next.order
			*v = next
			l.recent[l.orders%uint64(len(l.recent))] = k
		}
		e.Accesses = append(e.Accesses, a)
		l.add(p, e)
	}
	l.add(p, history.Event{Kind: history.EventEnd, Session: session, Txn: txn, Outcome: history.OutcomeCommitted, Sent: p.tick})
	p.open[session-1] = 0
}
