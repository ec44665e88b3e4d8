package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/live"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
	"wirecheck/proxy/pgwire"
)

// place is where a suite finds the server.
type place struct {
	host, user, password string
	port                 int
	direct               *engine.Server // the server itself, for what a suite needs before it starts
	mode                 string
}

// url is where a client of PostgreSQL finds a database.
func (at place) url(database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", at.user, at.password, at.host, at.port, database)
}

// dsn is where go-sql-driver finds a database.
func (at place) dsn(database string) string {
	return fmt.Sprintf("%s:%s@tcp(%s:%d)/%s?charset=utf8mb4", at.user, at.password, at.host, at.port, database)
}

// open starts a private server, and the proxy in front of it.
func open(ctx context.Context, product, mode string, settings map[string]string) (place, func() error, error) {
	d, err := backends.ByName(product)
	if err != nil {
		return place{}, nil, err
	}
	s, err := d.Start(ctx, engine.Options{Settings: settings})
	if err != nil {
		return place{}, nil, err
	}
	at := place{host: "127.0.0.1", port: s.Port, user: s.User, password: s.Password, direct: s}
	switch mode {
	case "pass":
		port, stop, err := pass(ctx, d, s)
		if err != nil {
			return at, nil, errors.Join(err, s.Close())
		}
		at.port = port
		return at, func() error { return errors.Join(stop(), s.Close()) }, nil
	case "observe":
		p, err := live.Open(ctx, zerolog.Nop(), d, s.Target(), nil)
		if err != nil {
			return at, nil, errors.Join(err, s.Close())
		}
		at.port = p.Through(s.Target()).Port
		return at, func() error { return errors.Join(p.Close(), s.Close()) }, nil
	}
	return at, s.Close, nil
}

// pass starts a proxy that forwards only.
func pass(ctx context.Context, d engine.Descriptor, s *engine.Server) (port int, stop func() error, err error) {
	c := proxy.Config{
		Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}, Protocol: proxy.Postgres, Mode: proxy.Pass,
		Upstream: proxy.Address{Network: "tcp", Addr: fmt.Sprintf("%s:%d", s.Host, s.Port)},
	}
	var h proxy.Handler = pgwire.New(nil)
	if d.Protocol == engine.ProtocolMySQL {
		c.Protocol, h = proxy.MySQL, mysqlwire.New(nil)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p, err := proxy.Listen(ctx, zerolog.Nop(), func(proxy.Config) (proxy.Handler, error) { return h, nil }, c)
	if err != nil {
		cancel()
		return 0, nil, err
	}
	var g errgroup.Group
	g.Go(func() error { return p.Serve(ctx) })
	return p.Addrs()[0].(*net.TCPAddr).Port, func() error { cancel(); return g.Wait() }, nil
}

// command runs a program of a suite in a folder. Its output goes to a file; that it failed is no error, since tests did.
func (p place) command(ctx context.Context, folder string, env []string, name string, args ...string) (output []byte, err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	output, err = cmd.CombinedOutput()
	file := filepath.Join(folder, "output-"+p.mode+".txt")
	if e := os.WriteFile(file, output, 0o644); e != nil {
		return nil, e
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return output, fmt.Errorf("%s did not end in time: %s", name, file)
	case err != nil && !errors.As(err, &exit):
		return output, err
	}
	return output, nil
}

// prepare executes statements on the server itself, with the product's own client.
func (p place) prepare(ctx context.Context, statements ...string) error {
	host, port := p.direct.Host, fmt.Sprint(p.direct.Port)
	cmd := exec.CommandContext(ctx, "mariadb", "-h", host, "-P", port, "-u", p.user)
	if p.direct.Engine == "postgres" {
		cmd = exec.CommandContext(ctx, "psql", "-h", host, "-p", port, "-U", p.user, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-q")
	}
	cmd.Env = append(os.Environ(), "PGPASSWORD="+p.password, "MYSQL_PWD="+p.password)
	cmd.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("prepare the server: %w: %s", err, out)
	}
	return nil
}

// fetch runs a program that fetches sources.
func fetch(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
		return "", fmt.Errorf("%s: %s", name, lines[len(lines)-1])
	}
	return string(out), err
}
