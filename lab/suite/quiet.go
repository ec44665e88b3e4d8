package suite

import (
	"fmt"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/lab/panel"
)

// quietly decides which permutations of a scenario are shown (--quiet), and says which ones found something.
type quietly struct {
	on                    bool
	found, wrong, unknown []int // by their numbers
}

// shows reports whether a permutation is shown: with quiet, the first of each kind.
func (q *quietly) shows(r *panel.CaseReport) bool {
	if !q.on {
		return true
	}
	first := false
	for _, kind := range []struct {
		is   bool
		list *[]int
	}{{len(r.Found)+len(r.Broken) > 0, &q.found}, {len(r.Wrong) > 0, &q.wrong}, {r.Unknown != "" || r.Crashed, &q.unknown}} {
		if kind.is {
			first = first || len(*kind.list) == 0
			*kind.list = append(*kind.list, r.N)
		}
	}
	return first
}

// text says in which permutations there was something.
func (q *quietly) text(run int) string {
	if !q.on {
		return ""
	}
	var lines []string
	for _, kind := range []struct {
		what string
		list []int
	}{{"found", q.found}, {"not as expected", q.wrong}, {"unknown", q.unknown}} {
		if len(kind.list) > 0 {
			lines = append(lines, prose.Wrap(fmt.Sprintf("%s in %s of %d", kind.what, numbers(kind.list), run), 80, "", "  "))
		}
	}
	if len(lines) == 0 {
		return "nothing found in " + prose.Count(run, "permutation")
	}
	return strings.Join(lines, "\n")
}

// numbers lists permutations: 5, 6, 7, or 5 to 14 where many follow each other.
func numbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if k-i < 3 {
			k = i
			parts = append(parts, fmt.Sprint(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", list[i], list[k]))
		}
		i = k + 1
	}
	if len(list) == 1 {
		return "permutation " + parts[0]
	}
	return "permutations " + strings.Join(parts, ", ")
}
