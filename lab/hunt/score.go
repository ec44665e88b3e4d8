package hunt

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"wirecheck/history/prose"
	"wirecheck/lab/generate"
	"wirecheck/lab/panel"
	"wirecheck/oracle"
)

// score is what one oracle said of the cases at one level.
type score struct {
	Cases     int `json:"cases"`
	Compared  int `json:"compared,omitempty"` // queries that it asked in two ways
	Unknown   int `json:"unknown,omitempty"`
	Findings  int `json:"findings,omitempty"`
	Flaky     int `json:"flaky,omitempty"`
	Permitted int `json:"permitted,omitempty"`
}

// scores are those of a hunt, by level and oracle.
type scores map[string]map[string]*score

func (t scores) of(level, name string) *score {
	if t[level] == nil {
		t[level] = map[string]*score{}
	}
	if t[level][name] == nil {
		t[level][name] = &score{}
	}
	return t[level][name]
}

// count adds an oracle's findings.
func (t *score) count(findings []oracle.Finding) {
	for i := range findings {
		switch f := &findings[i]; {
		case f.Kind == oracle.KindPermitted, f.Kind == oracle.KindAnomaly && !f.Promised:
			t.Permitted++
		case f.Difference != nil && f.Difference.Flaky:
			t.Flaky++
		default:
			t.Findings++
		}
	}
}

// tell counts what the oracles said of a case.
func (s *State) tell(k *generate.Case, d *panel.Judgement, level string) {
	if d.Judged {
		t := s.Scores.of(level, panel.IsolationName)
		t.Cases++
		t.count(d.Isolation.Findings)
		s.Exact, s.Inexact = s.Exact+d.Isolation.Coverage.Exact, s.Inexact+d.Isolation.Coverage.Approximate+d.Isolation.Coverage.Opaque
	}
	for _, v := range d.Rulings {
		t := s.Scores.of(level, v.Oracle)
		t.Cases++
		t.Compared += v.Compared
		t.count(v.Findings)
		if v.Unknown != "" {
			t.Unknown++
			s.Reasons[v.Oracle+": "+general(k, v.Unknown)]++
		}
	}
}

// words finds what may be a name.
var words = regexp.MustCompile(`\w+`)

// general takes names and texts of a case out of a reason, so that reasons can be counted.
func general(k *generate.Case, reason string) string {
	texts := map[string]bool{}
	for _, b := range k.Spec.Setup {
		texts[b.SQL] = true
	}
	names := map[string]string{}
	for _, st := range k.Order {
		texts[st.SQL] = true
		names[st.Name] = "STEP"
	}
	for _, s := range k.Sessions {
		names[s.Name] = "SESSION"
	}
	for _, t := range k.Database.Tables {
		names[t.Name] = "TABLE"
		for _, c := range t.Columns {
			names[c.Name] = "COLUMN"
		}
	}
	for _, v := range k.Database.Views {
		names[v.Name] = "VIEW"
	}
	for _, sql := range slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) {
		reason = strings.ReplaceAll(reason, sql, "SQL")
	}
	return words.ReplaceAllStringFunc(reason, func(w string) string { return cmp.Or(names[w], w) })
}

// print writes the scores as a table, and the reasons, the most frequent ones first.
func (s *State) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "level\toracle\tcases\tqueries\tfindings\tpermitted\tflaky\tunknown")
	for _, level := range slices.Sorted(maps.Keys(s.Scores)) {
		for _, name := range strings.Split(panel.OracleNames(), ", ") {
			if t := s.Scores[level][name]; t != nil {
				fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", level, name, t.Cases, t.Compared, t.Findings, t.Permitted, t.Flaky, t.Unknown)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if n := s.Exact + s.Inexact; n > 0 {
		fmt.Fprintf(w, "%s: %.0f%% of statements seen exactly\n", panel.IsolationName, 100*float64(s.Exact)/float64(n))
	}
	s.unknown(w)
	return nil
}

// mostReasons bounds how many reasons an oracle gives for what it could not decide: some name a statement.
const mostReasons = 15

// unknown writes how often each oracle could not decide, and why, the most frequent reasons first.
func (s *State) unknown(w io.Writer) {
	for _, name := range strings.Split(panel.OracleNames(), ", ") {
		var all score
		for _, t := range s.Scores {
			if t[name] != nil {
				all.Cases += t[name].Cases
				all.Unknown += t[name].Unknown
			}
		}
		if all.Unknown == 0 {
			continue
		}
		fmt.Fprintf(w, "unknown, %s: %d of %s (%.1f%%)\n", name, all.Unknown, prose.Count(all.Cases, "case"), 100*float64(all.Unknown)/float64(all.Cases))
		why := map[string]int{}
		for key, n := range s.Reasons {
			if reason, its := strings.CutPrefix(key, name+": "); its {
				why[reason] += n
			}
		}
		reasons := slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(why[b]-why[a], strings.Compare(a, b)) })
		for _, reason := range reasons[:min(len(reasons), mostReasons)] {
			fmt.Fprintf(w, "  %d: %s\n", why[reason], reason)
		}
		if more := len(reasons) - mostReasons; more > 0 {
			fmt.Fprintf(w, "  %s, in state.json\n", prose.Count(more, "more reason"))
		}
	}
}
