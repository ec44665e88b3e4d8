package mysqlwire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// watching is the state of a session in observe mode.
type watching struct {
	tracker  *record.Tracker
	rewriter *dialect.Rewriter
	facts    dialect.Facts
	env      dialect.Session // of the next statement
	catalog  *rewrite.Catalog
	blind    bool // the session's settings are not known: nothing is rewritten
	asked    bool // blind, but the server may be asked again
	snapshot bool // REPEATABLE READ is snapshot isolation here (innodb_snapshot_isolation)

	autocommit          bool
	level, once, inside string // of the session, of the next transaction only, of the open one

	seq    byte   // of the next packet to the client
	status uint16 // as the server last told it

	statements map[uint32]*prepared
	last       *prepared // the latest prepared one, which MariaDB's clients may call -1

	due            []record.Warning // came between two statements
	listed         []listed         // our rows of SHOW WARNINGS
	listedOld      bool             // they are of an earlier statement than the last one
	listing        *listing         // a SHOW WARNINGS under way
	serverWarnings uint16           // rows of the server's in SHOW WARNINGS
	found          *uint64          // what FOUND_ROWS() says to the client, if statements of ours changed it
	foundNow       uint64           // what it says on the server then; the most if that is not known
	changedRows    int64            // what ROW_COUNT() says to the client
	front          []listed         // rows that SHOW WARNINGS has in front of the server's (apart.go)
	frontMax       int              // max_error_count then
	logged         uint64           // rows that were logged since the log was fetched
	attempts       map[string]int   // by stamp, the entries of the log of the attempt that lasted (tidb.go)
	stamped        string           // token of the transaction whose stamp the server may hold; empty if it surely holds none
	hasLog         bool             // the server's log variable is set
	stampedApart   bool             // a savepoint came since: what follows may be undone apart from it, or it already is

	scratch []byte
	victim  bool // the last command's transaction was chosen to break a deadlock
}

// observe is the session after the server's OK to the login, which is not yet relayed.
func (s *session) observe(ctx context.Context, seq byte, ok []byte) error {
	s.seq = seq
	s.ps.Backend, s.ps.User, s.ps.Program = uint64(s.greeting.thread), s.user, s.program
	s.statements = make(map[uint32]*prepared)
	s.tracker = record.NewTracker(s.observer.Recorder, history.Event{
		Engine: s.greeting.flavor(),
		// MariaDB puts this in front for the replication of old servers (manual, "Connecting", initial handshake packet).
		Server: strings.TrimPrefix(s.greeting.version, "5.5.5-"), Database: s.database, User: s.user, Client: s.program,
		Backend: uint64(s.greeting.thread), At: time.Now().UnixNano(), Session: s.ps.Number(),
	}, s.observer.Limits)
	defer func() { s.tracker.Close() }()
	s.rewriter = s.observer.rewriter(dialect.FlavorOf(s.greeting.version))
	s.env = dialect.Session{Database: s.database, MultiStatements: s.caps&uint64(mysql.CLIENT_MULTI_STATEMENTS) != 0}
	if err := s.logIn(ok); err != nil {
		return s.verdict(err)
	}
	return s.verdict(s.commands(ctx))
}

// logIn relays an OK to a login after our own first questions: what a client could notice of them is undone.
func (s *session) logIn(ok []byte) error {
	p, err := parseOK(ok)
	if err != nil {
		return fmt.Errorf("read the server's OK: %w", err)
	}
	s.status = p.status
	s.serverWarnings = p.warnings
	s.listed, s.front, s.found, s.logged, s.stamped, s.hasLog = nil, nil, nil, 0, "", false
	if err := s.ask(); err != nil {
		return err
	}
	if !s.blind {
		if err := s.readCatalog(); err != nil {
			return err
		}
		if err := s.resetDiagnostics(); err != nil {
			return err
		}
	}
	return s.toClient(ok)
}

// verdict says how the session ended: whoever is left is told, and the log gets what is not just somebody leaving.
func (s *session) verdict(err error) error {
	var server *errServer
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBytes):
		return s.asBytes()
	case errors.As(err, &server):
		return s.fail(s.seq, errorLost(proxy.Reason(server.err).Error()), err)
	case errors.Is(err, errMalformed) && s.seq > 0:
		return s.fail(s.seq, errorLost("its answer was not understood"), err)
	}
	return gone(err)
}

