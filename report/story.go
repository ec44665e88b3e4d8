package report

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/product"
)

// A story tells a finding to a person who never read about anomalies: one sentence, what happened in order, what it means, and
// what the level has to do with it. The reader's own session is "you".
type story struct {
	headline string
	acts     []told
	effect   string
	level    string
}

// told is one thing that happened.
type told struct {
	text string // "Session 2 (psql) changed coupon WELCOME10 and committed"
	sql  string // its statement on one line; empty: it was not captured
}

// tell makes the story of a finding. you is the session of the reader; 0: the reader has none.
func tell(f *oracle.Finding, you uint64) story {
	t := teller{f: f, you: you}
	return story{headline: t.headline(), acts: t.acts(), effect: t.effect(), level: t.level()}
}

type teller struct {
	f   *oracle.Finding
	you uint64
}

// who names a transaction's session within a sentence, or its request where the session, of a pool, had another one besides.
func (t *teller) who(txn int) string {
	x := &t.f.Transactions[txn]
	switch {
	case x.Request != "" && slices.ContainsFunc(t.f.Transactions, func(o oracle.Transaction) bool { return o.Session == x.Session && o.Request != x.Request }):
		return "request " + prose.Line(x.Request, 40)
	case x.Session == t.you:
		return "you"
	}
	return fmt.Sprintf("session %d", x.Session)
}

