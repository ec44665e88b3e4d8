package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wirecheck/history"
)

// The second workload: 10 sessions execute transactions of 1 to 4 operations on 1000 rows, one after the other, so that the order of all versions is
// known. Without stale reads nothing is found.
const (
	formSessions = 10
	formRows     = 1000
)

// staleShare is how many reads there are for each stale one.
const staleShare = 100

// published are the figures that others give of their checkers. None of them ran on this machine or these histories.
const published = `
Published, on other machines and histories:
  Elle     hundreds of thousands of transactions in tens of seconds (Kingsbury and Alvaro, VLDB 2020)
  Chronos  up to one million transactions in seconds, snapshot isolation; online, Aion: 12,000 transactions/s (arXiv 2504.01477)
  AWDIT    62 to 245 times as fast as the best other tester on the largest histories, weak levels (arXiv 2504.06975)
`

// forms prints what reading costs, and "wirecheck check", which judges all levels, and "check --level", which proves one: from the JSON lines and from
// the binary form, without and with stale reads. Of several rounds, each of which runs all programs one after the other, it prints the median, the least
// and the most. base is another wirecheck to compare with; empty: none.
func forms(self, program, base, tmp string, n, rounds int) error {
	fmt.Printf("\n%d rounds; load %s; processor time in s: median [least .. most], time that passed: least, peak memory in MiB: most\n%-8s %12s %6s %5s", rounds, load(), "form", "transactions", "stale", "MB")
	type column struct {
		name, program string
		args          []string
	}
	columns := []column{{"read", self, []string{"-read"}}, {"check", program, []string{"check"}}}
	if base != "" {
		columns = append(columns, column{"check, base", base, []string{"check"}})
	}
	columns = append(columns, column{"check --level", program, []string{"check", "--level", "serializable"}})
	for _, c := range columns {
		fmt.Printf("  %-28s", c.name)
	}
	fmt.Println()
	for _, k := range []int{n / 10, n} {
		for _, form := range []struct {
			name   string
			binary bool
			stale  int
		}{{"JSON", false, 0}, {"binary", true, 0}, {"JSON", false, staleShare}, {"binary", true, staleShare}} {
			path := filepath.Join(tmp, "form")
			if err := writeForm(path, k, form.binary, form.stale); err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			stale := "none"
			if form.stale > 0 {
				stale = "1%"
			}
			fmt.Printf("%-8s %12d %6s %5d", form.name, k, stale, info.Size()>>20)
			spent, passed, most := make([][]float64, len(columns)), make([]float64, len(columns)), make([]int64, len(columns))
			for range rounds {
				for i, c := range columns {
					began := time.Now()
					took, peak, err := measure(c.program, append(slices.Clone(c.args), path)...)
					if err != nil {
						return err
					}
					if wall := time.Since(began).Seconds(); passed[i] == 0 || wall < passed[i] {
						passed[i] = wall
					}
					spent[i], most[i] = append(spent[i], took.Seconds()), max(most[i], peak)
				}
			}
			for i := range columns {
				slices.Sort(spent[i])
				fmt.Printf("  %-28s", fmt.Sprintf("%.2f [%.2f .. %.2f] %.2f %d", spent[i][rounds/2], spent[i][0], spent[i][rounds-1], passed[i], most[i]))
			}
			fmt.Println()
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	fmt.Print(published)
	return nil
}

// load is the machine's load average of a minute.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return cmp.Or(first, "not known")
}

// measure runs a program and gives its processor time and peak memory in MiB. Exit status 1 says that something was found.
func measure(program string, args ...string) (cpu time.Duration, peak int64, err error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return 0, 0, err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss >> 10, nil
}

// readOnly reads a history and judges nothing.
func readOnly(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := history.NewReader(f, path)
	if err != nil {
		return err
	}
	var e history.Event
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Of the reads, one of so many is stale, if stale is not 0: it gives any older version of its row.
func writeForm(path string, n int, binary bool, stale int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var w interface {
		Write(*history.Event) error
		Flush() error
	}
	if w, err = history.NewWriter(f, history.Header{Run: "bench"}); binary {
		if err := f.Truncate(0); err != nil {
			return err
		}
		w, err = history.NewBinaryWriter(f, history.Header{Run: "bench"})
	}
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(3, 4))
	writers := make([][]uint64, formRows) // of each row's versions, 0 that of the first one
	for i := range writers {
		writers[i] = []uint64{0}
	}
	tick := uint64(0)
	for t := uint64(1); t <= uint64(n); t++ {
		s := uint64(1 + rng.IntN(formSessions))
		tick++
		token := "T" + strconv.FormatUint(t, 10)
		events := []history.Event{{Kind: history.EventBegin, Session: s, Txn: t, From: tick, Level: "serializable", Tokens: []string{token}}}
		for k := range 1 + rng.IntN(4) {
			row := rng.IntN(formRows)
			update, v := rng.IntN(2) == 0, uint64(len(writers[row])-1)
			if !update && v > 0 && stale > 0 && rng.IntN(stale) == 0 {
				v = rng.Uint64N(v)
			}
			a := history.Access{Op: history.OpRead, Row: history.Row{Table: "bank.account", Key: strconv.Itoa(row)}, Version: strconv.FormatUint(v, 10), Order: v + 1}
			e := history.Event{Kind: history.EventStmt, Session: s, Txn: t, From: tick + 1, To: tick + 2, N: k + 1, SQL: "SELECT balance FROM account WHERE id = ?", Verb: "select", Coverage: history.CoverageExact}
			if w := writers[row][v]; w > 0 {
				a.Writer = "T" + strconv.FormatUint(w, 10)
			}
			if update {
				e.SQL, e.Verb = "UPDATE account SET balance = ? WHERE id = ?", "update"
				a.Op, a.Prev, a.PrevWriter, a.PrevOrder, a.Writer = history.OpUpdate, a.Version, a.Writer, a.Order, ""
				writers[row] = append(writers[row], t)
				a.Version, a.Order = strconv.FormatUint(v+1, 10), v+2
			}
			tick += 2
			e.Accesses = []history.Access{a}
			events = append(events, e)
		}
		tick++
		events = append(events, history.Event{Kind: history.EventEnd, Session: s, Txn: t, To: tick, Outcome: history.OutcomeCommitted, Sent: tick - 1})
		for i := range events {
			if err := w.Write(&events[i]); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
