package bus

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// host is a process's part in an embedded server: it has the server, or knows where it is. A nil host has no part.
type host struct {
	dir     string
	address *url.URL // with the token, the same for all times

	mu     sync.Mutex
	lock   *os.File // held by who has the server
	server *server.Server
	closed bool
}

// addressFile has the server's address with its token.
const addressFile = "address"

// openHost starts the server of a folder, or finds out where it is.
func openHost(dir string) (*host, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	h := &host{dir: dir}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(lock, syscall.LOCK_EX); err != nil { // whoever else begins writes the address first
		return nil, errors.Join(err, lock.Close())
	}
	err = h.readAddress()
	if errors.Is(err, os.ErrNotExist) {
		err = h.newAddress()
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return nil, err
	}
	return h, h.start()
}

// url is the server's address, with the token.
func (h *host) url() string { return h.address.String() }

func (h *host) readAddress() error {
	text, err := os.ReadFile(filepath.Join(h.dir, addressFile))
	if err != nil {
		return err
	}
	u, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil || u.Scheme != "nats" || u.User == nil || u.Port() == "" {
		return fmt.Errorf("%s is damaged: no process may use the folder while you remove that file", filepath.Join(h.dir, addressFile))
	}
	h.address = u
	return nil
}

// newAddress chooses a free port and a token.
func (h *host) newAddress() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	h.address = &url.URL{Scheme: "nats", User: url.User(rand.Text()), Host: l.Addr().String()}
	fresh := filepath.Join(h.dir, addressFile+".new")
	if err := os.WriteFile(fresh, []byte(h.address.String()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(h.dir, addressFile))
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// start starts the server, unless another process has it.
func (h *host) start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil || h.closed {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(h.dir, "server.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil // another one has it
		}
		return errors.Join(err, lock.Close())
	}
	s, err := h.serve()
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	h.lock, h.server = lock, s
	return nil
}

// serve starts the server in this process.
func (h *host) serve() (*server.Server, error) {
	port, err := net.LookupPort("tcp", h.address.Port())
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "wirecheck", Host: h.address.Hostname(), Port: port, Authorization: h.address.User.Username(),
		JetStream: true, StoreDir: h.dir, NoLog: true, NoSigs: true, MaxPayload: maxPayload, WriteDeadline: hurry,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(4 * hurry) {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, fmt.Errorf("a server on %s did not start: another program has the port, or the folder cannot be written", h.address.Host)
	}
	return s, nil
}

// maxPayload is the most that a message to an embedded server may have, in bytes: that of a server elsewhere by default.
const maxPayload = 1 << 20

// takeOver starts the server in place of a process that has ended.
func (h *host) takeOver() {
	if h == nil {
		return
	}
	if err := h.start(); err != nil {
		time.Sleep(reconnectWait) // it is tried again with the next attempt to connect
	}
}

func (h *host) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.server != nil {
		h.server.Shutdown()
		h.server.WaitForShutdown()
		h.lock.Close()
		h.server = nil
	}
}
