package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
	"wirecheck/product"
)

// combination is a group under way.
type combination struct {
	e        *explorer
	g        *replay.Group
	lab      *lab.Lab
	panel    *panel.Panel
	level    product.Level
	spec     *scenario.Spec
	recorded *scenario.Permutation
	base     *lab.Result
	lanes    []*replay.Lane
	stage    *lab.Stage // of lab: says what it did in the oracles' words
	masks    *serial.Masks
	orders   []*scenario.Permutation
	serial   map[string]*schedule.Schedule // serial orders, by sessions and the statements' texts
	named    map[string]*WrongRun          // by what differs: what the oracles call it
	settled  [][]string                    // the statements of the last order that was executed
	wrong    bool                          // the recorded order is
	blamed   map[int]string                // by the number of an invariant that was broken: a serial order that breaks it as well
}

// sessions names a group's, for people.
func sessionsOf(g *replay.Group) string {
	var list []string
	for _, u := range g.Units {
		list = append(list, fmt.Sprint(u.Session))
	}
	return "transactions of sessions " + strings.Join(list, ", ")
}

// begin makes the scenario, and executes the recorded order.
func (k *combination) begin(ctx context.Context) (why string, err error) {
	d := k.e.r.dialect()
	tables, thinned := k.g.State.Tables, k.g.State.Thinned
	defs := k.e.r.definitions(k.e.defined[:k.g.State.Defined])
	for {
		k.spec, k.recorded = k.g.Spec("replay.spec", k.e.r.instance.Engine.Lab, defs, tables, d)
		k.base, err = k.lab.Run(ctx, k.spec, k.recorded, func(bool) {})
		if refused, ok := errors.AsType[*answer.Error](err); ok {
			return fmt.Sprintf("%s: its tables cannot be made anew: %v", sessionsOf(k.g), refused), nil
		}
		if err != nil {
			return "", err
		}
		if !thinned || k.same() {
			break
		}
		if k.g.State.Whole == nil || len(k.g.Queries) > 0 {
			return fmt.Sprintf("%s: they depend on more than %d rows", sessionsOf(k.g), maxStateRows), nil
		}
		tables, thinned = k.g.State.Whole, false
	}
	if overtime(k.base.Trouble) {
		return "", k.base.Trouble
	}
	if k.base.Trouble != nil {
		return fmt.Sprintf("%s: %v", sessionsOf(k.g), k.base.Trouble), nil
	}
	k.stage = lab.NewStage(k.lab, k.e.r.instance.Version, k.e.describe)
	again, err := k.lab.Run(ctx, k.spec, k.recorded, func(bool) {})
	if err != nil {
		return "", err
	}
	k.lanes = k.g.Lanes(k.e.r.generated.Began(), k.answers(k.base), k.answers(again), d)
	x, err := k.stage.Schedule(k.spec, k.base)
	if err != nil {
		return "", err
	}
	y, err := k.stage.Schedule(k.spec, again)
	if err != nil {
		return "", err
	}
	k.masks = serial.NewMasks(serial.Options{Counters: k.g.State.Filled, Keys: k.g.State.Keys, Was: k.g.State.Stood(), Recent: panel.Recent})
	k.masks.Blind(x)
	k.masks.Learn(x, y)
	for i, u := range k.g.Units {
		for j, without := range u.Superseded(d) {
			if without && !slices.ContainsFunc(k.lanes[i].Flows, func(f replay.Flow) bool { return f.From == j }) {
				k.masks.Skip(i, k.spec.Sessions[i].Steps[j].Name)
			}
		}
	}
	k.orders = replay.Serial(k.spec)
	return "", nil
}

// same reports whether the recorded order brought the same answers as the replay.
func (k *combination) same() bool {
	answers := k.answers(k.base)
	for i, u := range k.g.Units {
		for j, s := range u.Steps {
			a := answers[i][j]
			if a == nil || (a.Err == nil) != (s.Answer.Err == nil) || len(a.Results) != len(s.Answer.Results) {
				return false
			}
			for n := range a.Results {
				if a.Results[n].Affected != s.Answer.Results[n].Affected || !slices.EqualFunc(a.Results[n].Rows, s.Answer.Results[n].Rows, answer.SameRow) {
					return false
				}
			}
		}
	}
	return true
}

// answers gives what each step brought; nil for those that were not executed.
func (k *combination) answers(r *lab.Result) [][]*answer.Answer {
	out := make([][]*answer.Answer, len(k.spec.Sessions))
	for i, s := range k.spec.Sessions {
		out[i] = make([]*answer.Answer, len(s.Steps))
	}
	for i := range r.Events {
		ev := &r.Events[i]
		if ev.Kind == lab.Ran || ev.Kind == lab.Resumed {
			out[ev.Step.Session][ev.Step.Index] = &ev.Answer
		}
	}
	return out
}

// texts are the statements as the trace has them.
func (k *combination) texts() [][]string {
	out := make([][]string, len(k.spec.Sessions))
	for i, s := range k.spec.Sessions {
		for _, st := range s.Steps {
			out[i] = append(out[i], st.SQL)
		}
	}
	return out
}

