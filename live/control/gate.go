// Package control holds back clients' statements until the scheduler picks them: the gate of the proxy's mode control.
package control

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/proxy"
	"wirecheck/scheduler"
	"wirecheck/scheduler/shell"
)

// Options says how the gate schedules.
type Options struct {
	Schedule string        // random, pct, pct:DEPTH, or the name of a file that Report has written
	Sessions int           // how many sessions must have a statement before the first decision
	Think    time.Duration // the gate does not wait for a client that sends nothing for longer
	Locks    string        // URL of the server, for a user who may look at its locks; empty: there is none
	// Strategy picks who goes next, in place of what Schedule names; nil: that does.
	Strategy scheduler.Strategy
	// Asleep reports whether the clients' processes sleep. Then the gate sees by itself for whom it has to
	// wait, and Sessions and Think count for nothing. The proxy needs the gate's Tap. nil: nobody can tell.
	Asleep func() bool
	// Shown gives a statement as Report may show it; nil: as it is.
	Shown func(sql string) string
}

// Gate gives the clients' sessions numbers that do not depend on who connected first, and lets the scheduler pick whose statement goes next.
// It implements proxy.Gate.
type Gate struct {
	shell   *shell.Shell
	look    engine.Watcher // nil: the locks cannot be seen
	engine  engine.Descriptor
	options Options
	log     zerolog.Logger
	traffic traffic
	arrived chan struct{} // Asleep: has room for one: a session has arrived

	mu       sync.Mutex // guards what follows
	arriving []arrival  // sessions with a first statement that wait for the others
	number   map[uint64]scheduler.Session
	backends []uint64 // by number
	present  int      // sessions that have a number and have not left
	texts    [][]string
	marks    []string

	looking sync.Mutex // guards the use of look
}

// arrival is a session with its first statement.
type arrival struct {
	session *proxy.Session
	text    string
	ready   chan struct{}
}

// compare orders sessions by what they say of themselves and begin with; 0 if that is the same.
func (a arrival) compare(b arrival) int {
	return cmp.Or(strings.Compare(a.session.Program, b.session.Program), strings.Compare(a.session.User, b.session.User), strings.Compare(a.text, b.text))
}

// New makes the gate. intn is the run's source of random numbers.
func New(ctx context.Context, o Options, intn func(int) int, log zerolog.Logger) (*Gate, error) {
	strategy, err := o.Strategy, error(nil)
	if strategy == nil {
		strategy, err = Strategy(o.Schedule, UsualSteps, intn)
	}
	if err != nil {
		return nil, err
	}
	k := &Gate{options: o, log: log, number: map[uint64]scheduler.Session{}, arrived: make(chan struct{}, 1)}
	var look shell.Look
	if o.Locks != "" {
		s, err := backends.At(o.Locks)
		if err != nil {
			return nil, fmt.Errorf("control.locks: %w", err)
		}
		if s.Engine.Embedded {
			return nil, fmt.Errorf("control.locks: %s has no lock views", s.Engine.Title)
		}
		k.engine = s.Engine
		if k.look, err = s.Engine.Watch(ctx, s.Target); err != nil {
			return nil, fmt.Errorf("control.locks: %w", err)
		}
		look = k.waits
	} else {
		k.marks = append(k.marks, fmt.Sprintf("no --locks URL was given: a statement that takes more than %v is taken as waiting", shell.DefaultSlow))
	}
	limits := shell.Limits{Think: o.Think}
	if o.Asleep != nil {
		limits = shell.Limits{Still: k.still}
	}
	k.shell = shell.New(strategy, look, limits)
	return k, nil
}

// Strategy reads random, pct, pct:DEPTH or the name of a file with a schedule.
// steps is how many steps pct spreads its changes of priority over.
func Strategy(schedule string, steps int, intn func(int) int) (scheduler.Strategy, error) {
	word, arg, has := strings.Cut(schedule, ":")
	switch {
	case schedule == "random":
		return scheduler.Random(intn), nil
	case word == "pct":
		depth := 3
		if has {
			var err error
			if depth, err = strconv.Atoi(arg); err != nil || depth < 1 {
				return nil, fmt.Errorf("schedule %q: the depth must be a number from 1, as in pct:3", schedule)
			}
		}
		return scheduler.PCT(depth, steps, intn), nil
	}
	f, err := os.Open(schedule)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w (known are random, pct, pct:DEPTH and files)", err)
	}
	defer f.Close() // read only: nothing can be lost
	order, err := readSchedule(f, schedule)
	if err != nil {
		return nil, err
	}
	return scheduler.Recorded(order), nil
}

