package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"wirecheck/history"
	"wirecheck/internal/garbage"
	"wirecheck/oracle/isolation"
)

// The third workload: short transactions of two statements, and 20 long ones, each open while 50,000 short ones come and go. A proxy calls Add
// under a lock that all clients share, so one slow call holds them all up.
const (
	longTxns   = 20
	longLength = 50_000 // short transactions while one long one is open
	longTotal  = 200_000
	shortParts = 8
)

// long measures the processor time of single calls of Add and prints the slowest ones. Then another checker gets the same events in pieces, of which all
// processor time is taken, that of the collector of garbage included, on one core: so many statements it judges in a second.
func long() error {
	runtime.LockOSThread()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := isolation.New(isolation.Options{})
	var took []time.Duration
	err := play(longTxns, longTotal, func(e history.Event) error {
		before, err := threadTime()
		if err != nil {
			return err
		}
		c.Add(&e)
		after, err := threadTime()
		took = append(took, after-before)
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	share := func(p float64) time.Duration { return took[int(p*float64(len(took)-1))].Round(time.Microsecond) }
	fmt.Printf("\n%d long transactions, each open during %d others: CPU time of one event: median %s, p99 %s, p99.9 %s, p99.99 %s, slowest %s (%d events, %d transactions kept)\n",
		longTxns, longLength, share(0.5), share(0.99), share(0.999), share(0.9999), share(1), len(took), c.Kept())
	c = nil
	runtime.GC()
	defer garbage.Tune()() // as a proxy has it
	whole := pieces{c: isolation.New(isolation.Options{})}
	if err := errors.Join(play(longTxns, longTotal, whole.add), whole.flush()); err != nil {
		return err
	}
	fmt.Printf("all processor time of these events, on one core: %.0f statements/s, %.0f transactions/s, %.0f events/s\n", whole.per(whole.statements), whole.per(whole.txns), whole.per(len(took)))
	return short(shortParts)
}

// short judges transactions none of which stays open, on one core, and prints after each part of them how fast that went and what is in memory.
func short(parts int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer garbage.Tune()() // as a proxy has it
	p := pieces{c: isolation.New(isolation.Options{})}
	fmt.Printf("no long transactions:")
	err := play(0, parts*longTotal, func(e history.Event) error {
		err := p.add(e)
		if len(p.events) == 0 && p.txns >= longTotal {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			fmt.Printf("  %.0f statements/s, %.1f MiB", p.per(p.statements), float64(m.HeapAlloc)/(1<<20))
			p.statements, p.txns, p.took = 0, 0, 0
		}
		return err
	})
	fmt.Println()
	return err
}

// play makes the events of the third workload, with so many long transactions at a time and so many short ones.
func play(longs, total int, take func(history.Event) error) error {
	rng := rand.New(rand.NewPCG(5, 6))
	version := make([]uint64, formRows)
	writer := make([]uint64, formRows)
	tick, txn := uint64(0), uint64(0)
	add := func(e history.Event) error {
		tick++
		e.From, e.To = tick, tick
		return take(e)
	}
	begin := func(session uint64) (uint64, error) {
		txn++
		return txn, add(history.Event{Kind: history.EventBegin, Session: session, Txn: txn, Level: "read committed", Tokens: []string{"T" + strconv.FormatUint(txn, 10)}})
	}
	stmt := func(session, t uint64, n int, write bool) error {
		row := rng.IntN(formRows)
		a := history.Access{Op: history.OpRead, Row: history.Row{Table: "bank.account", Key: strconv.Itoa(row)}, Version: strconv.FormatUint(version[row], 10), Order: version[row] + 1}
		if writer[row] > 0 {
			a.Writer = "T" + strconv.FormatUint(writer[row], 10)
		}
		e := history.Event{Kind: history.EventStmt, Session: session, Txn: t, N: n, SQL: "SELECT balance FROM account WHERE id = ?", Verb: "select", Coverage: history.CoverageExact}
		if write {
			version[row]++
			writer[row] = t
			e.SQL, e.Verb = "UPDATE account SET balance = ? WHERE id = ?", "update"
			a = history.Access{Op: history.OpUpdate, Row: a.Row, Version: strconv.FormatUint(version[row], 10), Order: version[row] + 1, Prev: a.Version, PrevOrder: a.Order, PrevWriter: a.Writer}
		}
		e.Accesses = []history.Access{a}
		return add(e)
	}
	end := func(session, t uint64) error {
		return add(history.Event{Kind: history.EventEnd, Session: session, Txn: t, Outcome: history.OutcomeCommitted})
	}
	type open struct {
		txn uint64
		n   int
	}
	lasting := [longTxns]open{}
	for i := range total {
		if longs > 0 && i%(longLength/longTxns) == 0 { // one long transaction ends, and the next one begins
			k := i / (longLength / longTxns) % longTxns
			session := uint64(100 + k)
			if lasting[k].txn != 0 {
				if err := end(session, lasting[k].txn); err != nil {
					return err
				}
			}
			t, err := begin(session)
			if err != nil {
				return err
			}
			lasting[k] = open{txn: t}
		}
		if k := i / 500 % longTxns; i%500 == 0 && lasting[k].txn != 0 {
			lasting[k].n++
			if err := stmt(uint64(100+k), lasting[k].txn, lasting[k].n, false); err != nil {
				return err
			}
		}
		session := uint64(1 + rng.IntN(formSessions))
		t, err := begin(session)
		if err != nil {
			return err
		}
		for n := range 2 {
			if err := stmt(session, t, n+1, n == 1); err != nil {
				return err
			}
		}
		if err := end(session, t); err != nil {
			return err
		}
	}
	return nil
}

// pieces gives events to a checker, many at once.
type pieces struct {
	c                *isolation.Checker
	events           []history.Event
	statements, txns int
	took             time.Duration
}

// pieceEvents is few, so that the events are in the cache, as those are that a proxy has just made.
const pieceEvents = 1 << 8

func (p *pieces) add(e history.Event) error {
	if p.events = append(p.events, e); len(p.events) < pieceEvents {
		return nil
	}
	return p.flush()
}

func (p *pieces) flush() error {
	before, err := processTime()
	if err != nil {
		return err
	}
	for i := range p.events {
		switch p.c.Add(&p.events[i]); p.events[i].Kind {
		case history.EventStmt:
			p.statements++
		case history.EventEnd:
			p.txns++
		}
	}
	after, err := processTime()
	p.took += after - before
	clear(p.events)
	p.events = p.events[:0]
	return err
}

// per is how many there are for each second.
func (p *pieces) per(n int) float64 { return float64(n) / p.took.Seconds() }

// processTime is the processor time of all threads.
func processTime() (time.Duration, error) { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadTime is the processor time of this thread.
func threadTime() (time.Duration, error) { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(id, &t)
	return time.Duration(t.Nano()), err
}
