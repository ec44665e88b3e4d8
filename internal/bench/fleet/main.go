// Command fleet measures what judging several proxies together costs, without servers: events that a load would make, in virtual time, in the messages that
// proxies publish. It prints the rate of one collector; of one part of several, and of the collector behind them; what a transaction takes in memory
// while it is open; and what these rates mean for a large fleet.
//
//	go run ./internal/bench/fleet [-txns 200000] [-rounds 3]
//
// Each figure is of one core: the process runs with GOMAXPROCS=1, and its processor time counts, since the machine may be shared. NATS is not in the
// figures; reading a message from it costs some 10 us.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/sieve"
)

// The fleet of the simulation.
const (
	fleetProxies = 100
	fleetRate    = 5000 // statements a second of each
)

func main() {
	txns := flag.Int("txns", 200_000, "transactions of a run")
	rounds := flag.Int("rounds", 3, "runs of each; the median is printed, with the least and the greatest")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if err := bench(*txns, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figures are rates of several rounds, in statements a second of processor time.
type figures []float64

func (f figures) median() float64 { return slices.Sorted(slices.Values(f))[len(f)/2] }

func (f figures) String() string {
	return fmt.Sprintf("%8.0f/s  [%.0f .. %.0f]", f.median(), slices.Min(f), slices.Max(f))
}

func bench(txns, rounds int) error {
	messages := newLoad(fleetProxies).more(txns)
	bytes := 0
	for _, m := range messages {
		bytes += len(m.data)
	}
	work := float64(txns * statements)
	fmt.Printf("%d proxies, %d transactions of %d statements (2 SELECT, 2 UPDATE by key; 1 of %d loses an update): %d messages, %.0f bytes a statement\n",
		fleetProxies, txns, statements, lostOne, len(messages), float64(bytes)/work)
	fmt.Println("statements a second of processor time on one core (median, least and greatest of the runs):")
	measure := func(what string, run func() error) (figures, error) {
		var f figures
		for range rounds {
			runtime.GC()
			begun := spent()
			if err := run(); err != nil {
				return nil, err
			}
			f = append(f, work/(spent()-begun).Seconds())
		}
		fmt.Printf("    %-34s %s\n", what, f)
		return f, nil
	}
	read, err := measure("reading alone", func() error { return reading(messages, nil, func(*fleet.Join, *history.Event, uint64) {}) })
	if err != nil {
		return err
	}
	one, err := measure("one collector", func() error { _, err := judging(messages); return err })
	if err != nil {
		return err
	}
	rates := map[int]float64{}
	var shares [][][]byte
	for _, parts := range []int{1, 4, 16} {
		var list [][]byte
		f, err := measure(fmt.Sprintf("one part of %d", parts), func() (err error) { list, err = parting(messages, 0, parts); return err })
		if err != nil {
			return err
		}
		rates[parts] = f.median()
		if parts != 4 {
			continue
		}
		shares = [][][]byte{list}
		for i := 1; i < parts; i++ {
			if list, err = parting(messages, i, parts); err != nil {
				return err
			}
			shares = append(shares, list)
		}
	}
	var met meeting
	center, err := measure("the collector behind 4 parts", func() (err error) { met, err = gathering(shares); return err })
	if err != nil {
		return err
	}
	fmt.Printf("    (%.2f edges and %.0f bytes a transaction; %d of %d transactions to judge in full; up to %d kept)\n",
		float64(met.edges)/float64(txns), float64(met.bytes)/float64(txns), met.suspects, txns, met.kept)
	if err := memory(); err != nil {
		return err
	}
	simulate(float64(bytes)/work, met, txns, one.median(), read.median(), rates, center.median())
	return nil
}

// spent is the processor time of the process.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reading reads messages as a collector does. each is called with each event, and behind a second of the fleet's, where that is not nil.
func reading(messages []message, second func(message uint64) error, each func(*fleet.Join, *history.Event, uint64)) error {
	join := fleet.NewJoin()
	members := map[int]*fleet.Member{}
	var reader history.BatchReader
	for i, m := range messages {
		if members[m.proxy] == nil {
			members[m.proxy] = join.Member(fmt.Sprint("run", m.proxy))
		}
		err := reader.Read(m.data, func(e *history.Event) {
			if members[m.proxy].Take(e) {
				each(join, e, uint64(i)+1)
			}
		})
		if err != nil {
			return err
		}
		if perSecond := fleetProxies * fleetRate / atOnce; second != nil && (i%perSecond == perSecond-1 || i == len(messages)-1) {
			if err := second(uint64(i) + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// judging is one collector.
func judging(messages []message) (findings int, err error) {
	var c *isolation.Checker
	err = reading(messages, nil, func(j *fleet.Join, e *history.Event, _ uint64) {
		if c == nil {
			c = isolation.New(isolation.Options{Recorder: j.Recorder, Origin: j.Origin, Repeats: true})
		}
		findings += len(c.Add(e))
	})
	if err == nil && c.Broken() != "" {
		err = fmt.Errorf("judging has ended: %s", c.Broken())
	}
	return findings, err
}

// newPart makes part i of several.
func newPart(i, parts int, j func() *fleet.Join) *sieve.Part {
	numbers := map[string]uint32{}
	return sieve.NewPart(sieve.PartOptions{Number: i, Parts: parts, Session: func(s uint64) uint64 { return s }, MaxAccesses: isolation.DefaultMaxAccesses,
		Mine: func(id sieve.ID) bool { return id.Txn%uint64(parts) == uint64(i) },
		Name: func(txn uint64) sieve.ID {
			run, own := j().Origin(txn)
			n, had := numbers[run]
			if !had {
				n = uint32(len(numbers))
				numbers[run] = n
			}
			return sieve.ID{Recorder: n, Txn: own}
		}})
}

// parting is part i of several, which gives its shares of each second.
func parting(messages []message, i, parts int) (list [][]byte, err error) {
	var join *fleet.Join
	p := newPart(i, parts, func() *fleet.Join { return join })
	var counts *isolation.Checker
	err = reading(messages, func(uint64) error {
		s := p.Share()
		s.Runs = map[uint32]string{}
		for k := range fleetProxies {
			s.Runs[uint32(k)] = fmt.Sprint("run", k)
		}
		list = append(list, s.Append(nil))
		return nil
	}, func(j *fleet.Join, e *history.Event, at uint64) {
		if join = j; counts == nil {
			counts = isolation.New(isolation.Options{Recorder: j.Recorder, Only: func(uint64) bool { return false }})
		}
		if e.Session%uint64(parts) == uint64(i) {
			counts.Add(e)
		}
		p.Add(e, at, at, false)
	})
	return list, err
}

// meeting is what the collector behind the parts met.
type meeting struct{ edges, bytes, suspects, kept int }

// gathering is the collector behind parts, without the judging of the suspects.
func gathering(shares [][][]byte) (m meeting, err error) {
	c := sieve.NewCenter(sieve.CenterOptions{Parts: len(shares)})
	judged := map[sieve.ID]bool{}
	for second := range shares[0] {
		for i, list := range shares {
			s, err := sieve.ReadShare(list[second])
			if err != nil {
				return m, err
			}
			m.edges += s.Edges()
			m.bytes += len(list[second])
			c.Add(i, s, uint64(second+1)*fleetProxies*fleetRate/atOnce, false, 0)
		}
		for _, t := range c.Round().Judge {
			judged[t.ID] = true
		}
		m.kept = max(m.kept, c.Kept())
	}
	m.suspects = len(judged)
	return m, nil
}

// memory prints what an open transaction takes.
func memory() error {
	const txns, each = 20_000, 10
	events := func(take func(*history.Event)) {
		for txn := uint64(1); txn <= txns; txn++ {
			take(&history.Event{Kind: history.EventSession, Session: txn, Engine: "mariadb"})
			take(&history.Event{Kind: history.EventBegin, Session: txn, Txn: txn, From: 2 * txn, To: 2*txn + 1, Tokens: []string{fmt.Sprintf("T%d.run", txn)}})
			for n := 1; n <= each; n++ {
				take(&history.Event{Kind: history.EventStmt, Session: txn, Txn: txn, N: n, SQL: sqlRead, Verb: "select", Coverage: history.CoverageExact,
					Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "account", Key: fmt.Sprint(txn, n)}, Version: fmt.Sprintf("T%d.run", n), Order: 11}}})
			}
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fmt.Printf("memory for each open transaction of %d statements with one row each:\n", each)
	before := heap()
	c := isolation.New(isolation.Options{})
	events(func(e *history.Event) { c.Add(e) })
	fmt.Printf("    one collector   %6d bytes\n", (heap()-before)/txns)
	runtime.KeepAlive(c)
	for _, parts := range []int{1, 4} {
		before := heap()
		p := sieve.NewPart(sieve.PartOptions{Parts: parts, Name: func(txn uint64) sieve.ID { return sieve.ID{Txn: txn} }, Session: func(s uint64) uint64 { return s },
			Mine: func(id sieve.ID) bool { return id.Txn%uint64(parts) == 0 }})
		events(func(e *history.Event) { p.Add(e, e.Txn, e.Txn, false) })
		fmt.Printf("    one part of %-2d  %6d bytes\n", parts, (heap()-before)/txns)
		runtime.KeepAlive(p)
	}
	return nil
}

// simulate prints what the rates mean for a large fleet.
func simulate(bytes float64, met meeting, txns int, one, read float64, rates map[int]float64, center float64) {
	need := float64(fleetProxies * fleetRate)
	fmt.Printf("%d proxies x %d statements/s = %.0f statements/s, with these rates:\n", fleetProxies, fleetRate, need)
	fmt.Printf("    one collector on one core keeps up with %.0f proxies\n", one/fleetRate)
	for _, parts := range []int{1, 4, 16} {
		fmt.Printf("    %2d parts, a core each: %.0f proxies\n", parts, min(rates[parts], center)/fleetRate)
	}
	// A part's time for a statement is what all read, and its share of the rows.
	all, whole := 1/rates[16], 1/rates[1]
	common := (16*all - whole) / 15
	fmt.Printf("    a part spends %.2f us on each statement, however many there are, and %.2f us on those of its rows: no number of parts passes %.0f proxies\n",
		common*1e6, (whole-common)*1e6, 1/common/fleetRate)
	fmt.Printf("    of these %.2f us, reading the message is %.2f us\n", common*1e6, 1e6/read)
	perTxn := float64(met.bytes) / float64(txns)
	fmt.Printf("    NATS: %.0f MB/s from the proxies, and as much to each part; %.1f MB/s of edges; the collector behind the parts: %.0f edges/s, %.0f%% of a core\n",
		bytes*need/1e6, perTxn*need/statements/1e6, float64(met.edges)/float64(txns)*need/statements, 100*need/center)
	if left := 1/need - common; left > 0 {
		fmt.Printf("    all of it: %.0f parts, a core each, and one core for the collector behind them\n", math.Ceil((whole-common)/left))
	} else {
		fmt.Printf("    all of it: no number of parts keeps up; the proxies have to publish what is in each part's rows apart\n")
	}
}
