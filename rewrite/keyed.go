package rewrite

import "slices"

// SELECT DISTINCT shows one row for several. Where each of its rows comes from one row of a table only, because the primary key is
// among what it compares, or because a join finds that row by its key, the version of that row goes with it: it is the same wherever the
// rest is the same. Tables of left joins on which nothing else depends change nothing in such an answer. ORMs make their pages
// so, by the key of the main table.

// Column is a column of one of the tables of a query.
type Column struct {
	Table int
	Name  string
}

// Join is a condition over the tables of a query: of a join, or WHERE.
type Join struct {
	Tables []int       // that it joins
	Added  []int       // of these, the side of a left join that may be missing; nil for others
	Refs   []Column    // all that it names
	Equal  [][2]Column // of what it joins by AND: if one of the two is given, the other one can have one value only
}

// Keyed is a query without groups, by its tables' primary keys and its conditions.
type Keyed struct {
	Keys  [][]string
	Joins []Join
}

// Certain reports whether each row of the answer, which has the columns shown, each row once, comes from one row of each table that matters, and
// whether order is the order of all of them. needed says which tables matter.
func (k *Keyed) Certain(shown, order []Column) (needed []bool, ok bool) {
	whole, fixed := k.settle(order)
	if slices.ContainsFunc(shown, func(c Column) bool { return !whole[c.Table] && !fixed[c] }) {
		return nil, false
	}
	needed = k.needed(shown, order)
	whole, _ = k.settle(shown)
	for i := range needed {
		if needed[i] && !whole[i] {
			return needed, false
		}
	}
	return needed, true
}

// needed says which tables an answer depends on: all but those that left joins add and to which nothing refers.
func (k *Keyed) needed(lists ...[]Column) []bool {
	needed := make([]bool, len(k.Keys))
	for i := range needed {
		needed[i] = !slices.ContainsFunc(k.Joins, func(j Join) bool { return slices.Contains(j.Added, i) })
	}
	for _, c := range slices.Concat(lists...) {
		needed[c.Table] = true
	}
	for {
		before := slices.Clone(needed)
		for _, j := range k.Joins {
			tables := j.Added
			if tables == nil {
				tables = j.Tables
			}
			if slices.ContainsFunc(tables, func(i int) bool { return needed[i] }) {
				for _, c := range j.Refs {
					needed[c.Table] = true
				}
			}
		}
		if slices.Equal(before, needed) {
			return needed
		}
	}
}

// settle finds the tables of which one row at the most is possible once the columns of from are given, and other columns that have one value then.
func (k *Keyed) settle(from []Column) (whole []bool, fixed map[Column]bool) {
	whole, fixed = make([]bool, len(k.Keys)), map[Column]bool{}
	is := func(c Column) bool { return whole[c.Table] || fixed[c] }
	for _, c := range from {
		fixed[c] = true
	}
	for again := true; again; {
		again = false
		for i, key := range k.Keys {
			if !whole[i] && len(key) > 0 && !slices.ContainsFunc(key, func(c string) bool { return !fixed[Column{i, c}] }) {
				whole[i], again = true, true
			}
		}
		for _, j := range k.Joins {
			if len(j.Added) > 1 || slices.ContainsFunc(j.Refs, func(c Column) bool { return len(j.Added) == 1 && c.Table != j.Added[0] && !is(c) }) {
				continue // whether it adds a row depends on something else
			}
			for _, e := range j.Equal {
				for _, p := range [2][2]Column{e, {e[1], e[0]}} {
					if is(p[0]) && !is(p[1]) && (j.Added == nil || p[1].Table == j.Added[0]) {
						fixed[p[1]], again = true, true
					}
				}
			}
		}
	}
	return whole, fixed
}
