package mysqlwire

import (
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/statement"
)

// reset relays COM_CHANGE_USER and COM_RESET_CONNECTION: what is open is rolled back, all settings are new.
func (o *observation) reset(f frame) error {
	if err := o.log.fetch(); err != nil {
		return err
	}
	change := f.first == mysql.COM_CHANGE_USER
	_, b, err := o.client.loginPacket()
	if err != nil {
		return o.badClient(err, "command")
	}
	user, database := o.user, o.settings.env.Database
	if change {
		user, database = newUser(b, o.has(secureAuth))
	}
	plan := &rewrite.Plan{Text: "reset connection", Verb: "rollback", Control: statement.Control{Verb: statement.ControlRollback}}
	ticket := o.tracker.Sending(plan)
	o.tracker.ResetPool()
	if err := o.server.put(0, b); err != nil {
		return err
	}
	if err := o.loginDeadline(time.Now().Add(o.ps.Config.Timeouts.Startup)); err != nil {
		return err
	}
	ok, seq, err := (&handshake{session: o.session}).authenticate()
	if err := o.loginDeadline(time.Time{}); err != nil {
		return err
	}
	if errors.Is(err, errRefused) {
		o.tracker.Done(o.tracker.Answer(ticket), record.Result{})
		o.settings.status &^= statusInTrans
		o.counts.changed, o.counts.spoiled = -1, false
		return o.flush()
	}
	if err != nil {
		return err
	}
	o.seq = seq
	o.tracker.Done(o.tracker.Answer(ticket), record.Result{})
	o.user = user
	o.counts.changed, o.counts.spoiled = 0, false // as behind each OK
	o.prepared.forget()
	o.settings.env, o.settings.opaque = o.newEnv(database), false
	return o.logIn(ok)
}

// newUser reads COM_CHANGE_USER: user, authentication data, database.
func newUser(b []byte, secure bool) (user, database string) {
	user, rest, _ := cutZero(b[1:])
	if secure {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return user, ""
		}
		rest = rest[1+int(rest[0]):]
	} else {
		_, rest, _ = cutZero(rest)
	}
	database, _, _ = cutZero(rest)
	return user, database
}
