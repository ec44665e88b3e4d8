package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/work"
)

// long is a lease that does not end during a test.
const long = time.Hour

func connect(t *testing.T, where string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), where, bus.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func join(t *testing.T, b *bus.Bus, lease time.Duration) *work.Fleet {
	t.Helper()
	f, err := work.Join(t.Context(), b, "test", lease)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func embedded(t *testing.T) string { return bus.Embedded + filepath.Join(t.TempDir(), "fleet") }

// collect is a sum of numbers: all of them.
func collect(sum, noted []byte) ([]byte, error) {
	var all, more []uint64
	if sum != nil {
		if err := json.Unmarshal(sum, &all); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(noted, &more); err != nil {
		return nil, err
	}
	return json.Marshal(append(all, more...))
}

func note(n ...uint64) []byte {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return text
}

// sum is what the fleet has collected, sorted.
func sum(t *testing.T, f *work.Fleet) string {
	t.Helper()
	text, under, err := f.View(t.Context())
	if err != nil || len(under) > 0 {
		t.Fatalf("%v under way, error %v", under, err)
	}
	var all []uint64
	if text != nil {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func take(t *testing.T, f *work.Fleet, last uint64) *work.Item {
	t.Helper()
	i, err := f.Take(t.Context(), last)
	if err != nil || i == nil {
		t.Fatalf("item %v, error %v", i, err)
	}
	return i
}

// TestItems: several processes do all items, each once, and then each of them hears that there are no more.
func TestItems(t *testing.T) {
	where := embedded(t)
	const last = 30
	var all sync.WaitGroup
	var fleets []*work.Fleet
	for range 3 {
		fleets = append(fleets, join(t, connect(t, where), long))
	}
	for _, f := range fleets {
		all.Go(func() {
			for {
				i, err := f.Take(t.Context(), last)
				if err != nil || i == nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				err = errors.Join(i.Note(t.Context(), note(i.Number)), i.Done(t.Context(), collect), i.Release())
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want := make([]uint64, last)
	for i := range want {
		want[i] = uint64(i) + 1
	}
	if got := sum(t, fleets[0]); got != fmt.Sprint(want) {
		t.Errorf("done: %s", got)
	}
	i, err := fleets[0].Take(t.Context(), last+1) // near miss: one more is one more
	if err != nil || i == nil || i.Number != last+1 {
		t.Fatalf("item %v, error %v", i, err)
	}
	if err := i.Release(); err != nil {
		t.Error(err)
	}
}

// TestTaken: an item of a process that gives no sign of life goes on with another one, from what was noted last. What the first one does afterwards
// does not count.
func TestTaken(t *testing.T) {
	where := embedded(t)
	silent, other := join(t, connect(t, where), 50*time.Millisecond), join(t, connect(t, where), 0)
	old := take(t, silent, 1)
	work.Mute(old)
	if err := old.Note(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	again := take(t, other, 1)
	if again.Number != old.Number || string(again.Noted) != string(note(1)) {
		t.Fatalf("item %d with %s", again.Number, again.Noted)
	}
	if err := old.Note(t.Context(), note(1, 2)); !errors.Is(err, work.ErrTaken) {
		t.Errorf("a note of who has lost it: %v", err)
	}
	if err := old.Done(t.Context(), collect); !errors.Is(err, work.ErrTaken) {
		t.Errorf("the end by who has lost it: %v", err)
	}
	if err := errors.Join(again.Note(t.Context(), note(1, 3)), again.Done(t.Context(), collect), again.Done(t.Context(), collect)); err != nil {
		t.Error(err)
	}
	if err := old.Done(t.Context(), collect); !errors.Is(err, work.ErrTaken) && err != nil {
		t.Errorf("the end by who has lost it: %v", err)
	}
	if got := sum(t, other); got != "[1 3]" {
		t.Errorf("done: %s", got)
	}
	if i, err := silent.Take(t.Context(), 1); err != nil || i != nil {
		t.Errorf("item %v, error %v", i, err)
	}
}

// TestReleased: an item that is given back goes on with another process at once.
func TestReleased(t *testing.T) {
	where := embedded(t)
	a, b := join(t, connect(t, where), long), join(t, connect(t, where), long)
	i := take(t, a, 1)
	if err := errors.Join(i.Note(t.Context(), note(7)), i.Release()); err != nil {
		t.Fatal(err)
	}
	if again := take(t, b, 1); string(again.Noted) != string(note(7)) {
		t.Errorf("noted %s", again.Noted)
	}
}

// TestServerGone: the process with the server ends between any two steps of another one's; numbers and sums go on.
func TestServerGone(t *testing.T) {
	where := embedded(t)
	host := connect(t, where)
	join(t, host, long)
	f := join(t, connect(t, where), 0)
	i := take(t, f, 2)
	host.Close()
	patiently(t, func() error { return i.Note(t.Context(), note(1)) })
	patiently(t, func() error { return i.Done(t.Context(), collect) })
	if err := i.Release(); err != nil {
		t.Fatal(err)
	}
	if i := take(t, f, 2); i.Number != 2 {
		t.Errorf("item %d", i.Number)
	} else if err := errors.Join(i.Note(t.Context(), note(2)), i.Done(t.Context(), collect), i.Release()); err != nil {
		t.Error(err)
	}
	if got := sum(t, f); got != "[1 2]" {
		t.Errorf("done: %s", got)
	}
}

// patiently does something as soon as there is a server.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return
		}
		if !work.Lost(err) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestSettled: what the first one says counts.
func TestSettled(t *testing.T) {
	where := embedded(t)
	b := connect(t, where)
	if _, err := work.Look(t.Context(), b, "test"); err == nil || !strings.Contains(err.Error(), "no fleet test") {
		t.Errorf("a fleet that is not there: %v", err)
	}
	a, other := join(t, b, long), join(t, b, 0)
	if text, err := a.Settled(t.Context(), "x"); text != nil || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, f := range []*work.Fleet{a, other} {
		if text, err := f.Settle(t.Context(), "x", []byte(f.Self())); err != nil || string(text) != a.Self() {
			t.Errorf("%s, %v", text, err)
		}
	}
	if _, err := work.Look(t.Context(), b, "test"); err != nil {
		t.Error(err)
	}
	if _, err := work.Look(t.Context(), b, "tset"); err == nil || !strings.Contains(err.Error(), `["test"]`) {
		t.Errorf("another one: %v", err)
	}
}

// TestNth: counts are the fleet's; a claim that comes again has its number.
func TestNth(t *testing.T) {
	b := connect(t, embedded(t))
	f, other := join(t, b, long), join(t, b, long)
	for _, step := range []struct {
		f    *work.Fleet
		by   string
		want int
	}{{f, "a", 1}, {other, "b", 2}, {other, "a", 1}, {f, "c", 3}} {
		if n, err := step.f.Nth(t.Context(), "x", step.by); err != nil || n != step.want {
			t.Errorf("%s: %d, want %d, error %v", step.by, n, step.want, err)
		}
	}
	if n, err := f.Nth(t.Context(), "y", "a"); err != nil || n != 1 {
		t.Errorf("something else: %d, %v", n, err)
	}
}

// openLogs gives a log as two members of the fleet have it.
func openLogs(t *testing.T, b *bus.Bus) (logs [2]*work.Log) {
	t.Helper()
	for i := range logs {
		var err error
		if logs[i], err = join(t, b, long).OpenLog(t.Context(), "found"); err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

// TestLog: all read the same in the same order, and who does not know all cannot write.
func TestLog(t *testing.T) {
	b := connect(t, embedded(t))
	logs := openLogs(t, b)
	put := func(l *work.Log, key, text string) error { return l.Put(t.Context(), key, []byte(text)) }
	next := func(l *work.Log) string {
		e, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return ""
		}
		return string(e.Data)
	}
	if err := put(logs[0], "a b/c", "1"); err != nil {
		t.Fatal(err)
	}
	if err := put(logs[1], "d", "2"); !errors.Is(err, work.ErrBehind) {
		t.Errorf("behind: %v", err)
	}
	if got := next(logs[1]) + next(logs[1]); got != "1" {
		t.Errorf("read %q", got)
	}
	if err := errors.Join(put(logs[1], "d", "2"), put(logs[1], "a b/c", "3")); err != nil {
		t.Fatal(err)
	}
	if got := next(logs[0]) + next(logs[0]) + next(logs[0]); got != "23" {
		t.Errorf("read %q", got)
	}
	third, err := join(t, b, long).OpenLog(t.Context(), "found")
	if err != nil {
		t.Fatal(err)
	}
	if got := next(third) + next(third) + next(third); got != "23" {
		t.Errorf("read from the beginning %q", got)
	}
	if err := third.Add(t.Context(), []byte("4")); err != nil || next(third) != "4" {
		t.Errorf("added: %v", err)
	}
}

// TestFiles: files come back as they are, also large ones.
func TestFiles(t *testing.T) {
	f := join(t, connect(t, embedded(t)), long)
	files := map[string]string{"a": strings.Repeat("x", 3<<20), "b": ""}
	if err := f.PutFiles(t.Context(), "n", files); err != nil {
		t.Fatal(err)
	}
	got, err := f.Files(t.Context(), "n")
	if err != nil || got["a"] != files["a"] || len(got) != 2 {
		t.Errorf("%d files, error %v", len(got), err)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]bool{"a-b_C9": true, "": false, "a.b": false, "a b": false, "*": false} {
		if err := work.CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
