package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	dialect "wirecheck/rewrite/mysql"
)

// site is a server on which scenarios are executed: a private one, or one that a URL names.
type site struct {
	engine  engine.Descriptor
	version string
	target  engine.Target  // with a user who may create databases, without a database
	server  *engine.Server // nil: it is not ours
}

// openSite starts a private server (a bare name), or takes the one that a URL names.
func openSite(ctx context.Context, name string) (*site, error) {
	if d, folder, ok := embedded(name); ok {
		s := &site{engine: d, target: engine.Target{Engine: d.Name, Socket: folder}}
		return s, s.ask(ctx)
	}
	if strings.Contains(name, "://") {
		s, err := siteAt(name)
		if err != nil {
			return nil, err
		}
		return s, s.ask(ctx)
	}
	d, err := backends.ByName(name)
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
	return &site{engine: d, version: version, target: server.Target(), server: server}, nil
}

// embedded reads the name of an embedded product with a folder, in which databases are made and removed: sqlite:/tmp, sqlite:./dbs.
// Without a slash it is a variant (sqlite:wal).
func embedded(name string) (d engine.Descriptor, folder string, ok bool) {
	product, folder, _ := strings.Cut(name, ":")
	if !strings.Contains(folder, "/") {
		return d, "", false
	}
	d, err := backends.ByName(product)
	if rest, url := strings.CutPrefix(folder, "//"); url { // sqlite:///tmp
		folder = rest
	}
	return d, folder, err == nil && d.Embedded
}

// missing is the product of an engine that is known and of which no server is on this machine; nil if there is one, or if
// the name is a URL. The error says that the name is unknown.
func missing(name string) (*engine.Descriptor, error) {
	if _, _, ok := embedded(name); ok || strings.Contains(name, "://") {
		return nil, nil
	}
	product, version, chosen := strings.Cut(name, ":")
	d, err := backends.ByName(product)
	if err != nil {
		return nil, err
	}
	there := slices.ContainsFunc(d.Find(), func(f engine.Found) bool { return !chosen || f.Name == version })
	if there {
		return nil, nil
	}
	return &d, nil
}

// passwordVariable names the environment variable that holds the password if the URL has none.
const passwordVariable = "WIRECHECK_PASSWORD"

// siteAt reads a URL. The password may be in the environment.
func siteAt(raw string) (*site, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the engine's URL cannot be read: it should look like postgres://user:password@host:5432/database, with % escapes in the password")
	}
	d, err := backends.ByName(u.Scheme)
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
		password = os.Getenv(passwordVariable)
	}
	return &site{engine: d, target: engine.Target{
		Engine: d.Name, Host: u.Hostname(), Port: port, User: u.User.Username(), Password: password,
		Database: strings.TrimPrefix(u.Path, "/"),
	}}, nil
}

// connect connects to the target's database, or to the one that is always there.
func (s *site) connect(ctx context.Context) (engine.Conn, error) {
	t := s.target
	if t.Database == "" {
		t.Database = s.engine.Lab.Maintenance
	}
	return s.engine.Connect(ctx, t)
}

// ask finds out the server's version, and whether it is the product that the URL says.
func (s *site) ask(ctx context.Context) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	question := "SELECT VERSION()"
	switch {
	case s.engine.Protocol == engine.ProtocolPostgres:
		question = "SHOW server_version"
	case s.engine.Embedded:
		question = "SELECT sqlite_version()"
	}
	rows, err := engine.Query(ctx, conn, question)
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return errors.New("ask for the server's version: no answer")
	}
	s.version = string(rows[0][0])
	if is := string(dialect.FlavorOf(s.version)); s.engine.Protocol == engine.ProtocolMySQL && is != s.engine.Name {
		return fmt.Errorf("the server says that it is %s %s: use %s:// in place of %s://", is, s.version, is, s.engine.Name)
	}
	if _, version, ok := strings.Cut(s.version, "-TiDB-v"); ok {
		s.version = version
	}
	return nil
}

// answerLimit is how long a server may take to answer a new connection. One that lives, on a busy machine, needs less than a second.
const answerLimit = 15 * time.Second

// answers reports whether the server takes connections and answers.
func (s *site) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(engine.Exec(ctx, conn, "SELECT 1"), conn.Close())
}

// Close ends a server that is ours.
func (s *site) Close() error {
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}
