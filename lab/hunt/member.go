package hunt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"wirecheck/backends"
	"wirecheck/fleet/work"
	"wirecheck/lab/generate"
)

// member is a hunter of a fleet. Cases are its own by groups, which are the fleet's items of work; what they counted is noted with them after each
// case. What is found is in a log that gives folders their names.
type member struct {
	*store
	fleet       *work.Fleet
	found, seen *work.Log
	size, cases int       // as Options.Group and Options.Cases
	ends        time.Time // zero: never
	steer       bool

	todo    *work.Entry       // read from the log, and not yet done
	placed  map[string]placed // by folder
	objects int               // how many this hunter has made
	unsent  []*unsent
	news    []*generate.News // not told yet

	// running ends with the hunt; last is for what the fleet must hear nevertheless: it ends work.Farewell later, or as soon as the server does not
	// answer then.
	running, last context.Context
	giveUp        context.CancelFunc

	mu    sync.Mutex // guards hunter
	self  Hunter
	quit  context.CancelFunc
	alive sync.WaitGroup
}

// Hunter is one of a fleet's, as it says itself.
type Hunter struct {
	Name   string    `json:"name"` // HOST:PID
	Engine string    `json:"engine"`
	Since  time.Time `json:"since"`
	Cases  int       `json:"cases"`
	Ended  bool      `json:"ended"`
	Seen   time.Time `json:"seen"` // the last sign of life, by the server's clock
}

// holding is what a member has of a group.
type holding struct {
	item  *work.Item
	note  note
	taken bool
}

// note is what is known of a group that is not done.
type note struct {
	Next   int            `json:"next"`
	Base   *generate.Base `json:"base,omitempty"` // that the steering has chosen
	Counts *State         `json:"counts"`
}

// placed is an entry of the log of what was found: a folder, whose files are kept apart.
type placed struct {
	Folder string `json:"folder"`
	Object string `json:"object"`
	By     string `json:"by"`
	Bug    *Bug   `json:"bug,omitempty"` // nil: no bug
}

// signEvery is how often a hunter says that it lives.
const signEvery = 2 * time.Second

// identity is what all hunters of a fleet must have in common besides their flags.
type identity struct {
	ID     string    `json:"id"`
	Engine string    `json:"engine"`
	Began  time.Time `json:"began"`
}

// versioned is the product and its version.
type versioned struct {
	Product string `json:"product"`
	Version string `json:"version"`
}

// identify gives what the first hunter of a fleet has settled.
func identify(ctx context.Context, h *hunter) (identity, error) {
	name := h.o.Engine
	if strings.Contains(name, "://") { // each hunter has its own, and it may hold a password
		name = h.Instance.Engine.Name
	}
	return work.Agree(ctx, h.o.Fleet, identityKey, identity{ID: h.o.Fleet.Self(), Engine: name, Began: time.Now()})
}

const identityKey = "hunt"

// FleetEngine is the engine of a fleet's first hunter; empty: there was none.
func FleetEngine(ctx context.Context, f *work.Fleet) (string, error) {
	var id identity
	text, err := f.Settled(ctx, identityKey)
	if text == nil || err != nil {
		return "", err
	}
	return id.Engine, json.Unmarshal(text, &id)
}

// joined makes a hunter a member of a fleet.
func joined(ctx context.Context, h *hunter) (*member, error) {
	o := &h.o
	m := &member{
		fleet: o.Fleet, size: o.Group, cases: o.Cases, steer: o.Steer, placed: map[string]placed{},
		self: Hunter{Name: hunterName(), Engine: h.Instance.Engine.Title + " " + h.Instance.Version, Since: time.Now()},
	}
	m.running = ctx
	m.last, m.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(work.Farewell, m.giveUp) })
	if err := m.sameServer(ctx, h.Instance); err != nil {
		return nil, err
	}
	id, err := identify(ctx, h)
	if err != nil {
		return nil, err
	}
	if h.store, err = openFleetStore(o.Out, id.Engine, o.Known, id.ID); err != nil {
		return nil, err
	}
	m.store, h.store.shared, h.store.log = h.store, m, o.Judging.Log
	if err := m.sameKnown(ctx, o.Known); err != nil {
		return nil, err
	}
	h.began = id.Began
	if o.Duration > 0 {
		m.ends = h.began.Add(o.Duration)
	}
	if m.found, err = o.Fleet.OpenLog(ctx, foundLog); err != nil {
		return nil, err
	}
	if m.seen, err = o.Fleet.OpenLog(ctx, "seen"); err != nil {
		return nil, err
	}
	if m.steer {
		m.steering.Share()
	}
	if err := m.readUnsent(); err != nil {
		return nil, err
	}
	if err := m.refresh(ctx); err != nil {
		return nil, err
	}
	m.live(ctx)
	return m, nil
}

const (
	serverKey = "server"
	knownKey  = "known"
	foundLog  = "found"
)

