package backends

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/backends/engine"
	dialect "wirecheck/rewrite/mysql"
)

// Instance is a running server of a product: a private one, or one that a URL names. An embedded product has a folder in its place.
type Instance struct {
	Engine  engine.Descriptor
	Version string
	Target  engine.Target  // a user who may create databases; no database
	Server  *engine.Server // the private server; nil: there is none

	name string // with which it was opened
}

// Open reads what stands behind --engine. It starts a private server for a bare name, and asks the server of a URL for its version.
func Open(ctx context.Context, name string) (*Instance, error) {
	if d, folder, ok := Embedded(name); ok {
		s := &Instance{Engine: d, Target: engine.Target{Engine: d.Name, Socket: folder}}
		return s, s.ask(ctx)
	}
	if strings.Contains(name, "://") {
		s, err := At(name)
		if err != nil {
			return nil, err
		}
		return s, s.ask(ctx)
	}
	d, err := ByName(name)
	if err != nil {
		return nil, err
	}
	server, err := d.Start(ctx, engine.Options{Settings: d.LabSettings})
	if err != nil {
		return nil, err
	}
	version := server.Version
	if _, chosen, ok := strings.Cut(name, ":"); ok {
		version += " " + chosen // both are words that a scenario may speak of: "tidb 2023-01"
	}
	return &Instance{Engine: d, Version: version, Target: server.Target(), Server: server, name: name}, nil
}

// Embedded reads the name of an embedded product with a folder, in which databases are made and removed: sqlite:/tmp, sqlite:./dbs.
// Without a slash it is a variant (sqlite:wal).
func Embedded(name string) (d engine.Descriptor, folder string, ok bool) {
	product, folder, _ := strings.Cut(name, ":")
	if !strings.Contains(folder, "/") {
		return d, "", false
	}
	d, err := ByName(product)
	if rest, url := strings.CutPrefix(folder, "//"); url { // sqlite:///tmp
		folder = rest
	}
	return d, folder, err == nil && d.Embedded
}

// Missing gives the product that a name stands for if this machine has no server of it. It gives nil if there is one, or if the name
// is a URL, and an error if no product has the name.
func Missing(name string) (*engine.Descriptor, error) {
	if _, _, ok := Embedded(name); ok || strings.Contains(name, "://") {
		return nil, nil
	}
	product, version, chosen := strings.Cut(name, ":")
	d, err := ByName(product)
	if err != nil {
		return nil, err
	}
	there := slices.ContainsFunc(d.Find(), func(f engine.Found) bool { return !chosen || f.Name == version })
	if there {
		return nil, nil
	}
	return &d, nil
}

// PasswordVariable names the environment variable that holds the password of a URL without one. If it is not set,
// PasswordFileVariable may name a file whose first line is the password.
const (
	PasswordVariable     = "WIRECHECK_PASSWORD"
	PasswordFileVariable = "WIRECHECK_PASSWORD_FILE"
)

// Password gives the password for URLs that have none.
func Password() (string, error) {
	path := os.Getenv(PasswordFileVariable)
	if password, set := os.LookupEnv(PasswordVariable); set || path == "" {
		return password, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the file that %s names: %w", PasswordFileVariable, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// At reads a URL, and connects to nothing. If the URL has no password, Password gives it.
func At(raw string) (*Instance, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the engine's URL cannot be read: it should look like postgres://user:password@host:5432/database, with % escapes in the password")
	}
	d, err := ByName(u.Scheme)
	if err != nil {
		return nil, fmt.Errorf("engine %s: %w", u.Redacted(), err)
	}
	port := d.Port
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return nil, fmt.Errorf("engine %s: port %q: %w", u.Redacted(), p, err)
		}
	}
	password, given := u.User.Password()
	if !given {
		if password, err = Password(); err != nil {
			return nil, err
		}
	}
	return &Instance{Engine: d, Target: engine.Target{
		Engine: d.Name, Host: u.Hostname(), Port: port, User: u.User.Username(), Password: password,
		Database: strings.TrimPrefix(u.Path, "/"),
	}}, nil
}

// connect connects to the target's database, or to the one that is always there.
func (s *Instance) connect(ctx context.Context) (engine.Conn, error) {
	t := s.Target
	t.Database = cmp.Or(t.Database, s.Engine.Lab.Maintenance)
	return s.Engine.Connect(ctx, t)
}

// Behind opens the server behind an application's URL, whose scheme may name another product of the protocol: mysql:// also stands
// before MariaDB and TiDB.
func Behind(ctx context.Context, raw string) (*Instance, error) {
	s, err := At(raw)
	if err != nil {
		return nil, err
	}
	if err := s.askVersion(ctx); err != nil {
		return nil, err
	}
	if s.Engine.Protocol == engine.ProtocolMySQL {
		s.Engine, err = ByName(string(dialect.FlavorOf(s.Version)))
		s.Target.Engine = s.Engine.Name
	}
	return s, err
}

// ask finds out the server's version, and whether it is the product that the URL says.
func (s *Instance) ask(ctx context.Context) error {
	if err := s.askVersion(ctx); err != nil {
		return err
	}
	if is := string(dialect.FlavorOf(s.Version)); s.Engine.Protocol == engine.ProtocolMySQL && is != s.Engine.Name {
		return fmt.Errorf("the server says that it is %s %s: use %s:// in place of %s://", is, s.Version, is, s.Engine.Name)
	}
	if _, version, ok := strings.Cut(s.Version, "-TiDB-v"); ok {
		s.Version = version
	}
	return nil
}

// askVersion finds out the server's version.
func (s *Instance) askVersion(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	question := "SELECT VERSION()"
	switch {
	case s.Engine.Protocol == engine.ProtocolPostgres:
		question = "SHOW server_version"
	case s.Engine.Embedded:
		question = "SELECT sqlite_version()"
	}
	rows, err := engine.Query(ctx, conn, question)
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return errors.New("ask for the server's version: no answer")
	}
	s.Version = string(rows[0][0])
	return nil
}

// answerLimit is how long a server may take to answer a new connection. One that lives, on a busy machine, needs less than a second.
const answerLimit = 15 * time.Second

// Answers reports whether the server takes connections and answers.
func (s *Instance) Answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(engine.Exec(ctx, conn, "SELECT 1"), conn.Close())
}

// Revive gives the instance if its server answers or is not private. Else it ends the server and starts another one.
func (s *Instance) Revive(ctx context.Context) (*Instance, error) {
	if s.Server == nil {
		return s, nil
	}
	select {
	case <-s.Server.Done():
	default:
		if err := s.Answers(ctx); err == nil {
			return s, nil
		}
	}
	_ = s.Close() // it has died: that is no news
	return Open(ctx, s.name)
}

// Close ends the private server, if there is one.
func (s *Instance) Close() error {
	if s.Server == nil {
		return nil
	}
	return s.Server.Close()
}
