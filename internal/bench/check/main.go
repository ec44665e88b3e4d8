// Command check measures what judging a recorded history costs: it writes histories of a quarter, a half and all of a
// number of transactions, judges each in a process of its own as "wirecheck check" does, and prints time, cost per
// statement and peak memory, so that one sees whether they grow linearly.
//
//	go run ./internal/bench/check [-n 1000000] [-dir DIR] [-wirecheck bin/wirecheck] [-forms [-rounds 3] [-base OTHER]]
//
// Then it prints what "wirecheck check" costs by the form of the history (-forms: that alone), and what single events cost beside long transactions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

func main() {
	n := flag.Int("n", 1_000_000, "number of transactions of the largest history")
	dir := flag.String("dir", os.TempDir(), "where the histories are written (about 1 KB per transaction)")
	judge := flag.String("judge", "", "judge this history and print the figures (used by the program itself)")
	write := flag.String("write", "", "write a history of -n transactions to this file, in the binary form with -binary, one of -stale reads stale")
	binary := flag.Bool("binary", false, "with -write: the binary form")
	stale := flag.Int("stale", 0, "with -write: one of so many reads is stale; 0: none")
	program := flag.String("wirecheck", "bin/wirecheck", "the program whose check is measured (make build)")
	only := flag.Bool("forms", false, "measure wirecheck check by the form of the history only")
	rounds := flag.Int("rounds", 3, "how often each form is measured")
	base := flag.String("base", "", "another wirecheck, whose check is measured in turn with that of -wirecheck")
	slow := flag.Bool("long", false, "measure single events beside long transactions only")
	quick := flag.Int("short", 0, "measure the live checker without long transactions only, in so many parts of 200,000 transactions")
	profile := flag.String("profile", "", "with -short: write a profile of the processor time to this file")
	read := flag.String("read", "", "read this history and judge nothing (used by the program itself)")
	flag.Parse()
	err := error(nil)
	switch {
	case *judge != "":
		err = check(*judge)
	case *slow:
		err = long()
	case *quick > 0:
		err = profiled(*profile, func() error { return short(*quick) })
	case *write != "":
		err = writeForm(*write, *n, *binary, *stale)
	case *read != "":
		err = readOnly(*read)
	default:
		err = bench(*n, *dir, *only, func(self, tmp string) error { return forms(self, *program, *base, tmp, *n, *rounds) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

// profiled calls do, and writes a profile of it to a file, if one is named.
func profiled(path string, do func() error) error {
	if path == "" {
		return do()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func bench(n int, dir string, only bool, forms func(self, tmp string) error) error {
	tmp, err := os.MkdirTemp(dir, "wirecheck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if only {
		return forms(self, tmp)
	}
	fmt.Printf("%-8s %12s %8s %9s %9s %12s %9s %9s %9s\n", "capture", "transactions", "MB", "seconds", "CPU s", "CPU ns/stmt", "peak MiB", "findings", "kept")
	for _, columns := range []bool{true, false} {
		for _, k := range []int{n / 4, n / 2, n} {
			path := filepath.Join(tmp, "h.jsonl")
			if err := generate(path, k, columns); err != nil {
				return err
			}
			cmd := exec.Command(self, "-judge", path)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			name := "native"
			if columns {
				name = "columns"
			}
			fmt.Printf("%-8s ", name)
			if err := cmd.Run(); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	if err := forms(self, tmp); err != nil {
		return err
	}
	return long()
}

// check judges a history and prints one line of figures.
func check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := history.NewReader(f, path)
	if err != nil {
		return err
	}
	c := isolation.New(isolation.Options{})
	var e history.Event
	statements := 0
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if e.Kind == history.EventStmt {
			statements++
		}
		c.Add(&e)
	}
	took := time.Since(start)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	seen := 0
	for _, f := range c.Summary() {
		seen += f.Seen
	}
	fmt.Printf("%12d %8d %9.2f %9.2f %12.0f %9d %9d %9d\n", c.Coverage().Transactions, info.Size()>>20, took.Seconds(),
		cpu.Seconds(), float64(cpu.Nanoseconds())/float64(statements), usage.Maxrss>>10, seen, c.Kept())
	return nil
}

// The workload: 32 sessions transfer between 100 000 accounts, of which 1 in 8 accesses goes to 100 hot ones, and write
// a log. Two thirds of the transactions read before they write, at READ COMMITTED, so that some updates are lost.
const (
	sessions = 32
	accounts = 100_000
	hot      = 100
)

// world is a toy database that runs one statement at a time: no locks, last writer wins, reads see what is committed.
type world struct {
	rng     *rand.Rand
	columns bool
	version []uint64 // of each account: how often it was committed
	writer  []uint64 // who wrote it last
	lsn     uint64
	place   []uint64 // the last committed version's LSN
	nextTxn uint64
	nextRow uint64
	tick    uint64
}

// client is one session.
type client struct {
	txn   uint64
	step  int
	pick  [2]int
	lock  bool
	begun uint64
	wrote []int
}

func generate(path string, n int, columns bool) error {
	w, err := history.Create(path, history.Header{Engine: "mariadb", Run: "bench"})
	if err != nil {
		return err
	}
	d := &world{rng: rand.New(rand.NewPCG(1, 2)), columns: columns, version: make([]uint64, accounts), writer: make([]uint64, accounts), place: make([]uint64, accounts), lsn: 10}
	clients := make([]client, sessions)
	engine := map[bool]string{true: "mariadb", false: "postgres"}[columns]
	for i := range clients {
		if err := w.Write(&history.Event{Kind: history.EventSession, Session: uint64(i + 1), Engine: engine, Server: "1", Database: "bank", User: "bench"}); err != nil {
			return err
		}
	}
	locked := map[int]int{} // account to client
	for done := 0; done < n; {
		i := d.rng.IntN(sessions)
		for _, e := range d.step(i, &clients[i], locked) {
			if e.Kind == history.EventEnd {
				done++
			}
			if err := w.Write(&e); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

func (d *world) account() int {
	if d.rng.IntN(8) == 0 {
		return d.rng.IntN(hot)
	}
	return d.rng.IntN(accounts)
}

// step lets a client send its next statement; nothing if it would wait for a lock.
func (d *world) step(i int, c *client, locked map[int]int) []history.Event {
	s := uint64(i + 1)
	d.tick += 2
	stmt := func(sql, verb string, acc ...history.Access) history.Event {
		c.step++
		return history.Event{Kind: history.EventStmt, Session: s, Txn: c.txn, From: d.tick - 1, To: d.tick, At: int64(d.tick) * 1000, N: c.step, SQL: sql, Verb: verb,
			Accesses: acc, Coverage: history.CoverageExact}
	}
	switch c.step {
	case 0:
		d.nextTxn++
		c.txn, c.begun = d.nextTxn, d.tick
		c.pick = [2]int{d.account(), d.account()}
		c.lock = d.rng.IntN(3) == 0
		token := d.token(c.txn)
		begin := history.Event{Kind: history.EventBegin, Session: s, Txn: c.txn, From: d.tick - 1, Level: "read committed", Tokens: []string{token}}
		op := history.OpRead
		if c.lock {
			if !take(locked, c.pick[0], i) || !take(locked, c.pick[1], i) {
				d.release(locked, i, c)
				d.nextTxn--
				return nil
			}
			op = history.OpLock
			return []history.Event{begin, stmt("SELECT id, balance FROM account WHERE id IN (?, ?) FOR UPDATE", "select", d.read(op, c.pick[0]), d.read(op, c.pick[1]))}
		}
		return []history.Event{begin, stmt("SELECT id, balance FROM account WHERE id IN (?, ?)", "select", d.read(op, c.pick[0]), d.read(op, c.pick[1]))}
	case 1, 2:
		a := c.pick[c.step-1]
		if !take(locked, a, i) {
			if d.rng.IntN(20) > 0 {
				return nil
			}
			// A deadlock victim.
			d.release(locked, i, c)
			out := []history.Event{{Kind: history.EventEnd, Session: s, Txn: c.txn, From: c.begun, To: d.tick, Outcome: history.OutcomeAborted}}
			*c = client{}
			return out
		}
		return []history.Event{stmt("UPDATE account SET balance = ? WHERE id = ?", "update", d.write(a, c.txn))}
	}
	d.nextRow++
	ins := history.Access{Op: history.OpInsert, Row: history.Row{Table: "bank.log", Key: strconv.FormatUint(d.nextRow, 10)}, Version: "1:" + d.token(c.txn), Order: 2}
	if !d.columns {
		d.lsn++
		ins.Version, ins.Order = "(9,"+ins.Row.Key+")/"+strconv.FormatUint(c.txn, 10), d.lsn
	}
	out := []history.Event{stmt("INSERT INTO log (src, dst, amount) VALUES (?, ?, ?)", "insert", ins),
		{Kind: history.EventEnd, Session: s, Txn: c.txn, From: c.begun, To: d.tick, At: int64(d.tick) * 1000, Outcome: history.OutcomeCommitted}}
	for k, a := range c.pick {
		if k == 1 && a == c.pick[0] {
			continue
		}
		d.version[a]++
		d.writer[a] = c.txn
		d.place[a] = d.lsn - 1
	}
	d.release(locked, i, c)
	*c = client{}
	return out
}

func take(locked map[int]int, a, i int) bool {
	if o, ok := locked[a]; ok && o != i {
		return false
	}
	locked[a] = i
	return true
}

func (d *world) release(locked map[int]int, i int, c *client) {
	for _, a := range c.pick {
		if locked[a] == i {
			delete(locked, a)
		}
	}
	if c.step == 0 {
		*c = client{}
	}
}

func (d *world) token(txn uint64) string {
	if d.columns {
		return "T" + strconv.FormatUint(txn, 10) + ".bench"
	}
	return "x" + strconv.FormatUint(txn, 10)
}

// name is the id of a version: the stamp, or ctid and xmin.
func (d *world) name(a int, count, writer uint64) string {
	if d.columns {
		return strconv.FormatUint(count, 10) + ":" + d.token(writer)
	}
	return "(" + strconv.Itoa(a>>6) + "," + strconv.FormatUint(count, 10) + ")/" + strconv.FormatUint(writer, 10)
}

func (d *world) read(op history.Op, a int) history.Access {
	acc := history.Access{Op: op, Row: history.Row{Table: "bank.account", Key: strconv.Itoa(a)}, Version: d.name(a, d.version[a], d.writer[a])}
	switch {
	case d.version[a] == 0:
		acc.Order = history.OrderInitial
	case d.columns:
		acc.Writer, acc.Order = d.token(d.writer[a]), d.version[a]+1
	default:
		d.lsn++
		acc.Writer, acc.AsOf = d.token(d.writer[a]), d.lsn
	}
	return acc
}

func (d *world) write(a int, txn uint64) history.Access {
	acc := history.Access{Op: history.OpUpdate, Row: history.Row{Table: "bank.account", Key: strconv.Itoa(a)}, Version: d.name(a, d.version[a]+1, txn)}
	if d.columns {
		acc.Order = d.version[a] + 2
		acc.Prev, acc.PrevOrder = d.name(a, d.version[a], d.writer[a]), d.version[a]+1
		if d.version[a] > 0 {
			acc.PrevWriter = d.token(d.writer[a])
		}
		return acc
	}
	d.lsn++
	acc.Order = d.lsn
	return acc
}
