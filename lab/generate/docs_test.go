package generate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/generate"
)

var update = flag.Bool("update", false, "write the feature table of docs/reference/generation.md")

const (
	document   = "../../docs/reference/generation.md"
	tableBegin = "<!-- features -->\n"
	tableEnd   = "<!-- end of features -->"
)

// TestDocument: the table of docs/reference/generation.md is the code's; TestOnServers shows that each line of it is true.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	got, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no table between %q and %q", document, tableBegin, tableEnd)
	}
	want := featureTable()
	if *update {
		if err := os.WriteFile(document, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-code +document; go test ./lab/generate -run Document -update writes it):\n%s", document, diff)
	}
}

func featureTable() string {
	var b strings.Builder
	where := ""
	for _, f := range generate.AllFeatures() {
		if f.Where != where {
			where = f.Where
			fmt.Fprintf(&b, "\n### %s\n\n| feature | what | PostgreSQL | MariaDB | MySQL | TiDB | SQLite |\n|---|---|---|---|---|---|---|\n", where)
		}
		name := "`" + f.Name + "`"
		if f.OptIn {
			name += " (on demand)"
		}
		fmt.Fprintf(&b, "| %s | %s |", name, strings.ReplaceAll(f.What, "|", `\|`))
		for _, d := range generate.Dialects() {
			fmt.Fprintf(&b, " %s |", map[bool]string{true: "yes", false: "-"}[f.In(d)])
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}
