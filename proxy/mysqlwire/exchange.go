package mysqlwire

import (
	"errors"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// exchange is one client command that executes statements: a preface of ours, the request in the form in which the server
// gets it, and the answer without what is ours.
type exchange struct {
	o       *observation
	plans   []*rewrite.Plan
	client  string // the client's text
	request request
	// fallback makes the exchange of the client's own text instead, from one of the statements on: the server refused ours, or
	// it could not be marked. It gives nil if it has answered the client. A nil function: ours is the client's own text, or it is too
	// long to be kept.
	fallback func(from int, why string) (*exchange, error)

	ran     bool // the server has executed this statement before
	preface preface
	stamp   string // the name under which the first statement's writes are known; empty if it makes none
	answer  *answer
}

// run sends the request with its preface and relays the answer.
func (x *exchange) run() error {
	x.begin()
	if x.answer.statements[0].plan.Stamp && !x.o.tracker.observed() {
		if x.fallback != nil {
			return x.instead(0, "the session is not observed any more")
		}
		if err := x.o.clearStamp(); err != nil {
			return err
		}
	}
	if err := x.preface.send(); err != nil {
		return err
	}
	settled := x.preface.decides()
	if settled {
		if ok, err := x.preface.settle(); err != nil || !ok {
			return x.unmarked(err)
		}
	}
	if err := x.request.send(x.stamp); err != nil {
		return err
	}
	if !settled {
		if err := x.preface.receive(); err != nil {
			return err
		}
	}
	if why, ok, err := x.request.proceed(x.answer); err != nil || !ok {
		if err == nil {
			x.drop()
			err = x.instead(0, why)
		}
		return err
	}
	return x.takeAnswer()
}

// begin announces the statements and decides what goes in front of them.
func (x *exchange) begin() {
	o := x.o
	x.preface = preface{o: o, fetch: o.log.wanted(x.plans)}
	x.answer = &answer{o: o, binary: x.request.binary(), prepared: x.request.statement()}
	for i, p := range x.plans {
		p, listing := o.warnings.merge(o.settings.withLevel(bound(p, x.request), o.traits.optimistic))
		if i == 0 { // those behind it are asked about it
			p = o.counts.merge(p)
		}
		st := &sentStatement{plan: p, ticket: o.tracker.Sending(p), listing: listing}
		o.tracker.From(st.ticket, x.client, x.request.params)
		x.answer.statements = append(x.answer.statements, st)
		o.warnings.clear(p, &o.traits)
	}
	first := x.answer.statements[0]
	if p := first.plan; p.Clock != "" && !p.Diagnostics && len(x.plans) == 1 && o.tracker.observed() {
		x.preface.clock = p.Clock
		x.answer.moments = x.preface.moments
	}
	if !first.plan.Stamp {
		return
	}
	x.stamp = o.tracker.Stamp(first.ticket)
	if !x.request.holdsStamp() {
		x.preface.stamp = x.stamp
	}
}

// mixing is ER_MIX_OF_GROUP_FUNC_AND_FIELDS: under ONLY_FULL_GROUP_BY, MariaDB finds it only in a second execution (10.11.19), so the client's own text, if prepared
// once more, would be executed.
const mixing = "1140"

// takeAnswer relays the answer and notes what follows from it.
func (x *exchange) takeAnswer() error {
	o, a := x.o, x.answer
	first := a.statements[0]
	first.running = o.tracker.Answer(first.ticket)
	if x.preface.refused != nil && x.preface.stamp != "" {
		first.opaque("its stamp could not be set: " + x.preface.refused.Message)
	}
	if x.fallback != nil {
		a.hold = func(p *rewrite.Plan, e *history.ServerError) bool {
			return o.traits.refused(p, e) && !(x.ran && e.Code == mixing)
		}
	}
	if err := a.relay(); err != nil {
		return err
	}
	if a.held {
		return x.instead(a.next, "the server refused the text with which it would be seen")
	}
	if a.failed && o.traits.ordinaryColumns && x.fallback != nil && dialect.Refused(a.err.Code, a.err.Message) {
		o.observer.catalogs.changed(nil)
	}
	o.log.note(x.stamp, first.plan, a, &o.traits)
	return nil
}

// instead sends the client's own text. If the server takes it and has refused ours, the tables are not what the catalog says.
func (x *exchange) instead(from int, why string) error {
	own, err := x.fallback(from, why)
	if err != nil || own == nil { // it is answered
		return err
	}
	if err := own.run(); err != nil {
		return err
	}
	if x.answer.held && !own.answer.failed {
		x.o.observer.catalogs.changed(nil)
	}
	return nil
}

// unmarked ends an exchange whose writes could not be marked. err, if not nil, is why there is no session any more.
func (x *exchange) unmarked(err error) error {
	if err != nil {
		return err
	}
	x.drop()
	message := x.preface.refused.Message
	if x.fallback == nil { // too long to be kept
		return x.o.fail(x.o.seq, errorUnmarked(message), errors.New("a statement could not be marked"))
	}
	return x.instead(0, "its stamp could not be set: "+message)
}

// drop takes the statements back: they are not executed in this form.
func (x *exchange) drop() {
	for _, st := range x.answer.statements {
		x.o.tracker.Drop(st.ticket)
	}
}
