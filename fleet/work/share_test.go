package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wirecheck/fleet/work"
)

// shared does the items of a search: each of the first three leads to two more, numbered as they become known. It gives the results in order.
type shared struct {
	t    *testing.T
	have map[uint64]string
	do   func(n uint64) error
}

func (s *shared) sharing() work.Sharing {
	return work.Sharing{
		UpTo: func() uint64 {
			last := uint64(1)
			for n := uint64(1); s.have[n] != ""; n++ {
				if n <= 3 {
					last += 2
				}
			}
			return last
		},
		Do: func(_ context.Context, n uint64) (any, error) { return fmt.Sprint("result ", n), s.do(n) },
		Have: func(n uint64, result []byte) error {
			if s.have[n] != "" {
				s.t.Errorf("item %d is given twice", n)
			}
			var text string
			err := json.Unmarshal(result, &text)
			s.have[n] = text
			return err
		},
		Waits: func(err error) { s.t.Log(err) },
		Taken: func(n uint64) { s.t.Logf("item %d was taken", n) },
	}
}

func newShared(t *testing.T, do func(n uint64) error) *shared {
	return &shared{t: t, have: map[uint64]string{}, do: do}
}

// all are the results of the search.
var all = map[uint64]string{1: "result 1", 2: "result 2", 3: "result 3", 4: "result 4", 5: "result 5", 6: "result 6", 7: "result 7"}

func (s *shared) check(who string) {
	s.t.Helper()
	if fmt.Sprint(s.have) != fmt.Sprint(all) {
		s.t.Errorf("%s has %v", who, s.have)
	}
}

// TestShare: processes share items that become known as others are done. Each is done once, and each process has all results; so does one that comes later.
func TestShare(t *testing.T) {
	where := embedded(t)
	var mu sync.Mutex
	var done []uint64
	var group sync.WaitGroup
	for i := range 3 {
		f := join(t, connect(t, where), long)
		group.Go(func() {
			s := newShared(t, func(n uint64) error {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, n)
				return nil
			})
			if err := f.Share(t.Context(), s.sharing()); err != nil {
				t.Error(err)
			}
			s.check(fmt.Sprint("process ", i))
		})
	}
	group.Wait()
	slices.Sort(done)
	if fmt.Sprint(done) != "[1 2 3 4 5 6 7]" {
		t.Errorf("done: %v", done)
	}
	late := newShared(t, func(n uint64) error { return fmt.Errorf("item %d once more", n) })
	if err := join(t, connect(t, where), long).Share(t.Context(), late.sharing()); err != nil {
		t.Error(err)
	}
	late.check("the late one")
}

// TestShareEnds: what a process that ends in the middle of an item, or fails at it, was doing goes on with another one; what was done is kept.
func TestShareEnds(t *testing.T) {
	where := embedded(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended, failed := errors.New("ended"), errors.New("failed")
	first := newShared(t, func(n uint64) error {
		if n == 3 {
			cancel(ended)
			return ctx.Err()
		}
		return nil
	})
	if err := join(t, connect(t, where), long).Share(ctx, first.sharing()); !errors.Is(err, ended) || len(first.have) != 2 {
		t.Errorf("error %v, with %v", err, first.have)
	}
	second := newShared(t, func(n uint64) error {
		if n == 5 {
			return failed
		}
		return nil
	})
	if err := join(t, connect(t, where), long).Share(t.Context(), second.sharing()); !errors.Is(err, failed) || len(second.have) != 4 {
		t.Errorf("error %v, with %v", err, second.have)
	}
	third := newShared(t, func(uint64) error { return nil })
	if err := join(t, connect(t, where), long).Share(t.Context(), third.sharing()); err != nil {
		t.Error(err)
	}
	third.check("the third one")
}

// TestShareTaken: the result of a process that gave no sign of life, and whose item another one has done meanwhile, does not count.
func TestShareTaken(t *testing.T) {
	where := embedded(t)
	silent := join(t, connect(t, where), 50*time.Millisecond)
	old := take(t, silent, 1)
	work.Mute(old)
	s := newShared(t, func(uint64) error { return nil })
	if err := join(t, connect(t, where), 0).Share(t.Context(), s.sharing()); err != nil {
		t.Fatal(err)
	}
	s.check("the other one")
	if err := old.Note(t.Context(), []byte(`"mine"`)); !errors.Is(err, work.ErrTaken) {
		t.Errorf("error %v", err)
	}
}

// TestShareWithoutServer: the process with the server ends during an item; the other one waits, and goes on with the folder.
func TestShareWithoutServer(t *testing.T) {
	where := embedded(t)
	host := connect(t, where)
	join(t, host, long)
	s := newShared(t, func(n uint64) error {
		if n == 2 {
			host.Close()
		}
		return nil
	})
	if err := join(t, connect(t, where), 0).Share(t.Context(), s.sharing()); err != nil {
		t.Fatal(err)
	}
	s.check("the process that is left")
}

// TestAgree: what the first one says counts, for values of any type.
func TestAgree(t *testing.T) {
	b := connect(t, embedded(t))
	for _, mine := range [][]string{{"a", "b"}, {"c"}, nil} {
		if got, err := work.Agree(t.Context(), join(t, b, long), "list", mine); err != nil || fmt.Sprint(got) != "[a b]" {
			t.Errorf("%v: %v, %v", mine, got, err)
		}
	}
}

// TestLogLarge: an entry that is larger than a message is read as any other one, and one that comes too late leaves nothing behind.
func TestLogLarge(t *testing.T) {
	b := connect(t, embedded(t))
	logs := openLogs(t, b)
	small, large := []byte("small"), []byte(strings.Repeat("x", 3<<20))
	if err := logs[0].Put(t.Context(), "a", large); err != nil {
		t.Fatal(err)
	}
	if err := logs[1].Put(t.Context(), "b", large); !errors.Is(err, work.ErrBehind) {
		t.Errorf("behind: %v", err)
	}
	if err := logs[0].Put(t.Context(), "b", small); err != nil {
		t.Fatal(err)
	}
	if err := logs[0].Add(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{large, small, large} {
		if e, err := logs[1].Next(t.Context()); err != nil || e == nil || string(e.Data) != string(want) {
			t.Errorf("entry %d: %v, %v", i, e != nil, err)
		}
	}
	objects, err := b.JetStream().ObjectStore(t.Context(), "wirecheck-test")
	if err != nil {
		t.Fatal(err)
	}
	list, err := objects.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("%d objects are kept, want the two that entries name; error %v", len(list), err)
	}
}
