package source

import (
	"cmp"
	"path/filepath"

	"wirecheck/history/prose"
	"wirecheck/trace"
)

// counters are what all logs of an import share.
type counters struct {
	sessions uint64
	tick     uint64
	last     uint64 // the last tick that may be given; 0: any
}

// Sink takes what a source finds, and counts it.
type Sink struct {
	counters *counters
	Options  *Options
	in       *Input
	Report   *Report
	rec      trace.Record
	clock    clock
}

// NewSink makes a sink for records that come from no import.
func NewSink(o Options) *Sink {
	return &Sink{counters: &counters{}, Options: &o, Report: &Report{}}
}

// NewSession gives the number of a new session.
func (s *Sink) NewSession() uint64 {
	s.counters.sessions++
	s.Report.Sessions++
	return s.counters.sessions
}

// Tick gives the next place in the order of the log.
func (s *Sink) Tick() uint64 {
	if c := s.counters; c.last == 0 || c.tick < c.last {
		c.tick++
	}
	return s.counters.tick
}

// SetTicks says that the next ticks are those behind first up to last.
func (s *Sink) SetTicks(first, last uint64) { s.counters.tick, s.counters.last = first, last }

// Session hands on what became known of a session.
func (s *Sink) Session(k *Session) error {
	if k.Info == k.handed {
		return nil
	}
	if k.Announced() {
		k.Info.At = k.Seen // when more became known
	}
	k.handed = k.Info
	info := k.Info
	s.rec = trace.Record{Kind: trace.KindSession, Session: k.Number, Open: &info}
	return s.Options.Out(&s.rec)
}

// Statement hands on a statement of a session.
func (s *Sink) Statement(number uint64, st *trace.Statement) error {
	s.Report.Statements++
	if len(st.SQL) > trace.MaxText {
		st.SQL, st.Lost = st.SQL[:trace.MaxText], true
	}
	if len(st.Prepared) > trace.MaxText {
		st.Prepared, st.Lost = st.Prepared[:trace.MaxText], true
	}
	if st.Lost {
		s.Report.Lost++
	}
	if st.NoParams {
		s.Report.NoParams++
	}
	if st.Error != nil {
		s.Report.Errors++
	}
	s.rec = trace.Record{Kind: trace.KindStatement, Session: number, Statement: st}
	return s.Options.Out(&s.rec)
}

// Wait hands on a wait of a session.
func (s *Sink) Wait(number uint64, w *trace.Wait) error {
	s.Report.Waits++
	s.rec = trace.Record{Kind: trace.KindWait, Session: number, Wait: w}
	return s.Options.Out(&s.rec)
}

// End hands on the end of a session.
func (s *Sink) End(number uint64, e *trace.End) error {
	s.rec = trace.Record{Kind: trace.KindEnd, Session: number, End: e}
	return s.Options.Out(&s.rec)
}

// Crowded tells whether so many sessions are too many, and how many of those that were seen least recently are to go.
func (s *Sink) Crowded(n int) (drop int) {
	most := cmp.Or(s.Options.sessions, maxSessions)
	if n < most {
		return 0
	}
	return (n + 1) / 2
}

// Stale is why a session is not followed any more.
const Stale = "not seen to its end"

// Other counts what was understood and has no place in a trace.
func (s *Sink) Other(what string) { s.Report.other(what, 1) }

// Unknown notes that a line was not understood.
func (s *Sink) Unknown(line int, why string, text []byte) {
	s.Report.Unknown++
	if len(s.Report.Samples) < maxSamples {
		s.Report.Samples = append(s.Report.Samples, UnknownLine{File: filepath.Base(s.in.Name), Line: line, Why: why, Text: prose.Line(string(text), sampleWidth)})
	}
}

// clock notices when a log's times go back.
type clock struct {
	latest int64
	back   int   // how often
	most   int64 // by how much
	at     UnknownLine
}

// clockSlack is how far back times may go without a reason: servers write lines of the same moment in any order.
const clockSlack = 2_000_000_000

// Seen takes the time of a line.
func (s *Sink) Seen(line int, at int64) {
	c := &s.clock
	if at < c.latest-clockSlack {
		if by := c.latest - at; by > c.most {
			c.most, c.at = by, UnknownLine{File: filepath.Base(s.in.Name), Line: line}
		}
		c.back++
		c.latest = at
	}
	c.latest = max(c.latest, at)
}

// clockNote says that the times went back.
func (s *Sink) clockNote() {
	c := &s.clock
	if c.back > 0 {
		s.Report.Note("the clock goes back %s, by %s at most (%s:%d). Rotated files are to be given oldest first, each once, and only those of one server; "+
			"a clock that was set, or the end of daylight saving time, does the same", prose.Count(c.back, "time"), trace.Took(c.most), c.at.File, c.at.Line)
	}
}
