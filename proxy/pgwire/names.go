package pgwire

import (
	"cmp"
	"slices"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// prepared is a prepared statement.
type prepared struct {
	name   string
	client string // the client's text
	// question is what the text asked wirecheck; client is the answer then, as a SELECT.
	question *record.Question
	script   *rewrite.Script
	tail     []byte           // of its Parse message: the types of its parameters
	catalog  *rewrite.Catalog // with which it was planned; nil: none
	uses     []rewrite.Use    // what its names meant when they were known last
	firm     bool             // it was planned so that the server cannot refuse what was added
	moved    bool             // the columns of its tables may have changed since it was prepared
	seq      uint64
	batch    uint64 // number of the Sync before which it was sent
	parsing  *entry // its Parse; nil if it was made without one
	zone     uint64 // environment.zone when it was sent, if it was planned for UTC; 0: it was not
	gone     bool   // the server does not have it any more: it refused to prepare it again
	// generation is the rewriter's before the statement was planned.
	generation uint64
	seen       *described // nil: requests are not told apart
	size       int        // of the room that it takes while it has a name, roughly, in bytes
}

// plan is the plan of the statement, nil if it is empty.
func (p *prepared) plan() *rewrite.Plan {
	if p == nil || len(p.script.Plans) == 0 {
		return nil
	}
	return p.script.Plans[0]
}

// extended reports whether the statement's answer has hidden columns.
func (p *prepared) extended() bool {
	plan := p.plan()
	return plan != nil && plan.Hidden > 0
}

// again reports whether the statement may have to be prepared again for a Bind.
func (p *prepared) again() bool { return p.extended() || p != nil && p.question != nil }

// portal is a statement bound to its parameters.
type portal struct {
	stmt   *prepared
	plan   *rewrite.Plan
	bound  *bound
	seq    uint64
	looked uint64 // tick before its Bind was sent
	first  *entry // the Execute that opened it
	run    bool   // it was executed, and its statement returns no rows: it cannot be executed again
}

// undo takes back what a message would have done to a name if the server had not refused or ignored it.
type undo struct {
	kind byte // 'S', 'P' or 0
	name string
	stmt *prepared // what the name stood for before, may be nil
	port *portal
}

// names says what each name of a prepared statement or portal will mean to the server when it has read all that was sent. A name means the new
// statement at once, since the client may use it without waiting; an error takes that back.
type names struct {
	statements map[string]*prepared
	texts      record.Share // of the statements
	portals    map[string]*portal
	cursors    map[string]*cursor // by DECLARE; some may be closed
}

const (
	maxPortals    = 10_000 // of one transaction
	statementSize = 512    // roughly the room that a statement takes besides its text
)

func newNames() names {
	return names{statements: make(map[string]*prepared), portals: make(map[string]*portal), cursors: make(map[string]*cursor)}
}

// set makes a name mean a statement, or none.
func (n *names) set(name string, p *prepared) {
	if old := n.statements[name]; old != nil {
		n.texts.Add(-old.size)
		delete(n.statements, name)
	}
	if p != nil {
		p.size = statementSize + len(p.client) + p.script.Size()
		n.texts.Add(p.size)
		n.statements[name] = p
	}
}

// takes reports whether one more statement can be remembered; limit bounds their number.
func (n *names) takes(name, sql string, limit int) bool {
	return (n.statements[name] != nil || len(n.statements) < limit) && n.texts.Takes(statementSize+len(sql))
}

// sent does what a message does to the names.
func (n *names) sent(e *entry) {
	switch e.request {
	case simpleQuery: // whatever it is, it drops the unnamed statement and portal (exec_simple_query, src/backend/tcop/postgres.c)
		e.undo = undo{kind: 'S', stmt: n.statements[""]}
		n.set("", nil)
		delete(n.portals, "")
	case parse:
		e.undo = undo{kind: 'S', name: e.name, stmt: n.statements[e.name]}
		n.set(e.name, e.stmt)
	case bind:
		e.undo = undo{kind: 'P', name: e.name, port: n.portals[e.name]}
		if e.plan == nil {
			delete(n.portals, e.name)
			return
		}
		if n.portals[e.name] == nil && len(n.portals) >= maxPortals && e.plan.Hidden == 0 {
			return // the session is not observed any more, see pipeline.send
		}
		n.portals[e.name] = &portal{stmt: e.stmt, plan: e.plan, bound: e.bound, seq: e.seq, looked: e.looked}
	case closing:
		e.undo = undo{kind: e.kind, name: e.name, stmt: n.statements[e.name], port: n.portals[e.name]}
		switch e.kind {
		case 'S':
			n.set(e.name, nil)
		case 'P':
			delete(n.portals, e.name)
		}
	}
}

// takeBack makes a name mean again what it meant before a message that had no effect.
func (n *names) takeBack(e *entry) {
	if p := n.portals[e.name]; e.request == execute && p != nil && p.first == e { // it is not opened yet
		p.first, p.run = nil, false
	}
	switch u := e.undo; u.kind {
	case 'S':
		if now := n.statements[u.name]; now != nil && now.seq > e.seq {
			return
		}
		n.set(u.name, u.stmt)
	case 'P':
		if now := n.portals[u.name]; now != nil && now.seq > e.seq {
			return
		}
		if u.port == nil {
			delete(n.portals, u.name)
		} else {
			n.portals[u.name] = u.port
		}
	}
}

// executed fills in what the portal of an Execute is known to be.
func (n *names) executed(e *entry) {
	p := n.portals[e.name]
	if p == nil {
		if c := n.cursor(e.name); c != nil {
			e.plan, e.fetched = c.rows(), c
		}
		return
	}
	e.plan, e.client, e.script, e.bound, e.spent, e.looked = p.plan, p.stmt.client, p.stmt.script, p.bound, p.run, p.looked
	p.run = p.plan.NoRows
	if c := n.fetched(e.plan); c != nil && e.plan.Hidden == c.declared.Rows.Hidden {
		e.plan, e.fetched = c.rows(), c
	}
	if e.first = p.first; e.first == nil {
		p.first = e
	}
}

// deallocated drops the statements sent before an SQL command that drops one or all of them. It reports whether it was one.
func (n *names) deallocated(tag string, plan *rewrite.Plan, seq uint64) bool {
	if tag == "DEALLOCATE" && plan != nil {
		if p := n.statements[plan.Deallocates]; p != nil && plan.Deallocates != "" && p.seq < seq {
			n.set(plan.Deallocates, nil)
		}
	}
	if tag != "DEALLOCATE ALL" && tag != "DISCARD ALL" {
		return tag == "DEALLOCATE"
	}
	for name, p := range n.statements {
		if p.seq < seq {
			n.set(name, nil)
		}
	}
	return true
}

// transactionEnded drops the portals bound before the end of a transaction: they end with it.
func (n *names) transactionEnded(seq uint64) {
	for name, p := range n.portals {
		if p.seq < seq {
			delete(n.portals, name)
		}
	}
	for name, c := range n.cursors {
		if c.seq < seq && !c.declared.Hold {
			delete(n.cursors, name)
		}
	}
}

// hiddenPortal finds a named portal with hidden columns that a text may mention.
func (n *names) hiddenPortal(sql string) *rewrite.Plan {
	for name, p := range n.portals {
		if name != "" && p.plan.Hidden > 0 && word(sql, name) {
			return p.plan
		}
	}
	return nil
}

// hiddenStatements finds the named statements with hidden columns that a text may mention, oldest first.
func (n *names) hiddenStatements(sql string) []*prepared {
	var found []*prepared
	for name, p := range n.statements {
		if name != "" && p.extended() && word(sql, name) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *prepared) int { return cmp.Compare(a.seq, b.seq) })
	return found
}
