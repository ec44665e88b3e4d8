package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wirecheck/backends"
	"wirecheck/backends/instrument"
	"wirecheck/configs"
	"wirecheck/proxy"
)

// suiteFlags are the flags that the commands have in common that run a test suite through a proxy.
type suiteFlags struct {
	upstream, env []string
	keep          bool
	least         float64
	unit          unitFlags
	gap           time.Duration
	tags          []string
	baseline      baseline
}

func (f *suiteFlags) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.upstream, "upstream", nil, "URL of the test database, as the application uses it; repeatable (default: $DATABASE_URL)")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the command, as in DB_PORT={port}; repeatable")
	flags.BoolVar(&f.keep, "keep-columns", false, "leave the hidden columns in the tables (MariaDB, MySQL)")
	f.baseline.flags(flags)
	f.unit.flags(flags)
	leastFlag(flags, &f.least)
	flags.DurationVar(&f.gap, "unit-gap", 0, "a pause in a session that ends a request without tags, as in 50ms")
	flags.StringSliceVar(&f.tags, "request-tag", nil, "tag that names a request; repeatable")
}

// databases are those that the flags or DATABASE_URL name. It says what is wrong with the flags or the command before a server is asked.
func (f *suiteFlags) databases(args []string) ([]database, error) {
	raw := f.upstream
	if len(raw) == 0 && os.Getenv("DATABASE_URL") != "" {
		raw = []string{os.Getenv("DATABASE_URL")}
	}
	if len(raw) == 0 {
		return nil, errors.New("no test database: give --upstream URL, or set DATABASE_URL")
	}
	var databases []database
	for _, r := range raw {
		d, err := parseDatabase(r)
		if err != nil {
			return nil, err
		}
		databases = append(databases, d)
	}
	if _, err := environment(databases, f.env); err != nil {
		return nil, err
	}
	if err := errors.Join(f.baseline.check(), f.unit.check(), checkLeast(f.least)); err != nil {
		return nil, err
	}
	_, err := exec.LookPath(args[0])
	return databases, err
}

// config is the configuration of a proxy in front of the databases.
func (f *suiteFlags) config(c *common, cmd *cobra.Command, databases []database, mode proxy.Mode, warn bool) (configs.Config, error) {
	return configs.Load("", os.Getenv, func(config *configs.Config) error {
		config.Listeners = nil
		for _, d := range databases {
			l := configs.DefaultListener()
			l.Listen, l.Upstream, l.Mode, l.Warn, l.UnitGap = d.protocol+"://127.0.0.1:0", d.upstream(), string(mode), configs.Switch(warn), f.gap
			config.Listeners = append(config.Listeners, l)
		}
		config.Unit, config.Possible, config.MinCoverage, config.LogLevel = f.unit.unit, f.unit.possible, f.least, "warn"
		if cmd.Flags().Changed("log-level") {
			config.LogLevel = c.logLevel
		}
		if f.tags != nil {
			config.RequestTags = f.tags
		}
		return nil
	})
}

// database is a test database: the URL that the application has for it.
type database struct {
	*url.URL
	*clients
}

// clients are those of a protocol: what they have in common.
type clients struct {
	protocol string
	columns  bool                // without hidden columns wirecheck sees little
	names    map[string][]string // of the usual environment variables, by what database.values calls their values
}

var (
	postgresClients = &clients{protocol: "postgres", names: map[string][]string{"url": {"DATABASE_URL"}, "host": {"PGHOST"}, "port": {"PGPORT"},
		"user": {"PGUSER"}, "password": {"PGPASSWORD"}, "database": {"PGDATABASE"}}}
	mysqlClients = &clients{protocol: "mysql", columns: true, names: map[string][]string{"url": {"DATABASE_URL"}, "host": {"MYSQL_HOST"},
		"port": {"MYSQL_PORT", "MYSQL_TCP_PORT"}, "user": {"MYSQL_USER"}, "password": {"MYSQL_PWD", "MYSQL_PASSWORD"}, "database": {"MYSQL_DATABASE"}}}
)

