package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/oracle"
	"wirecheck/scenario"
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

// marks are words of a statement that make another bug of it.
var marks = regexp.MustCompile(`(?i)\b(PRIMARY KEY|UNIQUE|INDEX|KEY|NOT NULL|GENERATED|VIRTUAL|STORED|PARTITION|FOREIGN KEY|REFERENCES|CHECK|AUTO_INCREMENT|ENUM|SET|JSON|BLOB|TEXT|CHAR|VARCHAR|BINARY|` +
	`DECIMAL|NUMERIC|FLOAT|DOUBLE|REAL|DATE|DATETIME|TIMESTAMP|TIME|YEAR|BIT|BOOLEAN|UNSIGNED|COLLATE|VIEW|` +
	`BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|INSERT|REPLACE|UPDATE|DELETE|SELECT|IGNORE|DUPLICATE|CONFLICT|JOIN|UNION|EXCEPT|INTERSECT|DISTINCT|GROUP BY|HAVING|LIMIT|FOR UPDATE|FOR SHARE|LOCK IN SHARE MODE|` +
	`SKIP LOCKED|NOWAIT|EXISTS|IN|ANY|ALL|BETWEEN|LIKE|IS|CASE|CAST|OVER|WITH|OPTIMISTIC|CONSISTENT SNAPSHOT|READ ONLY)\b|[A-Za-z_]+\(`)

// signature says which reduced cases show the same bug: the same oracle and rule, and the same features of schema and statements
// (Radar, section 4.1: the same abstract metadata and the same keywords), whatever the names and values; or the same known cause.
func signature(small *scenario.Spec, f *oracle.Finding) string {
	list := []string{string(f.Class), f.Name}
	if f.Difference != nil && f.Difference.Cause != "" { // the oracle knows the bug: by whatever means it shows, it is that one
		return fmt.Sprintf("%s-%s", f.Oracle, strings.ReplaceAll(f.Difference.Cause, " ", "-"))
	}
	var steps []string
	for _, ps := range small.Permutations[0].Steps {
		steps = append(steps, ps.Step.SQL)
	}
	sum := sha256.Sum256([]byte(strings.Join(append(list, hallmarks(small, steps)...), "\x00")))
	return fmt.Sprintf("%s-%s", f.Class, hex.EncodeToString(sum[:6]))
}

// hallmarks are the features of a case's setup and of statements, sorted.
func hallmarks(spec *scenario.Spec, statements []string) []string {
	features := map[string]bool{}
	note := func(where, sql string) {
		for _, m := range marks.FindAllString(sql, -1) {
			features[where+strings.Join(strings.Fields(strings.ToLower(m)), " ")] = true
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
func (b *keptBug) explains(spec *scenario.Spec, f *oracle.Finding) bool {
	if b.Finding == nil || b.Finding.Class != f.Class || b.Finding.Name != f.Name || f.Difference == nil || b.Finding.Difference == nil {
		return false
	}
	has := hallmarks(spec, []string{f.Difference.SQL})
	return !slices.ContainsFunc(b.Hallmarks, func(s string) bool { return !slices.Contains(has, s) })
}

// bugReport is the text for an issue tracker.
func bugReport(s *site, spec *scenario.Spec, b *keptBug) string {
	var w strings.Builder
	f := b.Finding
	fmt.Fprintf(&w, "# %s %s: %s at %s\n\n", s.engine.Title, s.version, f.Title(), oracle.LevelName(s.engine.Name, b.Level))
	fmt.Fprintf(&w, "## Version and settings\n\n%s %s, every session at %s", s.engine.Title, s.version, oracle.LevelName(s.engine.Name, b.Level))
	if s.server != nil {
		fmt.Fprintf(&w, "; a private server with wirecheck's settings for labs:")
		for _, name := range slices.Sorted(maps.Keys(s.engine.LabSettings)) {
			fmt.Fprintf(&w, " `%s=%s`", name, s.engine.LabSettings[name])
		}
	}
	fmt.Fprintf(&w, ".\n\n## How to repeat\n\n```sql\n")
	for _, block := range spec.Setup {
		fmt.Fprintf(&w, "/* setup */ %s;\n", block.SQL)
	}
	for _, session := range spec.Sessions {
		if session.Setup != nil {
			fmt.Fprintf(&w, "/* %s */ %s;\n", session.Name, session.Setup.SQL)
		}
	}
	for _, ps := range spec.Permutations[0].Steps {
		fmt.Fprintf(&w, "/* %s */ %s;\n", spec.Sessions[ps.Step.Session].Name, ps.Step.SQL)
	}
	for _, sql := range spec.Finals() {
		fmt.Fprintf(&w, "/* at the end */ %s;\n", sql)
	}
	fmt.Fprintf(&w, "```\n\nThe statements are submitted in this order; one that waits goes on as soon as it can.\n\n")
	p := printer{out: new(bytes.Buffer)}
	if f.Difference != nil {
		d := f.Difference
		if d.Step != "" {
			fmt.Fprintf(&w, "The statement that differs: `%s` (%s)\n\n", strings.Join(strings.Fields(d.SQL), " "), d.Session)
		}
		p.side("Expected", d.Expected)
		p.side("Observed", d.Observed)
		fmt.Fprintf(&w, "```\n%s```\n\n## Why it is wrong\n\n%s\n", p.out.String(), d.Rule)
		if len(d.Reference) > 0 {
			fmt.Fprintf(&w, "\nWhat is expected is what these statements give, one after the other:\n\n```sql\n%s\n```\n", strings.Join(d.Reference, "\n"))
		}
	} else {
		fmt.Fprintf(&w, "## Why it is wrong\n\n%s (%s), which the level promises to prevent (%s):\n\n", f.Title(), f.Class, f.Source)
		for _, e := range f.Edges {
			fmt.Fprintf(&w, "- %s\n", e.Text)
		}
	}
	if d := f.Difference; d != nil && d.Reason != "" {
		fmt.Fprintf(&w, "\nWhat probably happens: %s.", strings.TrimSuffix(d.Reason, "."))
		if f.Source != "" {
			fmt.Fprintf(&w, " Compare %s.", f.Source)
		}
		fmt.Fprintln(&w)
	}
	fmt.Fprintf(&w, "\nFound by wirecheck, oracle %s. `reproduce.sh` shows it with one command.\n", f.Oracle)
	return w.String()
}