// commands relays commands until the client leaves.
func (s *session) commands(ctx context.Context) error {
	for {
		if s.draining && !s.inTransaction() {
			return s.fail(1, errorShutdown(), nil)
		}
		err := s.client.await(s.server, true)
		var other *otherError
		switch {
		case err == nil:
		case errors.Is(err, errPoked):
			s.draining = true
			s.client.poked.Store(false)
			continue
		case errors.Is(err, errAlert):
			if err := s.unasked(); err != nil {
				return err
			}
			continue
		case errors.As(err, &other): // the server closed an idle session, as it may
			return gone(s.flushBoth())
		default:
			return gone(err)
		}
		f, err := s.client.peek()
		if err != nil {
			return s.badClient(err, "command")
		}
		if f.seq != 0 {
			return s.badClient(errSequence{f.seq, 0}, "command")
		}
		s.seq = 1
		quit, err := s.inTurn(ctx, f)
		if err != nil || quit {
			return err
		}
	}
}

// unasked relays what the server says to an idle client: that it was killed, or has been silent for too long.
func (s *session) unasked() error {
	f, err := s.server.peek()
	if err != nil {
		return gone(err)
	}
	if _, err := s.server.relay(s.client, 0); err != nil {
		return err
	}
	if f.first != markERR {
		return errBytes
	}
	return s.flushBoth()
}

// inTransaction reports whether ending the session now would undo something.
func (s *session) inTransaction() bool { return s.status&statusInTrans != 0 }

// idle reports whether statements of ours may run that read tables: no transaction is open, nor would they open one.
func (s *session) idle() bool { return !s.inTransaction() && s.status&statusAutocommit != 0 }

// command relays one command and its answer. quit says that the session is over.
func (s *session) command(f frame) (quit bool, err error) {
	switch f.first {
	case mysql.COM_QUERY:
		return false, s.query(f)
	case mysql.COM_STMT_PREPARE:
		return false, s.prepare(f)
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		return false, s.execute(f)
	case mysql.COM_STMT_FETCH:
		return false, s.fetch(f)
	case mysql.COM_STMT_SEND_LONG_DATA, mysql.COM_STMT_CLOSE, mysql.COM_STMT_RESET:
		return false, s.handle(f)
	case mysql.COM_QUIT:
		if err := s.fetchLog(); err != nil {
			return true, gone(err)
		}
		if _, err := s.client.relay(s.server, 0); err != nil {
			return true, gone(err)
		}
		// The server closes the connection; what it may still say to the client is nothing.
		return true, gone(s.flushBoth())
	case mysql.COM_CHANGE_USER, comResetConnection:
		return false, s.reset(f)
	case mysql.COM_INIT_DB:
		return false, s.initDB(f)
	case mysql.COM_FIELD_LIST:
		return false, s.fieldList(f)
	case mysql.COM_SET_OPTION:
		return false, s.setOption(f)
	case mysql.COM_PROCESS_INFO:
		return false, s.simple(&rewrite.Plan{Text: "processlist", Verb: "other"})
	case mysql.COM_PING, mysql.COM_STATISTICS, mysql.COM_PROCESS_KILL, mysql.COM_DEBUG, comRefresh, mysql.COM_SHUTDOWN,
		mysql.COM_CREATE_DB, mysql.COM_DROP_DB, mysql.COM_REGISTER_SLAVE:
		if f.n > 0 {
			return false, s.single(f)
		}
	}
	// Replication streams, commands that we do not know, an empty packet: from here on the two are on their own.
	if err := s.fetchLog(); err != nil {
		return true, err
	}
	s.ps.Log.Warn().Uint8("command", f.first).Msg("session passes as bytes from here on")
	return true, errBytes
}

// Commands that go-mysql does not name, or names otherwise.
const (
	comRefresh         = 0x07
	comResetConnection = 0x1f
	comBulkExecute     = 0xfa // MariaDB's COM_STMT_BULK_EXECUTE
)

// single relays a command that is answered by one packet.
func (s *session) single(f frame) error {
	_, err := s.client.relay(s.server, 0)
	if err != nil {
		return err
	}
	_, err = s.singleAnswer()
	return err
}

