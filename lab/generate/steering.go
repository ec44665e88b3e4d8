package generate

import "slices"

// Steering leads a long run to what is new. It remembers what cases consisted of and what their executions did (Coverage), and keeps a bounded
// pool of cases whose execution did something new. A group of cases has one database: a new one, or that of a case of the pool; cases of
// a group are new ones, or cases of the pool that are changed a little (Generator.Mutate). It is deterministic: the same numbers and the
// same executions give the same cases. Its JSON form holds all of it.
type Steering struct {
	Coverage Coverage        `json:"coverage"`
	Pool     []*Entry        `json:"pool"`
	Metadata map[string]bool `json:"metadata"` // abstract metadata that was tested (Radar, VLDB'24, 3.5)
	// Group and Base are the group under way and its database.
	Group int  `json:"group"`
	Base  Base `json:"base"`

	news *News // nil: nobody asks for it
}

// Base says which database: the numbers from which the caller makes it again.
type Base struct {
	Group   int `json:"group"`   // for which it was made first
	Attempt int `json:"attempt"` // of several for that group
}

// Entry is a case of the pool.
type Entry struct {
	Base  Base   `json:"base"`
	Steps []Step `json:"steps"`
	Uses  int    `json:"uses"` // how often it was changed
	Hits  int    `json:"hits"` // how often that brought something new
}

const (
	// mostEntries bounds the pool.
	mostEntries = 200
	// againShare is how many groups, in percent, take the database of a case of the pool.
	againShare = 40
	// mutateShare is how many cases of a group, in percent, are changed cases of the pool, where it has any with the group's database.
	mutateShare = 60
)

// NewSteering gives one that has seen nothing.
func NewSteering() *Steering { return &Steering{Metadata: map[string]bool{}, Group: -1} }

// Begin says which database a group of cases has: that of an entry of the pool, or a new one, of the first attempts whose abstract
// metadata is new, as fresh says it. Asked again for the same group it gives the same.
func (s *Steering) Begin(group int, intn func(int) int, metadata func(Base) (string, error)) (Base, error) {
	const attempts = 8
	if s.Group == group {
		return s.Base, nil
	}
	base := Base{Group: group}
	if len(s.Pool) > 0 && intn(100) < againShare {
		base = s.pick(intn, s.Pool).Base
	} else {
		for ; base.Attempt < attempts; base.Attempt++ {
			text, err := metadata(base)
			if err != nil {
				return base, err
			}
			if !s.Metadata[text] {
				s.Metadata[text] = true
				if s.news != nil {
					s.news.Metadata = append(s.news.Metadata, text)
				}
				break
			}
		}
	}
	s.Group, s.Base = group, base
	return base, nil
}

// Next makes a case on the group's database. The entry is the one that was changed; nil: it is a new case.
func (s *Steering) Next(g *Generator, db *Database, intn func(int) int) (*Case, *Entry) {
	here := slices.DeleteFunc(slices.Clone(s.Pool), func(e *Entry) bool { return e.Base != s.Base })
	g.Steer(&s.Coverage)
	if len(here) == 0 || intn(100) >= mutateShare {
		return g.CaseOn(db), nil
	}
	e := s.pick(intn, here)
	e.Uses++
	return g.Mutate(db, e.Steps), e
}

// Learn adds what a case consisted of and what its execution did, and reports how much of each was new. A case whose execution did something
// new goes to the pool, if the caller wants more of its kind and it has several sessions: of one, no change makes a case that should be tested.
func (s *Steering) Learn(k *Case, from *Entry, outcomes []string, more bool) (combinations, fresh int) {
	combinations = s.Coverage.AddCase(k)
	if fresh = s.Coverage.AddOutcomes(outcomes); fresh == 0 || !more || len(k.Sessions) < 2 {
		return combinations, fresh
	}
	if from != nil {
		from.Hits++
	}
	e := &Entry{Base: s.Base, Steps: k.Order}
	if s.news != nil {
		s.news.Pool = append(s.news.Pool, e)
	}
	s.enter(e)
	return combinations, fresh
}

// enter puts an entry into the pool; the one that brought least for its uses leaves it.
func (s *Steering) enter(e *Entry) {
	if len(s.Pool) == mostEntries {
		worst := 0
		for i, e := range s.Pool {
			if e.weight() < s.Pool[worst].weight() {
				worst = i
			}
		}
		s.Pool = slices.Delete(s.Pool, worst, worst+1)
	}
	s.Pool = append(s.Pool, e)
}

// weight is how likely an entry is taken: one that brought much, and one that was seldom tried.
func (e *Entry) weight() int { return 1 + 100*(1+e.Hits)/(1+e.Uses) }

func (s *Steering) pick(intn func(int) int, list []*Entry) *Entry {
	sum := 0
	for _, e := range list {
		sum += e.weight()
	}
	n := intn(sum)
	for _, e := range list {
		if n -= e.weight(); n < 0 {
			return e
		}
	}
	return list[len(list)-1]
}
