package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wirecheck/history/prose"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/product"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// adviser is one run of wirecheck advise.
type adviser struct {
	*explorer
	advice *Advice
	shapes []*replay.Shape
	until  time.Time
	level  string      // of the last trial
	keys   replay.Keys // of the database
}

// Advise executes a trace again, makes units of its shapes concurrent that never were, and says at which level, or by which remedy, nothing goes wrong.
func Advise(ctx context.Context, path string, o Options, budget time.Duration) (*Advice, error) {
	began := time.Now()
	if o.Fleet != nil {
		var err error
		if began, err = agree(ctx, o.Fleet, path, o.Snapshot, began); err != nil {
			return nil, err
		}
	}
	o.Oracles, o.Order, o.Speed = panel.IsolationName, replay.OrderCommit, 0
	r := &replayer{o: o, path: path, advising: &Advice{until: began.Add(budget), budget: budget}}
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	a := r.advising
	a.Trace, a.Engine, a.Version, a.Undecided = path, r.report.Engine, r.report.Version, r.report.Undecided
	a.Broken = r.report.Broken
	a.title, a.product, a.unit, a.Elapsed = r.report.title, product.Of(r.report.Engine), r.o.unit(), time.Since(began)
	if a.Undecided == "" && len(a.Shapes) == 0 {
		a.Undecided = "no " + a.unit + " of the trace was replayed as a whole"
	}
	if a.Undecided == "" && len(a.Pairs) > 0 && a.Executed == 0 {
		a.Undecided = "no pair of shapes could be executed: " + a.Pairs[0].untried()
	}
	return a, a.keep(o.Out)
}

// advise executes pairs of shapes: at their own level, at the others, and with remedies.
func (r *replayer) advise(ctx context.Context, c *replay.Collector) (err error) {
	units, _ := r.joined(c)
	a := &adviser{explorer: &explorer{r: r}, advice: r.advising, shapes: replay.Shapes(units, r.dialect()), until: r.advising.until}
	a.advice.Units = len(units)
	a.describe(r)
	var groups []*replay.Group
	for _, p := range a.advice.all() {
		for i := range p.meetings {
			groups = append(groups, p.meetings[i].Group)
		}
	}
	if r.o.Fleet != nil {
		if err := a.sameWork(ctx); err != nil {
			return err
		}
	}
	if len(groups) == 0 {
		return nil
	}
	if a.keys, err = uniqueKeys(ctx, r.instance.Engine, r.target); err != nil {
		return err
	}
	slices.SortStableFunc(groups, func(a, b *replay.Group) int { return a.Start - b.Start })
	if err := r.states(ctx, groups, c.Definitions); err != nil {
		return err
	}
	a.explorer = newExplorer(r, c.Definitions)
	defer func() { err = errors.Join(err, a.close(ctx)) }()
	limited, cancel := context.WithDeadline(ctx, a.until)
	defer cancel()
	a.advice.Executed, err = a.tryAll(limited)
	r.o.Progress(0, 0, "")
	if limited.Err() != nil {
		return nil // what is known is told, and what was not tried
	}
	return err
}

// describe lists the shapes, and the pairs of them that share tables.
func (a *adviser) describe(r *replayer) {
	d, levels := r.dialect(), distinct(r.instance.Engine.Levels)
	own := cmp.Or(strings.ToLower(r.instance.Engine.Default), product.ReadCommitted)
	for i, s := range a.shapes {
		a.advice.Shapes = append(a.advice.Shapes, &ShapeAdvice{Number: i + 1, Name: shapeName(s), Count: len(s.Units), Level: real(levels, cmp.Or(s.Units[0].OwnLevel(), own)), Statements: s.Statements(), Tags: s.Tags})
	}
	a.advice.distinguish()
	for _, l := range levels {
		a.advice.Levels = append(a.advice.Levels, l.History)
	}
	for i, s := range a.shapes {
		for j := i; j < len(a.shapes); j++ {
			o := a.shapes[j]
			shared := s.Shared(o)
			steps := len(s.Units[0].Steps) + len(o.Units[0].Steps)
			if len(shared) == 0 || steps <= 2 {
				continue
			}
			p := &Pair{A: i + 1, B: j + 1, Tables: shared, Level: weaker(a.advice.Levels, a.advice.Shapes[i].Level, a.advice.Shapes[j].Level), meetings: replay.Meetings(s, o, d)}
			for _, m := range p.meetings {
				if len(m.Rows) > 0 && !m.Copied {
					p.Rows = m.Rows
				}
			}
			p.Levels = untried(levels)
			a.advice.Pairs = append(a.advice.Pairs, p)
		}
	}
	a.triples(r, levels)
}

