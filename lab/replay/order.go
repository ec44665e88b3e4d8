package replay

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/trace"
)

// longWait is how much longer than the one before it a statement must have taken to have waited for it, where nothing else tells.
const longWait = 10 * time.Millisecond

// between is how many places there are between two ticks of a source, for statements that it tells no tick of.
const between = 1 << 10

// sequence puts a trace's statements into the order in which a replay sends them. It is the order in which they ended, since who ends
// first had its lock first (a session that comes late may well overtake one that waits), with three exceptions:
//
//   - A plain read that can be asked again (ask.go) comes before all ends of transactions that it overlapped.
//   - What reads from a snapshot that is as old as its beginning (a plain SELECT; the first statement at REPEATABLE READ) comes before
//     everything that committed while it was under way.
//   - A statement that writes comes right before the last end of another session's transaction while it was under way: so it waits again
//     for what it waited for.
//
// A session's own order is never changed. It reads the trace as a stream: a window for statements that the file has out of order, and
// those that were under way at one moment.
type sequence struct {
	in     *trace.Reader
	axis   axis
	keep   func(session uint64, s *trace.Session) bool
	until  int64
	byTo   reorder // axisTo only: by the order of ends
	byLo   reorder // by beginning
	clock  int64   // axisTo: the reconstructed time
	ended  map[uint64]int64
	info   map[uint64]*trace.Session
	skip   map[uint64]bool // sessions that are not wanted
	open   []*Step         // begun, and not handed on
	out    []*Step
	last   map[uint64]int64 // by session: the end of its last statement
	passed int64            // the greatest lo that was taken from byLo
	late   int
	eof    bool
	levels map[uint64]bool // sessions whose transaction has a snapshot of its own, and has not taken it yet
	seq, n int
	ready  func(*Step) // fills in what is sent; nil: nobody wants to know
	ahead  *Step       // axisTo: the step that ended right before the one that is reconstructed
}

func newSequence(in *trace.Reader, v *Survey, window int, keep func(uint64, *trace.Session) bool, until int64) *sequence {
	return &sequence{
		in: in, axis: v.axis, keep: keep, until: until, info: map[uint64]*trace.Session{}, skip: map[uint64]bool{}, levels: map[uint64]bool{}, last: map[uint64]int64{}, ended: map[uint64]int64{},
		byTo: reorder{room: window, key: func(s *Step) int64 { return s.hi }}, byLo: reorder{room: window, key: func(s *Step) int64 { return s.lo }},
	}
}

// maxHeld is how many steps are held back for one whose place among them is not known yet.
const maxHeld = 1 << 16

// next gives the next step; io.EOF at the end.
func (q *sequence) next() (*Step, error) {
	for len(q.out) == 0 || q.out[0].holds > 0 {
		if len(q.out) > maxHeld {
			q.emit(q.first())
			continue
		}
		s, err := q.begun()
		if errors.Is(err, io.EOF) {
			if len(q.open) == 0 {
				return nil, io.EOF
			}
			q.emit(q.first())
			continue
		} else if err != nil {
			return nil, err
		}
		for y := q.first(); y != nil && y.hi < s.lo; y = q.first() {
			q.emit(y)
		}
		q.open = append(q.open, s)
	}
	s := q.out[0]
	q.out = q.out[1:]
	q.n++
	s.N = q.n
	return s, nil
}

// first is the step that is under way and ended first.
func (q *sequence) first() *Step {
	if len(q.open) == 0 {
		return nil
	}
	return slices.MinFunc(q.open, byEnd)
}

func byEnd(a, b *Step) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo), cmp.Compare(a.Session, b.Session))
}

