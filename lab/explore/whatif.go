package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/report"
	"wirecheck/report/page"
)

// Comparison is one trace replayed as it was, and in variants.
type Comparison struct {
	Trace        string          `json:"trace"`
	Transactions int             `json:"transactions"` // of the trace, that use tables
	NotCompared  int             `json:"transactions_not_compared,omitempty"`
	Statements   int             `json:"statements"`          // of them, that were compared
	Unstable     int             `json:"unstable"`            // statements with which two replays as it was went differently; they are not compared
	Shapes       []*ComparedKind `json:"shapes"`              // of transactions, the most frequent first
	Runs         []*Alternative  `json:"runs"`                // the first is as it was
	Undecided    string          `json:"undecided,omitempty"` // why it means nothing that nothing differs
	room         room
}

// ComparedKind is a shape of transactions.
type ComparedKind struct {
	Number     int      `json:"number"`
	Name       string   `json:"name"`
	Count      int      `json:"count"`
	Statements []string `json:"statements"`
}

// Alternative is the replay as it was, or in a variant.
type Alternative struct {
	Variant string         `json:"variant"` // empty: as it was
	Engine  string         `json:"engine"`
	Version string         `json:"version"`
	Failed  string         `json:"failed,omitempty"` // why it did not come to its end
	Refused map[string]int `json:"refused"`          // statements, by the server's code
	NotSent int            `json:"not_sent"`         // the rest of transactions that the server had refused
	Waited  int            `json:"waited"`           // statements that were seen waiting for a lock
	// Of the statements that went the same in both replays as it was: in how many an answer is another one, a wait or a refusal came or went.
	Otherwise     int         `json:"answered_otherwise"`
	MoreWaits     int         `json:"waits_more"`
	FewerWaits    int         `json:"waits_less"`
	MoreRefused   int         `json:"refused_more"`
	FewerRefused  int         `json:"refused_less"`
	Differences   []Different `json:"differences,omitempty"` // the first ones
	Anomalies     []Anomaly   `json:"anomalies"`
	Interleavings int         `json:"interleavings"`
	Wrong         int         `json:"interleavings_wrong"`
	// Shapes tell of the statements that were refused because of other transactions, in the recorded order and in other interleavings.
	Shapes []*RefusedShape `json:"shapes"`
	Others []*RefusedShape `json:"shapes_in_interleavings"`
	Report *Report         `json:"report"`

	trail     *replay.Trail
	generated *replay.Generated
	units     *replay.Collector
}

// Different is a statement that went otherwise than as it was.
type Different struct {
	Step    int    `json:"step"`
	Session uint64 `json:"session"`
	Shape   int    `json:"shape"`
	SQL     string `json:"sql"`
	How     string `json:"how"`
}

// Anomaly is one that oracles found, and whether the replay as it was has it, too.
type Anomaly struct {
	Title  string   `json:"title"`
	Tables []string `json:"tables"`
	Count  int      `json:"count"`
	AsWas  int      `json:"as_it_was"`
	key    string
}

// RefusedShape counts refusals of transactions of one shape.
type RefusedShape struct {
	Shape    int            `json:"shape"`
	Refused  map[string]int `json:"refused"` // by the server's code
	True     int            `json:"true_conflict"`
	RowLevel int            `json:"row_level_only"`
	Unknown  int            `json:"unknown"`
	// Read counts those of RowLevel that had read a column that the other transaction changed.
	Read     int      `json:"row_level_read,omitempty"`
	Examples []string `json:"examples"` // the first of each kind
	text     string
	kinds    map[replay.Conflict]bool
}

// WhatIf replays a trace as it was, twice, and in variants. What went differently in the first two is compared with nothing. All servers, levels and settings
// are tried before anything is replayed.
func WhatIf(ctx context.Context, path string, o Options, variants []Variant) (c *Comparison, err error) {
	base := &replayer{o: o, path: path}
	name, err := base.look()
	if err != nil {
		return nil, err
	}
	if err := o.again(); err != nil {
		return nil, err
	}
	open := map[string]*backends.Instance{}
	defer func() {
		for _, in := range open {
			err = errors.Join(err, in.Close())
		}
	}()
	asWas := &Variant{}
	list := []*Variant{asWas}
	instances := map[*Variant]*backends.Instance{}
	for i := range variants {
		list = append(list, &variants[i])
	}
	for _, v := range list {
		if instances[v], err = v.fit(ctx, base, name, open); err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(v.Text, "as it was"), err)
		}
	}
	c = &Comparison{Trace: path, Shapes: []*ComparedKind{}}
	var was map[int]replay.Seen
	for i, v := range list {
		p := v.options(o, instances[v])
		if i > 0 {
			p.Trail.Like(c.Runs[0].trail)
			p.units, p.generated = c.Runs[0].units, c.Runs[0].generated
		}
		a, failed := alternative(ctx, path, p, v.Text)
		if failed != nil && i == 0 {
			return nil, failed
		}
		c.Runs = append(c.Runs, a)
		if failed != nil {
			a.Engine, a.Version, a.Failed = instances[v].Engine.Name, instances[v].Version, failed.Error()
			continue
		}
		if i == 0 {
			c.kinds(a)
			if was, err = c.stable(ctx, path, asWas.options(o, instances[v])); err != nil {
				return c, err
			}
		}
		c.compare(a, was)
		if ctx.Err() != nil {
			break
		}
	}
	c.undecided(len(list))
	return c, nil
}

