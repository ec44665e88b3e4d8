package mysqlwire

import "wirecheck/proxy/record"

// asked finds out whether a text asks wirecheck something. It gives the question, and a SELECT that the server executes in its place; q is nil for
// every other text. A database of the server's that is named wirecheck, as far as the client's user knows of it, keeps its functions and procedures.
func asked(o *observation, sql string) (own string, q *record.Question, err error) {
	question, ok := record.AskedOf(sql)
	if !ok || !o.tracker.observed() {
		return "", nil, nil
	}
	if question.Explain {
		rows, refused, err := o.ownRows("SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'wirecheck'")
		if err != nil || refused != nil || len(rows) > 0 {
			return "", nil, err
		}
	}
	if own = answerTo(o, question); own == "" {
		return "", nil, nil
	}
	return own, &question, nil
}

// answerTo is a SELECT that gives the answer to a question; empty: nobody answers.
func answerTo(o *observation, q record.Question) (sql string) {
	o.tracker.do(func(t *record.Tracker) {
		if table := t.Ask(q); table != nil {
			sql = table.MySQL(!o.traits.UnionUnordered, q.Param)
		}
	})
	return sql
}

// answerAgain sees to it that an execution gets the answer of now, for the finding that its parameter names: by a form of its own. A parameter
// that came as long data names none.
func (s *preparedStatements) answerAgain(p *prepared, f frame) error {
	b, err := s.o.client.prefix(f, f.n)
	if err != nil {
		return err
	}
	q := *p.question
	if list := p.values(p.withTypes(b, true, s.o.traits.KeepsTypes)); q.Param && len(list) == 1 {
		q.ID = list[0].Text
	}
	sql := answerTo(s.o, q)
	if sql == "" || sql == p.sql {
		return nil
	}
	fm, err := s.complete(sql)
	if err != nil {
		return err
	}
	if refused, err := s.prepareForm(fm); err != nil || refused != nil {
		return err
	}
	if s.byID[p.id] == p {
		s.text.Add(len(sql) - len(p.sql))
	}
	p.sql, p.used = sql, fm
	return s.addForm(p, fm)
}
