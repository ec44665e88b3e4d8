package wss

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// judgement is what a difference means.
type judgement struct {
	kind           oracle.Kind
	cause          product.CauseID
	reason, source string
	// permitted are, by step, what the step's own write departs by, if its vendor permits all of that.
	permitted map[int]product.CauseID
}

// apart gives the judgement of a difference by itself, where another one shows the bug: what a write departs by that is permitted is not what
// breaks a promise.
func (c *check) apart(d *difference, all []difference, j judgement) judgement {
	alone := func(d *difference) bool { _, ok := j.permitted[d.step]; return ok && d.step >= 0 }
	if j.kind != oracle.KindViolation || !alone(d) || !slices.ContainsFunc(all, func(o difference) bool { return o.class == d.class && !alone(&o) }) {
		return j
	}
	return judged(j.permitted[d.step], c.dbms)
}

// judge says what the differences are: permitted, violations, or nothing certain.
func (c *check) judge(ctx context.Context, found []difference) error {
	var left []difference
	for i := range found {
		d := &found[i]
		if cause := c.simple(d, found); cause != "" {
			c.report(d, judged(cause, c.dbms))
			continue
		}
		left = append(left, *d)
	}
	reads, writes := 0, 0
	for i := range left {
		if left[i].name == oracle.NameResult {
			reads++
		} else {
			writes++
		}
	}
	var j judgement
	var err error
	if writes > 0 {
		if j, err = c.cause(ctx); err != nil {
			return err
		}
	}
	if reads > 0 && writes == 0 { // the model knows nothing of what is read
		if j, err = c.otherOrder(ctx); err != nil {
			return err
		}
	}
	if j.kind == oracle.KindViolation && j.cause == "" {
		why, err := c.byRows(ctx)
		if err != nil {
			return err
		}
		for i := range left {
			if why = cmp.Or(c.arbitrary(&left[i]), why); why != "" {
				j = judgement{kind: oracle.KindUnknown, reason: why}
			}
		}
	}
	for i := range left {
		c.report(&left[i], c.apart(&left[i], left, j))
	}
	return nil
}

// arbitrary says why a write's success may be another one each time: constraints are checked row by row (MySQL manual, 1.7.2.3;
// PostgreSQL manual, CREATE TABLE: UNIQUE, not deferrable), so that the order in which a plan comes to the rows decides.
func (c *check) arbitrary(d *difference) string {
	if d.name != oracle.NameWrite {
		return ""
	}
	st := &c.s.Steps[d.step]
	if in := st.Statement.Insert; in != nil && in.Select == "" && len(in.Rows) < 2 {
		return ""
	}
	return fmt.Sprintf("%s (%s): whether a constraint refuses it can depend on the row that comes first", st.Name, st.Statement.Text)
}

// byRows says why what one of the writes does may be another thing each time: actions of foreign keys that lead back to its table change rows to which it has yet
// to come, so that the order in which a plan comes to them decides. Empty: none is of that kind.
func (c *check) byRows(ctx context.Context) (string, error) {
	if !reference.MatchString(strings.Join(c.s.Setup, "\n")) {
		return "", nil
	}
	list, _, err := schedule.References(ctx, c.stage, c.dbms)
	if err != nil {
		return "", fmt.Errorf("wss: %w", err)
	}
	for i := range c.s.Steps {
		if st := &c.s.Steps[i]; isWrite(&st.Statement) && !st.Failed() {
			if why := c.s.ByRows(list, &st.Statement, nil, nil); why != "" {
				return st.Name + ": " + why, nil
			}
		}
	}
	return "", nil
}

// otherOrder judges what was read at SERIALIZABLE: only the order of statements that were resumed at once can explain it.
func (c *check) otherOrder(ctx context.Context) (judgement, error) {
	for _, s := range orders(c.s) {
		other := &check{s: s, dbms: c.dbms, stage: c.stage, options: c.options, transactions: s.Transactions(), generated: c.generated}
		e, err := other.execute(ctx, other.txPlan(other.transactions))
		if err != nil {
			return judgement{}, err
		}
		if len(other.compare(oracle.WSSTx, e)) == 0 {
			return judged(product.Waiters, c.dbms), nil
		}
	}
	return judgement{kind: oracle.KindViolation, reason: "what a transaction reads at this level is locked until its end"}, nil
}

