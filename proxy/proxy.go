// Package proxy accepts client connections and gives each of them, together with a way to its upstream server, to the
// wire protocol's own session loop (packages proxy/pgwire and proxy/mysqlwire). It knows neither protocol, neither
// oracles nor scheduling.
//
// One client connection is one upstream connection. The end is graceful: when the context of Serve ends, nothing more
// is accepted, each session learns of it (Session.Draining) and has Timeouts.Grace to come to a quiet point; after that its
// context ends and its client connection is closed.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Protocol is a wire protocol.
type Protocol string

// The wire protocols.
const (
	Postgres Protocol = "postgres"
	MySQL    Protocol = "mysql"
)

// Mode is what is done with the traffic.
type Mode string

// The modes. Pass only forwards; observe also rewrites, records and warns; control also decides who goes next.
const (
	Pass    Mode = "pass"
	Observe Mode = "observe"
	Control Mode = "control"
)

// Observes reports whether statements are rewritten and recorded.
func (m Mode) Observes() bool { return m == Observe || m == Control }

// Address is where to listen or to dial.
type Address struct {
	Network string // "tcp" or "unix"
	Addr    string // host:port, or the path of the socket
}

// ParseAddress reads host:port, a path, or unix:path.
func ParseAddress(s string) (Address, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		s = path
		if !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, ".") {
			s = "./" + s
		}
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") {
		return Address{Network: "unix", Addr: s}, nil
	}
	if _, _, err := net.SplitHostPort(s); err != nil {
		return Address{}, fmt.Errorf("address %q: %w", s, err)
	}
	return Address{Network: "tcp", Addr: s}, nil
}

// String gives a form that ParseAddress reads.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Addr
	}
	return a.Addr
}

// Timeouts limit waits. A zero field takes the default.
type Timeouts struct {
	Dial    time.Duration // to connect to the upstream; default 10 s
	Startup time.Duration // from accepting a client to the end of its authentication; default 60 s, as PostgreSQL's authentication_timeout
	Grace   time.Duration // for sessions to finish their transactions at the end; default 10 s
}

// Limits bound what is held. A zero field takes the default.
type Limits struct {
	Sessions int // client connections of one listener at a time; default 10 000
	Logins   int // of them, those that have not logged in; default 100
	Text     int // bytes of one statement that is looked at; longer ones pass as they are, opaque; default 1 MiB
	Row      int // bytes of one row that is held in memory where a part of it must be cut off; default 1 MiB
	Prepared int // prepared statements remembered of one session; default 10 000
}

// Config is one listener and the server behind it.
type Config struct {
	Name        string // for the log; default the listen address
	Listen      Address
	Protocol    Protocol
	Upstream    Address
	Mode        Mode
	ClientTLS   ClientTLS
	UpstreamTLS UpstreamTLS
	Timeouts    Timeouts
	Limits      Limits
	Sample      float64 // mode observe: the share of the sessions that are observed; the others pass; 0: all are
	Seed        uint64  // decides which ones, by their ids
	Gate        Gate    // mode control: who goes next; nil in the other modes
	// Quiet says, from one moment to the next, that clients get no warnings; nil: they get them.
	Quiet *atomic.Bool
	// Tap gives the tap of a session; nil: no session has one.
	Tap func(*Session) Tap
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, c.Listen.String())
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	wait := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	wait(&c.Timeouts.Dial, 10*time.Second)
	wait(&c.Timeouts.Startup, 60*time.Second)
	wait(&c.Timeouts.Grace, 10*time.Second)
	def(&c.Limits.Sessions, 10_000)
	def(&c.Limits.Logins, 100)
	def(&c.Limits.Text, 1<<20)
	def(&c.Limits.Row, 1<<20)
	def(&c.Limits.Prepared, 10_000)
	return c
}

// Handler is a wire protocol's session loop.
type Handler interface {
	// Serve speaks with one client until it leaves. It closes every connection that it dialled and waits for every
	// goroutine that it started; the client's connection is closed by the caller. It returns when ctx ends. The error
	// says why wirecheck could not do its work; a client that leaves is none.
	Serve(ctx context.Context, s *Session) error
	// Refuse tells a client, in its protocol, that there are too many of them.
	Refuse(ctx context.Context, s *Session) error
}

// Session is one client connection as it is given to a Handler.
type Session struct {
	ID       uint64 // unique in the process, from 1
	Client   net.Conn
	Config   *Config
	Log      zerolog.Logger
	Draining <-chan struct{} // closed when the process wants to end: finish the transaction, then leave
	// Backend is the server's number of the connection, as its lock views and KILL know it; 0 until it is known.
	Backend uint64
	// User and Program are who logged in, and what the client calls itself (application_name, program_name).
	User, Program string

	tls     *certificates
	tap     Tap // nil: none
	logins  *logins
	login   *login
	leftOut *atomic.Uint64 // counts the session when it has logged in; nil: it is observed, or counted
}

