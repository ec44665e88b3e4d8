package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/backends/instrument"
	"wirecheck/configs"
	"wirecheck/report"
)

// ciFlags are the flags of ci.
type ciFlags struct {
	upstream, env []string
	files         map[string]*string // by format
	warn, keep    bool
	least         float64
	unit          unitFlags
	gap           time.Duration
	tags          []string
	baseline      baseline
}

// childPatience is how long the command has to end after wirecheck was asked to end.
const childPatience = 10 * time.Second

func newCICommand(c *common) *cobra.Command {
	f := ciFlags{files: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "ci [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a test suite through wirecheck, and fail if it meets an anomaly",
		Long: `ci starts a proxy in front of your test database, runs your tests against it,
and prints what it found. The proxy ends with the tests.

--upstream is the URL that your application uses, with user and database.
Without it wirecheck takes DATABASE_URL. The command gets the proxy's address:
  DATABASE_URL                               the same URL, through the proxy
  PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE            PostgreSQL
  MYSQL_HOST, MYSQL_PORT, MYSQL_TCP_PORT, MYSQL_USER, MYSQL_PWD,
  MYSQL_PASSWORD, MYSQL_DATABASE                            MariaDB and MySQL
--env NAME=TEXT sets a variable of your own, as in --env DB_PORT={port}. In TEXT
stand {url}, {host}, {port}, {user}, {password} and {database} of the first
--upstream, {url:2} and so on of the second.

MariaDB and MySQL tables need hidden columns. If the URL has a user, wirecheck
adds them before the tests, to all tables of the database and to those that the
tests create, and removes them at the end (--keep-columns leaves them).

--junit, --sarif, --json and --markdown write files for the CI system, --html a
page for people. On GitHub, wirecheck adds the Markdown to the job summary by
itself.

--baseline names a file of findings that are known: only new ones fail. With
--update-baseline, wirecheck adds what it finds to the file.

Exit status: that of the command, if it failed; else 0 nothing found, 1
something found, 2 wirecheck could not do its work, 3 wirecheck saw too little
to tell (no statement came through the proxy, see wirecheck proxy --help).`,
		Example: `  wirecheck ci --upstream postgres://app:secret@127.0.0.1:5432/test --junit wirecheck.xml -- npm test
  wirecheck ci --upstream mysql://root@127.0.0.1:3306/test --env DB_PORT={port} -- go test ./...`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("the command that runs the tests is missing: wirecheck ci --upstream URL -- npm test")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runCI(cmd.Context(), c, cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.upstream, "upstream", nil, "URL of the test database, as the application uses it; repeatable (default: $DATABASE_URL)")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the command, as in DB_PORT={port}; repeatable")
	for _, format := range []string{"junit", "sarif", "json", "markdown", formatHTML} {
		f.files[format] = flags.String(format, "", "write the findings to this file as "+format)
	}
	flags.BoolVar(&f.warn, "warn", false, "warn the application in its sessions, too: some frameworks take a warning for an error")
	flags.BoolVar(&f.keep, "keep-columns", false, "leave the hidden columns in the tables (MariaDB, MySQL)")
	f.baseline.flags(flags)
	f.unit.flags(flags)
	leastFlag(flags, &f.least)
	flags.DurationVar(&f.gap, "unit-gap", 0, "a pause in a session that ends a request without tags, as in 50ms")
	flags.StringSliceVar(&f.tags, "request-tag", nil, "tag that names a request; repeatable")
	return cmd
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

// through is the URL through the proxy.
func (d database) through(at net.Addr) database {
	u := *d.URL
	u.Host = at.String()
	return database{&u, d.clients}
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

func runCI(ctx context.Context, c *common, cmd *cobra.Command, f *ciFlags, args []string) (err error) {
	if err := c.needFormat("text"); err != nil {
		return fmt.Errorf("%w (files: --junit, --sarif, --json, --markdown, --html)", err)
	}
	raw := f.upstream
	if len(raw) == 0 && os.Getenv("DATABASE_URL") != "" {
		raw = []string{os.Getenv("DATABASE_URL")}
	}
	if len(raw) == 0 {
		return errors.New("no test database: give --upstream URL, or set DATABASE_URL")
	}
	var databases []database
	for _, r := range raw {
		d, err := parseDatabase(r)
		if err != nil {
			return err
		}
		databases = append(databases, d)
	}
	load := func() (configs.Config, error) {
		return configs.Load("", os.Getenv, func(config *configs.Config) error {
			config.Listeners = nil
			for _, d := range databases {
				l := configs.DefaultListener()
				l.Listen, l.Upstream, l.Warn, l.UnitGap = d.protocol+"://127.0.0.1:0", d.upstream(), configs.Switch(f.warn), f.gap
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
	config, err := load()
	if err != nil {
		return err
	}
	if _, err := environment(databases, f.env); err != nil {
		return err
	}
	if err := errors.Join(f.baseline.check(), f.unit.check(), checkLeast(f.least)); err != nil {
		return err
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return err
	}
	for _, d := range databases {
		if !d.columns || d.User.Username() == "" {
			continue
		}
		remove, err := addColumns(ctx, c, d)
		if err != nil {
			return err
		}
		if !f.keep {
			defer func() { err = errors.Join(err, remove()) }()
		}
	}
	stdout, stderr := c.stdout, c.stderr
	c.stdout = c.stderr // the command's own output may be read by a program
	var child error
	running, done := context.WithCancel(ctx)
	defer done()
	err = runProxy(running, c, config, load, hooks{
		allTables: true,
		ready: func(at []net.Addr) {
			through := make([]database, len(at))
			for i := range at {
				through[i] = databases[i].through(at[i])
			}
			env, _ := environment(through, f.env) // it was checked above
			go func() {
				defer done()
				child = runCommand(ctx, args, env, stdout, stderr)
			}()
		},
		judged: func(r *report.Result) error { return errors.Join(f.baseline.apply(r, time.Now()), f.write(*r)) },
	})
	var failed *exec.ExitError
	var status exitStatus
	switch {
	case errors.As(child, &failed) && (err == nil || errors.As(err, &status)):
		return exitStatus(cmp.Or(max(failed.ExitCode(), 0), int(exitFailed)))
	case child != nil && !errors.As(child, &failed):
		return errors.Join(child, err)
	}
	return err
}

// runCommand runs the command to its end.
func runCommand(ctx context.Context, args, env []string, stdout, stderr io.Writer) error {
	child := exec.CommandContext(ctx, args[0], args[1:]...)
	child.Env, child.Stdin, child.Stdout, child.Stderr = env, os.Stdin, stdout, stderr
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	child.WaitDelay = childPatience
	return child.Run()
}

// write writes the files that were asked for.
func (f *ciFlags) write(r report.Result) (err error) {
	add := func(path, format string, flag int) {
		if path == "" {
			return
		}
		file, e := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
		if e == nil {
			e = errors.Join(writeFindings(file, r, format, ""), file.Close())
		}
		if e != nil {
			err = errors.Join(err, fmt.Errorf("write the findings: %w", e))
		}
	}
	for format, path := range f.files {
		add(*path, format, os.O_TRUNC)
	}
	add(os.Getenv("GITHUB_STEP_SUMMARY"), "markdown", os.O_APPEND)
	return err
}

// addColumns adds the hidden columns to the tables of a database. remove takes them away from all tables that had none before, those
// that the tests made included.
func addColumns(ctx context.Context, c *common, d database) (remove func() error, err error) {
	password, err := backends.Password()
	if err != nil {
		return nil, err
	}
	address := *d.URL
	address.Scheme, address.RawQuery = d.protocol, ""
	open := func(ctx context.Context) (*instrument.Database, error) {
		return instrument.Open(ctx, address.String(), instrument.Options{Password: password})
	}
	had := map[string]bool{}
	each := func(ctx context.Context, do func(*instrument.Database, instrument.Table) instrument.Result) error {
		db, err := open(ctx)
		if err != nil {
			return err
		}
		for _, t := range db.Tables {
			if r := do(db, t); r.Error != "" {
				c.log.Warn().Str("table", t.String()).Str("why", r.Error).Msg("the hidden columns of a table stay as they are")
			}
		}
		return db.Close()
	}
	remove = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), labPatience)
		defer cancel()
		return each(ctx, func(db *instrument.Database, t instrument.Table) instrument.Result {
			if had[t.String()] {
				return instrument.Result{}
			}
			return db.Remove(ctx, t)
		})
	}
	err = each(ctx, func(db *instrument.Database, t instrument.Table) instrument.Result {
		had[t.String()] = t.State == instrument.StateAdded
		return db.Add(ctx, t)
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return remove, nil
}
