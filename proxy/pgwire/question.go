package pgwire

import (
	"strings"

	"wirecheck/proxy/record"
)

// answered gives a SELECT for a text that asks wirecheck something, and every other text as it is. The server executes the SELECT in its place: in a
// failed transaction it refuses it, in a pipeline it answers in turn. A schema of the server's that is named wirecheck keeps its functions.
func answered(c *clientHalf, sql string) string {
	q, schema, ok := record.AskedOf(sql)
	if !ok || c.plain {
		return sql
	}
	c.environment.mu.Lock()
	free, ascii := c.environment.nameFree, !strings.EqualFold(c.environment.facts.Encoding, "UTF8")
	c.environment.mu.Unlock()
	if schema && !free {
		return sql
	}
	if t := ask(c.pipeline, q); t != nil {
		return t.PostgreSQL(ascii || c.session.parameters["server_encoding"] != "UTF8")
	}
	return sql
}

// ask answers a question; nil: nobody does.
func ask(p *pipeline, q record.Question) (t *record.Table) {
	p.mu.Lock()
	tracker := p.events.tracker
	p.mu.Unlock()
	if tracker == nil {
		return nil
	}
	p.guard(func() { t = tracker.Ask(q) })
	return t
}
