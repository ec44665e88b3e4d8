package isolation

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/trace/flow"
)

// Lost updates between requests.
//
// An application that runs each statement as a transaction of its own loses updates that no dependency graph of transactions shows.
// What it meant as one is a request (history.Event.Request). A request R loses an update of a row if
//   - a transaction of R read version v of the row,
//   - a transaction of another request, or of none, wrote a later version n, and changed a column c,
//   - a later transaction of R wrote a version w after n, and assigned c a value that comes from v (history.Derived).
//
// Then no serial order of the requests gives R both its read and its place. One thing makes it harmless, and then nothing is reported: the last write
// checked a column that n changed (WHERE version = 7). A read on which no later write depends draws nothing at all. So a lock alone changes nothing: a
// request that locks the row and reads it with the lock depends on what it read then, and one that throws this away depends on what it had read before.
//
// A value depends on the read, too, if R asked for the row by the column (WHERE owner IS NULL) and then gave it another value: R claimed the row. That
// is certain if n gave the column a value for which R had not asked, and no version in between may have taken it back. If the value shows no relation to the one that was read, or it is not known what n changed, the finding is
// only possible: it is counted, and reported if Options.Possible says so.
//
// So it is where the server computed the value from the current one (SET stock = stock - 2) and the condition does not name the column. No update is lost.
// But R may have gone on because of what it had read (if stock >= 2), and no statement shows whether it did.

// requests are those whose transactions are kept.
type requests struct {
	c  *Checker
	by map[string]*request
	// open are the shapes of questions that are no check: requests found rows with them and made one more.
	open map[string]bool
	// moved are the numbers of rows with which requests moved one in or out: the greatest for moves in, the least for moves out.
	moved map[move]int
	cut   cut
	// doubts are findings that wait for writes that are still to be told.
	doubts []doubt
	made   map[history.Row][]made // by the rows' aliases
}

// request is what the application meant as one, as far as its transactions are kept.
type request struct {
	name    string
	txns    map[uint64]*txn
	cut     bool                    // a part of it was forgotten,
	resumed bool                    // and it went on since then
	large   bool                    // more than maxUnit transactions of it are kept
	passed  int                     // transactions of it that are only counted
	claims  map[history.Row][]claim // by the row
}

// claim is a value that a transaction of the request wrote and that comes from one that an earlier statement of it had read.
type claim struct {
	t    *txn
	stmt int32
	history.Derived
}

// columns is what a statement does with columns.
type columns struct {
	operands []history.Operand
	derived  []history.Derived
}

// maxTags bounds the tags that are kept of one transaction.
const maxTags = 16

// maxApart bounds the rows that are remembered of one session, and the questions, see apart.
const maxApart = 32

// apart is what a session read outside of transactions and requests, the latest last.
type apart struct {
	rows  []rowName  // that it has not written since
	asked []question // that no row answered
}

// rowName names a row.
type rowName struct {
	table *table
	key   string
}

// belongs says that a statement of t belongs to a request. A transaction with statements of two requests belongs to none.
func (q *requests) belongs(t *txn, name string) {
	switch {
	case name == "" || q.c.opts.Transactions || t.mixed:
	case t.request == nil:
		r := q.by[name]
		if r == nil {
			if t.passed {
				name = strings.Clone(name)
			}
			r = &request{name: name, txns: map[uint64]*txn{}, claims: map[history.Row][]claim{}}
			q.by[name] = r
			switch told, was := q.cut.find(name); {
			case !was:
				q.c.coverage.Requests++
			case !told:
				q.cut.now[start.add(name)] = true
				q.c.coverage.Resumed++
			}
		} else if r.cut && !r.resumed {
			r.resumed = true
			q.c.coverage.Resumed++
		}
		t.request = r
		if t.passed {
			r.passed++
		} else {
			r.txns[t.id] = t
		}
		if len(r.txns) > maxUnit && !r.large {
			r.large = true
			q.c.coverage.Large++
		}
	case t.request.name != name:
		q.leave(t)
		t.mixed = true
		q.c.coverage.Mixed++
	}
}