// untried are the outcomes before anything is tried.
func untried(levels []product.Level) (list []*Outcome) {
	for _, l := range levels {
		list = append(list, &Outcome{Level: l.History, level: l, Refused: map[string]int{}, Untried: untriedYet})
	}
	return list
}

// untriedYet is why a level was not tried when the budget ended.
const untriedYet = "the budget ended before (--budget)"

// distinct leaves out levels that give what the next one gives: PostgreSQL's READ UNCOMMITTED.
func distinct(levels []product.Level) (list []product.Level) {
	for i, l := range levels {
		if i+1 < len(levels) && l.Gives.Name == levels[i+1].Gives.Name && l.Setting == nil {
			continue
		}
		list = append(list, l)
	}
	return list
}

// real is the level of a list that another one stands for: the level itself, or the weakest that is not weaker.
func real(levels []product.Level, name string) string {
	at := slices.Index(product.LevelNames, name)
	for _, l := range levels {
		if slices.Index(product.LevelNames, l.History) >= at {
			return l.History
		}
	}
	return name
}

func weaker(levels []string, a, b string) string {
	if slices.Index(levels, a) <= slices.Index(levels, b) {
		return a
	}
	return b
}

// shapeName is how people know a shape: its route, or what it does.
func shapeName(s *replay.Shape) string { return nameOf(s.Tags, s.Statements()) }

// distinguish tells shapes with one name apart, by what they do: one request may have several transactions.
func (a *Advice) distinguish() {
	named := map[string]int{}
	for _, s := range a.Shapes {
		named[s.Name]++
	}
	for _, s := range a.Shapes {
		if does := nameOf(nil, s.Statements); named[s.Name] > 1 && does != s.Name {
			s.Name += ": " + does
		}
	}
}

