package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/scheduler/toy"
)

// The model checker plays sessions on a toy server and has Core decide. Whatever may happen next (a message arrives, the
// server takes a step, somebody looks who waits, the news of that is told) is tried in every order. Core must let the same
// steps go and tell the same schedule, whatever the order, and never wait for something that does not come.

// decider is Core with what the shell does for it, or a mutant of that.
type decider interface {
	Offer(s Session, name string) Step
	Withdraw(s Session)
	Finish(s Session, victim bool)
	Idle(s Session)
	Leave(s Session)
	Next() Decision
	Schedule() []Event
	// look tells what was seen of the steps that are with the server: who waits, and for whom.
	look(asked []Session, waits map[Session][]Session)
	clone() decider
	key() string
}

// shelled tells Core of waits as the shell does: if all that were asked wait.
type shelled struct{ *Core }

func newShelled(sessions int, strategy Strategy) decider {
	c := NewCore(strategy)
	for range sessions {
		c.Join()
	}
	return shelled{c}
}

func (d shelled) look(asked []Session, waits map[Session][]Session) {
	if len(waits) == len(asked) {
		d.Wait(waits)
	}
}

func (d shelled) clone() decider { return shelled{d.copied()} }

func (d shelled) key() string { return d.coreKey() }

func (c *Core) copied() *Core {
	other := *c
	other.sessions = slices.Clone(c.sessions)
	other.schedule = slices.Clip(c.schedule)
	return &other
}

