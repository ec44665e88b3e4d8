package isolation

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Writes of different columns.
//
// An UPDATE makes a new version of the whole row, but it takes over the columns that it does not assign. Two UPDATEs of one row commute if neither
// assigns a column that the other one assigns or names: then no serial order must keep theirs, and no update is lost between them. So there is no
// ww edge between such two. Each is then ordered with the nearest versions with which it does not commute, before and behind.
//
// A column that gets the time of each UPDATE, as updated_at does, counts as not assigned (history.RoleTime).
//
// An upsert that found the row is one, too. What is not plainly an UPDATE of known columns (a new row, a DELETE, a statement that was not captured)
// commutes with nothing. What a trigger
// assigns besides is not known: then an edge is missing, never wrong.
//
// The levels of products protect rows. So the order of the versions is kept as an edge of its own (edgeRow), and a cycle over such an edge is
// reported if all its transactions ran at levels that promise that there is none. It is no anomaly otherwise.
//
// So it is with reads, see given.go.

// uses are the columns of a row that statements assign, and all names in them, in lower case and sorted, and the columns that get their time besides. nil:
// they are not known.
type uses struct{ assigned, named, timed []string }

// without leaves out of the columns that are assigned those that have one value in both images.
func (a *uses) without(was, now image) *uses {
	if a == nil || was.values == nil || now.values == nil {
		return a
	}
	same := was.same(now)
	kept := func(name string) bool { return slices.Contains(same, name) }
	if !slices.ContainsFunc(a.assigned, kept) {
		return a
	}
	return &uses{slices.DeleteFunc(slices.Clone(a.assigned), kept), a.named, a.timed}
}

// commutes reports whether writes can change places.
func (a *uses) commutes(b *uses) bool {
	return a != nil && b != nil && disjoint(a.assigned, b.named) && disjoint(b.assigned, a.named)
}

// covers reports whether a commutes with nothing with which b does not commute.
func (a *uses) covers(b *uses) bool {
	return a == nil || b != nil && (a == b || holds(a.assigned, b.assigned) && holds(a.named, b.named) && holds(a.timed, b.timed))
}

func disjoint(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { _, in := slices.BinarySearch(b, s); return in })
}

func holds(a, b []string) bool {
	return !slices.ContainsFunc(b, func(s string) bool { _, in := slices.BinarySearch(a, s); return !in })
}

const (
	maxUses   = 4096 // texts of which the columns are kept
	maxRecent = 8    // and the last ones
	maxBack   = 16   // versions between two writes that do not commute, if those in between commute with one of them
	maxTexts  = 4096 // bytes of a text that is kept so
)

// texts keeps what statements say of columns, by their texts, which come again.
type texts struct {
	uses    kept[uses]
	selects kept[selection]
}

// kept is what texts say, and the last ones of them: most are the same but for numbers and texts in them.
type kept[T any] struct {
	by     map[string]*T
	recent recentTexts
	said   [maxRecent]*T // of recent
}

func (x *kept[T]) of(sql string, d lex.Dialect, read func(string, lex.Dialect) *T) *T {
	if i := x.recent.find(sql); i >= 0 {
		return x.said[i]
	}
	said, known := x.by[sql]
	if !known {
		said = read(sql, d)
		if len(sql) <= maxTexts {
			if x.by == nil || len(x.by) >= maxUses {
				x.by = map[string]*T{}
			}
			x.by[sql] = said
		}
	}
	if len(sql) <= maxTexts {
		x.said[x.recent.add(sql)] = said
	}
	return said
}

// recentTexts are texts of which no two are the same but for numbers and texts in them.
type recentTexts struct {
	texts [maxRecent]string
	next  int // the oldest
}

// find is the place of a text; -1: it is not there.
func (x *recentTexts) find(sql string) int {
	return slices.IndexFunc(x.texts[:], func(old string) bool { return old == sql || sameShape(old, sql) })
}

// add adds a text in the place of the oldest, and gives the place.
func (x *recentTexts) add(sql string) int {
	i := x.next
	x.texts[i], x.next = sql, (i+1)%maxRecent
	return i
}

// of gives the columns of statement i of t.
func (x *texts) of(t *txn, i int32) *uses {
	if i < 0 {
		return nil
	}
	s := &t.stmts[i]
	if s.failed {
		return nil
	}
	if !s.usesKnown {
		s.uses, s.usesKnown = x.usesOf(t, s), true
	}
	return s.uses
}

