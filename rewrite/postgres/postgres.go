// Package postgres is the PostgreSQL dialect of package rewrite. It understands a statement with PostgreSQL's own
// grammar (libpg_query), adds text at byte offsets so that the answer tells which row versions were read and written,
// and never prints a tree. The versions are those that PostgreSQL itself keeps: tableoid, ctid and xmin (manual, 5.5).
// What it does not understand, or cannot change without the client noticing, it leaves alone and says why.
//
// # The order of rows
//
// Without ORDER BY, or among rows that it leaves equal, rows come as the plan has it, and asking for versions may change
// the plan (each seen with 15). Left as they were, by a second scan beside the client's untouched query: queries of one
// table of 500 rows or more that an index alone can answer, GROUP BY (an aggregate with DISTINCT, or many groups of
// versions, makes the server sort in place of hashing) and aggregates that show their order. Outer joins that the server
// can leave out stay left out. What is left, where no second scan is cheap: an index-only scan that becomes a bitmap or
// sequential scan in a join, with LIMIT, of a table of more than maxGroupRows rows, or below an ORDER BY with ties; and
// GROUP BY over FROM clauses with subqueries, functions or outer joins, or over large tables.
//
// # Portals
//
// A second scan puts a window function on top of the query. UPDATE ... WHERE CURRENT OF, which can name a portal of the
// extended protocol, then refuses a query with a subquery in its conditions, or that an index alone can answer, that it
// would have taken.
//
// # Capture by columns
//
// With rewrite.CaptureColumns the versions are those of the columns wc_row_id and wc_writers (columns.go), which
// PostgreSQL cannot hide: stars, TABLE, INSERT and COPY without a list of columns, NATURAL JOIN and whole rows are written
// out without them (conceal.go). A client can notice them all the same:
//
//   - in answers about columns: psql's \d, information_schema, pg_attribute, the columns' numbers in RowDescription if
//     other columns were added later, the DETAIL of a violated constraint ("Failing row contains"), sizes and plans;
//   - a whole row in the client's own select list (SELECT t FROM t) is of type record instead of the table's; whole rows
//     that are stored, passed to the user's functions or come out of a subquery keep the columns;
//   - CREATE TABLE (LIKE t) copies them, and MERGE ... INSERT without a list may put values into them;
//   - functions of the user's that return SETOF t or have SELECT * in their body, which is not rewritten (with RETURNS
//     TABLE it then even fails), and stars over a join with an alias and a list of names;
//   - where the catalog is not known: in texts that are too long, not UTF-8 or not understood, and for a table that an
//     earlier statement of the same text changes.
//
// What of this the text tells is counted: Plan.Why says "the hidden columns show".
//
// An UPDATE of a table with triggers or rules, which could see the stamp, or with privileges on columns, is not stamped
// and opaque. A stamp names a transaction by the id that the server gave it; these names mean nothing in another cluster
// and may come again there: after a restore, take the columns away and add them anew.
package postgres

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// Session is what must be known of a session besides the catalog. The zero value is a session of which nothing is
// known but that it has no temporary tables and speaks UTF-8.
type Session struct {
	// SearchPath holds the schemas in the order in which the server looks for names (current_schemas(true)); nil if it
	// is not known. Then an unqualified name is understood only if one schema has it.
	SearchPath []string
	// Temp says that the session may have temporary tables: they hide others of the same name. See Plan.Temp.
	Temp bool
	// TempNames are the names of these tables; nil if they are not known. Not nil, no other name is hidden.
	TempNames []string
	// Encoding is client_encoding as the server reported it; empty means UTF8.
	Encoding string
	// Backslashes says that standard_conforming_strings is off, so that a backslash in a plain literal is an escape.
	Backslashes bool
	// UTC says that TimeZone is certainly UTC when the server reads the text. A text of several statements may change that.
	UTC bool
	// Asks says that something in the database may ask for the text of the running statement, see AsksQuery.
	Asks bool
	// Orphans says that rows were perhaps written whose foreign keys nobody looked at.
	Orphans bool
	// Stale says that what was known of tables may be used although they may have changed since.
	Stale bool
	// Firm says that an error of the server would be the client's, because its own text cannot be sent in place of the changed one: see firm.go.
	Firm bool
	// Held says that Plan.Hold was executed in the open transaction, so that the tables are there and stay.
	Held bool
}

func (s Session) utf8() bool { return s.Encoding == "" || strings.EqualFold(s.Encoding, "UTF8") }

// Limits of what is worth to be understood.
const (
	maxCached = 32 << 10 // longer texts are not kept
	maxKept   = 16 << 20 // bytes of texts kept
	maxHidden = 32       // tables whose versions are added to one statement
)

// Rewriter makes plans of statements. It is safe for concurrent use.
type Rewriter struct {
	capture rewrite.Capture
	cache   *rewrite.Cache[cacheKey, *template]
	wanted  rewrite.Wanted
}