// sameServer compares this hunter's server with the fleet's.
func (m *member) sameServer(ctx context.Context, s *backends.Instance) error {
	mine := versioned{s.Engine.Title, s.Version}
	first, err := work.Agree(ctx, m.fleet, serverKey, mine)
	if err == nil && first != mine {
		err = fmt.Errorf("the fleet hunts on %s %s, and this server is %s %s: hunt on the same version, or in another --fleet",
			first.Product, first.Version, mine.Product, mine.Version)
	}
	return err
}

// sameKnown makes what the first hunter knows what all know. Who names other signatures would keep other bugs.
func (m *member) sameKnown(ctx context.Context, file string) error {
	first, err := work.Agree(ctx, m.fleet, knownKey, slices.Sorted(maps.Keys(m.known)))
	if err != nil {
		return err
	}
	fleet := map[string]bool{}
	for _, sign := range first {
		fleet[sign] = true
	}
	if file != "" && !maps.Equal(fleet, m.known) {
		return fmt.Errorf("--known %s has other signatures than the fleet's first hunter had: %s and %s; leave it out, or name another --fleet",
			file, differing("only the file has", m.known, fleet), differing("only the fleet has", fleet, m.known))
	}
	m.known = fleet
	return nil
}

// differing tells which names only one of two sets has.
func differing(who string, a, b map[string]bool) string {
	var list []string
	for name := range a {
		if !b[name] {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return who + " none"
	}
	return fmt.Sprintf("%s %d (the first: %s)", who, len(list), slices.Min(list))
}

// hunterName is how people know a process.
func hunterName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// live says now and then that this hunter lives.
func (m *member) live(ctx context.Context) {
	ctx, m.quit = context.WithCancel(context.WithoutCancel(ctx))
	m.alive.Go(func() {
		tick := time.NewTicker(signEvery)
		defer tick.Stop()
		for {
			_ = m.sign(ctx) // the next one tells, or nobody hears of this hunter
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

func (m *member) sign(ctx context.Context) error {
	m.mu.Lock()
	text, err := json.Marshal(m.self)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.fleet.Present(ctx, text)
}

// close says that this hunter has ended, and what the fleet does not know of it.
func (m *member) close() {
	m.quit()
	m.alive.Wait()
	m.self.Ended = true
	if err := m.sign(m.last); err != nil {
		m.log.Warn().Err(err).Msg("the fleet does not hear that this hunter has ended")
	}
	if n := len(m.unsent); n > 0 {
		m.log.Warn().Int("folders", n).Str("in", filepath.Join(m.dir, unsentFolder)).
			Msg("the fleet does not know these yet: join again with the same --out when its server is there")
	}
	m.giveUp()
}

// patiently does what needs the fleet's server, and waits for it as long as it does not answer.
func (m *member) patiently(ctx context.Context, do func() error) error {
	return work.Patiently(ctx, func(err error) {
		m.log.Warn().Err(err).Msg("the hunt waits for the fleet's server; Ctrl-C ends it, and what it found is in its folder")
	}, do)
}

// lost reports whether an error means that the fleet's server does not answer now. A hunt that is to end asks it nothing more then.
func (m *member) lost(err error) bool {
	if !work.Lost(err) && (m.last.Err() == nil || !errors.Is(err, context.Canceled)) {
		return false
	}
	if m.running.Err() != nil {
		m.giveUp()
	}
	return true
}

// take implements shared.
func (m *member) take(ctx context.Context) (*group, error) {
	if !m.ends.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, m.ends)
		defer cancel()
	}
	var it *work.Item
	err := m.patiently(ctx, func() (err error) {
		it, err = m.fleet.Take(ctx, uint64((m.cases+m.size-1)/m.size))
		return err
	})
	if it == nil || err != nil {
		if ctx.Err() != nil {
			err = nil
		}
		return nil, err
	}
	n := int(it.Number) - 1
	k := &holding{item: it, note: note{Next: n * m.size, Counts: &State{}}}
	k.note.Counts.complete()
	if it.Noted != nil {
		if err := json.Unmarshal(it.Noted, &k.note); err != nil {
			return nil, errors.Join(fmt.Errorf("read what was noted of the cases from %d on: %w", n*m.size, err), it.Release())
		}
		k.note.Counts.complete()
		if k.note.Base != nil {
			m.steering.Group, m.steering.Base = n, *k.note.Base
		}
	}
	g := cases(n, k.note.Next, m.size, m.cases)
	g.held = k
	return g, nil
}

// counted implements shared. Without the server, it is noted with one of the next cases, or at the end of the group.
func (m *member) counted(_ context.Context, g *group, added *State) error {
	k := g.held
	k.note.Next = g.next
	k.note.Counts.add(added, 1)
	if m.steer && m.steering.Group == g.n {
		k.note.Base = &m.steering.Base
	}
	m.mu.Lock()
	m.self.Cases++
	m.mu.Unlock()
	if err := k.put(m.last); !m.lost(err) {
		return err
	}
	return nil
}

// put notes what was counted.
func (k *holding) put(ctx context.Context) error {
	text, err := json.Marshal(&k.note)
	if err == nil {
		err = k.item.Note(ctx, text)
	}
	if errors.Is(err, work.ErrTaken) {
		k.taken = true
		return errTaken
	}
	return err
}

// leave implements shared.
func (m *member) leave(ctx context.Context, g *group) (err error) {
	k := g.held
	defer func() {
		if e := k.item.Release(); e != nil {
			m.lost(e)
			m.log.Warn().Err(e).Msg("other hunters hear late that they can go on with these cases")
		}
	}()
	done := g.next >= g.end
	if done && !k.taken {
		// Done is what the fleet has: whoever ends first may take its server along.
		err = m.patiently(ctx, func() error { return errors.Join(m.send(m.last), k.put(m.last)) })
	}
	if done && !k.taken && err == nil {
		err = m.patiently(ctx, func() error { return k.item.Done(m.last, addNoted) })
	}
	switch {
	case errors.Is(err, errTaken), errors.Is(err, work.ErrTaken):
		m.log.Warn().Int("case", g.n*m.size).Msg("another hunter has gone on with these cases, since this one gave no sign of life")
		return nil
	case err != nil && ctx.Err() != nil:
		m.log.Warn().Err(err).Int("case", g.n*m.size).Msg("the fleet does not know that these cases are done: another hunter executes them again")
		return nil
	}
	return err
}

// addNoted adds what a group counted to what all groups did.
func addNoted(sum, noted []byte) ([]byte, error) {
	all, n := &State{}, &note{}
	if err := json.Unmarshal(noted, n); err != nil {
		return nil, err
	}
	if sum != nil {
		if err := json.Unmarshal(sum, all); err != nil {
			return nil, err
		}
	}
	all.complete()
	if n.Counts != nil {
		all.add(n.Counts, 1)
	}
	return json.Marshal(all)
}

// refresh implements shared. Without the server, the store stays as it is.
func (m *member) refresh(context.Context) error {
	if err := m.update(); !m.lost(err) {
		return err
	}
	return nil
}

// finish implements shared. It waits for a server that another hunter took along, up to work.Farewell.
func (m *member) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, work.Farewell)
	defer cancel()
	err := m.patiently(ctx, m.update)
	if m.lost(err) {
		m.log.Warn().Err(err).Msg("the fleet's server does not answer: what other hunters found last is not in this folder")
		return nil
	}
	return err
}

// update brings the store to what the fleet knows, and the other way round.
func (m *member) update() error {
	for _, step := range []func(context.Context) error{m.catchUp, m.send, m.exchange, m.view} {
		if err := step(m.last); err != nil {
			return err
		}
	}
	return nil
}

// view reads what all hunters have counted.
func (m *member) view(ctx context.Context) error {
	all, _, err := viewed(ctx, m.fleet)
	if err != nil {
		return err
	}
	all.Engine, all.Fleet, all.Seed, all.Elapsed = m.state.Engine, m.state.Fleet, m.state.Seed, m.state.Elapsed
	m.state = *all
	for _, b := range m.kept {
		b.Seen = max(1, m.state.Seen[b.Signature])
	}
	return nil
}

// viewed is what a fleet has counted, with what is noted of groups under way, and these.
func viewed(ctx context.Context, f *work.Fleet) (*State, []GroupUnderway, error) {
	sum, under, err := f.View(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := &State{}
	if sum != nil {
		if err := json.Unmarshal(sum, all); err != nil {
			return nil, nil, err
		}
	}
	all.complete()
	var groups []GroupUnderway
	for _, u := range under {
		g := GroupUnderway{Number: int(u.Number) - 1, holder: u.Holder}
		if u.Noted != nil {
			var n note
			if err := json.Unmarshal(u.Noted, &n); err != nil {
				return nil, nil, err
			}
			all.add(n.Counts, 1)
			g.Done, g.Next = n.Counts.Next, n.Next
		}
		groups = append(groups, g)
	}
	return all, groups, nil
}

// gossip is an entry of the log of what executions did.
type gossip struct {
	By   string         `json:"by"`
	News *generate.News `json:"news"`
}

// exchange tells the other hunters what steers this one, and hears what steers them.
func (m *member) exchange(ctx context.Context) error {
	if !m.steer {
		return nil
	}
	if n := m.steering.News(); n != nil {
		m.news = append(m.news, n)
	}
	for len(m.news) > 0 {
		text, err := json.Marshal(gossip{m.fleet.Self(), m.news[0]})
		if err == nil {
			err = m.seen.Add(ctx, text)
		}
		if err != nil {
			return err
		}
		m.news = m.news[1:]
	}
	for {
		e, err := m.seen.Next(ctx)
		if e == nil || err != nil {
			return err
		}
		var g gossip
		if err := json.Unmarshal(e.Data, &g); err != nil {
			return err
		}
		if g.By != m.fleet.Self() {
			m.steering.Hear(g.News)
		}
	}
}

// nth implements shared. Without the server, this hunter's own count has to do.
func (m *member) nth(_ context.Context, key, by string) (int, error) {
	n, err := m.fleet.Nth(m.last, key, by)
	if m.lost(err) {
		return m.state.Reduced[key], nil
	}
	return n, err
}
