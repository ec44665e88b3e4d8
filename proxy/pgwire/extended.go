package pgwire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// noName is a name that no statement or portal has.
const noName = "\x00"

// parse relays a Parse.
func (c *clientHalf) parse(f frame) error {
	if !holds(c, f) {
		if err := c.refresh(""); err != nil {
			return err
		}
		begin, err := c.peek(f.size)
		if err != nil {
			return err
		}
		name, _, _ := text(begin)
		c.sendParse(&prepared{name: name, script: opaque("", tooLong)}, true)
		return c.forward(f)
	}
	body, err := c.in.body(f.size)
	if err != nil {
		return err
	}
	name, rest, ok := text(body)
	sql, tail, ok2 := text(rest)
	if err := c.refresh(sql); err != nil {
		return err
	}
	if !ok || !ok2 {
		c.sendParse(&prepared{name: name, script: opaque("", malformed)}, true)
		return c.out.message('P', body)
	}
	own, question := asked(c, sql)
	if question != nil {
		sql, body = own, slices.Concat([]byte(name+"\x00"+own+"\x00"), tail)
	}
	p, remembered, err := c.plan(name, sql)
	if err != nil {
		return err
	}
	if p.fetches() {
		if err := awaitCursors(c); err != nil {
			return err
		}
		p.script = fetchScript(c.pipeline, p.script)
	}
	if _, err := c.executedBySQL(sql); err != nil {
		return err
	}
	p.question = question
	if p.again() || p.fetches() || p.plan() != nil && len(p.plan().Asks) > 0 {
		p.tail = slices.Clone(tail)
	}
	c.sendParse(p, remembered)
	if !p.script.Changed(sql) {
		return c.out.message('P', body)
	}
	return c.writeParse(p, tail)
}

// plan plans a statement that is prepared. What cannot be remembered is not changed.
func (c *clientHalf) plan(name, sql string) (p *prepared, remembered bool, err error) {
	if !c.pipeline.remembers(name, sql, c.session.Config.Limits.Prepared) {
		_, facts := c.environment.known(c.plain)
		return &prepared{name: name, client: sql, script: c.statementPlan(sql, nil, facts, false)}, false, nil
	}
	p = &prepared{name: name, client: sql, firm: firm(c, name), seen: c.session.observer.describes(sql), generation: c.session.observer.rewriter.Generation()}
	if steady(c.pipeline) {
		p.zone = c.environment.zone()
	}
	p.script, p.catalog, err = c.completeStatement(sql, p.firm, name == "", p.zone != 0)
	p.uses = p.script.Uses
	return p, true, err
}

// statementPlan plans a single statement. utc says that the time zone is UTC when the server reads the constants: now, and those of Bind and those of a
// stale plan later, see zoned.
func (c *clientHalf) statementPlan(sql string, catalog *rewrite.Catalog, facts postgres.Session, utc bool) *rewrite.Script {
	facts.UTC = utc
	return c.planned(sql, func(r *postgres.Rewriter) *rewrite.Script { return r.Statement(sql, catalog, facts) })
}

// zoned is the plan of p for the session's time zone when a Bind is sent.
func zoned(c *clientHalf, p *prepared) *rewrite.Plan {
	plan := p.plan()
	if plan == nil || len(plan.Asks) == 0 || p.zone == 0 || p.zone == c.environment.zone() && steady(c.pipeline) {
		return plan
	}
	catalog, facts := c.environment.known(c.plain)
	facts.Firm = p.firm
	if s := c.statementPlan(p.client, catalog, facts, false); s.SQL == p.script.SQL && len(s.Plans) == 1 {
		return s.Plans[0]
	}
	q := *plan
	q.Asks, q.Predicate, q.Unread = nil, true, "its plan may be older than the session's time zone"
	return &q
}

func (c *clientHalf) completeStatement(sql string, firm, hold, utc bool) (*rewrite.Script, *rewrite.Catalog, error) {
	return c.complete(firm, hold, func(catalog *rewrite.Catalog, facts postgres.Session) *rewrite.Script {
		return c.statementPlan(sql, catalog, facts, utc)
	})
}

func (c *clientHalf) writeParse(p *prepared, tail []byte) error {
	if err := c.out.header('P', len(p.name)+1+len(p.script.SQL)+1+len(tail)); err != nil {
		return err
	}
	if err := c.writeString(p.name); err != nil {
		return err
	}
	if err := c.writeString(p.script.SQL); err != nil {
		return err
	}
	_, err := c.out.Write(tail)
	return err
}

// sendParse queues a Parse.
func (c *clientHalf) sendParse(p *prepared, remembered bool) {
	e := &entry{request: parse, client: p.client, script: p.script, name: p.name, at: c.batch.at}
	if remembered {
		e.stmt = p
	}
	if c.pipeline.send(e) && p.name != "" && p.extended() {
		c.named++
	}
}

