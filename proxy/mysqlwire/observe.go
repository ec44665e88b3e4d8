package mysqlwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/proxy/relay"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// observation is a session in observe mode, after the login.
type observation struct {
	*session
	traits   traits
	tracker  recording
	rewriter *dialect.Rewriter

	settings settings
	catalog  *rewrite.Catalog // the latest that the session has seen
	counts   rowCounts
	warnings warningList
	log      writeLog
	stamp    heldStamp
	prepared preparedStatements

	draining bool
	bare     bool // the client knows that it uses a table without hidden columns
	victim   bool // the last command's transaction was chosen to break a deadlock
	scratch  []byte
	share    record.Share // of the command or row at hand, where it does not fit in a connection's buffer
}

// observe serves the session after the server's OK to the login, which is not yet relayed.
func observe(ctx context.Context, s *session, seq byte, ok []byte) error {
	s.seq = seq
	s.ps.Backend, s.ps.User, s.ps.Program = uint64(s.greeting.thread), s.user, s.program
	o := &observation{session: s, traits: traitsOf(s.greeting.flavor()), rewriter: s.observer.rewriter(s.greeting.flavor())}
	o.log.o, o.prepared.o = o, o
	o.prepared.text = s.observer.Recorder.Texts()
	o.prepared.forget()
	defer o.prepared.text.Forget()
	o.share = s.observer.Recorder.Messages()
	defer o.share.Forget()
	o.tracker.log = s.ps.Log
	o.settings.generation = o.rewriter.Generation
	o.tracker.open(s.observer, o.rewriter.Want, history.Event{
		Engine: o.traits.Name,
		// MariaDB puts this in front for the replication of old servers (manual, "Connecting", initial handshake packet).
		Server: strings.TrimPrefix(s.greeting.version, "5.5.5-"), Database: s.database, User: s.user, Client: s.program,
		Backend: uint64(s.greeting.thread), At: time.Now().UnixNano(), Session: s.ps.Number(),
	})
	defer func() { o.tracker.Close() }()
	o.settings.env = s.newEnv(s.database)
	if err := o.logIn(ok); err != nil {
		return o.conclude(ctx, err)
	}
	return o.conclude(ctx, o.commands(ctx))
}

// newEnv is what statements depend on at the beginning of a session.
func (s *session) newEnv(database string) dialect.Session {
	return dialect.Session{Database: database, MultiStatements: s.has(uint64(mysql.CLIENT_MULTI_STATEMENTS))}
}

// logIn relays an OK to a login after our own first questions. It takes back what a client could notice of them.
func (o *observation) logIn(ok []byte) error {
	p, err := parseOK(ok)
	if err != nil {
		return fmt.Errorf("read the server's OK: %w", err)
	}
	o.settings.status = p.status
	o.tracker.Status(p.status)
	o.warnings.server = p.warnings
	o.warnings.forget()
	o.log.rows, o.log.exists = 0, false
	o.stamp.token = ""
	if err := o.ask(); err != nil {
		return err
	}
	if o.settings.state == settingsKnown {
		o.observer.catalogs.begins(o.user)
		if err := o.readCatalog(); err != nil {
			return err
		}
		if err := o.resetDiagnostics(); err != nil {
			return err
		}
	}
	if err := o.toClient(ok); err != nil {
		return err
	}
	return o.compress()
}

// resetDiagnostics makes ROW_COUNT() say what it says on a new connection, and FOUND_ROWS() what it mostly says there.
func (o *observation) resetDiagnostics() error {
	_, refused, err := o.ownRows("SELECT 1 FROM DUAL WHERE FALSE")
	if err != nil {
		return err
	}
	if refused == nil {
		o.counts.foundNow = 0
	}
	_, refused, err = o.ownRows(dialect.NewLog())
	o.log.exists = err == nil && refused == nil
	return err
}

// conclude returns why the session ended, if it is more than a peer that left. Of a server that is lost, the client gets what
// the server has sent, and then the end of the connection, as it would directly.
func (o *observation) conclude(ctx context.Context, err error) error {
	var server *errServer
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBytes):
		return o.asBytes(ctx)
	}
	lastWord(o)
	switch {
	case errors.As(err, &server):
		_ = o.client.send()
		return err
	case errors.Is(err, errMalformed) && o.seq > 0:
		return o.fail(o.seq, errorMalformed(), err)
	}
	return unlessClosed(err)
}

