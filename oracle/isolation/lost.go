package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/statement"
	"wirecheck/trace/lex"
)

// Lost is how often statements of one shape were not seen exactly, or their conditions not judged, for one reason.
type Lost struct {
	Shape    string           `json:"shape"` // see statement.Shape
	Verb     string           `json:"verb,omitempty"`
	Coverage history.Coverage `json:"coverage,omitempty"`
	Why      string           `json:"why,omitempty"`
	Count    int              `json:"count"`
}

// lostKey tells one Lost from another.
type lostKey struct {
	shape, verb, why string
	coverage         history.Coverage
}

const (
	maxLost      = 2000 // shapes and reasons that are told apart
	maxLostShape = 4096 // bytes of a shape
	maxLostSQL   = 8192 // bytes of a text of which a shape is made
	otherShapes  = "(other statements)"
)

// lost counts the statements that were not seen exactly by shape and reason; nil: nobody asks.
type lost map[lostKey]int

// inexact counts a statement that was not seen exactly.
func (l lost) inexact(e *history.Event, d lex.Dialect) {
	if e.Coverage == history.CoverageApproximate || e.Coverage == history.CoverageOpaque {
		l.add(e, d, e.Coverage, e.Why)
	}
}

// add counts a statement.
func (l lost) add(e *history.Event, d lex.Dialect, coverage history.Coverage, why string) {
	if l == nil {
		return
	}
	k := keyOf(e, d, coverage, why)
	if _, known := l[k]; !known && len(l) >= maxLost {
		k = lostKey{shape: otherShapes, why: why, coverage: coverage}
		if _, known := l[k]; !known && len(l) >= 2*maxLost {
			k.why = ""
		}
	}
	l[k]++
}

// drop takes back a statement whose conditions were not judged.
func (l lost) drop(e *history.Event, d lex.Dialect, why string) {
	if l == nil {
		return
	}
	k := keyOf(e, d, "", why)
	if _, known := l[k]; !known {
		k = lostKey{shape: otherShapes, why: why}
	}
	if l[k]--; l[k] <= 0 {
		delete(l, k)
	}
}

func keyOf(e *history.Event, d lex.Dialect, coverage history.Coverage, why string) lostKey {
	sql := e.SQL
	if len(sql) > maxLostSQL {
		sql = sql[:maxLostSQL]
	}
	k := lostKey{prose.Cut(statement.Shape(sql, d), maxLostShape), e.Verb, why, coverage}
	if k.shape == "" {
		k.shape = k.verb
	}
	return k
}

// list gives the shapes and reasons, the most frequent first.
func (l lost) list() []Lost {
	out := make([]Lost, 0, len(l))
	for k, n := range l {
		out = append(out, Lost{k.shape, k.verb, k.coverage, k.why, n})
	}
	slices.SortFunc(out, func(a, b Lost) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Why, b.Why), strings.Compare(a.Shape, b.Shape), strings.Compare(string(a.Coverage), string(b.Coverage)),
			strings.Compare(a.Verb, b.Verb))
	})
	return out
}

const (
	explainWidth   = 80
	explainReasons = 15 // that Explain names
	explainShapes  = 5  // that it names of each reason
	explainLines   = 3  // of each shape
)

// Explain says which statements were not seen exactly, and of which the condition was not judged, and why: the reasons with the shapes of their
// statements, the most frequent first. Its lines are at most 80 columns wide.
func (v Coverage) Explain() string {
	var b strings.Builder
	all, missed := v.Exact+v.Approximate+v.Opaque, v.Approximate+v.Opaque
	if all == 0 {
		return "No statement was seen.\n"
	}
	switch {
	case missed > 0:
		fmt.Fprintf(&b, "Not seen exactly: %d of %s (%s).\n", missed, prose.Count(all, "statement"), share(missed, all))
		explain(&b, v.Lost, all)
	case all == 1:
		fmt.Fprintln(&b, "The one statement was seen exactly.")
	default:
		fmt.Fprintf(&b, "All %d statements were seen exactly.\n", all)
	}
	if left := v.Unevaluated(); left > 0 {
		asked := left + v.Predicates
		fmt.Fprintf(&b, "\nCondition not judged: %d of %s that chose rows by one (%s).\n", left, prose.Count(asked, "statement"), share(left, asked))
		explain(&b, v.Conditions, asked)
	}
	return b.String()
}

// explain lists reasons and shapes; all is of how many statements.
func explain(b *strings.Builder, list []Lost, all int) {
	reasons := byReason(list)
	for i, r := range reasons {
		if i == explainReasons {
			fmt.Fprintf(b, "\nand %s (--format json has them)\n", prose.Count(len(reasons)-i, "more reason"))
			break
		}
		fmt.Fprintln(b)
		why := cmp.Or(r[0].Why, "no reason was recorded")
		if r[0].Coverage != "" {
			why = fmt.Sprintf("%s: %s", r[0].Coverage, why)
		}
		wrap(b, fmt.Sprintf("%6s %6d  ", share(times(r), all), times(r)), why, explainLines)
		for k, s := range r {
			if k == explainShapes {
				fmt.Fprintf(b, "%15d    %s\n", times(r[k:]), prose.Count(len(r)-k, "more shape"))
				break
			}
			wrap(b, fmt.Sprintf("%15d    ", s.Count), s.Shape, explainLines)
		}
	}
}

// byReason puts together what was lost for the same reason, the most frequent reason first.
func byReason(list []Lost) [][]Lost {
	place := map[lostKey]int{}
	var out [][]Lost
	for _, l := range list {
		k := lostKey{why: l.Why, coverage: l.Coverage}
		i, ok := place[k]
		if !ok {
			i = len(out)
			place[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	slices.SortStableFunc(out, func(a, b []Lost) int { return times(b) - times(a) })
	return out
}

func times(list []Lost) (n int) {
	for _, l := range list {
		n += l.Count
	}
	return n
}

// share is n of all in percent.
func share(n, all int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(all, 1))) }

// wrap writes a text in so many lines of 80 columns at most, the first one behind head. Of a longer text the middle is left out: what a
// statement selects comes first and says least, how it selects comes last.
func wrap(b *strings.Builder, head, text string, lines int) {
	room := explainWidth - len(head)
	r := []rune(prose.Line(text, len(text)))
	if most := room * lines; len(r) > most {
		begin := most / 3
		r = slices.Concat(r[:begin], []rune(" … "), r[len(r)-(most-begin-3):])
	}
	for len(r) > room {
		cut := room
		for cut > room-16 && r[cut] != ' ' && r[cut-1] != ',' {
			cut--
		}
		if r[cut] != ' ' && r[cut-1] != ',' {
			cut = room
		}
		fmt.Fprintf(b, "%s%s\n", head, strings.TrimSpace(string(r[:cut])))
		head = strings.Repeat(" ", len(head))
		r = []rune(strings.TrimLeft(string(r[cut:]), " "))
	}
	fmt.Fprintf(b, "%s%s\n", head, string(r))
}