// forget takes a forgotten transaction out of its request, and remembers the name of the request with the last one.
func (q *requests) forget(t *txn) {
	r := t.request
	switch q.leave(t); {
	case r == nil:
	case q.by[r.name] != r:
		q.cut.add(r.name)
	default:
		r.cut = true
	}
}

// cut are the names of the last requests that were forgotten, and whether they are counted as such that went on.
type cut struct{ now, before map[hash]bool }

// maxCut bounds the names, half of which go when there are as many.
const maxCut = 1 << 17

func (k *cut) find(name string) (counted, was bool) {
	h := start.add(name)
	if counted, was = k.now[h]; !was {
		counted, was = k.before[h]
	}
	return counted, was
}

func (k *cut) add(name string) {
	counted, _ := k.find(name)
	if k.now == nil || len(k.now) >= maxCut/2 {
		k.now, k.before = map[hash]bool{}, k.now
	}
	k.now[start.add(name)] = counted
}

// leave takes t out of its request, and forgets the request with the last one.
func (q *requests) leave(t *txn) {
	r := t.request
	if r == nil {
		return
	}
	t.request = nil
	if t.passed {
		r.passed--
	}
	if delete(r.txns, t.id); len(r.txns)+r.passed == 0 {
		delete(q.by, r.name)
		return
	}
	for row, list := range r.claims {
		list = slices.DeleteFunc(list, func(k claim) bool { return k.t == t })
		if r.claims[row] = list; len(list) == 0 {
			delete(r.claims, row)
		}
	}
}

// columnsOf keeps what the event says of columns; nil if that is nothing.
func (q *requests) columnsOf(t *txn, stmt int32, e *history.Event) *columns {
	if len(e.Operands) == 0 || e.Error != nil || q.c.opts.Transactions && !timed(e.Operands) {
		return nil
	}
	k := &columns{operands: slices.Clone(e.Operands), derived: slices.Clone(e.Derived)}
	if r := t.request; r != nil {
		for _, d := range k.derived {
			if d.Txn == t.id {
				continue
			}
			r.claims[d.Row] = append(r.claims[d.Row], claim{t, stmt, d})
			if alias := q.aliasOf(t, d.Row); alias.Key != "" {
				r.claims[alias] = append(r.claims[alias], claim{t, stmt, d})
			}
		}
	}
	return k
}

// apart remembers the rows that the session of t reads outside of transactions and requests, and counts those that it writes later. current says
// that the server computes what is written from the current row: such a write loses nothing. more is how many accesses of the statement are to come:
// a read that those behind it would push out is not remembered.
func (t *txn) apart(v *Coverage, a *history.Access, tb *table, current bool, more int) {
	s := t.session
	if a.Row.Key == "" || t.request != nil || t.mixed || a.Op.Writes() && current {
		return
	}
	row := rowName{tb, a.Row.Key}
	if a.Op.Writes() {
		if i := slices.Index(s.apart.rows, row); i >= 0 {
			v.Apart++
			s.apart.rows = slices.Delete(s.apart.rows, i, i+1)
		}
		return
	}
	if !t.implicit || more >= maxApart || slices.Contains(s.apart.rows, row) {
		return
	}
	if len(s.apart.rows) == maxApart {
		s.apart.rows = slices.Delete(s.apart.rows, 0, 1)
	}
	if t.passed {
		row.key = strings.Clone(row.key)
	}
	s.apart.rows = append(s.apart.rows, row)
}

// judgeWrites looks for updates that t's accesses from number first on lost, and for those that others lost whose writes are known already and stand behind one of
// t's: they were judged without it.
func (q *requests) judgeWrites(t *txn, first int) {
	if len(q.by) == 0 {
		return
	}
	for i := first; i < len(t.accesses); i++ {
		a := &t.accesses[i]
		if a.node == nil || !a.op.writes() && a.op != opMatch {
			continue
		}
		q.judgeClaims(t, a.node.name(), a.stmt)
		q.judgeAnew(t, a)
		for n, far := a.node.nextInstalled(), 0; n != nil && far < maxWalk; n, far = n.nextInstalled(), far+1 {
			if n.writer != t {
				q.judgeClaims(n.writer, n.name(), n.wstmt)
			}
		}
	}
}

