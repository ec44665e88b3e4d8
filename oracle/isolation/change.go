package isolation

import (
	"math"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/statement/condition"
)

// image is what is known of a row at one moment. Of a row that exists and whose values are not known, only a condition without columns tells.
type image struct {
	known  bool            // the values, or that the row does not exist
	exists bool            // for certain
	values condition.Image // if they are known
}

func (m image) matches(where *condition.Condition) condition.Truth {
	switch {
	case m.known && m.values == nil:
		return condition.False
	case !m.known && !m.exists:
		return condition.Unsure
	}
	t := where.Holds(m.values)
	if t == condition.Null {
		return condition.False
	}
	return t
}

// change is what a committed transaction made of a row.
type change struct {
	t        *txn
	stmt     int32 // of the last write
	first    int32 // of the first one
	v        *version
	prev     *version // that the first one replaced, if it is known
	was, now image
	born     bool // the row did not exist before
	blind    bool // counted in Coverage.Blind
	// column is what least and most are of: they bound the integers that the images have there, if whole says that they have. Most predicate
	// reads of a table ask for the same column.
	column      string
	least, most int64
	whole       bool
}

// outside reports whether no image has a value in an interval, so that the condition is certainly false for all of them.
func (ch *change) outside(i *condition.Interval) bool {
	if i.Column == "" {
		return false
	}
	if ch.column != i.Column {
		ch.column, ch.least, ch.most, ch.whole = i.Column, math.MaxInt64, math.MinInt64, true
		for _, m := range []image{ch.was, ch.now} {
			if m.known && m.values == nil {
				continue // the row does not exist
			}
			n, ok := condition.Integer(m.values[i.Column])
			ch.least, ch.most, ch.whole = min(ch.least, n), max(ch.most, n), ch.whole && ok
		}
	}
	return ch.whole && (ch.most < i.From || ch.least > i.To)
}

// unknown counts a change of which it is not known what it means.
func (ch *change) unknown(c *Checker) {
	if !ch.blind {
		ch.blind = true
		c.coverage.Blind++
	}
}

// fewChanges is up to how many rows a transaction changed that no map finds them.
const fewChanges = 8

// changes gives what t made of each row, by its accesses from number first on.
func (t *txn) changes(c *Checker, first int) (list []*change) {
	clouded := t.clouded()
	var rows map[any]*change // of many, and where rows have no keys: by row, or by version
	for i := first; i < len(t.accesses); i++ {
		a := &t.accesses[i]
		v := a.node
		if v == nil || !a.op.writes() || v.is != live || v.writer != t || t.stmts[a.stmt].failed {
			continue
		}
		said := t.toldBy(i)
		were := read(said.were)
		var p *version
		if q := v.prev; q != nil && q.id == said.prev && q.row != nil && q.row == v.row {
			p = q
		} else if said.prev != "" {
			p = said.node(said.prev)
		}
		var ch *change
		if rows == nil && (v.row == nil || len(list) == fewChanges) {
			rows = map[any]*change{}
			for _, ch := range list {
				rows[ch.v.row] = ch
			}
		}
		switch {
		case rows == nil:
			if k := slices.IndexFunc(list, func(ch *change) bool { return ch.v.row == v.row }); k >= 0 {
				ch = list[k]
			}
		case v.row != nil:
			ch = rows[v.row]
		case p != nil && p.writer == t:
			ch = rows[p]
		}
		if ch == nil {
			ch = &change{t: t, first: a.stmt, prev: p, was: before(a, said, were, p), born: a.op == opInsert}
			if replaces(t, a) {
				ch.was, ch.born = image{}, false
			}
			list = append(list, ch)
		}
		ch.v, ch.stmt, ch.now = v, a.stmt, image{known: a.op == opDelete}
		if a.op != opDelete {
			if ch.now = read(said.became); replaces(t, a) {
				ch.now = image{exists: true}
			}
			v.image = ch.now
			// It rests on what this write told alone, so that it does not matter when others are told.
			if a.op == opUpdate && said.were != "" && a.stmt >= clouded {
				says := c.texts.of(t, a.stmt)
				if did := says.without(were, ch.now); did != says {
					v.did, v.mixed = did, true
				}
			}
		}
		if rows == nil {
			continue
		}
		if v.row != nil {
			rows[v.row] = ch
		} else {
			rows[v] = ch
		}
	}
	for _, ch := range list {
		if ch.stmt < clouded {
			ch.now, ch.v.image = image{}, image{}
		}
	}
	return list
}

// replaces reports whether the row that a REPLACE made may stand in the place of one that is not told: then it is not known what changed.
func replaces(t *txn, a *access) bool {
	s := &t.stmts[a.stmt]
	return a.op == opInsert && s.verb == "replace" && !s.exact()
}

// clouded gives the number of the last statement behind which it is not certain what t wrote before, or -1: it may have changed rows that nobody saw (by foreign
// keys, say), or set whether foreign keys are checked.
func (t *txn) clouded() int32 {
	for k := len(t.stmts) - 1; k >= 0; k-- {
		switch s := &t.stmts[k]; {
		case s.failed:
		case s.verb != "select" && (s.coverage == history.CoverageApproximate || s.coverage == history.CoverageOpaque),
			s.verb == "set" && strings.Contains(strings.ToLower(s.sql), strings.TrimLeft(condition.ForeignKeys, "@")):
			return int32(k)
		}
	}
	return -1
}

// same are the columns that have one value in both images, in lower case.
func (m image) same(o image) (list []string) {
	for name, v := range m.values {
		if w, in := o.values[name]; in && (v == nil && w == nil || v != nil && w != nil && *v == *w) {
			list = append(list, strings.ToLower(name))
		}
	}
	return list
}

// before is the image of the row that write a replaced; were is what the write told of it, and p the version that it replaced, if that is known.
func before(a *access, said *told, were image, p *version) image {
	switch {
	case a.op == opInsert:
		return image{known: true}
	case said.were == "" && p != nil && p.image.exists:
		return p.image
	}
	return were
}

// read is the image of a row that exists.
func read(text string) image {
	if text == "" {
		return image{exists: true}
	}
	values, err := condition.ParseImage(text)
	return image{err == nil, true, values}
}
