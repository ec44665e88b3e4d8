package control

import (
	"bytes"
	"context"
	"sync"
	"time"

	"wirecheck/proxy"
)

// All is still when nobody outside can do anything before a statement that the gate holds back, or that waits in the server, goes on:
// every thread of the clients' processes sleeps, no client has sent anything that the gate does not know of yet, and no server owes a
// client an answer to something that passes no gate (a login). It is seen several times in a row, since a timer may wake a client, and
// for longer where the machine is so busy that the looks themselves come late: then what was sent may be late, too.
const (
	stillFor    = 3 * time.Millisecond
	stillPause  = 1500 * time.Microsecond
	stillFactor = 8 // times the longest delay of a look
	// owedLimit is how long an answer is awaited, if nothing else is sent meanwhile. There may be messages without one.
	owedLimit = 10 * time.Second
)

// traffic knows, of each session, who has sent something last.
type traffic struct {
	mu    sync.Mutex
	owed  map[uint64]bool // by session: the client sent last, or nobody has
	moves int             // counts what was sent
	last  time.Time       // when that was
}

// tap gives the tap of a session.
func (t *traffic) tap(s *proxy.Session) proxy.Tap {
	t.note(s.ID, true, time.Now())
	return line{t, s.ID}
}

func (t *traffic) note(session uint64, owed bool, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owed == nil {
		t.owed = map[uint64]bool{}
	}
	t.owed[session] = owed
	t.moves, t.last = t.moves+1, at
}

// line is the tap of one session.
type line struct {
	traffic *traffic
	session uint64
}

// silentCommand begins a COM_STMT_CLOSE of the MySQL protocol, the message without an answer that drivers send behind a statement.
var silentCommand = []byte{5, 0, 0, 0, 0x19}

// silentLength is how long that message is.
const silentLength = 9

// FromClient implements proxy.Tap.
func (l line) FromClient(b []byte, at time.Time) {
	l.traffic.note(l.session, !bytes.HasPrefix(b[max(len(b)-silentLength, 0):], silentCommand), at)
}

// FromServer implements proxy.Tap.
func (l line) FromServer(time.Time) {}

// ToClient implements proxy.Tap.
func (l line) ToClient(_ []byte, at time.Time) { l.traffic.note(l.session, false, at) }

// Encrypted implements proxy.Tap.
func (l line) Encrypted() {}

// Closed implements proxy.Tap.
func (l line) Closed(at time.Time) {
	l.traffic.note(l.session, false, at)
	l.traffic.mu.Lock()
	defer l.traffic.mu.Unlock()
	delete(l.traffic.owed, l.session)
}

// Tap gives the tap of a session, for proxy.Config.Tap. It is nil if the gate does not look at the clients' processes.
func (k *Gate) Tap() func(*proxy.Session) proxy.Tap {
	if k.options.Asleep == nil {
		return nil
	}
	return k.traffic.tap
}

// still reports whether all is still, and no session waits for its number.
func (k *Gate) still(ctx context.Context) bool {
	k.mu.Lock()
	arriving := len(k.arriving)
	k.mu.Unlock()
	return arriving == 0 && k.stillBut(ctx)
}

// stillBut reports whether all is still but for the sessions that wait for their numbers.
func (k *Gate) stillBut(ctx context.Context) bool {
	first, begin := k.moves(), time.Now()
	quiet := stillFor
	for before := begin; ; {
		if k.shell.Busy() || !k.options.Asleep() || k.owes() || k.moves() != first {
			return false
		}
		now := time.Now()
		quiet = max(quiet, stillFactor*(now.Sub(before)-stillPause))
		if now.Sub(begin) >= quiet {
			return true
		}
		before = now
		rest(stillPause)
		if ctx.Err() != nil {
			return false
		}
	}
}

func (k *Gate) moves() int {
	k.traffic.mu.Lock()
	defer k.traffic.mu.Unlock()
	return k.traffic.moves
}

// owes reports whether a session has sent something that is neither held back nor a step of the scheduler's.
func (k *Gate) owes() bool {
	k.traffic.mu.Lock()
	var sent []uint64
	if time.Since(k.traffic.last) < owedLimit {
		for session, owed := range k.traffic.owed {
			if owed {
				sent = append(sent, session)
			}
		}
	}
	k.traffic.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, session := range sent {
		n, numbered := k.number[session]
		if numbered && k.shell.Offers(n) || !numbered && k.waiting(session) {
			continue
		}
		return true
	}
	return false
}

// waiting reports whether a session waits for its number. mu is held.
func (k *Gate) waiting(session uint64) bool {
	for _, a := range k.arriving {
		if a.session.ID == session {
			return true
		}
	}
	return false
}

// receive gives numbers to the sessions that arrive, whenever all is still, until ctx ends.
func (k *Gate) receive(ctx context.Context) {
	for {
		select {
		case <-k.arrived:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil && !k.stillBut(ctx) {
			select {
			case <-time.After(stillPause):
			case <-ctx.Done():
			}
		}
		k.mu.Lock()
		k.admit()
		k.mu.Unlock()
	}
}
