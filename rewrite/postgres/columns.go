package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// Capture by columns. wc_row_id names a row for as long as it lives. wc_writers is "<count>:<writers>": how many writes
// there were, and the last three writers, "12:x731,x748,x750". A writer is named by the server's own id of its
// transaction (pg_current_xact_id(), which never comes again in one cluster), so nothing has to be set in the session:
// the column's default stamps what is inserted, whoever inserts it, and an assignment added to the SET list stamps what
// is updated. The first write of a row that has only the stamp it got with the column, "0:", leaves an empty name in
// front: "1:,x731", while an inserted row begins with "1:x731".
//
// PostgreSQL has no invisible columns, so the text is changed twice: concealer writes out what would show them, then
// the versions are added as they are for native capture.

// StampDefault is the expression that stamps a row that is inserted.
const StampDefault = "'1:x' || pg_catalog.pg_current_xact_id()"

// StampUnknown is the stamp of a row that was not written since it has the column.
const StampUnknown = "0:"

// nextStamp gives the expression of the stamp that follows the one in a column.
func nextStamp(column string) string {
	return fmt.Sprintf("pg_catalog.concat(coalesce(pg_catalog.substring(%[1]s, '^([0-9]{1,18}):'), '0')::pg_catalog.int8 + 1, ':', "+
		"pg_catalog.substring(%[1]s, '(?:[^:,]*,)?[^:,]*$'), ',x', pg_catalog.pg_current_xact_id())", column)
}

// Hides reports whether tables have columns that show where a statement is planned without a catalog.
func (r *Rewriter) Hides() bool { return r.capture == rewrite.CaptureColumns }

// makeColumns understands a text as make does, with hidden columns in the tables.
func (r *Rewriter) makeColumns(sql string, c *rewrite.View, s Session, single bool) (sc *rewrite.Script, spans []rewrite.Literal, adds []string) {
	defer func() {
		if p := recover(); p != nil { // as in makeNative
			sc, spans, adds = unparsed(sql, "it could not be understood"), nil, nil
		}
	}()
	first, spans, edits, whys, ok := conceal(sql, c, s, single)
	if !ok {
		return r.makeNative(sql, c, s, single)
	}
	sc, moved, adds := r.makeNative(first, c, s, single)
	if sc.Unparsed || len(sc.Plans) != len(spans) {
		return unparsed(sql, "it could not be understood"), nil, nil
	}
	var second []rewrite.Edit
	for _, p := range sc.Plans {
		second = p.Edits
	}
	all := compose(sql, edits, second)
	for i, p := range sc.Plans {
		p.Text = sql[spans[i].At:spans[i].End]
		p.Edits = all
		if len(whys[i]) == 0 {
			continue
		}
		p.WithRows = ""
		if p.Coverage == history.CoverageExact {
			p.Coverage = history.CoverageApproximate
		} else if p.Coverage == history.CoverageNone {
			p.Coverage = history.CoverageOpaque
		}
		if p.Why != "" {
			p.Why += "; "
		}
		p.Why += strings.Join(whys[i], "; ")
	}
	if got := rewrite.Apply(sql, all); got != sc.SQL {
		return unparsed(sql, "it could not be changed safely"), nil, nil
	}
	if moved == nil {
		spans = nil
	}
	return sc, spans, composed(all, edits, second, adds)
}

// hiddenColumns are the types of the hidden columns.
var hiddenColumns = map[string]string{rewrite.ColumnRowID: "uuid", rewrite.ColumnWriters: "text"}

// instrumented reports whether a table has both hidden columns.
func instrumented(rel *rewrite.Relation) bool {
	n := 0
	for _, a := range rel.Columns {
		if a.Hidden {
			n++
		}
	}
	return n == len(hiddenColumns) && (rel.Kind == "table" || rel.Kind == "partitioned")
}

// readable reports whether a text can be given to the parser.
func readable(sql string, s Session) bool {
	return len(sql) <= pgsyntax.MaxText && strings.IndexByte(sql, 0) < 0 && utf8.ValidString(sql) && (s.utf8() || ascii(sql)) &&
		!(s.Backslashes && strings.IndexByte(sql, '\\') >= 0)
}

