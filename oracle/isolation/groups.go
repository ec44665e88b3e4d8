package isolation

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/statement/condition"
	"wirecheck/trace/lex"
)

// A statement may ask for groups of rows of which a condition on aggregates decides what the answer shows (history.PredicateRead.Groups). A change of a row changes the
// answer only where it takes a group over that border, or the answer shows an aggregate of the group. What is known of the groups is what the statement saw.
// So what a transaction changed in a group is put into it, or taken out of it, all at once: if it did not see that, what became of it; if it did, what was before.
// What other transactions did to the same group does not count.

// hides reports whether it is not known which groups the answer hides.
func (p *predicate) hides() bool {
	_, groups := p.where.Groups()
	return p.groups == nil && groups.Op != ""
}

// toldGroups completes what statement i asked by what a later event tells of its groups (MySQL family, autocommit).
func toldGroups(c *Checker, t *txn, i int32, e *history.Event) {
	completed, left := false, false
	for k := range e.Reads {
		r := &e.Reads[k]
		where, err := condition.Parse(r.Where)
		left = left || err != nil || len(where.Reasons()) > 0
		groups, bad := condition.ParseGroups(r.Groups)
		n := slices.IndexFunc(t.reads, func(p *predicate) bool { return p.stmt == i && p.table.name == r.Table && p.hides() })
		if err != nil || bad != nil || n < 0 {
			continue
		}
		p := t.reads[n]
		p.interval, _ = where.Interval()
		p.where, p.groups, p.whole, completed = where, groups, r.Whole, true
	}
	if completed && !left && e.Unread == "" {
		c.coverage.evaluated(condition.HiddenGroups)
		c.conditions.drop(e, lex.Of(t.product().Dialect), condition.HiddenGroups)
	}
}

// effects are what the changes of one transaction mean to a predicate read, by group.
type effects struct {
	t       *txn
	changes int
	visible bool
	by      map[string]*effect
	unsure  bool // it is not known to which groups some of them belong
}

// effect is what a transaction did to a group.
type effect struct {
	key         []condition.Value
	leave, come []condition.Image
	truth       condition.Truth // it changes the answer; Null: this is not known yet
}

// effect reports whether a change is part of what changes the answer. visible says that the statement saw it.
func (p *predicate) effect(ch *change, visible bool) condition.Truth {
	all := ch.siblings()
	if e := &p.effects; e.t != ch.t || e.changes != len(all) || e.visible != visible {
		p.effects = p.effectsOf(all, visible)
	}
	out := condition.False
	for _, m := range []image{ch.was, ch.now} {
		holds := m.matches(&p.where)
		key, ok := p.groups.Key(m.values)
		e := p.effects.by[condition.KeyText(key)]
		switch {
		case holds == condition.False:
			continue
		case p.effects.unsure || holds == condition.Unsure || !ok || e == nil:
			return condition.Unsure
		case p.alike(ch):
			return condition.False
		}
		if e.truth == condition.Null {
			leave, come := e.leave, e.come
			if visible {
				leave, come = come, leave
			}
			e.truth = p.groups.Changes(e.key, leave, come)
		}
		switch {
		case e.truth == condition.True && out == condition.False:
			out = condition.True
		case e.truth == condition.Unsure:
			out = condition.Unsure
		}
	}
	return out
}

// siblings are the changes of rows of the same table by the same transaction.
func (ch *change) siblings() []*change {
	list := ch.v.table.changes
	from, _ := slices.BinarySearchFunc(list, ch.t.end, func(ch *change, end uint64) int { return int(int64(ch.t.end) - int64(end)) })
	to := from
	for to < len(list) && list[to].t == ch.t {
		to++
	}
	return list[from:to]
}

// alike reports whether a row is in the same group before and behind a change, with the same values.
func (p *predicate) alike(ch *change) bool {
	if ch.was.matches(&p.where) != condition.True || ch.now.matches(&p.where) != condition.True {
		return false
	}
	alike := true
	p.groups.Columns(func(column string) {
		was, ok := ch.was.values[column]
		now, ok2 := ch.now.values[column]
		alike = alike && ok && ok2 && (was == nil) == (now == nil) && (was == nil || *was == *now)
	})
	return alike
}

// effectsOf sorts the changes of one transaction by groups.
func (p *predicate) effectsOf(all []*change, visible bool) effects {
	out := effects{changes: len(all), visible: visible, by: map[string]*effect{}}
	for _, ch := range all {
		out.t = ch.t
		for i, m := range []image{ch.was, ch.now} {
			holds := m.matches(&p.where)
			if holds == condition.False {
				continue
			}
			key, ok := p.groups.Key(m.values)
			if holds == condition.Unsure || !ok {
				out.unsure = true
				return out
			}
			text := condition.KeyText(key)
			e := out.by[text]
			if e == nil {
				e = &effect{key: key, truth: condition.Null}
				out.by[text] = e
			}
			if i == 0 {
				e.leave = append(e.leave, m.values)
			} else {
				e.come = append(e.come, m.values)
			}
		}
	}
	return out
}

// groupWords is the group of an edge's row, in words; empty if that is not known, or there is only one. Of a row that changed its group, it is the one that this put over
// the border, or else the new one.
func (p *predicate) groupWords(e *edge) string {
	if v := e.to; v != nil && v.prev != nil {
		is, was := v.image.values, v.prev.image.values
		from, ok := p.groups.Key(was)
		to, ok2 := p.groups.Key(is)
		if ok && (!ok2 || p.groups.Changes(to, nil, []condition.Image{is}) != condition.True && p.groups.Changes(from, []condition.Image{was}, nil) == condition.True) {
			return p.keyWords(from)
		}
	}
	for _, v := range []*version{e.to, e.from} {
		if v == nil {
			continue
		}
		if key, ok := p.groups.Key(v.image.values); ok {
			return p.keyWords(key)
		}
	}
	return ""
}

func (p *predicate) keyWords(key []condition.Value) string {
	var words []string
	for i, c := range p.groups.By {
		kind := condition.Text
		if _, is := condition.Integer(key[i]); is {
			kind = condition.Number
		}
		words = append(words, condition.Compare("=", kind, c, key[i]).Words())
	}
	return strings.Join(words, " and ")
}