// Observed reports whether the session's statements are to be looked at: in the modes that observe, unless Config.Sample leaves it out.
func (s *Session) Observed() bool {
	c := s.Config
	return c.Mode.Observes() && (c.Sample == 0 || rand.New(rand.NewPCG(c.Seed, s.ID)).Float64() < c.Sample)
}

// Dial connects to the session's upstream.
func (s *Session) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Config.Timeouts.Dial)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, s.Config.Upstream.Network, s.Config.Upstream.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.Config.Upstream, Reason(err))
	}
	if s.tap != nil {
		return &tappedServer{conn, s.tap}, nil
	}
	return conn, nil
}

// Reason takes the addresses and calls off a network error, which the message around it names already.
func Reason(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("no answer in time")
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}

// Proxy is a set of listeners.
type Proxy struct {
	listeners []*listener
	log       zerolog.Logger
	sessions  atomic.Uint64
	leftOut   atomic.Uint64
}

// LeftOut is how many sessions Config.Sample has left out that have logged in.
func (p *Proxy) LeftOut() int { return int(p.leftOut.Load()) }

type listener struct {
	config  Config
	handler Handler
	tls     atomic.Pointer[certificates]
	socket  net.Listener
	open    atomic.Int64
	logins  *logins
}

// Listen opens the listeners of the configs; handler gives the session loop for one of them.
func Listen(ctx context.Context, log zerolog.Logger, handler func(Config) (Handler, error), configs ...Config) (*Proxy, error) {
	p := &Proxy{log: log}
	for _, c := range configs {
		l, err := listen(ctx, c.withDefaults(), handler)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.listeners = append(p.listeners, l)
	}
	return p, nil
}

func listen(ctx context.Context, c Config, handler func(Config) (Handler, error)) (*listener, error) {
	certs, err := newCertificates(&c)
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", c.Name, err)
	}
	h, err := handler(c)
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", c.Name, err)
	}
	var lc net.ListenConfig
	socket, err := lc.Listen(ctx, c.Listen.Network, c.Listen.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", c.Listen, Reason(err))
	}
	if c.Listen.Network == "unix" { // as the servers' own sockets: whoever connects must log in
		if err := os.Chmod(c.Listen.Addr, 0o777); err != nil {
			return nil, errors.Join(fmt.Errorf("listen on %s: %w", c.Listen, Reason(err)), socket.Close())
		}
	}
	l := &listener{config: c, handler: h, socket: socket, logins: &logins{most: c.Limits.Logins, patience: loginPatience, limit: c.Timeouts.Startup}}
	l.tls.Store(certs)
	return l, nil
}

// Reload reads the files of certificates again, for the sessions that begin from now on. If one of them is not good, all listeners keep what
// they have.
func (p *Proxy) Reload() error {
	next := make([]*certificates, len(p.listeners))
	for i, l := range p.listeners {
		var err error
		if next[i], err = newCertificates(&l.config); err != nil {
			return fmt.Errorf("listener %s: %w", l.config.Name, err)
		}
		if !l.config.ClientTLS.Configured() {
			next[i].client = l.tls.Load().generated()
		}
	}
	for i, l := range p.listeners {
		l.tls.Store(next[i])
	}
	return nil
}

// Addrs gives the addresses of the listeners, in the order of the configs, with the ports that the system chose.
func (p *Proxy) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(p.listeners))
	for i, l := range p.listeners {
		addrs[i] = l.socket.Addr()
	}
	return addrs
}

