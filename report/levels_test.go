package report

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/level"
)

// TestBrokenLevel: where a level is broken and there is no finding, no format says that nothing was found.
func TestBrokenLevel(t *testing.T) {
	verdicts := []level.Verdict{{Level: "causal", State: level.Broken, Witness: &level.Witness{Class: "G-single-process"}}, {Level: "PL-3", State: level.Satisfied}}
	for _, tt := range []struct {
		levels          *Levels
		undecided       string
		nothing         bool
		failures, error int
	}{
		{nil, "", true, 0, 0},
		{&Levels{Verdicts: verdicts[1:], Strongest: []string{"PL-3"}}, "", true, 0, 0},
		{&Levels{Verdicts: verdicts[1:], Strongest: []string{"PL-3"}, Asked: "PL-3"}, "", true, 0, 0},
		{&Levels{Verdicts: verdicts, Weakest: []string{"causal"}}, "", false, 0, 0},
		{&Levels{Verdicts: verdicts, Weakest: []string{"causal"}, Asked: "PL-3"}, "", false, 0, 0},
		{&Levels{Verdicts: verdicts, Weakest: []string{"causal"}, Asked: "causal"}, "", false, 1, 0},
		{&Levels{Verdicts: verdicts, Asked: "PL-3", Unsure: "a key was not seen"}, "", true, 0, 1},
		{&Levels{Verdicts: verdicts, Asked: "PL-3"}, "it is cut off", false, 0, 2}, // the level and all else
		{&Levels{Verdicts: verdicts, Asked: "PL-2"}, "", true, 0, 1},
	} {
		r := Result{Levels: tt.levels, Undecided: tt.undecided}
		var text, markdown, junit strings.Builder
		for w, write := range map[*strings.Builder]func() error{
			&text: func() error { return Summary(&text, r) }, &markdown: func() error { return Markdown(&markdown, r) }, &junit: func() error { return JUnit(&junit, r) },
		} {
			if err := write(); err != nil {
				t.Fatal(w.String(), err)
			}
		}
		for _, s := range []string{text.String(), markdown.String()} {
			if strings.Contains(s, "nothing found") != tt.nothing || (tt.levels != nil) != strings.Contains(s, "strongest level satisfied") {
				t.Errorf("%+v: %s", tt.levels, s)
			}
		}
		if strings.Count(junit.String(), "<failure") != tt.failures || !strings.Contains(junit.String(), fmt.Sprintf("failures=\"%d\"", tt.failures)) || strings.Count(junit.String(), "<error") != tt.error ||
			tt.error > 0 && !strings.Contains(junit.String(), fmt.Sprintf("errors=\"%d\"", tt.error)) {
			t.Errorf("%+v: %s", tt.levels, junit.String())
		}
	}
}

// TestTimeline: the statements of a transaction stand between its beginning and its end, also where only these have a time.
func TestTimeline(t *testing.T) {
	one := func(label string, from, to, at uint64) oracle.Transaction {
		return oracle.Transaction{Label: label, From: from, To: to, Outcome: history.OutcomeCommitted,
			Statements: []oracle.Statement{{N: 1, SQL: "r x", To: at}, {N: 2, SQL: "w x", To: at}}}
	}
	for _, tt := range []struct {
		transactions []oracle.Transaction
		want         string
	}{
		{[]oracle.Transaction{one("T1", 3, 4, 0), one("T2", 1, 2, 0)}, "T2 begin, T2.1 r x, T2.2 w x, T2 commit, T1 begin, T1.1 r x, T1.2 w x, T1 commit"},
		{[]oracle.Transaction{one("T1", 1, 5, 3), one("T2", 2, 6, 4)}, "T1 begin, T2 begin, T1.1 r x, T1.2 w x, T2.1 r x, T2.2 w x, T1 commit, T2 commit"},
		{[]oracle.Transaction{one("T1", 0, 0, 0)}, "T1.1 r x, T1.2 w x"}, // no times at all
	} {
		var b strings.Builder
		timeline(&b, &oracle.Finding{Transactions: tt.transactions})
		var lines []string
		for _, line := range strings.Split(strings.TrimSpace(b.String()), "\n")[1:] {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if got := strings.Join(lines, ", "); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