// nameOf names what has these tags and statements without literals.
func nameOf(tags []trace.Tag, statements []string) string {
	for _, key := range []string{"route", "controller", "action", "job"} {
		for _, t := range tags {
			if strings.EqualFold(t.Key, key) {
				return t.Value
			}
		}
	}
	var parts []string
	for _, st := range statements {
		word := strings.ToLower(scenario.FirstWord(st))
		switch word {
		case "begin", "start", "commit", "set", "rollback", "end":
			continue
		}
		if part := prose.Line(word+" "+tableOf(st), 0); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return prose.Line(strings.Join(parts, ", "), 48)
}

// tableOf is the first table that a statement without literals names, as far as its words tell.
func tableOf(sql string) string {
	words := strings.Fields(strings.NewReplacer("(", " ( ", ",", " , ", `"`, "", "`", "").Replace(sql))
	for i, w := range words[:max(len(words)-1, 0)] {
		if w == "from" || w == "into" || w == "update" || w == "table" {
			return words[i+1]
		}
	}
	return ""
}

// try executes a pair's units at a level.
func (a *adviser) try(ctx context.Context, p *Pair, o *Outcome) error {
	o.Untried = ""
	for i, m := range p.meetings {
		got, err := a.guarded(ctx, m, o.level, true)
		if err != nil {
			return err
		}
		if got.Shown != nil {
			got.Shown.Copied = m.Copied
		}
		if i == 0 {
			*o = *got
		} else {
			o.add(got)
		}
		if ctx.Err() != nil {
			o.All, o.Untried = false, untriedYet
			return context.Cause(ctx)
		}
	}
	return nil
}

// guarded is a trial of which an error is no reason to stop: it says why not all was tried.
func (a *adviser) guarded(ctx context.Context, m replay.Meeting, level product.Level, show bool) (*Outcome, error) {
	if m.State == nil {
		return &Outcome{Level: level.History, level: level, Refused: map[string]int{}, Untried: "the second replay did not come to its place"}, nil
	}
	if a.level != level.History { // what executes at a level has many connections
		if err := a.drop(ctx); err != nil {
			return nil, err
		}
		a.level = level.History
	}
	o, err := a.trial(ctx, m, level, show)
	if o == nil {
		o = &Outcome{Level: level.History, level: level, Refused: map[string]int{}}
	}
	if err == nil {
		return o, nil
	}
	o.All, o.Untried = false, err.Error()
	if ctx.Err() != nil {
		return o, nil
	}
	return o, a.renew(ctx)
}

// remedies executes what would mend a pair at its own level.
func (a *adviser) remedies(ctx context.Context, p *Pair) error {
	own := p.at(p.Level)
	if own == nil || own.Wrong+own.Possible == 0 && own.Deadlock == nil {
		return nil
	}
	alone := false
	for _, way := range a.ways(p) {
		if way.every && alone {
			continue
		}
		proof := &Proof{Text: way.text, SQL: way.sql}
		for i, m := range p.meetings {
			if m.Group = way.change(m.Group); m.Group == nil {
				continue
			}
			got, err := a.guarded(ctx, m, own.level, false)
			if err != nil {
				return err
			}
			if proof.Outcome == nil || i == 0 {
				proof.Outcome = got
			} else {
				proof.Outcome.add(got)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !proof.proven() && got.Tried > 0 {
				break
			}
		}
		if proof.Outcome == nil {
			continue
		}
		if proof.Proven = proof.proven() && (own.Wrong+own.Possible > 0 || proof.Deadlock == nil); proof.Proven {
			p.Remedies, alone = append(p.Remedies, proof), alone || way.lock
		} else {
			p.Tried = append(p.Tried, proof)
		}
	}
	return nil
}

// way is a remedy to try.
type way struct {
	text, sql string
	lock      bool                                // it locks what one of the reads reads
	every     bool                                // it is needless where one of the locks before is enough
	change    func(g *replay.Group) *replay.Group // nil: it does not apply
}

// ways are the remedies that a pair's statements allow, the cheapest first.
func (a *adviser) ways(p *Pair) (list []way) {
	d := a.r.dialect()
	g := p.meetings[0].Group
	if _, sql := g.Computed(d); sql != "" {
		list = append(list, way{text: "let the UPDATE compute the new value from the row", sql: sql, change: func(g *replay.Group) *replay.Group {
			c, sql := g.Computed(d)
			if sql == "" {
				return nil
			}
			return c
		}})
	}
	for _, sql := range g.Unique(a.keys, d) {
		list = append(list, way{text: "let a constraint refuse the second row", sql: sql, change: func(g *replay.Group) *replay.Group { return g.Besides(sql) }})
	}
	reads := g.Reads(d)
	var seen []string
	for _, r := range reads {
		shape := a.of(p, g.Units[r.Unit])
		same := func(o replay.Read) bool { return o.Step == r.Step && a.of(p, g.Units[o.Unit]) == shape }
		key := fmt.Sprint(r.Step, " ", shape)
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		list = append(list, way{text: fmt.Sprintf("lock what it reads in shape %d", shape), sql: r.Locking, lock: true,
			change: func(g *replay.Group) *replay.Group { return locked(g, d, same) }})
	}
	for _, m := range p.meetings {
		if table, sql := m.Parent(d); table != "" {
			list = append(list, way{text: "first lock a row that all of them read", sql: sql, lock: true, every: true,
				change: func(g *replay.Group) *replay.Group { return g.LockedTable(table, d) }})
			break
		}
	}
	if len(seen) > 1 {
		list = append(list, way{text: "lock what each of them reads", sql: "SELECT ... FOR UPDATE", every: true,
			change: func(g *replay.Group) *replay.Group { return locked(g, d, func(replay.Read) bool { return true }) }})
	}
	if slices.ContainsFunc(p.meetings, func(m replay.Meeting) bool { return m.Ordered(d) != nil }) {
		list = append(list, way{text: "write the rows in the same order everywhere", change: func(g *replay.Group) *replay.Group { return g.Ordered(d) }})
	}
	if g.Split() {
		list = append(list, way{text: "do it in one transaction, and lock what it reads", sql: "BEGIN; SELECT ... FOR UPDATE; ...; COMMIT", change: func(g *replay.Group) *replay.Group {
			return locked(g.OneTransaction(), d, func(replay.Read) bool { return true })
		}})
	}
	return list
}

// of gives the number of the shape of which one of a pair's units is.
func (a *adviser) of(p *Pair, u *replay.Unit) int {
	for _, n := range p.shapes() {
		if slices.Contains(a.shapes[n-1].Units, u) {
			return n
		}
	}
	if p.A == p.B { // a copy is of the shape that is there twice
		return p.A
	}
	return p.B
}

func locked(g *replay.Group, d lex.Dialect, which func(replay.Read) bool) *replay.Group {
	var some []replay.Read
	for _, r := range g.Reads(d) {
		if which(r) {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return g.Locked(some)
}

// keep stores the scenarios and the whole text.
func (a *Advice) keep(dir string) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o700)
	for _, p := range a.all() {
		for _, o := range p.Levels {
			if w := o.Shown; err == nil && w != nil && w.Spec != "" {
				w.Kept = filepath.Join(dir, p.id("-with-")+"-"+strings.ReplaceAll(o.Level, " ", "-")+".spec")
				err = os.WriteFile(w.Kept, []byte(w.Spec), 0o600)
			}
			for i, b := range o.Breaches {
				if w := b.Shown; err == nil && w.Kept == "" && w.Spec != "" {
					w.Kept = filepath.Join(dir, fmt.Sprintf("%s-%s-invariant-%d.spec", p.id("-with-"), strings.ReplaceAll(o.Level, " ", "-"), i+1))
					err = os.WriteFile(w.Kept, []byte(w.Spec), 0o600)
				}
			}
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, reportFile), []byte(a.whole()), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the advice: %w", err)
	}
	return nil
}
