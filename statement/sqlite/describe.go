package sqlite

import (
	"cmp"
	"fmt"
	"strings"

	"wirecheck/statement"
)

// Describe describes the statements of a script, one by one; empty ones are left out. The error says that the text cannot even be cut
// into statements.
func Describe(sql string) ([]statement.Statement, error) {
	t, err := lex(sql)
	if err != nil {
		return nil, fmt.Errorf("describe statement: %w", err)
	}
	var list []statement.Statement
	first := 0
	for i := 0; i <= len(t.Tokens); i++ {
		if i < len(t.Tokens) && !ends(t, i, first) {
			continue
		}
		if i > first {
			at := t.Tokens[first].Start
			st, err := describe(sql[at:t.Tokens[i-1].End])
			if err != nil {
				return nil, err
			}
			st.At = at
			list = append(list, st)
		}
		first = i + 1
	}
	return list, nil
}

// ends reports whether token i is the semicolon that ends a statement that begins at token first. In CREATE TRIGGER it stands behind END
// (sqlite.org/c3ref/complete.html).
func ends(t *statement.Text, i, first int) bool {
	if !t.Is(i, ";") {
		return false
	}
	trigger := t.Is(first, "CREATE") && (t.Is(first+1, "TRIGGER") || t.Is(first+1, "TEMP", "TEMPORARY") && t.Is(first+2, "TRIGGER"))
	return !trigger || t.Is(i-1, "END") && t.Is(i-2, ";")
}

// describer describes one statement.
type describer struct {
	*statement.Text
	st   statement.Statement
	whys []string // why it is volatile
	lost string   // what was not expected; empty: nothing
}

func describe(sql string) (statement.Statement, error) {
	t, err := lex(sql)
	if err != nil {
		return statement.Statement{}, fmt.Errorf("describe statement: %w", err)
	}
	d := &describer{Text: t, st: statement.Statement{Text: sql, Verb: "other"}}
	for i := range t.Tokens {
		if t.Tokens[i].Kind == statement.TokenParam {
			d.st.Parameters++
		}
	}
	d.statement()
	if d.lost != "" {
		st := statement.Statement{Text: sql, Verb: d.st.Verb, Parameters: d.st.Parameters}
		st.NotParsed(d.lost)
		return st, nil
	}
	d.st.Volatile = statement.Reasons(d.whys)
	return d.st, nil
}

func (d *describer) lose(why string) {
	d.lost = cmp.Or(d.lost, why)
}

func (d *describer) volatile(why string) { d.whys = append(d.whys, why) }

func (d *describer) statement() {
	st := &d.st
	control := func(verb string, c statement.Control) { st.Verb, st.Control = verb, c }
	savepoint := func(i int) string {
		if d.Is(i, "SAVEPOINT") {
			i++
		}
		name, ok := d.Name(i)
		if !ok {
			d.lose("a savepoint without a name")
		}
		return strings.ToLower(name) // sqlite.org/lang_savepoint.html: names are compared without regard to case
	}
	switch {
	case d.Is(0, "BEGIN"):
		control("begin", statement.Control{Verb: statement.ControlBegin})
	case d.Is(0, "COMMIT", "END"):
		control("commit", statement.Control{Verb: statement.ControlCommit})
	case d.Is(0, "ROLLBACK"):
		to := 1
		if d.Is(to, "TRANSACTION") {
			to++
		}
		if d.Is(to, "TO") {
			control("rollback to", statement.Control{Verb: statement.ControlRollbackTo, Name: savepoint(to + 1)})
		} else {
			control("rollback", statement.Control{Verb: statement.ControlRollback})
		}
	case d.Is(0, "SAVEPOINT"):
		control("savepoint", statement.Control{Verb: statement.ControlSavepoint, Name: savepoint(1)})
	case d.Is(0, "RELEASE"):
		control("release", statement.Control{Verb: statement.ControlRelease, Name: savepoint(1)})
	case d.Is(0, "CREATE", "ALTER", "DROP"):
		st.Verb, st.DDL = "ddl", true
	case d.Is(0, "PRAGMA"):
		st.Verb, st.Variables = "set", true
		d.volatile("PRAGMA")
	case d.Is(0, "EXPLAIN"):
		d.volatile("EXPLAIN")
	case d.Is(0, "ANALYZE", "REINDEX", "VACUUM"):
	case d.Is(0, "WITH", "SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"):
		d.data()
	default:
		d.lose("it begins with none of the words of SQLite's statements")
	}
}

