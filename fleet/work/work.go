// Package work shares work between the processes of a fleet: items that have numbers, of which each counts once whoever is killed in between; sums of
// what they brought; and lists that all processes read in one order.
//
// All of it is JetStream's (https://docs.nats.io/nats-concepts/jetstream). Items are the messages of a work-queue stream, which a pull consumer hands
// out and, without a sign of life for AckWait, hands out again. All else are keys, which are written by compare-and-set.
package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
)

// Fleet is this process's part in a fleet. One goroutine uses it, and has one item at a time.
type Fleet struct {
	name, self string
	conn       *nats.Conn
	js         jetstream.JetStream
	keys       jetstream.KeyValue
	files      jetstream.ObjectStore
	items      jetstream.Stream
	consumer   jetstream.Consumer
	lease      time.Duration
}

// ErrTaken says that another process has gone on with an item, since this one gave no sign of life.
var ErrTaken = errors.New("another process of the fleet has gone on with this work")

// Lease is how long a process may give no sign of life before another one gets its item, if the first one of the fleet does not say otherwise.
const Lease = 30 * time.Second

// prefix begins the names of all streams and buckets.
const prefix = "wirecheck-"

// CheckName says what is wrong with a fleet's name.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
		return fmt.Errorf("the name of a fleet is up to 64 letters, digits, - and _, not %q", name)
	}
	return nil
}

// Join makes the fleet of this name, or takes part in it. lease counts for who makes it; 0: Lease.
func Join(ctx context.Context, b *bus.Bus, name string, lease time.Duration) (*Fleet, error) {
	f := &Fleet{name: name, self: rand.Text(), conn: b.Conn(), js: b.JetStream()}
	lease = cmp.Or(lease, Lease)
	var err error
	create := func(what func() error) {
		if err == nil {
			err = what()
		}
	}
	bucket := prefix + name
	create(func() error {
		if f.keys, err = f.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, Description: "a fleet of wirecheck"}); errors.Is(err, jetstream.ErrBucketExists) {
			f.keys, err = f.js.KeyValue(ctx, bucket)
		}
		return err
	})
	create(func() error {
		if f.files, err = f.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket}); errors.Is(err, jetstream.ErrBucketExists) {
			f.files, err = f.js.ObjectStore(ctx, bucket)
		}
		return err
	})
	create(func() error {
		f.items, err = f.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: f.queue(), Subjects: []string{f.subject()}, Retention: jetstream.WorkQueuePolicy})
		return err
	})
	create(func() error {
		f.consumer, err = f.items.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxAckPending: -1})
		if errors.Is(err, jetstream.ErrConsumerExists) {
			f.consumer, err = f.items.Consumer(ctx, consumerName)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take part in the fleet %s at %s: %w", name, b.Where(), err)
	}
	f.lease = f.consumer.CachedInfo().Config.AckWait
	return f, nil
}

// Look is Join for who only looks: what is not there is an error.
func Look(ctx context.Context, b *bus.Bus, name string) (*Fleet, error) {
	f := &Fleet{name: name, self: rand.Text(), conn: b.Conn(), js: b.JetStream()}
	var err error
	if f.keys, err = f.js.KeyValue(ctx, prefix+name); err == nil {
		return f, nil
	}
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("look at the fleet %s at %s: %w", name, b.Where(), err)
	}
	var others []string
	for bucket := range f.js.KeyValueStoreNames(ctx).Name() {
		if other, ours := strings.CutPrefix(bucket, prefix); ours && !strings.Contains(other, logMark) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return nil, fmt.Errorf("there is no fleet %s at %s: known are %q", name, b.Where(), others)
}

const consumerName = "processes"

func (f *Fleet) queue() string   { return prefix + f.name + "-items" }
func (f *Fleet) subject() string { return "wirecheck." + f.name + ".items" }

// Self is this process's own name, which no other one has.
func (f *Fleet) Self() string { return f.self }

