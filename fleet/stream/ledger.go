package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
)

// ledger is what the collectors of a fleet remember of one another: the list of findings, and how far the last one was. It is a bucket of keys in
// JetStream.
type ledger struct {
	keys     jetstream.KeyValue
	key      string   // of the position
	position position // as it was at the begin

	mu   sync.Mutex // guards seen
	seen map[string]uint64
}

// position says how far the stream was judged. From is where reading must begin so that everything is known that can matter for what comes later.
type position struct {
	Stream uint64            `json:"stream"` // place in the stream from which on to read
	Runs   map[string]place  `json:"runs"`
	Judged uint64            `json:"judged,omitempty"` // of a Gathering: the message of the events' stream up to which all was judged
	Seen   map[string]uint64 `json:"seen,omitempty"`   // how often each finding was found up to there
}

// place is a run's part of a position, in the run's own numbers of messages.
type place struct {
	From   uint64    `json:"from"`   // the first one to read again
	Judged uint64    `json:"judged"` // the last one of which the findings are in the list
	At     time.Time `json:"at"`     // of its last message, by the stream's clock
}

// The keys of the bucket.
const (
	keyPosition = "position"
	keyFinding  = "finding."
)

// openLedger reads the bucket, and makes it if it is not there. role is whose position it is; empty: of who judges all.
func openLedger(ctx context.Context, b *bus.Bus, fleet, role string) (*ledger, error) {
	keys, err := b.JetStream().KeyValue(ctx, streamName(fleet))
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		keys, err = b.JetStream().CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: streamName(fleet), Description: "what the collectors of a wirecheck fleet found"})
		if errors.Is(err, jetstream.ErrBucketExists) {
			keys, err = b.JetStream().KeyValue(ctx, streamName(fleet))
		}
	}
	if err != nil {
		return nil, err
	}
	l := &ledger{keys: keys, key: keyPosition, seen: map[string]uint64{}}
	if role != "" {
		l.key += "." + role
	}
	entry, err := keys.Get(ctx, l.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(entry.Value(), &l.position); err != nil {
		return nil, fmt.Errorf("the position is damaged: %w", err)
	}
	for id, n := range l.position.Seen {
		l.seen[id] = n
	}
	return l, nil
}

func (l *ledger) save(ctx context.Context, p position) error {
	l.mu.Lock()
	p.Seen = maps.Clone(l.seen)
	l.mu.Unlock()
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = l.keys.Put(ctx, l.key, text)
	return err
}

// Findings gives the list of all that was found, in the order in which it was.
func (l *ledger) Findings(ctx context.Context) (found [][]byte, err error) {
	watch, err := l.keys.Watch(ctx, keyFinding+">")
	if err != nil {
		return nil, err
	}
	defer watch.Stop() //nolint:errcheck // nothing follows from it
	for {
		select {
		case entry := <-watch.Updates():
			if entry == nil { // that was all
				return found, nil
			}
			found = append(found, entry.Value())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Add puts a finding into the list, where it stands once, whoever adds it how often. It tries for as long as ctx lasts.
func (l *ledger) Add(ctx context.Context, id string, text []byte) error {
	for {
		_, err := l.keys.Create(ctx, keyFinding+id, text)
		if err == nil || errors.Is(err, jetstream.ErrKeyExists) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("write down finding %s: %w", id, err)
		case <-time.After(pause):
		}
	}
}

// Count notes that a finding was found once more.
func (l *ledger) Count(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[id]++
}

// Seen is how often a finding was found by all collectors of the fleet, one after the other.
func (l *ledger) Seen(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.seen[id])
}

// Old reports whether the event that Take got is one that a collector before this one has judged: what it completes is no news.
func (c *Collector) Old() bool { return c.old }
