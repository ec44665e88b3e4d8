package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"wirecheck/fleet"
	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/live"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/sieve"
)

// gathering is the judging of what parts find: it reads edges in place of accesses, and judges in full the transactions that may be part of an anomaly.
type gathering struct {
	*collecting
	*stream.Gathering
	center  *sieve.Center
	round   *sieve.Round // that is not judged yet
	next    time.Time    // the next round is not before
	saved   time.Time
	done    uint64 // up to this message of the events' stream, all is judged
	early   int    // center.Forgotten, as it was told
	slowest uint64 // how far the part is that is behind the others; slow is since when, or since that was said
	slow    time.Time

	mu   sync.Mutex        // guards said
	said []map[string]said // of each part, by its processes
}

// gather makes k judge what so many parts find.
func (k *collecting) gather(g *stream.Gathering, parts int) *gathering {
	return &gathering{collecting: k, Gathering: g, slow: time.Now(), done: g.Known(), said: make([]map[string]said, parts), center: sieve.NewCenter(sieve.CenterOptions{
		Parts: parts, Ordered: k.config.Strict, Transactions: k.config.Unit == unitTransaction,
	})}
}

// run reads until the end.
func (g *gathering) run(ctx context.Context, untilEnd bool) error {
	if err := g.Read(ctx, untilEnd, g.take, g.look); err != nil {
		return err
	}
	g.next, g.saved = time.Time{}, time.Time{}
	g.behind(time.Time{})
	return stream.Lastly(ctx, g.look)
}

// behind says which part holds the others up, if one has since a time: what they found later is not judged.
func (g *gathering) behind(since time.Time) {
	last, first := 0, 0
	for i := range g.said {
		if g.center.Upto(i) < g.center.Upto(last) {
			last = i
		}
		if g.center.Upto(i) > g.center.Upto(first) {
			first = i
		}
	}
	upto := g.center.Upto(last)
	if upto == g.center.Upto(first) || upto != g.slowest {
		g.slowest, g.slow = upto, time.Now()
	}
	if upto < g.center.Upto(first) && (since.IsZero() || g.slow.Before(since)) {
		g.slow = time.Now()
		g.log.Warn().Str("part", fmt.Sprintf("%d/%d", last+1, len(g.said))).Uint64("messages", g.center.Upto(first)-upto).
			Msg("this part is behind, or is not at work: what is later is not judged yet")
	}
}

