package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet"
	"wirecheck/fleet/bus"
	"wirecheck/history"
)

// CollectorOptions say what a Collector does with what it reads.
type CollectorOptions struct {
	Fleet string
	Keep  Keep // what the stream keeps; zero: as it is
	// Take gets the events of all runs, numbered as one history (fleet.Join). What an event holds is good until it returns.
	Take func(*history.Event)
	// Needed is the number, from 1, of the first event that Take got and that is still needed to judge later ones.
	Needed func() uint64
	// Role names the position, where several collectors read all events at once, each for a part of what they show. Empty: there is one.
	Role string
	// Saving is called before the position is written down: what the events up to message upto show must be kept by then. Due asks for that early. Both may
	// be nil.
	Saving func(ctx context.Context, upto uint64) error
	Due    func() bool
	// Settled reports whether all is done that follows from what Take got. Until then, a collector that is killed has what it took read again. nil: always.
	Settled func() bool
	// Said is told of what is missing in the history of a run; may be nil.
	Said func(run, what string)
}

// Collector reads the histories of a fleet's proxies, from where the one before it ended.
type Collector struct {
	o      CollectorOptions
	bus    *bus.Bus
	stream jetstream.Stream
	*ledger
	seq     *sequence
	join    *fleet.Join
	members map[string]*fleet.Member
	runs    map[uint64]string // of open sessions, by their number among all
	reader  history.BatchReader
	taken   uint64 // events given to Take
	old     bool   // the event at hand was judged before
	read    []piece
	at      uint64 // place in the stream of the last message
	hand    delivery
	saved   time.Time
	fresh   bool // something is not saved

	gaps, lost atomic.Uint64 // see Missing
}

// piece is a message whose events were taken.
type piece struct {
	run         string
	seq, stream uint64
	last        uint64 // number of its last event
}

// NewCollector opens the fleet's stream and finds out where to begin. The bus stays the caller's.
func NewCollector(ctx context.Context, b *bus.Bus, o CollectorOptions) (*Collector, error) {
	c := &Collector{o: o, bus: b, seq: newSequence(), join: fleet.NewJoin(), members: map[string]*fleet.Member{}}
	var err error
	if c.stream, err = open(ctx, b, o.Fleet, o.Keep); err != nil {
		return nil, fmt.Errorf("open the stream of fleet %s at %s: %w", o.Fleet, b.Where(), err)
	}
	if c.ledger, err = openLedger(ctx, b, o.Fleet, o.Role); err != nil {
		return nil, fmt.Errorf("open the findings of fleet %s at %s: %w", o.Fleet, b.Where(), err)
	}
	for name, r := range c.ledger.position.Runs {
		c.seq.begin(name, r.From).last = r.At
	}
	c.at = max(c.ledger.position.Stream, 1) - 1
	return c, nil
}

// Recorder is Join.Recorder.
func (c *Collector) Recorder(session uint64) int { return c.join.Recorder(session) }

// Origin is Join.Origin, see Owner.
func (c *Collector) Origin(txn uint64) (run string, own uint64) { return c.join.Origin(txn) }

// Missing is how many gaps the histories of the runs have had so far, and how many events are known to be lost in them.
func (c *Collector) Missing() (gaps, events int) { return int(c.gaps.Load()), int(c.lost.Load()) }

// Owner is Join.Owner. The members have the names of their runs.
func (c *Collector) Owner(session uint64) (run string, own uint64, open bool) {
	return c.join.Owner(session)
}

// At is the message of the stream that is read, and From the one that the event at hand is in: those that come too early wait.
func (c *Collector) At() (at, from uint64) { return c.at, cmp.Or(c.hand.stream, c.at) }

// reached is the last message up to which all was taken.
func (c *Collector) reached() uint64 {
	upto := c.at
	for _, r := range c.seq.runs {
		for _, m := range r.held {
			upto = min(upto, m.stream-1)
		}
	}
	return upto
}

// saveEvery is how far the position that is saved may be behind.
const saveEvery = time.Second