// emit gives a step its place, and those that come before it.
func (q *sequence) emit(y *Step) {
	q.open = slices.DeleteFunc(q.open, func(x *Step) bool { return x == y })
	for {
		before := slices.DeleteFunc(slices.Clone(q.open), func(x *Step) bool { return !q.precedes(x, y) })
		if len(before) == 0 {
			break
		}
		q.emit(slices.MinFunc(before, byEnd))
	}
	if i := slices.Index(q.out, y.before); y.before != nil && i >= 0 {
		y.before.holds--
		q.out = slices.Insert(q.out, i, y)
		return
	}
	q.out = append(q.out, y)
	if !y.ends || !y.inside {
		return
	}
	for _, x := range q.open {
		if x.early || !beganBefore(x, y) || x.Session == y.Session {
			continue
		}
		if x.before != nil {
			x.before.holds--
		}
		x.before = y
		y.holds++
	}
}

// precedes reports whether x, which had not ended when y had, is sent before y.
func (q *sequence) precedes(x, y *Step) bool {
	switch {
	case x.Session == y.Session:
		return x.lo < y.lo || x.lo == y.lo && x.seq < y.seq
	case x.after == y:
		return true
	}
	if x.asks {
		return y.shows(x)
	}
	return x.early && y.ends && beganBefore(x, y)
}

// beganBefore reports whether x began before y. Where a source numbers its statements as they begin (server_audit), these numbers decide: the places are
// bounds then.
func beganBefore(x, y *Step) bool {
	if x.Statement != nil && y.Statement != nil && x.Statement.ID != 0 && y.Statement.ID != 0 {
		return x.Statement.ID < y.Statement.ID
	}
	return x.lo < y.lo
}

// begun gives the step that began next.
func (q *sequence) begun() (*Step, error) {
	for !q.eof && !q.byLo.full() {
		s, err := q.read()
		if errors.Is(err, io.EOF) {
			q.eof = true
			break
		} else if err != nil {
			return nil, err
		}
		q.byLo.push(s)
	}
	if q.byLo.Len() == 0 {
		return nil, io.EOF
	}
	s := q.byLo.pop()
	if s.lo < q.passed {
		q.late++
		s.hi = max(s.hi, q.passed)
		s.lo = q.passed
	}
	q.passed = s.lo
	return s, nil
}

// read gives the next step of the file, with its place on the axis.
func (q *sequence) read() (*Step, error) {
	if q.axis != axisTo {
		return q.record()
	}
	for !q.byTo.full() {
		s, err := q.record()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		q.byTo.push(s)
	}
	if q.byTo.Len() == 0 {
		return nil, io.EOF
	}
	s := q.byTo.pop()
	q.reconstruct(s)
	return s, nil
}

// reconstruct gives a step a beginning and an end where only the order of ends, durations and a coarse clock are known: the earliest
// end that they allow, one think time after the other being as short as can be.
func (q *sequence) reconstruct(s *Step) {
	end := q.clock + 1
	if last, ok := q.ended[s.Session]; ok {
		end = max(end, last+int64(s.took)+1)
	}
	if s.Statement != nil && !s.Statement.Late {
		end = max(end, s.Statement.End)
	}
	q.clock = end
	q.ended[s.Session] = end
	s.hi, s.lo = end, end-int64(s.took)
	s.start = s.lo
	if y := q.ahead; y != nil && y.Session != s.Session && s.took > y.took+longWait && s.Statement != nil {
		// It took long, and ended right behind one that did not: it had waited for that (its commit, or its end as the victim of a deadlock).
		s.lo, s.after = min(s.lo, y.hi), y
	}
	q.ahead = s
}

// record reads the file up to the next statement, or end of a session.
func (q *sequence) record() (*Step, error) {
	for {
		var rec trace.Record
		if err := q.in.Next(&rec); err != nil {
			return nil, err
		}
		switch rec.Kind {
		case trace.KindSession:
			q.info[rec.Session] = rec.Open
			q.skip[rec.Session] = q.keep != nil && !q.keep(rec.Session, rec.Open)
		case trace.KindStatement, trace.KindEnd:
			if q.skip[rec.Session] || q.until != 0 && rec.At() >= q.until && rec.At() != 0 {
				continue
			}
			return q.step(&rec), nil
		}
	}
}

