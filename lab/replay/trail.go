package replay

import (
	"hash/maphash"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Trail is what each statement of a replay brought, transaction by transaction, so that two replays of one trace can be compared. Steps are noted when they are
// sent and when they are done.
type Trail struct {
	Txns    []*Txn
	Dropped int  // transactions beyond the limit
	Keys    Keys // of the database; nil: not known

	dialect lex.Dialect
	most    int
	open    map[uint64]*Txn // by session
	last    map[uint64]*Txn
	events  int
	sent    map[*Step]int // under way
	like    map[int]*Txn  // by the steps' numbers: transactions of another replay, by which this one's are told apart; nil: by what the server says
	same    map[*Txn]*Txn // of those: this one's
	of      map[int]*Txn  // its own, by the steps' numbers
}

// Txn is a transaction, and what the trace has of it behind its refusal.
type Txn struct {
	Session uint64
	Steps   []*Noted
	Shape   string // its statements as the trace has them, without literals; Finish sets it
	ended   int    // the event at which the server committed it; 0: it did not
	lost    bool   // the server has ended it with an error
}

// Noted is a step and when it was sent and done, by the number of the event.
type Noted struct {
	*Step
	sent, done int
}

// NewTrail makes a trail of at most so many transactions.
func NewTrail(most int, d lex.Dialect) *Trail {
	return &Trail{dialect: d, most: most, open: map[uint64]*Txn{}, last: map[uint64]*Txn{}, sent: map[*Step]int{}}
}

// Like makes a trail's transactions those of another replay of the same trace, which is finished and in which others may have been refused.
func (t *Trail) Like(other *Trail) {
	if other.of == nil {
		other.of = map[int]*Txn{}
		for _, x := range other.Txns {
			for _, n := range x.Steps {
				other.of[n.N] = x
			}
		}
	}
	t.like, t.same = other.of, map[*Txn]*Txn{}
}

// Sent notes that a step is sent.
func (t *Trail) Sent(s *Step) {
	t.events++
	t.sent[s] = t.events
}

// Done notes a step that is done, or was not sent.
func (t *Trail) Done(s *Step) {
	if s.Statement == nil {
		return
	}
	t.events++
	n := &Noted{Step: s, sent: t.sent[s], done: t.events}
	delete(t.sent, s)
	x := t.txn(n)
	if x == nil {
		return
	}
	x.Steps = append(x.Steps, n)
	x.lost = x.lost || s.Answer.Err != nil && s.Outcome.Effect == answer.EffectRolledBack
	if !x.lost && n.sent > 0 && !s.failed() && s.Outcome.Effect == answer.EffectNone && !s.Answer.After.InTransaction() && !rollsBack(s.SQL) {
		x.ended = n.done
	}
	if t.like == nil && t.open[s.Session] == x && (n.sent == 0 && len(x.Steps) == 1 || n.sent > 0 && !s.Answer.After.InTransaction()) {
		delete(t.open, s.Session)
		t.keep(x)
	}
}

// txn gives the transaction that a step belongs to; nil: it is not noted.
func (t *Trail) txn(n *Noted) *Txn {
	id := n.Session
	if t.like != nil {
		of := t.like[n.N]
		if of == nil {
			return nil
		}
		x := t.same[of]
		if x == nil {
			x = &Txn{Session: id}
			t.same[of] = x
			t.Txns = append(t.Txns, x)
		}
		return x
	}
	if last := t.last[id]; n.Cut() {
		return last
	} else if _, ends := n.boundary(); ends && last != nil && last.lost && t.open[id] == nil && !n.Answer.Before.InTransaction() {
		return last // the application's own end of what the server had ended
	}
	if x := t.open[id]; x != nil && (n.sent == 0 || n.Answer.Before.InTransaction()) {
		return x
	}
	t.keep(t.open[id])
	x := &Txn{Session: id}
	t.open[id], t.last[id] = x, x
	return x
}

// rollsBack reports whether a statement gives its transaction up.
func rollsBack(sql string) bool {
	word := strings.ToLower(scenario.FirstWord(sql))
	return word == "rollback" || word == "abort"
}

// keep keeps a transaction that uses tables.
func (t *Trail) keep(x *Txn) {
	if x == nil || !slices.ContainsFunc(x.Steps, func(n *Noted) bool { return len(n.tables) > 0 }) {
		return
	}
	if len(t.Txns) >= t.most {
		t.Dropped++
		return
	}
	t.Txns = append(t.Txns, x)
}

// Finish keeps the transactions that were open at the end.
func (t *Trail) Finish() {
	for _, x := range t.open {
		t.keep(x)
	}
	clear(t.open)
	clear(t.last)
	for _, x := range t.Txns {
		var b strings.Builder
		for _, n := range x.Steps {
			b.WriteString(shapeOf(WithoutTags(n.Statement.SQL, t.dialect), t.dialect))
			b.WriteByte('\n')
		}
		x.Shape = b.String()
	}
	slices.SortFunc(t.Txns, func(a, b *Txn) int { return a.Steps[0].N - b.Steps[0].N })
}

// Tags are what the application said of the transaction's statements.
func (x *Txn) Tags() (tags []trace.Tag) {
	for _, n := range x.Steps {
		for _, t := range flow.Route(n.Tags()) {
			if !slices.Contains(tags, t) {
				tags = append(tags, t)
			}
		}
	}
	return tags
}

// Cut reports whether the step was not sent because the server had refused its transaction before.
func (n *Noted) Cut() bool { return n.Skip == EndedBefore }

// Seen is what one statement brought, as two replays of the trace compare it.
type Seen struct {
	Code   string // the server's error; empty: there was none
	Waited bool
	Sent   bool
	answer uint64 // digest of its rows, in any order, and counts
	varies bool
}

// seed is of this process: digests are not kept.
var seed = maphash.MakeSeed()

// Seen digests what the step brought. values gives a value of this replay as the other one has it.
func (n *Noted) Seen(values func(string) string) Seen {
	s := Seen{Waited: n.Waited, Sent: n.sent > 0 && n.standIn == "", varies: n.Volatile != ""}
	if n.Lost != nil {
		s.Code = "connection lost"
	}
	if n.Answer.Err != nil {
		s.Code = n.Answer.Err.Code
	}
	for _, r := range n.Answer.Results {
		s.answer = s.answer*31 + uint64(len(r.Rows))
		if r.Columns == nil {
			s.answer += uint64(r.Affected)
		}
		for _, row := range r.Rows {
			var h maphash.Hash
			h.SetSeed(seed)
			for _, v := range row {
				if v == nil {
					h.WriteByte(0)
					continue
				}
				h.WriteByte(1)
				h.WriteString(values(string(v)))
			}
			s.answer += h.Sum64() // rows in any order
		}
	}
	return s
}

// Otherwise reports whether two replays answered the statement differently, both with an answer.
func (s Seen) Otherwise(o Seen) bool {
	return s.Sent && o.Sent && s.Code == "" && o.Code == "" && !s.varies && s.answer != o.answer
}
