package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/product"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Remedy is one way out for the application.
type Remedy struct {
	Kind anomaly.Remedy `json:"kind"`
	Text string         `json:"text"` // what to do
	// SQL is one of the finding's statements as it would be written then; ? stands for a value that only the application knows. Empty:
	// none of them can be rewritten for certain.
	SQL  string `json:"sql,omitempty"`
	Cost string `json:"cost,omitempty"` // what the application has to expect
}

// Remedies lists what an application can do against a finding, cheapest first. What a product promises and did not hold
// is its vendor's to mend, so there the first advice is to report it.
func Remedies(p *product.Product, f *Finding) []Remedy {
	var out []Remedy
	if f.Promised {
		out = append(out, Remedy{Kind: anomaly.RemedyReport, Text: "report it to the vendor of " + p.Title + ": the level promises to prevent this"})
	}
	a, known := anomaly.Of(f.Class, f.Name)
	if !known { // a comparison of a re-executing oracle
		a, _ = anomaly.Of(anomaly.GSingle, "")
	}
	for _, kind := range a.Remedies {
		if holds(kind, p, f) {
			out = append(out, remedy(kind, p, f))
		}
	}
	level, what := f.PreventedBy, "run all of them at "
	switch a.Class { // between requests, a level helps where what belongs together is one transaction
	case anomaly.GSingleRequest:
		level, what = p.Weakest(anomaly.P4), "read and write in one transaction at "
	case anomaly.G2Request:
		level, what = p.Weakest(anomaly.PG2), "check and write in one transaction at "
	}
	if level == "" || f.Promised {
		return out
	}
	r := Remedy{Kind: anomaly.RemedyLevel, Text: what + p.LevelTitle(level)}
	if a.Refuses && !f.OnlyReads() {
		r.Cost = "retry refusals" + behind(": ", p.Refusals)
	}
	return append(out, r)
}

// holds reports whether a remedy helps at the finding's level, against what its transactions did.
func holds(kind anomaly.Remedy, p *product.Product, f *Finding) bool {
	switch kind {
	case anomaly.RemedyAtomic: // no UPDATE computes that a row is gone, a text, a truth value or NULL
		write := f.write()
		if f.computes(write, p) {
			return false
		}
		if tokens := significant(write, p); len(tokens) > 0 && tokens[0].Is("delete") {
			return false
		}
		u, _ := oneColumn(write, p)
		if hasAny([]lex.Token{u.value}, "true", "false", "null") {
			return false
		}
		_, err := strconv.ParseFloat(strings.Trim(u.value.Text, "'"), 64)
		return u.value.Kind != lex.String || err == nil
	case anomaly.RemedyOneRead: // one statement reads what others have not committed, row by row
		_, in, out := f.reader()
		return sees(p, f.Level, product.Select) != product.V2 && (in == 0 || in != out)
	case anomaly.RemedyConstraint: // it refuses a row; there is one to refuse where two transactions insert
		inserting := 0
		for i := range f.Transactions {
			if slices.ContainsFunc(f.Transactions[i].Statements, func(s Statement) bool { return s.Verb == "insert" }) {
				inserting++
			}
		}
		return inserting > 1 || len(f.Transactions) == 0
	}
	return true
}

// sees says which versions a kind of statement sees at a level; 0: not known.
func sees(p *product.Product, level string, kind product.Kind) product.Visibility {
	v, _ := p.View(level, kind)
	return v.Locked
}

