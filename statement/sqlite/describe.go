package sqlite

import (
	"fmt"
	"strings"

	"wirecheck/rewrite"
)

// Describe describes the statements of a script, one by one; empty ones are left out. The error says that the text cannot even be cut
// into statements.
func Describe(sql string) ([]rewrite.Statement, error) {
	tokens, err := lex(sql)
	if err != nil {
		return nil, fmt.Errorf("describe statement: %w", err)
	}
	t := &text{sql, tokens}
	var list []rewrite.Statement
	first := 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) && !t.ends(i, first) {
			continue
		}
		if i > first {
			at := tokens[first].start
			st, err := describe(sql[at:tokens[i-1].end])
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
func (t *text) ends(i, first int) bool {
	if !t.is(i, ";") {
		return false
	}
	trigger := t.is(first, "CREATE") && (t.is(first+1, "TRIGGER") || t.is(first+1, "TEMP", "TEMPORARY") && t.is(first+2, "TRIGGER"))
	return !trigger || t.is(i-1, "END") && t.is(i-2, ";")
}

// describer describes one statement.
type describer struct {
	*text
	st   rewrite.Statement
	whys []string // why it is volatile
	lost string   // what was not expected; empty: nothing
}

func describe(sql string) (rewrite.Statement, error) {
	tokens, err := lex(sql)
	if err != nil {
		return rewrite.Statement{}, fmt.Errorf("describe statement: %w", err)
	}
	d := &describer{text: &text{sql, tokens}, st: rewrite.Statement{Text: sql, Verb: "other"}}
	for i := range tokens {
		if tokens[i].kind == tokParam {
			d.st.Parameters++
		}
	}
	d.statement()
	if d.lost != "" {
		return rewrite.Statement{
			Text: sql, Verb: d.st.Verb, Unparsed: true, Why: d.lost, Parameters: d.st.Parameters, Variables: true, Volatile: "a statement that is not understood",
		}, nil
	}
	d.st.Volatile = rewrite.Reasons(d.whys)
	return d.st, nil
}

func (d *describer) lose(why string) {
	if d.lost == "" {
		d.lost = why
	}
}

func (d *describer) volatile(why string) { d.whys = append(d.whys, why) }

func (d *describer) statement() {
	st := &d.st
	control := func(verb string, c rewrite.Control) { st.Verb, st.Control = verb, c }
	savepoint := func(i int) string {
		if d.is(i, "SAVEPOINT") {
			i++
		}
		name, ok := d.name(i)
		if !ok {
			d.lose("a savepoint without a name")
		}
		return strings.ToLower(name) // sqlite.org/lang_savepoint.html: names are compared without regard to case
	}
	switch {
	case d.is(0, "BEGIN"):
		control("begin", rewrite.Control{Verb: rewrite.ControlBegin})
	case d.is(0, "COMMIT", "END"):
		control("commit", rewrite.Control{Verb: rewrite.ControlCommit})
	case d.is(0, "ROLLBACK"):
		to := 1
		if d.is(to, "TRANSACTION") {
			to++
		}
		if d.is(to, "TO") {
			control("rollback to", rewrite.Control{Verb: rewrite.ControlRollbackTo, Name: savepoint(to + 1)})
		} else {
			control("rollback", rewrite.Control{Verb: rewrite.ControlRollback})
		}
	case d.is(0, "SAVEPOINT"):
		control("savepoint", rewrite.Control{Verb: rewrite.ControlSavepoint, Name: savepoint(1)})
	case d.is(0, "RELEASE"):
		control("release", rewrite.Control{Verb: rewrite.ControlRelease, Name: savepoint(1)})
	case d.is(0, "CREATE", "ALTER", "DROP"):
		st.Verb, st.DDL = "ddl", true
	case d.is(0, "PRAGMA"):
		st.Verb, st.Variables = "set", true
		d.volatile("PRAGMA")
	case d.is(0, "EXPLAIN"):
		d.volatile("EXPLAIN")
	case d.is(0, "ANALYZE", "REINDEX", "VACUUM"):
	case d.is(0, "WITH", "SELECT", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"):
		d.data()
	default:
		d.lose("it begins with none of the words of SQLite's statements")
	}
}

// data describes queries and writes.
func (d *describer) data() {
	for i := range d.tokens {
		if d.is(i, "(") && d.close(i) < 0 || d.tokens[i].depth < 0 {
			d.lose("parentheses do not match")
			return
		}
	}
	end := len(d.tokens)
	c := around{}
	first := 0
	if d.is(0, "WITH") {
		if first = d.with(0, end, &c); first >= end {
			d.lose("WITH without a statement")
			return
		}
		d.st.Clauses.With = d.between(0, first)
	}
	switch {
	case d.is(first, "SELECT", "VALUES"):
		d.st.Verb = "select"
		d.selects(first, end, c)
	case d.is(first, "INSERT", "REPLACE"):
		d.inserts(first, end, c)
	case d.is(first, "UPDATE"):
		d.st.Verb = "update"
		d.updates(first, end, c)
	case d.is(first, "DELETE"):
		d.st.Verb = "delete"
		d.deletes(first, end, c)
	default:
		d.lose("WITH in front of something else than a query or a write")
	}
	for _, u := range d.st.Tables {
		into := d.st.Insert != nil && u.Place == rewrite.PlaceMain
		d.st.Predicate = d.st.Predicate || u.Read && u.Kind == rewrite.SourceTable && !into
	}
	d.vary(0, end)
}

// clause is a clause with its keyword, as a range of tokens.
type clause struct {
	word       string
	start, end int
}

// clauses cuts the tokens from i to end, which is of one depth outside of parentheses, at the words.
func (d *describer) clauses(i, end int, words ...string) (list []clause) {
	depth := d.tokens[i].depth
	seen := map[string]bool{}
	for ; i < end; i++ {
		if d.tokens[i].depth != depth || !d.is(i, words...) || !d.opens(i) {
			continue
		}
		word := strings.ToUpper(d.at(i))
		if seen[word] {
			d.lose("two clauses " + word)
		}
		seen[word] = true
		if n := len(list); n > 0 {
			list[n-1].end = i
		}
		list = append(list, clause{word, i, end})
	}
	return list
}

// opens reports whether a keyword begins a clause where it stands.
func (d *describer) opens(i int) bool {
	switch {
	case i > 0 && d.is(i-1, "."):
		return false
	case d.is(i, "FROM"): // IS [NOT] DISTINCT FROM
		return !(d.is(i-1, "DISTINCT") && d.is(i-2, "IS", "NOT"))
	case d.is(i, "GROUP", "ORDER"):
		return d.is(i+1, "BY")
	case d.is(i, "WINDOW"):
		return d.is(i+2, "AS") && d.is(i+3, "(")
	case d.is(i, "SET"), d.is(i, "WHERE"):
		return true
	}
	return true
}

// text of a clause behind n words.
func (d *describer) body(c clause, n int) string { return d.between(c.start+n, c.end) }

func (d *describer) fill(list []clause) {
	to := &d.st.Clauses
	for _, c := range list {
		switch c.word {
		case "FROM":
			to.From = d.body(c, 1)
		case "WHERE":
			to.Where = d.body(c, 1)
		case "GROUP":
			to.GroupBy = d.body(c, 2)
		case "HAVING":
			to.Having = d.body(c, 1)
		case "WINDOW":
			to.Window = d.body(c, 1)
		case "ORDER":
			to.OrderBy = d.body(c, 2)
		case "LIMIT":
			to.Limit = d.between(c.start, c.end)
		}
	}
}

func (d *describer) unaddressed(why string) {
	if d.st.Addressing.Why == "" {
		d.st.Addressing.Why = why
	}
}

// selects describes the outermost query.
func (d *describer) selects(i, end int, c around) {
	st := &d.st
	if arms := d.arms(i, end); len(arms) > 1 {
		st.SetOperation = true
		d.unaddressed("a set operation")
		last := arms[len(arms)-1]
		for _, k := range d.clauses(last[0], last[1], "SELECT", "VALUES", "LIMIT") {
			st.Limit = st.Limit || k.word == "LIMIT"
		}
		d.query(i, end, c)
		return
	}
	if d.is(i, "VALUES") {
		d.unaddressed("no tables")
		d.query(i, end, c)
		return
	}
	list := d.clauses(i, end, "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT")
	d.fill(list)
	st.Distinct, st.Limit = d.is(i+1, "DISTINCT"), st.Clauses.Limit != ""
	for _, k := range list {
		if k.word == "SELECT" || k.word == "ORDER" || k.word == "HAVING" {
			aggregate, window := d.calls(k.start, k.end)
			st.Aggregate, st.Window = st.Aggregate || aggregate, st.Window || window
		}
	}
	st.Aggregate = st.Aggregate || st.Clauses.GroupBy != "" || st.Clauses.Having != ""
	if st.Aggregate {
		d.bare(list)
	}
	switch {
	case st.Aggregate:
		d.unaddressed("groups")
	case st.Clauses.From == "":
		d.unaddressed("no tables")
	case st.Limit:
		d.unaddressed("ORDER BY may name the select list")
	case st.Window && st.Clauses.Window != "":
		d.unaddressed("a window's name that ORDER BY may use")
	}
	st.Addressing.Unorder = true
	d.query(i, end, c)
}

func (d *describer) updates(i, end int, c around) {
	st := &d.st
	i++
	if d.is(i, "OR") {
		if !d.is(i+1, "ABORT") {
			d.lose("UPDATE OR " + d.at(i+1) + " may leave out rows or change others")
			return
		}
		i += 2
	}
	if i >= end {
		d.lose("UPDATE of nothing")
		return
	}
	depth := d.tokens[i].depth
	u, next := d.source(i, end, c)
	u.Target = true
	d.add(u)
	list := d.clauses(next, end, "SET", "FROM", "WHERE", "RETURNING")
	if len(list) == 0 || list[0].word != "SET" || list[0].start != next || d.lost != "" {
		d.lose("UPDATE without SET")
		return
	}
	target := d.between(i, next)
	d.fill(list)
	for _, k := range list {
		switch k.word {
		case "SET":
			d.st.Assignments, d.st.AssignAt = d.assignments(k.start+1, k.end, depth)
			d.expressions(k.start+1, k.end, c)
		case "FROM":
			st.Clauses.From = target + ", " + d.body(k, 1)
			d.from(k.start+1, k.end, c)
		case "WHERE", "RETURNING":
			st.Returning = st.Returning || k.word == "RETURNING"
			d.expressions(k.start+1, k.end, c)
		}
	}
	if st.Clauses.From == "" {
		st.Clauses.From = target
	}
}

func (d *describer) deletes(i, end int, c around) {
	st := &d.st
	if !d.is(i+1, "FROM") || i+2 >= end {
		d.lose("DELETE without FROM")
		return
	}
	u, next := d.source(i+2, end, c)
	u.Target = true
	d.add(u)
	st.Clauses.From = d.between(i+2, next)
	if next == end || d.lost != "" {
		return
	}
	list := d.clauses(next, end, "WHERE", "RETURNING")
	if len(list) == 0 || list[0].start != next {
		d.lose("DELETE with something else than WHERE and RETURNING")
		return
	}
	d.fill(list)
	for _, k := range list {
		st.Returning = st.Returning || k.word == "RETURNING"
		d.expressions(k.start+1, k.end, c)
	}
}

// assignments describes those of SET. They are nil, and the place 0, if they are not certain.
func (d *describer) assignments(i, end, depth int) (out []rewrite.Assignment, at int) {
	for _, p := range d.split(i, end, depth) {
		eq := -1
		for j := p[0]; j < p[1] && eq < 0; j++ {
			if d.tokens[j].depth == depth && d.is(j, "=") {
				eq = j
			}
		}
		if eq < 0 || eq+1 >= p[1] {
			return nil, 0
		}
		expr := rewrite.Assignment{Expr: d.between(eq+1, p[1]), At: d.tokens[eq+1].start}
		if d.is(p[0], "(") {
			for j := p[0] + 1; j < eq-1; j++ {
				if name, ok := d.name(j); ok {
					expr.Column, expr.Partial = name, true
					out = append(out, expr)
				}
			}
			continue
		}
		name, ok := d.name(p[0])
		if !ok || eq != p[0]+1 {
			return nil, 0
		}
		expr.Column = name
		out = append(out, expr)
	}
	return out, d.tokens[end-1].end
}

func (d *describer) inserts(i, end int, c around) {
	st := &d.st
	in := &rewrite.Insert{}
	st.Insert, st.Verb = in, strings.ToLower(d.at(i))
	d.unaddressed("an INSERT")
	i++
	if d.is(i, "OR") {
		switch {
		case d.is(i+1, "IGNORE"):
			st.Ignore = true
		case d.is(i+1, "REPLACE"):
			st.Verb = "replace"
		case !d.is(i+1, "ABORT"):
			d.lose("INSERT OR " + d.at(min(i+1, end-1)))
			return
		}
		i += 2
	}
	if !d.is(i, "INTO") || i+1 >= end {
		d.lose("INSERT without INTO")
		return
	}
	u, i := d.source(i+1, end, c)
	u.Target, u.Read = true, st.Verb == "replace"
	at := len(st.Tables)
	d.add(u)
	if i < end && d.is(i, "(") {
		last := d.close(i)
		in.Columns = []string{}
		for _, p := range d.split(i+1, last, d.tokens[i].depth+1) {
			name, ok := d.name(p[0])
			if !ok || p[1] != p[0]+1 {
				d.lose("a column of INSERT that is no name")
				return
			}
			in.Columns = append(in.Columns, name)
		}
		if len(in.Columns) > 0 {
			in.ColumnAt = d.tokens[last-1].end
		}
		i = last + 1
	} else if i > 0 {
		in.NewListAt = d.tokens[i-1].end
	}
	stop := end
	for j := i; j < end; j++ {
		if d.tokens[j].depth != 0 {
			continue
		}
		if d.is(j, "RETURNING") {
			st.Returning = true
			d.expressions(j+1, end, c)
			stop, end = min(stop, j), j
		}
	}
	for j := i; j < end; j++ {
		if d.tokens[j].depth == 0 && d.seq(j, "ON", "CONFLICT") {
			in.Conflict = true
			d.conflict(in, j, end, c)
			stop = min(stop, j)
			break
		}
	}
	st.Tables[at].Read = u.Read || in.Conflict && !in.Nothing
	switch {
	case d.seq(i, "DEFAULT", "VALUES"):
		in.Defaults = true
	case d.is(i, "VALUES") && len(d.arms(i, stop)) == 1:
		for _, p := range d.split(i+1, stop, 0) {
			if !d.is(p[0], "(") || d.close(p[0]) != p[1]-1 {
				d.lose("VALUES of something else than rows")
				return
			}
			var row []string
			end := 0
			for _, v := range d.split(p[0]+1, p[1]-1, 1) {
				row = append(row, d.between(v[0], v[1]))
				end = d.tokens[v[1]-1].end
			}
			in.Rows, in.RowAt = append(in.Rows, row), append(in.RowAt, end)
		}
		d.expressions(i+1, stop, c)
	case i < stop:
		in.Select = d.between(i, stop)
		st.HasSubquery = true
		inner := c.inner(rewrite.PlaceSelect)
		if d.is(i, "WITH") {
			i = d.with(i, stop, &inner)
		}
		d.query(i, stop, inner)
	default:
		d.lose("INSERT of nothing")
	}
}

// conflict describes ON CONFLICT ... DO: the last one's assignments.
func (d *describer) conflict(in *rewrite.Insert, i, end int, c around) {
	in.Nothing = true
	for j := i; j < end; j++ {
		if d.tokens[j].depth != 0 || !d.seq(j, "DO", "UPDATE", "SET") {
			continue
		}
		in.Nothing = false
		stop := end
		for k := j; k < end; k++ {
			if d.tokens[k].depth == 0 && (d.is(k, "WHERE") || d.seq(k, "ON", "CONFLICT")) {
				stop = k
				break
			}
		}
		in.Updates, in.UpdateAt = d.assignments(j+3, stop, 0)
	}
	d.expressions(i, end, c)
}