// data describes queries and writes.
func (d *describer) data() {
	for i := range d.Tokens {
		if d.Is(i, "(") && d.Close(i) < 0 || d.Tokens[i].Depth < 0 {
			d.lose("parentheses do not match")
			return
		}
	}
	end := len(d.Tokens)
	c := statement.Around{}
	first := 0
	if d.Is(0, "WITH") {
		if first = d.with(0, end, &c); first >= end {
			d.lose("WITH without a statement")
			return
		}
		d.st.Clauses.With = d.Between(0, first)
	}
	switch {
	case d.Is(first, "SELECT", "VALUES"):
		d.st.Verb = "select"
		d.selects(first, end, c)
	case d.Is(first, "INSERT", "REPLACE"):
		d.inserts(first, end, c)
	case d.Is(first, "UPDATE"):
		d.st.Verb = "update"
		d.updates(first, end, c)
	case d.Is(first, "DELETE"):
		d.st.Verb = "delete"
		d.deletes(first, end, c)
	default:
		d.lose("WITH in front of something else than a query or a write")
	}
	d.st.Chooses()
	d.vary(0, end)
}

// clauses cuts the tokens from i to end, which is of one depth outside of parentheses, at the words.
func (d *describer) clauses(i, end int, words ...string) []statement.Clause {
	seen := map[string]bool{}
	return d.Clauses(i, end, func(i int) bool {
		if !d.Is(i, words...) || !d.opens(i) {
			return false
		}
		word := strings.ToUpper(d.At(i))
		if seen[word] {
			d.lose("two clauses " + word)
		}
		seen[word] = true
		return true
	})
}

// opens reports whether a keyword begins a clause where it stands.
func (d *describer) opens(i int) bool {
	switch {
	case i > 0 && d.Is(i-1, "."):
		return false
	case d.Is(i, "FROM"): // IS [NOT] DISTINCT FROM
		return !(d.Is(i-1, "DISTINCT") && d.Is(i-2, "IS", "NOT"))
	case d.Is(i, "GROUP", "ORDER"):
		return d.Is(i+1, "BY")
	case d.Is(i, "WINDOW"):
		return d.Is(i+2, "AS") && d.Is(i+3, "(")
	case d.Is(i, "SET"), d.Is(i, "WHERE"):
		return true
	}
	return true
}

// selects describes the outermost query.
func (d *describer) selects(i, end int, c statement.Around) {
	st := &d.st
	if arms := d.arms(i, end); len(arms) > 1 {
		st.SetOperation = true
		d.st.Unaddressed("a set operation")
		last := arms[len(arms)-1]
		for _, k := range d.clauses(last[0], last[1], "SELECT", "VALUES", "LIMIT") {
			st.Limit = st.Limit || k.Word == "LIMIT"
		}
		d.query(i, end, c)
		return
	}
	if d.Is(i, "VALUES") {
		d.st.Unaddressed("no tables")
		d.query(i, end, c)
		return
	}
	list := d.clauses(i, end, "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT")
	d.st.Clauses.Fill(d.Text, list)
	st.Distinct, st.Limit = d.Is(i+1, "DISTINCT"), st.Clauses.Limit != ""
	for _, k := range list {
		if k.Word == "SELECT" || k.Word == "ORDER" || k.Word == "HAVING" {
			aggregate, window := d.calls(k.Start, k.End)
			st.Aggregate, st.Window = st.Aggregate || aggregate, st.Window || window
		}
	}
	st.Aggregate = st.Aggregate || st.Clauses.GroupBy != "" || st.Clauses.Having != ""
	if st.Aggregate {
		d.bare(list)
	}
	switch {
	case st.Aggregate:
		d.st.Unaddressed("groups")
	case st.Clauses.From == "":
		d.st.Unaddressed("no tables")
	case st.Limit:
		d.st.Unaddressed("ORDER BY may name the select list")
	case st.Window && st.Clauses.Window != "":
		d.st.Unaddressed("a window's name that ORDER BY may use")
	}
	st.Addressing.Unorder = true
	d.query(i, end, c)
}