// Run reads until ctx ends, or, where that is wanted, until all is read that is in the stream now. It goes on where it was when the server is away.
func (c *Collector) Run(ctx context.Context, untilEnd bool) error {
	last := uint64(0)
	if untilEnd {
		info, err := c.stream.Info(ctx)
		if err != nil {
			return fmt.Errorf("look at the stream of fleet %s: %w", c.o.Fleet, err)
		}
		if last = info.State.LastSeq; info.State.Msgs == 0 || last <= c.at {
			last = c.at
		}
	}
	for ctx.Err() == nil && (!untilEnd || c.at < last) {
		err := c.follow(ctx, last)
		if errors.Is(err, ErrOther) {
			return err
		}
		waitAgain(ctx, err)
	}
	if untilEnd {
		for _, d := range c.seq.finish() {
			if err := c.deliver(d); err != nil {
				return err
			}
		}
	}
	return Lastly(ctx, c.save)
}

// lastTries is how long a collector that ends tries to write down what it knows, where the server is away just then.
const lastTries = 5 * time.Second

// Lastly does what is left to do when ctx has ended, and tries it again for a while if it fails.
func Lastly(ctx context.Context, do func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	for begun := time.Now(); ; {
		err := do(ctx)
		if err == nil || time.Since(begun) > lastTries {
			return err
		}
		waitAgain(ctx, err)
	}
}

// follow reads until something is wrong, or the message with the last number was read; 0: there is none.
func (c *Collector) follow(ctx context.Context, last uint64) error {
	more := func() bool { return last == 0 || c.at < last }
	return follow(ctx, c.bus, streamName(c.o.Fleet), subject(c.o.Fleet, events, ">"), c.at, more, c.message, func(bool) error {
		if c.fresh && (time.Since(c.saved) >= saveEvery && (c.o.Settled == nil || c.o.Settled()) || c.o.Due != nil && c.o.Due()) {
			return c.save(ctx)
		}
		return nil
	})
}

