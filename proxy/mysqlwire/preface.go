package mysqlwire

import (
	"wirecheck/history"
	dialect "wirecheck/rewrite/mysql"
)

// preface is our statement in front of a request: it fetches the log, sets the stamp of what the request writes, or both.
// The zero value is none. It leaves in one write with the request, unless the request must not run if it fails.
type preface struct {
	o       *observation
	fetch   bool
	stamp   string               // to be set; empty: none
	refused *history.ServerError // the server's error in answer to it
}

// send puts the preface into the output to the server.
func (p *preface) send() error {
	switch {
	case p.fetch:
		return p.o.log.sendFetch(p.stamp)
	case p.stamp != "":
		return p.o.ownQuery(dialect.SetToken(p.stamp))
	}
	return nil
}

// receive reads the answer to the preface.
func (p *preface) receive() (err error) {
	switch {
	case p.fetch:
		p.refused, err = p.o.log.receive(p.stamp)
	case p.stamp != "":
		_, p.refused, err = p.o.ownAnswer()
		p.o.stamped(p.stamp, p.refused)
	}
	return err
}

// decides reports whether the request must not run if the preface fails.
func (p *preface) decides() bool { return p.stamp != "" && p.o.stamp.mayMislead(p.stamp) }

// stampTries is how often a session tries to set a stamp before the statement goes without.
const stampTries = 3

// settle awaits the answer to the preface before the request leaves, and sets a stamp that was refused again. It reports
// whether the request may run.
func (p *preface) settle() (ok bool, err error) {
	if err := p.receive(); err != nil {
		return false, err
	}
	for tries := 1; p.refused != nil && tries < stampTries; tries++ {
		if _, p.refused, err = p.o.ownRows(dialect.SetToken(p.stamp)); err != nil {
			return false, err
		}
		p.o.stamped(p.stamp, p.refused)
	}
	return p.refused == nil, nil
}