// Settle gives what the first process of the fleet said under this name; this one's, if it is the first.
func (f *Fleet) Settle(ctx context.Context, name string, mine []byte) ([]byte, error) {
	_, err := f.keys.Create(ctx, "settled."+name, mine)
	if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
		return mine, err
	}
	return f.Settled(ctx, name)
}

// Settled gives what was said under a name; nil: nothing.
func (f *Fleet) Settled(ctx context.Context, name string) ([]byte, error) {
	e, err := f.keys.Get(ctx, "settled."+name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.Value(), nil
}

// Present says that this process lives, and what it does.
func (f *Fleet) Present(ctx context.Context, what []byte) error {
	_, err := f.keys.Put(ctx, "process."+f.self, what)
	return err
}

// Sign is what a process said last.
type Sign struct {
	What []byte
	At   time.Time // by the server's clock
}

// Processes are all that took part, by their own names.
func (f *Fleet) Processes(ctx context.Context) (map[string]Sign, error) {
	signs := map[string]Sign{}
	err := f.each(ctx, "process.", func(name string, e jetstream.KeyValueEntry) error {
		signs[name] = Sign{What: e.Value(), At: e.Created()}
		return nil
	})
	return signs, err
}

// each gives the keys that begin alike.
func (f *Fleet) each(ctx context.Context, begin string, do func(name string, e jetstream.KeyValueEntry) error) error {
	s, err := f.js.Stream(ctx, "KV_"+prefix+f.name)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(f.keySubject(begin+"*")))
	if err != nil {
		return err
	}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		key := strings.TrimPrefix(subject, f.keySubject(""))
		e, err := f.keys.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // gone meanwhile
		}
		if err == nil {
			err = do(strings.TrimPrefix(key, begin), e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keySubject is the subject of a key.
func (f *Fleet) keySubject(key string) string { return "$KV." + prefix + f.name + "." + key }

// claimed is how often something was counted, and the last ones who did.
type claimed struct {
	N      int     `json:"n"`
	Claims []claim `json:"claims"`
}

type claim struct {
	Name string `json:"name"`
	Nth  int    `json:"nth"`
}

// mostClaims bounds how many claims a count remembers: more than there are processes.
const mostClaims = 256

// Nth counts something, and says how often the fleet has counted it with this claim. The same claim again, after a kill, has the same number.
func (f *Fleet) Nth(ctx context.Context, what, by string) (int, error) {
	key := "count." + digest(what)
	for {
		var c claimed
		revision, err := f.read(ctx, key, &c)
		if err != nil {
			return 0, err
		}
		for _, old := range c.Claims {
			if old.Name == by {
				return old.Nth, nil
			}
		}
		c.N++
		c.Claims = append(c.Claims, claim{by, c.N})
		c.Claims = c.Claims[max(0, len(c.Claims)-mostClaims):]
		if _, err = f.write(ctx, key, &c, revision); !conflict(err) {
			return c.N, err
		}
	}
}

// digest is a name of any characters as that of a key.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// read reads a key; the revision is 0 where it is not there.
func (f *Fleet) read(ctx context.Context, key string, into any) (uint64, error) {
	e, err := f.keys.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return e.Revision(), json.Unmarshal(e.Value(), into)
}

// write writes a key if its revision is still the one that was read; otherwise the error is a conflict.
func (f *Fleet) write(ctx context.Context, key string, value any, revision uint64) (uint64, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return f.keys.Update(ctx, key, text, revision)
}

// conflict reports whether a compare-and-set met another value.
func conflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Lost reports whether an error means that the server does not answer now: it may later.
func Lost(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503
	}
	return slices.ContainsFunc([]error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
		nats.ErrNoServers, jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrJetStreamNotEnabled, jetstream.ErrServerShutdown, jetstream.ErrConsumerLeadershipChanged, context.DeadlineExceeded,
	}, func(lost error) bool { return errors.Is(err, lost) })
}
