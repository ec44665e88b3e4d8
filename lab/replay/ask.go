package replay

import (
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/trace"
)

// A plain read that overlapped a commit saw it or did not: the server took the read's snapshot at some moment in between, and neither the beginnings nor the
// ends that a trace has tell which came first. The read's answer tells. So it is sent in front of all commits that it overlapped, and where its answer
// differs from the trace's, once more behind each of them, until it does not. Only reads are asked again to which nothing happens by that: they see only
// what is committed when they begin, change nothing, and another answer can have no other reason.

// asks reports whether a step can be asked again.
func (c *Config) asks(s *Step) bool {
	st := s.Statement
	if c.Order != OrderCommit || s.Skip != "" || s.standIn != "" || st.Error != nil || st.Before == answer.Failed || !tells(st.Results) || !s.plain() {
		return false
	}
	if st.Before == answer.Idle {
		return true
	}
	// Within a transaction, a proxy that watches would see two reads where the application did one.
	return c.Target.Host == c.Side.Host && c.Target.Port == c.Side.Port && c.level(s) == product.ReadCommitted
}

// plain reports whether a step is one read that locks nothing and has no effects. LIMIT may leave any of its rows.
func (s *Step) plain() bool {
	if len(s.form) != 1 {
		return false
	}
	v := &s.form[0]
	return v.Verb == "select" && v.Locking.Lock == statement.LockNone && !v.Variables && (v.Volatile == "" || v.Volatile == statement.UnorderedLimit)
}

// level is the level of a step's session, unless it sets another one itself.
func (c *Config) level(s *Step) string {
	level := strings.ToLower(c.Backend.Default)
	if s.info != nil && s.info.Level != "" {
		level = s.info.Level
	}
	if c.Level != "" {
		level = c.Level
	}
	return level
}

// tells reports whether results tell rows that an answer can be compared with.
func tells(results []trace.Result) bool {
	return len(results) == 1 && (results[0].Digest != "" || results[0].Count > 0)
}

// again puts a step that is done back, if its answer differs from the trace's and a commit that it overlapped is still to come, or came while it was with
// the server; it reports whether it did.
func (k *pacer) again(s *Step) bool {
	missed := s.missed
	s.missed = false
	if !s.asks || s.failed() || !missed && !k.overlaps(s) {
		return false
	}
	if kind, _, _, _ := k.compare.differ(s); kind != DivergedRows && kind != DivergedCount {
		return false
	}
	if s.asked == 0 {
		k.result.Asked++
	}
	if s.asked = k.ended; !missed {
		s.asked++
	}
	k.pending = slices.Insert(k.pending, 0, s)
	k.asking++
	return true
}

// overlaps reports whether the end of another session's transaction is still to come that had begun when s had not ended.
func (k *pacer) overlaps(s *Step) bool {
	if slices.ContainsFunc(k.flight, func(m *session) bool { return m.step.shows(s) }) {
		return true
	}
	for _, y := range k.pending {
		switch {
		case y.lo > s.hi:
			return false
		case y.shows(s):
			return true
		}
	}
	return false
}

// shows reports whether y commits what s, which it overlapped, may have seen.
func (y *Step) shows(s *Step) bool {
	return y.ends && y.Statement != nil && y.Session != s.Session && y.lo <= s.hi &&
		(len(y.tables) == 0 || meet(y, s, func(u, _ use) bool { return u.write }))
}

// settle ends the asking of steps: of those that had ended in the trace when a step began that is sent now, or of the first one, if nothing moves.
func (k *pacer) settle(which func(s *Step) bool) (some bool) {
	if k.asking == 0 {
		return false
	}
	k.pending = slices.DeleteFunc(k.pending, func(s *Step) bool {
		if s.asked == 0 || !which(s) {
			return false
		}
		k.finish(s)
		k.asking--
		some = true
		return true
	})
	return some
}