// singleAnswer relays an answer of one packet and tells whether it is no error.
func (s *session) singleAnswer() (ok bool, err error) {
	f, err := s.firstPacket()
	if err != nil {
		return false, err
	}
	return f.first != markERR, s.pass(f)
}

// simple relays a command with an ordinary answer in which nothing is hidden.
func (s *session) simple(plan *rewrite.Plan) error {
	st := &statement{plan: plan, ticket: s.tracker.Sending(plan)}
	if _, err := s.client.relay(s.server, 0); err != nil {
		return err
	}
	return s.relayAnswer(&answer{statements: []*statement{st}})
}

// initDB relays COM_INIT_DB.
func (s *session) initDB(f frame) error {
	b, err := s.client.packet(f)
	if err != nil {
		return s.badClient(err, "command")
	}
	name := string(b[1:])
	if err := s.server.put(0, b); err != nil {
		return err
	}
	ok, err := s.singleAnswer()
	if ok && err == nil {
		s.env.Database = name
	}
	return err
}

// setOption relays COM_SET_OPTION: 0 allows several statements in a text, 1 forbids them.
func (s *session) setOption(f frame) error {
	b, err := s.client.packet(f)
	if err != nil {
		return s.badClient(err, "command")
	}
	allow := len(b) >= 3 && b[1] == 0 && b[2] == 0
	if err := s.server.put(0, b); err != nil {
		return err
	}
	ok, err := s.singleAnswer()
	if ok && err == nil {
		s.env.MultiStatements = allow
	}
	return err
}

// fieldList relays COM_FIELD_LIST without the hidden columns.
func (s *session) fieldList(f frame) error {
	if _, err := s.client.relay(s.server, 0); err != nil {
		return err
	}
	f, err := s.firstPacket()
	for ; err == nil && !s.endsRows(f); f, err = s.nextPacket() {
		def, err := s.take(f)
		if err != nil {
			return err
		}
		if dialect.HiddenColumn(columnName(def)) {
			continue
		}
		if err := s.toClient(def); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return s.pass(f)
}

// columnName is the name in a column definition, the fifth of its strings.
func columnName(def []byte) string {
	var name []byte
	var err error
	for range 5 {
		if name, def, err = lenencString(def); err != nil {
			return ""
		}
	}
	return string(name)
}

// reset relays COM_CHANGE_USER and COM_RESET_CONNECTION: what is open is rolled back, all settings are new.
func (s *session) reset(f frame) error {
	if err := s.fetchLog(); err != nil {
		return err
	}
	change := f.first == mysql.COM_CHANGE_USER
	f, b, err := s.loginPacket(s.client)
	if err != nil {
		return s.badClient(err, "command")
	}
	user, database := s.user, s.env.Database
	if change {
		user, database = s.newUser(b)
	}
	plan := &rewrite.Plan{Text: "reset connection", Verb: "rollback", Control: rewrite.Control{Verb: rewrite.ControlRollback}}
	ticket := s.tracker.Sending(plan)
	if err := s.server.put(0, b); err != nil {
		return err
	}
	s.shift = 0
	if err := s.loginDeadline(time.Now().Add(s.ps.Config.Timeouts.Startup)); err != nil {
		return err
	}
	ok, seq, err := s.authenticate()
	if err := s.loginDeadline(time.Time{}); err != nil {
		return err
	}
	if errors.Is(err, errRefused) {
		s.tracker.Done(s.tracker.Answer(ticket), record.Result{})
		s.status &^= statusInTrans
		return s.flushBoth()
	}
	if err != nil {
		return err
	}
	s.seq = seq
	s.tracker.Done(s.tracker.Answer(ticket), record.Result{})
	s.user = user
	s.statements, s.last = make(map[uint32]*prepared), nil
	s.env = dialect.Session{Database: database, MultiStatements: s.caps&uint64(mysql.CLIENT_MULTI_STATEMENTS) != 0}
	return s.logIn(ok)
}

// newUser reads COM_CHANGE_USER: user, authentication data, database.
func (s *session) newUser(b []byte) (user, database string) {
	user, rest, _ := cutZero(b[1:])
	if s.caps&secureAuth != 0 {
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
