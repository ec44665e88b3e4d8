package record

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"wirecheck/history"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// reads is what a request has read last.
type reads struct {
	rows   map[history.Row]columns
	totals []total                 // the latest ones
	names  map[history.Row]string  // of rows
	named  map[rowName]history.Row // by them
	// long are tables, without schema, of which an answer had more values than are kept.
	long map[string]bool
}

// total is a number that an answer told and that is in no row of a table: a count or a sum, by the server or of the rows that the answer showed.
type total struct {
	txn    uint64
	n      int
	of     column // whose sum it is; empty: a count, or the server's
	number string
}

// column is a column of a table.
type column struct{ table, name string }

// maxTotals is how many totals of a request are kept.
const maxTotals = 32

// columns are the values of a row by their columns.
type columns map[string]value

// without gives the values as they were before a load.
func (values columns) without(by load) columns {
	if by.session == 0 {
		return values
	}
	known := make(columns, len(values))
	for column, v := range values {
		if v.load != by {
			known[column] = v
		} else if v.before != nil {
			known[column] = *v.before
		}
	}
	return known
}

// value is the value of a column as a statement read it.
type value struct {
	row     history.Row
	txn     uint64
	n       int
	version string
	text    string
	asked   bool // the statement asked for the row by this value
	unread  bool // it is NULL or could not be read
	null    bool // it is NULL
	// doubtful: the request has read something of the row since that is no column of it, such as stock - 2.
	doubtful bool
	earlier  *value // the latest one that the request had read before and that was another one
	// load is the load that read it, for a write that is to follow. Then the application knows what it had read before; nil: nothing.
	load   load
	before *value
}

// load names reads of a session, with no other ones in between, by which a framework finds out what it has to write (flow.Loads). Session 0: none.
type load struct{ session, n uint64 }

// note remembers the values of a row. mu is held.
func (rs *Requests) note(known *reads, a *history.Access, cells []Cell, ev *history.Event, by load) {
	if len(cells) == 0 || a.Row.Key == "" || rs.size+len(cells) > 2*maxValues {
		return
	}
	known.called(a)
	row := known.rows[a.Row]
	if row == nil {
		row = make(columns, len(cells))
		known.rows[a.Row] = row
	}
	before := len(row)
	for _, c := range cells {
		v := value{row: a.Row, txn: ev.Txn, n: ev.N, version: a.Version, text: c.Text, asked: c.asked, unread: c.Null || c.Unread, null: c.Null, load: by}
		old, ok := row[c.Column]
		switch {
		case !ok && c.Unread:
			continue
		case !ok:
		case old.unread || !v.unread && flow.Same(old.text, v.text):
			v.earlier = old.earlier
		default:
			old.earlier = nil
			v.earlier = &old
		}
		if last, ok := row[c.Column]; ok && by.session != 0 {
			if v.before = &last; last.load.session != 0 {
				v.before = last.before
			}
		}
		row[c.Column] = v
	}
	if rs.size += len(row) - before; len(row) == 0 {
		delete(known.rows, a.Row)
	}
}

// total remembers the totals of an answer. mu is held.
func (rs *Requests) total(known *reads, r *Running, ev *history.Event, d lex.Dialect) {
	before := len(known.totals)
	add := func(of column, number string) { known.totals = append(known.totals, total{ev.Txn, ev.N, of, number}) }
	if len(r.totals) > 0 && !r.ticket.plan.AsksExistence() && selectedConstants(r.ticket.plan.Text, d) == 0 {
		for _, number := range r.totals {
			add(column{}, number)
		}
	}
	rows, sums, of := map[string]int64{}, map[column]*big.Rat{}, []column{}
	for i := 0; len(r.reads) > 1 && i < len(r.reads); i++ { // the number in a single row is no total
		k := &r.reads[i]
		if k.access >= len(ev.Accesses) {
			continue
		}
		table := ev.Accesses[k.access].Row.Table
		rows[table]++
		for _, c := range k.cells {
			key := column{table, c.Column}
			if sums[key] == nil {
				sums[key] = new(big.Rat)
				of = append(of, key)
			}
			if c.Null || c.Unread || !flow.IsNumber(c.Text) {
				continue
			}
			if n, ok := new(big.Rat).SetString(c.Text); ok {
				sums[key].Add(sums[key], n)
			}
		}
	}
	if r.cells > maxCells { // only how many rows came is known
		for i := range ev.Accesses {
			rows[ev.Accesses[i].Row.Table]++
		}
	}
	for _, n := range rows {
		if n > 1 && len(known.totals) < before+maxTables {
			add(column{}, strconv.FormatInt(n, 10))
		}
	}
	for _, key := range of[:min(len(of), maxTotals-maxTables)] {
		if rows[key.table] > 1 && sums[key].Sign() != 0 {
			add(key, sums[key].FloatString(maxScale))
		}
	}
	known.totals = known.totals[max(0, len(known.totals)-maxTotals):]
	rs.size += len(known.totals) - before
}

