package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Target is where a scenario runs: the product (postgres, mariadb, mysql, tidb, sqlite), its version (words; a
// selector's version must begin one of them) and the level, as the history names it.
type Target struct{ Engine, Version, Level string }

// Selector says where a directive holds. An empty list means everywhere.
type Selector struct{ Engines, Levels []string }

func (s Selector) empty() bool { return len(s.Engines) == 0 && len(s.Levels) == 0 }

// String gives the selector with its brackets, nothing if it is empty.
func (s Selector) String() string {
	engines, levels := strings.Join(s.Engines, ", "), strings.Join(s.Levels, ", ")
	switch {
	case s.empty():
		return ""
	case levels == "":
		return "[" + engines + "]"
	case engines == "":
		return "[" + levels + "]"
	}
	return "[" + engines + ": " + levels + "]"
}

// parseSelector reads "ENGINES: LEVELS", or one of the two.
func parseSelector(text string) (Selector, error) {
	var s Selector
	engines, levels, both := strings.Cut(text, ":")
	if !both {
		if checkLevel(list(text)[0]) == nil {
			engines, levels = "", text
		} else {
			levels = ""
		}
	}
	if both && (strings.TrimSpace(engines) == "" || strings.TrimSpace(levels) == "") || strings.TrimSpace(text) == "" {
		return s, fmt.Errorf("found [%s], expected [ENGINES], [LEVELS] or [ENGINES: LEVELS]", text)
	}
	if engines != "" {
		if err := checkList(checkEngine)(engines); err != nil {
			return s, err
		}
		s.Engines = list(engines)
	}
	if levels != "" {
		if err := checkList(checkLevel)(levels); err != nil {
			return s, err
		}
		s.Levels = list(levels)
	}
	return s, nil
}

// Matches reports whether the selector covers the target.
func (s Selector) Matches(t Target) bool {
	engine := len(s.Engines) == 0 || slices.ContainsFunc(s.Engines, func(e string) bool { return matchesEngine(e, t) })
	return engine && (len(s.Levels) == 0 || slices.Contains(s.Levels, t.Level))
}

// matchesEngine reports whether "mysql" or "mysql 8" is the target; 8 is 8.0.36 but not 80.1.
func matchesEngine(engine string, t Target) bool {
	product, version, _ := strings.Cut(engine, " ")
	if product != t.Engine {
		return false
	}
	return version == "" || slices.ContainsFunc(strings.Fields(t.Version), func(word string) bool {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(word, "v"), version)
		return ok && (rest == "" || !isDigit(rest[0]))
	})
}

// lines gives the values of all lines of the key: the file's, then those of the permutation (nil: none).
func (s *Spec) lines(key string, p *Permutation) []Directive {
	all := s.Directives
	if p != nil {
		all = slices.Concat(all, p.Directives)
	}
	return slices.DeleteFunc(slices.Clone(all), func(d Directive) bool { return d.Key != key })
}

// values joins the lists of all lines of the key.
func (s *Spec) values(key string, p *Permutation) []string {
	var all []string
	for _, d := range s.lines(key, p) {
		all = append(all, list(d.Value)...)
	}
	return all
}

// Engines are those that the file is meant for; none: any.
func (s *Spec) Engines() []string { return s.values("engine", nil) }

// Levels are those that the file is meant for; none: any.
func (s *Spec) Levels() []string { return s.values("level", nil) }

// Oracles are those that are to judge it; none: the file does not say.
func (s *Spec) Oracles() []string { return s.values("oracle", nil) }

// For reports whether the permutation (nil: the file) is meant for the target. A permutation's own engine or level lines
// narrow the file's.
func (s *Spec) For(p *Permutation, t Target) bool {
	allows := func(ds []Directive) bool {
		var sel Selector
		for _, d := range ds {
			switch d.Key {
			case "engine":
				sel.Engines = append(sel.Engines, list(d.Value)...)
			case "level":
				sel.Levels = append(sel.Levels, list(d.Value)...)
			}
		}
		return sel.Matches(t)
	}
	return allows(s.Directives) && (p == nil || allows(p.Directives))
}

