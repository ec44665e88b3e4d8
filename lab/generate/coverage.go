package generate

import (
	"encoding/json"
	"slices"
	"strings"
)

// Coverage remembers which combinations cases had, and makes new ones more likely (Generator.Steer): pairs of kinds of statements
// that followed each other in different sessions, features by kind of statement. Besides, it remembers what executions of cases were
// like, in the caller's words. It is deterministic: only what was added matters.
type Coverage struct {
	seen     map[string]int
	outcomes int // how many of them are of executions
	tell     func(key string)
}

// Len is how many combinations of statements cases had, and Outcomes how many different things their executions did.
func (c *Coverage) Len() int { return len(c.seen) - c.outcomes }

// Outcomes is described at Len.
func (c *Coverage) Outcomes() int { return c.outcomes }

// AddCase adds what a case consists of and reports how much of it was new.
func (c *Coverage) AddCase(k *Case) (fresh int) {
	for _, words := range combinations(k) {
		fresh += c.add(words...)
	}
	return fresh
}

// AddOutcomes adds what an execution was like, such as who waited for whom, and reports how much of it was new.
func (c *Coverage) AddOutcomes(list []string) (fresh int) {
	for _, o := range list {
		fresh += c.add("outcome", o)
	}
	c.outcomes += fresh
	return fresh
}

// MarshalJSON and UnmarshalJSON keep what was seen.
func (c *Coverage) MarshalJSON() ([]byte, error) { return json.Marshal(c.seen) }

// UnmarshalJSON is described at MarshalJSON.
func (c *Coverage) UnmarshalJSON(text []byte) error {
	c.seen, c.outcomes = nil, 0
	if err := json.Unmarshal(text, &c.seen); err != nil {
		return err
	}
	for key := range c.seen {
		if strings.HasPrefix(key, "outcome"+bar) {
			c.outcomes++
		}
	}
	return nil
}

// combinations lists what a case consists of, as words: features by kind of statement, pairs of kinds that follow each other, and the
// shapes of its dependencies as far as they can be foreseen. Each comes once.
func combinations(k *Case) (list [][]string) {
	had := map[string]bool{}
	put := func(words ...string) {
		if key := strings.Join(words, bar); !had[key] {
			had[key] = true
			list = append(list, words)
		}
	}
	statements := slices.Clone(k.Database.Setup)
	for _, st := range k.Order {
		statements = append(statements, st.Statement)
	}
	for _, st := range statements {
		for _, f := range st.Features {
			put("feature", string(st.Kind), f)
		}
	}
	for i := 1; i < len(k.Order); i++ {
		if a, b := k.Order[i-1], k.Order[i]; a.Session != b.Session {
			put("pair", string(a.Kind), string(b.Kind))
		}
	}
	shapes(k, put)
	return list
}

// shapes puts the dependencies between statements of two sessions that a case may lead to, as pairs that point both ways: statements about the same
// table of which one writes or locks.
func shapes(k *Case, put func(words ...string)) {
	type way struct{ from, to int }
	edges := map[way][]string{}
	for i, a := range k.Order {
		for _, b := range k.Order[i+1:] {
			if a.Session == b.Session || !a.Kind.Data() || !b.Kind.Data() || a.Kind == KindSelect && b.Kind == KindSelect {
				continue
			}
			if !slices.ContainsFunc(a.Tables, func(t string) bool { return slices.Contains(b.Tables, t) }) {
				continue
			}
			w, e := way{a.Session, b.Session}, string(a.Kind)+">"+string(b.Kind)
			if !slices.Contains(edges[w], e) {
				edges[w] = append(edges[w], e)
			}
		}
	}
	for i := range k.Sessions {
		for j := range i {
			for _, e := range edges[way{i, j}] {
				for _, f := range edges[way{j, i}] {
					put("shape", min(e, f), max(e, f))
				}
			}
		}
	}
}

// worth says how much new a case promises for each of its steps: each combination counts the less the more often it was seen.
func (c *Coverage) worth(k *Case) (sum float64) {
	for _, words := range combinations(k) {
		n := c.count(words...)
		sum += 1 / float64(1+n*n)
	}
	return sum / float64(10+len(k.Order))
}

// bar stands between the words of a combination.
const bar = "|"

func (c *Coverage) add(words ...string) int {
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	key := strings.Join(words, bar)
	c.seen[key]++
	if c.tell != nil && c.seen[key] <= mostTold {
		c.tell(key)
	}
	if c.seen[key] == 1 {
		return 1
	}
	return 0
}

// hear adds what others have seen.
func (c *Coverage) hear(key string) {
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	if c.seen[key]++; c.seen[key] == 1 && strings.HasPrefix(key, "outcome"+bar) {
		c.outcomes++
	}
}

func (c *Coverage) count(words ...string) int { return c.seen[strings.Join(words, bar)] }

// frequency raises the frequency of a feature that statements of this kind have not had.
func (c *Coverage) frequency(kind Kind, feature string, frequency int) int {
	if c.count("feature", string(kind), feature) == 0 {
		return frequency * 3
	}
	return frequency
}
