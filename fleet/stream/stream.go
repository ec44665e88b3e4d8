// Package stream carries the histories of a fleet's proxies to those who judge them together: a Publisher sends one proxy's events to a stream of NATS
// JetStream, and a Collector reads those of all.
//
// # Messages
//
// A message is a batch of events (history.Batch), on the subject of the process that recorded them, its run. It has the run's own number, from 1, so
// that messages which come twice or in another order change nothing. At most window messages of a run wait for their acknowledgement. So when number
// n is in the stream, all up to n-window are, or were, in front of it: of those that a reader has not had by then, it knows that they are gone.
//
// Each batch announces the sessions whose events it has. So a reader can begin with any one.
//
// # Gaps
//
// Where events are lost, since NATS was away for longer than the publisher's buffer lasts, a message says so in their place. A reader then ends all
// sessions of the run, as sessions that are not observed any more. What comes next rests on nothing of before: the sessions are announced again, and
// transactions that began before are not told further.
package stream

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
)

// DefaultFleet is the name of a fleet that has none.
const DefaultFleet = "default"

// The defaults of what a stream keeps.
const (
	DefaultAge   = 24 * time.Hour
	DefaultBytes = 1 << 30 // where the server has room for it; otherwise the largest half of it, and so on, that has, down to leastBytes
	leastBytes   = 64 << 20
)

// Keep says how much a stream keeps; what is older goes first. A collector that was away for longer misses what is gone.
type Keep struct {
	Age   time.Duration // 0: DefaultAge
	Bytes int64         // 0: DefaultBytes
}

var fleetName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckFleet refuses a name that subjects cannot have.
func CheckFleet(name string) error {
	if !fleetName.MatchString(name) {
		return fmt.Errorf("%q is no name for a fleet: use up to 64 letters, digits, - and _", name)
	}
	return nil
}

// subject names what a process of a fleet sends or listens to: what it is about, and the process's run (docs/how-to/judge-several-proxies.md).
func subject(fleet, kind, run string) string { return "wirecheck." + fleet + "." + kind + "." + run }

const (
	events   = "events"
	warnings = "warnings"
)

func streamName(fleet string) string { return "wirecheck-" + fleet }

// The headers of a message.
const (
	headerBatch = "Wirecheck-Batch" // the run's own number of the message, from 1
	headerLost  = "Wirecheck-Lost"  // so many events were lost here
	headerEnd   = "Wirecheck-End"   // the run has ended
)

// window is how many messages of a run are on their way at most.
const window = 8

// open gives the fleet's stream, and makes it if it is not there.
func open(ctx context.Context, b *bus.Bus, fleet string, keep Keep) (jetstream.Stream, error) {
	return openStream(ctx, b, keep, jetstream.StreamConfig{
		Name: streamName(fleet), Description: "events of the proxies of a wirecheck fleet", Subjects: []string{subject(fleet, events, ">")},
	})
}

// openStream gives a stream, and makes it if it is not there. Of one that is there only what is kept is changed: somebody may have given it replicas.
func openStream(ctx context.Context, b *bus.Bus, keep Keep, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.JetStream().Stream(ctx, c.Name)
	if err == nil && keep == (Keep{}) {
		return s, nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	if err == nil {
		c = s.CachedInfo().Config
	} else {
		c.MaxAge, c.MaxBytes, c.Discard, c.Storage = DefaultAge, DefaultBytes, jetstream.DiscardOld, jetstream.FileStorage
	}
	if keep.Age > 0 {
		c.MaxAge = keep.Age
	}
	if keep.Bytes > 0 {
		c.MaxBytes = keep.Bytes
	}
	if err == nil {
		return b.JetStream().UpdateStream(ctx, c)
	}
	for {
		s, err = b.JetStream().CreateStream(ctx, c)
		switch {
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse): // another process was faster
			return b.JetStream().Stream(ctx, c.Name)
		case !noRoom(err):
			return s, err
		case keep.Bytes > 0 || c.MaxBytes <= leastBytes:
			return nil, fmt.Errorf("NATS has no room for a stream of %d MiB: free space on the disk with its store, of which it takes three quarters of what is free, "+
				"or have it keep less with wirecheck collect --keep-size (%w)", c.MaxBytes>>20, err)
		}
		c.MaxBytes /= 2 // the server reserves what a stream may keep
	}
}

// noRoom reports whether a server refuses a stream since its disk, or what it may use of it, is too small.
func noRoom(err error) bool {
	const insufficientStorage = 10047 // https://github.com/nats-io/nats-server/blob/main/server/errors.json
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == insufficientStorage
}
