package stream_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
)

// hearing has a run's warnings taken, and gives what came.
func hearing(t *testing.T, b *bus.Bus, run string, answer stream.Heard, err error) <-chan string {
	t.Helper()
	came := make(chan string, 100)
	if err := stream.Hear(b, "f", run, func(data []byte) (stream.Heard, error) {
		came <- string(data)
		return answer, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Conn().Flush(); err != nil { // the server knows
		t.Fatal(err)
	}
	return came
}

func warner(t *testing.T, b *bus.Bus) *stream.Warner {
	t.Helper()
	w, err := stream.NewWarner(b, "f")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWarnings: each warning goes to its own run, and what became of it is counted. Who is not there is not waited for at the end.
func TestWarnings(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	one := hearing(t, b, "one", stream.Heard{Told: 2, Ended: 1}, nil)
	two := hearing(t, b, "two", stream.Heard{Ended: 1}, nil)
	w := warner(t, b)
	w.Ended(4)
	w.Send("one", 3, []byte("a"))
	w.Send("two", 1, []byte("b"))
	w.Send("nobody", 7, []byte("c"))
	w.Send("one", 3, []byte(strings.Repeat("x", 2<<20))) // no server takes it
	if got, want := w.Close(patience), (stream.Warned{Heard: stream.Heard{Told: 2, Ended: 6}, Gone: 10}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if a, b := <-one, <-two; a != "a" || b != "b" || len(one)+len(two) > 0 {
		t.Errorf("%q and %q came, and %d more", a, b, len(one)+len(two))
	}
}

// TestWarningsLate: a warning is sent again until somebody answers: a proxy that does not listen yet, and one whose answers are none.
func TestWarningsLate(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	w := warner(t, b)
	w.Send("late", 1, []byte("a"))
	broken := hearing(t, b, "late", stream.Heard{}, errors.New("no warning"))
	<-broken
	if !w.Waiting() {
		t.Error("a message that was not taken counts as answered")
	}
	late := hearing(t, b, "late", stream.Heard{Told: 1}, nil)
	<-late
	if got := w.Close(patience); got.Told != 1 || got.Gone != 0 || w.Waiting() {
		t.Errorf("%+v", got)
	}
}

// TestWarningsServerEnds: the process with the server ends. Nobody waits meanwhile, and the warnings come when there is a server again.
func TestWarningsServerEnds(t *testing.T) {
	where := bus.Embedded + t.TempDir()
	first := openBus(t, where, bus.Options{})
	second := openBus(t, where, bus.Options{})
	third := openBus(t, where, bus.Options{})
	came := hearing(t, third, "r", stream.Heard{Told: 1}, nil)
	w := warner(t, second)
	first.Close()
	want := []string{"a", "b", "c"}
	for _, text := range want {
		w.Send("r", 1, []byte(text))
	}
	var got []string
	for len(got) < len(want) {
		if text := <-came; !slices.Contains(got, text) { // one whose answer was lost comes again
			got = append(got, text)
		}
	}
	if said := w.Close(patience); said.Told != 3 || said.Gone != 0 {
		t.Errorf("%+v", said)
	}
}

// TestWarningsMany: what is too much is not kept.
func TestWarningsMany(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	w := warner(t, b)
	for range 2000 {
		w.Send("nobody", 1, nil)
	}
	if n := w.State().Gone; n != 1000 {
		t.Errorf("of 2000 warnings that wait, %d are given up; want 1000", n)
	}
	if got := w.Close(patience); got.Gone != 2000 || w.Waiting() {
		t.Errorf("%+v", got)
	}
}