// with makes the scenario with other statements, and a permutation of it.
func (k *combination) with(texts [][]string, p *scenario.Permutation) (*scenario.Spec, *scenario.Permutation) {
	return remade(k.spec, p, func(sql string) string { return sql }, func(st *scenario.Step) string { return texts[st.Session][st.Index] })
}

// remade copies the setup and the sessions of a scenario, and a permutation of it. block gives the text of a setup, step that of a step.
func remade(from *scenario.Spec, p *scenario.Permutation, block func(sql string) string, step func(*scenario.Step) string) (*scenario.Spec, *scenario.Permutation) {
	spec, q := &scenario.Spec{Name: from.Name}, &scenario.Permutation{}
	for _, b := range from.Setup {
		spec.Setup = append(spec.Setup, scenario.Block{SQL: block(b.SQL), Pos: b.Pos})
	}
	for _, s := range from.Sessions {
		c := &scenario.Session{Name: s.Name}
		if s.Setup != nil {
			c.Setup = &scenario.Block{SQL: block(s.Setup.SQL), Pos: s.Setup.Pos}
		}
		for _, st := range s.Steps {
			c.Steps = append(c.Steps, &scenario.Step{Name: st.Name, SQL: step(st), Session: st.Session, Index: st.Index})
		}
		spec.Sessions = append(spec.Sessions, c)
	}
	for _, ps := range p.Steps {
		q.Steps = append(q.Steps, scenario.PermutationStep{Step: spec.Sessions[ps.Step.Session].Steps[ps.Step.Index]})
	}
	return spec, q
}