func (c *check) report(d *difference, j judgement) {
	if j.kind == oracle.KindUnknown {
		c.verdict.Unknown = j.reason
		return
	}
	c.verdict.Findings = append(c.verdict.Findings, c.finding(d, j))
}

// simple finds causes that the difference itself shows.
func (c *check) simple(d *difference, all []difference) product.CauseID {
	if d.step < 0 {
		if len(c.differ(d.serial.tables, c.s.Final, true)) == 0 {
			return product.Counter
		}
		// The step that is the reason of it is judged by itself.
		for i := range all {
			if o := &all[i]; o.step >= 0 && o.class == d.class {
				if cause := c.simple(o, nil); cause == product.ReadOnly || cause == product.Deferred {
					return cause
				}
			}
		}
		return ""
	}
	was, is := &c.s.Steps[d.step], d.serial.of(d.step)
	t := schedule.Of(c.transactions, d.step)
	switch {
	case d.class == oracle.WSSStmt && t != nil && t.ReadOnly && was.Failed() && was.Answer.Err != nil && slices.Contains([]string{"25006", "1792"}, was.Answer.Err.Code):
		return product.ReadOnly
	case d.class == oracle.WSSStmt && is != nil && dataError(is.Answer.Err) && deferred.MatchString(strings.Join(c.s.Setup, "\n")):
		return product.Deferred
	case d.name == oracle.NameResult && c.onlyCounters(was, is):
		return product.Counter
	}
	return ""
}

// onlyCounters reports whether two results differ in columns from counters alone.
func (c *check) onlyCounters(a, b *schedule.Step) bool {
	if len(a.Answer.Columns) == 0 || !slices.Equal(a.Answer.Columns, b.Answer.Columns) {
		return false
	}
	var hidden []int
	for i, col := range a.Answer.Columns {
		for _, names := range c.generated {
			if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, col.Name) }) {
				hidden = append(hidden, i)
			}
		}
	}
	return len(hidden) > 0 && answer.DiffRows(masked(b.Answer.Rows, hidden), masked(a.Answer.Rows, hidden)).Equal()
}

// masked are rows without the values of some columns.
func masked(rows [][]answer.Value, columns []int) [][]answer.Value {
	if len(columns) == 0 {
		return rows
	}
	out := make([][]answer.Value, len(rows))
	for i, r := range rows {
		out[i] = slices.Clone(r)
		for _, n := range columns {
			out[i][n] = nil
		}
	}
	return out
}

// differ compares two states, without the values from counters if asked to.
func (c *check) differ(want, got []answer.Table, blind bool) []answer.TableDifference {
	if !blind || len(c.generated) == 0 {
		return answer.DiffTables(want, got)
	}
	hide := func(tables []answer.Table) []answer.Table {
		out := slices.Clone(tables)
		for i := range out {
			var hidden []int
			for n, col := range out[i].Columns {
				for table, names := range c.generated {
					if strings.EqualFold(table, out[i].Name) && slices.ContainsFunc(names, func(x string) bool { return strings.EqualFold(x, col.Name) }) {
						hidden = append(hidden, n)
					}
				}
			}
			out[i].Rows = masked(out[i].Rows, hidden)
		}
		return out
	}
	return answer.DiffTables(hide(want), hide(got))
}

// cause looks for the rules that explain the schedule: as it was observed, and in the other orders that several resumed statements can
// have had.
func (c *check) cause(ctx context.Context) (judgement, error) {
	if j, ok, err := c.modelled(ctx, c.s, c.transactions); err != nil || ok {
		return j, err
	}
	why := ""
	for _, s := range orders(c.s) {
		other := &check{s: s, dbms: c.dbms, stage: c.stage, options: c.options, transactions: s.Transactions(), generated: c.generated}
		e, err := other.execute(ctx, other.txPlan(other.transactions))
		if err != nil {
			return judgement{}, err
		}
		if found := other.compare(oracle.WSSTx, e); len(found) == 0 {
			return judged(product.Waiters, c.dbms), nil
		}
		j, ok, err := other.modelled(ctx, s, other.transactions)
		if err != nil || ok && j.kind != oracle.KindUnknown {
			return j, err
		}
		if ok {
			why = j.reason
		}
	}
	if why != "" {
		return judgement{kind: oracle.KindUnknown, reason: why}, nil
	}
	if c.dbms.Cause(product.UnlockedDuplicate) != nil && c.s.WroteUnlocked() {
		return judged(product.UnlockedDuplicate, c.dbms), nil
	}
	return judgement{kind: oracle.KindViolation, reason: "no rule that the vendor documents for this level leaves what was observed"}, nil
}