// maxTables is of how many tables the rows of an answer are counted.
const maxTables = 8

// maxScale is how many digits behind the point the sums have that are compared.
const maxScale = 12

// tells reports whether a number may come from another value than v, of that column: it is a total. The sum of the column in the answer with v comes from v.
func (known *reads) tells(v *value, of column, number string) bool {
	return slices.ContainsFunc(known.totals, func(t total) bool {
		return (t.txn != v.txn || t.n != v.n || t.of != of) && flow.SameNumber(t.number, number)
	})
}

// doubt marks what the request had read of rows of which the statement shows something else than their columns, so that a value which is written later may
// come from that: an expression, or a value that is not seen.
func (known *reads) doubt(r *Running, ev *history.Event, d lex.Dialect) {
	p := r.ticket.plan
	if p.Verb == "select" && ev.Coverage == history.CoverageOpaque {
		text := strings.ToLower(p.Text)
		for row, values := range known.rows {
			if strings.Contains(text, history.Bare(row.Table)) {
				doubtful(values)
			}
		}
		return
	}
	plain, constants := map[int]bool{}, -1 // accesses of which all is seen; constants among the columns of the answer
	for _, k := range r.reads {
		if k.others > 0 && constants < 0 {
			constants = selectedConstants(p.Text, d)
		}
		if k.others <= max(constants, 0) {
			plain[k.access] = true
		} else if k.access < len(ev.Accesses) {
			doubtful(known.rows[ev.Accesses[k.access].Row])
		}
	}
	for i := 0; p.Verb == "select" && i < len(ev.Accesses); i++ {
		if !plain[i] {
			doubtful(known.rows[ev.Accesses[i].Row])
		}
	}
}

func doubtful(values columns) {
	for column, v := range values {
		v.doubtful = true
		values[column] = v
	}
}

// selectedConstants counts the columns of a SELECT's answer that are literals, as in SELECT 1 AS one FROM t and in SELECT 1; 0 if the text does not begin with SELECT.
func selectedConstants(sql string, d lex.Dialect) (n int) {
	depth, words, literals, others, begun, as := 0, 0, 0, 0, false, false
	item := func() {
		if literals == 1 && words == 0 && others == 0 {
			n++
		}
		words, literals, others, as = 0, 0, 0, false
	}
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Kind == lex.Space || t.Kind == lex.Comment:
		case !begun:
			if begun = t.Is("select"); !begun {
				return 0
			}
		case depth == 0 && t.Is("from"):
			item()
			return n
		case t.Is("as"):
		case t.Kind <= lex.Name && depth == 0 && literals == 1 && words == 0 && others == 0 && !as: // its alias
			as = true
		case t.Text == "(":
			depth++
		case t.Text == ")":
			depth--
		case depth == 0 && t.Text == ",":
			item()
		case t.Kind == lex.Word || t.Kind == lex.Name:
			words++
		case t.Kind == lex.Number || t.Kind == lex.String || t.Kind == lex.Placeholder:
			literals++
		default:
			others++
		}
	}
	item() // there is no FROM
	return n
}

