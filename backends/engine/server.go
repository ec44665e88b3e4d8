package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"wirecheck/history/prose"
	"wirecheck/internal/certificate"
)

const (
	startAttempts = 5                     // with another port each, when somebody else took the one that was free
	readyPoll     = 10 * time.Millisecond // how often a starting server is asked whether it serves
	stopLimit     = 10 * time.Second      // for the server's own shutdown, before it is killed
	logTail       = 4 << 10               // bytes of the log that an error message shows
)

// errPortTaken says that somebody else got the port between our looking and the server's binding.
var errPortTaken = errors.New("port taken by another process")

// Server is a private server. Its methods may be called from several goroutines, Close included.
type Server struct {
	Engine  string // Descriptor.Name
	Version string // as the server says it
	Host    string // always loopback
	Port    int
	Socket  string // path of the Unix socket (PostgreSQL: of its folder)
	// User and Password are the superuser's.
	User, Password string
	// CAFile, and a client's certificate made out to the superuser, are set if TLS is on.
	CAFile, CertFile, KeyFile string
	// Authority signs further certificates that the server accepts; nil without TLS.
	Authority *certificate.Authority

	alike   bool // see Program.Alike
	folder  *Folder
	process *os.Process // nil: see Embed
	kill    func()      // of an embedded one
	stop    syscall.Signal
	done    chan struct{}
	exit    error // valid once done is closed
	close   func() error
}

// Program says how a private server is made and started.
type Program struct {
	Engine  string
	Path    string
	Account Account
	User    string   // the superuser
	Folders []string // in the server's folder, besides tmp
	// Prepare fills the folder. Certificates are in it, if TLS is on.
	Prepare func(ctx context.Context, f *Folder, s *Server) error
	Args    func(f *Folder, port int) []string
	Socket  string // in the folder; empty: there is none
	Alike   bool   // who logs in by the socket is the same user with the same rights as by TCP
	// Stop is the signal that makes the server end at once, also sent when this process dies.
	Stop syscall.Signal
	// PortTaken is what the server's log says if it could not bind its port. It may say so in another file: then the port is still taken.
	PortTaken string
	// Ready returns nil once the server serves. It is asked again and again.
	Ready func(ctx context.Context, s *Server) error
	// Finish completes a server that serves; nil: it is complete.
	Finish func(ctx context.Context, s *Server) error
}

// Launch makes a folder, starts the program in it and waits until it serves. The folder is removed when that fails, and
// otherwise by Close.
func Launch(ctx context.Context, o Options, p Program) (*Server, error) {
	f, err := NewFolder(p.Engine, p.Account)
	if err != nil {
		return nil, err
	}
	s := &Server{User: p.User, Password: o.Password}
	if s.Password == "" {
		s.Password = NewPassword()
	}
	if err := s.prepare(ctx, f, o, p); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s server: %w", p.Engine, err), f.Remove())
	}
	if s, err = launch(ctx, f, s, p); err != nil || p.Finish == nil {
		return s, err
	}
	if err := p.Finish(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// launch starts the program in a folder that is prepared.
func launch(ctx context.Context, f *Folder, s *Server, p Program) (_ *Server, err error) {
	for range startAttempts {
		var port int
		if port, err = freePort(); err != nil {
			break
		}
		if err = s.launch(ctx, f, p, port); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s server: %w", p.Engine, err), f.Remove())
	}
	return s, nil
}

func (s *Server) prepare(ctx context.Context, f *Folder, o Options, p Program) error {
	for _, dir := range p.Folders {
		if err := f.Mkdir(dir); err != nil {
			return err
		}
	}
	if o.TLS {
		if err := s.enableTLS(f, p.User); err != nil {
			return err
		}
	}
	return p.Prepare(ctx, f, s)
}

// Embed gives a server that is a library in this process: kill ends what it is doing, and its connections.
func Embed(f *Folder, s *Server, kill func()) *Server {
	s.folder, s.done = f, make(chan struct{})
	s.kill = sync.OnceFunc(func() { kill(); close(s.done) })
	s.close = sync.OnceValue(func() error { s.kill(); return f.Remove() })
	return s
}

func (s *Server) launch(ctx context.Context, f *Folder, p Program, port int) error {
	logFile, err := os.OpenFile(f.Join("log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := f.Command(p.Path, p.Args(f, port)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	bindToParent(cmd.SysProcAttr, p.Stop)

	s.Engine, s.Host, s.Port = p.Engine, "127.0.0.1", port
	if p.Socket != "" {
		s.Socket, s.alike = f.Join(p.Socket), p.Alike
	}
	s.folder, s.stop, s.done = f, p.Stop, make(chan struct{})
	if err := s.run(cmd); err != nil {
		return err
	}
	if err := s.await(ctx, p); err != nil {
		return errors.Join(err, s.end())
	}
	s.close = sync.OnceValue(func() error { return errors.Join(s.end(), f.Remove()) })
	return nil
}

// run starts cmd and leaves a goroutine that waits for its end. The goroutine keeps its thread, since the kernel's
// parent-death signal is about the thread and not the process (prctl(2); golang/go issue 27505).
func (s *Server) run(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.exit = cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process = cmd.Process
	return nil
}

// await waits until the server serves, ends, or ctx does.
func (s *Server) await(ctx context.Context, p Program) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := p.Ready(ctx, s)
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			log := s.Log()
			if taken(s.Port) || p.PortTaken != "" && strings.Contains(log, p.PortTaken) {
				return errPortTaken
			}
			return fmt.Errorf("the server ended: %v; its log ends with:\n%s", s.exit, prose.Tail(strings.TrimSpace(log), logTail))
		case <-ctx.Done():
			return fmt.Errorf("wait until the server serves: %w (last answer: %v); its log ends with:\n%s", ctx.Err(), err, prose.Tail(strings.TrimSpace(s.Log()), logTail))
		case <-tick.C:
		}
	}
}

