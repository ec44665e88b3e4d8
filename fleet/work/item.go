package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Item is a piece of work that this process has.
type Item struct {
	Number uint64 // from 1
	Noted  []byte // what those who had it before have noted last; nil: nothing

	f        *Fleet
	msg      jetstream.Msg
	holder   string // of this claim
	revision uint64
	end      context.CancelFunc
	alive    sync.WaitGroup
}

// held is the key of an item that is under way.
type held struct {
	Holder string          `json:"holder"`
	Noted  json.RawMessage `json:"noted,omitempty"`
}

// total is the key with what finished items brought.
type total struct {
	Sum json.RawMessage `json:"sum,omitempty"`
	// The items up to Through are in the sum, and those of Folded behind it. A server that was killed may hand out a number once more.
	Through uint64   `json:"through"`
	Folded  []uint64 `json:"folded,omitempty"`
}

func (t *total) has(n uint64) bool { return n <= t.Through || slices.Contains(t.Folded, n) }

func (t *total) fold(n uint64) {
	t.Folded = append(t.Folded, n)
	for slices.Contains(t.Folded, t.Through+1) {
		t.Through++
		t.Folded = slices.DeleteFunc(t.Folded, func(n uint64) bool { return n == t.Through })
	}
}

const totalKey = "total"

func itemKey(n uint64) string { return "item." + strconv.FormatUint(n, 10) }

// Take gives an item that nobody has, up to the number last (0: there is no last one). It waits for those that others have, in case that they are
// killed; nil: all are done.
func (f *Fleet) Take(ctx context.Context, last uint64) (*Item, error) {
	return f.TakeUpTo(ctx, func(context.Context) (uint64, error) { return last, nil })
}

// TakeUpTo is Take where the last number becomes known as items are done: it is asked for again and again while this process waits for the others.
func (f *Fleet) TakeUpTo(ctx context.Context, last func(context.Context) (uint64, error)) (*Item, error) {
	for {
		msg, err := f.next(ctx, last)
		if msg == nil || err != nil {
			return nil, err
		}
		if it, err := f.claim(ctx, msg); it != nil || err != nil {
			return it, err
		}
	}
}

// look is how long a process that has nothing to do waits before it looks whether all is done.
const look = time.Second

// next gives the message of an item. Who finds none makes one: its number is the stream's, so that there is each number once.
func (f *Fleet) next(ctx context.Context, upTo func(context.Context) (uint64, error)) (jetstream.Msg, error) {
	for {
		batch, err := f.consumer.FetchNoWait(1)
		if msg, err := first(ctx, batch, err); msg != nil || err != nil {
			return msg, err
		}
		info, err := f.items.Info(ctx)
		if err != nil {
			return nil, err
		}
		last, err := upTo(ctx) // asked for behind the state: if nothing is under way, it knows all that was done
		if err != nil {
			return nil, err
		}
		switch s := info.State; {
		case last == 0 || s.LastSeq < last:
			if _, err := f.js.Publish(ctx, f.subject(), nil, jetstream.WithExpectLastSequence(s.LastSeq)); err != nil && !conflict(err) {
				return nil, err
			}
		case s.Msgs == 0:
			return nil, nil
		default:
			batch, err := f.consumer.Fetch(1, jetstream.FetchMaxWait(look))
			if msg, err := first(ctx, batch, err); msg != nil || err != nil {
				return msg, err
			}
		}
	}
}

