package generate

import "strings"

// Coverage remembers which combinations cases had, and makes new ones more likely (Generator.Steer): pairs of kinds of statements
// that followed each other in different transactions, features by kind of statement, and labels that the caller adds for
// what a pair led to, such as how locks were granted. It is deterministic: only what was added matters.
type Coverage struct {
	seen map[string]int
}

// Len is how many combinations were seen.
func (c *Coverage) Len() int { return len(c.seen) }

// AddCase adds what a case consists of and reports how much of it was new.
func (c *Coverage) AddCase(k *Case) (fresh int) {
	for _, session := range k.Sessions {
		for _, tx := range session.Transactions {
			for _, st := range tx.Statements {
				for _, f := range st.Features {
					fresh += c.add("feature", string(st.Kind), f)
				}
			}
		}
	}
	for i := 1; i < len(k.Order); i++ {
		if a, b := k.Order[i-1], k.Order[i]; a.Session != b.Session {
			fresh += c.Add(a.Kind, b.Kind)
		}
	}
	return fresh
}

// Add adds that a statement of kind b followed one of kind a in another transaction, and what came of it, and reports how much of
// that was new.
func (c *Coverage) Add(a, b Kind, labels ...string) (fresh int) {
	fresh = c.add("pair", string(a), string(b))
	for _, label := range labels {
		fresh += c.add("label", string(a), string(b), label)
	}
	return fresh
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

// frequency raises the frequency of a feature that statements of this kind have not had, or hardly.
func (c *Coverage) frequency(kind Kind, feature string, frequency int) int {
	switch c.count("feature", string(kind), feature) {
	case 0:
		return frequency * 3
	case 1, 2:
		return frequency * 2
	}
	return frequency
}

// weight raises the weight of a kind of statement by how many of the pairs that it would make with the others are new.
func (c *Coverage) weight(kind Kind, others []Kind, weight int) int {
	fresh := 0
	for _, other := range others {
		if c.count("pair", string(other), string(kind)) == 0 {
			fresh++
		}
		if c.count("pair", string(kind), string(other)) == 0 {
			fresh++
		}
	}
	if len(others) == 0 {
		return weight
	}
	return weight + weight*2*fresh/len(others)
}
