package mysqlwire

import (
	"fmt"
	"slices"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// form is one prepared statement of the server's.
type form struct {
	id      uint32
	sql     string
	plan    *rewrite.Plan
	session dialect.Session
	clients bool // the text is the client's own
	ran     bool // the server has executed it
	uses    []rewrite.Use
	types   []byte // of all columns of the last answer, or as the server said when it prepared the statement
}

// complete is form at the settings now, with the catalog as it is now. A preparation leaves ROW_COUNT() as it is.
func (s *preparedStatements) complete(sql string) (fm *form, err error) {
	o := s.o
	o.counts.disturbed = false
	_, err = o.complete(func(now dialect.Session) *rewrite.Script {
		var script *rewrite.Script
		fm, script = s.form(sql, now)
		return script
	})
	if err == nil && o.counts.disturbed {
		err = o.restoreChanged()
	}
	return fm, err
}

// form asks the dialect how to prepare a text at the settings now.
func (s *preparedStatements) form(sql string, now dialect.Session) (*form, *rewrite.Script) {
	script := &rewrite.Script{}
	if !planned(s.o, sql, func() {
		s.o.tracker.guard(func() { script = s.o.rewriter.Prepare(sql, s.o.known(), now) })
	}) {
		script = dialect.Unread(sql, now, tooMany)
	}
	if exceeds(s.o, script, sql) {
		script = &rewrite.Script{SQL: sql, Plans: forwarded(script.Plans, exceeding), Missing: script.Missing, Uses: script.Uses}
	}
	fm := s.formOf(sql, script, now)
	return fm, &rewrite.Script{Plans: []*rewrite.Plan{fm.plan}, Missing: script.Missing}
}

func (s *preparedStatements) formOf(sql string, script *rewrite.Script, now dialect.Session) *form {
	now.Stale = false
	fm := &form{sql: script.SQL, session: now, clients: !script.Changed(sql), uses: script.Uses}
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

// prepareForm prepares a further form of a statement for ourselves, or gives the server's error.
func (s *preparedStatements) prepareForm(fm *form) (refused *history.ServerError, err error) {
	if err := s.o.ownPrepare(fm.sql); err != nil {
		return nil, err
	}
	st, refused, err := s.o.ownPrepared()
	fm.id, fm.types = st.id, st.types
	return refused, err
}

// prepareAside is prepareForm for a command that has no answer: what the server says of our text, a refusal too, is not in its list behind it, which was
// empty.
func (s *preparedStatements) prepareAside(fm *form) (refused *history.ServerError, err error) {
	o := s.o
	if refused, err = s.prepareForm(fm); err != nil || refused == nil && fm.plan.ParsedApart == 0 {
		return refused, err
	}
	if err := o.counts.save(&o.link); err != nil {
		return nil, err
	}
	if err := o.forgetWarnings(); err != nil {
		return nil, err
	}
	return refused, o.restoreChanged()
}

// prepareIn is prepareForm in the database in which the server resolves the client's statement, even if the session has another one now.
func (s *preparedStatements) prepareIn(database string, fm *form) (refused *history.ServerError, err error) {
	now := s.o.settings.env.Database
	if database == "" || now == "" || database == now {
		return s.prepareForm(fm)
	}
	if _, refused, err = s.o.ownRows("USE " + mysqlsyntax.Quote(database)); err != nil || refused != nil {
		return refused, err
	}
	if refused, err = s.prepareForm(fm); err != nil {
		return nil, err
	}
	_, lost, err := s.o.ownRows("USE " + mysqlsyntax.Quote(now))
	if err == nil && lost != nil {
		err = fmt.Errorf("go back to database %s: %w", now, lost)
	}
	return refused, err
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

// choose picks the form to be executed with the settings and tables as they are now, and prepares it if it is new. refused is the server's
// error if the client's text is wrong now, because tables were changed. aside says that it is chosen for a command without an answer, behind which the
// client can still ask for the warnings of the statement before.
func (s *preparedStatements) choose(p *prepared, aside bool) (fm *form, refused *history.ServerError, err error) {
	o := s.o
	now := o.settings.current()
	now.Database = p.forms[0].session.Database // names were resolved when it was prepared
	changed := !o.known().Current(p.used.uses, true)
	if p.sql == "" || p.longData || o.settings.state != settingsKnown || p.used.session == now && !changed {
		return p.used, nil, nil
	}
	stale := now
	stale.Stale = true
	want, _ := s.form(p.sql, stale)
	for _, fm := range p.forms {
		if fm.sql == want.sql && fm.plan.Hidden == want.plan.Hidden {
			fm.session, fm.plan, fm.uses = want.session, want.plan, want.uses
			p.used = fm
			return fm, nil, nil
		}
	}
	elsewhere := o.settings.env.Database != now.Database // names would be resolved otherwise now
	prepare := s.prepareForm
	if elsewhere {
		prepare = func(fm *form) (*history.ServerError, error) { return s.prepareIn(now.Database, fm) }
	}
	if aside {
		if prepare = s.prepareAside; elsewhere || o.warnings.server > 0 {
			return p.used, nil, nil
		}
	}
	refused, err = prepare(want)
	if err == nil && refused != nil && changed { // as the server prepares the client's text again
		uses := want.uses
		want = s.clientsForm(p.sql, want.plan)
		want.uses = uses
		refused, err = prepare(want)
	}
	if err != nil || refused != nil {
		if !changed || elsewhere { // it may be about the database
			refused = nil
		}
		return p.used, refused, err
	}
	p.used = want
	return want, nil, s.addForm(p, want)
}
