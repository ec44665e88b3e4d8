package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// maxWhole is how many groups a text shows whole; of more it gives an overview, of maxListed at most. Both fit on a screen.
const (
	maxWhole  = 5
	maxListed = 10
)

// group is a group of findings with what the reports print of it.
type group struct {
	oracle.Group
	f oracle.Finding // the one that stands for it, printable
}

// groups puts the findings of a result into groups.
func groups(findings []oracle.Finding) []group {
	var out []group
	for _, g := range oracle.Groups(findings) {
		for i := range g.Tables {
			g.Tables[i] = prose.Printable(g.Tables[i])
		}
		out = append(out, group{g, Printable(*g.First())})
	}
	return out
}

// variants are up to so many other findings of the group: first those that read by another statement than the ones before them.
func (g *group) variants(most int) (list []*oracle.Finding) {
	var same []*oracle.Finding
	seen := map[string]bool{g.f.Check(): true}
	for _, f := range g.Findings[1:] {
		if c := f.Check(); seen[c] {
			same = append(same, f)
		} else {
			seen[c] = true
			list = append(list, f)
		}
	}
	list = append(list, same...)
	return list[:min(most, len(list))]
}

// count is how often the group was seen, where it has several variants.
func (g *group) count() string {
	if len(g.Findings) == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d variants, seen %dx)", len(g.Findings), g.Seen)
}

// text writes the group whole: the finding that stands for it, and which others there are.
func (g *group) text(w io.Writer, k Look) {
	k.finding(w, &g.f, 0)
	others := len(g.Findings) - 1
	if others == 0 {
		return
	}
	fmt.Fprintln(w)
	k.line(w, "  ", "  ", fmt.Sprintf("And %s, which have statements in common with it or with each other; seen %dx together:", prose.Count(others, "more variant"), g.Seen))
	const most = 5
	for _, v := range g.variants(most) {
		f := Printable(*v)
		text := Headline(&f)
		if i := f.Stale(); i >= 0 {
			if s := statement(&f, f.Edges[i].From, f.Edges[i].FromStatement); s != nil {
				text = prose.Statement(s.SQL, prose.Width-15)
			}
		}
		fmt.Fprintf(w, "    %s  %s\n", f.ID, text)
	}
	if others > most {
		fmt.Fprintf(w, "    and %d more\n", others-most)
	}
}

// overview lists groups, violations first and then those that were seen most: two lines each.
func (k Look) overview(w io.Writer, list []group) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b group) int {
		if v := a.f.Kind == oracle.KindViolation; v != (b.f.Kind == oracle.KindViolation) {
			if v {
				return -1
			}
			return 1
		}
		return b.Seen - a.Seen
	})
	for i := range list {
		if i == maxListed {
			fmt.Fprintf(w, "... and %d more\n", len(list)-i)
			break
		}
		g := &list[i]
		fmt.Fprintf(w, "%s  %s · %s · seen %dx · %s\n", heading(&g.f, k.Color), g.f.ID, prose.Count(len(g.Findings), "variant"), g.Seen, prose.Line(tableList(g.Tables), 60))
		k.line(w, "  ", "  ", capital((&teller{f: &g.f}).sentence())+".")
	}
	fmt.Fprintln(w, "One of them whole: wirecheck explain ID FILE, of a recorded history. All: --format json")
}

// tableList names the first tables of many.
func tableList(tables []string) string {
	const most = 3
	if len(tables) <= most {
		return strings.Join(tables, ", ")
	}
	return fmt.Sprintf("%s and %d more tables", strings.Join(tables[:most-1], ", "), len(tables)-most+1)
}

// jsonGroup is a group in JSON.
type jsonGroup struct {
	ID       string      `json:"id"` // of the finding that stands for it
	Kind     oracle.Kind `json:"kind"`
	Title    string      `json:"title"`
	Sentence string      `json:"sentence"`
	Tables   []string    `json:"tables"`
	Seen     int         `json:"seen"`
	Variants []string    `json:"variants"` // the ids of all
}

func jsonGroups(findings []oracle.Finding) []jsonGroup {
	var out []jsonGroup
	for _, g := range oracle.Groups(findings) {
		f := g.First()
		j := jsonGroup{ID: f.ID, Kind: f.Kind, Title: f.Title(), Sentence: Headline(f), Tables: g.Tables, Seen: g.Seen}
		for _, v := range g.Findings {
			j.Variants = append(j.Variants, v.ID)
		}
		out = append(out, j)
	}
	return out
}
