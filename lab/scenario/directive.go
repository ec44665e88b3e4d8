package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"wirecheck/anomaly"
	"wirecheck/product"
)

// Directive is a line #wirecheck: KEY NAME[ENGINES: LEVELS]: VALUE.
type Directive struct {
	Pos   Pos
	Key   string
	Name  string   // of an outcome; else empty
	Only  Selector // where it holds; empty: everywhere
	Value string
}

func (d Directive) String() string {
	text := d.Key
	if d.Name != "" {
		text += " " + d.Name
	}
	return text + d.Only.String() + ": " + d.Value
}

// key says how a directive of that key is written.
type key struct {
	name     string
	named    bool // has a name: outcome NAME
	selector bool // may have [...]
	once     bool // once in a file
	local    bool // may stand before a permutation
	what     string
	check    func(value string) error
}

// keys are all there are.
func keys() []key {
	return []key{
		{name: "engine", local: true, what: "the engines that it is meant for", check: checkList(checkEngine)},
		{name: "level", local: true, what: "the levels that it is meant for", check: checkList(checkLevel)},
		{name: "expect", selector: true, local: true, what: "what the oracles find", check: checkExpect},
		{name: "verdict", selector: true, local: true, what: "what each oracle says", check: checkVerdict},
		{name: "observe", selector: true, local: true, what: "which outcome the results show", check: checkList(checkObserve)},
		{name: "outcome", named: true, local: true, what: "a condition over the results", check: func(v string) error {
			_, err := ParseCondition(v)
			return err
		}},
		{name: "oracle", what: "the oracles that judge it", check: checkList(checkWord)},
		{name: "seed", once: true, what: "the seed of random permutations", check: func(v string) error {
			_, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return fmt.Errorf("found %q, expected a whole number from 0 to 18446744073709551615", v)
			}
			return nil
		}},
		{name: "permutations", once: true, what: "which permutations are run", check: func(v string) error {
			_, err := ParsePermutations(v)
			return err
		}},
		{name: "final", what: "a query that is run when all steps are done", check: checkSQL},
		{name: "raw", what: "a statement that sets up the twin without optional metadata", check: checkSQL},
	}
}

// The names that directives take. judgeNames stand for whatever these oracles find.
var (
	engineNames = namesOf(product.All(), func(p *product.Product) string { return p.Name })
	classNames  = namesOf(anomaly.List, func(a anomaly.Anomaly) string { return string(a.Class) })
	usualNames  = namesOf(anomaly.List, func(a anomaly.Anomaly) string { return a.Name })
	// verdictKinds are those of oracle.Kind.
	verdictKinds = []string{"violation", "anomaly", "permitted", "unknown"}
	judgeNames   = []string{"wss-tx", "wss-stmt", "troc", "overblocking", "txcheck", "radar", "tlp", "norec", "dqe", "serial", "crash"}
)

// namesOf lists what things are called, each once.
func namesOf[T any](things []T, name func(T) string) (list []string) {
	for _, x := range things {
		if n := name(x); n != "" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

func oneOf(what string, names []string, found string) error {
	if slices.Contains(names, found) {
		return nil
	}
	return fmt.Errorf("found the %s %q, expected one of: %s", what, found, strings.Join(names, ", "))
}

func checkLevel(v string) error { return oneOf("level", product.LevelNames, v) }

// checkEngine accepts a product, or a product and the beginning of its version: "mysql", "mysql 8".
func checkEngine(v string) error {
	name, version, hasVersion := strings.Cut(v, " ")
	if hasVersion && strings.ContainsAny(version, " []:,") {
		return fmt.Errorf("found %q after the engine, expected the beginning of a version, such as: mysql 8", version)
	}
	return oneOf("engine", engineNames, name)
}

func checkWord(v string) error {
	if v == "" || strings.ContainsAny(v, " \t[]:\"") {
		return fmt.Errorf("found %q, expected one word", v)
	}
	return nil
}

func checkExpect(v string) error {
	names := list(v)
	if slices.Contains(names, "none") && len(names) > 1 {
		return fmt.Errorf("found none beside others; none stands alone")
	}
	return checkList(func(name string) error {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "-process"), "-realtime")
		if name == "none" || slices.Contains(classNames, base) {
			return nil
		}
		return oneOf("anomaly", slices.Concat([]string{"none"}, usualNames, classNames, judgeNames), name)
	})(v)
}

// checkVerdict accepts "nothing", or for each oracle that says something else its name, the kind of what it says, and more.
func checkVerdict(v string) error {
	if v == "nothing" {
		return nil
	}
	for _, said := range statements(v) {
		oracle, rest, _ := strings.Cut(said, " ")
		kind, _, _ := strings.Cut(rest, " ")
		if oracle == "" || !slices.Contains(verdictKinds, kind) {
			return fmt.Errorf("found %q, expected nothing, or ORACLE KIND CAUSE with one of the kinds %s", said, strings.Join(verdictKinds, ", "))
		}
	}
	return nil
}

// statements splits a verdict at its semicolons.
func statements(v string) []string {
	all := strings.Split(v, ";")
	for i := range all {
		all[i] = strings.Join(strings.Fields(all[i]), " ")
	}
	return all
}

func checkObserve(v string) error { return checkWord(strings.TrimPrefix(v, "not ")) }

