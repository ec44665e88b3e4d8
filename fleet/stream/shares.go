package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
)

// This file carries what the parts of a fleet's judgement find (their shares) to where they meet. What is in a share, it does not know.

// shares is the kind of their subjects: wirecheck.FLEET.edges.PARTS.NUMBER.
const shares = "edges"

// The headers of a share.
const (
	headerUpto = "Wirecheck-Upto" // all up to this message of the events' stream is told
	headerMore = "Wirecheck-More" // another message follows that has the rest
)

// SharePiece is how large a message of a share should be at most, in bytes.
const SharePiece = 512 << 10

// ErrOther says that another process does the same part's work.
var ErrOther = errors.New("another process has this part: end one of them")

func sharesName(fleet string) string { return streamName(fleet) + "-edges" }

// openShares gives the stream of shares, and makes it if it is not there.
func openShares(ctx context.Context, b *bus.Bus, fleet string, keep Keep) (jetstream.Stream, error) {
	return openStream(ctx, b, keep, jetstream.StreamConfig{
		Name: sharesName(fleet), Description: "edges between transactions of a wirecheck fleet", Subjects: []string{subject(fleet, shares, ">")},
	})
}

// ShareWriter publishes the shares of one part. It is not safe for concurrent use.
type ShareWriter struct {
	bus     *bus.Bus
	fleet   string
	subject string
	run     string
	last    uint64 // number of the part's last message in the stream
	count   uint64
	waiting []*nats.Msg // not acknowledged
}

// NewShareWriter begins to publish for part number, from 1, of so many. run is a unique name of the process. Another process that publishes for it
// fails from then on.
func NewShareWriter(ctx context.Context, b *bus.Bus, fleet, run string, keep Keep, number, parts int) (*ShareWriter, error) {
	w := &ShareWriter{bus: b, fleet: fleet, run: run, subject: subject(fleet, shares, fmt.Sprintf("%d.%d", parts, number))}
	s, err := openShares(ctx, b, fleet, keep)
	if err != nil {
		return nil, fmt.Errorf("open the edges of fleet %s at %s: %w", fleet, b.Where(), err)
	}
	if last, err := s.GetLastMsgForSubject(ctx, w.subject); err == nil {
		w.last = last.Sequence
	} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("look at the edges of fleet %s: %w", fleet, err)
	}
	return w, nil
}

// Write publishes a share in pieces, with all that was not acknowledged before. Where the server is away it fails, and the next call goes on. ErrOther:
// another process publishes for the part.
func (w *ShareWriter) Write(ctx context.Context, pieces [][]byte, upto uint64) error {
	for i, data := range pieces {
		m := nats.NewMsg(w.subject)
		m.Header.Set(headerUpto, strconv.FormatUint(upto, 10))
		if i < len(pieces)-1 {
			m.Header.Set(headerMore, "1")
		}
		w.count++
		m.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("%s-%d", w.run, w.count))
		m.Data = data
		w.waiting = append(w.waiting, m)
	}
	for len(w.waiting) > 0 {
		if err := w.send(ctx, w.waiting[0]); err != nil {
			return err
		}
		w.waiting = w.waiting[1:]
	}
	return nil
}

func (w *ShareWriter) send(ctx context.Context, m *nats.Msg) error {
	ack, err := w.bus.JetStream().PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(w.last), jetstream.WithExpectStream(sharesName(w.fleet)))
	if err == nil {
		w.last = ack.Sequence
		return nil
	}
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || refused.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence && refused.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequenceConstant {
		return fmt.Errorf("publish edges: %w", err)
	}
	// The acknowledgement of the same message may have been lost.
	s, err := w.bus.JetStream().Stream(ctx, sharesName(w.fleet))
	if err != nil {
		return fmt.Errorf("publish edges: %w", err)
	}
	last, err := s.GetLastMsgForSubject(ctx, w.subject)
	if err != nil {
		return fmt.Errorf("publish edges: %w", err)
	}
	if last.Header.Get(jetstream.MsgIDHeader) != m.Header.Get(jetstream.MsgIDHeader) {
		return ErrOther
	}
	w.last = last.Sequence
	return nil
}

// Share is a message of a part.
type Share struct {
	Part  int // from 1
	Data  []byte
	Upto  uint64 // all up to this message of the events' stream is told
	More  bool   // another message follows that has the rest
	Place uint64 // in the stream of shares
}

// Message is one of the events' stream.
type Message struct {
	Run string
	Seq uint64 // the run's own number
	// Place is where it stands in the stream.
	Place uint64
	Data  []byte
}

