package pgwire

import (
	"strings"

	"wirecheck/proxy/record"
)

// asked finds out whether a text asks wirecheck something. It gives the question, and a SELECT that the server executes in its place: in a failed
// transaction it refuses it, in a pipeline it answers in turn. q is nil for every other text. A schema of the server's that is named wirecheck keeps
// its functions.
func asked(c *clientHalf, sql string) (own string, q *record.Question) {
	question, ok := record.AskedOf(sql)
	if !ok || c.plain {
		return "", nil
	}
	c.environment.mu.Lock()
	free := c.environment.nameFree
	c.environment.mu.Unlock()
	if question.Explain && !free {
		return "", nil
	}
	if own = answerTo(c, question); own == "" {
		return "", nil
	}
	return own, &question
}

// answerTo is a SELECT that gives the answer to a question; empty: nobody answers.
func answerTo(c *clientHalf, q record.Question) (sql string) {
	c.environment.mu.Lock()
	ascii := !strings.EqualFold(c.environment.facts.Encoding, "UTF8") || c.session.parameters["server_encoding"] != "UTF8"
	c.environment.mu.Unlock()
	c.pipeline.mu.Lock()
	tracker := c.pipeline.events.tracker
	c.pipeline.mu.Unlock()
	if tracker == nil {
		return ""
	}
	c.pipeline.guard(func() {
		if t := tracker.Ask(q); t != nil {
			sql = t.PostgreSQL(ascii, q.Param)
		}
	})
	return sql
}

// answerAgain sees to it that a Bind, of which begin is the beginning, gets the answer of now, for the finding that its parameter names. The columns
// and the parameter stay those that the client knows.
func answerAgain(c *clientHalf, p *prepared, begin []byte) (*prepared, error) {
	q := *p.question
	if _, values, _, ok := parameters(begin, nil); ok && q.Param && len(values) == 1 {
		q.ID = string(values[0])
	}
	sql := answerTo(c, q)
	if sql == "" || sql == p.script.SQL || c.pipeline.failed() {
		return p, nil
	}
	script, _, err := c.completeStatement(sql, p.firm, false, false)
	if err != nil {
		return nil, err
	}
	return c.prepareAgain(p, nil, script)
}