// take takes a share.
func (g *gathering) take(s stream.Share) error {
	if s.Part < 1 || s.Part > len(g.said) {
		return fmt.Errorf("there is a part %d of %d", s.Part, len(g.said))
	}
	share, err := sieve.ReadShare(s.Data)
	if err != nil {
		return err
	}
	g.center.Add(s.Part-1, share, s.Upto, s.More, s.Place)
	if len(share.Said) == 0 {
		return nil
	}
	var what said
	if err := json.Unmarshal(share.Said, &what); err != nil {
		return fmt.Errorf("read the edges of part %d: %w", s.Part, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.said[s.Part-1] == nil {
		g.said[s.Part-1] = map[string]said{}
	}
	g.said[s.Part-1][what.Run] = what
	return nil
}

// covered adds what the parts have counted.
func (g *gathering) covered(c isolation.Coverage) isolation.Coverage {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, runs := range g.said {
		for _, v := range runs {
			c = c.Plus(v.Coverage)
		}
	}
	return c
}

// lost is how much the histories lack, as the part says that has met most of it.
func (g *gathering) lost() (gaps, events int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, runs := range g.said {
		n, lost := 0, 0
		for _, v := range runs {
			n, lost = n+v.Gaps, lost+v.Lost
		}
		gaps, events = max(gaps, n), max(events, lost)
	}
	return gaps, events
}

const (
	// restFactor is how much longer than the judging of a round takes the next one waits, so that the shares are read meanwhile: where many transactions
	// are in one component, each round judges them again.
	restFactor = 3
	saveShares = time.Second
	behindFor  = time.Minute // a part may be behind for so long before it is said
)

// look judges what is new.
func (g *gathering) look(ctx context.Context) error {
	begun := time.Now()
	if g.round == nil {
		if begun.Before(g.next) {
			return nil
		}
		if g.round = g.center.Round(); g.round.From == g.round.To {
			g.round = nil
		}
	}
	if g.round != nil {
		if err := g.judge(ctx, g.round); err != nil {
			return err
		}
		g.done, g.round = max(g.done, g.round.To), nil
		g.next = time.Now().Add(restFactor * time.Since(begun))
	}
	g.behind(begun.Add(-behindFor))
	if n := g.center.Forgotten - g.early; n > 0 {
		g.early += n
		g.log.Warn().Int("transactions", n).Msg("forgotten early: one stays open too long, and anomalies with it may be missed")
	}
	if time.Since(g.saved) < saveShares || !g.saved.IsZero() && g.warner.Waiting() {
		return nil
	}
	if err := g.Save(ctx, g.center.Needed(), g.done); err != nil {
		return err
	}
	g.saved = time.Now()
	return nil
}

// piece is a message that is judged, and from which message on it could be read: others in front of it came late.
type piece struct {
	stream.Message
	at uint64
}

// judge judges the transactions of a round in full.
func (g *gathering) judge(ctx context.Context, r *sieve.Round) error {
	if len(r.Judge) == 0 {
		return nil
	}
	wanted, cuts := map[string]map[uint64]bool{}, map[string][]uint64{}
	places := map[uint64]bool{}
	for i := range r.Judge {
		t := &r.Judge[i]
		run := g.center.Run(t.Recorder)
		if wanted[run] == nil {
			wanted[run] = map[uint64]bool{}
		}
		wanted[run][t.Txn] = true
		for _, place := range t.Messages {
			places[place] = true
		}
		if t.Cut && t.End <= r.To {
			cuts[run] = append(cuts[run], t.End)
		}
	}
	list, err := g.pieces(ctx, places)
	if err != nil {
		return err
	}
	join := fleet.NewJoin()
	members := map[string]*fleet.Member{}
	known := max(r.From, g.Known())
	g.owner = join.Owner
	return g.checker.Judge(live.Piece{Recorder: join.Recorder, Origin: join.Origin, Each: func(add func(*history.Event, bool)) error {
		cut := func(run string, upto uint64) { // ends the sessions of a run where its history has a hole
			for m := members[run]; m != nil && len(cuts[run]) > 0 && cuts[run][0] <= upto; cuts[run] = cuts[run][1:] {
				closes := m.Lost("the proxy's history has a hole")
				for i := range closes {
					add(&closes[i], cuts[run][0] <= known)
				}
			}
		}
		for _, of := range cuts {
			slices.Sort(of)
		}
		var reader history.BatchReader
		for _, m := range list {
			if m.at > r.To {
				continue
			}
			if members[m.Run] == nil {
				members[m.Run] = join.Member(m.Run)
			}
			cut(m.Run, m.at)
			err := reader.Read(m.Data, func(e *history.Event) {
				bound := e.Kind != history.EventSession && e.Kind != history.EventClose
				if bound && !wanted[m.Run][e.Txn] || !members[m.Run].Take(e) {
					return
				}
				add(e, m.at <= known)
			})
			if err != nil { // its part has told of it
				g.log.Debug().Err(err).Uint64("message", m.Place).Msg("a message is damaged")
			}
		}
		for _, run := range slices.Sorted(maps.Keys(cuts)) {
			cut(run, ^uint64(0))
		}
		return nil
	}})
}

// pieces reads messages, and brings them into the order in which a collector reads them.
func (g *gathering) pieces(ctx context.Context, places map[uint64]bool) (list []piece, err error) {
	gone := 0
	for _, place := range slices.Sorted(maps.Keys(places)) {
		m, there, err := g.Fetch(ctx, place)
		if err != nil {
			return nil, err
		}
		if !there {
			gone++
			continue
		}
		list = append(list, piece{m, place})
	}
	if gone > 0 {
		g.log.Warn().Int("messages", gone).Msg("messages are gone from the stream before they were judged: anomalies in them are missed (--keep-for, --keep-size)")
	}
	slices.SortFunc(list, func(a, b piece) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Seq, b.Seq)) })
	for i := 1; i < len(list); i++ {
		if list[i].Run == list[i-1].Run {
			list[i].at = max(list[i].at, list[i-1].at)
		}
	}
	slices.SortStableFunc(list, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	return list, nil
}