// modelled asks the model. It is false if the model contradicts what was observed.
func (c *check) modelled(ctx context.Context, s *schedule.Schedule, transactions []schedule.Transaction) (judgement, bool, error) {
	if err := c.stage.Reset(ctx); err != nil {
		return judgement{}, false, fmt.Errorf("wss: %w", err)
	}
	initial, err := c.stage.Tables(ctx)
	if err != nil {
		return judgement{}, false, fmt.Errorf("wss: initial state: %w", err)
	}
	m := c.newModel(s, transactions, initial)
	if why := m.impossible(); why != "" {
		return c.uncertain("a difference may be permitted, and the model cannot tell: " + why)
	}
	e, exact, err := m.explain(ctx)
	switch {
	case err != nil:
		return judgement{}, false, err
	case e != nil:
		return e.judgement, true, nil
	case !exact:
		return c.uncertain("a difference may be permitted, and the model cannot tell: " + m.loose)
	}
	return judgement{}, false, nil
}

// uncertain is the judgement where the model cannot help: transactions that lock all that their writes read,
// so that no documented rule lets them differ from the serial schedule.
func (c *check) uncertain(why string) (judgement, bool, error) {
	if !slices.ContainsFunc(c.transactions, func(t schedule.Transaction) bool { return !guarded(c.dbms, t.Level) }) {
		return judgement{}, false, nil
	}
	return judgement{kind: oracle.KindUnknown, reason: why}, true, nil
}

// orderLimit bounds the orders that are tried for statements that were resumed at once.
const orderLimit = 24

// orders are schedules that differ from an observed one in the order of statements that were resumed by the same event: they wait, and
// finish one behind the other before any other statement is sent, so that what was seen is the order of their answers. So it is of a statement that was let go, and one
// that was sent since and answered first.
func orders(s *schedule.Schedule) (out []*schedule.Schedule) {
	for first := 0; first < len(s.Steps); {
		last := first + 1
		for last < len(s.Steps) && s.Steps[first].Waited && s.Steps[last].Waited && s.Steps[last].Sent < s.Steps[first].Done && !sentBetween(s, first, last) {
			last++
		}
		if last-first > 1 {
			places := []int{0, 1, 2, 3} // more than four were never seen; the first ones in every order
			for p := range schedule.Permutations(places[:min(last-first, len(places))]) {
				if slices.IsSorted(p) { // as observed
					continue
				}
				if len(out) == orderLimit {
					return out
				}
				other := *s
				other.Steps = slices.Clone(s.Steps)
				for i, from := range p {
					other.Steps[first+i] = s.Steps[first+from]
					other.Steps[first+i].Done = s.Steps[first+i].Done
				}
				out = append(out, &other)
			}
		}
		first = last
	}
	all := s.Transactions()
	for w := range s.Steps { // a statement that was let go, and whose answer came behind those of statements that were sent since
		for to := w - 1; to >= 0 && len(out) < orderLimit && freed(s, all, w, s.Steps[to].Sent); to-- {
			other := *s
			other.Steps = slices.Insert(slices.Delete(slices.Clone(s.Steps), w, w+1), to, s.Steps[w])
			for i := to; i <= w; i++ {
				other.Steps[i].Done = s.Steps[i].Done
			}
			out = append(out, &other)
		}
	}
	return out
}

// freed reports whether a statement that waited may have gone on before a moment, though it was not seen to: a transaction that it may have waited for had ended.
func freed(s *schedule.Schedule, all []schedule.Transaction, w, moment int) bool {
	st := &s.Steps[w]
	return st.Waited && slices.ContainsFunc(all, func(t schedule.Transaction) bool {
		return t.Session != st.Session && t.Begin < st.Sent && st.Sent < t.End && t.End < moment && (len(st.For) == 0 || slices.Contains(st.For, t.Session))
	})
}

// sentBetween reports whether any statement was sent between the ends of two.
func sentBetween(s *schedule.Schedule, first, last int) bool {
	return slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Sent > s.Steps[first].Done && st.Sent < s.Steps[last].Done })
}
