package trace

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

// Stats counts what a trace holds. Its memory does not grow with the trace, but with its sessions and what differs.
type Stats struct {
	Records    uint64 `json:"records"`
	Sessions   int    `json:"sessions"`
	Joined     int    `json:"joined"`    // were there before
	Encrypted  int    `json:"encrypted"` // went on encrypted
	First      int64  `json:"first"`     // nanoseconds since 1970
	Last       int64  `json:"last"`
	Statements int    `json:"statements"`
	Lost       int    `json:"lost"`      // without their text, or not all of it
	NoParams   int    `json:"no_params"` // without their parameters
	Failed     int    `json:"failed"`
	Waits      int    `json:"waits"`  // notices that a wait began
	Events     int    `json:"events"` // of the history that a proxy saw
	Notes      int    `json:"notes"`  // of what is missing

	Kinds  []KindCount  `json:"kinds"`
	Errors []ErrorCount `json:"errors"`
	By     []NameCount  `json:"by"` // sessions by what they are

	Transactions Transactions `json:"transactions"`
	// MostStatements is how many statements were with the server at the same time, of those whose start and end are known.
	MostStatements int `json:"most_statements"`
	Timed          int `json:"timed"` // statements with a known duration

	kinds                    map[string]*KindCount
	errors                   map[ErrorCount]int
	by                       map[NameCount]int
	live                     map[uint64]*liveSession
	statements, transactions busy
}

// Transactions are those of several statements, by what the sessions' status tells.
type Transactions struct {
	Begun      int `json:"begun"`
	Ended      int `json:"ended"`
	Autocommit int `json:"autocommit"` // statements outside of any
	Unknown    int `json:"unknown"`    // statements of which it is not known
	Most       int `json:"most"`       // open at the same time
	Overlapped int `json:"overlapped"` // that began while another one was open
}

// KindCount counts the statements of a kind: the first word.
type KindCount struct {
	Kind   string `json:"kind"`
	N      int    `json:"n"`
	Failed int    `json:"failed"`
	Timed  int    `json:"timed"`
	Total  int64  `json:"total_ns"`
	Median int64  `json:"median_ns"` // within 4%
	P99    int64  `json:"p99_ns"`
	Max    int64  `json:"max_ns"`
	sketch sketch
}

// ErrorCount counts errors of a code.
type ErrorCount struct {
	Code    string `json:"code"`
	Message string `json:"message"` // of the first one
	N       int    `json:"n"`
}

// NameCount counts sessions.
type NameCount struct {
	What string `json:"what"` // product, user, database, application
	Name string `json:"name"`
	N    int    `json:"n"`
}

type liveSession struct {
	info   Session
	inside bool
	// The places of what it has under way, or had until a time that is yet to come, in Stats.statements and Stats.transactions.
	statement, transaction span
}

// span is what a session has under way: one thing at a time.
type span struct {
	open bool
	n    int // counts those that began
}

// busy counts the sessions that have something under way.
type busy struct {
	open int
	ends endHeap
}

// begin notes that a session begins something at a time. What it had before is over by then: clocks are coarser than sessions are quick.
func (b *busy) begin(s *span, at int64) (open int) {
	for len(b.ends) > 0 && b.ends[0].at <= at {
		b.end(heap.Pop(&b.ends).(end))
	}
	if s.n++; !s.open {
		s.open = true
		b.open++
	}
	return b.open
}

// until notes when what a session has begun will be over.
func (b *busy) until(s *span, at int64) { heap.Push(&b.ends, end{at, s, s.n}) }

func (b *busy) end(e end) {
	if e.of.open && e.of.n == e.n {
		e.of.open = false
		b.open--
	}
}

// maxNamed bounds how many different kinds, error codes and names are counted apart.
const maxNamed = 10_000

// NewStats makes an empty Stats.
func NewStats() *Stats {
	return &Stats{kinds: map[string]*KindCount{}, errors: map[ErrorCount]int{}, by: map[NameCount]int{}, live: map[uint64]*liveSession{}}
}

// Add takes the next record, in the order of Sort.
func (s *Stats) Add(r *Record) {
	s.Records++
	if at := r.At(); at != 0 {
		if s.First == 0 || at < s.First {
			s.First = at
		}
		s.Last = max(s.Last, at)
	}
	switch r.Kind {
	case KindSession:
		s.session(r.Session, r.Open)
	case KindHistory:
		s.Events++
	case KindNote:
		s.Notes++
	case KindWait:
		if r.Wait.State == WaitBegan || r.Wait.State == WaitDeadlock {
			s.Waits++
		}
	case KindEnd:
		if l := s.live[r.Session]; l != nil {
			s.leave(l, r.End.At)
			delete(s.live, r.Session)
		}
	case KindStatement:
		s.statement(r.Session, r.Statement)
	}
}

func (s *Stats) session(number uint64, o *Session) {
	l := s.live[number]
	if l == nil {
		l = &liveSession{}
		s.live[number] = l
		s.Sessions++
		if o.Joined {
			s.Joined++
		}
	}
	if o.Encrypted && !l.info.Encrypted {
		s.Encrypted++
	}
	for _, f := range []struct{ what, before, now string }{
		{"product", l.info.Product + " " + l.info.Version, o.Product + " " + o.Version}, {"user", l.info.User, o.User},
		{"database", l.info.Database, o.Database}, {"application", l.info.Application, o.Application},
	} {
		if f.now != f.before && f.now != "" && f.now != " " {
			if key := (NameCount{What: f.what, Name: f.now}); len(s.by) < maxNamed || s.by[key] > 0 {
				s.by[key]++
			}
		}
	}
	l.info = *o
}