// Gathering reads the shares of all parts of a fleet, from where the one before it needed them, and the events of which they are. It keeps the list of
// findings, as a Collector does.
type Gathering struct {
	*ledger
	bus    *bus.Bus
	fleet  string
	parts  int
	stream jetstream.Stream
	events jetstream.Stream
	at     uint64 // place of the last share
}

// NewGathering opens the streams, for so many parts. The bus stays the caller's.
func NewGathering(ctx context.Context, b *bus.Bus, fleet string, keep Keep, parts int) (*Gathering, error) {
	g := &Gathering{bus: b, fleet: fleet, parts: parts}
	var err error
	if g.stream, err = openShares(ctx, b, fleet, keep); err != nil {
		return nil, fmt.Errorf("open the edges of fleet %s at %s: %w", fleet, b.Where(), err)
	}
	if g.events, err = open(ctx, b, fleet, keep); err != nil {
		return nil, fmt.Errorf("open the stream of fleet %s at %s: %w", fleet, b.Where(), err)
	}
	if g.ledger, err = openLedger(ctx, b, fleet, fmt.Sprintf("parts-%d", parts)); err != nil {
		return nil, fmt.Errorf("open the findings of fleet %s at %s: %w", fleet, b.Where(), err)
	}
	g.at = max(g.position.Stream, 1) - 1
	return g, nil
}

// Known is the message of the events' stream up to which Gatherings before this one have judged all.
func (g *Gathering) Known() uint64 { return g.position.Judged }

// Read reads shares until ctx ends, or, where that is wanted, until all is read that is there now. An error of take ends it. After each share, and at least
// each second, it calls idle; if that fails, it waits a moment and goes on.
func (g *Gathering) Read(ctx context.Context, untilEnd bool, take func(Share) error, idle func(context.Context) error) error {
	last := uint64(0)
	if untilEnd {
		info, err := g.stream.Info(ctx)
		if err != nil {
			return fmt.Errorf("look at the edges of fleet %s: %w", g.fleet, err)
		}
		if last = info.State.LastSeq; info.State.Msgs == 0 {
			return nil
		}
	}
	for ctx.Err() == nil && (!untilEnd || g.at < last) {
		err := g.follow(ctx, last, take, idle)
		var own ownError
		if errors.As(err, &own) {
			return own.error
		}
		waitAgain(ctx, err)
	}
	return nil
}

// ownError is one of who takes the shares.
type ownError struct{ error }

func (g *Gathering) follow(ctx context.Context, last uint64, take func(Share) error, idle func(context.Context) error) error {
	more := func() bool { return last == 0 || g.at < last }
	message := func(msg jetstream.Msg) error {
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if err := take(g.share(msg, meta.Sequence.Stream)); err != nil {
			return ownError{err}
		}
		g.at = meta.Sequence.Stream
		return nil
	}
	return follow(ctx, g.bus, sharesName(g.fleet), subject(g.fleet, shares, fmt.Sprintf("%d.>", g.parts)), g.at, more, message, func(none bool) error {
		if none && last > 0 { // what is left is of another number of parts
			g.at = last
		}
		return idle(ctx)
	})
}

func (g *Gathering) share(msg jetstream.Msg, place uint64) Share {
	s := Share{Data: msg.Data(), Place: place, More: msg.Headers().Get(headerMore) != ""}
	subject := msg.Subject()
	s.Part, _ = strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+1:]) // who takes it looks at both
	s.Upto, _ = strconv.ParseUint(msg.Headers().Get(headerUpto), 10, 64)
	return s
}

// Fetch gives a message of the events' stream; false: it is gone.
func (g *Gathering) Fetch(ctx context.Context, place uint64) (m Message, there bool, err error) {
	msg, err := g.events.GetMsg(ctx, place)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read message %d of fleet %s: %w", place, g.fleet, err)
	}
	m = Message{Run: msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:], Place: place, Data: msg.Data}
	if m.Seq, err = strconv.ParseUint(msg.Header.Get(headerBatch), 10, 64); err != nil {
		return m, false, fmt.Errorf("message %d of fleet %s has no number: is it a newer wirecheck's?", place, g.fleet)
	}
	return m, true, nil
}

// Save writes down where another Gathering begins if this one ends: the first share that is needed, and up to which message of the events' stream all is
// judged.
func (g *Gathering) Save(ctx context.Context, needed, judged uint64) error {
	return g.save(ctx, position{Stream: min(needed, g.at+1), Judged: max(judged, g.position.Judged)})
}
