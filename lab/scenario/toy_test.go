package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// toyEngine executes toy statements with one lock per table, deadlock detection and snapshots, to see whether steps that
// are called independent really are. It runs the first step, in the submitted order, whose session is not waiting.
type toyEngine struct {
	snapshots, atBegin bool // read from a snapshot, taken at the first statement or at BEGIN; else what is committed
	committed          map[string]string
	holder             map[string]int // table: session + 1
	sessions           []toySession
	results            map[string]string
}

type toySession struct {
	open     bool
	explicit bool
	dead     bool
	snapshot map[string]string
	writes   map[string]string
	waiting  *Step
	rest     []Footprint // what is left of the waiting step, or of the current one
}

func runToy(s *Spec, order []*Step, snapshots, atBegin bool) (map[string]string, map[string]string) {
	e := &toyEngine{snapshots: snapshots, atBegin: atBegin, committed: map[string]string{}, holder: map[string]int{},
		sessions: make([]toySession, len(s.Sessions)), results: map[string]string{}}
	for pending := slices.Clone(order); len(pending) > 0; {
		i := slices.IndexFunc(pending, func(st *Step) bool { return e.sessions[st.Session].waiting == nil })
		if i < 0 {
			break
		}
		st := pending[i]
		pending = slices.Delete(pending, i, i+1)
		if e.sessions[st.Session].dead {
			continue
		}
		e.sessions[st.Session].rest = toy(st.SQL)
		e.goOn(st)
	}
	return e.results, e.committed
}

// goOn executes the rest of a step until it waits.
func (e *toyEngine) goOn(st *Step) {
	ses := &e.sessions[st.Session]
	for len(ses.rest) > 0 && !ses.dead {
		f := ses.rest[0]
		if f.Action == ActWrite {
			table := f.Writes[0]
			if h := e.holder[table]; h != 0 && h != st.Session+1 {
				ses.waiting = st
				if e.deadlock(st.Session) {
					e.abort(st, "deadlock")
				}
				return
			}
		}
		ses.waiting = nil
		ses.rest = ses.rest[1:]
		e.execute(st, f)
	}
	ses.waiting = nil
}

func (e *toyEngine) execute(st *Step, f Footprint) {
	ses := &e.sessions[st.Session]
	if !ses.open {
		*ses = toySession{open: true, explicit: f.Action == ActBegin, writes: map[string]string{}, rest: ses.rest}
	}
	if ses.snapshot == nil && (f.Action == ActRead || f.Action == ActWrite || f.Action == ActBegin && e.atBegin) {
		ses.snapshot = map[string]string{}
		for k, v := range e.committed {
			ses.snapshot[k] = v
		}
	}
	switch f.Action {
	case ActRead:
		view := e.committed
		if e.snapshots {
			view = ses.snapshot
		}
		value, own := ses.writes[f.Reads[0]]
		if !own {
			value = view[f.Reads[0]]
		}
		e.results[st.Name] += "read " + value + ";"
	case ActWrite:
		table := f.Writes[0]
		if e.snapshots && e.committed[table] != ses.snapshot[table] {
			e.abort(st, "serialization failure")
			return
		}
		e.holder[table] = st.Session + 1
		if _, own := ses.writes[table]; !own {
			ses.writes[table] = e.committed[table]
		}
		ses.writes[table] += st.Name + " "
		e.results[st.Name] += "wrote;"
	}
	if f.Action == ActEnd || !ses.explicit {
		for table, v := range ses.writes {
			e.committed[table] = v
		}
		e.release(st.Session)
	}
}

func (e *toyEngine) abort(st *Step, why string) {
	e.results[st.Name] += why
	e.sessions[st.Session].dead = true
	e.sessions[st.Session].waiting = nil
	e.release(st.Session)
}

// release ends the session's transaction and lets those go on that waited for its locks.
func (e *toyEngine) release(session int) {
	ses := &e.sessions[session]
	ses.open, ses.snapshot, ses.writes = false, nil, nil
	for table, h := range e.holder {
		if h == session+1 {
			e.holder[table] = 0
		}
	}
	for i := range e.sessions {
		if st := e.sessions[i].waiting; st != nil && e.holder[e.sessions[i].rest[0].Writes[0]] == 0 {
			e.goOn(st)
		}
	}
}

func (e *toyEngine) deadlock(session int) bool {
	for at := session; e.sessions[at].waiting != nil; {
		at = e.holder[e.sessions[at].rest[0].Writes[0]] - 1
		if at == session {
			return true
		}
	}
	return false
}

// TestIndependentStepsCommute swaps neighbours that are called independent: every step returns the same, and the tables
// are the same in the end.
func TestIndependentStepsCommute(t *testing.T) {
	swaps := 0
	swap := func(t *rapid.T) {
		snapshots := rapid.Bool().Draw(t, "snapshots")
		atBegin := snapshots && rapid.Bool().Draw(t, "at begin")
		s := &Spec{}
		var order []*Step
		for i := range rapid.IntRange(2, 3).Draw(t, "sessions") {
			session := &Session{}
			explicit := rapid.IntRange(0, 3).Draw(t, "explicit") > 0
			var sqls []string
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				sqls = append(sqls, rapid.SampledFrom([]string{"r A", "r B", "r C", "w A", "w B", "w C"}).Draw(t, "sql"))
			}
			if explicit {
				sqls = append(append([]string{"begin"}, sqls...), "end")
			}
			for j, sql := range sqls {
				session.Steps = append(session.Steps, &Step{Name: fmt.Sprintf("%d%c", i, 'a'+j), SQL: sql, Session: i, Index: j})
			}
			s.Sessions = append(s.Sessions, session)
		}
		left := s.lengths()
		for n := len(s.Sessions); n > 0; {
			i := rapid.IntRange(0, len(left)-1).Draw(t, "next")
			if left[i] == 0 {
				i = slices.IndexFunc(left, func(n int) bool { return n > 0 })
				if i < 0 {
					break
				}
			}
			order = append(order, s.Sessions[i].Steps[len(s.Sessions[i].Steps)-left[i]])
			left[i]--
		}
		independent := Independence(s, toy, Traits{SnapshotAtBegin: atBegin})
		results, tables := runToy(s, order, snapshots, atBegin)
		for i := range len(order) - 1 {
			if !independent(order[i], order[i+1]) {
				continue
			}
			swaps++
			other := slices.Clone(order)
			other[i], other[i+1] = other[i+1], other[i]
			results2, tables2 := runToy(s, other, snapshots, atBegin)
			if diff := cmp.Diff(results, results2) + cmp.Diff(tables, tables2); diff != "" {
				var texts []string
				for _, st := range order {
					texts = append(texts, st.Name+": "+st.SQL)
				}
				t.Fatalf("%s\nswapping %s and %s gives (-before +after):\n%s", strings.Join(texts, ", "), order[i].Name, order[i+1].Name, diff)
			}
		}
	}
	for range 20 { // what goes wrong takes a rare coincidence
		rapid.Check(t, swap)
	}
	if swaps < 1000 {
		t.Errorf("only %d pairs were swapped", swaps)
	}
}
