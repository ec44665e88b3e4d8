package generate

// source is something in a FROM clause: a table, a view, a subquery.
type source struct {
	name    string // that qualifies its columns
	columns []*Column
	// order are columns that no two rows have alike: ORDER BY them is total. None: there are no such columns.
	order []*Column
	table string // that it reads, if it is one
}

// scope is what names mean at a place in a statement.
type scope struct {
	sources []source
	outer   *scope // of the query around; nil: none
	// qualified: columns are written with the name of their source.
	qualified bool
}

// ref is a column as it is written at a place.
type ref struct {
	*Column
	sql string
}

// source gives a table as a source under a name.
func (t *Table) source(name string) source {
	return source{name: name, columns: t.Columns, order: t.Primary, table: t.Name}
}

func scopeOf(t *Table) *scope { return &scope{sources: []source{t.source(t.Name)}} }

// refs gives the columns of the scope itself that fit.
func (s *scope) refs(fits func(*Column) bool) []ref {
	var out []ref
	for _, src := range s.sources {
		for _, c := range src.columns {
			if fits == nil || fits(c) {
				out = append(out, ref{c, s.write(src, c)})
			}
		}
	}
	return out
}

func (s *scope) write(src source, c *Column) string {
	if s.qualified {
		return src.name + "." + c.Name
	}
	return c.Name
}

// outside gives the columns of the queries around that fit, qualified.
func (s *scope) outside(fits func(*Column) bool) []ref {
	var out []ref
	for o := s.outer; o != nil; o = o.outer {
		for _, src := range o.sources {
			for _, c := range src.columns {
				if fits(c) {
					out = append(out, ref{c, src.name + "." + c.Name})
				}
			}
		}
	}
	return out
}

// total gives the columns of a total order of the scope's rows, or nil.
func (s *scope) total() []string {
	var out []string
	for _, src := range s.sources {
		if len(src.order) == 0 {
			return nil
		}
		for _, c := range src.order {
			out = append(out, s.write(src, c))
		}
	}
	return out
}

// taken reports whether the scope or one around it has a source of that name.
func (s *scope) taken(name string) bool {
	for o := s; o != nil; o = o.outer {
		for _, src := range o.sources {
			if src.name == name {
				return true
			}
		}
	}
	return false
}

// reader makes a query or a write in a database. It notes the tables.
type reader struct{ expressions }

// expressions makes conditions and expressions over the rows of a scope.
type expressions struct {
	*definer
	db     *Database
	tables []string
	// target is the table that the statement writes; where the product forbids to read it in a subquery, none does.
	target *Table
	// flat: no subqueries.
	flat bool
}

// writer makes statements that write.
type writer struct{ reader }

func readerOf(g *definer, db *Database) *reader { return &reader{expressions{definer: g, db: db}} }

func writerOf(g *definer, db *Database, target *Table) *writer {
	return &writer{reader{expressions{definer: g, db: db, target: target}}}
}

// around gives a name for a source that hides none of those around: the table's own name, or an alias.
func (r *expressions) around(t *Table, sc *scope) (name, sql string) {
	if !sc.taken(t.Name) {
		return t.Name, t.Name
	}
	name = r.alias()
	return name, t.Name + " AS " + name
}

func (r *expressions) alias() string {
	r.names++
	return "x" + string(rune('0'+r.names%10)) + suffix(r.names/10)
}

func suffix(n int) string {
	if n == 0 {
		return ""
	}
	return string(rune('a' + n - 1))
}

// readable are the tables that a subquery may read: MySQL refuses those that the statement writes (manual, "Subquery Errors",
// 1093), MariaDB does so for DELETE.
func (r *expressions) readable() []*Table {
	var out []*Table
	for _, t := range r.db.Tables {
		if r.target == t && r.grammar.mysql {
			continue
		}
		out = append(out, t)
	}
	return out
}