// derive tells which of the values that a statement assigns may come from what its request has read of the rows of its table, and forgets what it
// overwrites. Which rows it really writes may become known later (MySQL family). own are the columns that it computes from their own values. mu is held.
func (rs *Requests) derive(known *reads, ev *history.Event, w *flow.Written, own []string, by load) (list []history.Derived) {
	for row, values := range known.rows {
		operands := w.Operands
		if len(w.Rows) > 0 && strings.EqualFold(w.Table, history.Bare(row.Table)) {
			this, certain := rowNamed(w.Rows, known.names[row])
			if this == nil && (certain || w.New) {
				continue
			} else if this != nil {
				operands = this.Operands
			}
		}
		if w.New && !strings.EqualFold(w.Table, history.Bare(row.Table)) || !w.New && (!writes(w.Table, ev, row) || !addresses(values, operands)) {
			continue
		}
		list = known.comes(list, row, values.without(by), operands, own)
		for _, o := range operands {
			if _, ok := known.rows[row][o.Column]; ok && o.Role.Assigns() {
				delete(known.rows[row], o.Column)
				rs.size--
			}
		}
	}
	if len(list) == 0 && !w.New && known.long[strings.ToLower(w.Table)] && slices.ContainsFunc(w.Operands, func(o history.Operand) bool { return o.Role == history.RoleSet }) {
		rs.untraced++
	}
	return list
}

// comes adds which of the values that a statement assigns in a row may come from those that the request has read of it.
func (known *reads) comes(list []history.Derived, row history.Row, values columns, operands []history.Operand, own []string) []history.Derived {
	renewed := renews(values, operands)
	for _, o := range operands {
		v, ok := values[o.Column]
		if !ok || !o.Role.Assigns() || o.Role == history.RoleTime { // nobody misses the time that it had before
			continue
		}
		if o.Role == history.RoleComputed {
			if slices.Contains(own, o.Column) && v.counts() && !compares(operands, o.Column) && len(list) < maxCells {
				list = append(list, v.derived(o, flow.Current))
			}
			continue
		}
		if (!v.unread || v.null && v.earlier == nil) && len(list) < maxCells {
			list = append(list, v.derived(o, v.relates(o, known.tells(&v, column{row.Table, o.Column}, o.Value))))
		}
		if e := v.earlier; e != nil && !renewed && o.Role == history.RoleSet && len(list) < maxCells {
			kind := e.relates(o, false)
			switch {
			case kind != "" && !v.explains(o, e):
				list = append(list, e.derived(o, v.leaves(kind, o, e)))
			case kind == "" && v.relates(o, false) == "" && goesBack(e.text, v.text, o.Value):
				list = append(list, e.derived(o, ""))
			}
		}
	}
	return list
}

// tooLong notes that an answer had more values than are kept. mu is held.
func (known *reads) tooLong(ev *history.Event) {
	for i := range ev.Accesses {
		if known.long == nil {
			known.long = map[string]bool{}
		}
		known.long[strings.ToLower(history.Bare(ev.Accesses[i].Row.Table))] = true
	}
}

// derived says that what the operand is set to comes from v.
func (v *value) derived(o history.Operand, kind flow.Kind) history.Derived {
	d := history.Derived{Column: o.Column, Row: v.row, Txn: v.txn, N: v.n, Version: v.version, Read: v.text, Kind: string(kind)}
	if kind != "" && kind != flow.Asked && kind != flow.Current {
		_, d.Constant, _ = flow.Relate(v.text, o.Value)
	}
	return d
}

// counts reports whether v is a number that an application may have checked before it lets the server compute another one: no reading of a clock.
func (v *value) counts() bool {
	return !v.unread && !v.doubtful && flow.IsNumber(v.text) && !flow.IsClock(v.text)
}

// compares reports whether the condition of a statement names a column.
func compares(operands []history.Operand, column string) bool {
	return slices.ContainsFunc(operands, func(o history.Operand) bool { return o.Column == column && !o.Role.Assigns() })
}

