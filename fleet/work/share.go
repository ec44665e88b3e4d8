package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// againAfter is the pause between two attempts to reach the server.
const againAfter = 200 * time.Millisecond

// Patiently does what needs the server, and waits for it as long as it does not answer. waits is told once, before it waits.
func Patiently(ctx context.Context, waits func(error), do func() error) error {
	for told := false; ; {
		err := do()
		if err == nil || ctx.Err() != nil || !Lost(err) {
			return err
		}
		if !told {
			told = true
			waits(err)
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
	}
}

// Agree gives what the first process of the fleet said under a name; this one's, if it is the first. It must be a value of JSON.
func Agree[T any](ctx context.Context, f *Fleet, name string, mine T) (first T, err error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return first, err
	}
	if text, err = f.Settle(ctx, name, text); err != nil {
		return first, err
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return first, fmt.Errorf("read what the fleet has settled as %s: %w", name, err)
	}
	return first, nil
}

// Sharing says what the items of a fleet are that processes share until all are done. All functions are called by the goroutine that calls Share.
type Sharing struct {
	// UpTo is the last item that there is to do, as far as is known from the results that Have was given.
	UpTo func() uint64
	// Do does an item. Have was given all results from which any process knew that there is this item.
	Do func(ctx context.Context, n uint64) (result any, err error)
	// Have gets the result of an item that some process has done, each once, and this process's own as well.
	Have func(n uint64, result []byte) error
	// Waits is told that the server does not answer and that Share waits; Taken that another process has gone on with an item that was done here.
	Waits func(error)
	Taken func(n uint64)
}

// results are the objects with what items brought: the sum of a fleet whose processes call Share.
type results map[uint64]string

// Share does items until all are done, by this process or others. What a process that is killed was doing, another one does again. When ctx ends,
// Share gives its cause; Have was given all that is known.
func (f *Fleet) Share(ctx context.Context, s Sharing) error {
	had := map[uint64]bool{}
	hear := func(ctx context.Context) error { return f.hear(ctx, s.Have, had) }
	for {
		var it *Item
		err := Patiently(ctx, s.Waits, func() (err error) {
			it, err = f.TakeUpTo(ctx, func(ctx context.Context) (uint64, error) {
				err := hear(ctx)
				return s.UpTo(), err
			})
			return err
		})
		if err == nil {
			err = Patiently(ctx, s.Waits, func() error { return hear(ctx) })
		}
		if it == nil && err == nil {
			return nil
		}
		if it != nil {
			if err == nil && !had[it.Number] {
				err = f.do(ctx, &s, it)
			}
			err = errors.Join(err, it.Release())
		}
		if ctx.Err() != nil {
			if err := f.farewell(ctx, hear); err != nil && !Lost(err) {
				return err
			}
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// Farewell is how long a process that is to end may take to tell the fleet what it has done.
const Farewell = 10 * time.Second

// farewell hears what is known at the end. If it is the time that has ended, it has for the others, too: what they are keeping, it waits for.
func (f *Fleet) farewell(ctx context.Context, hear func(context.Context) error) error {
	over := errors.Is(ctx.Err(), context.DeadlineExceeded)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Farewell)
	defer cancel()
	for over && ctx.Err() == nil {
		_, under, err := f.View(ctx)
		if err != nil || len(under) == 0 {
			break
		}
		time.Sleep(againAfter)
	}
	return hear(ctx)
}

// do does an item and keeps its result. The result of a process that has lost the item does not count.
func (f *Fleet) do(ctx context.Context, s *Sharing, it *Item) error {
	result, err := s.Do(ctx, it.Number)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	object, err := json.Marshal(fmt.Sprintf("%d-%s", it.Number, rand.Text()[:8]))
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // it was done just in time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), Farewell)
		defer cancel()
	}
	err = Patiently(ctx, s.Waits, func() error {
		if _, err := f.files.PutBytes(ctx, string(object), text); err != nil {
			return err
		}
		if err := it.Note(ctx, object); err != nil {
			return err
		}
		return it.Done(ctx, func(sum, noted []byte) ([]byte, error) {
			all := results{}
			if sum != nil {
				if err := json.Unmarshal(sum, &all); err != nil {
					return nil, err
				}
			}
			all[it.Number] = string(noted)
			return json.Marshal(all)
		})
	})
	if errors.Is(err, ErrTaken) {
		s.Taken(it.Number)
		return f.files.Delete(ctx, string(object))
	}
	return err
}

// hear gives the results that have not been given yet.
func (f *Fleet) hear(ctx context.Context, have func(n uint64, result []byte) error, had map[uint64]bool) error {
	var t total
	if _, err := f.read(ctx, totalKey, &t); err != nil || t.Sum == nil {
		return err
	}
	all := results{}
	if err := json.Unmarshal(t.Sum, &all); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if had[n] {
			continue
		}
		text, err := f.files.GetBytes(ctx, all[n])
		if err == nil {
			err = have(n, text)
		}
		if err != nil {
			return fmt.Errorf("read what item %d has brought: %w", n, err)
		}
		had[n] = true
	}
	return nil
}