// look looks at the trace, and gives the engine that it is replayed on as it was.
func (r *replayer) look() (name string, err error) {
	if r.filter, err = parseFilter(r.o.Only); err != nil {
		return "", err
	}
	if r.survey, err = replay.Look(r.open); err != nil {
		return "", err
	}
	if r.survey.Statements == 0 {
		return "", fmt.Errorf("%s %w", r.path, ErrEmpty)
	}
	if err := r.survey.Of(r.o.Product); err != nil {
		return "", err
	}
	if r.o.Engine == "" && len(r.survey.Products) == 0 {
		return "", errors.New("the trace does not say which product it is of: name one with --engine")
	}
	if name = r.o.Engine; name == "" {
		name = r.survey.Products[0]
	}
	return name, r.from.check(r, name)
}

// alternative replays the trace once.
func alternative(ctx context.Context, path string, o Options, text string) (*Alternative, error) {
	if o.Out != "" && text != "" {
		o.Out = filepath.Join(o.Out, strings.Map(func(r rune) rune {
			if strings.ContainsRune("/:@ =,", r) {
				return '-'
			}
			return r
		}, text))
	}
	a := &Alternative{Variant: text, Refused: map[string]int{}, Anomalies: []Anomaly{}, trail: o.Trail}
	r := &replayer{o: o, path: path}
	if err := r.execute(ctx); err != nil {
		return a, err
	}
	a.Report, a.Engine, a.Version, a.generated, a.units = &r.report, r.report.Engine, r.report.Version, r.own, r.units
	if x := r.report.Explored; x != nil {
		a.Interleavings, a.Wrong = x.Interleavings, x.Wrong
	}
	return a, nil
}

// stable replays the trace as it was once more, and gives what each statement brought that went the same in both.
func (c *Comparison) stable(ctx context.Context, path string, o Options) (map[int]replay.Seen, error) {
	o.Oracles, o.Mode, o.Out, o.Invariants = "none", scenario.Mode{}, "", nil
	o.Trail.Like(c.Runs[0].trail)
	again, err := alternative(ctx, path, o, "")
	if err != nil {
		return nil, fmt.Errorf("replay it as it was once more: %w", err)
	}
	first := c.Runs[0]
	seen, was := first.seen(first), map[int]replay.Seen{}
	for n, s := range again.seen(first) {
		if f, ok := seen[n]; ok && f.Code == s.Code && f.Waited == s.Waited && f.Sent == s.Sent && !f.Otherwise(s) {
			was[n] = f
		}
	}
	c.Unstable, c.Statements = len(seen)-len(was), len(was)
	return was, nil
}

// seen is what each statement brought, by its number, in the values of another replay.
func (a *Alternative) seen(as *Alternative) map[int]replay.Seen {
	list := map[int]replay.Seen{}
	for _, x := range a.trail.Txns {
		for _, n := range x.Steps {
			list[n.N] = n.Seen(func(v string) string {
				if a == as {
					return v
				}
				return a.generated.As(as.generated, v)
			})
		}
	}
	return list
}

// kinds finds the shapes of transactions.
func (c *Comparison) kinds(a *Alternative) {
	by := map[string]*ComparedKind{}
	c.Transactions, c.NotCompared = len(a.trail.Txns), a.trail.Dropped
	for _, x := range a.trail.Txns {
		k := by[x.Shape]
		if k == nil {
			k = &ComparedKind{Statements: strings.Split(strings.TrimSpace(x.Shape), "\n")}
			k.Name = nameOf(x.Tags(), k.Statements)
			by[x.Shape] = k
			c.Shapes = append(c.Shapes, k)
		}
		k.Count++
	}
	slices.SortStableFunc(c.Shapes, func(a, b *ComparedKind) int { return b.Count - a.Count })
	for i, k := range c.Shapes {
		k.Number = i + 1
	}
}

// number is the number of a shape.
func (c *Comparison) number(shape string) int {
	text := strings.TrimSpace(shape)
	return 1 + slices.IndexFunc(c.Shapes, func(k *ComparedKind) bool { return strings.Join(k.Statements, "\n") == text })
}

