// Package mysql is the dialect of the MySQL family: it says how a statement is sent to MariaDB, MySQL or TiDB so that
// its answer and the session's log tell which row versions it read and wrote (package rewrite).
//
// The watched tables carry two hidden columns (AddColumns): wc_row_id, which is unique and never changes, and wc_writers,
// which names the last writers (see log.go). A SELECT gets one more column per table; INSERT gives the new row the
// session's stamp; UPDATE and ON DUPLICATE KEY UPDATE put the stamp into rows that really change, and with DELETE append
// what they replaced to the user variable @wc_log. DISTINCT, groups and set operations append what they read
// (condition.go). What cannot be seen exactly, or not without the client noticing, is left as it is, and Plan.Why says
// why.
//
// TiDB has no invisible columns, and other rules for UPDATE: see veil.go and tidb.go.
//
// # What the catalog must be right about
//
// An INSERT without a list of columns gets one, as an invisible column can only be named, so the catalog must know the
// order of the columns. Columns that were added, dropped or renamed behind our back make the server refuse the text
// before anything is done (Refused). But if another client reorders the columns of a table past the proxy (ALTER TABLE ...
// MODIFY ... AFTER, their number staying the same), such an INSERT puts values into the wrong columns until the table
// is asked for again. Through the proxy this cannot happen: DDL makes the catalog stale.
//
// The statement could check the order itself, by (SELECT a='1' AND b='2' FROM (SELECT * FROM t WHERE 0 UNION ALL SELECT
// '1','2') d): the columns of d have t's names and the places of the literals, and t cannot change while the statement
// runs. That takes 130 to 180 microseconds more, where the INSERT takes 45 to 75, and 270 to 580 if t has a TEXT (MariaDB
// 10.11.19, measured); it needs the table twice, which LOCK TABLES refuses. A question asked before the INSERT would cost
// a round trip, and answer for the past. So nothing checks it: an administrator who reorders columns does so through the
// proxy, or restarts it.
package mysql

