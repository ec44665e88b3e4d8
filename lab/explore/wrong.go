package explore

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/serial"
	"wirecheck/report"
)

// name asks the oracles what an execution shows.
func (k *combination) name(ctx context.Context, spec *scenario.Spec, perm *scenario.Permutation, w *WrongRun) error {
	var findings []oracle.Finding
	if k.panel != nil {
		d, err := k.panel.Run(ctx, spec, perm)
		if err != nil {
			return err
		}
		findings = d.Findings()
	}
	w.findings = findings
	for i := range findings {
		f := &findings[i]
		if name := f.Title(); !slices.Contains(w.Found, name) {
			w.Found = append(w.Found, name)
		}
		if !slices.Contains(w.oracles, f.Oracle) {
			w.oracles = append(w.oracles, f.Oracle)
		}
		for _, t := range f.Tables {
			if name := t[strings.IndexByte(t, '.')+1:]; !slices.Contains(w.Tables, name) {
				w.Tables = append(w.Tables, name)
			}
		}
	}
	if len(w.Found) == 0 && w.Why != nil {
		w.oracles = []string{serial.Descriptor.Name}
		w.Found = []string{oracle.NameSerial}
		if k.g.Phantom() {
			w.Found[0] += " (phantom)"
		}
	}
	slices.Sort(w.Found)
	slices.Sort(w.Tables)
	return nil
}

// note keeps what was found, if it is the shortest of its kind and the scenario that shows it does. noted: it is known by now.
func (k *combination) note(ctx context.Context, w *WrongRun, spec *scenario.Spec, p *scenario.Permutation) (noted bool, err error) {
	x := k.e.x
	if !w.Captured {
		if w.Mark != "" {
			x.Marked++
		} else {
			x.Wrong++
		}
	}
	for _, u := range k.g.Units {
		w.Sessions = append(w.Sessions, u.Session)
		for _, t := range u.Tags() {
			if !slices.Contains(w.Tags, t) {
				w.Tags = append(w.Tags, t)
			}
		}
		if u.Request != "" && k.e.r.o.Requests && !slices.Contains(w.Units, u.Request) {
			w.Units = append(w.Units, u.Request)
		}
	}
	w.OneSession = k.g.OneSession()
	for i, l := range k.lanes {
		for _, f := range l.Flows {
			before, after := spec.Sessions[i].Steps[f.To].SQL, k.spec.Sessions[i].Steps[f.To].SQL
			if before != after {
				w.Flows = append(w.Flows, fmt.Sprintf("session %s: %v (the trace has %s)", spec.Sessions[i].Name, f, prose.Line(after, 100)))
			}
		}
	}
	key := fmt.Sprint(w.Captured, w.Mark != "", w.Found, w.Invariant, w.Tables, k.g.Shape)
	old := x.seen[key]
	if old != nil {
		w.Wrong = old.Wrong
	}
	w.Wrong++
	if old != nil && (old.steps < w.steps || old.steps == w.steps && old.switches <= w.switches) {
		old.Wrong = w.Wrong
		return true, nil
	}
	if why, err := k.print(ctx, w, spec, p); err != nil {
		return false, err
	} else if why != "" {
		if x.NotShown++; x.NotShown <= firstShown {
			x.Unconfirmed = append(x.Unconfirmed, fmt.Sprintf("%s of sessions %s, in the order %s: %s", strings.Join(w.Found, ", "), sessionList(w.Sessions), w.Permutation, why))
		}
		return false, nil
	}
	if old != nil {
		*old = *w
		return true, nil
	}
	x.seen[key] = w
	if k.e.r.o.Found != nil {
		k.e.r.o.Found(w)
	}
	switch {
	case w.Mark != "":
		x.Possible = append(x.Possible, w)
	default:
		x.Anomalies = append(x.Anomalies, w)
	}
	return true, nil
}

// printable writes a scenario so that a file can hold it.
func (k *combination) printable(from *scenario.Spec, p *scenario.Permutation) (*scenario.Spec, *scenario.Permutation) {
	write := func(sql string) string { return replay.Braceless(sql, k.e.r.dialect()) }
	return remade(from, p, write, func(st *scenario.Step) string { return write(st.SQL) })
}

// print makes the scenario file, and executes it as wirecheck run does: why says why it does not show what was found.
func (k *combination) print(ctx context.Context, w *WrongRun, spec *scenario.Spec, p *scenario.Permutation) (why string, err error) {
	spec, p = k.printable(spec, p)
	out := spec.Reproducer(p, scenario.Target{Engine: k.e.r.instance.Engine.Name, Level: k.level.History}, w.oracles, 0)
	out.Header = []string{fmt.Sprintf("%s: %s of sessions %v of %s", strings.Join(w.Found, ", "), k.e.r.o.unit(), w.Sessions, filepath.Base(k.e.r.path))}
	if f := k.e.r.wanted; f != nil {
		out.Header[0] = prose.Line(fmt.Sprintf("%s of %s: %s", f.ID, filepath.Base(k.e.r.path), report.Headline(f)), 0)
	}
	for _, line := range w.Why {
		out.Header = append(out.Header, prose.Line(line, 0))
	}
	text, err := out.Print()
	if err != nil {
		w.Unprintable = err.Error()
		return "", nil
	}
	w.Spec = text
	read, err := scenario.Parse(spec.Name, []byte(text))
	if err != nil {
		return "", fmt.Errorf("read again the scenario that shows what was found: %w", err)
	}
	b, err := k.e.judges(ctx, k.level, w.oracles)
	if err != nil {
		return "", err
	}
	d, err := b.Run(ctx, read, read.Permutations[0])
	if err != nil {
		return "", err
	}
	shows := len(d.Findings()) > 0
	if w.Invariant != "" {
		shows = slices.ContainsFunc(d.Result.Invariants, func(r lab.Reading) bool {
			why, err := r.Broken()
			return err == nil && why != "" && r.String() == w.Invariant
		})
	}
	if !shows {
		return "executed by itself it shows nothing", nil
	}
	return "", nil
}