func (q *sequence) step(rec *trace.Record) *Step {
	q.seq++
	s := &Step{Session: rec.Session, Statement: rec.Statement, info: q.info[rec.Session], seq: q.seq}
	if rec.Kind == trace.KindEnd {
		s.start = rec.End.At
		s.lo = rec.End.At
		if q.axis != axisTime {
			s.lo = int64(rec.End.Tick) * between
		}
		s.lo = max(s.lo, q.last[s.Session])
		s.hi = s.lo
		s.ends = true
		return s
	}
	st := rec.Statement
	s.took = duration(st)
	s.start = st.Start
	if s.start == 0 && st.End != 0 {
		s.start = st.End - int64(s.took)
	}
	from, to := int64(st.From)*between, int64(st.To)*between
	if st.Late { // it was written down at some time after it had ended: as early as its session's order allows
		from, to = q.last[s.Session]+1, q.last[s.Session]+1
		s.start = 0
	}
	switch q.axis {
	case axisTicks:
		s.lo, s.hi = from, to
	case axisFrom:
		s.lo, s.hi = from, from
	case axisTo:
		s.hi = to
	default:
		s.lo, s.hi = st.Start, st.End
		if s.lo == 0 {
			s.lo = s.start
		}
	}
	s.hi = max(s.hi, s.lo)
	q.last[s.Session] = max(q.last[s.Session], s.hi)
	s.ends = letsGo(st)
	s.inside = st.Before != answer.Idle
	s.early = q.early(s)
	if q.ready != nil {
		q.ready(s)
	}
	return s
}

var ownSnapshot = regexp.MustCompile(`(?i)\bisolation\s+level\s+(repeatable\s+read|serializable)|consistent\s+snapshot`)

// early reports whether what a step sees is as old as its beginning, whatever it then waits for.
func (q *sequence) early(s *Step) bool {
	word := strings.ToLower(scenario.FirstWord(s.Statement.SQL))
	switch word {
	case "begin", "start", "set":
		if ownSnapshot.MatchString(s.Statement.SQL) {
			q.levels[s.Session] = true
		}
		return word != "set"
	case "commit", "rollback", "end", "abort":
		delete(q.levels, s.Session)
		return false
	case "select", "show", "values", "table", "fetch":
		delete(q.levels, s.Session)
		return !lockingRead.MatchString(s.Statement.SQL)
	}
	first := q.levels[s.Session]
	delete(q.levels, s.Session)
	return first
}

var lockingRead = regexp.MustCompile(`(?i)\bfor\s+(no\s+key\s+)?(update|share|key\s+share)\b|\block\s+in\s+share\s+mode\b|_lock\s*\(`)

// reorder is a window that gives steps by a key.
type reorder struct {
	room  int
	key   func(*Step) int64
	steps []*Step
	seqs  []int
	n     int
}

func (r *reorder) full() bool { return len(r.steps) > r.room }

func (r *reorder) push(s *Step) { heap.Push(r, s) }

func (r *reorder) pop() *Step { return heap.Pop(r).(*Step) }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (r *reorder) Len() int { return len(r.steps) }

// Less orders by the key, then as pushed.
func (r *reorder) Less(i, j int) bool {
	if a, b := r.key(r.steps[i]), r.key(r.steps[j]); a != b {
		return a < b
	}
	return r.seqs[i] < r.seqs[j]
}

// Swap swaps.
func (r *reorder) Swap(i, j int) {
	r.steps[i], r.steps[j] = r.steps[j], r.steps[i]
	r.seqs[i], r.seqs[j] = r.seqs[j], r.seqs[i]
}

// Push appends.
func (r *reorder) Push(x any) {
	r.steps, r.seqs = append(r.steps, x.(*Step)), append(r.seqs, r.n)
	r.n++
}

// Pop takes the last away.
func (r *reorder) Pop() any {
	n := len(r.steps) - 1
	s := r.steps[n]
	r.steps[n] = nil
	r.steps, r.seqs = r.steps[:n], r.seqs[:n]
	return s
}
