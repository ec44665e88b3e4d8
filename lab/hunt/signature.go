package hunt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/radar"
	"wirecheck/statement"
)

// coarseSignature says which findings of unreduced cases are probably the same: the oracle's class, what differs, and the verb of
// the statement that differs, and the cause if the oracle names one.
func coarseSignature(f *oracle.Finding) string {
	verb := ""
	if f.Difference != nil {
		verb, _, _ = strings.Cut(strings.TrimSpace(strings.ToUpper(f.Difference.SQL)), " ")
	}
	cause := ""
	if f.Difference != nil {
		cause = f.Difference.Cause
	}
	return strings.Join([]string{string(f.Class), f.Name, verb, cause}, "|")
}

// signature says which reduced cases show the same bug, whatever the names and values.
//
// wss-tx and wss-stmt, whose rules are the two definitions of WriteCheck, see the same bug in two ways. Where an oracle has recognised the cause, it
// is the cause, whichever oracle it was. Elsewhere it is the same oracle, class and rule, the same abstract metadata, and the same features of the statements
// (Radar, section 4.1). Of transactions only what is special about them counts: whether reduction left BEGIN or ROLLBACK, or two statements of a
// kind, says nothing about the bug. A function that has another type in each database is the bug, whatever stands around it.
func signature(d engine.Descriptor, small *scenario.Spec, f *oracle.Finding) string {
	difference := cmp.Or(f.Difference, &oracle.Difference{})
	if difference.Cause != "" { // the oracle knows the bug: by whatever means it shows, it is that one
		return "cause-" + strings.ReplaceAll(difference.Cause, " ", "-")
	}
	if function := difference.Function(); function != "" {
		return fmt.Sprintf("%s-type-%s", f.Oracle, function)
	}
	view := []string{string(f.Class), panel.WithoutNames(difference.Rule, small)}
	if f.Class == oracle.WSSTx || f.Class == oracle.WSSStmt {
		view = nil
	}
	parts := slices.Concat(view, []string{f.Name, metadata(d, small)}, keywords(d, small))
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%s-%s", f.Oracle, hex.EncodeToString(sum[:6]))
}

// metadata is the abstract metadata of a case.
func metadata(d engine.Descriptor, spec *scenario.Spec) string {
	var setup []string
	for _, b := range spec.Setup {
		setup = append(setup, b.SQL)
	}
	return radar.Abstract(setup, radar.Options{Describe: panel.Describer(d), Define: panel.Definer(d)})
}

// marks are words within a statement that make another bug of it, and functions.
var marks = regexp.MustCompile(`(?i)\b(IGNORE|DUPLICATE KEY|DO NOTHING|DO UPDATE|RETURNING|LEFT|RIGHT|FULL|CROSS|NATURAL|JOIN|STRAIGHT_JOIN|UNION|EXCEPT|INTERSECT|DISTINCT|GROUP BY|HAVING|ORDER BY|LIMIT|` +
	`FOR UPDATE|FOR SHARE|LOCK IN SHARE MODE|SKIP LOCKED|NOWAIT|EXISTS|IN|ANY|ALL|BETWEEN|LIKE|IS NULL|IS NOT NULL|IS|CASE|CAST|OVER|WITH|LATERAL|ROW|COLLATE|` +
	`OPTIMISTIC|PESSIMISTIC|CONSISTENT SNAPSHOT|READ ONLY|DEFERRABLE|SAVEPOINT|PREPARE)\b|[A-Za-z_]+\(|\(\s*SELECT\b`)