// Close closes the listeners of a Proxy that is not served.
func (p *Proxy) Close() error {
	var errs []error
	for _, l := range p.listeners {
		if err := l.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close listener %s: %w", l.config.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Serve accepts and serves clients until ctx ends, then ends gracefully. When it returns, no goroutine of a session
// runs any more and the listeners are closed. The error says what made it end before ctx did.
func (p *Proxy) Serve(ctx context.Context) error {
	// Sessions outlive ctx by the grace time; each gets an own context that its listener ends.
	var g errgroup.Group
	failed, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range p.listeners {
		g.Go(func() error {
			err := p.serve(failed, l)
			if err != nil {
				cancel() // one listener that cannot go on ends all
			}
			return err
		})
	}
	return g.Wait()
}

func (p *Proxy) serve(ctx context.Context, l *listener) error {
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var g errgroup.Group
	g.Go(func() error { // ends accepting
		<-ctx.Done()
		if err := l.socket.Close(); err != nil {
			return fmt.Errorf("close listener %s: %w", l.config.Name, err)
		}
		return nil
	})
	p.log.Info().Str("listener", l.config.Name).Stringer("address", l.socket.Addr()).
		Stringer("upstream", l.config.Upstream).Str("protocol", string(l.config.Protocol)).Str("mode", string(l.config.Mode)).Msg("listening")
	var sessions errgroup.Group
	err := p.accept(ctx, l, func(conn net.Conn) { p.arrived(ctx, hard, l, conn, &sessions) })
	l.logins.close() // from here on no session begins
	grace := time.AfterFunc(l.config.Timeouts.Grace, kill)
	defer grace.Stop()
	if err != nil {
		kill()
		_ = l.socket.Close() // the socket is broken already; err says how
		return errors.Join(err, sessions.Wait())
	}
	return errors.Join(sessions.Wait(), g.Wait())
}

// accept hands over connections until ctx ends or the socket is broken.
func (p *Proxy) accept(ctx context.Context, l *listener, start func(net.Conn)) error {
	pause := time.Duration(0)
	for {
		conn, err := l.socket.Accept()
		switch {
		case err == nil:
			pause = 0
			start(conn)
		case ctx.Err() != nil:
			return nil
		case passing(err):
			// Out of file descriptors or memory for a moment: those that have a connection go on. There is no event that
			// tells when it is over, so we try again ever more slowly, as net/http does.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			p.log.Warn().Err(err).Str("listener", l.config.Name).Dur("pause", pause).Msg("accept refused")
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		default:
			return fmt.Errorf("accept on %s: %w", l.config.Listen, err)
		}
	}
}

// passing reports whether accepting may succeed later.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// arrived has a client wait until it may log in, and serves it then. soft ends when the process wants to end, hard when the grace time is over.
func (p *Proxy) arrived(soft, hard context.Context, l *listener, conn net.Conn, sessions *errgroup.Group) {
	start, one := time.Now(), &login{left: func() bool { return left(conn) }}
	one.drop = func(left bool) {
		if !left {
			p.log.Info().Str("listener", l.config.Name).Stringer("client", conn.RemoteAddr()).Msg("a client had to go before it could log in: too many others try")
		}
		_ = conn.Close() // it got nothing, and nothing was read
	}
	one.begin = func() {
		ctx, cancel := context.WithCancel(hard)
		one.end = func() {
			cancel()
			_ = conn.Close() // the session closes it once more
		}
		sessions.Go(func() error {
			defer cancel()
			p.session(ctx, soft, l, conn, one, start)
			return nil
		})
	}
	l.logins.enter(one)
}

// session serves a client that came at start, until ctx ends.
func (p *Proxy) session(ctx, soft context.Context, l *listener, conn net.Conn, one *login, start time.Time) {
	id := p.sessions.Add(1)
	log := p.log.With().Uint64("session", id).Str("listener", l.config.Name).Logger()
	s := &Session{ID: id, Client: conn, Config: &l.config, Log: log, Draining: soft.Done(), tls: l.tls.Load(), logins: l.logins, login: one}
	if l.config.Mode.Observes() && !s.Observed() {
		s.leftOut = &p.leftOut
	}

	serve := l.handler.Serve
	if open := l.open.Add(1); open > int64(l.config.Limits.Sessions) {
		log.Warn().Int64("open", open-1).Msg("too many sessions")
		serve = l.handler.Refuse
	}
	defer l.open.Add(-1)
	log.Info().Stringer("client", conn.RemoteAddr()).Msg("session opened")
	if l.config.Tap != nil {
		s.tap = &safeTap{tap: l.config.Tap(s), log: log}
		s.Client = &tappedClient{Conn: conn, tap: s.tap}
		defer func() { s.tap.Closed(time.Now()) }()
	}
	err := Catch(func() error { return serve(ctx, s) })
	if l.config.Gate != nil {
		err = errors.Join(err, Catch(func() error {
			l.config.Gate.Left(s)
			return nil
		}))
	}
	if l.logins.leave(one) {
		log.Info().Msg("the client lost its place to one that waited: it did not log in in time")
	}
	closing := conn.Close()
	if errors.Is(closing, net.ErrClosed) {
		closing = nil
	}
	done := log.Info()
	if err = errors.Join(err, closing); err != nil {
		done = log.Warn().Err(err)
	}
	var defect *PanicError
	if errors.As(err, &defect) {
		done = log.Error().Err(err).Bytes("stack", defect.Stack)
	}
	done.Dur("duration", time.Since(start)).Msg("session closed")
}