// compare counts what a replay brought, and what of it is otherwise than as it was.
func (c *Comparison) compare(a *Alternative, was map[int]replay.Seen) {
	first := c.Runs[0]
	seen := a.seen(first)
	numbers := map[string]int{}
	for _, x := range a.trail.Txns {
		if _, ok := numbers[x.Shape]; !ok {
			numbers[x.Shape] = c.number(x.Shape)
		}
		for _, n := range x.Steps {
			s := seen[n.N]
			switch {
			case !s.Sent && n.Cut():
				a.NotSent++
			case s.Code != "" && n.Outcome.Reason != answer.ReasonFailed:
				a.Refused[s.Code]++
			}
			if s.Waited {
				a.Waited++
			}
			if w, ok := was[n.N]; ok && a != first {
				a.differ(Different{Step: n.N, Session: x.Session, Shape: numbers[x.Shape], SQL: prose.Line(n.SQL, prose.Width)}, w, s, n.Outcome.Reason == answer.ReasonFailed)
			}
		}
	}
	tally := &tally{number: c.number, asWas: first}
	tally.add(a.trail)
	a.Shapes = tally.done()
	a.Others = []*RefusedShape{}
	if x := a.Report.Explored; x != nil && x.refusals != nil {
		x.refusals.number, x.refusals.asWas = c.number, first
		a.Others = x.refusals.done()
	}
	a.anomalies(first)
	if a != first {
		a.trail = nil // its answers are long
	}
}

// differ notes how a statement went otherwise. follows: only because its transaction had failed.
func (a *Alternative) differ(d Different, was, is replay.Seen, follows bool) {
	switch {
	case was.Code != "" && is.Sent && is.Code == "":
		a.FewerRefused++
		d.How = "not refused any more (" + was.Code + ")"
	case is.Code != "" && was.Code != is.Code && !follows:
		a.MoreRefused++
		d.How = "refused with " + is.Code
	case is.Code == "" && was.Otherwise(is):
		a.Otherwise++
		d.How = "another answer"
	}
	if is.Waited != was.Waited {
		how := "waits for a lock"
		if is.Waited {
			a.MoreWaits++
		} else {
			a.FewerWaits++
			how = "does not wait any more"
		}
		d.How = strings.TrimPrefix(d.How+"; "+how, "; ")
	}
	if d.How != "" && len(a.Differences) < maxShown {
		a.Differences = append(a.Differences, d)
	}
}

// anomalies compares what the oracles found.
func (a *Alternative) anomalies(first *Alternative) {
	count := func(r *Report, add func(key, title string, tables []string)) {
		for i := range r.Findings {
			f := &r.Findings[i]
			add(f.Title()+fmt.Sprint(f.Shapes()), f.Title(), f.Tables)
		}
		if r.Explored != nil {
			for _, w := range r.Explored.Anomalies {
				add(fmt.Sprint(w.Found, w.Invariant, w.shape), strings.Join(w.Found, ", "), w.Tables)
			}
		}
	}
	at := func(key, title string, tables []string) *Anomaly {
		i := slices.IndexFunc(a.Anomalies, func(n Anomaly) bool { return n.key == key })
		if i < 0 {
			i = len(a.Anomalies)
			a.Anomalies = append(a.Anomalies, Anomaly{Title: title, Tables: tables, key: key})
		}
		return &a.Anomalies[i]
	}
	count(a.Report, func(key, title string, tables []string) { at(key, title, tables).Count++ })
	count(first.Report, func(key, title string, tables []string) { at(key, title, tables).AsWas++ })
}

// undecided says why nothing follows from what was compared.
func (c *Comparison) undecided(asked int) {
	for _, a := range c.Runs {
		if a.Failed == "" && a.Report.Undecided != "" && c.Undecided == "" {
			c.Undecided = cmp.Or(a.Variant, "as it was") + ": " + a.Report.Undecided
		}
	}
	if left := asked - len(c.Runs); left > 0 {
		c.Undecided = fmt.Sprintf("interrupted: %s not tried", prose.Count(left, "variant"))
	}
}

// tally counts refusals by shape.
type tally struct {
	number func(shape string) int
	asWas  *Alternative
	shapes []*RefusedShape
}

// examplesShown is how many refusals of each conflict are told of a shape.
const maxExamples = 3

