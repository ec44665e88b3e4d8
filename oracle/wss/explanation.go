package wss

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// explanation is why a branch of the model is not like the serial schedule.
type explanation struct{ judgement }

// better: what is permitted explains all; a known bug is more than nothing known.
func (e *explanation) better(o *explanation) bool {
	rank := func(k oracle.Kind) int {
		return slices.Index([]oracle.Kind{oracle.KindUnknown, oracle.KindViolation, oracle.KindPermitted}, k)
	}
	return rank(e.kind) > rank(o.kind)
}

// reasons compares what each write of a branch saw with what it sees in the serial schedule. Where it decided otherwise on a row, the
// rule by which it did is a cause. If one of the causes is a known bug, the whole is; else the first is the difference's.
func (m *model) reasons(ctx context.Context, b branch) (*explanation, error) {
	var causes []product.CauseID
	var words []string
	add := func(n int, cause product.CauseID) {
		if cause != "" && !slices.Contains(causes, cause) {
			causes = append(causes, cause)
			words = append(words, fmt.Sprintf("%s of session %s (%s): %s", m.s.Steps[n].Name, m.s.Sessions[m.s.Steps[n].Session].Name, cause, judged(cause, m.dbms).reason))
		}
	}
	permitted := map[int]product.CauseID{}
	for i := range b.acts {
		a := &b.acts[i]
		if !committed(&m.transactions[m.of[a.step]]) {
			continue
		}
		list, err := m.causes(ctx, b.store, a)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if guarded(m.dbms, m.transactions[m.of[a.step]].Level) {
				return nil, nil // next-key locks keep others from it (MySQL manual, 17.7.1 and 17.7.3)
			}
			add(a.step, c)
		}
		if len(list) > 0 && !slices.ContainsFunc(list, func(c product.CauseID) bool { return judged(c, m.dbms).kind != oracle.KindPermitted }) {
			permitted[a.step] = list[0]
		}
	}
	if len(causes) == 0 {
		return &explanation{judgement{kind: oracle.KindUnknown, reason: "each write alone gives what was observed, and saw what it sees in the serial schedule; the serial execution on this server differs from both"}}, nil
	}
	first := judged(causes[0], m.dbms)
	for _, c := range causes {
		if j := judged(c, m.dbms); j.kind == oracle.KindViolation {
			first = j
			break
		}
	}
	first.reason, first.permitted = strings.Join(words, "; "), permitted
	return &explanation{first}, nil
}

// causes are the rules by which a write decided otherwise than it does in the serial schedule.
func (m *model) causes(ctx context.Context, s store, a *act) (out []product.CauseID, err error) {
	st := &m.s.Steps[a.step].Statement
	if a.whole {
		return m.wholeCauses(s, a), nil
	}
	target := m.single(st)
	others := m.others(st, target)
	used, due := m.shown(s, a.step, others, a.read), m.serialView(s, a.step, others)
	on := func(v *version, tables []answer.Table) (effect, error) {
		if !v.alive() {
			return effect{}, nil
		}
		return m.onRow(ctx, a.step, target, v.values, append(slices.Clip(tables), m.references(s, a.step, append(slices.Clip(others), target))...))
	}
	for r := range s {
		if s[r].table != target {
			continue
		}
		v := m.serially(&s[r], a.step)
		want, err := on(v, due)
		if err != nil {
			return nil, err
		}
		got := slices.Contains(a.addressed, r)
		if want.addressed == got || want.addressed && want.values != nil && answer.SameRow(want.values, v.values) { // it would have left the row as it is
			continue
		}
		if got && !slices.ContainsFunc(s[r].versions, func(v version) bool { return v.writer == m.of[a.step] && v.at == m.s.Steps[a.step].Done }) { // it left the row as it is
			continue
		}
		without, err := on(v, used)
		if err != nil {
			return nil, err
		}
		if without.addressed == got {
			out = append(out, m.readCause(a))
			continue
		}
		out = append(out, m.rowCause(s, a, r, v))
	}
	if len(out) == 0 && len(others) > 0 && len(answer.DiffTables(due, used)) > 0 {
		out = append(out, m.readCause(a)) // the same rows, and other values
	}
	return out, nil
}

// serialView are tables as a statement sees them in the serial schedule.
func (m *scene) serialView(s store, n int, tables []int) (out []answer.Table) {
	for _, i := range tables {
		t := m.tables[i]
		t.Rows = nil
		for r := range s {
			if v := m.serially(&s[r], n); s[r].table == i && v.alive() {
				t.Rows = append(t.Rows, v.values)
			}
		}
		slices.SortFunc(t.Rows, answer.CompareRows)
		out = append(out, t)
	}
	return out
}