// lastWord relays the error with which the server ended the connection while it was sent a command: for instance 1153, that the command is too big.
func lastWord(o *observation) {
	if !relay.HungUp(o.server.raw) { // else reading ends
		return
	}
	o.server.flush = nil
	var last []byte
	var seq byte
	for {
		f, err := o.server.peek()
		if err != nil || f.n > bufferSize {
			break
		}
		b, err := o.server.packet(f)
		if err != nil {
			break
		}
		if last = nil; f.first == markERR { // what is in front of it answers statements of ours
			last, seq = bytes.Clone(b), f.seq
		}
	}
	if last != nil && o.client.put(seq, last) == nil {
		_ = o.client.send()
	}
}

// holds reports whether a command or row of at most packetMax bytes may be held to be looked at. Most fit in a buffer. A longer one is held twice, as it
// came and as it goes on, and not beside too many others. letGo ends it.
func holds(o *observation, f frame) bool {
	if f.n > packetMax {
		return false
	}
	if f.n <= bufferSize {
		return true
	}
	ok := o.share.Takes(2*f.n) || o.traits.ordinaryColumns // what is not looked at would show them
	if ok {
		o.share.Add(2 * f.n)
	}
	return ok
}

// letGo says that what was held longer than a command or row is not needed any more.
func letGo(o *observation) {
	o.share.Forget()
	if cap(o.scratch) > bufferSize {
		o.scratch = nil
	}
}

// commands relays commands until the client leaves.
func (o *observation) commands(ctx context.Context) error {
	for {
		letGo(o)
		if o.draining && !o.settings.inTransaction() {
			if err := o.log.fetch(); err != nil { // of what an autocommit statement wrote
				return err
			}
			return o.fail(1, errorShutdown(), nil)
		}
		err := o.client.await(o.server, true)
		var other *otherError
		switch {
		case err == nil:
		case errors.Is(err, errInterrupted):
			o.draining = true
			o.client.interrupted.Store(false)
			continue
		case errors.Is(err, errAlert):
			if err := o.unasked(); err != nil {
				return err
			}
			continue
		case errors.As(err, &other): // the server closed an idle session, as it may
			return unlessClosed(o.flush())
		default: // the client closed the connection without a word
			if o.left = true; !o.settings.inTransaction() && unlessClosed(err) == nil {
				_ = o.log.fetch()
			}
			if errors.Is(err, io.EOF) {
				o.parting()
			}
			return unlessClosed(err)
		}
		f, err := o.client.peek()
		if err != nil {
			return o.badClient(err, "command")
		}
		if f.seq != 0 && !o.compresses {
			return o.badClient(errSequence{f.seq, 0}, "command")
		}
		o.seq = 1
		quit, err := o.inTurn(ctx, f)
		if err != nil || quit {
			return err
		}
	}
}

// parting relays what the server says to a client that has ended its sending half: MySQL says 1158. The client may be gone altogether.
func (o *observation) parting() {
	server := o.server.raw
	if encrypted, ok := o.server.nc.(*tls.Conn); ok { // to the end of the connection below TLS, MySQL says nothing
		server = encrypted
	}
	if closeWrite(server) == nil && o.server.until(time.Now().Add(o.ps.Config.Timeouts.Startup)) == nil {
		_ = o.unasked()
	}
}

// unasked relays what the server says to an idle client: that it was killed, or has been silent for too long.
func (o *observation) unasked() error {
	f, err := o.server.peek()
	if err != nil {
		return unlessClosed(err)
	}
	if _, err := o.server.relay(o.client, 0); err != nil {
		return err
	}
	if f.first != markERR {
		return errBytes
	}
	return o.flush()
}

// follow keeps what the session knows up to date after a statement that succeeded.
func (o *observation) follow(p *rewrite.Plan) {
	o.settings.follow(p)
	o.stamp.follow(p)
	if p.Schema && p.Temporary == "" { // which is this session's alone
		o.observer.catalogs.changed(p)
	}
}

// warn puts warnings into the list of SHOW WARNINGS, and returns how many the statement's answer is to count.
func (o *observation) warn(due []record.Warning) int {
	for _, w := range due {
		o.ps.Log.Debug().Str("finding", w.Finding).Uint16("code", w.Code).Msg("warning")
	}
	if !o.observer.Warn || o.ps.Quiet() {
		return 0
	}
	return o.warnings.add(due)
}
