package mysqlwire

import (
	"strconv"
	"time"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement/condition"
)

// preface is what we put in front of a request: a statement that fetches the log, sets the stamp of what the request writes, or both, and a query for the
// server's time.
// The zero value is none. It leaves in one write with the request, unless the request must not run if it fails.
type preface struct {
	o       *observation
	fetch   bool
	stamp   string               // to be set; empty: none
	refused *history.ServerError // the server's error in answer to it
	clock   string               // rewrite.Plan.Clock; empty: it is not asked for
	asked   time.Time            // when it was,
	told    [][]byte             // and what it told, the microseconds last
}

// send puts the preface into the output to the server.
func (p *preface) send() (err error) {
	switch {
	case p.fetch:
		err = p.o.log.sendFetch(p.stamp)
	case p.stamp != "":
		err = p.o.ownQuery(dialect.SetToken(p.stamp))
	}
	if err == nil && p.clock != "" {
		p.asked = time.Now()
		err = p.o.ownQuery(p.clock + ",FOUND_ROWS()")
	}
	return err
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
	if err == nil && p.clock != "" {
		err = p.readClock()
	}
	return err
}

// readClock reads the answer to the query for the server's time.
func (p *preface) readClock() error {
	rows, _, err := p.o.ownAnswer()
	if err != nil || len(rows) != 1 || len(rows[0]) < 2 {
		return err
	}
	last := len(rows[0]) - 1
	p.o.counts.foundNow = 1 // the row of this answer
	p.o.counts.keep(string(rows[0][last]))
	p.told = rows[0][:last]
	return nil
}

// moments gives what the server's time was while the statement behind the query ran, if its second has not ended since; else nil.
func (p *preface) moments() []condition.Value {
	if len(p.told) < 2 {
		return nil
	}
	last := len(p.told) - 1
	us, err := strconv.Atoi(string(p.told[last]))
	if err != nil || time.Duration(us)*time.Microsecond+time.Since(p.asked) >= time.Second {
		return nil
	}
	return rewrite.ReadMoments(p.told[:last])
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
