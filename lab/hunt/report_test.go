package hunt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// TestHTML: the page of a hunt is an index of its folder, with the smallest case of each bug; a case that cannot be read is said.
func TestHTML(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "troc-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "troc-1", "case.spec"), []byte("step q { SELECT '<b>' }"), 0o600); err != nil {
		t.Fatal(err)
	}
	finding := func(id string) *oracle.Finding {
		return &oracle.Finding{ID: id, Class: oracle.Troc, Name: oracle.NameResult, Kind: oracle.KindViolation, Difference: &oracle.Difference{Rule: "the view says so"}}
	}
	r := Report{dir: dir, line: "60 cases", Bugs: []*Bug{
		{Folder: "troc-1", Engine: "mariadb", Version: "10.11", Level: "read committed", Seen: 2, Finding: finding("WC-00000a")},
		{Folder: "gone", Engine: "mariadb", Finding: finding("WC-00000b")},
	}}
	var b strings.Builder
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 distinct bugs", "60 cases", "Bug of the server (2)", "MariaDB 10.11 at read committed, seen 2 times", filepath.Join(dir, "troc-1", "reproduce.sh"), "step q { SELECT &#39;&lt;b&gt;&#39; }",
		"the view says so", filepath.Join(dir, "gone", "case.spec") + ": no such file",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
