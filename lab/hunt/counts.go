package hunt

import "time"

// add adds the counts of another state, several times: -1 takes them away. What is no count stays.
func (s *State) add(o *State, times int) {
	mine, theirs := s.counts(), o.counts()
	for i, n := range theirs {
		*mine[i] += times * *n
	}
	add(s.Permitted, o.Permitted, times)
	add(s.Refusals, o.Refusals, times)
	add(s.Reasons, o.Reasons, times)
	add(s.Reduced, o.Reduced, times)
	add(s.Seen, o.Seen, times)
	add(s.Spent, o.Spent, time.Duration(times))
	for level, oracles := range o.Scores {
		for name, t := range oracles {
			mine, theirs := s.Scores.of(level, name).counts(), t.counts()
			for i, n := range theirs {
				*mine[i] += times * *n
			}
			if *s.Scores.of(level, name) == (score{}) {
				delete(s.Scores[level], name)
			}
		}
		if len(s.Scores[level]) == 0 {
			delete(s.Scores, level)
		}
	}
}

// counts are those that are no maps.
func (s *State) counts() []*int {
	return []*int{&s.Next, &s.Cases, &s.Refused, &s.Statements, &s.Accepted, &s.Findings, &s.Flaky, &s.Unknown, &s.Crashes, &s.Broken, &s.Unjudged, &s.Fresh, &s.Exact, &s.Inexact}
}

func (t *score) counts() []*int {
	return []*int{&t.Cases, &t.Compared, &t.Unknown, &t.Findings, &t.Flaky, &t.Permitted}
}

func add[N int | time.Duration](to, from map[string]N, times N) {
	for key, n := range from {
		if to[key] += times * n; to[key] == 0 {
			delete(to, key)
		}
	}
}

// clone is a state of its own with the same content.
func (s *State) clone() State {
	out := State{Engine: s.Engine, Fleet: s.Fleet, Seed: s.Seed, Elapsed: s.Elapsed}
	out.complete()
	out.add(s, 1)
	return out
}

// since is what was counted since another state was this one.
func (s *State) since(before *State) *State {
	out := s.clone()
	out.add(before, -1)
	return &out
}
