package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// unstick ends a state that nothing else ends.
func (k *pacer) unstick(ctx context.Context) error {
	for _, m := range k.flight {
		limit := max(k.config.Limits.Statement, 10*m.step.took)
		if !m.blocked && time.Since(m.step.sent) > limit {
			k.deviate(m.step, fmt.Sprintf("ended by force: it had not come back after %v", limit))
			return k.kill(ctx, m)
		}
	}
	if !k.allBlocked() || time.Since(k.quiet) < k.config.Limits.Stuck {
		return nil
	}
	// Nothing can be sent, or it would have been: everyone whose turn it is waits for a lock.
	idle := k.idle()
	if len(idle) > 0 && k.eof {
		// Nothing more comes of the sessions that hold the locks.
		for _, m := range idle {
			k.deviate(m.last, "its transaction was open when the trace ended, and others wait for its locks: it is rolled back")
			k.result.Left++
			m.open = false
			end := &Step{Session: m.id}
			m.step = end
			k.flight = append(k.flight, m)
			m.orders <- end
		}
		k.quiet = time.Now()
		return nil
	}
	if !k.eof && k.config.Limits.Ahead < 1<<20 {
		k.config.Limits.Ahead *= 4 // what lets go may come later
		return nil
	}
	m := k.flight[0]
	for _, x := range k.flight {
		if x.wait.Foreign {
			m = x
		}
	}
	k.deviate(m.step, fmt.Sprintf("ended by force: every session waits for a lock (this one for a lock of kind %q%s), and the server did not end that within %v", m.wait.Kind, k.holders(m), k.config.Limits.Stuck))
	return k.kill(ctx, m)
}

// deadlock notes the victim of one, here or in the trace, with who else was waiting.
func (k *pacer) deadlock(s *Step) {
	d := Deadlock{Session: s.Session, Step: s.N, SQL: s.SQL, Tags: s.Tags(), Replayed: s.Outcome.Reason == answer.ReasonDeadlock}
	if s.standIn != "" {
		d.SQL = WithoutTags(s.Statement.SQL, k.dialect)
	}
	if e := s.Statement.Error; e != nil {
		d.Captured = isDeadlock(k.config.Backend, e)
	}
	if !d.Captured && !d.Replayed {
		return
	}
	for _, m := range k.flight {
		if m.step != s && m.step.Waited {
			d.Others = append(d.Others, Party{Session: m.id, SQL: m.step.SQL, Tags: m.step.Tags()})
		}
	}
	if len(d.Others) == 0 { // the others may be done already: they were let go by this one's end
		for _, m := range k.sessions {
			if m.id != s.Session && m.last != nil && m.last.Waited && time.Since(m.lastDone) < time.Second {
				d.Others = append(d.Others, Party{Session: m.id, SQL: m.last.SQL, Tags: m.last.Tags()})
			}
		}
	}
	slices.SortFunc(d.Others, func(a, b Party) int { return cmp.Compare(a.Session, b.Session) })
	if k.otherVictim(&d) {
		return
	}
	k.result.Deadlocks = append(k.result.Deadlocks, d)
}

// otherVictim reports whether a deadlock is one that is known already: the trace's and the replay's, of which the server chose another victim.
func (k *pacer) otherVictim(d *Deadlock) bool {
	if len(k.result.Deadlocks) == 0 {
		return false
	}
	old := &k.result.Deadlocks[len(k.result.Deadlocks)-1]
	if old.Captured == d.Captured || old.Replayed == d.Replayed || max(old.Step-d.Step, d.Step-old.Step) > 2*len(k.sessions) {
		return false
	}
	party := func(a, b *Deadlock) bool {
		return slices.ContainsFunc(a.Others, func(p Party) bool { return p.Session == b.Session && p.SQL == b.SQL })
	}
	if !party(old, d) && !party(d, old) {
		return false
	}
	old.Captured, old.Replayed, old.OtherVictim = true, true, true
	return true
}

// isDeadlock reports whether a trace's error is that of a deadlock's victim. Logs without codes have the message.
func isDeadlock(d engine.Descriptor, e *answer.Error) bool {
	if e.Code == "" {
		return strings.Contains(strings.ToLower(e.Message), "deadlock")
	}
	return d.Outcome(answer.Answer{Err: e}, nil).Reason == answer.ReasonDeadlock
}
