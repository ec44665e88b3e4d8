package pgwire

import (
	"bytes"
	"context"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// clientHalf reads the client of an observed session and relays its requests. One goroutine runs it, and only it writes to the server.
type clientHalf struct {
	session     *session
	in          *reader // from the client
	out         *writer // to the server
	pipeline    *pipeline
	environment *environment

	named      int  // prepared statements and portals with a name and hidden columns, so far
	terminated bool // the client sent Terminate
	batch      *batch
	plain      bool // what is sent is sent as the client wrote it, see again
	holding    int  // bytes of the pipeline's share that the message at hand has
}

// run relays what the client sends until it sends no more. ctx ends at the latest with the server half.
func (c *clientHalf) run(ctx context.Context) error {
	c.pipeline.sending.setBusy(true)
	defer c.pipeline.sending.park(true)
	for {
		letGo(c)
		if err := c.wait(); err != nil {
			return err
		}
		f, err := c.in.header(maxMessage)
		if err != nil {
			return err
		}
		if err := c.room(f); err != nil {
			return err
		}
		if err := c.enter(ctx, f); err != nil {
			return err
		}
		if err := settleBefore(c, f); err != nil {
			return err
		}
		if err := c.batch.keep(f, c.in); err != nil {
			return err
		}
		if err := c.request(f); err != nil {
			return err
		}
	}
}

// holds reports whether the message may be held to be looked at. Most fit in the reader's buffer. A longer one is held twice, as it came and as a text,
// and not beside too many others.
func holds(c *clientHalf, f frame) bool {
	if f.size > c.session.Config.Limits.Text {
		return false
	}
	if f.size <= bufferLen {
		return true
	}
	letGo(c)
	if !hold(c.pipeline, 2*f.size, c.environment.hides) {
		return false
	}
	c.holding = 2 * f.size
	return true
}

// letGo ends what holds began.
func letGo(c *clientHalf) {
	if c.holding > 0 {
		drop(c.pipeline, c.holding)
		c.holding = 0
	}
}

// room waits with a message that will be answered while too many others are unanswered: a client that does not read its answers is not read either.
// It never waits for a server that waits for the client. The server answers whatever it reads, save for two cases. Until a Sync or Flush it may keep
// answers to the extended protocol back; so it gets a Flush, which has no answer itself. And while it copies from the client it reads Syncs and
// Flushes without an answer; a run of these takes the room of one, and anything else ends the copying.
func (c *clientHalf) room(f frame) error {
	if f.kind == 'd' {
		return nil
	}
	full, back := c.pipeline.full()
	if !full {
		return nil
	}
	return awaitAnswers(c, back, c.pipeline.queue.hasRoom)
}

// awaitAnswers waits for answers. back says that the server may hold them back until a Flush or Sync.
func awaitAnswers(c *clientHalf, back bool, done func() bool) error {
	if back {
		if err := c.out.message('H', nil); err != nil {
			return err
		}
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	return c.pipeline.await(done)
}

// awaitQueue waits until the queue is as done says, unless it is so already.
func awaitQueue(c *clientHalf, done func() bool) (waited bool, err error) {
	p := c.pipeline
	p.mu.Lock()
	is, back := done(), p.open
	p.mu.Unlock()
	if is {
		return false, nil
	}
	return true, awaitAnswers(c, back, done)
}

// request relays one message.
func (c *clientHalf) request(f frame) error {
	switch f.kind {
	case 'Q':
		return c.query(f)
	case 'P':
		return c.parse(f)
	case 'B':
		return c.bind(f)
	case 'D':
		return c.describe(f)
	case 'E':
		return c.execute(f)
	case 'C':
		return c.close(f)
	case 'S':
		c.pipeline.sync()
	case 'F':
		c.pipeline.send(&entry{request: function, plan: callPlan})
	case 'c', 'f':
		c.pipeline.copied()
	case 'X':
		c.terminated = true
	}
	return c.forward(f)
}

// callPlan stands for a FunctionCall, which has no text.
var callPlan = &rewrite.Plan{Verb: "other", Coverage: history.CoverageOpaque, Why: "a function call may read and write tables"}

// forward passes a message on as it is.
func (c *clientHalf) forward(f frame) error {
	if err := c.out.header(f.kind, f.size); err != nil {
		return err
	}
	return c.in.copyTo(c.out, f.size)
}

// peek gives the first n bytes, at most a buffer's length, of a body without consuming them.
func (c *clientHalf) peek(n int) ([]byte, error) {
	n = min(n, bufferLen)
	if err := c.in.fill(n); err != nil {
		return nil, inside(err)
	}
	return c.in.buf[c.in.r : c.in.r+n], nil
}

// text takes a string and its final zero byte off b.
func text(b []byte) (string, []byte, bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// opaque is the script of a text that is not looked at.
func opaque(sql, why string) *rewrite.Script {
	return &rewrite.Script{SQL: sql, Unparsed: true, Plans: []*rewrite.Plan{{
		Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why,
	}}}
}

const (
	tooLong   = "it is longer than the limit for statements, or too many long ones are held"
	tooMany   = "too many long texts are planned at this time"
	malformed = "malformed message"
)

// send queues a message that executes statements, and takes note of what they do to the session.
func (c *clientHalf) send(e *entry) {
	if !c.pipeline.send(e) {
		return
	}
	unparsed := e.script != nil && e.script.Unparsed
	for _, p := range e.plans(make([]*rewrite.Plan, 0, 1)) {
		c.environment.sent(p, unparsed)
	}
}

// query relays a Query.
func (c *clientHalf) query(f frame) error {
	if !holds(c, f) {
		if err := c.refresh(""); err != nil {
			return err
		}
		c.send(&entry{request: simpleQuery, script: opaque("", tooLong)})
		return c.forward(f)
	}
	body, err := c.in.body(f.size)
	if err != nil {
		return err
	}
	sql, rest, ok := text(body)
	if err := c.refresh(sql); err != nil {
		return err
	}
	if !ok || len(rest) > 0 { // the server will complain
		c.send(&entry{request: simpleQuery, script: opaque("", malformed)})
		return c.out.message('Q', body)
	}
	if own, q := asked(c, sql); q != nil && !q.Param {
		sql, body = own, []byte(own+"\x00")
	}
	quiet := settled(c.pipeline)
	script, _, err := c.complete(firm(c, ""), true, func(catalog *rewrite.Catalog, facts postgres.Session) *rewrite.Script {
		facts.UTC = facts.UTC && quiet
		return c.planned(sql, func(r *postgres.Rewriter) *rewrite.Script { return r.Script(sql, catalog, facts) })
	})
	if err != nil {
		return err
	}
	if script, err = c.fetched(script, sql); err != nil {
		return err
	}
	c.send(&entry{request: simpleQuery, client: sql, script: script, at: c.batch.at})
	if !script.Changed(sql) {
		return c.out.message('Q', body)
	}
	return c.writeQuery(script.SQL)
}

// planned is what plan makes of a text. The text of a session that is not observed any more is not looked at.
func (c *clientHalf) planned(sql string, plan func(*postgres.Rewriter) *rewrite.Script) (s *rewrite.Script) {
	if c.pipeline.observed() && !c.session.observer.recorder.Lanes().Plan(sql, c.environment.hides, func() {
		c.pipeline.guard(func() { s = plan(c.session.observer.rewriter) })
	}) {
		return opaque(sql, tooMany)
	}
	if s == nil {
		s = opaque(sql, "the session is not observed any more")
	}
	return s
}

func (c *clientHalf) writeQuery(sql string) error {
	if err := c.out.header('Q', len(sql)+1); err != nil {
		return err
	}
	return c.writeString(sql)
}

// writeString writes a string with its final zero byte.
func (c *clientHalf) writeString(s string) error {
	if _, err := c.out.Write([]byte(s)); err != nil {
		return err
	}
	_, err := c.out.Write([]byte{0})
	return err
}

// fetched sees to it that a Query that uses a protocol-level statement or portal by SQL shows nothing hidden. It gives the script that does so.
func (c *clientHalf) fetched(s *rewrite.Script, sql string) (*rewrite.Script, error) {
	if c.named == 0 {
		return s, nil
	}
	apart := between(c.pipeline)
	again, err := c.executedBySQL(sql)
	if err == nil && again && apart { // else the Query would be in the transaction that the Parse began, which has its snapshot
		err = c.put(&own{})
	}
	if err != nil {
		return nil, err
	}
	if len(s.Plans) != 1 || !word(sql, "fetch") {
		return s, nil
	}
	p := c.pipeline.hiddenPortal(sql)
	if p == nil {
		return s, nil
	}
	plan := *s.Plans[0]
	plan.Hidden, plan.NoRows, plan.Decode, plan.Lists, plan.Moments, plan.Lacking, plan.Keys, plan.Snapshot, plan.Blank = p.Hidden, p.NoRows, p.Decode, p.Lists, p.Moments, p.Lacking, p.Keys, p.Snapshot, p.Blank
	return &rewrite.Script{SQL: s.SQL, Unparsed: s.Unparsed, Plans: []*rewrite.Plan{&plan}}, nil
}

// executedBySQL finds statements that EXECUTE may run, in SQL, though they were prepared by a Parse and extended. They are
// prepared again as the client wrote them.
func (c *clientHalf) executedBySQL(sql string) (again bool, err error) {
	if c.named == 0 || !word(sql, "execute") {
		return false, nil
	}
	for _, p := range c.pipeline.hiddenStatements(sql) {
		if _, err := c.prepareAgain(p, nil, opaque(p.client, "it is executed by SQL")); err != nil {
			return again, err
		}
		again = true
	}
	return again, nil
}

// word reports whether a name may be in the text, in any case. It errs on the side of yes.
func word(text, name string) bool {
	return bytes.Contains(bytes.ToLower([]byte(text)), bytes.ToLower([]byte(name)))
}