func (t *tally) add(trail *replay.Trail) {
	for _, r := range trail.Refusals() {
		i := slices.IndexFunc(t.shapes, func(s *RefusedShape) bool { return s.text == r.Txn.Shape })
		if i < 0 {
			i = len(t.shapes)
			t.shapes = append(t.shapes, &RefusedShape{Refused: map[string]int{}, Examples: []string{}, text: r.Txn.Shape, kinds: map[replay.Conflict]bool{}})
		}
		s := t.shapes[i]
		s.Refused[r.Code]++
		if r.Conflict == replay.UnknownConflict && t.asWas != nil {
			if title := t.asWas.finds(r.Txn); title != "" {
				r.Conflict, r.Why = replay.TrueConflict, "as it was, it takes part in: "+title
			}
		}
		switch r.Conflict {
		case replay.TrueConflict:
			s.True++
		case replay.RowLevelOnly:
			if s.RowLevel++; len(r.Read) > 0 {
				s.Read++
			}
		case replay.UnknownConflict:
			s.Unknown++
		}
		if !s.kinds[r.Conflict] && len(s.Examples) < maxExamples {
			s.kinds[r.Conflict] = true
			s.Examples = append(s.Examples, strings.TrimPrefix(fmt.Sprintf("%s: %s: %s", r.Conflict, r.Text(sessionName), prose.Line(r.Step.SQL, prose.Width)), ": "))
		}
	}
}

func sessionName(x *replay.Txn) string { return fmt.Sprintf("session %d", x.Session) }

// done gives what was counted, by the shapes' numbers.
func (t *tally) done() []*RefusedShape {
	for _, s := range t.shapes {
		s.Shape = t.number(s.text)
	}
	slices.SortFunc(t.shapes, func(a, b *RefusedShape) int { return a.Shape - b.Shape })
	return append([]*RefusedShape{}, t.shapes...)
}

// finds gives the anomaly that the oracle found of a transaction; empty: none.
func (a *Alternative) finds(x *replay.Txn) string {
	for i := range a.Report.Findings {
		f := &a.Report.Findings[i]
		if slices.ContainsFunc(f.Transactions, func(t oracle.Transaction) bool {
			return t.Session == x.Session && len(t.Statements) > 0 && !slices.ContainsFunc(t.Statements, func(st oracle.Statement) bool {
				return !slices.ContainsFunc(x.Steps, func(n *replay.Noted) bool { return n.Is(st.SQL) })
			})
		}) {
			return f.Title()
		}
	}
	return ""
}

// uniqueKeys reads which columns of a database are unique.
func uniqueKeys(ctx context.Context, d engine.Descriptor, t engine.Target) (_ replay.Keys, err error) {
	conn, err := d.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return d.Lab.UniqueKeys(ctx, conn)
}

// refusals counts what an interleaving refuses.
func (k *combination) refusals(texts [][]string, result *lab.Result) {
	if k.e.r.o.Trail == nil {
		return
	}
	if k.e.x.refusals == nil {
		k.e.x.refusals = &tally{}
	}
	trail := replay.NewTrail(maxUnits, k.e.r.dialect())
	trail.Keys = k.e.r.o.Trail.Keys
	trail.Like(k.e.r.o.Trail)
	steps := map[*scenario.Step]*replay.Step{}
	for i := range result.Events {
		ev := &result.Events[i]
		s := steps[ev.Step]
		if s == nil {
			c := *k.g.Units[ev.Step.Session].Steps[ev.Step.Index]
			s = &c
			s.Session, s.SQL = uint64(ev.Step.Session), texts[ev.Step.Session][ev.Step.Index]
			steps[ev.Step] = s
			if ev.Kind == lab.Skipped {
				s.Skip = replay.EndedBefore
			} else {
				trail.Sent(s)
			}
		}
		if ev.Kind != lab.Waits {
			s.Answer, s.Outcome = ev.Answer, ev.Outcome
			trail.Done(s)
		}
	}
	trail.Finish()
	for _, x := range trail.Txns {
		x.Session = k.g.Units[x.Session].Session
	}
	k.e.x.refusals.add(trail)
}

// Found reports whether something was found as it was, or a variant goes otherwise.
func (c *Comparison) Found() bool {
	return slices.ContainsFunc(c.Runs, func(a *Alternative) bool {
		return a.Failed == "" && (a.Report.Found() || a.MoreRefused+a.FewerRefused+a.Otherwise > 0)
	})
}

// JSON writes all of it.
func (c *Comparison) JSON(w io.Writer) error { return report.Indented(w, c) }

// HTML writes a page: the findings as it was, and below them all that the text says.
func (c *Comparison) HTML(w io.Writer) error {
	first := c.Runs[0].Report
	result := report.Result{Source: c.Trace, Findings: first.Findings, Undecided: c.Undecided}
	if first.judged != nil {
		result.Coverage = first.judged.Coverage
	}
	d := page.Of(result, nil)
	all := *c
	all.room = true
	d.Text = written(all.Text)
	return page.Write(w, d)
}