// relates is how what the operand is set to comes from v; empty if that is not known. told says that it is a number that may come from elsewhere.
func (v *value) relates(o history.Operand, told bool) flow.Kind {
	if o.Role != history.RoleSet || v.doubtful || v.null {
		return ""
	}
	if kind, _, ok := flow.Relate(v.text, o.Value); ok && telling(kind, v.text, o.Value) && !(told && kind == flow.Plus) {
		return kind
	}
	if v.asked && !flow.Same(v.text, o.Value) {
		return flow.Asked
	}
	return ""
}

// leaves is how the operand comes from e, which the request had read before v: empty unless that is certain. A number is each other number plus a constant,
// and a text that was there before may be a word that the application writes by itself. But what contains the text of e, and shows no relation to v, comes
// from e.
func (v *value) leaves(kind flow.Kind, o history.Operand, e *value) flow.Kind {
	if kind != flow.Prefix && kind != flow.Suffix || v.unread || v.doubtful || isWord(o.Value) {
		return ""
	}
	if _, _, ok := flow.Relate(v.text, o.Value); ok || strings.Contains(o.Value, v.text) {
		return ""
	}
	return kind
}

// explains reports whether the operand contains the text of v, and that contains the one of e: then it comes from v.
func (v *value) explains(o history.Operand, e *value) bool {
	kind := v.relates(o, false)
	return (kind == flow.Prefix || kind == flow.Suffix) && !v.unread && strings.Contains(v.text, e.text)
}

// goesBack reports whether a text that a request writes has most of what it read first, and not what another one had changed in it when it read the text again. So
// a JSON document, of which parts change, may come from the first read.
func goesBack(first, last, written string) bool {
	if isWord(first) || isWord(written) || flow.IsDigest(first) || flow.IsDigest(last) {
		return false
	}
	words := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	old, later, now := words(first), words(last), words(written)
	without := func(list, other []string, want bool) bool { // a word that is not in the other list, and is written or not
		return slices.ContainsFunc(list, func(w string) bool { return !slices.Contains(other, w) && slices.Contains(now, w) == want })
	}
	kept := 0
	for _, w := range old {
		if slices.Contains(now, w) {
			kept++
		}
	}
	return kept > 0 && 2*kept >= len(old) && (without(later, old, false) || without(old, later, true))
}

// isWord reports whether a text is one word, a number, a date or the like.
func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && r != ':' && r < 0x80 && !(r >= '0' && r <= '9') && !(r >= 'A' && r <= 'Z') && !(r >= 'a' && r <= 'z')
	})
}

// renews reports whether the condition compares a column with what the request read of it last, and not with what it had read before: so the statement
// rests on the last read.
func renews(values columns, operands []history.Operand) bool {
	for _, o := range operands {
		if v, ok := values[o.Column]; ok && o.Role == history.RoleEqual && v.earlier != nil && !v.unread && flow.Same(v.text, o.Value) {
			return true
		}
	}
	return false
}

// writes reports whether the statement may write a row: it did, or what it wrote is not known yet.
func writes(table string, ev *history.Event, row history.Row) bool {
	told := false
	for i := range ev.Accesses {
		if a := &ev.Accesses[i]; a.Op.Writes() {
			if told = true; a.Row == row {
				return true
			}
		}
	}
	return !told && strings.EqualFold(table, history.Bare(row.Table))
}

// addresses reports whether the condition of a statement may hold of a row with these values.
func addresses(values columns, operands []history.Operand) bool {
	assigned := map[string]bool{}
	for _, o := range operands {
		assigned[o.Column] = assigned[o.Column] || o.Role.Assigns()
	}
	for _, o := range operands {
		if v, ok := values[o.Column]; ok && o.Role == history.RoleEqual && !assigned[o.Column] && v.text != o.Value && !flow.SameNumber(v.text, o.Value) {
			return false
		}
	}
	return true
}

// telling reports whether a relation of two values is such that it is not met by chance: a piece of text is long enough, and the two are not readings of a clock.
func telling(kind flow.Kind, read, written string) bool {
	switch kind {
	case flow.Prefix, flow.Suffix:
		return len(read) >= 3
	case flow.Plus:
		return !flow.IsClock(read) || !flow.IsClock(written)
	}
	return true
}
