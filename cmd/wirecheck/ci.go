package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/configs"
	"wirecheck/proxy"
	"wirecheck/report"
)

// ciFlags are the flags of ci.
type ciFlags struct {
	suiteFlags
	files map[string]*string // by format
	warn  bool
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
		Example: `  wirecheck ci --upstream postgres://app@127.0.0.1:5432/test --junit wirecheck.xml -- npm test
  wirecheck ci --upstream mysql://root@127.0.0.1:3306/test --env DB_PORT={port} -- go test ./...`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runCI(cmd.Context(), c, cmd, &f, args) },
	}
	flags := cmd.Flags()
	f.suiteFlags.flags(flags)
	for _, format := range []string{"junit", "sarif", "json", "markdown", formatHTML} {
		f.files[format] = flags.String(format, "", "write the findings to this file as "+format)
	}
	flags.BoolVar(&f.warn, "warn", false, "warn the application in its sessions, too: some frameworks take a warning for an error")
	return cmd
}

func runCI(ctx context.Context, c *common, cmd *cobra.Command, f *ciFlags, args []string) (err error) {
	databases, err := f.databases(args)
	if err != nil {
		return err
	}
	load := func() (configs.Config, error) { return f.config(c, cmd, databases, proxy.Observe, f.warn) }
	config, err := load()
	if err != nil {
		return err
	}
	for _, d := range databases {
		hidden := newColumns(c, d)
		if !f.keep {
			defer func() { err = errors.Join(err, hidden.remove(ctx)) }()
		}
		if err := hidden.add(ctx); err != nil {
			return err
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