// judgeClaims judges what a statement of t claimed of a row.
func (q *requests) judgeClaims(t *txn, row history.Row, stmt int32) {
	if t.request == nil || len(t.request.claims) == 0 {
		return
	}
	for _, k := range t.request.claims[row] {
		if k.t != t || k.stmt != stmt {
			continue
		}
		if from := t.request.txns[k.Txn]; from != nil && from.state == stateCommitted {
			if r := from.readOf(k.Derived); r >= 0 {
				q.judgeClaim(k, reader{from, r}, from.accesses[r].node.nextInstalled())
			}
		}
	}
}

// judgeRead looks for updates that the request of r lost because n, which follows the version v that r read, became known only now.
func (q *requests) judgeRead(r reader, v, n *version) {
	if r.t.request == nil || n.writer.request == r.t.request {
		return
	}
	for _, k := range r.t.request.claims[v.name()] {
		if k.Txn == r.t.id && r.t.readOf(k.Derived) == r.acc {
			q.judgeClaim(k, r, n)
		}
	}
}

// readOf finds the access of t that read what d comes from; -1 if it is not there.
func (t *txn) readOf(d history.Derived) int32 {
	for i := range t.accesses {
		if a := &t.accesses[i]; a.node != nil && !a.op.writes() && !a.own && t.stmts[a.stmt].n == d.N && a.node.id == d.Version && a.node.name() == d.Row {
			return int32(i)
		}
	}
	return -1
}

// judgeClaim reports an update between what r read and what the claim's statement wrote, from version n on.
func (q *requests) judgeClaim(k claim, r reader, n *version) {
	if k.t.state != stateCommitted || k.t.reportedLost[k.stmt] || k.t.stmts[k.stmt].failed {
		return
	}
	v := r.access().node
	w, matched := k.t.writtenBy(k.stmt, v)
	if w == nil || matched && w.row != v.row {
		return
	}
	if matched {
		// The other request has written the same value before, so that there was nothing to change (MySQL family).
		if n = nil; w.installed() && v.precedes(w) {
			n = w
		}
	}
	var possible *version
	found := func(n *version) bool {
		if q.c.late[n.writer.id] != nil { // What it wrote is still to be told. Then this is judged again.
			return false
		}
		switch lost, sure := k.lost(n, w); {
		case lost && sure && (k.Kind != asked || n.claims(&k, w)):
			q.reportLost(k, r, n, w, false)
			return true
		case lost && possible == nil:
			possible = n
		}
		return false
	}
	if w.row != v.row {
		if slices.ContainsFunc(q.between(r, w, k.stmt, k.t), found) {
			return
		}
		q.awaits(k, r, w)
		n = nil
	}
	for i := 0; n != nil && (matched || n != w && n.precedes(w)) && i < maxWalk; i++ {
		if n.writer != r.t && n.writer != k.t && n.writer.request != k.t.request && found(n) {
			return
		}
		if n = n.nextInstalled(); matched {
			break
		}
	}
	if _, reported := k.t.reportedLost[k.stmt]; possible != nil && !reported {
		q.reportLost(k, r, possible, w, true)
	}
}

// asked is flow.Asked, the kind of a claim of which only the question tells that it depends on what was read.
const asked = string(flow.Asked)

// current is flow.Current, the kind of a claim whose value does not come from what was read, while the decision to write may.
const current = string(flow.Current)

// claims reports whether the writer of n certainly gave the claim's column another value, which the versions up to w left alone.
func (n *version) claims(k *claim, w *version) bool {
	o, known := n.assigned(k)
	if !known || o.Role != history.RoleSet || flow.Same(o.Value, k.Read) || strings.EqualFold(o.Value, k.Read) {
		return false
	}
	for range maxWalk {
		if n == w {
			return true
		}
		next := n.nextInstalled()
		if next == nil || !next.replaces(n) {
			return false
		}
		n = next
		if o, known := n.assigned(k); n != w && (!known || o.Role != "") {
			return false
		}
	}
	return false
}

