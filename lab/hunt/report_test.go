package hunt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/lab/scenario"
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

// TestSpelled: a report names statements, and not the steps that its script does not have. Near misses: other words, and steps of another case.
func TestSpelled(t *testing.T) {
	spec, err := scenario.Parse("c.spec", []byte("session s1\nstep s1_1 { SELECT 1 }\nstep s1_10 { DELETE FROM t }\npermutation s1_1 s1_10\n"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"s1 in s1_1 read t a=0 as it was before s1 in s1_10 wrote it (rw)": "s1 (SELECT 1) read t a=0 as it was before s1 (DELETE FROM t) wrote it (rw)",
		"s1_10 of session s1 (torn): it waited":                            "DELETE FROM t of session s1 (torn): it waited",
		"s1 in s2_1 read t":                                                "s1 in s2_1 read t",
		"a row in t, and s1_1 alone":                                       "a row in t, and s1_1 alone",
	} {
		if got := spelled(line, spec); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// TestHeadline: a title has its statement as code, which no tracker changes.
func TestHeadline(t *testing.T) {
	f := &oracle.Finding{Name: oracle.NameResult, Difference: &oracle.Difference{SQL: "SELECT a FROM t WHERE a > 1 AND b_c < 2"}}
	if got, want := headline(f), "different result: `SELECT a FROM t WHERE a > 1 AND b_c < 2`"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHeadlineOfParts: a title names no statement as the one that is wrong where nobody knows which one is.
func TestHeadlineOfParts(t *testing.T) {
	for _, test := range []struct {
		name  string
		wrong bool
		want  string
	}{
		{oracle.NameResult, false, "answers that contradict each other: `SELECT a FROM t WHERE p`"},
		{oracle.NameResult, true, "different result: `SELECT a FROM t WHERE p`"},
		{oracle.NameError, false, "error on one side only: `SELECT a FROM t WHERE p`"},
	} {
		f := &oracle.Finding{Name: test.name, Difference: &oracle.Difference{SQL: "SELECT a FROM t WHERE p", Parts: []oracle.Part{{SQL: "SELECT a FROM t"}, {SQL: "SELECT a FROM t WHERE p", Wrong: test.wrong}}}}
		if got := headline(f); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestOpinion: a third opinion's query is code, so that its characters stay as they are; what is none is text.
func TestOpinion(t *testing.T) {
	for text, want := range map[string]string{
		"the condition's values, computed for each row by SELECT (a <= 1) FROM t_1: true for 0, false for 1, NULL for 0": "the condition's values, computed for each row by `SELECT (a <= 1) FROM t_1`: true for 0, false for 1, NULL for 0",
		"the condition's values, computed for each row by SELECT t.wc_dqe_id, (a < 1) FROM t":                            "the condition's values, computed for each row by `SELECT t.wc_dqe_id, (a < 1) FROM t`",
		"the two other statements, which agree": "the two other statements, which agree",
	} {
		if got := opinion(&oracle.Difference{Opinion: text}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
