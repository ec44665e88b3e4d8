package explore

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab/replay"
	"wirecheck/product"
)

// Lacking is what statements of the trace ask for and the database does not have.
type Lacking struct {
	// Refused counts the statements that touch tables and were refused because of that; Touching all that touch tables.
	Refused  int    `json:"refused"`
	Touching int    `json:"touching"`
	Errors   []Lack `json:"errors,omitempty"` // the most frequent first

	mistaken map[uint64]bool // sessions whose transaction failed so
}

// Lack is one error that says what is not there.
type Lack struct {
	Text       string `json:"error"`
	Statements int    `json:"statements"`
}

// maxLacks is how many different errors are counted apart.
const maxLacks = 1000

// add takes a step that is done. A statement that had failed in the trace too tells nothing.
func (l *Lacking) add(s *replay.Step, p *product.Product) {
	if l.mistaken == nil {
		l.mistaken = map[uint64]bool{}
	}
	if !s.Lacks() {
		if s.Touches() {
			l.Touching++
		}
		return
	}
	e := s.Answer.Err
	class := p.Error(e.Code, e.Message)
	if class.Reason != answer.ReasonFailed { // which refuses all, for what made the transaction fail
		l.mistaken[s.Session] = class.Mistake
	}
	if s.Touches() || class.Mistake {
		l.Touching++
	}
	if !l.mistaken[s.Session] || !s.Touches() && !class.Mistake {
		return
	}
	l.Refused++
	if !class.Mistake {
		return
	}
	text := e.Text()
	i := slices.IndexFunc(l.Errors, func(k Lack) bool { return k.Text == text })
	switch {
	case i >= 0:
		l.Errors[i].Statements++
	case len(l.Errors) < maxLacks:
		l.Errors = append(l.Errors, Lack{text, 1})
	}
}

// undecided says why nothing that was found means anything; empty: it means something.
func (l *Lacking) undecided() string {
	slices.SortStableFunc(l.Errors, func(a, b Lack) int { return cmp.Compare(b.Statements, a.Statements) })
	if 2*l.Refused <= l.Touching || len(l.Errors) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s failed, which did not fail in the trace: the database lacks what they need", l.Refused, prose.Count(l.Touching, "statement"))
}

// lacking says what is missing, and where to take it from.
func (p *Report) lacking(w io.Writer) {
	l := p.Lacking
	if l == nil || l.Refused == 0 {
		return
	}
	fmt.Fprintf(w, "\nmissing in the database, for %s:\n", prose.Count(l.Refused, "statement"))
	for i, k := range l.Errors {
		if i == firstShown {
			fmt.Fprintf(w, "  and %d more\n", len(l.Errors)-i)
			break
		}
		fmt.Fprintf(w, "  %s (statements: %d)\n", prose.Line(k.Text, prose.Width), k.Statements)
	}
	for _, line := range p.advice {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// snapshotAdvice says how to take a snapshot for a trace.
func (r *replayer) snapshotAdvice() []string {
	when := "before the first statement of the trace"
	if r.survey.First != 0 {
		when += fmt.Sprintf(" (%s UTC)", time.Unix(0, r.survey.First).UTC().Format("2006-01-02 15:04:05"))
	}
	began := "the replay began with an empty database"
	if from := cmp.Or(r.o.Snapshot, r.o.Template, r.o.InPlace); from != "" {
		began = "the replay began with " + from
	}
	list := []string{began + ". It needs the tables and rows that the server had " + when + ":", "  " + r.survey.DumpCommand(r.main), "  wirecheck replay " + r.path + " --snapshot snapshot.sql"}
	if r.survey.Creates && !r.o.InferSchema {
		list = append(list, "The trace has CREATE TABLE statements: --infer-schema executes all of its definitions first.")
	}
	return list
}

// inferSchema makes the tables that the trace's own statements define.
func (r *replayer) inferSchema(ctx context.Context) (err error) {
	config, err := r.config()
	if err != nil {
		return err
	}
	schema, err := replay.InferSchema(r.open, &config)
	if err != nil {
		return err
	}
	if len(schema.Lacking) > 0 {
		return fmt.Errorf("--infer-schema: the trace uses tables that none of its statements creates (%s). Take a snapshot instead:\n%s",
			firstOf(schema.Lacking), strings.Join(r.snapshotAdvice(), "\n"))
	}
	return r.restoring(ctx, func(s *replay.Snapshot) error {
		r.made = map[string]bool{}
		for _, sql := range schema.Statements {
			r.made[sql] = true
		}
		return s.Define(ctx, schema.Statements)
	})
}

// firstOf lists the first of some names.
func firstOf(names []string) string {
	if more := len(names) - firstShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:firstShown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// interrupted says how far a replay came before the user ended it.
func (r *replayer) interrupted(ctx context.Context) string {
	x := r.report.Replay
	if ctx.Err() == nil || x == nil {
		return ""
	}
	if e := r.report.Explored; e != nil {
		return fmt.Sprintf("interrupted: %d of %s were run", e.Groups, prose.Count(e.planned, "combination"))
	}
	return fmt.Sprintf("interrupted: %d of %s were replayed", x.Statements, prose.Count(r.survey.Statements, "statement"))
}
