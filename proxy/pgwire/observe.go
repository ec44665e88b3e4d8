package pgwire

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgproto3/v2"
	"golang.org/x/sync/errgroup"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// observing is a session in observe mode. The goroutine that reads the client (client.go) is the only one that writes to
// the server, the one that reads the server (server.go) the only one that writes to the client.
type observing struct {
	*session
	database *database

	mu       sync.Mutex
	news     *sync.Cond // something below changed
	tracker  *record.Tracker
	queue    queue
	seq      uint64 // of the entries
	batch    uint64 // Syncs sent
	open     bool   // messages of the extended protocol were sent since the last Sync: the server is in a transaction, said or not
	skipping bool   // the server ignores everything up to a Sync that was not sent yet
	status   byte   // of the last ReadyForQuery
	lost     string // why answers could not be told apart any more; then everything passes as it is
	ended    bool   // nobody reads the server any more
	leaving  bool   // the process ends and so does the session
	draining bool

	statements map[string]*prepared
	portals    map[string]*portal
	named      int // prepared statements and portals with a name and hidden columns, so far

	asked   bool // settings are known
	facts   postgres.Session
	reader  readerKey
	catalog *rewrite.Catalog
	changes uint64           // of the database when catalog was read
	within  *rewrite.Catalog // as this session's open transaction sees it, where that was asked; see learnInside
	schema  bool             // this session changed the schema, perhaps in a transaction that is still open
	mute    bool             // client_min_messages leaves warnings out
	due     []record.Warning
	gated   turn

	// Of the goroutine that reads the server:
	held    []byte // a CommandComplete that waits for the ReadyForQuery behind it
	inside  bool   // a message was begun and not ended
	parting bool   // the server said why it ends the session

	terminated bool // the client sent Terminate; of the goroutine that reads the client, until both ended
}

// maxDue bounds the warnings that wait for their client.
const maxDue = 100

func (s *session) observe() error {
	o := &observing{
		session:    s,
		database:   s.observer.at(databaseKey{s.Config.Upstream.String(), s.startup.database()}),
		statements: make(map[string]*prepared),
		portals:    make(map[string]*portal),
		status:     'I',
	}
	o.news = sync.NewCond(&o.mu)
	o.Backend = uint64(o.backend)
	o.User, o.Program = s.startup.params["user"], s.parameters["application_name"]
	o.fromClient.before = o.toServer.flush
	o.tracker = record.NewTracker(s.observer.recorder, history.Event{
		Engine: "postgres", Server: s.parameters["server_version"], Database: s.startup.database(), User: s.startup.params["user"],
		Client: s.parameters["application_name"], Backend: uint64(s.backend), At: time.Now().UnixNano(), Session: s.Number(),
	}, s.observer.limits)
	o.encoding()

	var fromClient, fromServer error
	if fromServer = o.introduce(); fromServer == nil {
		fromClient, fromServer = o.both()
	}
	o.mu.Lock()
	o.tracker.Close() // the warnings have no client any more
	o.mu.Unlock()
	return o.farewell(fromClient, fromServer)
}

// both runs the two directions until the session ends.
func (o *observing) both() (fromClient, fromServer error) {
	var g errgroup.Group
	ended := make(chan struct{})
	g.Go(func() error {
		fromClient = o.requests()
		left := fromClient
		if gone(left) {
			left = nil
		}
		_ = o.clientEnded(left) // the error is judged in farewell
		return nil
	})
	g.Go(func() error {
		defer close(ended)
		fromServer = o.answers()
		o.mu.Lock()
		o.ended = true
		o.news.Broadcast()
		o.mu.Unlock()
		_ = o.serverEnded(fromServer)
		return nil
	})
	g.Go(func() error {
		select {
		case <-ended:
		case <-o.Draining:
			o.drain()
		}
		return nil
	})
	_ = g.Wait() // the functions return nothing
	return fromClient, fromServer
}

// gone reports whether the client closed its connection between two messages.
func gone(err error) bool {
	var e *sideError
	return errors.As(err, &e) && e.side == client && e.err == io.EOF
}

// farewell tells the client why the session ended, if there is something to tell and a place to put it.
func (o *observing) farewell(fromClient, fromServer error) error {
	var e *sideError
	switch {
	case o.inside:
		return firstOf(quietEnd(fromClient), quietEnd(fromServer))
	case o.leaving, o.ctx.Err() != nil:
		o.fatal(shuttingDown())
		return nil
	case errors.Is(fromClient, errLength):
		o.fatal(&pgproto3.ErrorResponse{Code: invalidMessage, Message: "invalid message length"})
		return fromClient
	case errors.As(fromClient, &e) && e.side == client && !errors.Is(e, os.ErrDeadlineExceeded):
		return nil // it is gone, however
	case o.terminated:
		return nil
	case errors.As(fromServer, &e) && e.side == server:
		if !o.parting {
			o.fatal(o.sessionLost(fromServer))
			return fromServer
		}
		return nil
	case errors.As(fromServer, &e):
		return nil
	}
	return firstOf(fromClient, fromServer)
}