// whose is the possessive of who.
func (t *teller) whose(txn int) string {
	if who := t.who(txn); who != "you" {
		return who + "'s"
	}
	return "your"
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// row names an edge's row as people do, and bare a table: PostgreSQL's schema public, and a database that the session is in,
// go without saying.
func (t *teller) row(e *oracle.Edge) string {
	return strings.Replace(e.RowText(), e.Row.Table, t.bare(e.From, e.Row.Table), 1)
}

func (t *teller) bare(txn int, table string) string {
	x := &t.f.Transactions[txn]
	schema := "public."
	if product.Of(x.Engine).Dialect == product.DialectMySQL {
		schema = x.Database + "."
	}
	return strings.TrimPrefix(table, schema)
}

// overwriter is the transaction that wrote what it, or its request, had read; writer made the change that it had not seen.
func (t *teller) overwriter() (overwriter, writer int) {
	i := t.f.Stale()
	overwriter, writer = t.f.Edges[i].From, t.f.Edges[i].To
	for _, e := range t.f.Edges {
		if e.From == writer && (e.Kind == oracle.EdgeWW || e.Kind == oracle.EdgeWR) {
			overwriter = e.To
		}
	}
	return overwriter, writer
}

// Headline is a finding in one sentence.
func Headline(f *oracle.Finding) string {
	if len(f.Edges) == 0 {
		return f.Title()
	}
	return (&teller{f: f}).headline()
}

// headline is the finding in one sentence, without its name's article: "lost update: your UPDATE of ... overwrote ...".
func (t *teller) headline() string {
	return t.f.Title() + ": " + t.sentence()
}

func (t *teller) sentence() string {
	f := t.f
	if len(f.Edges) == 0 {
		return "the results do not fit together"
	}
	first := &f.Edges[0]
	a, b := first.From, first.To
	switch f.Name {
	case anomaly.LostUpdate, anomaly.LostBetween:
		a, b = t.overwriter()
		verb := "UPDATE"
		for _, e := range f.Edges {
			if e.To == a && (e.Kind == oracle.EdgeWW || e.Kind == oracle.EdgeWR && f.Changes(a, e.ToStatement)) {
				if s := statement(f, a, e.ToStatement); s != nil && s.Verb != "" {
					verb = strings.ToUpper(s.Verb)
				}
			}
		}
		if f.Kind == oracle.KindUnknown {
			return fmt.Sprintf("%s %s of %s may rest on what was read before %s changed it", t.whose(a), verb, t.row(first), t.who(b))
		}
		return fmt.Sprintf("%s %s of %s overwrote a change by %s that it had not seen", t.whose(a), verb, t.row(first), t.who(b))
	case anomaly.ReadSkew, anomaly.Vanishes:
		return fmt.Sprintf("%s read rows from before and from after %s commit", t.who(a), t.whose(f.Edges[len(f.Edges)-1].From))
	case anomaly.NonRepeatableRead:
		return fmt.Sprintf("%s read %s again, and %s had changed it in between", t.who(a), t.row(first), t.who(b))
	case anomaly.Phantom:
		return fmt.Sprintf("%s asked for rows, and %s changed which rows there are", t.who(a), t.who(b))
	case anomaly.ReadWriteSkew:
		return fmt.Sprintf("%s decided by %s as it was before %s change, and wrote over another change by %s", t.who(a), t.row(first), t.whose(b), t.who(b))
	case anomaly.WriteSkew, anomaly.SkewBetween:
		if asked, table := t.checked(); table != "" {
			return fmt.Sprintf("%s and %s each %s of %s, and each then inserted one%s", t.who(a), t.who(b), asked, table, t.numbered())
		}
		return fmt.Sprintf("%s and %s each read rows that the other one then changed, and wrote by what they had read", t.who(a), t.who(b))
	case anomaly.AbortedRead:
		return fmt.Sprintf("%s read a change of %s by %s that was then undone", t.who(b), t.row(first), t.who(a))
	case anomaly.IntermediateRead:
		return fmt.Sprintf("%s read a value of %s that %s replaced before it committed", t.who(b), t.row(first), t.who(a))
	case anomaly.OwnUnseen:
		return fmt.Sprintf("%s wrote %s and then read it as it had been before", t.who(a), t.row(first))
	case anomaly.ReadBefore:
		return fmt.Sprintf("%s read a version of %s before %s had sent the statement that wrote it", t.who(b), t.row(first), t.who(a))
	case anomaly.NeverWritten:
		return fmt.Sprintf("%s read a version of %s that nobody wrote", t.who(b), t.row(first))
	case anomaly.OverAborted:
		return fmt.Sprintf("%s replaced a version of %s by %s that was undone", t.who(b), t.row(first), t.who(a))
	case anomaly.DirtyWrite:
		return fmt.Sprintf("%s and %s overwrote one another before they committed", t.who(a), t.who(b))
	case anomaly.CircularFlow:
		return fmt.Sprintf("%s and %s each saw what the other one did", t.who(a), t.who(b))
	}
	if f.Rows {
		return t.everyone() + " changed one another's rows at the same time"
	}
	return t.everyone() + " cannot have run one after the other"
}

// checked is the table of a write skew in which each party asked for rows and then inserted one that the other one would have found, and what they did
// before; empty: of another.
func (t *teller) checked() (asked, table string) {
	const anyRows = "asked for rows"
	for i := range t.f.Edges {
		e := &t.f.Edges[i]
		if e.Kind != oracle.EdgeRW {
			continue
		}
		s := statement(t.f, e.To, e.ToStatement)
		name := t.bare(e.From, e.Row.Table)
		if !e.ByCondition() || s == nil || s.Verb != "insert" || table != "" && table != name {
			return "", ""
		}
		did, _ := e.Asked("")
		if did += " rows"; did == anyRows && e.Found != nil && *e.Found == 0 {
			did = "found no such row"
		}
		if asked != "" && asked != did {
			did = anyRows
		}
		asked, table = did, name
	}
	return asked, table
}

// numbered says which number each party of a write skew gave to a row, if it is the same one.
func (t *teller) numbered() string {
	var number *oracle.Value
	for i := range t.f.Edges {
		e := &t.f.Edges[i]
		switch {
		case e.Kind != oracle.EdgeRW:
		case len(e.ToValues) != 1 || number != nil && *number != e.ToValues[0]:
			return ""
		default:
			number = &e.ToValues[0]
		}
	}
	if number == nil {
		return ""
	}
	return " with " + number.Column + " = " + number.Text
}

// mostNamed bounds the sessions that one sentence names.
const mostNamed = 5

// everyone lists the sessions that take part.
func (t *teller) everyone() string {
	var names []string
	for i := range t.f.Transactions {
		if who := t.who(i); !slices.Contains(names, who) {
			names = append(names, who)
		}
	}
	if len(names) == 1 {
		return "the transactions of " + names[0]
	}
	if len(names) > mostNamed {
		names = append(names[:mostNamed-1], prose.Count(len(names)-mostNamed+1, "other session"))
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// effect says what follows from it.
func (t *teller) effect() string {
	f := t.f
	if len(f.Edges) == 0 {
		return ""
	}
	a, b := f.Edges[0].From, f.Edges[0].To
	if f.Rows {
		return "By the columns that changed, they could have run one after the other; but this level protects whole rows, and must refuse one of them."
	}
	switch f.Name {
	case anomaly.LostUpdate, anomaly.LostBetween:
		a, b = t.overwriter()
		if f.Kind == oracle.KindUnknown {
			return fmt.Sprintf("If it does, %s did not take %s change into account.", t.who(a), t.whose(b))
		}
		if lost := t.lost(); lost != "" {
			return lost
		}
		of := ""
		for i := range f.Edges {
			if list := f.Edges[i].Columns; len(list) > 0 && f.Edges[i].To == a {
				of = " of " + strings.Join(list, ", ")
			}
		}
		return fmt.Sprintf("%s did not take %s change%s into account: it may be lost.", capital(t.who(a)), t.whose(b), of)
	case anomaly.ReadSkew, anomaly.Vanishes, anomaly.NonRepeatableRead, anomaly.Phantom:
		if partly := t.partly(); partly != "" {
			return partly
		}
		return "The answers do not fit together: no one moment shows them all."
	case anomaly.WriteSkew, anomaly.SkewBetween:
		if serial := t.serial(); serial != "" {
			return serial
		}
		return "In any serial order, one of the two would have seen the other one's change."
	case anomaly.AbortedRead, anomaly.IntermediateRead:
		return "What was read was never a committed value."
	}
	return "No serial order of these transactions gives these results."
}

// partly says that one statement saw a part alone of what another transaction had done: it followed rows to their newest versions after waiting.
func (t *teller) partly() string {
	txn, n := t.f.Partly()
	s := statement(t.f, txn, n)
	p := product.Of(t.f.Transactions[txn].Engine)
	if n == 0 || s == nil || len(t.f.Transactions) != 2 || p.AfterWait != product.WaitRechecks || p.LevelTitle(t.f.Level) == "" {
		return ""
	}
	return fmt.Sprintf("%s %s saw only a part of what %s did. %s follows a locked row to its newest version; all other rows are as they were when the statement began.",
		capital(t.whose(txn)), strings.ToUpper(s.Verb), t.who(1-txn), p.LevelTitle(t.f.Level))
}

// level says which level allows it or promises to prevent it.
func (t *teller) level() string {
	f := t.f
	if len(f.Transactions) == 0 {
		return ""
	}
	p := product.Of(f.Transactions[0].Engine)
	switch {
	case f.Name == anomaly.LostBetween, f.Name == anomaly.SkewBetween:
		return "No isolation level prevents this: the read and the write are in two transactions."
	case f.Promised:
		return p.Title + " promises to prevent this at " + p.LevelTitle(f.Level) + ": a bug of the server, not of the application."
	case f.PreventedBy == "" && f.Level != "" && f.Level != "mixed":
		return "It ran at " + p.LevelTitle(f.Level) + "."
	case f.PreventedBy == "":
		return ""
	}
	by := p.LevelTitle(f.PreventedBy) + " prevents it."
	switch f.Level {
	case "":
		return by
	case "mixed":
		var levels []string
		for i := range f.Transactions {
			x := &f.Transactions[i]
			if x.Level != "" && x.Outcome == history.OutcomeCommitted {
				levels = append(levels, t.who(i)+" ran at "+p.LevelTitle(x.Level))
			}
		}
		return capital(strings.Join(levels, ", ")) + "; " + p.LevelTitle(f.PreventedBy) + " for all of them prevents it."
	}
	return p.LevelTitle(f.Level) + " allows this; " + by
}

// act is what a transaction did with rows in one statement.
type act struct {
	txn, n int
	what   string
	rows   []string
	at     uint64         // tick of the answer
	values []oracle.Value // of its rows, if they are one
}

// acts lists what happened in the order of the answers, each statement once.
func (t *teller) acts() []told {
	f := t.f
	var acts []*act
	add := func(txn, n int, what, row string, values []oracle.Value) {
		for _, a := range acts {
			if a.txn == txn && a.n == n && a.what == what {
				if !slices.Contains(a.rows, row) {
					a.rows, a.values = append(a.rows, row), nil
				}
				return
			}
		}
		at := t.f.Transactions[txn].To
		if s := statement(t.f, txn, n); s != nil {
			at = s.To
		}
		acts = append(acts, &act{txn: txn, n: n, what: what, rows: []string{row}, at: at, values: values})
	}
	for i := range t.f.Edges {
		e := &t.f.Edges[i]
		row := t.row(e)
		asked, rows := e.Asked("rows of " + t.bare(e.From, e.Row.Table))
		rows += e.FoundText()
		switch e.Kind {
		case oracle.EdgeRW:
			if e.ByCondition() {
				add(e.From, e.FromStatement, asked, rows, nil)
			} else {
				add(e.From, e.FromStatement, "read", row, t.telling(e, e.FromValues))
			}
			add(e.To, e.ToStatement, t.wrote(e.To, e.ToStatement, e.ToVersion), row, e.ToValues)
		case oracle.EdgeWW:
			add(e.From, e.FromStatement, t.wrote(e.From, e.FromStatement, e.FromVersion), row, e.FromValues)
			add(e.To, e.ToStatement, t.wrote(e.To, e.ToStatement, e.ToVersion), row, e.ToValues)
		case oracle.EdgeWR:
			add(e.From, e.FromStatement, t.wrote(e.From, e.FromStatement, e.FromVersion), row, e.FromValues)
			switch {
			case e.ByCondition():
				add(e.To, e.ToStatement, asked, rows, nil)
			case f.Changes(e.To, e.ToStatement):
				add(e.To, e.ToStatement, "found", row, e.ToValues)
			default:
				add(e.To, e.ToStatement, "read", row, t.telling(e, e.ToValues))
			}
		}
	}
	sort.SliceStable(acts, func(i, j int) bool { return acts[i].at < acts[j].at })
	return t.tellActs(acts)
}

// wrote is the verb for what a statement did to a row.
func (t *teller) wrote(txn, n int, version string) string {
	s := statement(t.f, txn, n)
	switch {
	case version == "deleted" || s != nil && s.Verb == "delete":
		return "deleted"
	case s != nil && s.Verb == "insert" && !t.upserted(txn, n):
		return "inserted"
	}
	return "changed"
}

// upserted reports whether an INSERT changed a row that was there: somebody had read or written it before.
func (t *teller) upserted(txn, n int) bool {
	return slices.ContainsFunc(t.f.Edges, func(e oracle.Edge) bool {
		return e.To == txn && e.ToStatement == n && (e.Kind == oracle.EdgeWW && e.FromVersion != "deleted" || e.Kind == oracle.EdgeRW && !e.ByCondition())
	})
}

// tellActs words the acts. A session is introduced where it comes first, and a transaction's end stands behind its last act if others act after it.
func (t *teller) tellActs(acts []*act) []told {
	var out []told
	introduced := map[string]bool{"you": true}
	for i, a := range acts {
		x := &t.f.Transactions[a.txn]
		name := t.who(a.txn)
		who := capital(name)
		if !introduced[name] {
			introduced[name] = true
			if by := by(x); by != "" {
				who += " (" + by + ")"
			}
		}
		s := told{text: who + " " + did(a)}
		last := !slices.ContainsFunc(acts[i+1:], func(b *act) bool { return b.txn == a.txn })
		switch {
		case !last:
		case x.Outcome == history.OutcomeAborted && i+1 < len(acts):
			s.text += ", and later rolled back"
		case x.Outcome == history.OutcomeAborted:
			s.text += ", and rolled back"
		case !x.Implicit && x.To != 0 && slices.ContainsFunc(acts[i+1:], func(b *act) bool { return b.at > x.To }):
			s.text += " and committed"
		}
		if st := statement(t.f, a.txn, a.n); st != nil {
			s.sql = prose.Statement(st.SQL, prose.Width) + parameters(st.Params)
		} else {
			s.text += ", in a statement that wirecheck did not see"
		}
		out = append(out, s)
	}
	return out
}

// by says who a session is, as far as that is known and short.
func by(x *oracle.Transaction) string {
	var parts []string
	if x.Client != "" {
		parts = append(parts, prose.Line(x.Client, 30))
	}
	return strings.Join(append(parts, x.Tags...), ", ")
}

// statement finds a statement that takes part; nil if it was not captured.
func statement(f *oracle.Finding, txn, n int) *oracle.Statement {
	for i := range f.Transactions[txn].Statements {
		if s := &f.Transactions[txn].Statements[i]; s.N == n && n != 0 {
			return s
		}
	}
	return nil
}