func (x *texts) usesOf(t *txn, s *stmt) *uses {
	if s.verb != "update" && s.verb != "insert" || len(s.sql) >= maxText {
		return nil
	}
	u := x.uses.of(s.sql, lex.Of(t.product().Dialect), usesOf)
	if u != nil && s.columns != nil && timed(s.columns.operands) {
		u = &uses{slices.Clone(u.assigned), u.named, slices.Clone(u.timed)}
		for _, o := range s.columns.operands {
			if i, in := slices.BinarySearch(u.assigned, o.Column); in && o.Role == history.RoleTime {
				u.assigned, u.timed = slices.Delete(u.assigned, i, i+1), append(u.timed, o.Column)
			}
		}
		u.sort()
	}
	return u
}

// timed reports whether a column gets the time of its statement: then the statement assigns others, too, and nobody misses the time that it had before.
func timed(list []history.Operand) bool {
	return slices.ContainsFunc(list, func(o history.Operand) bool { return o.Role == history.RoleTime })
}

// usesOf reads the columns from the text of a statement: an UPDATE, or what an INSERT does with a row that is there already.
func usesOf(sql string, d lex.Dialect) *uses {
	if words := lex.Words(sql, d, 1); len(words) > 0 && words[0] == "insert" {
		var last lex.Token
		at := -1
		for t := range lex.Tokens(sql, d) {
			if t.Is("set") && last.Is("update") || at < 0 && t.Is("update") && last.Is("key") {
				at = t.At + len(t.Text)
			}
			if t.Kind != lex.Space && t.Kind != lex.Comment {
				last = t
			}
		}
		if at < 0 {
			return nil
		}
		sql = "UPDATE t SET " + sql[at:]
	}
	_, list := flow.Update(sql[:setEnds(sql, d)], d, nil)
	u, ended, answered := &uses{}, false, false
	for _, o := range list {
		switch {
		case o.Role == history.RoleTime:
			u.timed = append(u.timed, o.Column)
		case o.Role.Assigns():
			u.assigned = append(u.assigned, o.Column)
		}
	}
	if len(u.assigned) == 0 {
		return nil
	}
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Executed():
			return nil
		case t.Kind == lex.Space, t.Kind == lex.Comment:
			continue
		case ended:
			return nil // another statement
		case t.Text == ";":
			ended = true
		case answered: // what the client gets of the row decides nothing in it
		case t.Is("returning"):
			answered = true
		case t.Kind == lex.Word, t.Kind == lex.Name, t.Kind == lex.String && t.Text[0] == '"': // a name with ANSI_QUOTES
			u.named = append(u.named, nameIn(t))
		}
	}
	return u.sort()
}

// setEnds is where the assignments of an UPDATE end: what stands behind, as a subquery in its condition, assigns nothing.
func setEnds(sql string, d lex.Dialect) int {
	depth := 0
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Text == "(":
			depth++
		case t.Text == ")":
			depth--
		case depth == 0 && flow.EndsSet(t):
			return t.At
		}
	}
	return len(sql)
}

// nameIn is the name that a token is, as package flow has it.
func nameIn(t lex.Token) string { return strings.ToLower(strings.Trim(t.Text, "\"`")) }

func (a *uses) sort() *uses {
	for _, list := range []*[]string{&a.assigned, &a.named, &a.timed} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return a
}

// usesBy are the columns of all that the writer of v, the last version that it gave a row, did with the row. A column that kept its value is named, and not assigned.
func usesBy(c *Checker, v *version) *uses { return usesOfRow(c, v, (*version).doing) }

// saidBy are the columns as the statements of v's writer say, whether they kept their values or not.
func saidBy(c *Checker, v *version) *uses { return usesOfRow(c, v, (*version).saying) }

// saying are the columns of the statement that wrote v.
func (v *version) saying(c *Checker) *uses { return c.texts.of(v.writer, v.wstmt) }

// doing are the columns of the statement that wrote v; those that it assigned and that kept their values are not assigned.
func (v *version) doing(c *Checker) *uses {
	if v.did != nil {
		return v.did
	}
	return v.saying(c)
}