// remedy words one remedy for the finding's statements.
func remedy(kind anomaly.Remedy, p *product.Product, f *Finding) Remedy {
	r := Remedy{Kind: kind}
	read, write := f.read(), f.write()
	switch kind {
	case anomaly.RemedyAtomic:
		r.example("let one UPDATE compute the new value from the row", "SET n = n + 1", f.computing(write, p))
	case anomaly.RemedyCheck:
		if f.computes(write, p) {
			r.example("check in the WHERE what you had checked before", "AND n >= ?", "")
		} else {
			r.example("check the old value, or a version column, in the WHERE", "AND n = ?", checking(write, p))
		}
		r.Cost = "if no row changes, read again"
	case anomaly.RemedyLock:
		text := "lock the rows that you read"
		if sees(p, f.Level, product.Select) == product.V2 {
			text += ", in each SELECT"
		}
		r.example(text, "SELECT ... FOR UPDATE", locking(read, p))
		r.Cost = "others wait; retry deadlocks"
		if sees(p, f.Level, product.ForUpdate) == product.V4 {
			r.Cost = "others wait; retry refusals" + behind(": ", p.Refusals)
		}
	case anomaly.RemedyOneTxn:
		r.example("read with a lock, and write in the same transaction", "SELECT ... FOR UPDATE", locking(read, p))
		r.Cost = "others wait"
	case anomaly.RemedyOneRead:
		r.Text = "read what belongs together in one statement"
	case anomaly.RemedyConstraint:
		unique := "UNIQUE"
		switch column, whole := f.folded(); {
		case column == "" || !p.CaseCounts:
		case whole:
			unique = "a UNIQUE index over lower(" + column + ")"
		default: // the same text may stand in rows that differ in what else the condition names
			unique = "UNIQUE, over lower(" + column + ") in place of " + column
		}
		r.Text, r.Cost = "let a constraint refuse the second row ("+unique+behind(", ", p.Exclusion)+")", "handle the refusal"
	case anomaly.RemedyParent:
		r.Text, r.Cost = "first lock a row that both must lock (for bookings: the row of the room)", "others wait"
		current := sees(p, f.Level, product.ForUpdate) == product.V3
		if current && p.SnapshotAt == product.AtBegin && sees(p, f.Level, product.Select) == product.V4 {
			// The snapshot is older than the lock: only a locking read sees what the transaction before it wrote.
			r.Text += ", and read with FOR UPDATE"
		}
		switch {
		case f.Name == anomaly.SkewBetween:
			r.Text += ", and check and write in the same transaction"
		case !current:
			// Who waits for the lock goes on with the snapshot that it has: only a changed row makes the server refuse it.
			r.Text, r.Cost = "update a row that both must update (for bookings: the row of the room)", "others wait; retry refusals"+behind(": ", p.Refusals)
		}
	}
	return r
}

var (
	lowered = regexp.MustCompile(`^[^']*\blower\((\w+)\) = `)
	alone   = regexp.MustCompile(`^lower\(\w+\) = lower\('[^']*'\)$`)
)

// folded is the column that a condition of the finding compares without regard to case; empty if there is none that is certain. whole says that
// the condition surely asks for nothing else.
func (f *Finding) folded() (column string, whole bool) {
	for _, e := range f.Edges {
		if m := lowered.FindStringSubmatch(e.Condition); m != nil {
			return m[1], alone.MatchString(e.Condition)
		}
	}
	return "", false
}

