package pgwire

import (
	"encoding/binary"
	"slices"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// A cursor that a Query declared may have hidden columns. Each FETCH of it has them, whatever text that is, and the server tells them by their names.
// So what is remembered of cursors need not be exact: an entry may stay behind a cursor that is gone. A cursor is a portal, which messages of the protocol
// may describe and execute.

// cursor is what a DECLARE that succeeded made.
type cursor struct {
	declared *rewrite.Cursor
	ticket   *record.Ticket // of the DECLARE; nil: it was not recorded
	seq      uint64
}

// maxCursors is how many cursors of a session are remembered.
const maxCursors = 10_000

// followCursor follows what a statement that succeeded did to cursors. mu is held.
func followCursor(p *pipeline, e *entry, tag string) {
	n := &p.names
	if tag == "DISCARD ALL" || tag == "CLOSE CURSOR ALL" {
		clear(n.cursors)
	}
	plan := e.current()
	if plan == nil || plan.Cursor == nil {
		return
	}
	switch c := plan.Cursor; {
	case c.Does == rewrite.CursorClose && tag == "CLOSE CURSOR":
		delete(n.cursors, c.Name)
	case c.Does == rewrite.CursorDeclare && c.Rows == nil:
		delete(n.cursors, c.Name)
	case c.Does == rewrite.CursorDeclare:
		made := &cursor{declared: c, seq: e.seq}
		if e.next < len(e.tickets) {
			made.ticket = e.tickets[e.next]
		}
		if n.cursors[c.Name] = made; len(n.cursors) >= maxCursors {
			p.stop("it has more cursors than are remembered")
		}
	}
}

// fetched finds the cursor from which a statement fetches, as far as answers have shown. mu is held.
func (n *names) fetched(plan *rewrite.Plan) *cursor {
	if plan == nil || plan.Cursor == nil || plan.Cursor.Does != rewrite.CursorFetch {
		return nil
	}
	return n.cursors[plan.Cursor.Name]
}

// cursor finds a cursor by its name as a portal's, which it is, too.
func (n *names) cursor(portal string) *cursor {
	if portal == "" {
		return nil
	}
	return n.cursors[portal]
}

// rows gives the plan of rows that are fetched by a message of the protocol, before the answer shows of which transaction they are.
func (c *cursor) rows() *rewrite.Plan {
	if !c.declared.Hold && c.ticket != nil {
		return c.declared.Rows
	}
	hide := *c.declared.Rows
	hide.Coverage, hide.WithRows, hide.Why, hide.Decode = history.CoverageOpaque, "", "the cursor's rows do not tell their versions", unreadCells
	return &hide
}

// fetching finds the cursor with hidden columns whose rows a RowDescription describes. Where it is not certain that it is the one that the statement
// names, the columns are taken away and not read.
func fetching(p *pipeline, e *entry, description []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := e.current()
	if c := p.names.fetched(plan); c != nil && c.hiddenIn(description) && e.next < len(e.tickets) && p.events.fetches(e.tickets[e.next], c) {
		e.rows = c.declared.Rows
		return
	}
	for _, c := range p.names.cursors {
		if c.hiddenIn(description) {
			hide := rewrite.Plan{Hidden: c.declared.Rows.Hidden, Decode: unreadCells}
			if plan != nil {
				hide.Text, hide.Verb, hide.Coverage, hide.Why = plan.Text, plan.Verb, plan.Coverage, plan.Why
			}
			e.rows = &hide
			return
		}
	}
}

// cursorRows gives the plan of the rows of the cursor that a portal is; nil: it is none.
func cursorRows(p *pipeline, portal string) *rewrite.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.names.cursor(portal); c != nil {
		return c.rows()
	}
	return nil
}

// hasCursors reports whether cursors may have hidden columns.
func hasCursors(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.names.cursors) > 0
}

// hiddenIn reports whether a RowDescription ends with the cursor's hidden columns.
func (c *cursor) hiddenIn(description []byte) bool {
	if len(description) < 2 {
		return false
	}
	names, rest := c.declared.Hidden, description[2:]
	for i, all := 0, int(binary.BigEndian.Uint16(description)); i < all; i++ {
		name, tail, ok := text(rest)
		if !ok || len(tail) < fieldTail {
			return false
		}
		if k := i - (all - len(names)); k >= 0 && (name != names[k] || binary.BigEndian.Uint32(tail[6:]) != oidText) {
			return false
		}
		rest = tail[fieldTail:]
	}
	return int(binary.BigEndian.Uint16(description)) >= len(names)
}

// fetch relays the RowDescription of an answer that may come from a cursor.
func (a *serverHalf) fetch(f frame, e *entry) error {
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	fetching(a.pipeline, e, body)
	a.pipeline.begin(e)
	if e.rows == nil {
		if err := a.release(); err != nil {
			return err
		}
		return a.out.message('T', body)
	}
	return a.described(body, e.rows, e)
}

// fetches reports whether a statement is a FETCH.
func (p *prepared) fetches() bool {
	plan := p.plan()
	return plan != nil && plan.Cursor != nil && plan.Cursor.Does == rewrite.CursorFetch
}

// awaitPortal waits until it is known whether a portal is a cursor.
func awaitPortal(c *clientHalf, name string) error {
	if name == "" || c.pipeline.portal(name) != nil {
		return nil
	}
	return awaitCursors(c)
}

// awaitCursors waits until it is known which cursors there are.
func awaitCursors(c *clientHalf) error {
	_, err := awaitQueue(c, c.pipeline.queue.declaresNothing)
	return err
}

// declaresNothing reports whether no cursor with hidden columns is being declared. Only a Query does that, which the server answers without a Sync.
func (q *queue) declaresNothing() bool {
	return !slices.ContainsFunc(q.items, func(e *entry) bool {
		return e.request == simpleQuery && slices.ContainsFunc(e.script.Plans, func(p *rewrite.Plan) bool { return p.Cursor != nil && p.Cursor.Rows != nil })
	})
}

// fetchScript makes the script of a FETCH by the protocol: the server describes it when it is prepared, by the cursor that there is.
func fetchScript(p *pipeline, s *rewrite.Script) *rewrite.Script {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := *s.Plans[0]
	plan.Hidden, plan.Decode = 0, nil
	if c := p.names.fetched(&plan); c != nil {
		plan.Hidden, plan.Decode = c.declared.Rows.Hidden, unreadCells
	}
	return &rewrite.Script{SQL: s.SQL, Plans: []*rewrite.Plan{&plan}, Uses: s.Uses}
}

// fetchAgain sees to it that the Bind of a FETCH fits the cursor that there is now. The server refuses a statement whose columns are not those that it
// was prepared with; it must not do so for the hidden ones.
func fetchAgain(c *clientHalf, p *prepared) (*prepared, error) {
	if err := awaitCursors(c); err != nil || c.pipeline.failed() {
		return p, err
	}
	script := fetchScript(c.pipeline, p.script)
	if script.Plans[0].Hidden == p.plan().Hidden {
		return p, nil
	}
	return c.prepareAgain(p, p.catalog, script)
}

// unreadCells is the Decode function of hidden columns that are not read.
func unreadCells(list []history.Access, _ [][]byte) ([]history.Access, error) { return list, nil }