// UsualSteps is how many steps a usual test has.
const UsualSteps = 50

// readSchedule reads lines that begin with a session's number, from 1. What follows in the line is for people.
func readSchedule(r io.Reader, name string) ([]scheduler.Session, error) {
	var order []scheduler.Session
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		s, err := strconv.Atoi(fields[0])
		if err != nil || s < 1 {
			return nil, fmt.Errorf("%s:%d:1: found %q, expected the number of a session, from 1", name, n, fields[0])
		}
		order = append(order, scheduler.Session(s-1))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read schedule %s: %w", name, err)
	}
	return order, nil
}

// Run schedules until ctx ends.
func (k *Gate) Run(ctx context.Context) error {
	var receiving sync.WaitGroup
	receiveCtx, stop := context.WithCancel(ctx)
	if k.options.Asleep != nil {
		receiving.Go(func() { k.receive(receiveCtx) })
	}
	err := k.shell.Run(ctx, false)
	stop()
	receiving.Wait()
	if k.look != nil {
		err = errors.Join(err, k.look.Close())
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Enter implements proxy.Gate.
func (k *Gate) Enter(ctx context.Context, s *proxy.Session, text string) error {
	n, err := k.admitted(ctx, s, text)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.texts[n] = append(k.texts[n], text)
	k.mu.Unlock()
	_, err = k.shell.Enter(ctx, n, "")
	return err
}

// admitted gives the session's number. The first sessions of a run wait until all that are expected have a statement, and
// are numbered by their names and what they say, not by when they came.
func (k *Gate) admitted(ctx context.Context, s *proxy.Session, text string) (scheduler.Session, error) {
	k.mu.Lock()
	if n, ok := k.number[s.ID]; ok {
		k.mu.Unlock()
		return n, nil
	}
	if k.options.Asleep == nil && k.present > 0 { // one that comes later
		n := k.join(s)
		k.mu.Unlock()
		return n, nil
	}
	a := arrival{s, text, make(chan struct{})}
	k.arriving = append(k.arriving, a)
	var patience <-chan time.Time
	switch {
	case k.options.Asleep != nil:
		select {
		case k.arrived <- struct{}{}:
		default:
		}
	case len(k.arriving) >= k.options.Sessions:
		k.admit()
	default:
		t := time.NewTimer(k.options.Think)
		defer t.Stop()
		patience = t.C
	}
	k.mu.Unlock()
	select {
	case <-a.ready:
	case <-patience:
		k.mu.Lock()
		if missing := k.options.Sessions - len(k.arriving); len(k.arriving) > 0 && missing > 0 {
			k.marks = append(k.marks, fmt.Sprintf("%d of %d sessions had a statement within %v, and the schedule began with them", len(k.arriving), k.options.Sessions, k.options.Think))
			k.admit()
		}
		k.mu.Unlock()
		<-a.ready
	case <-ctx.Done():
		k.mu.Lock()
		k.arriving = slices.DeleteFunc(k.arriving, func(x arrival) bool { return x.session == s })
		k.mu.Unlock()
		return 0, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.number[s.ID], nil
}

// admit gives numbers to those who have arrived. mu is held.
func (k *Gate) admit() {
	slices.SortFunc(k.arriving, func(a, b arrival) int {
		return cmp.Or(a.compare(b), cmp.Compare(a.session.ID, b.session.ID))
	})
	for i, a := range k.arriving {
		n := k.join(a.session)
		if i > 0 && k.arriving[i-1].compare(a) == 0 {
			k.marks = append(k.marks, fmt.Sprintf("sessions %d and %d began alike and are numbered by who connected first; give each client a name of its own (application_name, program_name)", n, n+1))
		}
	}
	for _, a := range k.arriving {
		close(a.ready)
	}
	k.arriving = nil
}

// join gives a session a number. mu is held.
func (k *Gate) join(s *proxy.Session) scheduler.Session {
	n := k.shell.Join()
	k.number[s.ID] = n
	k.backends = append(k.backends, s.Backend)
	k.texts = append(k.texts, nil)
	k.present++
	return n
}

// Done implements proxy.Gate.
func (k *Gate) Done(s *proxy.Session, victim bool) {
	k.mu.Lock()
	n, ok := k.number[s.ID]
	k.mu.Unlock()
	if ok {
		k.shell.Finish(n, victim)
	}
}

// Left implements proxy.Gate.
func (k *Gate) Left(s *proxy.Session) {
	k.mu.Lock()
	n, ok := k.number[s.ID]
	if ok {
		delete(k.number, s.ID)
		k.present--
	}
	k.mu.Unlock()
	if !ok {
		return
	}
	k.awaitGone(s.Backend)
	k.shell.Leave(n)
}

// goneLimit bounds the wait for a server to let go of what a session held that has left.
const goneLimit = 5 * time.Second

// awaitGone waits until the server has ended a session, so that its locks are gone when the others are asked whether they
// wait.
func (k *Gate) awaitGone(backend uint64) {
	if k.look == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goneLimit)
	defer cancel()
	for {
		k.looking.Lock()
		there, err := k.look.Alive(ctx, backend)
		k.looking.Unlock()
		if err != nil {
			k.log.Warn().Err(err).Uint64("backend", backend).Msg("it is not known whether the server has ended a session that left")
		}
		if err != nil || !there {
			return
		}
	}
}

// waits translates between the scheduler's numbers and the server's.
func (k *Gate) waits(ctx context.Context, sessions []scheduler.Session) ([]shell.Wait, error) {
	k.mu.Lock()
	who := make(map[uint64]scheduler.Session, len(k.backends))
	ids := make([]uint64, 0, len(k.backends))
	for _, s := range sessions {
		ids = append(ids, k.backends[s])
	}
	for n, id := range k.backends {
		who[id] = scheduler.Session(n)
	}
	for _, n := range k.number { // the others who are there may be waited for
		if id := k.backends[n]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	patience := make([]time.Duration, len(sessions))
	for i, s := range sessions {
		// Whether a transaction is open is not known here; in one the server shows the wait, and is believed first.
		if texts := k.texts[s]; k.engine.Silent != nil && k.engine.Silent(texts[len(texts)-1], false) > 0 {
			patience[i] = k.engine.Patience
		}
	}
	k.mu.Unlock()
	slices.Sort(ids[len(sessions):])
	k.looking.Lock()
	defer k.looking.Unlock()
	waits, err := k.look.Look(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make([]shell.Wait, len(sessions))
	for i := range sessions {
		out[i] = lab.ShellWait(waits[i], who)
		if out[i].Patience = patience[i]; waits[i].Unseen {
			out[i].Patience = k.engine.Patience
		}
	}
	return out, nil
}

// Report writes the schedule as it happened, in the form that --schedule reads, and what may be different the next time.
func (k *Gate) Report(w io.Writer, seed uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# the schedule, %s", k.options.Schedule)
	if seed != 0 {
		fmt.Fprintf(out, ", seed %d", seed)
	}
	fmt.Fprintln(out)
	for _, ev := range k.shell.Schedule() {
		n := ev.Step.Session
		switch ev.Kind {
		case scheduler.EventRun:
			fmt.Fprintf(out, "%d %s\n", n+1, k.text(ev.Step))
		case scheduler.EventWait:
			fmt.Fprintf(out, "%d %s\n#   session %d waits%s\n", n+1, k.text(ev.Step), n+1, waitedFor(ev.For))
		case scheduler.EventResume:
			fmt.Fprintf(out, "#   session %d goes on\n", n+1)
		case scheduler.EventLeave:
			fmt.Fprintf(out, "#   session %d leaves\n", n+1)
		}
	}
	marks := append(slices.Clone(k.marks), k.shell.Marks()...)
	for _, m := range marks {
		fmt.Fprintf(out, "# may be different the next time: %s\n", m)
	}
	if len(marks) == 0 {
		fmt.Fprintln(out, "# repeatable: every decision followed from what the sessions did")
	}
	return out.Flush()
}

// text is a step's statement on one line. k.mu is held.
func (k *Gate) text(st scheduler.Step) string {
	texts := k.texts[st.Session]
	if st.N >= len(texts) {
		return "?"
	}
	text := texts[st.N]
	if k.options.Shown != nil {
		text = k.options.Shown(text)
	}
	return prose.Line(text, 120)
}

func waitedFor(sessions []scheduler.Session) string {
	if len(sessions) == 0 {
		return ""
	}
	names := make([]string, len(sessions))
	for i, s := range sessions {
		names[i] = strconv.Itoa(int(s) + 1)
	}
	return " for session " + strings.Join(names, ", ")
}