// conceal changes a text so that the hidden columns do not show, and proves it: what the server reads in the new text
// is the client's tree with the same changes. ok is false if the text is not understood.
func conceal(sql string, c *rewrite.View, s Session, single bool) (text string, spans []rewrite.Literal, edits []rewrite.Edit, whys [][]string, ok bool) {
	if !c.Usable() || !readable(sql, s) {
		return "", nil, nil, nil, false
	}
	tree, err := pgsyntax.Parse(sql)
	if err != nil || single && len(tree.Stmts) > 1 {
		return "", nil, nil, nil, false
	}
	original := proto.Clone(tree).(*pg.ParseResult)
	scan := scanner(sql)
	for i, raw := range tree.Stmts {
		from, to := pgsyntax.Bounds(sql, raw)
		spans = append(spans, trim(sql, from, to))
		k := newConcealer(&scene{sql: sql, from: from, to: to, catalog: c, session: s, scan: scan})
		k.asks = slices.ContainsFunc(tree.Stmts, func(raw *pg.RawStmt) bool { return k.content(raw.Stmt).asks })
		switch raw.Stmt.Node.(type) {
		case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_ExplainStmt,
			*pg.Node_PrepareStmt, *pg.Node_DeclareCursorStmt, *pg.Node_CopyStmt:
			k.node(raw.Stmt, nil)
		default: // nothing can be stored that is of type record
			k.node(raw.Stmt, &scope{})
		}
		slices.SortStableFunc(k.edits, func(a, b rewrite.Edit) int { return a.At - b.At })
		if names := changes(raw.Stmt); len(names) > 0 { // what follows in the text may mean another table
			if !s.Temp {
				s.Temp, s.TempNames = true, []string{}
			}
			if s.TempNames != nil {
				s.TempNames = append(slices.Clip(s.TempNames), names...)
			}
		}
		if k.err != nil || overlap(k.edits) || !reads(sql, k.edits, tree, original, i) {
			k.edits = nil
			k.shows("its text could not be changed safely")
			tree.Stmts[i].Stmt = proto.Clone(original.Stmts[i].Stmt).(*pg.Node)
		}
		edits = append(edits, k.edits...)
		whys = append(whys, k.whys)
	}
	return rewrite.Apply(sql, edits), spans, edits, whys, true
}

// changes gives the names of tables that a statement makes or changes.
func changes(n *pg.Node) (names []string) {
	add := func(rv *pg.RangeVar) {
		if rv != nil {
			names = append(names, rv.Relname)
		}
	}
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		add(firstArm(s.SelectStmt).GetIntoClause().GetRel())
	case *pg.Node_CreateStmt:
		add(s.CreateStmt.Relation)
	case *pg.Node_CreateTableAsStmt:
		add(s.CreateTableAsStmt.Into.GetRel())
	case *pg.Node_ViewStmt:
		add(s.ViewStmt.View)
	case *pg.Node_AlterTableStmt:
		add(s.AlterTableStmt.Relation)
	case *pg.Node_RenameStmt:
		add(s.RenameStmt.Relation)
		names = append(names, s.RenameStmt.Newname)
	case *pg.Node_DropStmt:
		for _, o := range s.DropStmt.Objects {
			names = append(names, pgsyntax.LastName(o.GetList().GetItems()))
		}
	}
	return names
}

// reads reports whether the server reads statement i of the changed tree in the changed text.
func reads(sql string, edits []rewrite.Edit, changed, original *pg.ParseResult, i int) bool {
	if len(edits) == 0 {
		return pgsyntax.Same(changed.Stmts[i].Stmt, original.Stmts[i].Stmt)
	}
	tree, err := pgsyntax.Parse(rewrite.Apply(sql, edits))
	return err == nil && len(tree.Stmts) == len(changed.Stmts) &&
		pgsyntax.Same(tree.Stmts[i].Stmt, changed.Stmts[i].Stmt)
}

func overlap(edits []rewrite.Edit) bool {
	end := 0
	for _, e := range edits {
		if e.At < end {
			return true
		}
		end = e.At + e.Cut
	}
	return false
}

// scanner gives the tokens of a text, which it makes when they are needed.
func scanner(sql string) func() ([]*pg.ScanToken, error) {
	var toks []*pg.ScanToken
	return func() ([]*pg.ScanToken, error) {
		if toks != nil {
			return toks, nil
		}
		var err error
		toks, err = pgsyntax.Tokens(sql)
		return toks, err
	}
}

// composed gives the added texts of composed edits for the template of other texts of this shape, or nothing if they have
// copies of the client's text, whose places are those of the text in between.
func composed(all, first, second []rewrite.Edit, adds []string) []string {
	if len(first) == 0 {
		return adds
	}
	for i, e := range second {
		if adds[i] != e.Add {
			return nil
		}
	}
	var out []string
	for _, e := range all {
		out = append(out, e.Add)
	}
	return out
}

