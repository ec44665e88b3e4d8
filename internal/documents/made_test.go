package documents

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/product"
)

var update = flag.Bool("update", false, "write the documents that are made from the code")

// made compares a document with what the code makes of it; -update writes it.
func made(t *testing.T, path, want string) {
	t.Helper()
	path = filepath.Join(root, path)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the code makes (-code +document; make docs writes it):\n%s", path, diff)
	}
}

// cell writes a text into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const anomaliesHead = `# Anomalies and their codes

<!-- make docs writes this page from package anomaly -->

This page lists what wirecheck reports: the formal name, the everyday name, the formula and the codes of the warning.

A PostgreSQL client gets the SQLSTATE. It counts as a warning and obeys ` + "`client_min_messages`" + `. A MariaDB or MySQL client gets
the code: it counts in "1 warning", and ` + "`SHOW WARNINGS`" + ` lists it.

In the formulas, ww, wr and rw are the [dependencies](glossary.md#dependencies) between two transactions. A suffix ` + "`-process`" + ` or
` + "`-realtime`" + ` means that the cycle needs session order or real time; wirecheck reports these with ` + "`--strict`" + ` only.

| class | name | formula | SQLSTATE | code | source |
|---|---|---|---|---|---|
`

// TestAnomaliesDocument: docs/reference/anomalies.md is the list of package anomaly.
func TestAnomaliesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(anomaliesHead)
	for _, a := range anomaly.List {
		name := a.Name
		if name == "" {
			name = "(others)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | 01WC%d | %d | %s |\n", a.Class, name, cell(a.Formula), a.Digit, 51000+a.Digit, cell(a.Source))
	}
	b.WriteString(formsHead)
	for _, class := range anomaly.Cycles {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", form(class), form(class+anomaly.SuffixProcess), form(class+anomaly.SuffixRealtime))
	}
	b.WriteString("\n## In histories of keys and values\n\nOnly [histories of other checkers](foreign-formats.md) show these:\n\n| class | formula | source |\n|---|---|---|\n")
	for _, a := range anomaly.Inferred {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Class, cell(a.Formula), cell(a.Source))
	}
	b.WriteString("\n## Names in the proofs of levels\n\nThe lines of `check` on [levels](../explain/isolation.md#levels-of-the-literature) name some cycles more precisely:\n\n| name | class | cycle | formula | source |\n|---|---|---|---|---|\n")
	for _, s := range anomaly.Shapes {
		if s.Formula != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.Name, s.Class, s.Edges, cell(s.Formula), cell(s.Source))
		}
	}
	b.WriteString("\n## Remedies\n\nEach finding lists its remedies, cheapest first. The last one is a stronger level, where the product has one that prevents the anomaly.\n\n")
	for _, a := range anomaly.List {
		if len(a.Remedies) == 0 || a.Name == "" {
			continue
		}
		fmt.Fprintf(&b, "**%s** (%s)\n\n", a.Name, a.Class)
		for _, r := range oracle.Remedies(product.Of(""), &oracle.Finding{Class: a.Class, Name: a.Name}) {
			fmt.Fprintf(&b, "- %s", r.Text)
			if r.Cost != "" {
				b.WriteString("; " + r.Cost)
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	made(t, "docs/reference/anomalies.md", strings.TrimSuffix(b.String(), "\n"))
}

const formsHead = `
## With session order and real time

Each class of cycles has three forms. Each form has a cycle of the same shape, in which edges of session order (so), or of these and real time (rt),
may stand where the plain form has a ww or wr. wirecheck reports a form only where no plainer form is found. Strong session levels
forbid the second form, strong snapshot isolation and strict serializability both. The other classes are no cycles and have one form.

| plain | session order | real time |
|---|---|---|
`

// form is a form of a class, with the names that it has.
func form(class anomaly.Class) string {
	var names []string
	for _, s := range anomaly.Shapes {
		if s.Class == class && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	for _, a := range anomaly.List {
		if a.Class == class && a.Name != "" && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return string(class)
	}
	return string(class) + ": " + strings.Join(names, ", ")
}

const levelsHead = `# Levels and promises

<!-- make docs writes this page from package product -->

This page lists what each product promises at each isolation level, and what its statements see and lock. wirecheck judges by these
rows alone. A product, level or rule without a row is unknown to it.

An anomaly that a level promises to prevent is a *violation*: a bug of the DBMS. Any other one is an *anomaly* that the level lets
through. A level's own page in the vendor's manual may promise more; wirecheck holds it to the row here, whose source is beside it.

`

var phenomena = []anomaly.Phenomenon{anomaly.PG0, anomaly.PInternal, anomaly.PFuture, anomaly.PDirtyUpdate, anomaly.PG1a, anomaly.PG1b, anomaly.PG1c, anomaly.POTV, anomaly.P4, anomaly.PGSingle, anomaly.PGNonadjacent, anomaly.PG2Item, anomaly.PPMP, anomaly.PG2}

// TestLevelsDocument: docs/reference/levels.md is what package product has.
func TestLevelsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(levelsHead)
	for _, p := range product.All() {
		writeProduct(&b, p)
	}
	b.WriteString(`## Names

- OTV: observed transaction vanishes. P4: lost update. PMP: predicate-many-preceders, a phantom. [Anomalies and their codes](anomalies.md) defines all of them.
- V2: all versions. V3: versions that are committed when the statement runs. V4: versions of the transaction's snapshot. A transaction
  always sees its own versions (Troc, table II).
- The first row that fits a level and a statement counts. "All others" are the statements that no row before names.
- Locked tables are those that the statement locks or writes; read tables are the others, as in a subquery.
`)
	made(t, "docs/reference/levels.md", b.String())
}

func writeProduct(b *strings.Builder, p *product.Product) {
	fmt.Fprintf(b, "## %s\n\n### Promises of %s\n\n| level | gives |", p.Title, p.Title)
	for _, ph := range phenomena {
		fmt.Fprintf(b, " %s |", ph)
	}
	fmt.Fprintf(b, " source |\n|---|---|%s---|\n", strings.Repeat("---|", len(phenomena)))
	for _, l := range p.Levels {
		title := p.LevelTitle(l.History)
		if l.SQL == p.Default {
			title += " (default)"
		}
		fmt.Fprintf(b, "| %s | %s |", title, l.Gives.Name)
		for _, ph := range phenomena {
			fmt.Fprintf(b, " %s |", map[bool]string{true: "prevents", false: "-"}[l.Gives.Prevents(ph)])
		}
		fmt.Fprintf(b, " %s |\n", cell(l.Source))
	}
	levels := func(names []string) string {
		if names == nil {
			return "all"
		}
		var titles []string
		for _, n := range names {
			titles = append(titles, p.LevelTitle(n))
		}
		return strings.Join(titles, ", ")
	}
	kinds := func(kinds []product.Kind) string {
		if kinds == nil {
			return "all others"
		}
		var names []string
		for _, k := range kinds {
			names = append(names, k.String())
		}
		return strings.Join(names, ", ")
	}
	if len(p.Views) > 0 {
		fmt.Fprintf(b, "\n### What statements of %s see\n\n| level | statements | locked tables | read tables | source |\n|---|---|---|---|---|\n", p.Title)
		for _, v := range p.Views {
			fmt.Fprintf(b, "| %s | %s | V%d | V%d | %s |\n", levels(v.Levels), kinds(v.Kinds), v.Locked, v.Read, cell(v.Source))
		}
	}
	if len(p.Locks) > 0 {
		fmt.Fprintf(b, "\n### What statements of %s lock\n\n| level | statements | mode | gaps too | source |\n|---|---|---|---|---|\n", p.Title)
		for _, l := range p.Locks {
			mode := [...]string{"none", "KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"}[l.Mode]
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", levels(l.Levels), kinds(l.Kinds), mode, map[bool]string{true: "yes", false: "-"}[l.Predicate], cell(l.Source))
		}
	}
	if len(p.Errors) > 0 {
		fmt.Fprintf(b, "\n### Errors of %s\n\nAny other code is the statement's own fault.\n\n| codes | reason | may succeed when repeated | ends |\n|---|---|---|---|\n", p.Title)
		for _, e := range p.Errors {
			ends, codes := "-", strings.Join(e.Codes, ", ")
			if len(e.Says) > 0 {
				codes += `, saying "` + strings.Join(e.Says, `" or "`) + `"`
			}
			switch {
			case e.Class.Gone:
				ends = "the connection"
			case e.Class.Aborts:
				ends = "the transaction"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", codes, e.Class.Reason, map[bool]string{true: "yes", false: "-"}[e.Class.Retry], ends)
		}
	}
	if len(p.Causes) > 0 {
		fmt.Fprintf(b, "\n### Known departures of %s\n\nA confirmed one is a bug. Any other one is documented or intended, and wirecheck calls it permitted.\n\n", p.Title)
		b.WriteString("| cause | kind | what happens | source |\n|---|---|---|---|\n")
		causes := slices.Clone(p.Causes)
		slices.SortStableFunc(causes, func(a, b product.Cause) int {
			return strings.Compare(strings.ToLower(string(a.ID)), strings.ToLower(string(b.ID)))
		})
		for _, c := range causes {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", c.ID, map[bool]string{true: "bug", false: "permitted"}[c.Confirmed], cell(c.Reason), cell(c.Source))
		}
	}
	b.WriteString("\n")
}