// cacheKey is what a plan depends on.
type cacheKey struct {
	sql     string // a text, or a shape
	shape   bool
	catalog *rewrite.Catalog
	facts   string
	wanted  uint64
}

// New makes a rewriter. See columns.go for what CaptureColumns does.
func New(capture rewrite.Capture) *Rewriter {
	return &Rewriter{capture: capture, cache: rewrite.NewCache[cacheKey, *template](maxKept)}
}

// Script makes the plans for the text of a simple query. c may be nil: then nothing is known of tables, and the script
// is only understood. The result is shared: it must not be changed.
func (r *Rewriter) Script(sql string, c *rewrite.Catalog, s Session) *rewrite.Script {
	return r.script(sql, c, s, false)
}

// Statement makes the plan for the text of a Parse message: one statement, which may have parameters.
func (r *Rewriter) Statement(sql string, c *rewrite.Catalog, s Session) *rewrite.Script {
	return r.script(sql, c, s, true)
}

func (r *Rewriter) script(sql string, c *rewrite.Catalog, s Session, single bool) *rewrite.Script {
	key := cacheKey{sql: sql, catalog: c, facts: s.facts(single), wanted: r.wanted.Generation()}
	if t, ok := r.cache.Get(key); ok && c.Current(t.script.Uses, s.Stale) {
		return t.script
	}
	var lits []rewrite.Literal
	ok := false
	if len(sql) <= maxCached && !s.Backslashes && (s.utf8() && utf8.ValidString(sql) || ascii(sql)) {
		if key.sql, lits, ok = shape(sql); ok {
			key.shape = true
			if t, ok := r.cache.Get(key); ok && c.Current(t.script.Uses, s.Stale) {
				return t.fill(sql, lits)
			}
		}
	}
	var (
		view  *rewrite.View
		sc    *rewrite.Script
		spans []rewrite.Literal
		adds  []string
	)
	r.wanted.Plan(func() {
		key.wanted, view = r.wanted.Generation(), c.View(s.Stale)
		if sc, spans, adds = r.make(sql, view, s, single); len(view.Missing) > 0 && view.Usable() {
			sc, spans, adds = r.make(sql, noCatalog(), s, single)
		}
	})
	sc.Missing, sc.Uses = view.Missing, view.Uses
	if len(sql) > maxCached || len(sc.Missing) > 0 && view.Usable() {
		return sc
	}
	if !ok || spans == nil || !templated(sc, sql) || len(adds) != len(sc.Plans[0].Edits) {
		key.sql, key.shape, lits = sql, false, nil
	}
	r.cache.Put(key, &template{script: sc, lits: lits, spans: spans, adds: adds}, len(key.sql)+sc.Size())
	return sc
}

func noCatalog() *rewrite.View { return (*rewrite.Catalog)(nil).View(false) }