// behind is a text with something in front, or nothing.
func behind(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

// example says what to do, by the statement as it would be then, or else by what is typical.
func (r *Remedy) example(text, typical, sql string) {
	if r.Text, r.SQL = text, sql; sql == "" {
		r.Text += " (" + typical + ")"
	}
}

// read is the statement whose stale answer the finding rests on, and write what its transaction, or its request, then wrote; empty if
// it is not known.
func (f *Finding) read() string {
	if i := f.Stale(); i >= 0 {
		return f.written(f.Edges[i].From, f.Edges[i].FromStatement)
	}
	return ""
}

// written is a statement's text with its parameters' values, without the comments and the semicolon around it; empty if it is not known.
func (f *Finding) written(txn, n int) string {
	x := &f.Transactions[txn]
	i := slices.IndexFunc(x.Statements, func(s Statement) bool { return s.N == n })
	if i < 0 {
		return ""
	}
	p := product.Of(x.Engine)
	sql := x.Statements[i].withParams(p)
	tokens := significant(sql, p)
	if len(tokens) == 0 {
		return ""
	}
	last := tokens[len(tokens)-1]
	return sql[tokens[0].At : last.At+len(last.Text)]
}

func (f *Finding) write() string {
	for _, e := range f.Edges {
		if e.Kind == EdgeWW {
			return f.written(e.To, e.ToStatement)
		}
	}
	for _, e := range f.Edges { // an UPDATE that found the other one's value there already
		if e.Kind == EdgeWR && f.Changes(e.To, e.ToStatement) {
			return f.written(e.To, e.ToStatement)
		}
	}
	return ""
}

// Changes reports whether statement n of a transaction is one that changes rows, so that what it only found it had nothing to change in.
func (f *Finding) Changes(txn, n int) bool {
	return slices.ContainsFunc(f.Transactions[txn].Statements, func(s Statement) bool {
		return s.N == n && n != 0 && (s.Verb == "update" || s.Verb == "delete")
	})
}

// OnlyReads reports whether one transaction of the cycle only read in it, by statements that lock nothing, while the others wrote:
// then a level whose transactions read from one snapshot prevents it.
func (f *Finding) OnlyReads() bool {
	reader, in, out := f.reader()
	return in != 0 && f.plainRead(reader, in) && f.plainRead(reader, out) &&
		!slices.ContainsFunc(f.Edges, func(e Edge) bool { return e.To == reader && e.Kind != EdgeWR })
}

// reader gives the transaction from which the only rw of the cycle leads, the statement by which it is behind the others, and the one by which it is in front
// of them; 0 if there are several rw, or none.
func (f *Finding) reader() (txn, in, out int) {
	for i := range f.Edges {
		if f.Edges[i].Kind != EdgeRW {
			continue
		}
		if out != 0 {
			return 0, 0, 0
		}
		txn, out = f.Edges[i].From, f.Edges[i].FromStatement
	}
	for i := range f.Edges {
		if kind := f.Edges[i].Kind; out != 0 && f.Edges[i].To == txn && (kind == EdgeWR || kind == EdgeWW) {
			in = f.Edges[i].ToStatement
		}
	}
	return txn, in, out
}

// Partly gives the statement that saw a part alone of what others had done, with its transaction: it is behind them and in front of them. n is 0 if there is none.
func (f *Finding) Partly() (txn, n int) {
	txn, in, out := f.reader()
	if in != out {
		return 0, 0
	}
	return txn, out
}

// plainRead reports whether a statement is certainly one SELECT that locks nothing.
func (f *Finding) plainRead(txn, n int) bool {
	tokens := significant(f.sql(txn, n), product.Of(f.Transactions[txn].Engine))
	return len(tokens) > 0 && tokens[0].Is("select") && !hasAny(tokens, "for", "lock", "into", "with", "update", "insert", "delete")
}

// computes reports whether the UPDATE of a possible finding computes a column from its current value: then only a check of the application may be stale.
func (f *Finding) computes(sql string, p *product.Product) bool {
	return f.Kind == KindUnknown && len(flow.Relative(sql, lex.Of(p.Dialect))) > 0
}

// computing is an UPDATE of one column that gets a number, or a parameter, as one that computes it from the row.
func (f *Finding) computing(sql string, p *product.Product) string {
	u, ok := oneColumn(sql, p)
	if !ok || u.value.Kind == lex.String {
		return ""
	}
	return sql[:u.from] + u.column + f.change(u.name) + sql[u.to:]
}

// change is how an integer was changed between the read and the write of a lost update, as " - 1"; " + ?" where the values do not tell.
func (f *Finding) change(column string) string {
	var was, now string
	for _, e := range f.Edges {
		switch e.Kind {
		case EdgeRW:
			was = ValueOf(e.FromValues, column)
		case EdgeWW:
			now = ValueOf(e.ToValues, column)
		case EdgeWR: // a write that found the other one's value there already
			if f.Changes(e.To, e.ToStatement) {
				now = ValueOf(e.ToValues, column)
			}
		}
	}
	old, err := strconv.ParseInt(was, 10, 32)
	set, err2 := strconv.ParseInt(now, 10, 32)
	switch {
	case err != nil || err2 != nil || set == old:
		return " + ?"
	case set < old:
		return fmt.Sprintf(" - %d", old-set)
	}
	return fmt.Sprintf(" + %d", set-old)
}

// checking is an UPDATE of one column that checks its old value.
func checking(sql string, p *product.Product) string {
	u, ok := oneColumn(sql, p)
	if !ok || len(u.rest) == 0 || hasAny(u.rest, "or", "xor", "returning", "order", "limit", "current") || strings.Contains(sql[u.to:], "||") {
		return ""
	}
	return sql + " AND " + u.column + " = ?"
}

// assignment is what an UPDATE of one column assigns.
type assignment struct {
	column   string // as it is written
	name     string // of the column alone
	value    lex.Token
	from, to int         // of the value, with its sign
	rest     []lex.Token // behind it
}

// oneColumn finds what an UPDATE of one table assigns, if it is a literal or a parameter for one column.
func oneColumn(sql string, p *product.Product) (u assignment, ok bool) {
	tokens := significant(sql, p)
	if len(tokens) == 0 || !tokens[0].Is("update") {
		return u, false
	}
	at := 1
	for ; at < len(tokens) && !tokens[at].Is("set"); at++ {
		if strings.ContainsAny(tokens[at].Text, ",(") || tokens[at].Is("join") {
			return u, false
		}
	}
	column := at + 1
	for at = column; at < len(tokens) && tokens[at].Text != "="; at++ {
		if k := tokens[at].Kind; k != lex.Word && k != lex.Name && tokens[at].Text != "." {
			return u, false
		}
	}
	if at+1 >= len(tokens) || at == column {
		return u, false
	}
	u.column = sql[tokens[column].At : tokens[at-1].At+len(tokens[at-1].Text)]
	u.name = strings.Trim(tokens[at-1].Text, "\"`")
	first := at + 1
	at = first
	if tokens[at].Text == "-" || tokens[at].Text == "+" {
		at++
	}
	if at >= len(tokens) {
		return u, false
	}
	u.value, u.from, u.to = tokens[at], tokens[first].At, tokens[at].At+len(tokens[at].Text)
	if k := u.value.Kind; k != lex.Number && k != lex.Placeholder && (k != lex.String || first != at) {
		return u, false
	}
	// The WHERE follows; a FROM, a second column or an expression is more than is understood here.
	u.rest = tokens[at+1:]
	return u, len(u.rest) == 0 || u.rest[0].Is("where")
}

// locking is a SELECT as one that locks what it reads; empty where the product refuses that, or where tokens do not tell.
func locking(sql string, p *product.Product) string {
	tokens := significant(sql, p)
	if len(tokens) == 0 || !tokens[0].Is("select") || p.Dialect == product.DialectSQLite {
		return ""
	}
	if hasAny(tokens, "for", "lock", "into", "union", "intersect", "except", "with", "procedure", "tablesample") || !hasAny(tokens, "from") {
		return ""
	}
	if p.Dialect == product.DialectMySQL {
		return sql + " FOR UPDATE"
	}
	// PostgreSQL refuses it with what makes one row of several, and for the nullable side of an outer join (manual, SELECT, "The Locking Clause").
	if hasAny(tokens, "distinct", "group", "having", "window", "over", "left", "right", "full", "exists") {
		return ""
	}
	from, depth, calls := 0, 0, false
	for i, t := range tokens {
		switch {
		case t.Text == "(":
			depth++
			calls = calls || i > 0 && (tokens[i-1].Kind == lex.Word || tokens[i-1].Kind == lex.Name)
		case t.Text == ")":
			depth--
		case depth == 0 && t.Is("from"):
			from = t.At
		}
		if from > 0 {
			break
		}
	}
	if from == 0 {
		return ""
	}
	if !calls {
		return sql + " FOR UPDATE"
	}
	// A function of the list may be an aggregate: the rows are locked first, in a derived table.
	list := sql[tokens[0].At:from]
	if strings.Contains(list, ".") || hasAny(tokens, "order", "limit", "offset", "fetch", "join") {
		return ""
	}
	return list + "FROM (SELECT * " + sql[from:] + " FOR UPDATE) AS locked"
}

// significant are the tokens of a text of one statement that are neither space nor comments; nil if there are several statements.
func significant(sql string, p *product.Product) (out []lex.Token) {
	d := lex.Of(p.Dialect)
	if lex.Several(sql, d) {
		return nil
	}
	for t := range lex.Tokens(sql, d) {
		if t.Kind != lex.Space && t.Kind != lex.Comment && t.Text != ";" {
			out = append(out, t)
		}
	}
	return out
}

// hasAny reports whether one of the words stands among the tokens.
func hasAny(tokens []lex.Token, words ...string) bool {
	return slices.ContainsFunc(tokens, func(t lex.Token) bool {
		return slices.ContainsFunc(words, func(w string) bool { return t.Is(w) })
	})
}
