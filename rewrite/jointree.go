package rewrite

import (
	"slices"

	"wirecheck/statement/condition"
)

// Left joins, and what foreign keys say of joins.
//
// A row of a table at the side of a left join that may be missing is in the answer if it fulfils the conditions of that join, and if the rows with which they
// join it are there. The rows of other tables do not depend on it. The tables of such a side are a group; conditions of joins and of WHERE hold for the rows of
// a group (Clause.Scope). WHERE makes an inner join of a left one if it is not true where the side is missing.
//
// Where each row of item has a product, as a foreign key says, an inner join with product hides none: a new item is in the answer of
//
//	SELECT * FROM item JOIN product ON product.id = item.product WHERE item.cart = 3
//
// whenever cart is 3. That holds in every state of the database, so for each serial order. And no change of a product puts rows into this answer, or takes some
// from it: no item refers to a new product, and only to a product without items can anything happen but a change of other columns.
//
// The MySQL family checks foreign keys only in sessions that want it (foreign_key_checks), so a key says nothing of rows of which nobody knows who inserted
// them. The image of a new row tells whether the server checked its keys (JoinTree.Checked), and of other rows it is not known.

// Joined is one table of a join.
type Joined struct {
	*Relation
	Group int // 0: the tables that are in each row of the answer; or the side of a left join that may be missing
}

// Clause is a condition of a join or of WHERE, of those that AND joins. N is an expression of the dialect.
type Clause[N any] struct {
	Node     N
	Scope    int   // the group whose rows it chooses
	From, To int   // the tables between which it is the condition of an inner join
	Tables   []int // that it names
	Tie      *Tie  // it says that columns of two tables are equal
}

// JoinTree is a join of tables, which have numbers, and its conditions.
type JoinTree[N any] struct {
	Tables  []Joined
	Clauses []Clause[N]
	Around  []int // by group: the one to which its left join belongs

	// Merges says that a new row of a table may look like another one in the answer; nil if none may.
	Merges func(table int) bool
	// Moved puts a condition on the second column of a tie as one on the first column, if it can.
	Moved func(n N, t Tie) (N, bool)
	// Only reports whether a condition names no column but the one of that name, of the one table that it is of.
	Only func(n N, column string) bool
	// Orphans says that rows were perhaps written whose foreign keys nobody looked at.
	Orphans bool
	// Checked is the column of an image that is 1 if the server has checked the foreign keys of the row; empty if it always does.
	Checked string
}

// Left begins the side of a left join within a group, and gives its own group.
func (j *JoinTree[N]) Left(group int) int {
	j.Around = append(j.Around, group)
	return len(j.Around) - 1
}

// Reduce makes inner joins of the left joins whose other side a condition around needs, as the server does. It is false if a condition may hold where that
// side is missing. strict reports whether a condition is not true where the columns of a table are NULL.
func (j *JoinTree[N]) Reduce(strict func(n N, table int) bool) bool {
	for again := true; again; {
		again = false
		for i := range j.Clauses {
			c := &j.Clauses[i]
			for _, t := range c.Tables {
				if t < c.From || t >= c.To || j.Tables[t].Group <= c.Scope {
					continue
				}
				if !strict(c.Node, t) {
					return false
				}
				for again = true; j.Tables[t].Group > c.Scope; {
					j.merge(j.Tables[t].Group)
				}
			}
		}
	}
	return true
}

// merge puts a group into the one around it.
func (j *JoinTree[N]) merge(group int) {
	to := j.Around[group]
	for i := range j.Tables {
		if j.Tables[i].Group == group {
			j.Tables[i].Group = to
		}
	}
	for i := range j.Clauses {
		if c := &j.Clauses[i]; c.Scope == group {
			c.Scope, c.From, c.To = to, 0, len(j.Tables)
		}
	}
	for g := range j.Around {
		if j.Around[g] == group {
			j.Around[g] = to
		}
	}
}

// JoinView is what decides whether a row of one table is in the answer.
type JoinView[N any] struct {
	Table int
	Own   map[int][]N // conditions on one table each
	Ties  []Tie
	Parts []Part // the other tables
	Other bool   // there are other conditions on several tables
}

func abs(n int) int { return max(n, -n) }

