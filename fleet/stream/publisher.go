package stream

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
	"wirecheck/history"
)

// The sizes of messages, in bytes.
const (
	// batchSize is from what size on a batch is sent at once.
	batchSize = 256 << 10
	// eventSize is the largest event that is sent whole. Together they stay below what a server takes by default, 1 MiB.
	eventSize = 512 << 10
)

const (
	// linger is how long a batch waits for more events at least, so that what follows a rest is soon judged.
	linger = 20 * time.Millisecond
	// spacing is the time between two batches that are not full: a message costs the process and its server as much as a hundred events, most of it
	// to wake goroutines and threads one after the other.
	spacing = 200 * time.Millisecond
	// heartbeat is how often a run with open sessions sends a message, even if nothing happens; see silence.
	heartbeat = 10 * time.Second
	// ackPatience is how long the acknowledgement of a message may take before it is sent again.
	ackPatience = 5 * time.Second
	// pause is the time between two attempts to send where the server does not take it.
	pause = 200 * time.Millisecond
)

// DefaultBuffer is how many bytes a Publisher keeps that the server has not acknowledged.
const DefaultBuffer = 64 << 20

// Options say what a Publisher does.
type Options struct {
	Fleet  string
	Run    string // unique name of the process, of letters and digits
	Buffer int    // bytes that may wait; 0: DefaultBuffer
	// Trouble is told why a server that is there does not take messages, and when it takes them again (nil); may be nil. It must not wait.
	Trouble func(error)
	// Lost is told when events begin to be lost, since there is no room for them (0), and, when there is room again, how many were; may be nil. It must not
	// wait, and not call the Publisher.
	Lost func(events uint64)
}

// State is what a Publisher has done so far, in events.
type State struct {
	Published uint64 // and acknowledged
	Waiting   uint64
	Lost      uint64 // there was no room for them
}

// Publisher sends the events of one process. Nobody waits for it: what finds no room is lost, and counted.
type Publisher struct {
	o    Options
	bus  *bus.Bus
	js   jetstream.JetStream
	work chan struct{} // a batch is full, or it is closed
	due  *time.Timer   // the batch has waited long enough
	done chan struct{} // the goroutine has returned
	stop context.CancelFunc
	// wrong is why the server does not take messages; of the goroutine.
	wrong error

	mu        sync.Mutex // guards what follows
	batch     history.Batch
	count     uint64              // events in the batch, besides those that announce sessions again
	began     time.Time           // when the batch got its first event
	sealed    time.Time           // when the batch before it was whole
	announced map[uint64]struct{} // sessions in the batch
	sessions  map[uint64]history.Event
	queue     []*message // whole ones that are not acknowledged
	bytes     int        // of queue
	seq       uint64
	lost      uint64 // events since the last whole message; 0: none
	state     State
	closed    bool
}

// message is what the publisher sends at once.
type message struct {
	seq    uint64
	data   []byte
	events uint64
	lost   uint64
	end    bool
}