// first is the message of a batch of one; nil: there is none.
func first(ctx context.Context, batch jetstream.MessageBatch, err error) (jetstream.Msg, error) {
	if err != nil {
		return nil, err
	}
	select {
	case msg := <-batch.Messages():
		if msg == nil {
			err = batch.Error()
		}
		return msg, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// claim makes a message's item this process's own. From then on, nobody who had it before can note anything. nil: it is done.
func (f *Fleet) claim(ctx context.Context, msg jetstream.Msg) (*Item, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	it := &Item{Number: meta.Sequence.Stream, f: f, msg: msg, holder: f.self + "." + rand.Text()}
	for {
		var t total
		if _, err := f.read(ctx, totalKey, &t); err != nil {
			return nil, err
		}
		if t.has(it.Number) {
			return nil, it.finish(ctx)
		}
		var h held
		revision, err := f.read(ctx, itemKey(it.Number), &h)
		if err != nil {
			return nil, err
		}
		h.Holder, it.Noted = it.holder, h.Noted
		if it.revision, err = f.write(ctx, itemKey(it.Number), &h, revision); conflict(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		it.live()
		return it, nil
	}
}

// live gives signs of life until the item is finished or released.
func (i *Item) live() {
	ctx, cancel := context.WithCancel(context.Background())
	i.end = cancel
	i.alive.Go(func() {
		tick := time.NewTicker(i.f.lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = i.msg.InProgress() // if it does not arrive, another process gets the item, which Note says
			}
		}
	})
}

func (i *Item) stop() {
	i.end()
	i.alive.Wait()
}

// Note keeps what was done of an item so far, all of it: who gets the item after this process goes on from there. The error is ErrTaken if somebody
// has it already; then this process drops it.
func (i *Item) Note(ctx context.Context, noted []byte) error {
	for {
		revision, err := i.f.write(ctx, itemKey(i.Number), &held{i.holder, noted}, i.revision)
		if err == nil {
			i.revision = revision
			return nil
		}
		if !conflict(err) {
			return err
		}
		var now held
		if revision, err = i.f.read(ctx, itemKey(i.Number), &now); err != nil {
			return err
		}
		if now.Holder != i.holder {
			return ErrTaken
		}
		i.revision = revision // this process's own, whose answer was lost
	}
}

// Done says that the item is done as it was noted last: add gives the sum with what it brought, once for each item. After an error that is not
// ErrTaken it may be called again.
func (i *Item) Done(ctx context.Context, add func(sum, noted []byte) ([]byte, error)) error {
	f := i.f
	for {
		var t total
		revision, err := f.read(ctx, totalKey, &t)
		if err != nil {
			return err
		}
		if t.has(i.Number) {
			break
		}
		var h held
		if _, err := f.read(ctx, itemKey(i.Number), &h); err != nil {
			return err
		}
		if h.Holder != i.holder {
			return ErrTaken
		}
		if t.Sum, err = add(t.Sum, h.Noted); err != nil {
			return err
		}
		t.fold(i.Number)
		if _, err = f.write(ctx, totalKey, &t, revision); err == nil {
			break
		}
		if !conflict(err) {
			return err
		}
	}
	return i.finish(ctx)
}

// finish takes an item away that is in the sum.
func (i *Item) finish(ctx context.Context) error {
	acked := i.msg.DoubleAck(ctx)
	switch _, err := i.f.items.GetMsg(ctx, i.Number); {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return errors.Join(acked, err)
	default:
		if err := i.f.items.DeleteMsg(ctx, i.Number); err != nil {
			return errors.Join(acked, err)
		}
	}
	return i.forget(ctx)
}

// forget removes an item's key, and leaves no mark in its place: there may be millions.
func (i *Item) forget(ctx context.Context) error {
	s, err := i.f.js.Stream(ctx, "KV_"+prefix+i.f.name)
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(i.f.keySubject(itemKey(i.Number))))
}

// flushLimit is how long the server may take to hear that work is given back.
const flushLimit = 2 * time.Second

// Release ends what this process has to do with an item; if it is not done, another one gets it at once.
func (i *Item) Release() error {
	i.stop()
	err := i.msg.Nak()
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	if err == nil {
		err = i.f.conn.FlushTimeout(flushLimit)
	}
	if err != nil {
		return fmt.Errorf("give work back, which the fleet gets after %v otherwise: %w", i.f.lease, err)
	}
	return nil
}

// Underway is an item that a process has, or had when it was killed.
type Underway struct {
	Number uint64
	Holder string // the process's own name
	Noted  []byte
}

// View gives the sum of all that is done, and what is noted of what is under way.
func (f *Fleet) View(ctx context.Context) (sum []byte, under []Underway, err error) {
	for {
		var before, after total
		begun, err := f.read(ctx, totalKey, &before)
		if err != nil {
			return nil, nil, err
		}
		under = nil
		err = f.each(ctx, "item.", func(name string, e jetstream.KeyValueEntry) error {
			n, err := strconv.ParseUint(name, 10, 64)
			var h held
			if err := errors.Join(err, json.Unmarshal(e.Value(), &h)); err != nil {
				return err
			}
			if !before.has(n) {
				under = append(under, Underway{n, h.Holder[:min(len(h.Holder), len(f.self))], h.Noted})
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		if ended, err := f.read(ctx, totalKey, &after); err != nil || ended == begun {
			slices.SortFunc(under, func(a, b Underway) int { return int(a.Number) - int(b.Number) })
			return before.Sum, under, err
		}
	}
}
