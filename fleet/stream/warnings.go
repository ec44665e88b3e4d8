package stream

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"wirecheck/fleet/bus"
)

// Heard says what became of warnings, in sessions.
type Heard struct {
	Told  uint64 `json:"told"`  // they hear of it with their next answers, or have heard of it
	Ended uint64 `json:"ended"` // they had ended
}

// Hear takes the warnings for a run for as long as the bus is open. take gets each message and says what became of it, or why it is none; it is called by
// one goroutine. What comes faster than it takes is left out, and who sent it sends it again.
func Hear(b *bus.Bus, fleet, run string, take func(data []byte) (Heard, error)) error {
	sub, err := b.Conn().Subscribe(subject(fleet, warnings, run), func(m *nats.Msg) {
		heard, err := take(m.Data)
		answer, e := json.Marshal(heard)
		if err != nil || e != nil || m.Reply == "" {
			return // who sends what is no warning gets no answer
		}
		_ = m.Respond(answer) // without an answer, the warning comes again
	})
	if err == nil {
		err = sub.SetPendingLimits(warningsAtMost, warningBytes)
	}
	if err != nil {
		return fmt.Errorf("listen for warnings at %s: %w", b.Where(), err)
	}
	return nil
}

// The bounds of warnings that wait to be sent, or to be taken.
const (
	warningsAtMost = 1000
	warningBytes   = 16 << 20
)

const (
	// warningPause is how long a proxy's answer may take before a warning is sent again.
	warningPause = time.Second
	// warningTries is how often a warning is sent while the server is there. Then its proxy counts as gone.
	warningTries = 10
)

// Warned says what became of the warnings of a Warner, in sessions.
type Warned struct {
	Heard
	Gone uint64 // their proxy did not answer, or too many warnings waited
}

// Warner sends warnings to the proxies of a fleet. Nobody waits for it.
type Warner struct {
	bus   *bus.Bus
	fleet string
	inbox string
	sub   *nats.Subscription
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex // guards what follows
	waiting map[uint64]*warning
	bytes   int
	last    uint64 // number of the last warning
	said    Warned
	closing bool
	empty   chan struct{} // closed when nothing waits any more, once closing is set
}

// warning is a message that has no answer yet.
type warning struct {
	run      string
	sessions int
	data     []byte
	tries    int
	unheard  bool // nobody listened when it was sent last
}

// NewWarner starts a Warner. The bus stays the caller's.
func NewWarner(b *bus.Bus, fleet string) (*Warner, error) {
	w := &Warner{
		bus: b, fleet: fleet, inbox: b.Conn().NewInbox(), stop: make(chan struct{}), done: make(chan struct{}), waiting: map[uint64]*warning{}, empty: make(chan struct{}),
	}
	var err error
	if w.sub, err = b.Conn().Subscribe(w.inbox+".*", w.answered); err != nil {
		return nil, fmt.Errorf("listen for the answers to warnings at %s: %w", b.Where(), err)
	}
	go w.again()
	return w, nil
}

// Send sends a warning to so many sessions of a run. It does not wait.
func (w *Warner) Send(run string, sessions int, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= warningsAtMost || w.bytes+len(data) > warningBytes || int64(len(data)) > w.bus.Conn().MaxPayload() {
		w.said.Gone += uint64(sessions)
		return
	}
	w.last++
	w.waiting[w.last] = &warning{run: run, sessions: sessions, data: data}
	w.bytes += len(data)
	w.send(w.last)
}

// Ended counts sessions to which nothing was sent, since they had ended.
func (w *Warner) Ended(sessions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.Ended += uint64(sessions)
}

// send sends a warning that waits. While the server is away, it is none of the tries.
func (w *Warner) send(n uint64) {
	m := w.waiting[n]
	if err := w.bus.Conn().PublishRequest(subject(w.fleet, warnings, m.run), w.inbox+"."+strconv.FormatUint(n, 10), m.data); err == nil {
		m.tries++
		m.unheard = false
	}
}

// answered takes a proxy's answer, or the server's that nobody listens.
func (w *Warner) answered(msg *nats.Msg) {
	n, err := strconv.ParseUint(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:], 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.waiting[n]
	if m == nil {
		return
	}
	var heard Heard
	switch {
	case len(msg.Data) == 0: // the server's answer, with the status 503
		if m.unheard = true; w.closing {
			w.gone(n)
		}
	case json.Unmarshal(msg.Data, &heard) == nil:
		w.said.Told += heard.Told
		w.said.Ended += heard.Ended
		w.over(n)
	}
}

// gone gives a warning up.
func (w *Warner) gone(n uint64) {
	w.said.Gone += uint64(w.waiting[n].sessions)
	w.over(n)
}

func (w *Warner) over(n uint64) {
	w.bytes -= len(w.waiting[n].data)
	delete(w.waiting, n)
	if w.closing && len(w.waiting) == 0 {
		close(w.empty)
	}
}

// again sends again what has no answer.
func (w *Warner) again() {
	defer close(w.done)
	tick := time.NewTicker(warningPause)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		for n, m := range w.waiting {
			if m.tries >= warningTries {
				w.gone(n)
				continue
			}
			w.send(n)
		}
		w.mu.Unlock()
	}
}

// Waiting reports whether there are warnings without an answer.
func (w *Warner) Waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

// State says what became of the warnings so far.
func (w *Warner) State() Warned {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// Close waits for the answers, for no longer than the time of patience and not for proxies that do not listen, and says what became of all warnings.
func (w *Warner) Close(patience time.Duration) Warned {
	w.mu.Lock()
	for n, m := range w.waiting {
		if m.unheard {
			w.gone(n)
		}
	}
	if w.closing = true; len(w.waiting) == 0 {
		close(w.empty)
	}
	w.mu.Unlock()
	select {
	case <-w.empty:
	case <-time.After(patience):
	}
	close(w.stop)
	<-w.done
	_ = w.sub.Unsubscribe() // an error says that there is no connection any more
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.waiting {
		w.said.Gone += uint64(m.sessions)
	}
	clear(w.waiting)
	return w.said
}