// coreKey is the same for cores that will decide the same way, but for the past schedule.
func (c *Core) coreKey() string {
	b := []byte{byte(c.last), byte(c.round), bit(c.blocked)}
	for i := range c.sessions {
		m := &c.sessions[i]
		b = append(b, byte(m.state), byte(m.next), byte(m.turn), bit(m.told), bit(m.done), bit(m.victim), bit(m.left))
		for _, s := range m.waitsFor {
			b = append(b, byte(s))
		}
		b = append(b, '/')
		for _, s := range m.blockers {
			b = append(b, byte(s))
		}
		b = append(b, '.')
	}
	return string(b)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// scenario is what is played.
type scenario struct {
	sessions  [][]toy.Step
	policy    toy.Policy
	strategy  func() Strategy
	decider   func(sessions int, strategy Strategy) decider
	disturbed bool // something untimely happens once: then the schedule depends on when, and is not compared
}

func (sc scenario) String() string {
	var lines []string
	for i, steps := range sc.sessions {
		var words []string
		for _, st := range steps {
			words = append(words, st.String())
		}
		lines = append(lines, fmt.Sprintf("session %d: %s", i, strings.Join(words, "; ")))
	}
	return strings.Join(lines, "\n") + fmt.Sprintf("\npolicy %d", sc.policy)
}

// phase is where a client is.
type phase byte

const (
	atHome    phase = iota // will offer the next step, or disconnect
	atGate                 // has offered
	letGo                  // will submit
	submitted              // awaits the answer
	hungUp                 // the server knows that it is gone, Core does not
	left
)

type client struct {
	phase  phase
	at     int  // the next step
	waited uint // bit n: step n has waited
}

// world is one state of everything.
type world struct {
	sc      *scenario
	server  *toy.Server
	d       decider
	clients []client
	verdict Decision
	seen    *sight // a look whose news is on its way
	picks   int
	picked  Session
	told    string // the last decision, and the schedule that led to it
	calm    bool   // nothing untimely happens any more
	path    *path
}

type sight struct {
	asked   []Session
	waits   map[Session][]Session
	fresh   bool // nobody has finished or left since
	encoded string
}

// path is how a world came to be.
type path struct {
	before *path
	event  string
}

func (p *path) String() string {
	var events []string
	for ; p != nil; p = p.before {
		events = append(events, p.event)
	}
	slices.Reverse(events)
	return strings.Join(events, ", ")
}

func newWorld(sc *scenario) *world {
	n := len(sc.sessions)
	w := &world{sc: sc, server: toy.NewServer(n, sc.policy), d: sc.decider(n, sc.strategy()), clients: make([]client, n)}
	w.verdict = w.d.Next()
	return w
}

func (w *world) clone() *world {
	c := *w
	c.server, c.d, c.clients = w.server.Clone(), w.d.clone(), slices.Clone(w.clients)
	return &c
}

func (w *world) key() string {
	var b strings.Builder
	for _, cl := range w.clients {
		b.WriteByte(byte(cl.phase))
		b.WriteByte(byte(cl.at))
	}
	b.WriteString(w.server.Key())
	b.WriteByte('|')
	b.WriteString(w.d.key())
	b.WriteByte(bit(w.calm))
	if w.seen != nil {
		b.WriteByte(bit(w.seen.fresh))
		b.WriteString(w.seen.encoded)
	}
	return b.String()
}

// event is something that may happen next.
type event struct {
	name string
	s    Session
	do   func(w *world, s Session)
}

// events lists what may happen next.
func (w *world) events() []event {
	var list []event
	if w.server.Clone().Tick() {
		list = append(list, event{"tick", 0, (*world).tick})
	}
	for i, cl := range w.clients {
		s := Session(i)
		switch {
		case cl.phase == atHome && cl.at < len(w.sc.sessions[i]):
			list = append(list, event{"offer", s, (*world).offer})
		case cl.phase == atHome:
			list = append(list, event{"hang up", s, (*world).hangUp})
		case cl.phase == letGo:
			list = append(list, event{"submit", s, (*world).submit})
		case cl.phase == submitted && w.server.Answered(i):
			list = append(list, event{"finish", s, (*world).finish})
		case cl.phase == hungUp:
			list = append(list, event{"leave", s, (*world).leave})
		}
	}
	if w.sc.disturbed && !w.calm {
		list = append(list, w.disturbances()...)
	}
	switch {
	case w.seen != nil:
		list = append(list, event{"tell", 0, (*world).tell})
	case len(w.verdict.Ask) > 0:
		if seen := w.look(); seen != nil {
			list = append(list, event{"look", 0, func(w *world, _ Session) { w.seen = seen }})
		}
	}
	return list
}

// disturbances lists what may happen at any time, once: a session is lost, or thinks for too long, or takes its offer back,
// or a lock wait times out.
func (w *world) disturbances() (list []event) {
	once := func(name string, s Session, do func(w *world, s Session)) {
		list = append(list, event{name, s, func(w *world, s Session) { w.calm = true; do(w, s) }})
	}
	for i, cl := range w.clients {
		s := Session(i)
		if cl.phase != hungUp && cl.phase != left {
			once("quit", s, (*world).hangUp)
		}
		switch {
		case cl.phase == atHome && slices.Contains(w.verdict.Think, s):
			once("idle", s, (*world).idle)
		case cl.phase == atGate:
			once("withdraw", s, (*world).withdraw)
		case cl.phase == submitted && w.server.WaitsFor(i) != nil:
			once("time out", s, func(w *world, s Session) { w.server.TimeOut(int(s)) })
		}
	}
	return list
}

func (w *world) idle(s Session) {
	w.d.Idle(s)
	w.decide()
}

func (w *world) withdraw(s Session) {
	w.clients[s].phase = atHome
	w.d.Withdraw(s)
	w.decide()
}

func (w *world) tick(Session) {
	w.server.Tick()
	for i := range w.clients {
		if cl := &w.clients[i]; w.server.WaitsFor(i) != nil {
			cl.waited |= 1 << (cl.at - 1)
		}
	}
}

func (w *world) offer(s Session) {
	w.clients[s].phase = atGate
	w.d.Offer(s, "")
	w.decide()
}

func (w *world) hangUp(s Session) {
	w.server.Disconnect(int(s))
	w.clients[s].phase = hungUp
}

func (w *world) leave(s Session) {
	w.clients[s].phase = left
	w.d.Leave(s)
	w.moved()
}

func (w *world) submit(s Session) {
	cl := &w.clients[s]
	w.server.Submit(int(s), w.sc.sessions[s][cl.at])
	cl.phase = submitted
	cl.at++
}

func (w *world) finish(s Session) {
	victim, _ := w.server.Answer(int(s))
	w.clients[s].phase = atHome
	w.d.Finish(s, victim)
	w.moved()
}

// look is what the lock views show now; nil if they show nobody waiting.
func (w *world) look() *sight {
	waits := map[Session][]Session{}
	for _, s := range w.verdict.Ask {
		whom := w.server.WaitsFor(int(s))
		if w.clients[s].phase != submitted || len(whom) == 0 || w.server.InCircle(int(s)) {
			continue
		}
		for _, other := range whom {
			waits[s] = append(waits[s], Session(other))
		}
	}
	if len(waits) == 0 {
		return nil
	}
	return &sight{asked: w.verdict.Ask, waits: waits, fresh: true, encoded: fmt.Sprint(w.verdict.Ask, waits)}
}

func (w *world) tell(Session) {
	seen := w.seen
	w.seen = nil
	if seen.fresh {
		w.d.look(seen.asked, seen.waits)
		w.decide()
	}
}

func (w *world) moved() {
	if w.seen != nil {
		old := *w.seen
		old.fresh = false
		w.seen = &old
	}
	w.decide()
}

func (w *world) decide() {
	w.verdict = w.d.Next()
	if w.verdict.Verdict != Go {
		return
	}
	w.picks++
	w.picked = w.verdict.Step.Session
	w.told = scheduleText(w.d.Schedule()) + "go " + w.verdict.Step.Name
	cl := &w.clients[w.verdict.Step.Session]
	if cl.phase != hungUp {
		cl.phase = letGo
	}
	w.verdict = w.d.Next()
}

// checker goes through all states of a scenario.
type checker struct {
	sc        scenario
	ids       map[string]int // of states, by key
	worlds    []*world       // by id
	before    [][]int        // by id: the states from which it can be reached at once
	ends      []int          // the states in which all is over
	schedules []string       // by number of picks; all worlds must agree
	end       string         // the whole schedule
	maximum   int            // of states; 0: no limit
	cut       bool           // the limit was met
}

// check tries all orders of events and returns the first failure.
func check(sc scenario, maximum int) (*checker, error) {
	ch := &checker{sc: sc, ids: map[string]int{}, maximum: maximum}
	if _, err := ch.visit(newWorld(&ch.sc)); err != nil {
		return ch, err
	}
	return ch, ch.progress()
}

// visit goes through the worlds that can come after w, and gives w's number.
func (ch *checker) visit(w *world) (int, error) {
	key := w.key()
	if id, seen := ch.ids[key]; seen {
		return id, nil
	}
	id := len(ch.worlds)
	ch.ids[key] = id
	ch.worlds, ch.before = append(ch.worlds, w), append(ch.before, nil)
	if ch.maximum > 0 && len(ch.worlds) > ch.maximum {
		ch.cut, ch.ends = true, append(ch.ends, id) // not known to be one, but not known to be none
		return id, nil
	}
	events := w.events()
	if len(events) == 0 {
		ch.ends = append(ch.ends, id)
		return id, ch.finished(w)
	}
	for _, e := range events {
		after, err := ch.step(w, e)
		if err != nil {
			return id, err
		}
		ch.before[after] = append(ch.before[after], id)
	}
	return id, nil
}

func (ch *checker) step(w *world, e event) (id int, err error) {
	next := w.clone()
	next.path = &path{w.path, fmt.Sprintf("%s %d", e.name, e.s)}
	defer func() {
		if r := recover(); r != nil {
			err = ch.failed(next, "panic: %v", r)
		}
	}()
	e.do(next, e.s)
	if next.picks > w.picks {
		if err := ch.compare(next); err != nil {
			return 0, err
		}
	}
	return ch.visit(next)
}

// progress checks that the end can be reached from every state: nobody waits for something that does not come.
func (ch *checker) progress() error {
	alive := make([]bool, len(ch.worlds))
	for todo := slices.Clone(ch.ends); len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !alive[id] {
			alive[id] = true
			todo = append(todo, ch.before[id]...)
		}
	}
	if dead := slices.Index(alive, false); dead >= 0 {
		w := ch.worlds[dead]
		return ch.failed(w, "the end is out of reach, and Core says %+v", w.verdict)
	}
	return nil
}