func (s *Stats) statement(number uint64, st *Statement) {
	s.Statements++
	s.Last = max(s.Last, st.End)
	if st.Lost {
		s.Lost++
	}
	if st.NoParams {
		s.NoParams++
	}
	l := s.live[number]
	if l == nil {
		l = &liveSession{}
		s.live[number] = l
		s.Sessions++
	}
	s.count(l, st)
	s.transaction(l, st)
	if st.Start != 0 && st.End != 0 {
		s.MostStatements = max(s.MostStatements, s.statements.begin(&l.statement, st.Start))
		s.statements.until(&l.statement, st.End)
	}
}

func (s *Stats) count(l *liveSession, st *Statement) {
	kind := "(unknown)"
	if w := lex.Words(st.SQL, lex.Of(product.Of(l.info.Product).Dialect), 1); len(w) > 0 {
		kind = w[0]
	}
	k := s.kinds[kind]
	if k == nil {
		if len(s.kinds) >= maxNamed || len(kind) > 50 {
			kind = "(other)"
		}
		if k = s.kinds[kind]; k == nil {
			k = &KindCount{Kind: kind}
			s.kinds[kind] = k
		}
	}
	k.N++
	if took, ok := st.duration(); ok {
		s.Timed++
		k.Timed++
		k.Total += took
		k.Max = max(k.Max, took)
		k.sketch.add(took)
	}
	if st.Error == nil {
		return
	}
	s.Failed++
	k.Failed++
	key := ErrorCount{Code: st.Error.Code}
	if len(s.errors) < maxNamed || s.errors[key] > 0 {
		s.errors[key]++
		if s.errors[key] == 1 {
			s.Errors = append(s.Errors, ErrorCount{Code: st.Error.Code, Message: st.Error.Message})
		}
	}
}

// duration is how long a statement took, if that is known.
func (st *Statement) duration() (int64, bool) {
	switch {
	case st.Took != 0:
		return st.Took, true
	case st.Start != 0 && st.End != 0:
		return st.End - st.Start, true
	}
	return 0, false
}

// transaction follows whether the session is in a transaction.
func (s *Stats) transaction(l *liveSession, st *Statement) {
	t := &s.Transactions
	began := !st.Before.InTransaction() && st.After.InTransaction()
	switch {
	case began:
		if l.inside { // the end of the one before was not seen
			s.leave(l, st.Start)
		}
		s.enter(l, st)
	case st.Before.InTransaction():
		if !l.inside {
			s.enter(l, st)
		}
		if st.After == answer.Idle {
			s.leave(l, max(st.End, st.Start))
		}
	case st.Before == answer.Unknown || st.After == answer.Unknown:
		t.Unknown++
	default:
		if l.inside {
			s.leave(l, st.Start)
		}
		t.Autocommit++
	}
}

func (s *Stats) enter(l *liveSession, st *Statement) {
	l.inside = true
	open := s.transactions.begin(&l.transaction, st.Start)
	s.Transactions.Begun++
	if open > 1 {
		s.Transactions.Overlapped++
	}
	s.Transactions.Most = max(s.Transactions.Most, open)
}

// leave notes that a transaction ends at a time that may be yet to come in the order of starts.
func (s *Stats) leave(l *liveSession, at int64) {
	if l.inside {
		l.inside = false
		s.Transactions.Ended++
		s.transactions.until(&l.transaction, at)
	}
}

// Finish sorts what was counted.
func (s *Stats) Finish() {
	s.Kinds = s.Kinds[:0]
	for _, k := range s.kinds {
		k.Median, k.P99 = min(k.sketch.quantile(0.5), k.Max), min(k.sketch.quantile(0.99), k.Max)
		s.Kinds = append(s.Kinds, *k)
	}
	slices.SortFunc(s.Kinds, func(a, b KindCount) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Kind, b.Kind)) })
	for i := range s.Errors {
		s.Errors[i].N = s.errors[ErrorCount{Code: s.Errors[i].Code}]
	}
	slices.SortFunc(s.Errors, func(a, b ErrorCount) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Code, b.Code)) })
	s.By = s.By[:0]
	for k, n := range s.by {
		k.N = n
		s.By = append(s.By, k)
	}
	slices.SortFunc(s.By, func(a, b NameCount) int {
		return cmp.Or(cmp.Compare(a.What, b.What), b.N-a.N, cmp.Compare(a.Name, b.Name))
	})
}

// end is when something of a session's is over.
type end struct {
	at int64
	of *span
	n  int
}

// endHeap has ends, the earliest first.
type endHeap []end

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(end)) }
func (h *endHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// sketch keeps a distribution of durations: 16 buckets for each power of two, so a quantile is known within 1/16, and its middle within 1/32.
type sketch struct {
	n     int
	count [64 * 16]uint32
}

func (k *sketch) add(v int64) {
	k.n++
	k.count[Bucket(v)]++
}

// Bucket is the number of a duration's bucket. There are 16 for each power of two, in their order.
func Bucket(v int64) int {
	if v < 16 {
		return int(max(v, 0))
	}
	e := bits.Len64(uint64(v)) - 1
	return (e-3)*16 + int(v>>(e-4))&15
}

func (k *sketch) quantile(q float64) int64 {
	if k.n == 0 {
		return 0
	}
	left := int(q * float64(k.n-1))
	for i, n := range k.count {
		if left -= int(n); left < 0 {
			return Middle(i)
		}
	}
	return 0
}

// Middle is the duration in the middle of a bucket: none of the bucket's differs from it by more than 1/32.
func Middle(bucket int) int64 {
	if bucket < 16 {
		return int64(bucket)
	}
	e := bucket/16 + 3
	return int64(16+bucket%16)<<(e-4) + 1<<(e-4)/2
}
