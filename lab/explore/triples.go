package explore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/history/prose"
	"wirecheck/lab/replay"
	"wirecheck/product"
)

// Some anomalies take three transactions: at snapshot isolation, any two of SmallBank's are serializable, and the three of its dangerous structure
// are not (Alomari, Cahill, Fekete and Röhm, ICDE 2008, section III).

// mostTriples is how many triples are executed: those whose units name most of the same rows.
const mostTriples = 60

// triples lists what three shapes may do to each other: a cycle of three transactions needs a table that is shared, and written by one of them,
// between each two. A shape may be there twice, or three times if its units name rows in a ring.
func (a *adviser) triples(r *replayer, levels []product.Level) {
	pairs := map[[2]*replay.Shape]*Pair{}
	for _, p := range a.advice.Pairs {
		x, y := a.shapes[p.A-1], a.shapes[p.B-1]
		pairs[[2]*replay.Shape{x, y}], pairs[[2]*replay.Shape{y, x}] = p, p
	}
	pair := func(i, j int) bool { return pairs[[2]*replay.Shape{a.shapes[i], a.shapes[j]}] != nil }
	meetings := func(x, y *replay.Shape) []replay.Meeting { return pairs[[2]*replay.Shape{x, y}].meetings }
	for i := range a.shapes {
		for j := i; j < len(a.shapes); j++ {
			for k := j; k < len(a.shapes); k++ {
				if !pair(i, j) || !pair(j, k) || !pair(i, k) {
					continue
				}
				three := [3]*replay.Shape{a.shapes[i], a.shapes[j], a.shapes[k]}
				m, ok := replay.MeetingOfThree(three, meetings, r.dialect())
				if i == k {
					m, ok = three[0].Ring(r.dialect())
				}
				if !ok {
					continue
				}
				p := &Pair{A: i + 1, B: j + 1, C: k + 1, Tables: a.tables(i, j, k), Rows: m.Rows, meetings: []replay.Meeting{m}}
				p.Level = weaker(a.advice.Levels, weaker(a.advice.Levels, a.advice.Shapes[i].Level, a.advice.Shapes[j].Level), a.advice.Shapes[k].Level)
				p.Levels = untried(levels)
				a.advice.Triples = append(a.advice.Triples, p)
			}
		}
	}
	slices.SortStableFunc(a.advice.Triples, func(x, y *Pair) int { return len(y.Rows) - len(x.Rows) })
	if n := len(a.advice.Triples); n > mostTriples {
		a.advice.TriplesLeft, a.advice.Triples = n-mostTriples, a.advice.Triples[:mostTriples]
	}
}

// tables are those that two of three shapes share.
func (a *adviser) tables(i, j, k int) (list []string) {
	for _, two := range [][2]int{{i, j}, {j, k}, {i, k}} {
		list = append(list, a.shapes[two[0]].Shared(a.shapes[two[1]])...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// tryTriples are the jobs of executing three at once, at the levels below serializable at which no two of them go wrong.
func (a *adviser) tryTriples() (jobs []job) {
	for i := range a.advice.Levels {
		for _, p := range a.advice.Triples {
			o := p.Levels[i]
			jobs = append(jobs, trying(o, func(ctx context.Context, a *adviser) error {
				if o.level.Gives.Prevents(anomaly.PG2Item) && o.level.Gives.Prevents(anomaly.PG2) {
					o.Untried = "the product promises that nothing goes wrong at this level"
					return nil
				}
				if two := a.advice.twoOf(p, o.Level); two != nil {
					o.Untried = fmt.Sprintf("%d with %d goes wrong without a third one", two.A, two.B)
					return nil
				}
				return a.try(ctx, p, o)
			}))
		}
	}
	return jobs
}

// twoOf is a pair of a triple's shapes that goes wrong, or may, at a level; nil: there is none.
func (a *Advice) twoOf(triple *Pair, level string) *Pair {
	for _, p := range a.Pairs {
		if triple.has(p.A, p.B) {
			if o := p.at(level); o.Wrong+o.Possible > 0 {
				return p
			}
		}
	}
	return nil
}

// has reports whether two units of a triple are of these shapes.
func (p *Pair) has(a, b int) bool {
	list := p.shapes()
	i := slices.Index(list, a)
	return i >= 0 && slices.Contains(slices.Delete(list, i, i+1), b)
}

// shapes are the numbers of the shapes that meet.
func (p *Pair) shapes() []int {
	if p.C == 0 {
		return []int{p.A, p.B}
	}
	return []int{p.A, p.B, p.C}
}

// three says how much of the triples was executed, and with what end.
func (a *Advice) three(w io.Writer) {
	if len(a.Triples)+a.TriplesLeft == 0 {
		return
	}
	tried, whole, alone := 0, 0, 0
	why := ""
	for _, p := range a.Triples {
		o := p.at(p.Level)
		switch {
		case o.Tried > 0 && o.All:
			whole++
			tried++
		case o.Tried > 0:
			tried++
		case a.twoOf(p, p.Level) != nil:
			alone++
		default:
			why = cmp.Or(why, o.Untried)
		}
	}
	fmt.Fprintf(w, "three at once: %s of shapes that share tables; at their level executed: %d", prose.Count(len(a.Triples)+a.TriplesLeft, "triple"), tried)
	if tried > 0 {
		fmt.Fprintf(w, " (%d in all interleavings, %d in those with few switches)", whole, tried-whole)
	}
	if alone > 0 {
		fmt.Fprintf(w, "; two of them go wrong by themselves: %d", alone)
	}
	if left := len(a.Triples) - tried - alone + a.TriplesLeft; left > 0 {
		fmt.Fprintf(w, "; not executed: %d", left)
		if why != "" {
			fmt.Fprintf(w, " (%s)", why)
		}
	}
	fmt.Fprintln(w)
}
