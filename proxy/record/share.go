package record

import "sync/atomic"

// Share counts the bytes that one session keeps of a kind of thing. All sessions of a Recorder share a bound, and those that keep little are not affected
// by those that keep much. The zero Share keeps texts, and has a bound of its own.
type Share struct {
	kind *bound
	all  *atomic.Int64 // what all sessions keep beyond bound.few
	own  int
}

// bound is how many bytes of a kind may be kept.
type bound struct {
	few int // by a session, whatever others keep
	one int // by a session
	all int // by all sessions together, besides what few allows
}

var (
	// texts are those that outlast their statement, as those of prepared statements.
	texts = bound{few: 256 << 10, one: 16 << 20, all: 24 << 20}
	// messages are those that are on their way, or await their answer: hundreds of sessions could each hold one of a megabyte.
	messages = bound{few: 128 << 10, one: 8 << 20, all: 24 << 20}
	// facts are the accesses of statements that are not recorded yet: hundreds of sessions could each have the rows of a table on their way, or wait for a log.
	facts = bound{few: 128 << 10, one: 24 << 20, all: 24 << 20}
)

// Kept is how many bytes of messages all sessions keep now, besides what each may keep whatever others do.
func (r *Recorder) Kept() int { return int(r.messages.Load()) }

// Texts makes a session's share of the texts that outlast their statement.
func (r *Recorder) Texts() Share { return Share{kind: &texts, all: &r.texts} }

// accessSize is roughly the room that an access takes, with its texts.
const accessSize = 320

func (r *Recorder) accesses() Share { return Share{kind: &facts, all: &r.facts} }

// Messages makes a session's share of the messages on their way.
func (r *Recorder) Messages() Share { return Share{kind: &messages, all: &r.messages} }

func (s *Share) bound() *bound {
	if s.kind == nil {
		return &texts
	}
	return s.kind
}

// Takes reports whether the session may keep n bytes more.
func (s *Share) Takes(n int) bool {
	b, own := s.bound(), s.own+n
	if own <= b.few {
		return true
	}
	return own <= b.one && (s.all == nil || int(s.all.Load())+min(n, own-b.few) <= b.all)
}

// Add counts n bytes more, or less.
func (s *Share) Add(n int) {
	few := s.bound().few
	before := max(s.own-few, 0)
	s.own += n
	if more := max(s.own-few, 0) - before; more != 0 && s.all != nil {
		s.all.Add(int64(more))
	}
}

// Own is how many bytes the session keeps.
func (s *Share) Own() int { return s.own }

// Forget says that the session keeps none any more.
func (s *Share) Forget() { s.Add(-s.own) }