// others runs the group in other orders.
func (k *combination) others(ctx context.Context) error {
	choice := scenario.Choice{}
	switch k.e.r.o.Mode.Kind {
	case scenario.KindAll:
		choice.Independent = panel.Independence(k.spec, k.e.r.instance.Engine, k.level)
	default:
		choice.Intn = mathrand.New(mathrand.NewPCG(k.e.r.seed(), uint64(k.g.Start))).IntN
	}
	for p := range k.spec.Orders(k.e.r.o.Mode, choice) {
		if p.String() == k.recorded.String() || slices.ContainsFunc(k.orders, func(o *scenario.Permutation) bool { return o.String() == p.String() }) {
			continue
		}
		texts, result, mark, err := k.settle(ctx, p)
		if err != nil {
			return err
		}
		k.e.x.Interleavings++
		k.e.x.runs[k.g.Shape]++
		if result != nil && overtime(result.Trouble) {
			return result.Trouble
		}
		if result == nil || result.Trouble != nil {
			continue
		}
		k.refusals(texts, result)
		if err := k.weigh(ctx, p, texts, result, false, mark); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle runs an order until the statements are those that the application would have sent, as far as the data flow is known: what a step
// reads may change what a later one writes, and that what the next one reads.
func (k *combination) settle(ctx context.Context, p *scenario.Permutation) (texts [][]string, result *lab.Result, mark string, err error) {
	if texts = k.settled; texts == nil { // where they begin does not matter for where they end, and orders are much alike
		texts = k.texts()
	}
	for range len(p.Steps) + 1 {
		spec, perm := k.with(texts, p)
		result, err = k.lab.Run(ctx, spec, perm, func(bool) {})
		if err != nil {
			return nil, nil, "", err
		}
		answers := k.answers(result)
		var next [][]string
		mark = ""
		for i, lane := range k.lanes {
			list, m := lane.Recompute(answers[i], k.e.r.dialect())
			next = append(next, list)
			mark = cmp.Or(mark, m)
		}
		if slices.EqualFunc(texts, next, func(a, b []string) bool { return slices.Equal(a, b) }) {
			k.settled = texts
			return texts, result, mark, nil
		}
		texts = next
	}
	return texts, result, "the values that it writes do not settle", nil
}

// judge asks whether an execution was serializable, and the oracles. The isolation oracle, which takes long, only names what values show,
// and decides where they do not.
func (k *combination) judge(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, captured bool, mark string) error {
	thorough := k.panel != nil && k.panel.Executes() || k.e.r.wanted != nil
	if p.Switches() == len(k.spec.Sessions)-1 && len(k.spec.Sessions) > 1 && !thorough {
		return nil // it is a serial order itself
	}
	spec, perm := k.with(texts, p)
	w := &WrongRun{Captured: captured, Level: k.level.History, Permutation: perm.String(), Mark: mark, switches: p.Switches(), steps: len(p.Steps)}
	j, err := k.values(ctx, spec, texts, result, k.masks, true)
	if err != nil {
		return err
	}
	if len(j.Differences) == 0 && j.Unknown == "" && !thorough {
		return nil
	}
	if len(j.Differences) > 0 && k.masks.Doubts() {
		if j, err = k.values(ctx, spec, texts, result, k.masks, false); err != nil {
			return err
		}
	}
	if len(j.Differences) > 0 {
		// Once more: what does not repeat is not reported.
		again, err := k.lab.Run(ctx, spec, perm, func(bool) {})
		if err != nil {
			return err
		}
		if again.Trouble != nil {
			return nil
		}
		masks, err := k.refined(spec, result, again)
		if err != nil {
			return err
		}
		if j, err = k.values(ctx, spec, texts, again, masks, false); err != nil {
			return err
		}
		if len(j.Differences) == 0 && !thorough {
			return nil
		}
	}
	what := ""
	for _, d := range j.Differences {
		what += fmt.Sprint(d.Order, d.Session, d.Step, d.Table, ";")
	}
	if len(j.Differences) > 0 {
		w.Why = []string{j.Closest().Text}
	}
	if known := k.named[what]; known != nil && what != "" && !thorough {
		w.Found, w.Tables, w.oracles = slices.Clone(known.Found), slices.Clone(known.Tables), known.oracles
	} else if err := k.name(ctx, spec, perm, w); err != nil {
		return err
	}
	k.named[what] = w
	if len(w.Found) == 0 {
		return nil
	}
	known := k.told() || k.e.goesWrong(k.g)
	k.wrong = k.wrong || captured
	w.Already, w.shape = k.wrong, k.g.Shape
	switch {
	case k.e.r.wanted != nil:
	case captured && (slices.Contains(w.oracles, panel.IsolationName) || known), known && !w.more(len(k.g.Units)):
		k.e.wrong = append(k.e.wrong, k.g)
		return nil // the live oracle, or a smaller combination, has told of it
	}
	noted, err := k.note(ctx, w, spec, perm)
	if noted {
		k.e.wrong = append(k.e.wrong, k.g)
	}
	return err
}

// more reports whether a finding in a combination of so many units says more than that some of them go wrong by themselves.
func (w *WrongRun) more(units int) bool {
	return slices.ContainsFunc(w.findings, func(f oracle.Finding) bool { return len(f.Transactions) > 0 && (units == 2 || len(f.Transactions) > 2) })
}

// told reports whether the live oracle has told of transactions that are all of the group's units.
func (k *combination) told() bool {
	return slices.ContainsFunc(k.e.r.report.Findings, func(f oracle.Finding) bool {
		return len(f.Transactions) > 1 && !slices.ContainsFunc(f.Transactions, func(t oracle.Transaction) bool {
			return !slices.ContainsFunc(k.g.Units, func(u *replay.Unit) bool {
				return t.Session == u.Session && !slices.ContainsFunc(t.Statements, func(st oracle.Statement) bool {
					return !slices.ContainsFunc(u.Steps, func(s *replay.Step) bool { return s.Is(st.SQL) })
				})
			})
		})
	})
}

// refined gives the masks for an order that was executed twice.
func (k *combination) refined(spec *scenario.Spec, result, again *lab.Result) (*serial.Masks, error) {
	a, err := k.stage.Schedule(spec, result)
	if err != nil {
		return nil, err
	}
	b, err := k.stage.Schedule(spec, again)
	if err != nil {
		return nil, err
	}
	return k.masks.Refined(a, b), nil
}

// values asks whether an execution's answers and tables are those of a serial one.
func (k *combination) values(ctx context.Context, spec *scenario.Spec, texts [][]string, result *lab.Result, masks *serial.Masks, strict bool) (serial.Judgement, error) {
	s, err := k.stage.Schedule(spec, result)
	if err != nil {
		return serial.Judgement{}, err
	}
	return masks.Judge(s, strict, func(order []int) (*schedule.Schedule, error) {
		key := fmt.Sprint(order, texts)
		if r := k.serial[key]; r != nil {
			return r, nil
		}
		r, own, err := k.oneByOne(ctx, texts, order)
		if err != nil {
			return nil, err
		}
		k.serial[key], err = k.stage.Schedule(own, r)
		return k.serial[key], err
	})
}

// oneByOne executes units one after the other. Where they insert rows in another order than in the execution that the texts are of, the rows have other
// ids: then the units name them so.
func (k *combination) oneByOne(ctx context.Context, texts [][]string, order []int) (r *lab.Result, spec *scenario.Spec, err error) {
	p := &scenario.Permutation{}
	for _, i := range order {
		for _, st := range k.spec.Sessions[i].Steps {
			p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
		}
	}
	for range len(order) + 1 {
		var perm *scenario.Permutation
		spec, perm = k.with(texts, p)
		if r, err = k.lab.Run(ctx, spec, perm, func(bool) {}); err != nil {
			return nil, nil, err
		}
		answers, named := k.answers(r), make([][]string, len(texts))
		for i, lane := range k.lanes {
			named[i] = lane.Named(texts[i], answers[i], k.e.r.dialect())
		}
		if slices.EqualFunc(texts, named, func(a, b []string) bool { return slices.Equal(a, b) }) {
			break
		}
		texts = named
	}
	return r, spec, nil
}