// compare checks that the decision just made, and the schedule that led to it, are those of the other orders.
func (ch *checker) compare(w *world) error {
	if ch.sc.disturbed {
		return nil
	}
	for len(ch.schedules) <= w.picks {
		ch.schedules = append(ch.schedules, "")
	}
	switch want := &ch.schedules[w.picks]; {
	case *want == "":
		*want = w.told
	case *want != w.told:
		return ch.failed(w, "decision %d differs.\ngot:\n%s\nwith another order of events:\n%s", w.picks, w.told, *want)
	}
	return nil
}

// failed describes a failure.
func (ch *checker) failed(w *world, format string, args ...any) error {
	return fmt.Errorf("%s\nafter: %v\nschedule:\n%s\n%v", fmt.Sprintf(format, args...), w.path, scheduleText(w.d.Schedule()), ch.sc)
}

// finished checks a world in which nothing can happen any more.
func (ch *checker) finished(w *world) error {
	for s, cl := range w.clients {
		if cl.phase != left {
			return ch.failed(w, "nothing happens any more, and session %d is not through; Core says %+v", s, w.verdict)
		}
	}
	if w.verdict.Verdict != Quiet {
		return ch.failed(w, "all sessions are gone, and Core says %+v", w.verdict)
	}
	if ch.sc.disturbed {
		return nil
	}
	w.told = scheduleText(w.d.Schedule())
	switch ch.end {
	case "":
		ch.end = w.told
	case w.told:
	default:
		return ch.failed(w, "the end differs. With another order of events:\n%s", ch.end)
	}
	return ch.complete(w)
}

// complete checks that the schedule has each step once, resumed if it waited, and no wait that was none.
func (ch *checker) complete(w *world) error {
	begun, ended, gone := map[Step]int{}, map[Step]int{}, 0
	for _, e := range w.d.Schedule() {
		switch e.Kind {
		case EventRun:
			begun[e.Step]++
			ended[e.Step]++
		case EventWait:
			begun[e.Step]++
			if w.clients[e.Step.Session].waited&(1<<e.Step.N) == 0 {
				return ch.failed(w, "step %v is told to have waited, and has not", e.Step)
			}
		case EventResume:
			ended[e.Step]++
		case EventLeave:
			gone++
		}
	}
	steps := 0
	for _, list := range ch.sc.sessions {
		steps += len(list)
	}
	if len(begun) != steps || !maps.Equal(begun, ended) || gone != len(ch.sc.sessions) || w.picks != steps {
		return ch.failed(w, "%d picks for %d steps; begun %v, ended %v, %d sessions gone", w.picks, steps, begun, ended, gone)
	}
	for step, times := range begun {
		if times != 1 {
			return ch.failed(w, "step %v began %d times", step, times)
		}
	}
	return nil
}
