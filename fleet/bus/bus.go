// Package bus connects a process to the NATS JetStream that the processes of a fleet share: a cluster by its URL, or a server in one of the
// processes themselves, whose store is a folder.
//
// Nothing of what a fleet keeps or hands out is wirecheck's own: messages, their numbers, work items and keys are JetStream's
// (https://docs.nats.io/nats-concepts/jetstream).
package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bus is a connection to a fleet's JetStream. It connects again for as long as it is open.
type Bus struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	where string
	host  *host // nil: a server elsewhere
	// closing says that the connection ends because its owner wants it.
	closing atomic.Bool
}

// Options say how to connect.
type Options struct {
	Name string // of the process, for those who look at the server's connections
	// Patient goes on without a server: it connects when there is one. Otherwise Open fails.
	Patient bool
	// Changed is told when the connection is lost (with the reason) and when it is there again (nil); may be nil. It is called by one
	// goroutine, which must not be held up, and no more once Close is called.
	Changed func(lost error)
}

// Embedded is the form of an address that means a server in one of the fleet's own processes, with its store in the folder that follows.
const Embedded = "embedded:"

// hurry is how long a process waits for a server's answer before it tries again or gives up.
const hurry = 5 * time.Second

// Check says what is wrong with the address of a JetStream; see Open.
func Check(where string) error {
	_, _, err := parse(where)
	return err
}

// Open connects to where: nats://HOST:PORT or tls://HOST:PORT (several servers of a cluster with commas between them), with a user and a password or
// a token before the @, and, behind a question mark, creds=FILE, ca=FILE, cert=FILE and key=FILE; or embedded:DIR. Of the processes that name one
// DIR, the first one has the server, which listens on loopback and asks for a token that only who can read the folder has. When it ends, another
// one takes the folder over.
func Open(ctx context.Context, where string, o Options) (*Bus, error) {
	servers, options, err := parse(where)
	if err != nil {
		return nil, err
	}
	b := &Bus{where: Redacted(where)}
	lost := func(err error) {
		if o.Changed != nil && !b.closing.Load() {
			o.Changed(err)
		}
	}
	if dir, embedded := strings.CutPrefix(where, Embedded); embedded {
		if b.host, err = openHost(dir); err != nil {
			return nil, fmt.Errorf("open %s: %w", where, err)
		}
		servers = b.host.url()
	}
	options = append(options,
		nats.Name("wirecheck "+o.Name), nats.Timeout(hurry), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(o.Patient),
		// Of a server that is silent, or takes nothing, another connection is tried: what stands between may have forgotten this one.
		nats.FlusherTimeout(hurry), nats.ReconnectOnFlusherError(), nats.PingInterval(hurry), nats.MaxPingsOutstanding(2),
		nats.CustomReconnectDelay(func(int) time.Duration {
			b.host.takeOver()
			return reconnectWait
		}),
		nats.ReconnectBufSize(-1), // who sends keeps what is not sent
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = errors.New("the connection was closed")
			}
			lost(err)
		}),
		nats.ConnectHandler(func(*nats.Conn) { lost(nil) }),
		nats.ReconnectHandler(func(*nats.Conn) { lost(nil) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // who waits for an answer gets its own error
	)
	b.conn, err = nats.Connect(servers, options...)
	for n := 0; err != nil && b.host != nil && ctx.Err() == nil && n < int(2*hurry/reconnectWait); n++ {
		time.Sleep(reconnectWait) // the process that has the server is still starting it, or has just ended
		b.host.takeOver()
		b.conn, err = nats.Connect(servers, options...)
	}
	if err != nil {
		b.host.close()
		return nil, fmt.Errorf("connect to %s: %w", b.where, err)
	}
	if b.js, err = jetstream.New(b.conn, jetstream.WithDefaultTimeout(hurry)); err != nil {
		b.Close()
		return nil, fmt.Errorf("connect to %s: %w", b.where, err)
	}
	if o.Patient {
		return b, nil
	}
	if _, err := b.js.AccountInfo(ctx); err != nil {
		b.Close()
		if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			err = errors.New("the server has no JetStream: start it with nats-server -js, or allow it to this account")
		}
		return nil, fmt.Errorf("connect to %s: %w", b.where, err)
	}
	return b, nil
}

// reconnectWait is the pause between two attempts to connect.
const reconnectWait = 200 * time.Millisecond

// JetStream gives access to streams and keys.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Conn is the connection, for subjects that nothing keeps.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// Where is the address, without passwords.
func (b *Bus) Where() string { return b.where }

// URL is the address by which other processes of this machine reach the server of an embedded bus; it holds the token. Empty for a server elsewhere.
func (b *Bus) URL() string {
	if b.host == nil {
		return ""
	}
	return b.host.url()
}

// Close ends the connection, and the server if it is this process's. What was sent and not answered is lost: who sends waits for answers.
func (b *Bus) Close() {
	b.closing.Store(true)
	b.conn.Close()
	b.host.close()
}

// Redacted is an address without passwords and tokens.
func Redacted(where string) string {
	if strings.HasPrefix(where, Embedded) {
		return where
	}
	var list []string
	for one := range strings.SplitSeq(where, ",") {
		u, err := url.Parse(one)
		if err != nil {
			list = append(list, "(an address that cannot be read)")
			continue
		}
		if _, has := u.User.Password(); u.User != nil && !has { // a token
			u.User = url.User("xxxxx")
		}
		list = append(list, u.Redacted())
	}
	return strings.Join(list, ",")
}

// parse reads an address.
func parse(where string) (servers string, options []nats.Option, err error) {
	if dir, embedded := strings.CutPrefix(where, Embedded); embedded {
		if dir == "" {
			return "", nil, errors.New("embedded: needs a folder, as in embedded:fleet/")
		}
		return "", nil, nil
	}
	where, query, _ := strings.Cut(where, "?")
	for one := range strings.SplitSeq(where, ",") {
		u, err := url.Parse(one)
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
			return "", nil, fmt.Errorf("%s is no address of NATS: write nats://HOST:PORT, tls://HOST:PORT or embedded:DIR", Redacted(one))
		}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", Redacted(where), err)
	}
	for name := range values {
		switch name {
		case "creds":
			options = append(options, nats.UserCredentials(values.Get(name)))
		case "ca":
			options = append(options, nats.RootCAs(values.Get(name)))
		case "cert", "key":
			if values.Get("cert") == "" || values.Get("key") == "" {
				return "", nil, fmt.Errorf("%s: cert=FILE and key=FILE go together", Redacted(where))
			}
			if name == "cert" {
				options = append(options, nats.ClientCert(values.Get("cert"), values.Get("key")))
			}
		default:
			return "", nil, fmt.Errorf("%s: unknown option %q: creds, ca, cert and key are known", Redacted(where), name)
		}
	}
	return where, options, nil
}
