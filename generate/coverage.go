package generate

import (
	"encoding/json"
	"slices"
	"strings"
)

// Coverage remembers which combinations cases had, and makes new ones more likely (Generator.Steer): pairs of kinds of statements
// that followed each other in different sessions, features by kind of statement, and labels that the caller adds for what a
// pair led to, such as who waited. It is deterministic: only what was added matters.
type Coverage struct {
	seen   map[string]int
	labels []string // all that were added, in the order of their first time
}

// coverageText is how a coverage is written.
type coverageText struct {
	Seen   map[string]int `json:"seen"`
	Labels []string       `json:"labels"`
}

// MarshalJSON implements json.Marshaler.
func (c *Coverage) MarshalJSON() ([]byte, error) { return json.Marshal(coverageText{c.seen, c.labels}) }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Coverage) UnmarshalJSON(text []byte) error {
	var t coverageText
	err := json.Unmarshal(text, &t)
	c.seen, c.labels = t.Seen, t.Labels
	return err
}

// Len is how many combinations were seen.
func (c *Coverage) Len() int { return len(c.seen) }

// AddCase adds what a case consists of and reports how much of it was new.
func (c *Coverage) AddCase(k *Case) (fresh int) {
	features, pairs := combinations(k)
	for _, words := range append(features, pairs...) {
		fresh += c.add(words...)
	}
	return fresh
}

// Add adds that a statement of kind b followed one of kind a in another session, and what came of it, and reports how much of
// that was new.
func (c *Coverage) Add(a, b Kind, labels ...string) (fresh int) {
	fresh = c.add("pair", string(a), string(b))
	for _, label := range labels {
		fresh += c.add("label", string(a), string(b), label)
		if !slices.Contains(c.labels, label) {
			c.labels = append(c.labels, label)
		}
	}
	return fresh
}

// combinations lists what a case consists of, as words: features by kind, and pairs of kinds. Each comes once.
func combinations(k *Case) (features, pairs [][]string) {
	had := map[string]bool{}
	put := func(to *[][]string, words ...string) {
		if key := strings.Join(words, "\x00"); !had[key] {
			had[key] = true
			*to = append(*to, words)
		}
	}
	statements := slices.Clone(k.Database.Setup)
	for _, st := range k.Order {
		statements = append(statements, st.Statement)
	}
	for _, st := range statements {
		for _, f := range st.Features {
			put(&features, "feature", string(st.Kind), f)
		}
	}
	for i := 1; i < len(k.Order); i++ {
		if a, b := k.Order[i-1], k.Order[i]; a.Session != b.Session {
			put(&pairs, "pair", string(a.Kind), string(b.Kind))
		}
	}
	return features, pairs
}

// worth says how much new a case promises: each combination counts the less the more often it was seen, and a pair more as long as
// there are labels that it never led to.
func (c *Coverage) worth(k *Case) (sum float64) {
	features, pairs := combinations(k)
	for _, words := range append(features, pairs...) {
		n := c.count(words...)
		sum += 1 / float64(1+n*n)
	}
	for _, words := range pairs {
		for _, label := range c.labels {
			if c.count("label", words[1], words[2], label) == 0 {
				sum += 0.25 / float64(len(c.labels))
			}
		}
	}
	return sum
}

func (c *Coverage) add(words ...string) int {
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	key := strings.Join(words, "\x00")
	c.seen[key]++
	if c.seen[key] == 1 {
		return 1
	}
	return 0
}

func (c *Coverage) count(words ...string) int { return c.seen[strings.Join(words, "\x00")] }

// frequency raises the frequency of a feature that statements of this kind have not had.
func (c *Coverage) frequency(kind Kind, feature string, frequency int) int {
	if c.count("feature", string(kind), feature) == 0 {
		return frequency * 3
	}
	return frequency
}