// replaces reports whether no version of another transaction that committed stands between n and v for certain: it may still be to be told.
func (v *version) replaces(n *version) bool {
	p := v.prev
	for far := 0; p != nil && far < maxWalk && !(p.installed() && p.writer != v.writer); far++ {
		p = p.prev
	}
	return p == n || p != nil && p.writer != nil && p.writer == n.writer
}

// assigned is what the writer of n last assigned to the claim's column. It is not known if one of the writer's statements does not tell.
func (n *version) assigned(k *claim) (last history.Operand, known bool) {
	t := n.writer
	for _, i := range t.writes {
		a := &t.accesses[i]
		if a.node == nil || a.node.name() != k.Row {
			continue
		}
		if a.op != opUpdate || t.stmts[a.stmt].columns == nil {
			return last, false
		}
		for _, o := range t.stmts[a.stmt].columns.operands {
			if o.Column == k.Column && o.Role.Assigns() {
				last = o
			}
		}
	}
	return last, true
}

// writtenBy is the version that a statement of t gave the row of v, or, if there was nothing to change, the one that it matched.
func (t *txn) writtenBy(stmt int32, v *version) (w *version, matched bool) {
	for i := range t.accesses {
		a := &t.accesses[i]
		if a.stmt != stmt || a.node == nil || !a.node.sameKey(v) {
			continue
		}
		if a.op == opMatch {
			return a.node, true
		}
		if a.op == opUpdate || a.op == opInsert {
			// What the transaction wrote last stands for all of it in the order of versions.
			for k := i + 1; k < len(t.accesses); k++ {
				if b := &t.accesses[k]; b.op.writes() && b.node != nil && b.node.is == live && b.node.row != nil && b.node.row == a.node.row {
					a = b
				}
			}
			return a.node, false
		}
	}
	return nil, false
}

// lockedBefore reports whether t read a row with a lock before its statement wrote it.
func (t *txn) lockedBefore(stmt int32, row history.Row) bool {
	return slices.ContainsFunc(t.accesses, func(a access) bool {
		return a.op == opLock && a.stmt < stmt && a.node != nil && a.node.name() == row
	})
}

// lost reports whether the claim's statement, which wrote w, overwrites what version n changed without having checked it. It is not sure if what n changed is
// not known, or the value that was written shows no relation to the one that was read, or the server computed it.
func (k *claim) lost(n, w *version) (lost, sure bool) {
	change, known := n.changed(n.name())
	if !known {
		return true, false
	}
	changed, certain := change(k.Column, k.Read)
	if !changed {
		return false, true
	}
	guards := k.t.stmts[k.stmt].columns.operands
	if w.inserted() {
		more, told := k.guards(w)
		if certain = certain && told; told {
			guards = slices.Concat(guards, more)
		}
	}
	for _, o := range guards {
		if (o.Role == history.RoleEqual || o.Role == history.RoleIsNull || o.Role == history.RoleChecked) && does(change, o.Column, o.Value) {
			return false, true
		}
	}
	return true, certain && k.Kind != "" && k.Kind != current
}

// changed tells which columns of the row the writer of n gave another value than the one that is asked for. It is not known if one of the writer's
// statements does not tell, or it deleted the row and did not make it anew.
func (n *version) changed(row history.Row) (change func(column, from string) (changed, certain bool), known bool) {
	t := n.writer
	var list []*columns
	for _, i := range t.writes {
		a := &t.accesses[i]
		if a.node == nil || a.node.name() != row {
			continue
		}
		k := t.stmts[a.stmt].columns
		switch {
		case a.op == opDelete:
			list = a.node.anew()
		case k == nil:
			return nil, false
		case a.op == opInsert:
			list = []*columns{k}
		default:
			list = append(list, k)
		}
	}
	return func(column, from string) (changed, certain bool) {
		doubt := false
		for _, k := range list {
			did, sure := k.change(column, from, n)
			changed, certain, doubt = changed || did, certain || did && sure, doubt || !did && !sure
		}
		return changed, certain || !changed && !doubt
	}, len(list) > 0
}