// Folder is where the server has its files.
func (s *Server) Folder() string { return s.folder.Path }

// PID is the server's process: this one, if the server is embedded.
func (s *Server) PID() int {
	if s.process == nil {
		return os.Getpid()
	}
	return s.process.Pid
}

// Done is closed when the server's process has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Address is the server's TCP address.
func (s *Server) Address() string { return net.JoinHostPort(s.Host, fmt.Sprint(s.Port)) }

// Log is what the server has written to its log so far.
func (s *Server) Log() string {
	if s.process == nil {
		return ""
	}
	b, err := os.ReadFile(s.folder.Join("log"))
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(b)
}

// Kill ends the server's process at once, as a crash would, and the processes that it has started: one of PostgreSQL's that
// stands still would keep its client waiting. The folder stays until Close.
func (s *Server) Kill() error {
	if s.kill != nil {
		s.kill()
		return nil
	}
	if err := s.process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill server: %w", err)
	}
	<-s.done
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return endProcessesIn(ctx, s.folder.Path)
}

// Close ends the server and removes everything that it had. Calling it again gives the first call's answer.
func (s *Server) Close() error { return s.close() }

func (s *Server) end() error {
	if err := s.process.Signal(s.stop); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop server: %w", err)
	}
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-s.done:
		return nil
	case <-limit.C:
		return s.Kill()
	}
}

// enableTLS makes the certificates and puts them into the server's folder, as tls/ca.pem, server.pem, server.key,
// client.pem and client.key.
func (s *Server) enableTLS(f *Folder, client string) error {
	ca, err := certificate.NewAuthority("wirecheck private server")
	if err != nil {
		return err
	}
	server, err := ca.Issue("localhost", "localhost", "127.0.0.1", "::1")
	if err != nil {
		return err
	}
	user, err := ca.Issue(client)
	if err != nil {
		return err
	}
	if err := f.Mkdir("tls"); err != nil {
		return fmt.Errorf("make folder for certificates: %w", err)
	}
	files := []struct {
		name    string
		content []byte
	}{
		{"tls/ca.pem", ca.PEM()},
		{"tls/server.pem", server.CertPEM}, {"tls/server.key", server.KeyPEM},
		{"tls/client.pem", user.CertPEM}, {"tls/client.key", user.KeyPEM},
	}
	for _, file := range files {
		if err := f.Write(file.name, file.content); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
	}
	s.Authority, s.CAFile, s.CertFile, s.KeyFile = ca, f.Join("tls/ca.pem"), f.Join("tls/client.pem"), f.Join("tls/client.key")
	return nil
}

// NewPassword makes up a password that needs no quoting anywhere.
func NewPassword() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails (crypto/rand, since Go 1.24)
	return hex.EncodeToString(b)
}

// Output runs a program as the folder's account until it ends; its output is part of the error. ctx ends it early.
func Output(ctx context.Context, f *Folder, path string, args ...string) error {
	var out bytes.Buffer
	cmd := f.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // with its children: install scripts have some
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("run %s: %w; it said:\n%s", path, errors.Join(err, ctx.Err()), prose.Tail(strings.TrimSpace(out.String()), logTail))
	}
	return nil
}

// taken reports whether another process has a port.
func taken(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		_ = l.Close() // it was bound for this question only
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// freePort finds a port that nobody uses right now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	return port, nil
}
