package recorder

import (
	"sync"
	"time"

	"wirecheck/trace/packets/wire"
)

// Session takes the bytes of one session. FromClient may be called at the same time as the other methods, which come one after the other.
type Session struct {
	r       *Recorder
	number  uint64
	wire    wire.Protocol
	decoder wire.Decoder // of the recorder's goroutine
	broken  bool         // the decoder panicked; of the recorder's goroutine

	mu      sync.Mutex // guards what follows
	answer  uint64     // place of the server's last bytes, as they arrived; 0: nothing new since the client's last
	at      int64      // when
	missing int        // bytes that were not recorded
	quiet   bool       // of one of which bytes are missing: the server's last answer seems to be complete
}

// Begin records a new session; number is unique, client its address.
func (r *Recorder) Begin(number uint64, p wire.Protocol, client string, at time.Time) *Session {
	c := &Session{r: r, number: number, wire: p}
	c.decoder = wire.NewDecoder(p, &r.output, wire.Connection{Session: number, Client: client, At: at.UnixNano(), Whole: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[c] = true
	r.tally.Sessions++
	return c
}

// FromClient takes what the client has sent. Nothing of b is kept.
func (c *Session) FromClient(b []byte, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = 0
	c.put(entryFromClient, b, at.UnixNano(), c.r.place())
}

// FromServer says that bytes came from the server, whatever they are: what ToClient takes next was answered at this moment.
func (c *Session) FromServer(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.at = c.r.place(), at.UnixNano()
}

// ToClient takes what the client is about to be sent. Nothing of b is kept.
func (c *Session) ToClient(b []byte, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, when := c.answer, c.at
	if place == 0 { // the proxy's own
		place, when = c.r.place(), at.UnixNano()
	}
	c.put(entryToClient, b, when, place)
}

// Encrypted says that TLS with the client has begun: from now on the bytes are those within it.
func (c *Session) Encrypted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.push(entry{kind: entryEncrypted, who: c}, nil, true)
}

// Closed says that the session is over.
func (c *Session) Closed(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap(at.UnixNano())
	c.r.push(entry{kind: entryClosed, who: c, at: at.UnixNano(), place: c.r.place()}, nil, true)
}

// put hands a piece over, or counts it. c.mu is held.
func (c *Session) put(kind entryKind, b []byte, at int64, place uint64) {
	if c.missing > 0 && !c.understood(kind, b) {
		c.missing += len(b)
		c.r.drop(len(b))
		return
	}
	c.gap(at)
	for len(b) > 0 {
		piece := b[:min(len(b), maxPiece)]
		b = b[len(piece):]
		if c.missing > 0 {
			c.missing += len(piece)
			c.r.drop(len(piece))
		} else if !c.r.push(entry{kind: kind, who: c, n: len(piece), at: at, place: place}, piece, false) {
			c.missing, c.quiet = len(piece), false
		}
	}
}

// understood reports whether a session of which bytes are missing can be followed again from this piece on: it is a request that fills
// it, behind an answer that is complete, and there is room. c.mu is held.
func (c *Session) understood(kind entryKind, b []byte) bool {
	if kind == entryToClient {
		c.quiet = c.wire.EndsAnswer(b)
		return false
	}
	again := c.quiet && c.wire.Request(b) == wire.Surely && c.r.fits(len(b))
	c.quiet = false
	return again
}

// maxPiece is how much is handed over at once.
const maxPiece = 64 << 10

// gap tells of what is missing, in front of what comes next. c.mu is held.
func (c *Session) gap(at int64) {
	if c.missing > 0 {
		c.r.push(entry{kind: entryGap, who: c, n: c.missing, at: at, place: c.r.place()}, nil, true)
		c.missing = 0
	}
}