// keywords are the kinds of statements of a case's steps and the words in them that matter, sorted; each once.
func keywords(d engine.Descriptor, spec *scenario.Spec) (list []string) {
	describe := panel.Describer(d)
	for _, session := range spec.Sessions {
		for _, st := range session.Steps {
			statements, err := describe(st.SQL)
			if err != nil { // what is not understood counts as it is written
				list = append(list, strings.ToLower(st.SQL))
				continue
			}
			for i := range statements {
				verb := ""
				if statements[i].Control.Verb == statement.ControlNone {
					verb = statements[i].Verb
					list = append(list, verb)
				}
				for _, m := range marks.FindAllString(hints.ReplaceAllString(statements[i].Text, ""), -1) {
					if word := strings.ReplaceAll(strings.Join(strings.Fields(strings.ToLower(m)), " "), "( ", "("); !plainWords[word] {
						list = append(list, strings.TrimSpace(verb+" "+word))
					}
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// hints are advice to an optimizer: it chooses the plan in which a bug shows, and is not the bug.
var hints = regexp.MustCompile(`(?s)/\*\+.*?\*/`)

// plainWords look like functions and are none.
var plainWords = map[string]bool{"values(": true, "as(": true, "and(": true, "or(": true, "not(": true, "in(": true, "on(": true, "t(": true}

// hallmark finds the words of a case that may matter to a bug, functions, and the types of constants (DATE '2024-01-02').
var hallmark = regexp.MustCompile(`(?i)\b(?:DATE|TIME|TIMESTAMP)\s*'|\b(PRIMARY KEY|UNIQUE|INDEX|KEY|NOT NULL|GENERATED|VIRTUAL|STORED|PARTITION|FOREIGN KEY|REFERENCES|CHECK|AUTO_INCREMENT|ENUM|SET|JSON|BLOB|TEXT|CHAR|VARCHAR|BINARY|` +
	`DECIMAL|NUMERIC|FLOAT|DOUBLE|REAL|DATE|DATETIME|TIMESTAMP|TIME|YEAR|BIT|BOOLEAN|UNSIGNED|COLLATE|VIEW|` +
	`BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|INSERT|REPLACE|UPDATE|DELETE|SELECT|IGNORE|DUPLICATE|CONFLICT|JOIN|UNION|EXCEPT|INTERSECT|DISTINCT|GROUP BY|HAVING|LIMIT|FOR UPDATE|FOR SHARE|LOCK IN SHARE MODE|` +
	`SKIP LOCKED|NOWAIT|EXISTS|IN|ANY|ALL|SOME|BETWEEN|LIKE|IS|CASE|CAST|OVER|WITH|OPTIMISTIC|CONSISTENT SNAPSHOT|READ ONLY)\b|[A-Za-z_]+\(`)

// rows are row constructors without the word ROW: a list in parentheses that is compared, and no arguments of a function.
var rows = regexp.MustCompile(`(?i)(?:[=<>!(,]|\b(?:WHERE|AND|OR|NOT|ON|HAVING|WHEN|THEN|SELECT))\s*\([^()]*,[^()]*\)\s*(?:[=<>!]|\b(?:NOT|IN|IS)\b)`)

// members are quantified comparisons that ask whether a value is in a set (SQL:2016, part 2, 8.4: IN is = ANY).
var members = regexp.MustCompile(`(?i)(^|[^<>!=])(?:=\s*(?:ANY|SOME)|(?:<>|!=)\s*ALL)\b`)

// hallmarks are the features of a case's setup and of statements, sorted.
func hallmarks(spec *scenario.Spec, statements []string) []string {
	features := map[string]bool{}
	note := func(where, sql string) {
		sql = members.ReplaceAllString(sql, "$1 IN")
		for _, m := range hallmark.FindAllString(hints.ReplaceAllString(sql, ""), -1) {
			word := strings.ReplaceAll(strings.Join(strings.Fields(strings.ToLower(m)), " "), " '", "'")
			if word == "any" || word == "some" {
				word = "all" // one quantifier is the other one of the opposite
			}
			features[where+word] = true
		}
		if rows.MatchString(sql) {
			features[where+"row("] = true
		}
	}
	for _, b := range spec.Setup {
		note("setup ", b.SQL)
	}
	for _, sql := range statements {
		note("", sql)
	}
	return slices.Sorted(maps.Keys(features))
}

// explains reports whether the bug may be what a query's finding shows: it has all that the reduced bug needs. The finding's case need
// not be reduced; of its statements only the one that differs counts, as if each query were asked alone.
func (b *Bug) explains(spec *scenario.Spec, f *oracle.Finding) bool {
	if b.Finding == nil || b.Finding.Class != f.Class || b.Finding.Name != f.Name || f.Difference == nil || b.Finding.Difference == nil {
		return false
	}
	if function := f.Difference.Function(); function != "" && function == b.Finding.Difference.Function() {
		return true
	}
	has := hallmarks(spec, []string{f.Difference.SQL})
	return !slices.ContainsFunc(b.Hallmarks, func(s string) bool { return !slices.Contains(has, s) })
}

// shownBy reports whether a case that could be smaller shows the bug: it has all that the reduced bug needs, and breaks the same rule.
func (b *Bug) shownBy(spec *scenario.Spec, f *oracle.Finding) bool {
	return b.explains(spec, f) && b.Finding.Difference.Rule == f.Difference.Rule
}

// same reports whether a finding of a single query, with these hallmarks, is the bug: its query and its tables have the same ones. How a column gets
// its values is none, except for radar, which is about that, nor is a view between the query and its table. A primary key is NOT NULL. Where a function or a JSON
// value is wrong in a condition, joins say in which rows it shows. The oracles of
// conditions see one bug each in its own way; radar sees the same one where all hallmarks are the same, and the query has a special one. An error is that of another finding if the server says the same, but for values and names.
func (b *Bug) same(f *oracle.Finding, marks []string) bool {
	if !panel.AsksQueries(f.Oracle) || b.Finding == nil || b.Finding.Name != f.Name {
		return false
	}
	if b.Finding.Class != f.Class && !(conditions[b.Finding.Class] && conditions[f.Class]) {
		return (beside(b.Finding, f) || beside(f, b.Finding)) && slices.Equal(b.Hallmarks, marks) && slices.ContainsFunc(marks, special)
	}
	if f.Difference != nil && b.Finding.Difference != nil && (f.Difference.Origin != "" || b.Finding.Difference.Origin != "") {
		return f.Difference.Function() == b.Finding.Difference.Function()
	}
	if text := refusal(f); text != "" && text == refusal(b.Finding) {
		return true
	}
	matter := func(list []string) []string {
		list = slices.DeleteFunc(slices.Clone(list), func(mark string) bool { return f.Class != oracle.Radar && fillers[mark] })
		if at := slices.Index(list, "setup primary key"); at >= 0 {
			list[at] = "setup not null"
		}
		function := slices.ContainsFunc(list, func(mark string) bool {
			return !observers[mark] && strings.HasSuffix(mark, "(") && !strings.HasPrefix(mark, "setup ")
		})
		if conditions[f.Class] && (function || slices.Contains(list, "setup json")) { // a join brings the rows, and the NULL of an outer one
			list = slices.DeleteFunc(list, func(mark string) bool { return mark == "join" })
		}
		if function {
			list = slices.DeleteFunc(list, func(mark string) bool { return observers[mark] || types[mark] || strings.HasSuffix(mark, "'") })
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	return slices.Equal(matter(b.Hallmarks), matter(marks))
}

// beside reports whether one finding is radar's and the other one that of an oracle of conditions.
func beside(f, other *oracle.Finding) bool { return f.Class == oracle.Radar && conditions[other.Class] }

// special reports whether a hallmark says what a query does, and not only that it is one.
func special(mark string) bool { return mark != "select" && !strings.HasPrefix(mark, "setup ") }

// refusal is the error that one side of a finding has, without values and names; empty: there is none, or both have one.
func refusal(f *oracle.Finding) string {
	if f.Name != oracle.NameError || f.Difference == nil {
		return ""
	}
	var errors []string
	for _, side := range []oracle.Side{f.Difference.Expected, f.Difference.Observed} {
		if number, message, is := strings.Cut(side.Text, ": "); is && strings.HasPrefix(number, "error ") {
			errors = append(errors, number+": "+said.ReplaceAllString(message, "?"))
		}
	}
	if len(errors) != 1 {
		return ""
	}
	return errors[0]
}

// said are the values and names in the message of an error.
var said = regexp.MustCompile(`'[^']*'|"[^"]*"|` + "`[^`]*`" + `|[-0-9.]*[0-9]`)

// conditions are the classes of what is found in the condition of a single query.
var conditions = map[oracle.Class]bool{oracle.TLP: true, oracle.NoREC: true, oracle.DQE: true}

// observers are hallmarks that show a wrong value, where a function is there that may have made it.
var observers = map[string]bool{"hex(": true, "greatest(": true, "least(": true, "concat(": true, "length(": true, "in": true, "between": true, "like": true}

// types are hallmarks of columns' types. Where a function is wrong, they say in which values it shows, and so do those of constants.
var types = map[string]bool{
	"setup enum": true, "setup json": true, "setup blob": true, "setup text": true, "setup char": true, "setup varchar": true, "setup binary": true, "setup decimal": true,
	"setup numeric": true, "setup float": true, "setup double": true, "setup real": true, "setup date": true, "setup datetime": true, "setup timestamp": true,
	"setup time": true, "setup year": true, "setup bit": true, "setup boolean": true, "setup unsigned": true, "setup varchar(": true, "setup char(": true, "setup decimal(": true,
}

// fillers are hallmarks that say how columns get their values.
var fillers = map[string]bool{"setup generated": true, "setup virtual": true, "setup stored": true, "setup set": true, "setup as(": true, "setup values(": true, "setup insert": true,
	"setup view": true, "setup select": true}