// statement finds the prepared statement that a name means. If that depends on an answer, it waits for it.
func (c *clientHalf) statement(name string) (*prepared, error) {
	p, awaited := c.pipeline.statement(name)
	if awaited == nil {
		return p, nil
	}
	if err := c.out.flush(); err != nil {
		return nil, err
	}
	if err := c.pipeline.await(func() bool { return awaited.resolved }); err != nil {
		return nil, err
	}
	p, _ = c.pipeline.statement(name)
	return p, nil
}

// bind relays a Bind.
func (c *clientHalf) bind(f frame) error {
	if err := c.refresh(""); err != nil {
		return err
	}
	begin, err := c.peek(f.size)
	if err != nil {
		return err
	}
	portalName, rest, ok := text(begin)
	name, _, ok2 := text(rest)
	if !ok || !ok2 {
		c.pipeline.send(&entry{request: bind, name: noName})
		return c.forward(f)
	}
	p, err := c.statement(name)
	if err != nil {
		return err
	}
	switch {
	case p.fetches():
		p, err = fetchAgain(c, p)
	case p.extended():
		p, err = c.upToDate(p, f.size)
	case p.again():
		p, err = answerAgain(c, p, begin)
	}
	if err != nil {
		return err
	}
	given := p.bind(begin, f.size)
	e := &entry{request: bind, name: portalName, stmt: p, plan: boundPlan(c, p, given), at: c.batch.at}
	if p != nil {
		e.client, e.script = p.client, p.script
		if p.seen != nil {
			e.bound = given
		}
	}
	if c.pipeline.send(e) && portalName != "" && p.extended() {
		c.named++
	}
	if !p.extended() || f.size > c.session.Config.Limits.Text {
		return c.forward(f)
	}
	if !holds(c, f) {
		return spoolBind(c, f, p.plan())
	}
	body, err := c.in.body(f.size)
	if err != nil {
		return err
	}
	return c.writeBind(body, p.plan())
}

