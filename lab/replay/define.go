package replay

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends/engine"
)

// Definitions are the statements that make a database without its rows: those in front of rows, and those behind them (indexes, foreign
// keys, triggers), as a dump has them.
type Definitions struct {
	Before, After []string
}

// Add adds a definition where it belongs. What watches over rows, or refers to those of other tables, comes behind them.
func (d *Definitions) Add(sql string) {
	if behind.MatchString(sql) {
		d.After = append(d.After, sql)
		return
	}
	if finalView.MatchString(sql) { // mysqldump makes something of that name first, so that other views can refer to it
		name := newDefined(sql).name
		d.Before = slices.DeleteFunc(d.Before, func(old string) bool { return placeholder.MatchString(old) && newDefined(old).name == name })
	}
	d.Before = append(d.Before, sql)
}

var (
	finalView   = regexp.MustCompile(`(?is)^\s*create\b.{0,200}?\bview\b`)
	placeholder = regexp.MustCompile(`(?is)^\s*create\b.{0,200}?\b(view|table)\b`)
)

// watches begins the definition of what belongs to a table.
const watches = `^\s*create\s+(?:or\s+replace\s+)?(?:(?:unique|fulltext|spatial|constraint|definer\s*=\s*\S+)\s+)*(?:trigger|rule|policy|index)\b`

var behind = regexp.MustCompile(`(?is)` + watches + `|^\s*alter\s+table\b.*\badd\s+(constraint|foreign|primary|unique|check|index|key)\b` +
	`|^\s*alter\s+table\b.*\b(enable|disable|force)\b.*\b(trigger|rule|row\s+level)\b`)

// Of gives those of the definitions that statements need which hold these words, with the names that they define. What defines no name
// (settings, extensions, schemas) is needed by all. A name is needed if a statement, or a definition that is needed, holds it as a
// word, be it in a string (the body of a function, the name of a sequence): too much rather than too little.
func (d Definitions) Of(used map[string]bool) (part Definitions, names map[string]bool) {
	all := make([]defined, 0, len(d.Before)+len(d.After))
	for _, sql := range slices.Concat(d.Before, d.After) {
		all = append(all, newDefined(sql))
	}
	need := map[string]bool{}
	for w := range used {
		need[w] = true
	}
	taken := make([]bool, len(all))
	for grown := true; grown; {
		grown = false
		for i, o := range all {
			if taken[i] || !o.needed(need) {
				continue
			}
			taken[i], grown = true, true
			for w := range o.words {
				need[w] = true
			}
		}
	}
	names = map[string]bool{}
	for i, o := range all {
		if !taken[i] {
			continue
		}
		names[o.name] = true
		if i < len(d.Before) {
			part.Before = append(part.Before, d.Before[i])
		} else {
			part.After = append(part.After, d.After[i-len(d.Before)])
		}
	}
	return part, names
}

// defined is what a definition is about.
type defined struct {
	name  string   // of what it makes; empty: nothing that can be named
	of    []string // what it belongs to: it is needed if that is
	words map[string]bool
}

func (o *defined) needed(need map[string]bool) bool {
	if o.name == "" && o.of == nil {
		return true
	}
	return o.name != "" && need[o.name] || slices.ContainsFunc(o.of, func(name string) bool { return need[name] })
}

const nameForm = "((?:\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|[\\w$]+)(?:\\s*\\.\\s*(?:\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|[\\w$]+))*)"

var (
	makesName = regexp.MustCompile(`(?is)^\s*create\b(?:\s+or\s+replace)?.{0,200}?\b(?:table|materialized\s+view|view|sequence|type|domain|function|procedure|aggregate|event|collation|text\s+search\s+\w+)\s+(?:if\s+not\s+exists\s+)?` + nameForm)
	belongs   = regexp.MustCompile(`(?is)` + watches + `.*?\b(?:on|to)\s+(?:only\s+)?` + nameForm)
	changes   = regexp.MustCompile(`(?is)^\s*(?:alter|drop|truncate|rename|comment\s+on)\s+(?:(?:table|column|view|materialized\s+view|sequence|type|domain|function|procedure|trigger|index|statistics)\s+)*(?:only\s+|if\s+exists\s+)*` + nameForm)
	child     = regexp.MustCompile(`(?is)\b(?:partition\s+of|inherits\s*\()\s*` + nameForm)
	general   = regexp.MustCompile(`(?is)^\s*(?:create|alter|drop|comment\s+on)\s+(?:schema|extension|database|role|language|cast|operator|server)\b`)
)

func newDefined(sql string) defined {
	o := defined{words: words(sql)}
	switch {
	case general.MatchString(sql):
	case belongs.MatchString(sql):
		o.of = []string{lastName(belongs.FindStringSubmatch(sql)[1])}
	case makesName.MatchString(sql):
		o.name = lastName(makesName.FindStringSubmatch(sql)[1])
		for _, m := range child.FindAllStringSubmatch(sql, -1) {
			o.of = append(o.of, lastName(m[1]))
		}
	case changes.MatchString(sql):
		o.of = []string{lastName(changes.FindStringSubmatch(sql)[1])}
	}
	if o.name == "" && o.of == nil {
		o.words = nil // it is needed by all, and nothing by it
	}
	return o
}

// lastName is a name without what it is in, as words has it.
func lastName(name string) string {
	parts := strings.Split(name, ".")
	return strings.ToLower(strings.Trim(strings.TrimSpace(parts[len(parts)-1]), "\"`"))
}

// words are the names that a text may hold, whatever stands around them.
func words(sql string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(sql), func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80
	}) {
		set[w] = true
	}
	return set
}

// words are those of the group's statements.
func (g *Group) words() map[string]bool {
	all := map[string]bool{}
	for _, u := range g.Units {
		for _, s := range u.Steps {
			for w := range words(s.SQL) {
				all[w] = true
			}
		}
	}
	for _, sql := range g.Queries {
		maps.Copy(all, words(sql))
	}
	return all
}

// Needed gives those of the tables whose rows are the group's state.
func (g *Group) Needed(tables []engine.Table, defs Definitions) []engine.Table {
	used := g.words()
	_, names := defs.Of(used)
	return slices.DeleteFunc(slices.Clone(tables), func(t engine.Table) bool { return !names[bare(t.Name)] && !used[bare(t.Name)] })
}

// bare is a table's name without its schema, as statements' tables are compared.
func bare(name string) string {
	if _, after, ok := strings.Cut(name, "."); ok {
		name = after
	}
	return strings.ToLower(name)
}