func (d *describer) updates(i, end int, c statement.Around) {
	st := &d.st
	i++
	if d.Is(i, "OR") {
		if !d.Is(i+1, "ABORT") {
			d.lose("UPDATE OR " + d.At(i+1) + " may leave out rows or change others")
			return
		}
		i += 2
	}
	if i >= end {
		d.lose("UPDATE of nothing")
		return
	}
	u, next := d.source(i, end, c)
	u.Target = true
	d.add(u)
	list := d.clauses(next, end, "SET", "FROM", "WHERE", "RETURNING")
	if len(list) == 0 || list[0].Word != "SET" || list[0].Start != next || d.lost != "" {
		d.lose("UPDATE without SET")
		return
	}
	target := d.Between(i, next)
	d.st.Clauses.Fill(d.Text, list)
	for _, k := range list {
		switch k.Word {
		case "SET":
			d.st.Assignments, d.st.AssignAt = d.assignments(k.Start+1, k.End)
			d.expressions(k.Start+1, k.End, c)
		case "FROM":
			st.Clauses.From = target + ", " + d.Between(k.Start+1, k.End)
			d.from(k.Start+1, k.End, c)
		case "WHERE", "RETURNING":
			st.Returning = st.Returning || k.Word == "RETURNING"
			d.expressions(k.Start+1, k.End, c)
		}
	}
	st.Clauses.From = cmp.Or(st.Clauses.From, target)
}

func (d *describer) deletes(i, end int, c statement.Around) {
	st := &d.st
	if !d.Is(i+1, "FROM") || i+2 >= end {
		d.lose("DELETE without FROM")
		return
	}
	u, next := d.source(i+2, end, c)
	u.Target = true
	d.add(u)
	st.Clauses.From = d.Between(i+2, next)
	if next == end || d.lost != "" {
		return
	}
	list := d.clauses(next, end, "WHERE", "RETURNING")
	if len(list) == 0 || list[0].Start != next {
		d.lose("DELETE with something else than WHERE and RETURNING")
		return
	}
	d.st.Clauses.Fill(d.Text, list)
	for _, k := range list {
		st.Returning = st.Returning || k.Word == "RETURNING"
		d.expressions(k.Start+1, k.End, c)
	}
}

// assignments describes those of SET. They are nil, and the place 0, if they are not certain.
func (d *describer) assignments(i, end int) (out []statement.Assignment, at int) {
	for _, p := range d.Split(i, end) {
		eq := d.Find(p[0], d.Tokens[i].Depth, "=")
		if eq < 0 || eq+1 >= p[1] {
			return nil, 0
		}
		expr := statement.Assignment{Expr: d.Between(eq+1, p[1]), At: d.Tokens[eq+1].Start}
		if d.Is(p[0], "(") {
			for j := p[0] + 1; j < eq-1; j++ {
				if name, ok := d.Name(j); ok {
					expr.Column, expr.Partial = name, true
					out = append(out, expr)
				}
			}
			continue
		}
		name, ok := d.Name(p[0])
		if !ok || eq != p[0]+1 {
			return nil, 0
		}
		expr.Column = name
		out = append(out, expr)
	}
	return out, d.Tokens[end-1].End
}

