package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// lostUpdates is a history in which each pair of a read and a write lost an update, as one program with many statements does it.
func lostUpdates(first int, reads, writes []string) string {
	var b strings.Builder
	n := first
	for _, read := range reads {
		for _, write := range writes {
			fmt.Fprintf(&b, "s1 t%d begin \"read committed\"\ns2 t%d begin \"read committed\"\n", n, n+1)
			fmt.Fprintf(&b, "t%d r public.x.%d@0 -- %s\n", n, n, read)
			fmt.Fprintf(&b, "t%d w public.x.%d 0>1 -- %s\nt%d commit\n", n+1, n, write, n+1)
			fmt.Fprintf(&b, "t%d w public.x.%d 1>2 -- %s\nt%d commit\n", n, n, write, n)
			n += 2
		}
	}
	return b.String()
}

const twoSessions = "s1 session postgres \"15.4\"\ns2 session postgres \"15.4\"\n"

// TestGroups: what one program does in many ways is one thing to mend, in all forms; another program's is another one.
func TestGroups(t *testing.T) {
	var reads, writes []string
	for i := range 9 {
		reads = append(reads, fmt.Sprintf("SELECT a%d, x.* FROM x WHERE id = 1", i))
		writes = append(writes, fmt.Sprintf("UPDATE x SET a%d = 1 WHERE id = 1", i))
	}
	text := twoSessions + lostUpdates(1, reads, writes)
	r := Result{Findings: findings(t, text)}
	if len(r.Findings) < 80 {
		t.Fatalf("%d findings: the test says nothing", len(r.Findings))
	}
	forms := map[string]string{}
	for _, format := range Formats {
		var b bytes.Buffer
		if err := Write(&b, r, format); err != nil {
			t.Fatal(err)
		}
		forms[format] = b.String()
	}
	var suite JUnitSuite
	if err := xml.Unmarshal([]byte(forms["junit"]), &suite); err != nil || suite.Failures != 1 || len(suite.Cases) != 1 {
		t.Errorf("JUnit: %v, %d failures, %d cases", err, suite.Failures, len(suite.Cases))
	}
	var log sarifLog
	if err := json.Unmarshal([]byte(forms["sarif"]), &log); err != nil || len(log.Runs[0].Results) != 1 || log.Runs[0].Results[0].Occurrences != 81 {
		t.Errorf("SARIF: %v, %+v", err, log.Runs)
	}
	var doc struct {
		Groups   []jsonGroup
		Findings []oracle.Finding
	}
	if err := json.Unmarshal([]byte(forms["json"]), &doc); err != nil || len(doc.Groups) != 1 || len(doc.Groups[0].Variants) != len(doc.Findings) || doc.Groups[0].Seen != 81 {
		t.Errorf("JSON: %v, %+v", err, doc.Groups)
	}
	if n := strings.Count(forms["text"], "\n"); n > 50 || !strings.Contains(forms["text"], "found: 1 (violations: 0, anomalies: 1), in 81 variants\n") ||
		!strings.Contains(forms["text"], "And 80 more variants, which have statements in common with it or with each other; seen 81x together:\n    WC-") {
		t.Errorf("%d lines:\n%s", n, forms["text"])
	}
	_, more, _ := strings.Cut(forms["text"], "seen 81x together:\n")
	checks := map[string]bool{}
	for _, line := range strings.Split(more, "\n")[:5] {
		_, check, _ := strings.Cut(strings.TrimSpace(line), "  ")
		checks[check] = true
	}
	if len(checks) != 5 || !strings.Contains(more, "\n    and 75 more\n") {
		t.Errorf("variants that read by other statements come first: %s", more)
	}
	if !strings.Contains(forms["markdown"], "wirecheck: 1 found") || !strings.Contains(forms["markdown"], "(81 variants, seen 81x)") {
		t.Error(forms["markdown"])
	}

	// Another program has no statement in common, and so has one that only writes otherwise named columns.
	other := findings(t, text+lostUpdates(1001, []string{"SELECT b FROM x"}, []string{"UPDATE x SET b = 1"})+lostUpdates(2001, []string{"SELECT c FROM x"}, []string{"UPDATE x SET c = 1"}))
	list := oracle.Groups(other)
	if len(list) != 3 || len(list[0].Findings) != 81 || len(list[1].Findings) != 1 {
		t.Errorf("%d groups", len(list))
	}
	other = slices.Clone(other)
	slices.Reverse(other)
	if again := oracle.Groups(other); len(again) != 3 || again[2].First().ID != list[0].First().ID {
		t.Error("in another order there are other groups")
	}
}

// TestOverview: of many groups a text gives an overview that fits on a screen, violations first.
func TestOverview(t *testing.T) {
	text := twoSessions
	for i := range 30 {
		text += lostUpdates(100*i+1, []string{fmt.Sprintf("SELECT a%d FROM x", i)}, []string{fmt.Sprintf("UPDATE x SET a%d = 1", i)})
	}
	list := findings(t, text)
	list[28].Kind, list[29].Kind = oracle.KindUnknown, oracle.KindViolation
	var b bytes.Buffer
	if err := Write(&b, Result{Findings: list}, "text"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) > 26 || !strings.HasPrefix(lines[0], "VIOLATION: LOST UPDATE  "+list[29].ID) || !strings.Contains(b.String(), "\n... and 20 more\n") ||
		!strings.Contains(b.String(), "found: 30 (violations: 1, anomalies: 28, unknown: 1)\n") {
		t.Error(b.String())
	}
}