func (o *observing) sessionLost(err error) *pgproto3.ErrorResponse { return o.session.lost(err) }

// quietEnd drops the errors by which connections end.
func quietEnd(err error) error {
	if quiet(err) == nil {
		return nil
	}
	var e *sideError
	if errors.As(err, &e) && e.side == client {
		return nil
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// drain ends the session as soon as it is idle.
func (o *observing) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.draining = true
	o.leave()
}

// leave ends the session if it is to end and is idle. mu is held.
func (o *observing) leave() {
	if !o.draining || o.leaving || o.status != 'I' || o.open || !o.queue.empty() || o.skipping {
		return
	}
	o.leaving = true
	_ = o.Client.SetReadDeadline(past)
	_ = o.server.SetReadDeadline(past)
}

// idle reports whether the server has nothing to do and no transaction open. mu is held.
func (o *observing) idle() bool {
	return o.status == 'I' && !o.open && o.queue.empty() && !o.skipping && o.lost == ""
}

// lose gives up: answers cannot be told apart any more. mu is held.
func (o *observing) lose(why string) {
	if o.lost != "" {
		return
	}
	o.lost = why
	o.ungate()
	o.Log.Warn().Str("why", why).Msg("session is not observed any more")
	o.queue.items = nil
	o.news.Broadcast()
}

// encoding takes over what the server reports of the session's encoding and its literals. mu is held, or nobody else
// there yet.
func (o *observing) encoding() {
	o.facts.Encoding = o.parameters["client_encoding"]
	o.facts.Backslashes = o.parameters["standard_conforming_strings"] == "off"
}

// sent takes note of what a plan does to the session, from the moment that it is under way. mu is held.
func (o *observing) sent(p *rewrite.Plan, unparsed bool) {
	if p.Control.Verb == rewrite.ControlReset || unparsed ||
		p.Control.Verb == rewrite.ControlLevel && p.Control.Scope == rewrite.ScopeSession {
		o.asked = false
	}
	if !o.asked || changesSchema(p) || p.Control.Verb == rewrite.ControlRollbackTo {
		o.within = nil
	}
	if unparsed || p.Control.Verb == rewrite.ControlReset && p.Verb != "set" {
		o.facts.Temp, o.facts.TempNames = true, nil
	}
	if changesSchema(p) {
		o.schema = true
	}
	if p.Temp {
		o.facts.Temp, o.facts.TempNames = true, nil
	}
	if p.Verb == "set" && mentions(p.Text, "client_min_messages") || p.Verb == "select" && mentions(p.Text, "set_config") {
		o.asked = false
	}
}

// changesSchema reports whether a statement changes the schema for all sessions. RESET ALL and the like change what this
// session sees of it, which is learned with the settings.
func changesSchema(p *rewrite.Plan) bool {
	return p.Schema && p.Control.Verb != rewrite.ControlReset
}

// mentions reports whether a word, which has an underscore, is in the text, in any case.
func mentions(text, word string) bool {
	at := strings.IndexByte(word, '_')
	for from := 0; ; {
		i := strings.IndexByte(text[from:], '_')
		if i < 0 {
			return false
		}
		from += i + 1
		if start := from - 1 - at; start >= 0 && start+len(word) <= len(text) && strings.EqualFold(text[start:start+len(word)], word) {
			return true
		}
	}
}

// known gives what statements are planned with. A catalog that may not be the server's is none. mu is held.
func (o *observing) known() (*rewrite.Catalog, postgres.Session) {
	switch {
	case o.within != nil && o.observer.rewriter.Hides():
		return o.within, o.facts
	case !o.asked || o.schema:
		return nil, o.facts
	case o.database.changes.Load() != o.changes && !o.observer.rewriter.Hides():
		// Others changed something. With hidden columns what was known before is the better guess: without it the columns
		// would show until the transaction ends.
		return nil, o.facts
	}
	return o.catalog, o.facts
}

// errGone ends the goroutine that reads the client when the other one has ended.
var errGone = errors.New("the server's answers are not read any more")

// errNoAnswer says that the server's answers to our own questions make no sense.
var errNoAnswer = errors.New("the server's answer could not be understood")