func usesOfRow(c *Checker, v *version, of func(*version, *Checker) *uses) *uses {
	if v.del || v.writer == nil || v.order == 0 && v.prev == nil {
		return nil
	}
	if p := v.before(); v.wstmt >= 0 && v.writer.stmts[v.wstmt].verb == "insert" && (p == nil || p.del) {
		return nil // the row was not there
	}
	u := of(v, c)
	for p, i := v.before(), 0; u != nil && p != nil && p.writer == v.writer; p, i = p.before(), i+1 {
		if p.is != live {
			continue
		}
		more := of(p, c)
		if more == nil || i >= maxBack || p.writer.stmts[p.wstmt].verb == "insert" {
			return nil
		}
		if more != u {
			u = (&uses{slices.Concat(u.assigned, more.assigned), slices.Concat(u.named, more.named), slices.Concat(u.timed, more.timed)}).sort()
		}
	}
	return u
}

// rowWalk is a walk along the installed versions of a row, away from one of them.
type rowWalk struct {
	mine   *uses
	led    []led  // versions to or from which an edge or a path leads
	passed []*txn // writers of all of them
	stop   uint64 // the place of the first of led
}

// led is a version to or from which a path leads: its writer, and the columns.
type led struct {
	writer *txn
	*uses
}

// meet takes in version u of another writer than v's, and gives the kind of the edge between them: edgeRow if they commute; 0: there is a path. last
// says that there is one to all that come behind u, too.
func (m *rowWalk) meet(c *Checker, v, u *version) (kind kinds, last bool) {
	if len(m.passed) == 0 {
		m.mine = usesBy(c, v)
	}
	his := usesBy(c, u)
	switch path := m.reaches(his); {
	case path:
	case !m.mine.commutes(his):
		kind = edgeWW
	default:
		m.passed = append(m.passed, u.writer)
		return edgeRow, len(m.passed) == maxBack
	}
	if m.led == nil {
		m.stop = u.order
	}
	m.led, m.passed = append(m.led, led{u.writer, his}), append(m.passed, u.writer)
	return kind, his.covers(m.mine) || len(m.passed) == maxBack
}

// reaches reports whether a path leads over one of the versions met.
func (m *rowWalk) reaches(his *uses) bool {
	return slices.ContainsFunc(m.led, func(l led) bool { return !l.commutes(his) })
}

// read draws the edge from a read of u to the later version v, to which no path leads from it. Where the reader wrote the row itself in between, it is
// certain only if the read gave the client a column that v's writer assigned.
func (m *rowWalk) read(c *Checker, r reader, u, v *version) {
	his := usesBy(c, v)
	switch {
	case !concerned(c, r, his):
		if !slices.ContainsFunc(m.passed, func(w *txn) bool { return w != u.writer }) {
			c.addRW(r, u, v, edgeRowRW)
		}
	case !slices.Contains(m.passed, r.t) || his != nil && gave(c, r.t, r.access(), his.assigned):
		c.addRW(r, u, v, edgeRW)
	}
}

// readOf draws the edge from a read of u, which comes before all that was met but for versions of u's writer.
func (m *rowWalk) readOf(c *Checker, r reader, u, v *version) {
	if !slices.ContainsFunc(m.led, func(l led) bool { return l.writer != u.writer && concerned(c, r, l.uses) }) {
		m.read(c, r, u, v)
	}
}

// alike reports whether one UPDATE wrote both versions, with other numbers and texts: as nearly always, and it costs little to see.
func (v *version) alike(u *version) bool {
	if v.del || u.del || v.wstmt < 0 || u.wstmt < 0 || v.did != nil || u.did != nil {
		return false
	}
	s, o := &v.writer.stmts[v.wstmt], &u.writer.stmts[u.wstmt]
	if s.verb != "update" || o.verb != "update" || s.failed || o.failed {
		return false
	}
	return sameShape(s.sql, o.sql)
}

