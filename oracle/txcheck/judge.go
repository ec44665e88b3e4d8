package txcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// readsTable reports whether the statement reads rows of a table.
func (s *plannedStatement) readsTable(t *table) bool {
	return slices.ContainsFunc(s.step.Statement.Reads(), func(u statement.TableUse) bool {
		return strings.EqualFold(u.Name, t.name) || strings.HasSuffix(t.name, "."+u.Name)
	})
}

// result is what a statement brought back without transactions.
type result struct {
	fact   *fact
	answer answer.Result
}

// replay executes statements in an order without transactions (algorithm 1, ExecuteWithoutTxn).
func (k *check) replay(ctx context.Context, order []*fact) (results []result, tables []answer.Table, err error) {
	if err := k.stage.Reset(ctx); err != nil {
		return nil, nil, err
	}
	for i := range k.plan.sessions {
		for _, st := range k.plan.sessions[i].Setup {
			if schedule.SetsAccess(k.plan.dbms.Product, &st) {
				continue
			}
			if _, err := k.stage.Execute(ctx, i, st.Text); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, f := range order {
		st, err := k.stage.Execute(ctx, f.plannedStatement.step.Session, f.text)
		if err != nil {
			return nil, nil, err
		}
		answer, _ := strip(st.Answer, f.hidden)
		results = append(results, result{f, answer})
	}
	if tables, err = k.stage.Tables(ctx); err != nil {
		return nil, nil, err
	}
	return results, stripTables(tables), nil
}

// difference is what two executions disagree in: a statement's result, or a table.
type difference struct {
	name               string         // oracle.NameResult, ...
	fact               *fact          // nil: a table
	step               *schedule.Step // as fact, of the schedule itself
	table              string
	expected, observed oracle.Side
	errs               [2]*answer.Error // of oracle.NameError
	reference          []string
}

// compare compares the results and final tables of an execution with transactions (observed) with those of the same statements
// without (algorithm 1). affected says whether counts of changed rows are comparable, too.
func compare(results []result, observed func(*fact) answer.Result, affected func(*fact) bool, want, got []answer.Table) *difference {
	for _, r := range results {
		if r.fact.role == setting {
			continue
		}
		if d := compareAnswers(r.answer, observed(r.fact), affected(r.fact), r.fact.text); d != nil {
			d.fact = r.fact
			return d
		}
	}
	return compareTables(want, got)
}

// compareTables compares the contents of a database.
func compareTables(want, got []answer.Table) *difference {
	for _, t := range answer.DiffTables(want, got) {
		d := &difference{name: oracle.NameFinalState, table: t.Table}
		if t.Shape != "" {
			d.expected.Text, d.observed.Text = "the table as it was made", t.Shape
			return d
		}
		i := slices.IndexFunc(want, func(x answer.Table) bool { return x.Name == t.Table })
		j := slices.IndexFunc(got, func(x answer.Table) bool { return x.Name == t.Table })
		d.expected, d.observed = schedule.Sides(want[i].Columns, want[i].Rows, got[j].Rows, t.Rows)
		return d
	}
	return nil
}

// compareAnswers compares what a statement returned.
func compareAnswers(want, got answer.Result, affected bool, text string) *difference {
	errText := func(a answer.Result) string {
		if a.Err == nil {
			return "no error"
		}
		return a.Err.Text()
	}
	switch {
	case answer.BreaksConstraint(want.Err) && answer.BreaksConstraint(got.Err): // which of several broken constraints a server names is not defined
		return nil
	case !answer.SameError(want.Err, got.Err):
		return &difference{name: oracle.NameError, expected: oracle.Side{Text: errText(want)}, observed: oracle.Side{Text: errText(got)}, errs: [2]*answer.Error{want.Err, got.Err}}
	case want.Err != nil:
		return nil
	case !slices.Equal(answer.Names(want.Columns), answer.Names(got.Columns)):
		return &difference{name: oracle.NameResult, expected: oracle.Side{Text: fmt.Sprintf("columns %v", answer.Names(want.Columns))},
			observed: oracle.Side{Text: fmt.Sprintf("columns %v", answer.Names(got.Columns))}}
	}
	if d := answer.DiffRows(want.Rows, got.Rows); !d.Equal() && !schedule.Represents(text, d) {
		e, o := schedule.Sides(want.Columns, want.Rows, got.Rows, d)
		return &difference{name: oracle.NameResult, expected: e, observed: o}
	}
	if affected && want.Columns == nil && want.Affected != got.Affected {
		return &difference{name: oracle.NameResult, expected: oracle.Side{Text: prose.Count(want.Affected, "row") + " changed"},
			observed: oracle.Side{Text: prose.Count(got.Affected, "row") + " changed"}}
	}
	return nil
}

// judge executes topological orders and compares.
func (k *check) judge(ctx context.Context) error {
	got := k.last
	rules := got.truth()
	var wrong *difference
	agreed := false
	for n, by := range rules {
		g := got.graph(by)
		if n > 0 && (g.Text() == got.graph(rules[0]).Text() || len(g.Cyclic()) > 0) {
			continue
		}
		d, err := k.orders(ctx, g, k.options.Orders)
		if err != nil {
			return err
		}
		if agreed = d == nil; agreed {
			break
		}
		if wrong == nil {
			wrong = d
		}
	}
	if !agreed {
		if k.plan.doubt != "" {
			k.verdict.Unknown = k.plan.doubt
			return nil
		}
		if why, err := k.byRows(ctx, wrong); err != nil || why != "" {
			k.verdict.Unknown = why
			return err
		}
		if len(rules) > 1 && k.stale(got) != nil {
			k.verdict.Unknown = "a write saw other versions than its transaction's snapshot has, and which ones is not defined"
			return nil
		}
		k.report(k.violation(wrong))
		return nil
	}
	k.agreed = true
	return k.permitted(ctx, got)
}

// byRows says why a difference may come from the order in which the server came to the rows of one statement; empty: it does not.
func (k *check) byRows(ctx context.Context, d *difference) (string, error) {
	if d.fact != nil {
		d.step = d.fact.plannedStatement.step
	}
	if d.step == nil || len(d.step.Statement.Targets()) == 0 {
		return "", nil
	}
	if err := k.options.Plain.Prepare(ctx, k.original.Setup, len(k.original.Sessions)); err != nil {
		return "", fmt.Errorf("prepare the database: %w", err)
	}
	list, _, err := schedule.References(ctx, k.options.Plain, k.original.DBMS())
	if why := k.original.ByRows(list, &d.step.Statement, d.errs[0], d.errs[1]); why != "" {
		return d.step.Name + ": " + why, nil
	}
	return "", err
}

// orders executes topological orders of a graph, and gives the first difference.
func (k *check) orders(ctx context.Context, g *Graph, count int) (*difference, error) {
	tried := map[string]bool{}
	for range count {
		order := g.Order(k.options.Intn)
		key := fmt.Sprint(order)
		if tried[key] {
			continue
		}
		tried[key] = true
		facts := make([]*fact, len(order))
		for i, n := range order {
			facts[i] = k.last.fact(g.Nodes[n].Statement)
		}
		results, tables, err := k.replay(ctx, facts)
		if err != nil {
			return nil, fmt.Errorf("execute without transactions: %w", err)
		}
		always := func(*fact) bool { return true }
		d := compare(results, func(f *fact) answer.Result { return f.answer }, always, tables, stripTables(k.last.schedule.Final))
		if d != nil {
			for _, f := range facts {
				d.reference = append(d.reference, k.line(f.plannedStatement.step))
			}
			return d, nil
		}
	}
	return nil, nil
}

// line is a statement as findings show it.
func (k *check) line(st *schedule.Step) string {
	return k.plan.sessions[st.Session].Name + ": " + st.Statement.Text
}

// report completes a finding.
func (k *check) report(f oracle.Finding) {
	f.ID = f.Fingerprint()
	k.verdict.Findings = append(k.verdict.Findings, f)
}

// finding makes a finding of a difference.
func (k *check) finding(kind oracle.Kind, d *difference) oracle.Finding {
	f := oracle.Finding{
		Oracle: Descriptor.Name, Kind: kind, Class: oracle.TxCheck, Name: d.name, Level: k.original.Level, Promised: kind == oracle.KindViolation,
		Difference: &oracle.Difference{
			Rule:     "statements in a topological order of their dependencies, executed without transactions, give the same results and the same database (TxCheck, theorem 1)",
			Expected: d.expected, Observed: d.observed, Reference: d.reference, Table: d.table,
		},
	}
	if d.fact != nil {
		d.step = d.fact.plannedStatement.step
	}
	if d.step != nil {
		st := d.step
		f.Difference.Step, f.Difference.Session, f.Difference.SQL = st.Name, k.original.Sessions[st.Session].Name, st.Statement.Text
		f.Session = uint64(st.Session + 1)
		for _, u := range st.Statement.Tables {
			if t := k.plan.table(u); t != nil && !slices.Contains(f.Tables, t.name) {
				f.Tables = append(f.Tables, t.name)
			}
		}
	} else {
		f.Tables = []string{d.table}
	}
	slices.Sort(f.Tables)
	return f
}

func (k *check) violation(d *difference) oracle.Finding {
	f := k.finding(oracle.KindViolation, d)
	f.Source = "TxCheck (OSDI 2023), theorem 1"
	if i := slices.IndexFunc(k.original.Steps, func(st schedule.Step) bool { return st.Name == f.Difference.Step }); i >= 0 {
		k.original.Attribute(&f, i)
	}
	f.Remedies = oracle.Remedies(k.original.DBMS(), &f)
	return f
}

// stale finds a write that referenced other versions than its transaction's plain reads would have: the difference between the
// snapshot and what is committed.
func (k *check) stale(got *capture) *fact {
	for _, f := range got.facts {
		if f.level != product.RepeatableRead && f.level != product.Snapshot {
			continue // no snapshot that stays
		}
		if v, _ := k.plan.dbms.View(f.level, product.Update); v.Locked == product.V4 {
			continue // what the snapshot does not show is to be refused
		}
		if !f.out && f.role == write && f.hasView && f.hasNow && !slices.Equal(f.set(bySnapshot), f.set(byCurrent)) {
			return f
		}
	}
	return nil
}

// permitted looks for the difference that the paper reports where a write sees newer rows than the snapshot that the reads around
// it see (its figure 1, MySQL bug 108528): the vendors document that.
func (k *check) permitted(ctx context.Context, got *capture) error {
	f := k.stale(got)
	known := k.plan.dbms.Cause(product.CurrentRead)
	if f == nil || known == nil {
		return nil
	}
	g := got.graph(bySnapshot)
	if len(g.Cyclic()) > 0 || g.Text() == got.graph(byCurrent).Text() {
		return nil
	}
	d, err := k.orders(ctx, g, 1)
	if err != nil || d == nil {
		return err
	}
	out := k.finding(oracle.KindPermitted, d)
	out.Difference.Cause = string(known.ID)
	out.Difference.Reason = fmt.Sprintf("%s (%s) sees the newest committed rows, also in its subqueries, and not the snapshot that the reads before it see; "+
		"with the versions that it did see, its dependencies explain all results", f.plannedStatement.step.Name, f.plannedStatement.step.Statement.Text)
	out.Source = known.Source
	k.report(out)
	return nil
}
