package rewrite_test

import (
	"slices"
	"testing"

	"wirecheck/rewrite"
)

// TestCatalog asks for names, changes some of them and all, and looks what is still known.
func TestCatalog(t *testing.T) {
	relation := func(r rewrite.Relation) *rewrite.Known { return &rewrite.Known{Relations: []*rewrite.Relation{&r}} }
	var changes rewrite.Changes
	c := rewrite.NewCatalog(rewrite.Server{}, &changes)
	names := []rewrite.Name{{Name: "plain"}, {Name: "other"}, {Name: "part"}, {Name: "count", Function: true}}
	answer := func(columns int) map[rewrite.Name]*rewrite.Known {
		return map[rewrite.Name]*rewrite.Known{
			names[0]: relation(rewrite.Relation{Kind: "table", Columns: make([]rewrite.Attribute, columns)}),
			names[1]: {},
			names[2]: relation(rewrite.Relation{Kind: "table", Root: &rewrite.Relation{Kind: "partitioned"}}),
			names[3]: {Function: rewrite.FunctionAggregate},
		}
	}
	look := func() *rewrite.View {
		v := c.View(false)
		for _, n := range names {
			if n.Function {
				v.Function(n.Name)
			} else {
				v.Named(n.Name)
			}
		}
		return v
	}
	check := func(when string, v *rewrite.View, uses []rewrite.Use, current bool, missing ...rewrite.Name) {
		t.Helper()
		if len(v.Missing) != len(missing) {
			t.Errorf("%s: %v are missing, want %v", when, v.Missing, missing)
		}
		for i := range min(len(missing), len(v.Missing)) {
			if v.Missing[i] != missing[i] {
				t.Errorf("%s: %v are missing, want %v", when, v.Missing, missing)
			}
		}
		if got := c.Current(uses, false); got != current {
			t.Errorf("%s: the plan is current: %v", when, got)
		}
	}
	check("at first", look(), nil, true, names...)
	c.Learn(answer(2), changes.Now(), false)
	known := look()
	uses := known.Uses[:1] // of a plan for plain
	check("all asked", known, uses, true)

	before := changes.Now()
	changes.Add("other")
	check("another table is changed", look(), uses, true, names[1], names[2]) // what partitions are depends on others
	c.Learn(answer(2), before, false)                                         // began before the change
	check("an old answer", look(), uses, true, names[1], names[2])
	if !c.Changed(names[1:2], before) || c.Changed(names[:1], before) {
		t.Error("which name changed is not known")
	}
	c.Learn(answer(2), changes.Now(), false)
	check("a new answer", look(), uses, true)

	changes.Add()
	check("anything may be changed", look(), uses, false, names...)
	if got := c.Ask(names[:1]); len(got) != len(names)-1 || slices.Contains(got, names[1]) {
		t.Errorf("asks for %v, want all that were asked for before and exist", got)
	}
	if stale := c.View(true); len(stale.Named("plain")) != 1 || !c.Current(stale.Uses, true) {
		t.Error("what was known before is lost")
	}
	c.Learn(answer(2), changes.Now(), false)
	check("nothing was", look(), uses, true)
	changes.Add("plain")
	c.Learn(answer(3), changes.Now(), false)
	check("a column more", look(), uses, false)

	whole := rewrite.NewCatalog(rewrite.Server{}, &changes)
	whole.Learn(nil, changes.Now(), true)
	if v := whole.View(false); v.Named("none") != nil || len(v.Missing) > 0 {
		t.Error("what is not in the whole catalog does not exist")
	}
	whole.Learn(answer(2), changes.Now(), true)
	if whole.Learn(nil, changes.Now(), true); len(whole.All()) > 0 {
		t.Errorf("%d relations that were dropped are known", len(whole.All()))
	}
	changes.Add("none")
	if v := whole.View(false); v.Named("none") != nil || len(v.Missing) != 1 {
		t.Error("it may exist since then")
	}
}