// sameShape reports whether two texts are the same but for numbers and texts in them.
func sameShape(a, b string) bool {
	if a == b {
		return true
	}
	for i, k := 0, 0; ; i, k = i+1, k+1 {
		switch {
		case i == len(a) || k == len(b):
			return i == len(a) && k == len(b)
		case digit(a[i]) && digit(b[k]) && i > 0 && strings.IndexByte(" =-(,.", a[i-1]) >= 0:
			for ; i+1 < len(a) && digit(a[i+1]); i++ {
			}
			for ; k+1 < len(b) && digit(b[k+1]); k++ {
			}
		case a[i] != b[k]:
			return false
		case a[i] == '\'':
			i, k = i+1+strings.IndexByte(a[i+1:], '\''), k+1+strings.IndexByte(b[k+1:], '\'')
		}
	}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// orderedBefore draws the edges to v from what comes before it in its row: from other writers, and from those that read what came before it.
func orderedBefore(c *Checker, v *version) (m rowWalk) {
	ended := (*txn)(nil) // whose version was the last one to be met: its intermediate ones follow
	for u, i := v.before(), 0; u != nil && i < maxWalk && (ended == nil || u.writer == ended); u, i = u.before(), i+1 {
		if u.writer == v.writer && u.writer != nil {
			continue
		}
		for _, r := range u.readers {
			m.readOf(c, r, u, v)
		}
		if ended != nil || !u.installed() {
			continue
		}
		kind, last := edgeWW, true
		if i > 0 || !v.alike(u) {
			kind, last = m.meet(c, v, u)
		} else {
			m.stop = u.order
		}
		readThrough(c, u, v, kind)
		if kind == edgeWW || kind == edgeRow && len(m.passed) == 1 {
			c.addEdge(kind, u.writer, v.writer, u, v, u.wstmt, v.wstmt)
		}
		if last {
			ended = u.writer
		}
	}
	return m
}

// orderedBehind draws the edges from v to what comes behind it in its row.
func orderedBehind(c *Checker, v *version) {
	var m rowWalk
	for n, last := v.nextInstalled(), false; n != nil && !last; n = n.nextInstalled() {
		var kind kinds
		kind, last = m.meet(c, v, n)
		readThrough(c, v, n, kind)
		if kind == edgeWW || kind == edgeRow && len(m.passed) == 1 {
			c.addEdge(kind, v.writer, n.writer, v, n, v.wstmt, n.wstmt)
		}
	}
}

// overwritten are the columns that the writers of u and of the later version v both assigned, but for those of which u's image says that they stayed as
// they were. spares says that there certainly are none.
func overwritten(c *Checker, u, v *version) (columns []string, spares bool) {
	a, b := usesBy(c, u), saidBy(c, v)
	if a == nil || b == nil {
		return nil, false
	}
	for _, name := range a.assigned {
		if _, also := slices.BinarySearch(b.assigned, name); also {
			columns = append(columns, name)
		}
	}
	return columns, len(columns) == 0
}

// readThrough draws the edges from the writer of u to those who read v, which took over what that one wrote; kind is that of the edge between them.
func readThrough(c *Checker, u, v *version, kind kinds) {
	v.mixed = v.mixed || u.mixed || kind == edgeRow
	for _, r := range v.readers {
		if his := usesBy(c, v); !concerned(c, r, his) {
			readBehind(c, v, r, his)
		} else if kind == edgeRow {
			c.addWR(u, v, r, edgeWR)
		}
	}
}

// mixed says of the versions behind v, which took over what v did, that they are mixed as it is.
func mixed(c *Checker, v *version) {
	n := v.nextInstalled()
	for i := 0; n != nil && !n.mixed && i < maxBack; i++ {
		n.mixed = true
		for _, r := range n.readers {
			readBehind(c, n, r, usesBy(c, n))
		}
		n = n.nextInstalled()
	}
}

// readBehind draws the edges to a reader of v, whose writer assigned these columns, from the writers of what v took over.
func readBehind(c *Checker, v *version, r reader, his *uses) {
	var m rowWalk
	if concerned(c, r, his) {
		m.led = []led{{v.writer, his}}
	}
	for u, i := v.before(), 0; u != nil && i < maxWalk && len(m.passed) < maxBack; u, i = u.before(), i+1 {
		if !u.installed() || u.writer == v.writer {
			continue
		}
		his := usesBy(c, u)
		path := m.reaches(his)
		if !path && concerned(c, r, his) {
			c.addWR(u, v, r, edgeWR)
			path = true
		}
		if path {
			m.led = append(m.led, led{u.writer, his})
		}
		if m.passed = append(m.passed, u.writer); his == nil {
			return
		}
	}
}

// followed draws the edges from a read of v to the writers of what comes behind it.
func followed(c *Checker, r reader, v *version) {
	if c.told {
		return
	}
	var m rowWalk
	for n := v.nextInstalled(); n != nil && len(m.passed) < maxBack; n = n.nextInstalled() {
		his := usesBy(c, n)
		path := m.reaches(his)
		if !path {
			m.read(c, r, v, n)
			path = n.writer == r.t || concerned(c, r, his)
		}
		if path {
			m.led = append(m.led, led{n.writer, his})
		}
		if m.passed = append(m.passed, n.writer); his == nil {
			return
		}
	}
}
