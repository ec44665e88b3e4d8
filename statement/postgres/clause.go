package postgres

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// The clauses of a statement are found by their keywords, which are reserved (manual, appendix C), outside of parentheses. That
// they are what they seem is proven by parsing a query made of them: its clauses must be the statement's own.

// phrase is a run of tokens with the text they stand in.
type phrase struct {
	sql  string
	toks []*pg.ScanToken
}

func (p phrase) empty() bool { return len(p.toks) == 0 }

func (p phrase) text() string {
	if p.empty() {
		return ""
	}
	return p.sql[p.toks[0].Start:p.end()]
}

// end is the place behind the last token.
func (p phrase) end() int { return int(p.toks[len(p.toks)-1].End) }

func (p phrase) slice(i, j int) phrase {
	return phrase{p.sql, p.toks[min(i, len(p.toks)):max(min(i, len(p.toks)), min(j, len(p.toks)))]}
}

func (p phrase) is(i int, t pg.Token) bool { return i >= 0 && i < len(p.toks) && p.toks[i].Token == t }

// at gives the token that begins at a place, or -1.
func (p phrase) at(place int32) int {
	return slices.IndexFunc(p.toks, func(t *pg.ScanToken) bool { return t.Start == place })
}

// find gives the first token from i on, outside of parentheses and brackets, for which ok holds; len if there is none.
func (p phrase) find(i int, ok func(i int) bool) int {
	depth := 0
	for ; i < len(p.toks); i++ {
		switch p.toks[i].Token {
		case pgsyntax.TokenClose, pgsyntax.TokenUnbracket:
			depth--
		}
		if depth == 0 && ok(i) {
			return i
		}
		switch p.toks[i].Token {
		case pgsyntax.TokenOpen, pgsyntax.TokenBracket:
			depth++
		}
	}
	return len(p.toks)
}

// closing gives the parenthesis that closes the one at i.
func (p phrase) closing(i int) int {
	return p.find(i, func(j int) bool { return j > i && p.is(j, pgsyntax.TokenClose) })
}

// unwrap takes the parentheses around a phrase away.
func (p phrase) unwrap() phrase {
	i, j := 0, len(p.toks)
	for p.is(i, pgsyntax.TokenOpen) {
		i++
	}
	for j > i && p.is(j-1, pgsyntax.TokenClose) {
		j--
	}
	depth, layers := i, min(i, len(p.toks)-j)
	for _, t := range p.toks[i:j] {
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
			layers = min(layers, depth)
		}
	}
	return p.slice(layers, len(p.toks)-layers)
}

// keyword reports whether token i is a keyword that begins a clause, and not a label, a field or a part of an operator.
func (p phrase) keyword(i int, words map[pg.Token]bool) bool {
	return words[p.toks[i].Token] && (i == 0 || pgsyntax.BeginsClause(p.toks, i))
}

// split cuts at commas.
func (p phrase) split() (parts []phrase) {
	for i := 0; i < len(p.toks); {
		j := p.find(i, func(j int) bool { return p.is(j, pgsyntax.TokenComma) })
		parts = append(parts, p.slice(i, j))
		i = j + 1
	}
	return parts
}

// clause is one clause with its keyword.
type clause struct {
	word pg.Token
	phrase
}

// clauses cuts at the words, of which each but the repeated ones counts once. What stands before the first one is left out.
func (p phrase) clauses(words map[pg.Token]bool) (list []clause) {
	seen := map[pg.Token]bool{}
	next := func(i int) int {
		return p.find(i, func(j int) bool { return p.keyword(j, words) && !seen[p.toks[j].Token] })
	}
	for i := next(0); i < len(p.toks); {
		word := p.toks[i].Token
		seen[word] = word != pg.Token_FOR // of which there may be several
		j := next(i + 1)
		list = append(list, clause{word, p.slice(i, j)})
		i = j
	}
	return list
}

// describer fills the clauses of one statement in.
type describer struct {
	st   *statement.Statement
	node *pg.Node
	phrase
}

// verbs are the words with which a statement begins behind WITH.
var verbs = map[pg.Token]bool{
	pg.Token_SELECT: true, pg.Token_VALUES: true, pg.Token_TABLE: true, pg.Token_INSERT: true, pg.Token_UPDATE: true, pg.Token_DELETE_P: true,
	pg.Token_MERGE: true,
}

// body takes parentheses around a query and WITH away.
func (d *describer) body() phrase {
	p := d.phrase.unwrap()
	if !p.is(0, pg.Token_WITH) {
		return p
	}
	i := p.find(1, func(i int) bool {
		return p.is(i-1, pgsyntax.TokenClose) && (verbs[p.toks[i].Token] || p.is(i, pgsyntax.TokenOpen)) && !p.is(i+1, pg.Token_AS)
	})
	d.st.Clauses.With = p.slice(0, i).text()
	return p.slice(i, len(p.toks))
}