func checkSQL(v string) error {
	if v == "" {
		return fmt.Errorf("found nothing, expected a statement")
	}
	return nil
}

func checkList(check func(string) error) func(string) error {
	return func(v string) error {
		for _, item := range list(v) {
			if item == "" {
				return fmt.Errorf("found an empty place in the list; names are separated by one comma")
			}
			if err := check(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// list splits at commas.
func list(v string) []string {
	items := strings.Split(v, ",")
	for i := range items {
		items[i] = strings.Join(strings.Fields(items[i]), " ")
	}
	return items
}

// directive reads what stands after #wirecheck: and keeps it until it is known whose it is.
func (p *parser) directive(text string, pos Pos) {
	d, err := parseDirective(text)
	if err != nil {
		p.fail(pos, "#wirecheck: %v", err)
		return
	}
	d.Pos = pos
	p.pending = append(p.pending, d)
}

func parseDirective(text string) (Directive, error) {
	var d Directive
	text = strings.Trim(text, " \t\r\f\v")
	end := strings.IndexAny(text, "[:")
	if end < 0 {
		return d, fmt.Errorf("found %q, expected KEY: VALUE; keys are %s", text, keyNames())
	}
	words := strings.Fields(text[:end])
	rest := text[end:]
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		only, after, closed := strings.Cut(inner, "]")
		if !closed {
			return d, fmt.Errorf("the [ is not closed; expected KEY[ENGINES: LEVELS]: VALUE")
		}
		sel, err := parseSelector(only)
		if err != nil {
			return d, err
		}
		d.Only = sel
		rest = strings.TrimLeft(after, " \t\f\v")
	}
	value, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return d, fmt.Errorf("found %q, expected a colon and the value", rest)
	}
	d.Value = strings.Trim(value, " \t\r\f\v")
	if len(words) == 0 {
		return d, fmt.Errorf("found no key before %q; keys are %s", text[end:], keyNames())
	}
	d.Key, d.Name = words[0], strings.Join(words[1:], " ")
	return d, checkForm(d)
}

// checkForm says what is wrong with a directive whatever else is in the file.
func checkForm(d Directive) error {
	all := keys()
	i := slices.IndexFunc(all, func(k key) bool { return k.name == d.Key })
	if i < 0 {
		return fmt.Errorf("unknown key %q; keys are %s", d.Key, keyNames())
	}
	k := all[i]
	switch {
	case k.named && (d.Name == "" || strings.Contains(d.Name, " ") || d.Name == "not" || strings.Contains(d.Name, ",")):
		return fmt.Errorf("found %q, expected one word as name: %s NAME: ...", d.Key+" "+d.Name, k.name)
	case !k.named && d.Name != "":
		return fmt.Errorf("found %q after %s, expected a colon or [", d.Name, k.name)
	case !k.selector && !d.Only.empty():
		return fmt.Errorf("%s has no [...]: it tells %s", k.name, k.what)
	}
	if err := k.check(d.Value); err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	return nil
}

func keyNames() string {
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// checkDirective says what is wrong with a directive at its place.
func (p *parser) checkDirective(d Directive, file bool) {
	all := keys()
	k := all[slices.IndexFunc(all, func(k key) bool { return k.name == d.Key })]
	if !file && !k.local {
		p.fail(d.Pos, "#wirecheck: %s tells %s for the whole file; put an empty line between it and the permutation", d.Key, k.what)
		return
	}
	if k.once {
		for _, other := range p.spec.Directives {
			if other.Key == d.Key && other.Pos.Line < d.Pos.Line {
				p.fail(d.Pos, "#wirecheck: a second %s, the first is in line %d; remove one", d.Key, other.Pos.Line)
				return
			}
		}
	}
	if d.Key != "outcome" || len(p.lex.problems) > 0 {
		return
	}
	c, _ := ParseCondition(d.Value)
	for _, name := range c.Steps() {
		if p.spec.Step(name) == nil && !p.spec.isFinal(name) {
			p.fail(d.Pos, "#wirecheck: outcome %s names the step %s, which does not exist; the queries of final lines are final, or final1, final2, ...", d.Name, quoteName(name))
		}
	}
}

// checkObserved sees to it that observe names outcomes that exist.
func (p *parser) checkObserved() {
	check := func(ds []Directive, perm *Permutation) {
		for _, d := range ds {
			if d.Key != "observe" {
				continue
			}
			for _, name := range list(d.Value) {
				name = strings.TrimPrefix(name, "not ")
				known := func(o Outcome) bool { return o.Name == name }
				if !slices.ContainsFunc(p.spec.outcomes(perm), known) && !p.definedSomewhere(name) {
					p.fail(d.Pos, "#wirecheck: observe names the outcome %q, which no outcome line defines", name)
				}
			}
		}
	}
	check(p.spec.Directives, nil)
	for _, perm := range p.spec.Permutations {
		check(perm.Directives, perm)
	}
}

// definedSomewhere: a line for the whole file may name an outcome that each permutation defines for itself.
func (p *parser) definedSomewhere(name string) bool {
	return slices.ContainsFunc(p.spec.Permutations, func(perm *Permutation) bool {
		return slices.ContainsFunc(perm.Directives, func(d Directive) bool { return d.Key == "outcome" && d.Name == name })
	})
}