func (d *describer) inserts(i, end int, c statement.Around) {
	st := &d.st
	in := &statement.Insert{}
	st.Insert, st.Verb = in, strings.ToLower(d.At(i))
	d.st.Unaddressed("an INSERT")
	i++
	if d.Is(i, "OR") {
		switch {
		case d.Is(i+1, "IGNORE"):
			st.Ignore = true
		case d.Is(i+1, "REPLACE"):
			st.Verb = "replace"
		case !d.Is(i+1, "ABORT"):
			d.lose("INSERT OR " + d.At(min(i+1, end-1)))
			return
		}
		i += 2
	}
	if !d.Is(i, "INTO") || i+1 >= end {
		d.lose("INSERT without INTO")
		return
	}
	u, i := d.source(i+1, end, c)
	u.Target, u.Read = true, st.Verb == "replace"
	at := len(st.Tables)
	d.add(u)
	if i < end && d.Is(i, "(") {
		last := d.Close(i)
		in.Columns = []string{}
		for _, p := range d.Split(i+1, last) {
			name, ok := d.Name(p[0])
			if !ok || p[1] != p[0]+1 {
				d.lose("a column of INSERT that is no name")
				return
			}
			in.Columns = append(in.Columns, name)
		}
		if len(in.Columns) > 0 {
			in.ColumnAt = d.Tokens[last-1].End
		}
		i = last + 1
	} else if i > 0 {
		in.NewListAt = d.Tokens[i-1].End
	}
	stop := end
	for j := i; j < end; j++ {
		if d.Tokens[j].Depth != 0 {
			continue
		}
		if d.Is(j, "RETURNING") {
			st.Returning = true
			d.expressions(j+1, end, c)
			stop, end = min(stop, j), j
		}
	}
	for j := i; j < end; j++ {
		if d.Tokens[j].Depth == 0 && d.Seq(j, "ON", "CONFLICT") {
			in.Conflict = true
			d.conflict(in, j, end, c)
			stop = min(stop, j)
			break
		}
	}
	st.Tables[at].Read = u.Read || in.Conflict && !in.Nothing
	switch {
	case d.Seq(i, "DEFAULT", "VALUES"):
		in.Defaults = true
	case d.Is(i, "VALUES") && len(d.arms(i, stop)) == 1:
		for _, p := range d.Split(i+1, stop) {
			if !d.Is(p[0], "(") || d.Close(p[0]) != p[1]-1 {
				d.lose("VALUES of something else than rows")
				return
			}
			var row []string
			end := 0
			for _, v := range d.Split(p[0]+1, p[1]-1) {
				row = append(row, d.Between(v[0], v[1]))
				end = d.Tokens[v[1]-1].End
			}
			in.Rows, in.RowAt = append(in.Rows, row), append(in.RowAt, end)
		}
		d.expressions(i+1, stop, c)
	case i < stop:
		in.Select = d.Between(i, stop)
		st.HasSubquery = true
		inner := c.Inner(statement.PlaceSelect)
		if d.Is(i, "WITH") {
			i = d.with(i, stop, &inner)
		}
		d.query(i, stop, inner)
	default:
		d.lose("INSERT of nothing")
	}
}

// conflict describes ON CONFLICT ... DO: the last one's assignments.
func (d *describer) conflict(in *statement.Insert, i, end int, c statement.Around) {
	in.Nothing = true
	for j := i; j < end; j++ {
		if d.Tokens[j].Depth != 0 || !d.Seq(j, "DO", "UPDATE", "SET") {
			continue
		}
		in.Nothing = false
		stop := end
		for k := j; k < end; k++ {
			if d.Tokens[k].Depth == 0 && (d.Is(k, "WHERE") || d.Seq(k, "ON", "CONFLICT")) {
				stop = k
				break
			}
		}
		in.Updates, in.UpdateAt = d.assignments(j+3, stop)
	}
	d.expressions(i, end, c)
}