// compose gives the edits that do at once what first does to sql and second to the result.
func compose(sql string, first, second []rewrite.Edit) []rewrite.Edit {
	if len(first) == 0 {
		return second
	}
	if len(second) == 0 {
		return first
	}
	var out []rewrite.Edit
	put := func(e rewrite.Edit) {
		if n := len(out) - 1; n >= 0 && out[n].At+out[n].Cut == e.At {
			out[n].Cut += e.Cut
			out[n].Add += e.Add
			return
		}
		out = append(out, e)
	}
	// mid is a place in the text between the two, skip how much of what comes next in it second cuts away.
	mid, skip := 0, 0
	// pass goes over one piece of the middle text, which is sql from at on, or was added there.
	pass := func(piece string, at int, added bool) {
		place := func(i int) int {
			if added {
				return at
			}
			return at + i
		}
		done := 0
		copied := func(to int) {
			if added && to > done {
				put(rewrite.Edit{At: at, Add: piece[done:to]})
			}
			done = to
		}
		cut := func() {
			n := min(skip, len(piece)-done)
			if n > 0 && !added {
				put(rewrite.Edit{At: at + done, Cut: n})
			}
			done, skip = done+n, skip-n
		}
		cut()
		for len(second) > 0 && second[0].At < mid+len(piece) {
			e := second[0]
			second = second[1:]
			copied(e.At - mid)
			put(rewrite.Edit{At: place(done), Add: e.Add})
			skip = e.Cut
			cut()
		}
		copied(len(piece))
		mid += len(piece)
	}
	at := 0
	for _, e := range first {
		pass(sql[at:e.At], at, false)
		put(rewrite.Edit{At: e.At, Cut: e.Cut})
		at = e.At + e.Cut
		pass(e.Add, at, true)
	}
	pass(sql[at:], at, false)
	for _, e := range second { // at the very end
		put(rewrite.Edit{At: len(sql), Add: e.Add})
	}
	return slices.DeleteFunc(out, func(e rewrite.Edit) bool { return e.Cut == 0 && e.Add == "" })
}

// columnVersion gives the expressions that name a row version by the hidden columns.
func (x *instrumentation) columnVersion(s source, p *part) string {
	name := func(c string) string {
		if s.cols[c] != "" {
			c = s.cols[c]
		}
		return pgsyntax.Quote(s.ref) + "." + pgsyntax.Quote(c)
	}
	p.columns = true
	list := pgsyntax.Quote(s.ref) + ".tableoid, " + name(rewrite.ColumnRowID) + ", " + name(rewrite.ColumnWriters)
	if p.op.Writes() {
		list = "pg_catalog.pg_current_xact_id(), " + list
	}
	if key, hex := x.key(s); key != "" { // people know the row by it
		p.key, p.hex, p.cols = true, hex, keyed(s.rel)
		list += ", " + key
	}
	return list
}

// stamps is a value of wc_writers.
type stamps struct {
	count uint64
	last  []string // the last writers, the very last one at the end; "" is one that is not known
}

func parseStamps(b string) (stamps, error) {
	count, tail, ok := strings.Cut(b, ":")
	n, err := strconv.ParseUint(count, 10, 62)
	if !ok || err != nil {
		return stamps{}, fmt.Errorf("%w: %q is no value of %s", errHidden, b, rewrite.ColumnWriters)
	}
	return stamps{n, strings.Split(tail, ",")}, nil
}

// writer is the last writer but i.
func (s stamps) writer(i int) string {
	if i >= len(s.last) {
		return ""
	}
	return s.last[len(s.last)-1-i]
}

// version names the version before which i writes were undone.
func (s stamps) version(i uint64) string {
	return strconv.FormatUint(s.count-i, 10) + ":" + s.writer(int(i))
}

// order is the version's place: history.OrderInitial for a row that was not written since it has the columns.
func (s stamps) order() uint64 { return s.count + 1 }

// columnAccess reads what columnVersion asked for. ok is false if there is no row.
func (p *part) columnAccess(text []byte) (a history.Access, ok bool, err error) {
	own := ""
	if p.op.Writes() {
		var f []byte
		f, text = cut(text)
		own = "x" + string(f)
	}
	if len(text) == 0 { // the null side of an outer join
		return a, false, nil
	}
	oidText, rest := cut(text)
	id, rest := cut(rest)
	writers, key := cut(rest)
	if len(id) != 36 || !strings.Contains(string(writers), ":") {
		// A hidden column is NULL: the row was put in by something that knows nothing of it.
		return a, false, rewrite.ErrPartial
	}
	oid, err := strconv.ParseUint(string(oidText), 10, 32)
	if err != nil {
		return a, false, fmt.Errorf("%w: %w", errHidden, err)
	}
	if a.Row.Table, err = p.relation(uint32(oid)); err != nil {
		return a, false, err
	}
	if p.key {
		name := string(key)
		if p.hex {
			if name, err = unhex(key); err != nil {
				return a, false, err
			}
		}
		a.Name = rowName(p.cols, name)
	}
	s, err := parseStamps(string(writers))
	if err != nil {
		return a, false, err
	}
	a.Row.Key, a.Op = string(id), p.op
	switch p.op {
	case history.OpDelete:
		a.Prev, a.PrevWriter, a.PrevOrder = s.version(0), s.writer(0), s.order()
		a.Writer, a.Order = own, s.order()+1
		return a, true, nil
	case history.OpInsert, history.OpUpdate:
		if s.writer(0) != own || s.count == 0 {
			return a, false, rewrite.ErrPartial // a trigger has the last word, or it was not stamped
		}
		if a.Op = history.OpInsert; len(s.last) > 1 {
			a.Op = history.OpUpdate
			a.Prev, a.PrevWriter, a.PrevOrder = s.version(1), s.writer(1), s.order()-1
		}
	}
	a.Version, a.Writer, a.Order = s.version(0), s.writer(0), s.order()
	return a, true, nil
}
