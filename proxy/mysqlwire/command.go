package mysqlwire

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/rewrite"
)

// Commands that go-mysql does not name, or names otherwise.
const (
	comRefresh         = 0x07
	comResetConnection = 0x1f
	comBulkExecute     = 0xfa // MariaDB's COM_STMT_BULK_EXECUTE
)

// command relays one command and its answer. quit says that the session is over.
func (o *observation) command(f frame) (quit bool, err error) {
	switch f.first {
	case mysql.COM_QUERY:
		return false, o.query(f)
	case mysql.COM_STMT_PREPARE:
		return false, o.prepared.prepare(f)
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		return false, o.prepared.execute(f)
	case mysql.COM_STMT_FETCH:
		return false, o.prepared.fetch(f)
	case mysql.COM_STMT_SEND_LONG_DATA, mysql.COM_STMT_CLOSE, mysql.COM_STMT_RESET:
		return false, o.prepared.handle(f)
	case mysql.COM_QUIT:
		return true, unlessClosed(o.quit())
	case mysql.COM_CHANGE_USER, comResetConnection:
		return false, o.reset(f)
	case mysql.COM_INIT_DB:
		return false, o.setting(f, func(b []byte) { o.settings.env.Database = string(b[1:]) })
	case mysql.COM_FIELD_LIST:
		return false, o.fieldList()
	case mysql.COM_SET_OPTION: // 0 allows several statements in a text, 1 forbids them
		return false, o.setting(f, func(b []byte) { o.settings.env.MultiStatements = len(b) >= 3 && b[1] == 0 && b[2] == 0 })
	case mysql.COM_PROCESS_INFO:
		return false, o.simple(&rewrite.Plan{Text: "processlist", Verb: "other"})
	case mysql.COM_PING:
		o.tracker.ResetPool()
		return false, o.single()
	case mysql.COM_STATISTICS, mysql.COM_PROCESS_KILL, mysql.COM_DEBUG, comRefresh, mysql.COM_SHUTDOWN,
		mysql.COM_CREATE_DB, mysql.COM_DROP_DB, mysql.COM_REGISTER_SLAVE:
		if f.n > 0 {
			return false, o.single()
		}
	}
	// Replication streams, commands that we do not know, an empty packet: from here on the two are on their own.
	if err := o.log.fetch(); err != nil {
		return true, err
	}
	o.ps.Log.Warn().Uint8("command", f.first).Msg("session passes as bytes from here on")
	return true, errBytes
}

// quit relays COM_QUIT. The server closes the connection; it has nothing more to say to the client.
func (o *observation) quit() error {
	o.left = true
	if err := o.log.fetch(); err != nil {
		return err
	}
	if err := o.relayCommand(); err != nil {
		return err
	}
	return o.flush()
}

// single relays a command that is answered by one packet.
func (o *observation) single() error {
	if err := o.relayCommand(); err != nil {
		return err
	}
	_, err := o.singleAnswer()
	return err
}

// singleAnswer relays an answer of one packet and reports whether it is no error.
func (o *observation) singleAnswer() (ok bool, err error) {
	f, err := o.nextPacket()
	if err != nil {
		return false, err
	}
	switch f.first {
	case markOK:
		o.counts.changed, o.counts.spoiled = 0, false
	case markERR:
		o.refusedCommand()
	}
	if o.warnings.parsed == 0 || f.first != markOK && f.first != markEOF { // that of COM_STATISTICS is a text
		return f.first != markERR, o.pass(f)
	}
	b, err := o.take(f)
	if err != nil {
		return false, err
	}
	at := 1 // of an EOF
	if f.first == markOK || o.has(deprecateEOF) {
		ok, err := parseOK(b)
		if err != nil {
			return false, err
		}
		at = ok.at + 2
	}
	if len(b) >= at+2 {
		binary.LittleEndian.PutUint16(b[at:], plusWarnings(binary.LittleEndian.Uint16(b[at:]), o.warnings.parsed))
	}
	return true, o.toClient(b)
}

// refusedCommand notes that the server refused a command that executes no statement.
func (o *observation) refusedCommand() {
	o.counts.changed, o.counts.spoiled = -1, false
	o.warnings.forget()
	o.warnings.server = 1
}

// simple relays a command with an ordinary answer in which nothing is hidden.
func (o *observation) simple(plan *rewrite.Plan) error {
	st := &sentStatement{plan: plan, ticket: o.tracker.Sending(plan)}
	o.warnings.clear(plan, &o.traits)
	if err := o.relayCommand(); err != nil {
		return err
	}
	return (&answer{o: o, statements: []*sentStatement{st}}).relay()
}

// setting relays a command that sets something, and has it taken over if the server says OK.
func (o *observation) setting(f frame, take func(command []byte)) error {
	if f.n > bufferSize { // no such command is so long
		return o.single()
	}
	b, err := o.client.packet(f)
	if err != nil {
		return o.badClient(err, "command")
	}
	b = bytes.Clone(b) // the answer may be read into its place
	if err := o.server.put(0, b); err != nil {
		return err
	}
	ok, err := o.singleAnswer()
	if ok && err == nil {
		take(b)
	}
	return err
}

// fieldList relays COM_FIELD_LIST without the hidden columns.
func (o *observation) fieldList() error {
	if err := o.relayCommand(); err != nil {
		return err
	}
	f, err := o.nextPacket()
	for ; err == nil && !o.endsRows(f); f, err = o.nextPacket() {
		def, err := o.take(f)
		if err != nil {
			return err
		}
		if isOurs(def) {
			continue
		}
		if err := o.toClient(def); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return o.pass(f)
}
