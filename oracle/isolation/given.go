package isolation

import (
	"slices"
	"strings"

	"wirecheck/trace/lex"
)

// Reads of columns.
//
// A SELECT of one table that names columns reads these alone, in its list and its conditions. So it depends on the writers that assigned one of them,
// and on those that made or deleted the row. A read depends on the last such writer up to the version that it read, and comes before the first one behind it; writers
// of other columns in between are passed over. What a SELECT with a star, a row value, a join or a subquery reads is not known, so it reads all columns. That a function
// over the row, a trigger or a generated column reads or assigns more is not known, either: then an edge is missing, never wrong.
//
// The order of the versions is kept for reads as it is for writes (edgeRow): what a read draws by its row alone are edgeRowWR and edgeRowRW.

// selection is what a SELECT of one table gives and names.
type selection struct {
	table   string
	all     bool     // it gives all columns
	columns []string // that it gives
	named   []string // all names in it, sorted; nil: it may read columns that it does not name

	lastOf    *table // which it is known to be of
	lastAsked *uses  // and whether it reads what these assign
	lastReads bool
}

// limited reports whether it is known which columns a read can have read.
func limited(c *Checker, r reader) bool {
	s := selectedBy(c, r.t, r.access())
	return s != nil && s.named != nil
}

// concerned reports whether a read may have read a column that a writer assigned.
func concerned(c *Checker, r reader, his *uses) bool {
	switch {
	case his == nil:
		return true
	case len(his.assigned) == 0 && len(his.timed) == 0:
		return false
	}
	s := selectedBy(c, r.t, r.access())
	if s == nil || s.named == nil {
		return true
	}
	if s.lastAsked != his {
		s.lastAsked, s.lastReads = his, s.reads(his)
	}
	return s.lastReads
}

// gave reports whether read a of t certainly gave the client a column that other writes assign: it is a plain SELECT of one table, and no view.
func gave(c *Checker, t *txn, a *access, assigned []string) bool {
	s := selectedBy(c, t, a)
	return s != nil && (s.all || slices.ContainsFunc(s.columns, func(c string) bool { return slices.Contains(assigned, c) }))
}

// selectedBy is what the SELECT of a read gives of the table; nil: it is not known, perhaps since it is of a view.
func selectedBy(c *Checker, t *txn, a *access) *selection {
	st := &t.stmts[a.stmt]
	if !st.selectionKnown {
		if st.selectionKnown = true; st.verb == "select" && len(st.sql) < maxText {
			st.selection = c.texts.selects.of(st.sql, lex.Of(t.product().Dialect), selectionOf)
		}
	}
	s := st.selection
	if s == nil || a.node == nil {
		return nil
	}
	if s.lastOf != a.node.table {
		if !s.of(a.node.table.name) {
			return nil
		}
		s.lastOf = a.node.table
	}
	return s
}

// reads reports whether it names a column that others assign.
func (s *selection) reads(his *uses) bool {
	return !disjoint(his.assigned, s.named) || !disjoint(his.timed, s.named)
}

// of reports whether the SELECT is of the table with this name, which may have a schema in front.
func (s *selection) of(table string) bool {
	return strings.EqualFold(s.table, table[strings.LastIndexByte(table, '.')+1:])
}

// selectionOf reads what a SELECT gives and names from its text; nil if it is not plainly of one table.
func selectionOf(sql string, d lex.Dialect) *selection {
	var list []lex.Token
	for t := range lex.Tokens(sql, d) {
		if t.Executed() {
			return nil
		}
		if t.Kind != lex.Space && t.Kind != lex.Comment {
			list = append(list, t)
		}
	}
	if n := len(list); n > 0 && list[n-1].Text == ";" {
		list = list[:n-1]
	}
	if len(list) == 0 || !list[0].Is("select") || slices.ContainsFunc(list[1:], several) {
		return nil
	}
	from := slices.IndexFunc(list, func(t lex.Token) bool { return t.Is("from") })
	if from < 0 {
		return nil
	}
	s := &selection{}
	alias, behind := s.source(list, from+1)
	if behind < 0 {
		return nil
	}
	for rest := list[1:from]; ; {
		i := slices.IndexFunc(rest, func(t lex.Token) bool { return t.Text == "," })
		if i < 0 {
			s.item(rest)
			break
		}
		s.item(rest[:i])
		rest = rest[i+1:]
	}
	s.names(list, from, behind, alias)
	return s
}

// several reports whether a word shows that a text is of more than one SELECT.
func several(t lex.Token) bool {
	return t.Text == ";" || slices.ContainsFunc([]string{"select", "union", "intersect", "except", "table", "values"}, t.Is)
}

// source reads the only table behind FROM. It gives its alias, and the place of what follows; one below 0: there is not one table there.
func (s *selection) source(list []lex.Token, at int) (alias string, behind int) {
	name := func() (string, bool) {
		if at == len(list) || list[at].Kind != lex.Word && list[at].Kind != lex.Name {
			return "", false
		}
		at++
		return nameIn(list[at-1]), true
	}
	table, ok := name()
	for ok && at < len(list) && list[at].Text == "." {
		at++
		table, ok = name()
	}
	ends := func() bool {
		return at == len(list) || slices.ContainsFunc([]string{"where", "group", "having", "order", "limit", "offset", "fetch", "for", "lock"}, list[at].Is)
	}
	if alias = table; ok && !ends() {
		if list[at].Is("as") {
			at++
		}
		alias, ok = name()
	}
	if s.table = table; !ok || !ends() {
		return "", -1
	}
	return alias, at
}

// item reads one item of the list.
func (s *selection) item(of []lex.Token) {
	if n := len(of); n > 2 && of[n-2].Is("as") {
		of = of[:n-2]
	}
	for len(of) > 2 && of[1].Text == "." {
		of = of[2:]
	}
	if len(of) == 1 && of[0].Text == "*" {
		s.all = true
	} else if len(of) == 1 && (of[0].Kind == lex.Word || of[0].Kind == lex.Name) {
		s.columns = append(s.columns, nameIn(of[0]))
	}
}

// names reads all names, but for those of the table between from and behind.
func (s *selection) names(list []lex.Token, from, behind int, alias string) {
	is := func(i int, words ...string) bool {
		return i < len(list) && slices.ContainsFunc(words, func(w string) bool { return list[i].Text == w || list[i].Is(w) })
	}
	named := []string{""} // not nil
	for i, t := range list {
		switch {
		case i >= from && i < behind:
		case t.Text == "*":
			if counts := is(i-1, "(") && is(i-2, "count") && is(i+1, ")"); !counts && (i+1 == len(list) || is(i+1, ",", ")", "from", "into")) {
				return
			}
		case t.Kind == lex.Word, t.Kind == lex.Name, t.Kind == lex.String && t.Text[0] == '"':
			name := nameIn(t)
			if (name == s.table || name == alias) && !is(i+1, ".") && !is(i-1, ".") { // the whole row
				return
			}
			if slices.Contains([]string{"xmin", "xmax", "cmin", "cmax", "ctid"}, name) {
				return
			}
			named = append(named, name)
		}
	}
	slices.Sort(named)
	s.named = slices.Compact(named)
}