// wholeCauses are those of an INSERT, or of another statement that was evaluated on whole tables.
func (m *model) wholeCauses(s store, a *act) (out []product.CauseID) {
	st := &m.s.Steps[a.step].Statement
	for _, u := range st.Tables {
		i := m.table(u.Name)
		if i < 0 {
			continue
		}
		due := m.serialView(s, a.step, []int{i})
		switch {
		case u.Read && len(answer.DiffTables(due, m.shown(s, a.step, []int{i}, a.read))) > 0:
			out = append(out, m.readCause(a))
		case !u.Read && (st.Insert != nil && st.Insert.Conflict || st.Ignore || st.Verb == "replace" || m.s.Steps[a.step].Failed()) &&
			len(answer.DiffTables(due, m.shown(s, a.step, []int{i}, view{moment: m.s.Steps[a.step].Done}))) > 0:
			out = append(out, m.keyCause(a))
		}
	}
	return out
}

// keyCause is why a statement that looks for keys found others than it finds in the serial schedule.
func (m *scene) keyCause(a *act) product.CauseID {
	if m.seesSnapshot(a.step) {
		return product.OlderSnapshot
	}
	return product.NoGapLocks
}

// readCause is why a statement that reads without locks saw something else than it sees in the serial schedule.
func (m *scene) readCause(a *act) product.CauseID {
	switch {
	case m.seesSnapshot(a.step):
		return product.OlderSnapshot
	case m.dbms.AfterWait == product.WaitRechecks:
		return product.StatementSnapshot
	}
	return product.NonlockingRead
}

// rowCause is why a statement decided otherwise on a row; v is the version that it sees in the serial schedule.
func (m *model) rowCause(s store, a *act, r int, v *version) product.CauseID {
	step := &m.s.Steps[a.step]
	before := v != nil && v.at < step.Sent // what it did not see had been written, and its transaction was running
	switch m.dbms.AfterWait {
	case product.WaitRechecks:
		switch {
		case m.seesSnapshot(a.step):
			return product.OlderSnapshot
		case step.Waited && v != nil && v.at < step.Done:
			return product.EvalPlanQual
		case before:
			return product.StatementSnapshot
		}
		return product.NoGapLocks
	case product.WaitRestarts:
		switch snapshot := m.seesSnapshot(a.step); {
		case snapshot && v != nil && v.writer >= 0 && m.transactions[v.writer].End < step.Sent:
			return product.EarlySnapshot
		case snapshot:
			return product.OlderSnapshot
		case before:
			return product.SemiConsistent
		case !slices.Contains(a.addressed, r) && m.locksKey(a.step):
			return product.UnlockedKey
		}
		return product.NoGapLocks
	}
	switch a.passed[r] {
	case tagLocked:
		switch {
		case m.torn(s, a, r):
			return product.TornUpdate
		case m.inserted(&s[r], a.step):
			return product.PassedInsert
		}
		return product.SemiConsistent
	case tagMoved:
		return product.MovedRow
	case tagGap:
		if writer := s[r].inserter(); writer >= 0 && step.Statement.Verb == "delete" &&
			slices.ContainsFunc(a.addressed, func(other int) bool { return s[other].inserter() == writer }) {
			return product.TornInsert
		}
	}
	return product.NoGapLocks
}

// locksKey reports whether a statement locks a primary key whether a row has it or not, since its condition fixes it.
func (m *scene) locksKey(n int) bool {
	if m.transactions[m.of[n]].Level != product.RepeatableRead || m.dbms.Cause(product.UnlockedKey) == nil {
		return false
	}
	keys := map[string][][]string{}
	for table, columns := range clusteredKeys(m.s.Setup) {
		keys[strings.ToLower(table)] = [][]string{columns}
	}
	return schedule.Single(keys, &m.s.Steps[n].Statement, m.tables)
}

// torn reports whether a statement that passed a locked row by decided on another one by what the lock's holder left.
func (m *scene) torn(s store, a *act, r int) bool {
	step := &m.s.Steps[a.step]
	p := m.pending(&s[r], a.step, step.Sent)
	if p == nil || m.transactions[p.writer].End > step.Done {
		return false
	}
	for _, other := range a.addressed {
		for i := range s[other].versions {
			if v := &s[other].versions[i]; v.writer == p.writer && m.committedBy(v, step.Done) {
				return true
			}
		}
	}
	return false
}

// inserted reports whether a row had no committed version when a statement ended that did not wait for it.
func (m *scene) inserted(r *row, n int) bool {
	return !m.visible(r, n, m.s.Steps[n].Sent).alive()
}