// View gives what decides of the rows of table i: the conditions of its group and of those that it needs.
func (j *JoinTree[N]) View(i int) *JoinView[N] {
	v, needed := &JoinView[N]{Table: i, Own: map[int][]N{}}, map[int]bool{0: true}
	need := func(g int) (more bool) {
		for ; !needed[g]; g = j.Around[g] {
			needed[g], more = true, true
		}
		return more
	}
	for again := need(j.Tables[i].Group); again; {
		again = false
		for _, c := range j.Clauses {
			for _, t := range c.Tables {
				again = needed[c.Scope] && need(abs(j.Tables[t].Group)) || again
			}
		}
	}
	for _, c := range j.Clauses {
		switch {
		case !needed[c.Scope]:
		case c.Tie != nil:
			v.Ties = append(v.Ties, *c.Tie)
		case len(c.Tables) == 1:
			v.Own[c.Tables[0]] = append(v.Own[c.Tables[0]], c.Node)
		case len(c.Tables) == 0: // 1 = 1
			v.Own[i] = append(v.Own[i], c.Node)
		default:
			v.Other = true
		}
	}
	for _, p := range Parts(len(j.Tables), i, v.Ties) {
		if needed[abs(j.Tables[p.Members[0]].Group)] {
			v.Parts = append(v.Parts, p)
		}
	}
	return v
}

// refers reports whether the first column of a tie has a foreign key to the second one.
func (j *JoinTree[N]) refers(t Tie) bool {
	return !j.Orphans && j.Tables[t.Table[0]].Refers(t.Column[0], j.Tables[t.Table[1]].Relation, t.Column[1])
}

func (j *JoinTree[N]) required(table int, column string) bool {
	a := j.Tables[table].Attribute(column)
	return a != nil && a.Required
}

// Assured gives the condition on the columns of the table of v under which foreign keys assure that a part has a row for it. moved are conditions on the
// column to which its own one refers, put as conditions on that one.
func (j *JoinTree[N]) Assured(v *JoinView[N], p Part) (moved []N, c condition.Condition, ok bool) {
	if j.Merges != nil && j.Merges(v.Table) || v.Other || p.Tie == nil {
		return nil, c, false
	}
	seen, used := map[int]bool{v.Table: true}, map[Tie]bool{}
	for next := []Tie{*p.Tie}; len(next) > 0; next = next[1:] {
		t := next[0]
		from, to := t.Table[0], t.Table[1]
		if seen[to] || !j.refers(t) || from != v.Table && (j.Checked != "" || !j.required(from, t.Column[0])) {
			return nil, c, false
		}
		seen[to], used[t] = true, true
		for _, n := range v.Own[to] {
			m, ok := j.Moved(n, t)
			if !ok || from != v.Table {
				return nil, c, false
			}
			moved = append(moved, m)
		}
		for _, o := range v.Ties {
			if o.Table[1] == to {
				o = o.Mirrored()
			}
			if o.Table[0] == to && !used[o.Mirrored()] {
				next = append(next, o)
			}
		}
	}
	c = condition.Not(condition.Condition{Op: "null", Column: p.Tie.Column[0]})
	if j.required(v.Table, p.Tie.Column[0]) {
		c = condition.Always
	}
	if j.Checked != "" {
		yes := "1"
		c = condition.And(c, condition.Compare("=", condition.Number, j.Checked, &yes))
	}
	return moved, c, true
}

// Steady reports whether no change of a row of the table of v alone changes the answer otherwise than by the columns of a row that it has: others refer to it by
// a foreign key, and that column alone decides whether they find it.
func (j *JoinTree[N]) Steady(v *JoinView[N]) bool {
	key := ""
	for _, p := range v.Parts {
		switch {
		case p.Tie == nil || v.Other:
			return false
		case j.refers(p.Tie.Mirrored()) && (key == "" || key == p.Tie.Column[0]):
			key = p.Tie.Column[0]
		default:
			if moved, _, ok := j.Assured(v, p); !ok || len(moved) > 0 || !j.required(v.Table, p.Tie.Column[0]) {
				return false
			}
		}
	}
	return key != "" && !slices.ContainsFunc(v.Own[v.Table], func(n N) bool { return !j.Only(n, key) })
}