// follow gives the messages of a stream behind one of them, in order, while more says so, until something is wrong or ctx ends. After each message, and
// at least each second, it calls idle, which hears whether there is none. What it waits for ends with ctx: the ordered consumer of the library makes its
// consumer anew by itself, without regard to ctx, and waits up to 10 seconds for each answer of a server that was killed.
func follow(ctx context.Context, b *bus.Bus, stream, subject string, behind uint64, more func() bool, message func(jetstream.Msg) error, idle func(none bool) error) error {
	consumer, err := b.JetStream().CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: behind + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	defer leave(ctx, b, consumer.CachedInfo())
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(200, 16<<20))
	if err != nil {
		return err
	}
	defer messages.Stop()
	late := 0 // how often in a row messages did not come that the server has
	for n := uint64(1); more(); {
		msg, err := messages.Next(jetstream.NextMaxWait(saveEvery))
		none := errors.Is(err, nats.ErrTimeout)
		switch {
		case ctx.Err() != nil:
			return nil
		case none && late >= lateMost:
			err = errors.New("messages do not come: they went to a connection that was lost")
		case none: // there is none, or the consumer ended with its server
			var info *jetstream.ConsumerInfo
			if info, err = consumer.Info(ctx); err == nil {
				late = lateBy(info, n, late)
			}
		case err == nil:
			late = 0
			var meta *jetstream.MsgMetadata
			if meta, err = msg.Metadata(); err == nil && meta.Sequence.Consumer != n {
				err = errors.New("messages went to a connection that was lost")
			}
			if n++; err == nil {
				err = message(msg)
			}
		}
		if err == nil {
			err = idle(none && late == 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lateMost is how often in a row messages may not come that wait in the server: who asked for them may have been forgotten.
const lateMost = 10

// lateBy says how often in a row messages did not come, of a consumer that must give message n next. What it has given is here with its answer, or just
// behind it: if there is none then, it is lost, and nobody acknowledges, so it does not come again.
func lateBy(info *jetstream.ConsumerInfo, n uint64, late int) int {
	switch {
	case info.Delivered.Consumer >= n:
		return lateMost
	case info.NumPending > 0:
		return late + 1
	}
	return 0
}

// leave deletes a consumer that is not read any more, also where ctx has ended. Without a connection the server does it, after a while.
func leave(ctx context.Context, b *bus.Bus, info *jetstream.ConsumerInfo) {
	if !b.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.JetStream().DeleteConsumer(ctx, info.Stream, info.Name)
}

// waitAgain waits a moment where reading failed: the server is away, or changes. What was not read is read then.
func waitAgain(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// message takes one message of the stream. One that is none of ours is left out.
func (c *Collector) message(msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	c.at = meta.Sequence.Stream
	run := msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:]
	in := incoming{run: run, stream: c.at, at: meta.Timestamp, end: msg.Headers().Get(headerEnd) != "", data: msg.Data()}
	if in.seq, err = strconv.ParseUint(msg.Headers().Get(headerBatch), 10, 64); err != nil || in.seq == 0 {
		c.say(run, "a message without a number was left out: is it a newer wirecheck's?")
		return nil
	}
	in.lost, _ = strconv.ParseUint(msg.Headers().Get(headerLost), 10, 64)
	for _, d := range c.seq.put(in) {
		if err := c.deliver(d); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collector) say(run, what string) {
	if c.o.Said != nil && !c.old {
		c.o.Said(run, what)
	}
}

// deliver takes what comes next of a run.
func (c *Collector) deliver(d delivery) error {
	c.fresh, c.hand = true, d
	c.old = d.seq > 0 && d.seq <= c.ledger.position.Runs[d.run].Judged
	m := c.members[d.run]
	if m == nil {
		m = c.join.Member(d.run)
		c.members[d.run] = m
	}
	if d.lost > 0 {
		d.hole = fmt.Sprintf("%d events were lost, since the proxy could not publish them", d.lost)
	}
	if d.hole != "" || d.end {
		c.cut(d, m, false)
	}
	if d.seq == 0 {
		return nil
	}
	err := c.reader.Read(d.data, func(e *history.Event) {
		if m.Take(e) {
			c.take(e)
		}
	})
	if err != nil {
		d.lost, d.hole = 0, "a message is damaged: "+err.Error()
		c.cut(d, m, true)
	}
	c.read = append(c.read, piece{d.run, d.seq, d.stream, c.taken})
	return nil
}

// cut ends all sessions of a run. A hole in front of all of them is none, unless it is certain.
func (c *Collector) cut(d delivery, m *fleet.Member, certain bool) {
	closes := m.Lost("the proxy's history has a hole")
	if d.hole != "" && (len(closes) > 0 || d.lost > 0 || certain) {
		c.say(d.run, d.hole)
		if !c.old {
			c.gaps.Add(1)
			c.lost.Add(d.lost)
		}
	}
	for i := range closes {
		c.take(&closes[i])
	}
	if d.end {
		delete(c.members, d.run)
	}
}

func (c *Collector) take(e *history.Event) {
	c.taken++
	c.o.Take(e)
}

// save writes down where another collector begins if this one ends.
func (c *Collector) save(ctx context.Context) error {
	if c.o.Saving != nil {
		if err := c.o.Saving(ctx, c.reached()); err != nil {
			return err
		}
	}
	needed := c.o.Needed()
	for len(c.read) > 0 && c.read[0].last < needed {
		c.read = c.read[1:]
	}
	p := position{Stream: c.at + 1, Runs: map[string]place{}}
	for name, r := range c.seq.runs {
		// What was judged before this collector began, and is judged again, stays judged.
		p.Runs[name] = place{From: r.next, Judged: max(r.next-1, c.ledger.position.Runs[name].Judged), At: r.last}
		for _, m := range r.held {
			p.Stream = min(p.Stream, m.stream)
		}
	}
	for _, d := range c.read {
		r := p.Runs[d.run]
		r.From = min(r.From, d.seq)
		p.Runs[d.run], p.Stream = r, min(p.Stream, d.stream)
	}
	if err := c.ledger.save(ctx, p); err != nil {
		return err
	}
	c.saved, c.fresh = time.Now(), false
	return nil
}
