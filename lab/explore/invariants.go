package explore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
)

// brokenName is what an interleaving shows that breaks an invariant.
const brokenName = "invariant broken"

// Breach is an invariant that interleavings of some units break.
type Breach struct {
	Invariant string    `json:"invariant"`
	Broken    int       `json:"interleavings"` // of those that were executed
	Shown     *WrongRun `json:"shown"`         // the shortest
}

// invariants are those of the options, as they are asked in the replay's databases.
func (r *replayer) invariants() (list []lab.Invariant) {
	for _, i := range r.o.Invariants {
		if verbs, err := r.describe()(i.SQL); err == nil && !r.postgres() { // else the server says what is wrong with it
			i.SQL = replay.Unqualified(i.SQL, r.main, verbs)
		}
		list = append(list, i)
	}
	return list
}

// queries are those of the invariants.
func queries(invariants []lab.Invariant) (list []string) {
	for _, i := range invariants {
		list = append(list, i.SQL)
	}
	return list
}

// before reads the invariants before the first statement of the trace.
func (r *replayer) before(ctx context.Context) error {
	if len(r.o.Invariants) == 0 {
		return nil
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	r.readings, err = lab.ReadBefore(ctx, conn, r.invariants())
	return errors.Join(err, conn.Close())
}

// after reads them behind the replay.
func (r *replayer) after(ctx context.Context) error {
	if len(r.readings) == 0 {
		return nil
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	if err := errors.Join(lab.ReadAfter(ctx, conn, r.readings), conn.Close()); err != nil {
		return err
	}
	for _, reading := range r.readings {
		why, err := reading.Broken()
		if err != nil {
			return err
		}
		if why != "" {
			r.report.Broken = append(r.report.Broken, why)
		}
	}
	return nil
}

// broken tells which invariants the replay in the recorded order broke.
func broken(w io.Writer, list []string) {
	for _, why := range list {
		fmt.Fprintf(w, "\nINVARIANT BROKEN in the recorded order: %s\n", why)
	}
}

// breaches gives what an execution broke, a line for each invariant, by their numbers.
func (k *combination) breaches(result *lab.Result) (map[int]string, error) {
	broken := map[int]string{}
	for i, reading := range result.Invariants {
		why, err := reading.Broken()
		switch {
		case errors.Is(err, lab.ErrBefore): // what came before these units in the trace has broken it
			k.e.x.Before++
		case err != nil:
			return nil, err
		case why != "":
			broken[i] = why
		}
	}
	return broken, nil
}

// perhaps stands behind a serial order in which the application reads something else than in the trace: its checks may keep the invariant there.
const perhaps = ", if the application goes on although it reads something else than in the trace,"

// serially says which serial order of the units breaks an invariant as well; empty: none does.
func (k *combination) serially(ctx context.Context, number int) (order string, err error) {
	doubtful := ""
	for _, p := range k.orders {
		_, result, mark, err := k.settle(ctx, p)
		if err != nil {
			return "", err
		}
		if result.Trouble != nil {
			continue
		}
		broken, err := k.breaches(result)
		if err != nil {
			return "", err
		}
		switch {
		case broken[number] == "":
		case mark == "":
			return p.String(), nil
		default:
			doubtful = p.String() + perhaps
		}
	}
	return doubtful, nil
}

// broke makes what an interleaving shows that breaks invariants, one for each. First the shortest is to be given.
func (k *combination) broke(ctx context.Context, p *scenario.Permutation, result *lab.Result, mark string, captured bool) (list []*WrongRun, err error) {
	broken, err := k.breaches(result)
	if err != nil {
		return nil, err
	}
	for number, why := range broken {
		serial, known := k.blamed[number]
		if !known {
			if serial, err = k.serially(ctx, number); err != nil {
				return nil, err
			}
			k.blamed[number] = serial
		}
		w := &WrongRun{Captured: captured, Level: k.level.History, Permutation: p.String(), Mark: mark, switches: p.Switches(), steps: len(p.Steps), shape: k.g.Shape, Runs: 1,
			Found: []string{brokenName}, Invariant: result.Invariants[number].String(), Serial: serial, oracles: []string{"none"}, Why: []string{why}}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *WrongRun) int { return strings.Compare(a.Invariant, b.Invariant) })
	return list, nil
}

// blame says whose fault it is that an invariant is broken, for people.
func (w *WrongRun) blame() string {
	if strings.HasSuffix(w.Serial, perhaps) {
		return "the serial order " + w.Serial + " breaks it as well: the statements alone do not keep it"
	}
	if w.Serial != "" {
		return "the serial order " + w.Serial + " breaks it as well: the statements do not keep it"
	}
	return "no serial order breaks it: the interleaving does"
}

// weigh asks all that is asked of an execution.
func (k *combination) weigh(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, captured bool, mark string) error {
	x := k.e.x
	wrong, marked := x.Wrong, x.Marked
	if err := k.judge(ctx, p, texts, result, captured, mark); err != nil {
		return err
	}
	err := k.noteBroken(ctx, p, texts, result, mark, captured)
	x.Wrong, x.Marked = min(wrong+1, x.Wrong), min(marked+1, x.Marked) // it is one interleaving, however much is wrong with it
	return err
}

// noteBroken keeps the invariants that an interleaving breaks.
func (k *combination) noteBroken(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, mark string, captured bool) error {
	list, err := k.broke(ctx, p, result, mark, captured)
	if err != nil {
		return err
	}
	for _, w := range list {
		w.Already = k.wrong
		spec, perm := k.with(texts, p)
		if _, err := k.note(ctx, w, spec, perm); err != nil {
			return err
		}
	}
	return nil
}

// breakTrial counts an interleaving that breaks invariants, in which nothing else was found if alone. What serial orders break as well is no matter of
// levels and not counted as wrong.
func (k *combination) breakTrial(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, mark string, o *Outcome, alone, show bool) error {
	list, err := k.broke(ctx, p, result, mark, false)
	if err != nil {
		return err
	}
	for _, w := range list {
		i := slices.IndexFunc(o.Breaches, func(b *Breach) bool { return b.Invariant == w.Invariant })
		if i < 0 {
			spec, perm := k.with(texts, p)
			for _, u := range k.g.Units {
				w.Sessions = append(w.Sessions, u.Session)
			}
			if show {
				if why, err := k.print(ctx, w, spec, perm); err != nil || why != "" {
					o.Untried = fmt.Sprintf("interleaving %s breaks an invariant, but %s", w.Permutation, why)
					return err
				}
			}
			i = len(o.Breaches)
			o.Breaches = append(o.Breaches, &Breach{Invariant: w.Invariant, Shown: w})
		}
		o.Breaches[i].Broken++
		if !alone || w.Serial != "" {
			continue
		}
		alone = false
		count, shown := &o.Wrong, &o.Shown
		if mark != "" {
			count, shown = &o.Possible, &o.Maybe
		}
		if *count++; *shown == nil {
			*shown = w
		}
		if !slices.Contains(o.Found, brokenName) {
			o.Found = append(o.Found, brokenName)
		}
	}
	return nil
}

// addBreaches adds those of other units.
func (o *Outcome) addBreaches(p *Outcome) {
	for _, b := range p.Breaches {
		if i := slices.IndexFunc(o.Breaches, func(c *Breach) bool { return c.Invariant == b.Invariant }); i >= 0 {
			o.Breaches[i].Broken += b.Broken
			continue
		}
		o.Breaches = append(o.Breaches, b)
	}
}

// text is what people read of it.
func (b *Breach) text(engine string, of int) string {
	text := fmt.Sprintf("  invariant broken in %d of %s: %s\n    shortest: %s\n    %s\n", b.Broken, prose.Count(of, "interleaving"), b.Shown.Why[0], b.Shown.Permutation, b.Shown.blame())
	if b.Shown.Kept != "" {
		text += "    shown by: " + b.Shown.again(b.Shown.Kept, engine) + "\n"
	}
	return text
}

// again is the command that executes the interleaving again from a file.
func (w *WrongRun) again(path, engine string) string {
	command := "wirecheck run " + path + " --engine " + engine
	if w.Invariant != "" {
		command += " --invariant '" + strings.ReplaceAll(w.Invariant, "'", `'\''`) + "'"
	}
	return command
}
