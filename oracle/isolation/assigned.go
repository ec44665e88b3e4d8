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

// uses are the columns of a row that statements assign, and all names in them, in lower case and sorted. nil: they are not known.
type uses struct{ assigned, named []string }

// commutes reports whether writes can change places.
func (a *uses) commutes(b *uses) bool {
	return a != nil && b != nil && disjoint(a.assigned, b.named) && disjoint(b.assigned, a.named)
}

// covers reports whether a commutes with nothing with which b does not commute.
func (a *uses) covers(b *uses) bool {
	return a == nil || b != nil && (a == b || holds(a.assigned, b.assigned) && holds(a.named, b.named))
}

func disjoint(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { _, in := slices.BinarySearch(b, s); return in })
}

func holds(a, b []string) bool {
	return !slices.ContainsFunc(b, func(s string) bool { _, in := slices.BinarySearch(a, s); return !in })
}

const (
	maxUses  = 4096 // texts of which the columns are kept
	maxBack  = 16   // versions between two writes that do not commute, if those in between commute with one of them
	maxTexts = 4096 // bytes of a text that is kept so
)

// texts keeps the columns of UPDATEs by their texts, which come again.
type texts map[string]*uses

// of gives the columns of statement i of t.
func (x *texts) of(t *txn, i int32) *uses {
	if i < 0 {
		return nil
	}
	s := &t.stmts[i]
	if s.verb != "update" && s.verb != "insert" || s.failed || len(s.sql) >= maxText {
		return nil
	}
	u, known := (*x)[s.sql]
	if !known {
		u = usesOf(s.sql, lex.Of(t.product().Dialect))
		if len(s.sql) <= maxTexts {
			if *x == nil || len(*x) >= maxUses {
				*x = texts{}
			}
			(*x)[s.sql] = u
		}
	}
	if u != nil && s.columns != nil && timed(s.columns.operands) {
		u = &uses{slices.DeleteFunc(slices.Clone(u.assigned), func(name string) bool {
			return slices.ContainsFunc(s.columns.operands, func(o history.Operand) bool { return o.Column == name && o.Role == history.RoleTime })
		}), u.named}
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
	_, list := flow.Update(sql, d, nil)
	u, ended, answered := &uses{}, false, false
	for _, o := range list {
		if o.Role.Assigns() && o.Role != history.RoleTime {
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

// nameIn is the name that a token is, as package flow has it.
func nameIn(t lex.Token) string { return strings.ToLower(strings.Trim(t.Text, "\"`")) }

func (a *uses) sort() *uses {
	for _, list := range []*[]string{&a.assigned, &a.named} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return a
}

// usesBy are the columns of all that the writer of v, the last version that it gave a row, did with the row.
func usesBy(c *Checker, v *version) *uses {
	if v.del || v.writer == nil || v.order == 0 && v.prev == nil {
		return nil
	}
	if p := v.before(); v.wstmt >= 0 && v.writer.stmts[v.wstmt].verb == "insert" && (p == nil || p.del) {
		return nil // the row was not there
	}
	u := c.texts.of(v.writer, v.wstmt)
	for p, i := v.before(), 0; u != nil && p != nil && p.writer == v.writer; p, i = p.before(), i+1 {
		if p.is != live {
			continue
		}
		more := c.texts.of(p.writer, p.wstmt)
		if more == nil || i >= maxBack || p.writer.stmts[p.wstmt].verb == "insert" {
			return nil
		}
		if more != u {
			u = (&uses{slices.Concat(u.assigned, more.assigned), slices.Concat(u.named, more.named)}).sort()
		}
	}
	return u
}

// rowWalk is a walk along the installed versions of a row, away from one of them.
type rowWalk struct {
	mine   *uses
	led    []*uses // of versions to or from which an edge or a path leads
	passed []*txn  // writers of all of them
	upTo   *txn    // the writer of the first of led
	stop   uint64  // and its place
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
	if m.upTo == nil {
		m.upTo, m.stop = u.writer, u.order
	}
	m.led, m.passed = append(m.led, his), append(m.passed, u.writer)
	return kind, his.covers(m.mine) || len(m.passed) == maxBack
}

// reaches reports whether a path leads over one of the versions met.
func (m *rowWalk) reaches(his *uses) bool {
	return slices.ContainsFunc(m.led, func(l *uses) bool { return !l.commutes(his) })
}

// read draws the edge from a read of u to the later version v. Where the reader wrote the row itself in between, it is certain only if the read gave
// the client a column that v's writer assigned.
func (m *rowWalk) read(c *Checker, r reader, u, v *version) {
	if slices.Contains(m.passed, r.t) && !r.t.gave(r.access(), usesBy(c, v)) {
		return
	}
	c.addRW(r, u, v)
}

// alike reports whether one UPDATE wrote both versions, with other numbers and texts: as nearly always, and it costs little to see.
func (v *version) alike(u *version) bool {
	if v.del || u.del || v.wstmt < 0 || u.wstmt < 0 {
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
		if m.upTo == nil || u.writer == m.upTo {
			for _, r := range u.readers {
				m.read(c, r, u, v)
			}
		}
		if ended != nil || !u.installed() {
			continue
		}
		kind, last := edgeWW, true
		if i > 0 || !v.alike(u) {
			kind, last = m.meet(c, v, u)
		} else {
			m.upTo, m.stop = u.writer, u.order
		}
		if kind == edgeRow {
			readThrough(c, u, v)
		}
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
		if kind == edgeRow {
			readThrough(c, v, n)
		}
		if kind == edgeWW || kind == edgeRow && len(m.passed) == 1 {
			c.addEdge(kind, v.writer, n.writer, v, n, v.wstmt, n.wstmt)
		}
	}
}

// overwritten are the columns that the writers of u and of the later version v both assigned, but for those of which u's image says that they stayed as
// they were. spares says that there certainly are none.
func overwritten(c *Checker, u, v *version) (columns []string, spares bool) {
	a, b := usesBy(c, u), usesBy(c, v)
	if a == nil || b == nil {
		return nil, false
	}
	for _, name := range a.assigned {
		if _, also := slices.BinarySearch(b.assigned, name); also && !slices.Contains(u.same, name) {
			columns = append(columns, name)
		}
	}
	return columns, len(columns) == 0
}

// readThrough draws the edges from the writer of u to those who read v, which took over what that one wrote.
func readThrough(c *Checker, u, v *version) {
	v.mixed = true
	for _, r := range v.readers {
		c.addWR(u, v, r)
	}
}

// behindMixed draws the edges to a reader of v from the writers of what v took over.
func behindMixed(c *Checker, v *version, r reader) {
	m := rowWalk{led: []*uses{usesBy(c, v)}}
	for u, i := v.before(), 0; u != nil && i < maxWalk && len(m.led) <= maxBack; u, i = u.before(), i+1 {
		if !u.installed() || u.writer == v.writer {
			continue
		}
		his := usesBy(c, u)
		if !m.reaches(his) {
			c.addWR(u, v, r)
		}
		if m.led = append(m.led, his); his == nil {
			return
		}
	}
}

// followed draws the edges from a read of v to the writers of what comes behind it.
func followed(c *Checker, r reader, v *version) {
	if c.told {
		return
	}
	n := v.nextInstalled()
	if n == nil {
		return
	}
	c.addRW(r, v, n)
	var m rowWalk
	for next := n.nextInstalled(); next != nil && len(m.passed) < maxBack; next = next.nextInstalled() {
		his := usesBy(c, n)
		m.led, m.passed = append(m.led, his), append(m.passed, n.writer)
		if his == nil {
			return
		}
		if n = next; !m.reaches(usesBy(c, n)) {
			m.read(c, r, v, n)
		}
	}
}

// gave reports whether read a of t certainly gave the client a column that other writes assign: it is a plain SELECT of one table, and no view.
func (t *txn) gave(a *access, other *uses) bool {
	if s := &t.stmts[a.stmt]; s.verb == "select" && other != nil && len(s.sql) < maxText {
		table, all, columns := selected(s.sql, lex.Of(t.product().Dialect))
		name := a.node.table.name
		return strings.EqualFold(table, name[strings.LastIndexByte(name, '.')+1:]) && (all || slices.ContainsFunc(columns, func(c string) bool { return slices.Contains(other.assigned, c) }))
	}
	return false
}

// selected are the columns that a SELECT gives of its only table, as far as the text shows them plainly; all of them if it says so.
func selected(sql string, d lex.Dialect) (table string, all bool, columns []string) {
	var list []lex.Token
	for t := range lex.Tokens(sql, d) {
		if t.Kind != lex.Space && t.Kind != lex.Comment {
			list = append(list, t)
		}
	}
	if len(list) == 0 || !list[0].Is("select") {
		return "", false, nil
	}
	from := slices.IndexFunc(list, func(t lex.Token) bool { return t.Is("from") })
	if from < 0 || slices.ContainsFunc(list[from:], func(t lex.Token) bool { return t.Text == "," || t.Is("join") || t.Is("select") || t.Is("union") }) {
		return "", false, nil
	}
	for i := from + 1; i < len(list) && table == ""; i += 2 {
		if i+1 == len(list) || list[i+1].Text != "." {
			table = nameIn(list[i])
		}
	}
	item := func(of []lex.Token) {
		if n := len(of); n > 2 && of[n-2].Is("as") {
			of = of[:n-2]
		}
		for len(of) > 2 && of[1].Text == "." {
			of = of[2:]
		}
		if len(of) == 1 && of[0].Text == "*" {
			all = true
		} else if len(of) == 1 && (of[0].Kind == lex.Word || of[0].Kind == lex.Name) {
			columns = append(columns, nameIn(of[0]))
		}
	}
	rest := list[1:from]
	for i := slices.IndexFunc(rest, isComma); i >= 0; i = slices.IndexFunc(rest, isComma) {
		item(rest[:i])
		rest = rest[i+1:]
	}
	item(rest)
	return table, all, columns
}

func isComma(t lex.Token) bool { return t.Text == "," }
