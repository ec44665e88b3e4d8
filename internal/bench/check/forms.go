package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"wirecheck/history"
)

// The second workload: 10 sessions execute transactions of 1 to 4 operations on 1000 rows, one after the other, so that the order of all versions is
// known and nothing is found.
const (
	formSessions = 10
	formRows     = 1000
)

// forms prints what reading costs, and reading with judging, from the JSON lines and from the binary form.
func forms(self, tmp string, n int) error {
	fmt.Printf("\n%-8s %12s %8s %12s %12s %12s\n", "form", "transactions", "MB", "read CPU s", "check CPU s", "peak MiB")
	for _, k := range []int{n / 10, n} {
		for _, binary := range []bool{false, true} {
			path := filepath.Join(tmp, "form")
			if err := writeForm(path, k, binary); err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			read, _, err := measure(self, "-read", path)
			if err != nil {
				return err
			}
			judged, peak, err := measure(self, "-judge", path)
			if err != nil {
				return err
			}
			fmt.Printf("%-8s %12d %8d %12.2f %12.2f %12d\n", map[bool]string{false: "JSON", true: "binary"}[binary], k, info.Size()>>20, read.Seconds(), judged.Seconds(), peak)
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs this program again with a flag and gives its processor time and peak memory in MiB.
func measure(self, flag, path string) (cpu time.Duration, peak int64, err error) {
	cmd := exec.Command(self, flag, path)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
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

func writeForm(path string, n int, binary bool) error {
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
	version := make([]uint64, formRows)
	writer := make([]uint64, formRows)
	tick := uint64(0)
	for t := uint64(1); t <= uint64(n); t++ {
		s := uint64(1 + rng.IntN(formSessions))
		tick++
		token := "T" + strconv.FormatUint(t, 10)
		events := []history.Event{{Kind: history.EventBegin, Session: s, Txn: t, From: tick, Level: "serializable", Tokens: []string{token}}}
		for k := range 1 + rng.IntN(4) {
			row := rng.IntN(formRows)
			a := history.Access{Op: history.OpRead, Row: history.Row{Table: "bank.account", Key: strconv.Itoa(row)}, Version: strconv.FormatUint(version[row], 10), Order: version[row] + 1}
			e := history.Event{Kind: history.EventStmt, Session: s, Txn: t, From: tick + 1, To: tick + 2, N: k + 1, SQL: "SELECT balance FROM account WHERE id = ?", Verb: "select", Coverage: history.CoverageExact}
			if writer[row] > 0 {
				a.Writer = "T" + strconv.FormatUint(writer[row], 10)
			}
			if rng.IntN(2) == 0 {
				e.SQL, e.Verb = "UPDATE account SET balance = ? WHERE id = ?", "update"
				a.Op, a.Prev, a.PrevWriter, a.PrevOrder, a.Writer = history.OpUpdate, a.Version, a.Writer, a.Order, ""
				version[row]++
				writer[row] = t
				a.Version, a.Order = strconv.FormatUint(version[row], 10), version[row]+1
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