// writeBind writes a Bind of a statement with hidden columns. The client's format codes are for the columns that it knows of; ours are text.
func (c *clientHalf) writeBind(body []byte, plan *rewrite.Plan) error {
	at, n := resultFormats(body)
	pieces := [][]byte{body}
	switch {
	case n == 0:
	case plan.NoRows: // the client knows of no columns, so its codes mean nothing
		pieces = [][]byte{body[:at], {0, 0}}
	case n == 1:
	default:
		pieces = [][]byte{body[:at], binary.BigEndian.AppendUint16(nil, uint16(n+plan.Hidden)), body[at+2:], make([]byte, 2*plan.Hidden)}
	}
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if err := c.out.header('B', size); err != nil {
		return err
	}
	for _, p := range pieces {
		if _, err := c.out.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// resultFormats finds the result format codes of a Bind: where their number stands, and the number. It is 0 if the
// message is malformed, which the server will say.
func resultFormats(b []byte) (at, n int) {
	pos := 0
	for range 2 { // portal and statement
		i := bytes.IndexByte(b[pos:], 0)
		if i < 0 {
			return 0, 0
		}
		pos += i + 1
	}
	short := func() (int, bool) {
		if pos+2 > len(b) {
			return 0, false
		}
		v := int(binary.BigEndian.Uint16(b[pos:]))
		pos += 2
		return v, true
	}
	codes, ok := short()
	if !ok {
		return 0, 0
	}
	pos += 2 * codes
	params, ok := short()
	if !ok {
		return 0, 0
	}
	for range params {
		if pos+4 > len(b) {
			return 0, 0
		}
		size := int32(binary.BigEndian.Uint32(b[pos:]))
		pos += 4
		if size > 0 {
			if int(size) > len(b)-pos {
				return 0, 0
			}
			pos += int(size)
		}
	}
	at = pos
	if n, ok = short(); !ok || pos+2*n != len(b) {
		return 0, 0
	}
	return at, n
}

// upToDate sees to it that the Bind of a statement with hidden columns can be handled, and that what is read in them fits the schema.
//
// The server keeps the statement up to date itself, and says so if its columns are no longer the same ("cached plan must not change result type",
// which clients that cache statements wait for). So it is prepared again only if they certainly are. Else what is hidden is not read any more.
func (c *clientHalf) upToDate(p *prepared, size int) (*prepared, error) {
	catalog, _ := c.environment.known(c.plain)
	generation := c.session.observer.rewriter.Generation()
	switch {
	case c.pipeline.failed(): // nothing can be prepared, and nothing is executed
		return p, nil
	case size > c.session.Config.Limits.Text:
		return c.prepareAgain(p, nil, opaque(p.client, "its parameters are longer than the limit for statements"))
	case p.gone || c.plain:
	case catalog != nil && catalog == p.catalog && catalog.Current(p.script.Uses, false) && generation == p.generation, !c.pipeline.observed():
		return p, nil
	}
	script, catalog, err := c.completeStatement(p.client, p.firm, false, p.zone != 0)
	if err != nil {
		return nil, err
	}
	if p.gone || c.plain {
		return c.prepareAgain(p, catalog, script)
	}
	q := *p
	q.script, q.catalog, q.generation = script, catalog, generation
	if catalog != nil {
		q.moved, q.uses = p.moved || !postgres.SameColumns(p.uses, script.Uses), script.Uses
	}
	if script.SQL != p.script.SQL {
		if catalog != nil && !q.moved {
			return c.prepareAgain(p, catalog, script)
		}
		q.script = unread(p.script, script.Uses)
	}
	c.pipeline.replace(p, &q)
	return &q, nil
}

// unread makes the script of a statement whose hidden columns are not read any more.
func unread(s *rewrite.Script, uses []rewrite.Use) *rewrite.Script {
	plan := *s.Plans[0]
	plan.Coverage, plan.WithRows, plan.Why = history.CoverageOpaque, "", "the schema changed since it was prepared"
	plan.Decode = unreadCells
	return &rewrite.Script{SQL: s.SQL, Plans: []*rewrite.Plan{&plan}, Uses: uses}
}

// prepareAgain prepares a statement once more, with another plan. The client does not see it. It waits for a DEALLOCATE that was sent, which
// may have dropped the statement.
func (c *clientHalf) prepareAgain(p *prepared, catalog *rewrite.Catalog, script *rewrite.Script) (*prepared, error) {
	if !c.plain && p.name != "" { // what is sent again has nothing unanswered before it
		waited, err := awaitQueue(c, c.pipeline.queue.dropsNothing)
		if now, _ := c.pipeline.statement(p.name); err != nil || waited && now != p {
			return p, err
		}
	}
	seen := c.session.observer.describes(p.client)
	if seen != nil && p.seen != nil && !p.moved && postgres.SameColumns(p.uses, script.Uses) {
		seen = p.seen // the client will not have it described again
	}
	q := &prepared{name: p.name, client: p.client, firm: p.firm, question: p.question, zone: p.zone, script: script, tail: p.tail, catalog: catalog, uses: script.Uses, seen: seen, generation: c.session.observer.rewriter.Generation()}
	if script.Unparsed { // the text is the client's, but not its analysis
		plan := *script.Plans[0]
		plan.Text = p.client
		q.script = &rewrite.Script{SQL: p.client, Plans: []*rewrite.Plan{&plan}}
	}
	if !c.pipeline.sendAgain(p, q) {
		return p, nil
	}
	if p.name != "" {
		if err := c.out.message('C', append(append([]byte{'S'}, p.name...), 0)); err != nil {
			return nil, err
		}
	}
	return q, c.writeParse(q, q.tail)
}

// describe relays a Describe.
func (c *clientHalf) describe(f frame) error {
	begin, err := c.peek(f.size)
	if err != nil {
		return err
	}
	e := &entry{request: describe}
	if name, _, ok := text(begin[min(1, len(begin)):]); ok {
		if e.stmt, e.plan, err = c.described(begin[0], name); err != nil {
			return err
		}
		if e.stmt != nil && begin[0] == 'S' { // the server may analyse its text again
			e.client, e.script, e.at = e.stmt.client, e.stmt.script, -1
		}
	}
	c.pipeline.send(e)
	return c.forward(f)
}

// described is the statement, and its plan, behind a name of a statement ('S') or portal ('P').
func (c *clientHalf) described(kind byte, name string) (*prepared, *rewrite.Plan, error) {
	if kind == 'S' {
		p, err := c.statement(name)
		return p, p.plan(), err
	}
	if err := awaitPortal(c, name); err != nil {
		return nil, nil, err
	}
	if p := c.pipeline.portal(name); p != nil {
		return p.stmt, p.plan, nil
	}
	return nil, cursorRows(c.pipeline, name), nil
}

// execute relays an Execute.
func (c *clientHalf) execute(f frame) error {
	begin, err := c.peek(f.size)
	if err != nil {
		return err
	}
	name, rest, ok := text(begin)
	if !ok {
		name = noName
	}
	if err := awaitPortal(c, name); err != nil {
		return err
	}
	e := &entry{request: execute, name: name}
	failed := refusing(c.pipeline) // the server says so before it looks at the portal
	c.send(e)
	if failed || e.plan == nil || !e.plan.NoRows || len(rest) != 4 || f.size != len(begin) {
		return c.forward(f)
	}
	body := []byte(missingPortal + "\x00\x00\x00\x00\x00")
	if !e.spent {
		// The client expects no rows, so its limit means nothing; with one the server would stop in between.
		body = slices.Clone(begin)
		clear(body[len(body)-4:])
	} // Of a spent portal the server would say that there is nothing left of what was added; so it gets one that it refuses.
	if err := c.in.skip(f.size); err != nil {
		return err
	}
	return c.out.message('E', body)
}

// missingPortal is a name that no portal has.
const missingPortal = "wirecheck: no such portal"

// close relays a Close.
func (c *clientHalf) close(f frame) error {
	begin, err := c.peek(f.size)
	if err != nil {
		return err
	}
	e := &entry{request: closing}
	if name, _, ok := text(begin[min(1, len(begin)):]); ok {
		e.kind, e.name = begin[0], name
	}
	c.pipeline.send(e)
	return c.forward(f)
}