func (d *describer) selectStmt(s *pg.SelectStmt) {
	st := d.st
	d.locking(s)
	aggregate, window, strange := calls(s)
	st.SetOperation = s.Op != pg.SetOperation_SETOP_NONE
	st.Aggregate = aggregate || len(s.GroupClause) > 0 || s.HavingClause != nil
	st.Distinct, st.Window = len(s.DistinctClause) > 0, window
	st.Limit = s.LimitCount != nil || s.LimitOffset != nil
	for _, item := range s.TargetList {
		name := ""
		if fields := item.GetResTarget().GetVal().GetColumnRef().GetFields(); len(fields) > 0 {
			if name = fields[len(fields)-1].GetString_().GetSval(); fields[len(fields)-1].GetAStar() != nil {
				name = "*"
			}
		}
		st.Columns = append(st.Columns, name)
	}
	if len(s.FromClause) == 1 {
		if from := s.FromClause[0].GetRangeVar(); from != nil {
			for column := range pgsyntax.Fixed(s.WhereClause, cmp.Or(from.GetAlias().GetAliasname(), from.Relname)) {
				st.Fix(column, false)
			}
		}
	}
	p := d.body()
	if p.is(0, pg.Token_TABLE) {
		d.fill(append([]clause{{pg.Token_FROM, p.slice(0, 2)}}, p.slice(2, len(p.toks)).clauses(pgsyntax.AfterTargets)...))
	} else if p.is(0, pg.Token_SELECT) && !st.SetOperation {
		d.fill(p.clauses(pgsyntax.AfterTargets))
	}
	switch {
	case st.SetOperation:
		d.st.Unaddressed("a set operation")
	case st.Aggregate:
		d.st.Unaddressed("groups")
	case len(s.FromClause) == 0:
		d.st.Unaddressed("no tables")
	case strange != "":
		d.st.Unaddressed("function " + strange + " may be an aggregate or return a set")
	case st.Distinct && (st.Limit || s.DistinctClause[0].GetNode() != nil):
		d.st.Unaddressed("DISTINCT that chooses rows")
	case len(s.WindowClause) > 0 && st.Limit:
		d.st.Unaddressed("a window's name that ORDER BY may use")
	}
	switch {
	case !st.Limit && (len(s.DistinctClause) > 0 || len(s.WindowClause) > 0 || labelled(s)):
		st.Addressing.Unorder = true
	case st.Limit && labelled(s):
		d.st.Unaddressed("ORDER BY names the select list")
	}
	d.prove(&pg.SelectStmt{
		FromClause: s.FromClause, WhereClause: s.WhereClause, GroupClause: s.GroupClause, GroupDistinct: s.GroupDistinct, HavingClause: s.HavingClause,
		WindowClause: s.WindowClause, SortClause: s.SortClause, LimitCount: s.LimitCount, LimitOffset: s.LimitOffset, LimitOption: s.LimitOption,
		WithClause: s.WithClause, Op: pg.SetOperation_SETOP_NONE,
	}, st.SetOperation || len(s.ValuesLists) > 0)
}

// fill puts the clauses of a SELECT in their places.
func (d *describer) fill(list []clause) {
	c := &d.st.Clauses
	for _, l := range list {
		rest := l.slice(1, len(l.toks)).text()
		two := l.slice(2, len(l.toks)).text()
		switch l.word {
		case pg.Token_FROM:
			c.From = rest
		case pg.Token_WHERE:
			c.Where = rest
		case pg.Token_GROUP_P:
			c.GroupBy = two
		case pg.Token_HAVING:
			c.Having = rest
		case pg.Token_WINDOW:
			c.Window = rest
		case pg.Token_ORDER:
			c.OrderBy = two
		case pg.Token_LIMIT, pg.Token_OFFSET, pg.Token_FETCH:
			c.Limit = strings.TrimLeft(c.Limit+" "+l.text(), " ")
		}
	}
}

// prove compares what the clauses mean with what the statement's do. If they differ, there are none.
func (d *describer) prove(want *pg.SelectStmt, none bool) {
	c := &d.st.Clauses
	if writes(want.WithClause) {
		d.st.Unaddressed("a common table expression that writes")
	}
	tree, err := pgsyntax.Parse(c.Query(""))
	if !none && err == nil && len(tree.Stmts) == 1 {
		if got := tree.Stmts[0].Stmt.GetSelectStmt(); got != nil && pgsyntax.Same(got, want) {
			return
		}
	}
	*c = statement.Clauses{}
	d.st.Unaddressed("its clauses are not certain")
}

