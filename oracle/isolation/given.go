package isolation

import (
	"slices"

	"wirecheck/trace/lex"
)

// Reads of columns.
//
// A SELECT that names columns reads these alone, in its lists and its conditions, whichever of its tables they are of. So it depends on the writers that assigned one of them,
// and on those that made or deleted the row. A read depends on the last such writer up to the version that it read, and comes before the first one behind it; writers
// of other columns in between are passed over. What a SELECT with a star or a row value reads is not known, so it reads all columns, and so does one of a table that it does
// not name, but a view. That a function over the row, a trigger or a generated column reads or assigns more is not known, either: then an edge is missing, never wrong.
//
// The order of the versions is kept for reads as it is for writes (edgeRow): what a read draws by its row alone are edgeRowWR and edgeRowRW.

// selection is what a SELECT gives and names.
type selection struct {
	tables  []string // that it names
	all     bool     // it gives all columns of the only table
	columns []string // that it gives of the only table
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

// of reports whether the SELECT names the table of this name, which may have a schema in front.
func (s *selection) of(table string) bool {
	return slices.Contains(s.tables, bare(table))
}

// selectionOf reads what a SELECT gives and names from its text; nil if that is not certain.
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
	if len(list) == 0 || !list[0].Is("select") && !list[0].Is("with") || slices.ContainsFunc(list, unnamed) {
		return nil
	}
	f := sources{list: list, stack: make([]clause, 1)}
	if !f.read() {
		return nil
	}
	s := &selection{tables: f.tables}
	for rest := list[1:max(f.from, 1)]; f.alone(); {
		i := slices.IndexFunc(rest, func(t lex.Token) bool { return t.Text == "," })
		if i < 0 {
			s.item(rest)
			break
		}
		s.item(rest[:i])
		rest = rest[i+1:]
	}
	s.names(&f)
	return s
}

// unnamed reports whether a word shows that a text reads columns that it need not name, or is of several statements.
func unnamed(t lex.Token) bool {
	return t.Text == ";" || slices.ContainsFunc([]string{"natural", "table", "values", "insert", "delete", "merge"}, t.Is)
}

// sources finds the tables in the FROM clauses of a text.
type sources struct {
	list     []lex.Token
	stack    []clause // around a token
	tables   []string
	names    []string     // of tables, and of what stands for them
	declared map[int]bool // the places of these names in FROM clauses
	selects  int          // how many SELECTs there are
	from     int          // the place of the first FROM
}

// clause is where a token stands in the SELECT of its parentheses.
type clause struct{ list, from, table bool } // behind SELECT, behind FROM, where the name of a table may stand

// alone reports whether there is one table, in one SELECT.
func (f *sources) alone() bool { return f.selects == 1 && len(f.tables) == 1 && f.list[0].Is("select") }

// endsFrom are words that end a FROM clause, and behindTable others that follow the name of a table.
var (
	endsFrom    = []string{"where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "lock", "union", "intersect", "except"}
	behindTable = []string{"join", "left", "right", "inner", "outer", "full", "cross", "straight_join", "on", "using", "use", "force", "ignore", "partition", "tablesample"}
)

// read reports false if columns get other names.
func (f *sources) read() bool {
	f.declared = map[int]bool{}
	for i := 0; i < len(f.list); i++ {
		t, c := f.list[i], &f.stack[len(f.stack)-1]
		switch {
		case t.Text == "(":
			f.stack = append(f.stack, clause{from: c.table, table: c.table})
		case t.Text == ")":
			if len(f.stack) == 1 {
				return false
			}
			f.stack = f.stack[:len(f.stack)-1]
			if c = &f.stack[len(f.stack)-1]; c.table {
				i, c.table = f.alias(i), false
			}
		case t.Is("select"):
			*c = clause{list: true}
			f.selects++
		case t.Is("from") && c.list && !f.list[i-1].Is("distinct"):
			if *c = (clause{from: true, table: true}); f.from == 0 {
				f.from = i
			}
		case c.from && (t.Text == "," || t.Is("join") || t.Is("straight_join")):
			c.table = true
		case c.from && slices.ContainsFunc(endsFrom, t.Is):
			*c = clause{}
		case !c.table || t.Is("lateral") || t.Is("only"):
		case !isName(t):
			return false
		default:
			for f.is(i+1, ".") && i+2 < len(f.list) {
				f.declared[i] = true
				i += 2
			}
			c.table = false
			f.declare(i)
			if f.is(i+1, "(") { // a function
				break
			}
			f.tables = append(f.tables, nameIn(f.list[i]))
			if i = f.alias(i); f.is(i+1, "(") {
				return false
			}
		}
	}
	return len(f.stack) == 1
}

// alias reads the name that stands for the table behind place i, if there is one. It gives the last place that was read.
func (f *sources) alias(i int) int {
	if f.is(i+1, "as") {
		i++
	} else if i+1 == len(f.list) || slices.ContainsFunc(endsFrom, f.list[i+1].Is) || slices.ContainsFunc(behindTable, f.list[i+1].Is) {
		return i
	}
	if i+1 < len(f.list) && isName(f.list[i+1]) {
		i++
		f.declare(i)
	}
	return i
}

func (f *sources) declare(i int) {
	f.declared[i], f.names = true, append(f.names, nameIn(f.list[i]))
}

func (f *sources) is(i int, words ...string) bool {
	return i >= 0 && i < len(f.list) && slices.ContainsFunc(words, func(w string) bool { return f.list[i].Text == w || f.list[i].Is(w) })
}

func isName(t lex.Token) bool {
	return t.Kind == lex.Word || t.Kind == lex.Name || t.Kind == lex.String && t.Text[0] == '"'
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

// names reads all names, but for those of tables in FROM clauses.
func (s *selection) names(f *sources) {
	named := []string{""} // not nil
	for i, t := range f.list {
		switch {
		case f.declared[i]:
		case t.Text == "*":
			counts, exists := f.is(i-2, "count") && f.is(i-1, "(") && f.is(i+1, ")"), f.is(i-3, "exists") && f.is(i-2, "(") && f.is(i-1, "select")
			if !counts && !exists && (i+1 == len(f.list) || f.is(i+1, ",", ")", "from", "into")) {
				return
			}
		case isName(t):
			name := nameIn(t)
			defined := f.is(i+1, "(") || f.is(i+1, "as") && f.is(i+2, "(")                              // by WITH
			if slices.Contains(f.names, name) && !defined && !f.is(i+1, ".") && !f.is(i-1, ".", "as") { // the whole row
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
