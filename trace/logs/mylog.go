package logs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// mySessions are the sessions of a log of the MySQL family, by thread id.
type mySessions struct {
	out     *source.Sink
	product string
	version string
	byID    map[string]*mySession
}

// mySession is one of them.
type mySession struct{ source.Session }

func newMySessions(out *source.Sink) mySessions {
	return mySessions{out: out, product: out.Options.Product, byID: map[string]*mySession{}}
}

// find gives the session with a thread id.
func (m *mySessions) find(id string, at int64) *mySession {
	s := m.byID[id]
	if s == nil {
		m.forget(m.out.Crowded(len(m.byID)))
		s = &mySession{}
		s.Number, s.Info = m.out.NewSession(), trace.Session{At: at, Joined: true, Product: m.product, Version: m.version, Backend: strings.Clone(id)}
		s.Transaction.Dialect = lex.MySQL
		m.byID[s.Info.Backend] = s
	}
	s.Seen = at
	return s
}

// forget drops the sessions that were seen least recently; nothing is known of their ends.
func (m *mySessions) forget(n int) {
	if n == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(m.byID))
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(m.byID[a].Seen, m.byID[b].Seen) })
	for _, id := range ids[:n] {
		delete(m.byID, id)
	}
}

// begin makes a session of which the beginning is in the log. Thread ids come again after a restart.
func (m *mySessions) begin(id string, at int64) (*mySession, error) {
	if old := m.byID[id]; old != nil {
		if err := m.end(id, &trace.End{At: old.Seen, Reason: "not logged"}); err != nil {
			return nil, err
		}
	}
	s := m.find(id, at)
	s.Info.Joined, s.Transaction.Status = false, answer.Idle
	return s, nil
}

func (m *mySessions) tell(s *mySession) error { return m.out.Session(&s.Session) }

// done hands on a statement.
func (m *mySessions) done(s *mySession, st *trace.Statement) error {
	if err := m.tell(s); err != nil {
		return err
	}
	st.Before = s.Transaction.Status
	st.After = s.Done(st.SQL, st.Error)
	s.Executed(st)
	return m.out.Statement(s.Number, st)
}

// end ends a session.
func (m *mySessions) end(id string, e *trace.End) error {
	s := m.byID[id]
	if s == nil {
		return nil
	}
	delete(m.byID, id)
	if err := m.tell(s); err != nil {
		return err
	}
	return m.out.End(s.Number, e)
}

// flushAll hands on sessions without statements.
func (m *mySessions) flushAll() error {
	for _, id := range slices.Sorted(maps.Keys(m.byID)) {
		if err := m.tell(m.byID[id]); err != nil {
			return err
		}
	}
	return nil
}

// banner takes the three lines with which a server begins a log:
//
//	/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1-log (Debian 12). started with:
//	Tcp port: 33306  Unix socket: /srv/db/s.sock
//	Time		    Id Command	Argument
func (m *mySessions) banner(line string) bool {
	if _, v, ok := strings.Cut(line, ", Version: "); ok && strings.HasSuffix(line, "started with:") {
		v, _, _ = strings.Cut(v, ". started with:")
		v, _, _ = strings.Cut(v, " ")
		m.version = strings.Clone(v)
		m.product = product.OfVersion(v).Name
		return true
	}
	return strings.HasPrefix(line, "Tcp port: ") || strings.HasPrefix(line, "TCP Port: ") || strings.HasPrefix(line, "Time") && strings.Contains(line, " Id Command")
}

// parseMyTime reads the times of the MySQL family's logs: 2026-11-20T09:31:15.123456Z, with an offset where log_timestamps is SYSTEM;
// and 261120  9:31:15 (MariaDB, MySQL before 5.7), which is in the server's time zone.
func parseMyTime(s string) (int64, bool) {
	if len(s) > 10 && s[4] == '-' {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return 0, false
		}
		return t.UnixNano(), true
	}
	if len(s) < 14 {
		return 0, false
	}
	s = s[:6] + " " + strings.TrimLeft(s[6:], " ")
	t, err := time.Parse("060102 15:04:05", s)
	if err != nil {
		return 0, false
	}
	return t.UnixNano(), true
}

// parseSeconds reads seconds with decimals as nanoseconds.
func parseSeconds(s string) (int64, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	v, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || v < 0 || v > 1<<33 || strings.Trim(frac, "0123456789") != "" {
		return 0, false
	}
	return v*1_000_000_000 + fraction(frac), true
}