// writes reports whether a WITH clause changes tables.
func writes(w *pg.WithClause) bool {
	found := false
	pgsyntax.Walk(w, func(m proto.Message) bool {
		switch m.(type) {
		case *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
			found = true
		}
		return !found
	})
	return found
}

// labelled reports whether ORDER BY may mean a column of the select list rather than of a table: by a number or a name (manual,
// SELECT, "ORDER BY Clause").
func labelled(s *pg.SelectStmt) bool {
	names, unknown := map[string]bool{}, false
	for _, t := range s.TargetList {
		r := t.GetResTarget()
		switch v := r.GetVal().GetNode().(type) {
		case *pg.Node_ColumnRef:
			if r.Name == "" && (len(v.ColumnRef.Fields) == 1 || len(s.FromClause) == 1 && s.FromClause[0].GetRangeVar() != nil) {
				continue // the column itself
			}
			names[pgsyntax.LastName(v.ColumnRef.Fields)] = r.Name == ""
		case *pg.Node_FuncCall: // its result has the function's name
			names[pgsyntax.LastName(v.FuncCall.Funcname)] = true
		case *pg.Node_AExpr, *pg.Node_AConst, *pg.Node_BoolExpr, *pg.Node_NullTest, *pg.Node_ParamRef: // these have no name
		default:
			unknown = unknown || r.Name == ""
		}
		names[r.Name] = true
	}
	for _, n := range s.SortClause {
		e := n.GetSortBy().GetNode()
		if e.GetAConst() != nil {
			return true
		}
		if r := e.GetColumnRef(); r != nil && len(r.Fields) == 1 && (unknown || names[pgsyntax.LastName(r.Fields)]) {
			return true
		}
	}
	return false
}

// locking describes FOR UPDATE and the like.
func (d *describer) locking(s *pg.SelectStmt) {
	l := &d.st.Locking
	all := false
	for _, n := range s.LockingClause {
		c := n.GetLockingClause()
		if k := strengths[c.Strength]; k.Stronger(l.Lock) {
			l.Lock = k
		}
		l.NoWait = l.NoWait || c.WaitPolicy == pg.LockWaitPolicy_LockWaitError
		l.SkipLocked = l.SkipLocked || c.WaitPolicy == pg.LockWaitPolicy_LockWaitSkip
		all = all || len(c.LockedRels) == 0
		for _, r := range c.LockedRels {
			l.Of = append(l.Of, r.GetRangeVar().GetRelname())
		}
	}
	if all {
		l.Of = nil
	}
}

var updateWords = map[pg.Token]bool{pg.Token_UPDATE: true, pg.Token_SET: true, pg.Token_FROM: true, pg.Token_WHERE: true, pg.Token_RETURNING: true}

func (d *describer) updateStmt(s *pg.UpdateStmt) {
	st := d.st
	st.Returning = len(s.ReturningList) > 0
	for _, l := range d.body().clauses(updateWords) {
		rest := l.slice(1, len(l.toks))
		switch l.word {
		case pg.Token_UPDATE:
			st.Clauses.From = rest.text()
		case pg.Token_SET:
			st.Assignments, st.AssignAt = assignments(rest, s.TargetList)
		case pg.Token_FROM:
			st.Clauses.From += ", " + rest.text()
		case pg.Token_WHERE:
			st.Clauses.Where = rest.text()
		}
	}
	d.changed(s.Relation, s.FromClause, s.WhereClause, s.WithClause)
}

var deleteWords = map[pg.Token]bool{pg.Token_FROM: true, pg.Token_USING: true, pg.Token_WHERE: true, pg.Token_RETURNING: true}

func (d *describer) deleteStmt(s *pg.DeleteStmt) {
	st := d.st
	st.Returning = len(s.ReturningList) > 0
	for _, l := range d.body().clauses(deleteWords) {
		rest := l.slice(1, len(l.toks)).text()
		switch l.word {
		case pg.Token_FROM:
			st.Clauses.From = rest
		case pg.Token_USING:
			st.Clauses.From += ", " + rest
		case pg.Token_WHERE:
			st.Clauses.Where = rest
		}
	}
	d.changed(s.Relation, s.UsingClause, s.WhereClause, s.WithClause)
}

// changed proves the clauses of UPDATE and DELETE.
func (d *describer) changed(target *pg.RangeVar, from []*pg.Node, where *pg.Node, with *pg.WithClause) {
	if where.GetCurrentOfExpr() != nil {
		d.st.Unaddressed("the row of a cursor")
	}
	d.prove(&pg.SelectStmt{
		FromClause: append([]*pg.Node{pgsyntax.TableNode(target)}, from...), WhereClause: where, WithClause: with,
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}, where.GetCurrentOfExpr() != nil)
}

