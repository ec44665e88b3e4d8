package mysqlwire

import (
	"slices"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// form is one prepared statement of the server's.
type form struct {
	id      uint32
	sql     string
	plan    *rewrite.Plan
	session dialect.Session
	clients bool // the text is the client's own
}

// form asks the dialect how to prepare a text at the settings now.
func (s *preparedStatements) form(sql string, now dialect.Session) *form {
	o := s.o
	script := &rewrite.Script{}
	o.tracker.guard(func() { script = o.rewriter.Prepare(sql, o.known(), now) })
	fm := &form{sql: script.SQL, session: now, clients: !script.Changed(sql)}
	if len(script.Plans) == 1 {
		fm.plan = script.Plans[0]
		if fm.plan.Diagnostics && fm.plan.Stamp {
			fm.plan, fm.sql, fm.clients = forwarded(script.Plans, inquisitive)[0], sql, true
		}
		return fm
	}
	fm.plan, fm.sql, fm.clients = opaquePlan(sql, "it is not one statement"), sql, true
	return fm
}

// clientsForm is the client's own text.
func (s *preparedStatements) clientsForm(sql string, p *rewrite.Plan) *form {
	return &form{sql: sql, session: s.o.settings.current(), clients: true, plan: forwarded([]*rewrite.Plan{p}, "the tables were changed")[0]}
}

// unparsedForm is the client's own text, to stand for a form that is parsed apart until it is executed.
func (s *preparedStatements) unparsedForm(sql string, fm *form) *form {
	own := s.clientsForm(sql, fm.plan)
	own.session = dialect.Session{Database: fm.session.Database} // no session is like that, so choose looks for another form
	return own
}

func opaquePlan(sql, why string) *rewrite.Plan {
	return &rewrite.Plan{Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why}
}

// prepareForm prepares a further form of a statement for ourselves. It reports false if the server refuses.
func (s *preparedStatements) prepareForm(fm *form) (bool, error) {
	o := s.o
	if err := o.ownPrepare(fm.sql); err != nil {
		return false, err
	}
	id, _, refused, err := o.ownPrepared()
	fm.id = id
	return refused == nil && err == nil, err
}

// formsMax bounds how many of the server's statements stand for one of the client's.
const formsMax = 16

// addForm adds a form that is prepared. It closes the oldest one if there are too many; the first one has the client's id.
func (s *preparedStatements) addForm(p *prepared, fm *form) error {
	p.forms = append(p.forms, fm)
	if len(p.forms) <= formsMax {
		return nil
	}
	oldest := p.forms[1]
	p.forms = slices.Delete(p.forms, 1, 2)
	return s.o.ownClose(oldest.id)
}

// choose picks the form to be executed at the session's present settings, and prepares it if it is new.
func (s *preparedStatements) choose(p *prepared) (*form, error) {
	o := s.o
	now := o.settings.current()
	now.Database = p.forms[0].session.Database // names were resolved when it was prepared
	if p.sql == "" || p.longData || p.used.session == now {
		return p.used, nil
	}
	want := s.form(p.sql, now)
	for _, fm := range p.forms {
		if fm.sql == want.sql && fm.plan.Hidden == want.plan.Hidden {
			fm.session, fm.plan = want.session, want.plan
			p.used = fm
			return fm, nil
		}
	}
	if o.settings.env.Database != now.Database { // they would be resolved otherwise now
		return p.used, nil
	}
	ok, err := s.prepareForm(want)
	if err != nil || !ok {
		return p.used, err
	}
	p.used = want
	return want, s.addForm(p, want)
}