func (s Session) facts(single bool) string {
	var b strings.Builder
	for _, f := range []bool{s.Temp, s.utf8(), s.Backslashes, s.Stale, s.Firm, s.Held, s.UTC, s.Orphans, single} {
		if f {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	for _, p := range s.SearchPath {
		b.WriteByte(0)
		b.WriteString(p)
	}
	if s.Temp && s.TempNames != nil {
		b.WriteByte(1)
		for _, n := range s.TempNames {
			b.WriteByte(0)
			b.WriteString(n)
		}
	}
	return b.String()
}

// make understands a text. Whatever goes wrong leaves it alone.
func (r *Rewriter) make(sql string, c *rewrite.View, s Session, single bool) (sc *rewrite.Script, spans []rewrite.Literal, adds []string) {
	if r.capture == rewrite.CaptureColumns {
		s.UTC = false
		return r.makeColumns(sql, c, s, single)
	}
	return r.makeNative(sql, c, s, single)
}

// makeNative understands a text that shows no hidden columns.
func (r *Rewriter) makeNative(sql string, c *rewrite.View, s Session, single bool) (sc *rewrite.Script, spans []rewrite.Literal, adds []string) {
	defer func() {
		// The parser and the tree belong to others; a statement that makes them stumble is forwarded untouched.
		if p := recover(); p != nil {
			sc, spans, adds = unparsed(sql, "it could not be understood"), nil, nil
		}
	}()
	switch {
	case strings.IndexByte(sql, 0) >= 0:
		return unparsed(sql, "it contains a zero byte"), nil, nil
	case !utf8.ValidString(sql) || !s.utf8() && !ascii(sql):
		return unparsed(sql, "its text is not in UTF-8"), nil, nil
	case s.Backslashes && strings.IndexByte(sql, '\\') >= 0:
		return unparsed(sql, "it has backslashes while standard_conforming_strings is off"), nil, nil
	}
	tree, err := pgsyntax.Parse(sql)
	if large := (*statement.TooLarge)(nil); errors.As(err, &large) {
		return unparsed(sql, large.Error()), nil, nil
	}
	if err != nil {
		return unparsed(sql, "it could not be parsed"), nil, nil
	}
	if single && len(tree.Stmts) > 1 { // the server will refuse it
		return unparsed(sql, "it has several statements"), nil, nil
	}
	s.UTC = s.UTC && len(tree.Stmts) == 1
	if !c.Usable() {
		mention(c, tree, r.capture == rewrite.CaptureColumns)
	}
	sc = &rewrite.Script{SQL: sql}
	first := c
	s.Held = s.Held && len(tree.Stmts) == 1
	s.Firm = s.Firm || len(tree.Stmts) > 1 // a statement before it may have been executed
	var edits []rewrite.Edit
	var list []*planner
	asks, whole := false, false // whole: a plan holds for this very text
	scan := scanner(sql)
	for _, raw := range tree.Stmts {
		from, to := pgsyntax.Bounds(sql, raw)
		span := trim(sql, from, to)
		spans = append(spans, span)
		x := newPlanner(&scene{sql: sql, from: from, to: to, scan: scan, catalog: c, session: s, native: r.capture != rewrite.CaptureColumns, wanted: &r.wanted})
		x.plan.Text, x.prepared = sql[span.At:span.End], single
		node := unqualified(raw.Stmt)
		x.understand(node)
		asks = asks || len(tree.Stmts) > 1 && (s.Asks || asksItself(raw.Stmt) || asksElsewhere(raw.Stmt, tree))
		if p := x.plan; p.Schema && first.Usable() && !first.EventTriggers && !asksItself(raw.Stmt) && !asksElsewhere(raw.Stmt, tree) {
			var known bool
			p.Changes, known = confined(raw.Stmt)
			p.Schema = !known || p.Temp || len(p.Changes) > 0
		}
		if x.plan.Schema || x.plan.Control.Verb == statement.ControlReset {
			c = noCatalog() // what follows in the text may mean other tables
		}
		sc.Plans = append(sc.Plans, x.plan)
		slices.SortStableFunc(x.edits, func(a, b rewrite.Edit) int { return a.At - b.At })
		edits = append(edits, x.edits...)
		list = append(list, x)
		whole = whole || x.literal || raw.Stmt.GetDeclareCursorStmt() != nil
	}
	if slices.ContainsFunc(tree.Stmts, func(raw *pg.RawStmt) bool { return numbered(raw.Stmt) }) || whole {
		spans = nil // the plan is not that of other numbers
	}
	if len(edits) == 0 {
		return sc, spans, nil
	}
	adds = make([]string, len(edits))
	for i := range edits {
		adds[i] = edits[i].Add
		edits[i].Add = resolve(adds[i], sql, func(at int) int { return at })
	}
	sent := rewrite.Apply(sql, edits)
	why := "its text could not be extended safely"
	loose := !single && strings.IndexByte(sql, '$') >= 0 && slices.ContainsFunc(tree.Stmts, loose)
	switch {
	case asks: // one of its statements, for the text of them all
		why = asksText
	case loose:
		why = "it has parameters, which the server refuses in a Query"
	}
	if asks || loose || !proven(sent, tree, list) {
		for _, p := range sc.Plans {
			if declares := p.Cursor != nil && p.Cursor.Rows != nil; p.Hidden > 0 || declares {
				p.Hidden, p.NoRows, p.Decode = 0, false, nil
				if declares {
					p.Cursor = &rewrite.Cursor{Name: p.Cursor.Name}
				}
				p.Coverage, p.WithRows, p.Why = history.CoverageOpaque, "", why
			}
		}
		return sc, spans, nil
	}
	sc.SQL = sent
	for _, p := range sc.Plans {
		p.Edits = edits
	}
	return sc, spans, adds
}

// loose reports whether a statement of a Query has parameters, which are none of a PREPARE or a function: the server says where the first one is.
func loose(raw *pg.RawStmt) bool {
	n := raw.Stmt
	return (n.GetSelectStmt() != nil || n.GetInsertStmt() != nil || n.GetUpdateStmt() != nil || n.GetDeleteStmt() != nil || n.GetDeclareCursorStmt() != nil) && hasParameter([]*pg.Node{n})
}

func unparsed(sql, why string) *rewrite.Script {
	return &rewrite.Script{SQL: sql, Unparsed: true, Plans: []*rewrite.Plan{{
		Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why,
	}}}
}

// trim leaves white space around a statement out.
func trim(sql string, from, to int) rewrite.Literal {
	text := sql[from:to]
	rest := strings.TrimLeft(text, " \t\r\n\f\v")
	at := from + len(text) - len(rest)
	return rewrite.Literal{At: at, End: at + len(strings.TrimRight(rest, " \t\r\n\f\v"))}
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