// change reports whether the statement gave the column of a row another value. Frameworks write all columns back, those too that are as they were read. An
// empty from may also stand for NULL. A column that the condition says is NULL (a soft delete's deleted_at) does not change by NULL.
func (k *columns) change(column, from string, n *version) (changed, certain bool) {
	for _, o := range k.operands {
		if o.Column != column || !o.Role.Assigns() {
			continue
		}
		null := o.Role == history.RoleNull
		back, other := false, false
		for _, d := range k.derived {
			if d.Column == column && n.isOf(d.Row) {
				back = back || d.Kind == "copy" || null && d.Read == ""
				other = other || d.Kind != "" && d.Kind != "copy"
			}
		}
		switch {
		case null:
			return !back && from != "" && !slices.Contains(k.operands, history.Operand{Column: column, Role: history.RoleIsNull}), true
		case back:
			return false, true
		case o.Role == history.RoleSet:
			return !flow.Same(o.Value, from), true
		}
		if now, told := n.valueOf(column); told && from != "" {
			changed = now == nil || !flow.Same(*now, from)
			return changed, changed // a check of what was left as it was counts all the same: the statement meant to change it
		}
		return true, other || o.Role != history.RoleUnknown
	}
	return false, true
}

// does reports whether a writer changed a column, or may have.
func does(change func(column, from string) (changed, certain bool), column, from string) bool {
	changed, certain := change(column, from)
	return changed || !certain
}

// valueOf is the value of a column, in lower case, as far as the version's image tells.
func (v *version) valueOf(column string) (value *string, told bool) {
	if value, told = v.image.values[column]; told {
		return value, true
	}
	for name, value := range v.image.values {
		if strings.EqualFold(name, column) {
			return value, true
		}
	}
	return nil, false
}

// reportLost reports that the claim's statement, which wrote w, overwrote n unseen.
func (q *requests) reportLost(k claim, r reader, n, w *version, possible bool) {
	if k.t.reportedLost == nil {
		k.t.reportedLost = map[int32]bool{}
	}
	k.t.reportedLost[k.stmt] = !possible
	if possible && !q.c.opts.Possible {
		q.c.coverage.maybe(anomaly.LostBetween, w.table)
		return
	}
	ts, to := []*txn{r.t, n.writer, k.t}, []int{1, 2, 0}
	read := r.access().stmt
	then := edgeWW
	if n == w {
		then = edgeWR
	}
	edges := []edge{
		{kind: edgeRW, from: r.access().node, to: n, fromStmt: read, toStmt: n.wstmt}, {kind: then, from: n, to: w, fromStmt: n.wstmt, toStmt: k.stmt}, {kind: edgeRequest, fromStmt: k.stmt, toStmt: read},
	}
	f := draft(q.c, anomaly.GSingleRequest, anomaly.LostBetween, ts, edges, to, q.c.session)
	last := &f.Edges[2]
	last.Text = fmt.Sprintf("%s and %s are one request (%s), and %s", f.Transactions[0].Label, f.Transactions[2].Label, k.t.request.name, k.says(f))
	if possible {
		f.Kind = oracle.KindUnknown
		f.Remedies = oracle.Remedies(ts[0].product(), f)
	}
	publish(q.c, f)
}

// says is how the value that was written comes from the one that was read.
func (k *claim) says(f *oracle.Finding) string {
	read, wrote := f.Transactions[0].Label, f.Transactions[2].Label
	value := k.Column
	for _, o := range k.t.stmts[k.stmt].columns.operands {
		if o.Column == k.Column && o.Role == history.RoleSet && o.Value != "" {
			value += " = " + o.Value
		}
	}
	what := fmt.Sprintf("%s wrote %s after %s had read it", wrote, value, read)
	if k.Read != "" {
		what = fmt.Sprintf("%s wrote %s after %s had read %s", wrote, value, read, k.Read)
	}
	switch k.Kind {
	case asked:
		what += ", by which it had asked for the row"
	case current:
		what = fmt.Sprintf("%s let the server compute %s after %s had read %s; whether it went on because of that is not known", wrote, k.Column, read, k.Read)
	case "":
		what += "; whether the one depends on the other is not known"
	}
	if k.t.lockedBefore(k.stmt, k.Row) {
		what += fmt.Sprintf(". %s locked the row before it wrote, but the read stands before the lock", wrote)
	}
	return what
}