// NewPublisher starts a Publisher. The bus stays the caller's.
func NewPublisher(b *bus.Bus, o Options) (*Publisher, error) {
	o.Buffer = cmp.Or(o.Buffer, DefaultBuffer)
	js, err := jetstream.New(b.Conn(), jetstream.WithPublishAsyncTimeout(ackPatience), jetstream.WithDefaultTimeout(ackPatience))
	if err != nil {
		return nil, fmt.Errorf("publish to %s: %w", b.Where(), err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{
		o: o, bus: b, js: js, stop: stop, work: make(chan struct{}, 1), due: time.NewTimer(0), done: make(chan struct{}),
		announced: map[uint64]struct{}{}, sessions: map[uint64]history.Event{},
	}
	go p.run(ctx)
	return p, nil
}

// Event takes the next event of the history. It copies what it needs and does not wait.
func (p *Publisher) Event(e *history.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Kind == history.EventSession {
		p.sessions[e.Session] = *e
	}
	p.take(e)
	if e.Kind == history.EventClose {
		delete(p.sessions, e.Session)
	}
}

func (p *Publisher) take(e *history.Event) {
	switch waiting := p.bytes + p.batch.Len(); {
	case p.closed, p.lost > 0 && waiting > p.o.Buffer/2, waiting > p.o.Buffer:
		if p.lost == 0 {
			p.seal()
			p.tellLost(0)
		}
		p.lost++
		p.state.Lost++
		return
	}
	p.endGap()
	if p.batch.Len() == 0 {
		p.began = time.Now()
		p.due.Reset(p.wait(p.began))
	}
	if _, there := p.announced[e.Session]; !there {
		p.announced[e.Session] = struct{}{}
		if s, open := p.sessions[e.Session]; open && e.Kind != history.EventSession {
			p.batch.Add(&s)
		}
	}
	before := p.batch.Len()
	p.batch.Add(e)
	p.count++
	p.state.Waiting++
	if p.batch.Len()-before > eventSize {
		p.tooLarge(e, before)
	}
	if p.batch.Len() >= batchSize {
		p.seal()
		wake(p.work)
	}
}

// tooLarge puts in place of the batch's last event, which begins at a place, one without its row versions.
func (p *Publisher) tooLarge(e *history.Event, at int) {
	if data := p.batch.Take(); at > 0 {
		p.push(&message{data: data[:at], events: p.count - 1})
	}
	p.count = 1
	clear(p.announced)
	p.announced[e.Session] = struct{}{}
	small := *e
	small.Accesses, small.Reads, small.Operands, small.Derived, small.Params = nil, nil, nil, nil, ""
	small.SQL = small.SQL[:min(len(small.SQL), batchSize/4)]
	if e.Kind == history.EventStmt {
		small.Coverage, small.Why = history.CoverageOpaque, "the statement has too many row versions to publish"
	}
	if s, open := p.sessions[e.Session]; open {
		p.batch.Add(&s)
	}
	p.batch.Add(&small)
}

// seal makes a message of the batch.
func (p *Publisher) seal() {
	if p.batch.Len() == 0 {
		return
	}
	clear(p.announced)
	p.push(&message{data: p.batch.Take(), events: p.count})
	p.count = 0
	p.sealed = time.Now()
}

// wait is how long the batch waits for more events still.
func (p *Publisher) wait(now time.Time) time.Duration {
	return max(linger-now.Sub(p.began), spacing-now.Sub(p.sealed))
}

// endGap makes a message of the events that were lost.
func (p *Publisher) endGap() {
	if p.lost > 0 {
		p.push(&message{lost: p.lost})
		p.tellLost(p.lost)
		p.lost = 0
	}
}

func (p *Publisher) tellLost(events uint64) {
	if p.o.Lost != nil && !p.closed {
		p.o.Lost(events)
	}
}

func (p *Publisher) push(m *message) {
	p.seq++
	m.seq = p.seq
	p.queue = append(p.queue, m)
	p.bytes += len(m.data)
}

// State says what was done so far.
func (p *Publisher) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Close publishes what waits, and says that the run has ended. It gives up after the time of patience, and says then how many events were not
// published.
func (p *Publisher) Close(patience time.Duration) (unpublished uint64) {
	p.mu.Lock()
	if !p.closed {
		p.seal()
		p.endGap()
		p.push(&message{end: true})
		p.closed = true
	}
	p.mu.Unlock()
	wake(p.work)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.stop()
		<-p.done
	}
	p.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.queue {
		unpublished += m.events
	}
	return unpublished
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// flight is a message on its way.
type flight struct {
	*message
	ack jetstream.PubAckFuture
	err error // it could not be sent
}

// run sends messages, and those again that are not acknowledged.
func (p *Publisher) run(ctx context.Context) {
	defer close(p.done)
	var flying []flight
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	defer p.due.Stop()
	p.trouble(p.open(ctx))
	for {
		next, over := p.next(len(flying))
		if next != nil && len(flying) < window {
			flying = append(flying, p.send(next))
			beat.Reset(heartbeat)
			continue
		}
		if over {
			return
		}
		var acked <-chan *jetstream.PubAck
		var failed <-chan error
		if len(flying) > 0 {
			if f := &flying[0]; f.err != nil {
				if !p.again(ctx, f) {
					return
				}
				continue
			}
			acked, failed = flying[0].ack.Ok(), flying[0].ack.Err()
		}
		select {
		case <-ctx.Done():
			return
		case <-p.work:
		case <-p.due.C:
		case <-acked:
			p.trouble(nil)
			p.acknowledged(flying[0].message)
			flying = flying[1:]
		case err := <-failed:
			flying[0].err = err
		case <-beat.C:
			p.beat()
			beat.Reset(heartbeat)
		}
	}
}

// next is message number i of those that wait, if it is whole or has waited long enough.
func (p *Publisher) next(i int) (m *message, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i == len(p.queue) && p.batch.Len() > 0 {
		if wait := p.wait(time.Now()); wait > 0 {
			p.due.Reset(wait)
			return nil, false
		}
		p.seal()
	}
	if i < len(p.queue) {
		return p.queue[i], false
	}
	return nil, p.closed && len(p.queue) == 0
}

// beat sends an empty message, so that readers know that the open sessions go on.
func (p *Publisher) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.sessions) > 0 && len(p.queue) == 0 && p.batch.Len() == 0 {
		p.push(&message{})
	}
}

func (p *Publisher) acknowledged(m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue[0] = nil
	p.queue = p.queue[1:]
	p.bytes -= len(m.data)
	p.state.Published += m.events
	p.state.Waiting -= m.events
}

func (p *Publisher) send(m *message) flight {
	msg := nats.NewMsg(subject(p.o.Fleet, events, p.o.Run))
	number := strconv.FormatUint(m.seq, 10)
	msg.Header.Set(headerBatch, number)
	if m.lost > 0 {
		msg.Header.Set(headerLost, strconv.FormatUint(m.lost, 10))
	}
	if m.end {
		msg.Header.Set(headerEnd, "1")
	}
	msg.Data = m.data
	ack, err := p.js.PublishMsgAsync(msg, jetstream.WithMsgID(p.o.Run+"-"+number), jetstream.WithExpectStream(streamName(p.o.Fleet)))
	return flight{m, ack, err}
}

// again sends a message again, after a moment, and makes the stream if there is none. false: ctx has ended.
func (p *Publisher) again(ctx context.Context, f *flight) bool {
	if err := p.open(ctx); err != nil {
		p.trouble(err)
	} else if p.bus.Conn().IsConnected() {
		p.trouble(f.err)
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
	}
	*f = p.send(f.message)
	return true
}

// open makes the stream if there is none. While the server is away, there is nothing to do.
func (p *Publisher) open(ctx context.Context) error {
	if !p.bus.Conn().IsConnected() {
		return nil
	}
	_, err := open(ctx, p.bus, p.o.Fleet, Keep{})
	return err
}

// trouble tells of what changed. It is called by the goroutine alone.
func (p *Publisher) trouble(err error) {
	if (err == nil) != (p.wrong == nil) && p.o.Trouble != nil {
		p.o.Trouble(err)
	}
	p.wrong = err
}