// parseDatabase reads the URL of a test database. Frameworks have schemes of their own, as in mysql2:// and postgresql+psycopg://.
func parseDatabase(raw string) (database, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" { // the error of net/url repeats the URL, password included
		return database{}, errors.New("the URL of the test database cannot be read: it should look like postgres://user:password@host:5432/database")
	}
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	for prefix, c := range map[string]*clients{"postgres": postgresClients, "pgsql": postgresClients, "mysql": mysqlClients, "mariadb": mysqlClients, "tidb": mysqlClients} {
		if strings.HasPrefix(scheme, prefix) {
			return database{u, c}, nil
		}
	}
	return database{}, fmt.Errorf("the URL of the test database begins with %q: wirecheck knows postgres:// and mysql://", u.Scheme+"://")
}

// upstream is the server's address for the proxy, which knows the usual ports.
func (d database) upstream() string {
	u := url.URL{Scheme: d.protocol, Host: d.Host}
	return u.String()
}

// direct is the URL for connections of our own.
func (d database) direct() string {
	u := *d.URL
	u.Scheme, u.RawQuery = d.protocol, ""
	return u.String()
}

// named is another database of the server.
func (d database) named(name string) database {
	u := *d.URL
	u.Path, u.RawPath = "/"+name, ""
	return database{&u, d.clients}
}

// through is the URL through the proxy.
func (d database) through(at net.Addr) database {
	u := *d.URL
	u.Host = at.String()
	return database{&u, d.clients}
}

// withScheme is a URL with another scheme.
func withScheme(raw, scheme string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", errors.New("the URL cannot be read")
	}
	u.Scheme = scheme
	return u.String(), nil
}

// values are what templates of --env name.
func (d database) values() map[string]string {
	password, _ := d.User.Password()
	return map[string]string{"url": d.String(), "host": d.Hostname(), "port": d.Port(), "user": d.User.Username(), "password": password, "database": strings.TrimPrefix(d.Path, "/")}
}

// variables are the usual ones of the clients.
func (d database) variables() (list []string) {
	for what, value := range d.values() {
		for _, name := range d.names[what] {
			if value != "" {
				list = append(list, name+"="+value)
			}
		}
	}
	return list
}

// environment is what the command gets: the first database of each kind has the usual variables.
func environment(through []database, templates []string) ([]string, error) {
	list := os.Environ()
	for i := len(through) - 1; i >= 0; i-- { // the last one of a name counts
		list = append(list, through[i].variables()...)
	}
	var pairs []string
	for i, d := range through {
		for what, value := range d.values() {
			if i == 0 {
				pairs = append(pairs, "{"+what+"}", value)
			}
			pairs = append(pairs, fmt.Sprintf("{%s:%d}", what, i+1), value)
		}
	}
	fill := strings.NewReplacer(pairs...)
	for _, t := range templates {
		name, text, ok := strings.Cut(t, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env %q: it should look like DB_PORT={port}", t)
		}
		list = append(list, name+"="+fill.Replace(text))
	}
	return list, nil
}

// columns are the hidden columns of a test database that needs some.
type columns struct {
	c   *common
	d   database
	had map[string]bool // the tables that had them before; nil: not known yet
}

func newColumns(c *common, d database) *columns { return &columns{c: c, d: d} }

// add adds the hidden columns to the tables that lack them.
func (k *columns) add(ctx context.Context) error {
	had := map[string]bool{}
	err := k.each(ctx, func(db *instrument.Database, t instrument.Table) instrument.Result {
		had[t.String()] = t.State == instrument.StateAdded
		return db.Add(ctx, t)
	})
	if k.had == nil && (err == nil || len(had) > 0) {
		k.had = had
	}
	return err
}

// remove takes the columns away from all tables that had none before add, those that the tests made included.
func (k *columns) remove(ctx context.Context) error {
	if k.had == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), labPatience)
	defer cancel()
	return k.each(ctx, func(db *instrument.Database, t instrument.Table) instrument.Result {
		if k.had[t.String()] {
			return instrument.Result{}
		}
		return db.Remove(ctx, t)
	})
}

// each does something with each table, if the database needs hidden columns and wirecheck may log in.
func (k *columns) each(ctx context.Context, do func(*instrument.Database, instrument.Table) instrument.Result) error {
	if !k.d.columns || k.d.User.Username() == "" {
		return nil
	}
	password, err := backends.Password()
	if err != nil {
		return err
	}
	db, err := instrument.Open(ctx, k.d.direct(), instrument.Options{Password: password})
	if err != nil {
		return err
	}
	for _, t := range db.Tables {
		if r := do(db, t); r.Error != "" {
			k.c.log.Warn().Str("table", t.String()).Str("why", r.Error).Msg("the hidden columns of a table stay as they are")
		}
	}
	return db.Close()
}