// assignments reads what stands behind SET. They are nil, and the place 0, if they are not certain.
func assignments(p phrase, targets []*pg.Node) (list []statement.Assignment, end int) {
	n := 0
	take := func(expr phrase, partial bool) bool {
		if n >= len(targets) || expr.empty() {
			return false
		}
		t := targets[n].GetResTarget()
		list = append(list, statement.Assignment{Column: t.GetName(), Expr: expr.text(), At: int(expr.toks[0].Start), Partial: partial || len(t.GetIndirection()) > 0})
		n++
		return true
	}
	for _, one := range p.split() {
		i := one.find(0, func(i int) bool { return one.is(i, pgsyntax.TokenEquals) })
		columns := 1
		if one.is(0, pgsyntax.TokenOpen) { // (a, b) = ...
			columns = len(one.slice(1, one.closing(0)).split())
		}
		for range columns {
			if !take(one.slice(i+1, len(one.toks)), one.is(0, pgsyntax.TokenOpen)) {
				return nil, 0
			}
		}
	}
	if n != len(targets) || n == 0 {
		return nil, 0
	}
	return list, p.end()
}

var insertWords = map[pg.Token]bool{pg.Token_RETURNING: true}

func (d *describer) insertStmt(s *pg.InsertStmt) {
	st := d.st
	in := &statement.Insert{Conflict: s.OnConflictClause != nil, Defaults: s.SelectStmt == nil}
	st.Insert, st.Returning = in, len(s.ReturningList) > 0
	d.st.Unaddressed("an INSERT")
	p := d.body()
	if end := p.find(1, func(i int) bool { return st.Returning && p.keyword(i, insertWords) }); end < len(p.toks) {
		p = p.slice(0, end)
	}
	if c := s.OnConflictClause; c != nil {
		i := p.at(c.Location)
		if i < 0 {
			return
		}
		d.conflict(in, c, p.slice(i, len(p.toks)))
		p = p.slice(0, i)
	}
	i := p.at(s.Relation.Location)
	if i < 0 {
		return
	}
	// [database.][schema.]table [AS alias] [(columns)]
	for i++; p.is(i, pgsyntax.TokenDot); i += 2 {
	}
	if p.is(i, pg.Token_AS) {
		i += 2
	}
	if len(s.Cols) > 0 {
		if !p.is(i, pgsyntax.TokenOpen) {
			return
		}
		end := p.closing(i)
		for _, c := range s.Cols {
			in.Columns = append(in.Columns, c.GetResTarget().GetName())
		}
		in.ColumnAt = int(p.toks[end-1].End)
		i = end + 1
	} else if s.SelectStmt != nil {
		in.NewListAt = int(p.toks[i-1].End)
	}
	if p.is(i, pg.Token_OVERRIDING) {
		i += 3
	}
	if s.SelectStmt != nil {
		d.rows(in, s.SelectStmt.GetSelectStmt(), p.slice(i, len(p.toks)))
	}
}

// rows describes where an INSERT has its rows from.
func (d *describer) rows(in *statement.Insert, s *pg.SelectStmt, p phrase) {
	if !p.is(0, pg.Token_VALUES) || len(s.SortClause) > 0 || s.LimitCount != nil || s.LimitOffset != nil || s.Op != pg.SetOperation_SETOP_NONE {
		in.Select = p.text()
		return
	}
	for _, row := range p.slice(1, len(p.toks)).split() {
		var values []string
		at := 0
		for _, v := range row.slice(1, len(row.toks)-1).split() {
			values = append(values, v.text())
			at = v.end()
		}
		in.Rows, in.RowAt = append(in.Rows, values), append(in.RowAt, at)
	}
	if len(in.Rows) != len(s.ValuesLists) {
		in.Rows, in.RowAt = nil, nil
		in.Select = p.text()
	}
}

func (d *describer) conflict(in *statement.Insert, c *pg.OnConflictClause, p phrase) {
	in.Nothing = c.Action == pg.OnConflictAction_ONCONFLICT_NOTHING
	words := map[pg.Token]bool{pg.Token_SET: true, pg.Token_WHERE: true}
	// ON CONFLICT [(...) [WHERE ...]] DO UPDATE SET ... [WHERE ...]
	do := p.find(0, func(i int) bool { return p.is(i, pg.Token_DO) })
	for _, l := range p.slice(do, len(p.toks)).clauses(words) {
		if l.word == pg.Token_SET {
			in.Updates, in.UpdateAt = assignments(l.slice(1, len(l.toks)), c.TargetList)
		}
	}
}