// Seed is the file's, if it names one.
func (s *Spec) Seed() (uint64, bool) {
	for _, d := range s.lines("seed", nil) {
		n, err := strconv.ParseUint(d.Value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Mode is which permutations the file wants to be run, if it says so.
func (s *Spec) Mode() (Mode, bool) {
	for _, d := range s.lines("permutations", nil) {
		m, err := ParsePermutations(d.Value)
		return m, err == nil
	}
	return Mode{}, false
}

// Finals are the queries that are run one after the other, in no session, when all steps and the sessions' teardowns are
// done and before the file's teardown. Their results are named final (the first), final1, final2, ...
func (s *Spec) Finals() []string { return s.texts("final") }

// Raw are the statements that set up the twin without optional metadata (for the oracle radar).
func (s *Spec) Raw() []string { return s.texts("raw") }

func (s *Spec) texts(key string) []string {
	var all []string
	for _, d := range s.lines(key, nil) {
		all = append(all, d.Value)
	}
	return all
}

// isFinal reports whether the name is that of a final query's result.
func (s *Spec) isFinal(name string) bool {
	digits, ok := strings.CutPrefix(name, "final")
	if !ok {
		return false
	}
	n, count := 1, len(s.Finals())
	if digits != "" {
		var err error
		if n, err = strconv.Atoi(digits); err != nil || digits != strconv.Itoa(n) {
			return false
		}
	}
	return n >= 1 && n <= count
}

// last is the value of the last line of the key that fits; a permutation's lines come after the file's.
func (s *Spec) last(key string, p *Permutation, t Target) (value string, found bool) {
	for _, d := range s.lines(key, p) {
		if d.Only.Matches(t) {
			value, found = d.Value, true
		}
	}
	return value, found
}

// Expect names what the oracles should find in the permutation (nil: the file) on the target; an empty list means nothing
// at all, false that the file does not say. The last line that fits counts.
func (s *Spec) Expect(p *Permutation, t Target) ([]string, bool) {
	value, ok := s.last("expect", p, t)
	switch {
	case !ok:
		return nil, false
	case value == "none":
		return []string{}, true
	}
	return list(value), true
}

// Verdict lists what the oracles say of the permutation (nil: the file) on the target: "wss permitted missing gap locks". An oracle that
// is not in the list says nothing. False: the file does not say. The last line that fits counts.
func (s *Spec) Verdict(p *Permutation, t Target) ([]string, bool) {
	value, ok := s.last("verdict", p, t)
	if !ok || value == "nothing" {
		return nil, ok
	}
	return statements(value), true
}

// Observation is what an observe line demands: that an outcome's condition holds, or that it does not.
type Observation struct {
	Outcome string
	Holds   bool
}

// Observe says which outcomes the results should show in the permutation (nil: the file) on the target; false: the file
// does not say. The last line that fits counts.
func (s *Spec) Observe(p *Permutation, t Target) ([]Observation, bool) {
	value, ok := s.last("observe", p, t)
	if !ok {
		return nil, false
	}
	var all []Observation
	for _, name := range list(value) {
		outcome, not := strings.CutPrefix(name, "not ")
		all = append(all, Observation{Outcome: outcome, Holds: !not})
	}
	return all, true
}

// Outcome is a named condition over the results of a run.
type Outcome struct {
	Name      string
	Condition Condition
}

// Outcomes are those defined for the permutation (nil: the file), in the order of their first lines. Lines of the same
// name must all hold; a permutation's own lines replace the file's of that name.
func (s *Spec) Outcomes(p *Permutation) []Outcome { return s.outcomes(p) }

func (s *Spec) outcomes(p *Permutation) []Outcome {
	all := define(s.lines("outcome", nil))
	if p == nil {
		return all
	}
	own := &Spec{Directives: p.Directives}
	for _, o := range define(own.lines("outcome", nil)) {
		if i := slices.IndexFunc(all, func(x Outcome) bool { return x.Name == o.Name }); i >= 0 {
			all[i] = o
		} else {
			all = append(all, o)
		}
	}
	return all
}

func define(ds []Directive) []Outcome {
	var all []Outcome
	for _, d := range ds {
		c, err := ParseCondition(d.Value)
		if err != nil {
			continue // Parse refuses it
		}
		if i := slices.IndexFunc(all, func(o Outcome) bool { return o.Name == d.Name }); i >= 0 {
			all[i].Condition = and(all[i].Condition, c)
		} else {
			all = append(all, Outcome{Name: d.Name, Condition: c})
		}
	}
	return all
}
