package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
)

// shareWriter begins to publish for a part of two.
func shareWriter(t *testing.T, b *bus.Bus, run string, number int) *stream.ShareWriter {
	t.Helper()
	w, err := stream.NewShareWriter(t.Context(), b, "f", run, stream.Keep{}, number, 2)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// gathered reads all shares that there are, and then says which is needed next and up to where all is judged.
func gathered(t *testing.T, b *bus.Bus, needed, judged uint64) (list []string, known uint64) {
	t.Helper()
	g, err := stream.NewGathering(t.Context(), b, "f", stream.Keep{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	err = g.Read(t.Context(), true, func(s stream.Share) error {
		list = append(list, fmt.Sprintf("%d %s %d %v", s.Part, s.Data, s.Upto, s.More))
		return nil
	}, func(context.Context) error { return nil })
	if err == nil {
		err = g.Save(t.Context(), needed, judged)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list, g.Known()
}

// TestShares: shares come in order, in pieces; who begins again reads from where the one before it said; shares of another number of parts are left out.
func TestShares(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	one, two := shareWriter(t, b, "a", 1), shareWriter(t, b, "b", 2)
	for _, err := range []error{one.Write(t.Context(), [][]byte{[]byte("x"), []byte("y")}, 5), two.Write(t.Context(), [][]byte{[]byte("z")}, 7)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	other, err := stream.NewShareWriter(t.Context(), b, "f", "c", stream.Keep{}, 1, 3)
	if err == nil {
		err = other.Write(t.Context(), [][]byte{[]byte("of three")}, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if list, known := gathered(t, b, 3, 6); !slices.Equal(list, []string{"1 x 5 true", "1 y 5 false", "2 z 7 false"}) || known != 0 {
		t.Errorf("%q, known up to %d", list, known)
	}
	if list, known := gathered(t, b, 3, 0); !slices.Equal(list, []string{"2 z 7 false"}) || known != 6 {
		t.Errorf("%q, known up to %d", list, known)
	}
}

// TestShareWriters: of two processes of one part, the second one publishes, and the first one hears of it. Another part's does not.
func TestShareWriters(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	first, other := shareWriter(t, b, "a", 1), shareWriter(t, b, "b", 2)
	write := func(w *stream.ShareWriter, text string) error { return w.Write(t.Context(), [][]byte{[]byte(text)}, 1) }
	if err := errors.Join(write(first, "1"), write(other, "2")); err != nil {
		t.Fatal(err)
	}
	second := shareWriter(t, b, "c", 1)
	if err := write(second, "3"); err != nil {
		t.Fatal(err)
	}
	if err := write(first, "4"); !errors.Is(err, stream.ErrOther) {
		t.Errorf("the first one goes on: %v", err)
	}
	if err := errors.Join(write(second, "5"), write(other, "6")); err != nil {
		t.Error(err)
	}
	if list, _ := gathered(t, b, 1, 0); len(list) != 5 {
		t.Errorf("%q", list)
	}
}