import (
	"errors"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	describe "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// Flavor is a product of the family.
type Flavor = describe.Flavor

// The flavors.
const (
	MariaDB = describe.MariaDB
	MySQL   = describe.MySQL
	TiDB    = describe.TiDB
)

// FlavorOf tells the product by its version string.
func FlavorOf(version string) Flavor { return describe.FlavorOf(version) }

const (
	columnRowID   = rewrite.ColumnRowID
	columnWriters = rewrite.ColumnWriters
)

// Limits of the cache: texts that are longer are analysed each time.
const (
	cacheSize     = 16 << 20 // bytes of texts
	cacheTextSize = 16 << 10
)

// Rewriter makes Scripts. It may be used by many goroutines.
type Rewriter struct {
	flavor  Flavor
	capture rewrite.Capture
	parser  *mysqlsyntax.Parser
	cache   *rewrite.Cache[key, entry]
	wanted  rewrite.Wanted
}

type key struct {
	sql      string // a text, or a shape
	shape    bool
	catalog  *rewrite.Catalog
	session  Session
	prepared bool
}

// entry is what is kept of a text or a shape.
type entry struct {
	script   *rewrite.Script
	template *template // of a shape
	uses     []rewrite.Use
}

// New makes a Rewriter. CaptureAuto and CaptureColumns are the same here; with CaptureNative nothing is rewritten.
func New(flavor Flavor, capture rewrite.Capture) *Rewriter {
	return &Rewriter{flavor: flavor, capture: capture, parser: mysqlsyntax.NewParser(), cache: rewrite.NewCache[key, entry](cacheSize)}
}

// Script analyses the text of a COM_QUERY. catalog may be nil: then nothing is rewritten. The Script is shared and must
// not be changed.
func (r *Rewriter) Script(sql string, catalog *rewrite.Catalog, s Session) *rewrite.Script {
	return r.cached(key{sql: sql, catalog: catalog, session: s})
}

// Prepare analyses the text of a COM_STMT_PREPARE: the Script has one Plan (or is empty), and the parameters keep their number and order.
func (r *Rewriter) Prepare(sql string, catalog *rewrite.Catalog, s Session) *rewrite.Script {
	s.MultiStatements = false
	return r.cached(key{sql: sql, catalog: catalog, session: s, prepared: true})
}

func (r *Rewriter) cached(k key) *rewrite.Script {
	if len(k.sql) > cacheTextSize {
		return r.script(k)
	}
	kept := k // a plan is the same whether what it rests on may be stale or not
	kept.session.Stale = false
	if e, ok := r.cache.Get(kept); ok && k.catalog.Current(e.script.Uses, k.session.Stale) {
		return e.script
	}
	if !k.prepared {
		if m, ok := shape(k.sql, k.session.Mode); ok {
			return r.shaped(k, m)
		}
	}
	script := r.script(k)
	if len(script.Missing) == 0 {
		r.cache.Put(kept, entry{script: script}, len(k.sql)+script.Size())
	}
	return script
}

// shaped makes the script of a text from that of another text of its shape, if there was one.
func (r *Rewriter) shaped(k key, m mold) *rewrite.Script {
	s := k
	s.sql, s.shape, s.session.Stale = m.shape, true, false
	if e, ok := r.cache.Get(s); ok && k.catalog.Current(e.uses, k.session.Stale) {
		if e.template != nil {
			return e.template.fill(k.sql, m)
		}
		return r.script(k) // the shape is known not to do
	}
	script := r.script(k)
	if len(script.Missing) > 0 {
		return script
	}
	e := entry{template: templateOf(script, m), uses: script.Uses}
	if script.Whole || r.flavor == TiDB && e.template != nil && script.Plans[0].Verb == "update" { // stampChanged repeats literals
		e.template = nil
	}
	r.cache.Put(s, e, len(s.sql)+script.Size())
	return script
}

// script analyses the whole text.
func (r *Rewriter) script(k key) (script *rewrite.Script) {
	r.wanted.Plan(func() { script = r.analysed(k) })
	return script
}

func (r *Rewriter) analysed(k key) *rewrite.Script {
	t, err := mysqlsyntax.LexFew(k.sql, k.session.Mode)
	var large *statement.TooLarge
	if errors.As(err, &large) {
		return unread(k, large)
	}
	if err != nil || k.session.Mode&mysqlsyntax.Foreign != 0 && strings.Contains(k.sql, ";") {
		return unparsed(k.sql, "the text cannot be read")
	}
	parts := t.Statements()
	if len(parts) > 1 && !k.session.MultiStatements {
		return unparsed(k.sql, "several statements where one is allowed") // the server's error
	}
	if r.flavor != TiDB && t.EmptyStatement() { // the others refuse it and all that follows
		return unparsed(k.sql, "an empty statement in front of another one")
	}
	script := &rewrite.Script{SQL: k.sql}
	for i, part := range parts {
		if mysqlsyntax.Compound(part) && !mysqlsyntax.Simple(part) {
			if i == 0 && len(parts) == 1 {
				break
			}
			return unparsed(k.sql, "a compound statement")
		}
	}
	view := k.catalog.View(k.session.Stale)
	if len(parts) > 1 && strings.Contains(strings.ToLower(k.sql), "group_concat_max_len") { // what it is for the later statements
		k.session.GroupConcat = 0
	}
	var edits []rewrite.Edit
	var changed []string
	defines := false
	for _, part := range parts {
		at := &scene{r: r, text: part, base: part.Tokens[0].Start, catalog: view, session: k.session, several: len(parts) > 1, changed: changed, prepared: k.prepared}
		st := &planner{draft{judge: judge{scene: at}, plan: &rewrite.Plan{}}}
		if st.analyse(); defines && st.plan.Coverage != history.CoverageNone {
			st.opaque("the same text defines a routine, a trigger or an event")
		}
		defines = defines || mysqlsyntax.Compound(part)
		if !part.Is(0, "TRUNCATE") {
			changed = append(changed, st.plan.Changes...)
		}
		st.plan.Bare = at.bare
		edits = append(edits, st.plan.Edits...)
		script.Plans, script.Whole = append(script.Plans, st.plan), script.Whole || st.copies
	}
	script.SQL, script.Uses, script.Missing = rewrite.Apply(k.sql, edits), view.Uses, view.Missing
	if len(script.Plans) > 1 {
		for _, p := range script.Plans {
			p.Edits = edits
		}
	}
	return script
}

func unparsed(sql, why string) *rewrite.Script {
	return &rewrite.Script{SQL: sql, Unparsed: true, Plans: []*rewrite.Plan{{
		Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why,
		Schema: true, Diagnostics: diagnostics(sql), Control: statement.Control{Verb: statement.ControlReset},
	}}}
}

// Unread is the script of a text that is not to be parsed, for the reason why.
func Unread(sql string, s Session, why string) *rewrite.Script {
	return unread(key{sql: sql, session: s}, errors.New(why))
}

// unread is for a text that is too large to be parsed. Where it is one statement, its first word tells whether it can do more than work on rows.
func unread(k key, why error) *rewrite.Script {
	script := unparsed(k.sql, why.Error())
	word, _, _ := strings.Cut(strings.TrimSpace(k.sql), " ")
	switch word = strings.ToLower(word); word {
	case "select", "insert", "update", "delete", "replace":
		if p := script.Plans[0]; !k.session.MultiStatements {
			p.Verb, p.Schema, p.Control = word, false, statement.Control{}
		}
	}
	return script
}

// refusals are the errors that a server raises while it parses a text or resolves its names, before it executes anything.
var refusals = strings.Fields("1046 1051 1052 1054 1055 1056 1057 1058 1059 1060 1064 1066 1100 1102 1103 1104 1109 1110 1111 1115 1116 1117 " +
	"1120 1128 1136 1140 1142 1143 1146 1149 1176 1191 1221 1222 1235 1241 1247 1248 1250 1253 1267 1270 1271 1305 1318 1327 1356 " +
	"1393 1394 1395 1415 1463 1582 1583 1584 1630 1735 1747 3029 3065 3579 3593 " +
	"4002 4003 4004 4005 4006 4007 4008 4009 4010 4012 4014 4015 4016 4017 4018 4019 4020 4021 4022 4074 4078 4079 4100")

// Refused reports whether a server's error in answer to a text of ours says that nothing was executed, so that the client's
// own text can be sent: its error, or its answer if ours did not fit the tables any more, is what the client gets.
func Refused(code, message string) bool {
	return slices.Contains(refusals, code) || code == "1364" && namesColumns(message)
}

// namesColumns reports whether a message names the hidden columns.
func namesColumns(message string) bool {
	return strings.Contains(message, columnRowID) || strings.Contains(message, columnWriters)
}

// Shown is Refused where the client's own text may show the hidden columns, because they are ordinary ones: only what
// certainly is an error again is sent again.
func Shown(code, message string) bool {
	return code == "1064" || Refused(code, message) && namesColumns(message)
}
