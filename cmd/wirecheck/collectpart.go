package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/internal/garbage"
	"wirecheck/live"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/sieve"
)

// partFlag is the part of a judgement that one of several collectors has: I/N. The zero value is none.
type partFlag struct{ number, parts int }

// maxParts is how many parts there are at most.
const maxParts = 1024

func (p *partFlag) String() string {
	if p.parts == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.number, p.parts)
}

// Type is what the help shows.
func (p *partFlag) Type() string { return "I/N" }

// Set reads I/N.
func (p *partFlag) Set(text string) error {
	a, b, _ := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || i < 1 || i > n || n > maxParts {
		return fmt.Errorf("%q is no part: write I/N, as in 2/4, with N up to %d", text, maxParts)
	}
	p.number, p.parts = i, n
	return nil
}

// check says what does not go together.
func (f *collectFlags) checkParts() error {
	switch {
	case f.parts < 0 || f.parts > maxParts:
		return fmt.Errorf("--parts %d: from 1 to %d", f.parts, maxParts)
	case f.parts > 0 && f.part.parts > 0:
		return errors.New("--part is for one of several, --parts for the one that joins what these find: say one of them")
	case f.config.ExplainCoverage && (f.parts > 0 || f.part.parts > 0):
		return errors.New("--explain-coverage works where one collector reads all: not with --part or --parts")
	}
	return nil
}

// parting is a collector that draws the edges of some of the rows.
type parting struct {
	*common
	flag      partFlag
	run       string // unique name of the process
	part      *sieve.Part
	collector *stream.Collector
	writer    *stream.ShareWriter
	numbers   map[string]uint32    // of runs
	sessions  map[uint64]ownership // that are open
	seen      *isolation.Checker   // counts what it is to count
	before    *isolation.Coverage  // of events that an earlier process counted
	forgotten int
}

// ownership says whose a session is.
type ownership struct {
	hash uint64
	name string // for the names of its requests
	mine bool   // this part counts what it does
}

// said is what a part says beside its share.
type said struct {
	Run      string             `json:"run"`
	Coverage isolation.Coverage `json:"coverage"`
	Gaps     int                `json:"gaps,omitempty"` // stream.Collector.Missing: all parts meet the same ones
	Lost     int                `json:"lost,omitempty"`
}

// runPart draws edges until ctx ends.
func (f *collectFlags) runPart(ctx context.Context, c *common) (err error) {
	out, err := openOutputs(c, f.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	defer garbage.Tune()()
	b, err := bus.Open(ctx, f.from, bus.Options{Name: "collect part " + f.part.String(), Changed: tellConnection(c.log, "collecting")})
	if err != nil {
		return err
	}
	defer b.Close()
	p := &parting{common: c, flag: f.part, run: live.RunName(time.Now()), numbers: map[string]uint32{}, sessions: map[uint64]ownership{}}
	keep := stream.Keep{Age: f.keepFor, Bytes: int64(f.keepSize)}
	if p.writer, err = stream.NewShareWriter(ctx, b, f.fleet, p.run, keep, f.part.number, f.part.parts); err != nil {
		return err
	}
	p.collector, err = stream.NewCollector(ctx, b, stream.CollectorOptions{
		Fleet: f.fleet, Keep: keep, Role: fmt.Sprintf("part-%d-of-%d", f.part.number, f.part.parts), Take: p.take,
		Needed: func() uint64 { return p.part.Needed() }, Saving: p.share, Due: func() bool { return p.part.Size() > shareDue },
		Said: func(run, what string) { c.log.Warn().Str("run", run).Msg(what) },
	})
	if err != nil {
		return err
	}
	p.part = sieve.NewPart(sieve.PartOptions{
		Number: f.part.number - 1, Parts: f.part.parts, Name: p.name, Session: func(session uint64) uint64 { return p.sessions[session].hash },
		Mine: func(id sieve.ID) bool { return p.mine(id.Txn) }, MaxAccesses: isolation.DefaultMaxAccesses,
	})
	p.seen = isolation.New(isolation.Options{Recorder: p.collector.Recorder, Only: func(uint64) bool { return false }})
	c.log.Info().Str("from", b.Where()).Str("fleet", f.fleet).Stringer("part", &f.part).Msg("collecting")
	err = p.collector.Run(ctx, f.untilEnd)
	if errors.Is(err, stream.ErrOther) {
		err = fmt.Errorf("part %s of fleet %s: %w", f.part.String(), f.fleet, err)
	}
	return err
}

// shareDue is how much a share has at most before it is published.
const shareDue = 50_000

// name is sieve.PartOptions.Name.
func (p *parting) name(txn uint64) sieve.ID {
	run, own := p.collector.Origin(txn)
	n, had := p.numbers[run]
	if !had {
		n = uint32(len(p.numbers))
		p.numbers[run] = n
	}
	return sieve.ID{Recorder: n, Txn: own}
}

// mine says whether this part counts something, by a number.
func (p *parting) mine(n uint64) bool { return n%uint64(p.flag.parts) == uint64(p.flag.number-1) }

// take takes an event.
func (p *parting) take(e *history.Event) {
	s, open := p.sessions[e.Session]
	if !open {
		run, own, _ := p.collector.Owner(e.Session)
		s.name = fmt.Sprintf("%s.%d", run, own)
		h := fnv.New64a()
		h.Write([]byte(s.name)) // never fails
		s.hash, s.mine = h.Sum64(), p.mine(h.Sum64()>>8)
		p.sessions[e.Session] = s
	}
	old := p.collector.Old()
	if !old && p.before == nil {
		p.before = new(p.seen.Coverage())
	}
	if s.mine {
		p.seen.Add(e)
	}
	if name, ok := strings.CutSuffix(e.Request, fmt.Sprintf(" of session %d", e.Session)); ok && e.Request != "" { // all parts give it one name
		e.Request = name + " of " + s.name
	}
	at, from := p.collector.At()
	p.part.Add(e, at, from, old)
	if e.Kind == history.EventClose {
		delete(p.sessions, e.Session)
	}
}

// share publishes what was found.
func (p *parting) share(ctx context.Context, upto uint64) error {
	s := p.part.Share()
	if n := p.part.Forgotten - p.forgotten; n > 0 {
		p.forgotten += n
		p.log.Warn().Int("transactions", n).Msg("forgotten early: one stays open too long, and anomalies with it may be missed")
	}
	s.Runs = map[uint32]string{}
	for run, n := range p.numbers {
		s.Runs[n] = run
	}
	counted := p.seen.Coverage()
	if p.before != nil {
		counted = counted.Since(*p.before)
	}
	gaps, lost := p.collector.Missing()
	var err error
	if s.Said, err = json.Marshal(said{p.run, counted, gaps, lost}); err != nil {
		return err
	}
	return p.writer.Write(ctx, s.Pieces(stream.SharePiece), upto)
}
