package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/configs"
	"wirecheck/lab"
	"wirecheck/live"
	"wirecheck/live/control"
	"wirecheck/oracle/isolation"
	"wirecheck/product"
	"wirecheck/proxy"
	"wirecheck/report"
	"wirecheck/scheduler/search"
	"wirecheck/trace/lex"
	"wirecheck/trace/secret"
)

// explorer runs a command under one schedule after the other, each time from the same state.
type explorer struct {
	c      *common
	f      *exploreFlags
	base   database
	args   []string
	config func(database) (configs.Config, error)
	locks  string
	copies *copies  // PostgreSQL without --reset; nil: there are none
	hidden *columns // of the database itself
	server string   // the product and its version
	asleep bool     // it can be seen whether the command's processes sleep
}

// outcome is one run.
type outcome struct {
	run      *search.Run
	result   report.Result
	seen     isolation.Coverage
	exit     int      // exit status of the command
	why      string   // exit != 0: what the command did
	said     string   // the end of what the command wrote
	schedule string   // in the form that --schedule reads
	broken   []string // the invariants that do not hold behind it, with what their queries gave
}

// fails reports whether the run is one to stop at.
func (o *outcome) fails() bool {
	return o.exit != 0 || len(o.broken) > 0 || errors.Is(status(o.result), exitFound)
}

// failsAs reports whether the run shows what another one shows: an anomaly of the same kind, or the same exit status.
func (o *outcome) failsAs(other *outcome) bool {
	if len(other.result.Findings) == 0 {
		return o.exit == other.exit && (len(o.broken) > 0) == (len(other.broken) > 0)
	}
	for i := range o.result.Findings {
		for j := range other.result.Findings {
			a, b := &o.result.Findings[i], &other.result.Findings[j]
			if a.Name == b.Name && strings.Join(a.Tables, ",") == strings.Join(b.Tables, ",") {
				return true
			}
		}
	}
	return false
}

func newExplorer(ctx context.Context, c *common, cmd *cobra.Command, f *exploreFlags, base database, args []string) (*explorer, error) {
	x := &explorer{c: c, f: f, base: base, args: args, hidden: newColumns(c, base)}
	x.config = func(d database) (configs.Config, error) {
		config, err := f.config(c, cmd, []database{d}, proxy.Control, false)
		if !cmd.Flags().Changed("log-level") {
			config.LogLevel = "error" // what a warning is about is in the report, or stands there once for all runs
		}
		return config, err
	}
	config, err := x.config(base)
	if err != nil {
		return nil, err
	}
	c.log = c.log.Level(levelOf(config.LogLevel))
	c.endWithin(config.Timeouts.Shutdown + childPatience + labPatience)
	if f.reset == "" && base.protocol != "postgres" {
		return nil, errors.New("each run must begin with the same rows, and only PostgreSQL can copy a database: give --reset COMMAND, a command that brings the test database back to its first state (--reset true if the test does that itself)")
	}
	server, err := backends.Behind(ctx, cmp.Or(f.locks, base.direct()))
	if err != nil {
		return nil, fmt.Errorf("connect to the test database: %w", err)
	}
	x.server = server.Engine.Title + " " + server.Version
	if x.locks, err = withScheme(cmp.Or(f.locks, base.direct()), server.Engine.Name); err != nil {
		return nil, err
	}
	_, err = control.Asleep(os.Getpid())
	x.asleep = f.think == 0 && err == nil
	x.f.think = cmp.Or(x.f.think, time.Second) // where nobody can see whether a process sleeps
	if f.reset == "" {
		x.copies, err = openCopies(ctx, base)
	}
	return x, err
}

// close takes away what the runs have left behind.
func (x *explorer) close(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), labPatience)
	defer cancel()
	if x.copies != nil {
		err = x.copies.labs.Close(ctx)
	}
	if !x.f.keep {
		err = errors.Join(err, x.hidden.remove(ctx))
	}
	return err
}

// run runs the command once, from a fresh state.
func (x *explorer) run(ctx context.Context, run *search.Run, title string) (o *outcome, err error) {
	d := x.base
	if x.copies != nil {
		target, err := x.copies.make(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, x.copies.labs.Drop(context.WithoutCancel(ctx), target)) }()
		d = d.named(target.Database)
	} else if err := x.reset(ctx); err != nil {
		return nil, err
	}
	return x.watched(ctx, d, run, title)
}

// watched runs the command between two readings of the invariants.
func (x *explorer) watched(ctx context.Context, d database, run *search.Run, title string) (o *outcome, err error) {
	if len(x.f.invariants) == 0 {
		return x.observe(ctx, d, run, title)
	}
	server, err := backends.At(d.direct())
	if err != nil {
		return nil, err
	}
	read := func(do func(engine.Conn) error) error {
		conn, err := server.Engine.Connect(ctx, server.Target)
		if err != nil {
			return fmt.Errorf("look at the invariants: %w", err)
		}
		return errors.Join(do(conn), conn.Close())
	}
	var readings []lab.Reading
	if err := read(func(c engine.Conn) (err error) {
		readings, err = lab.ReadBefore(ctx, c, x.f.invariants)
		return err
	}); err != nil {
		return nil, err
	}
	if o, err = x.observe(ctx, d, run, title); err != nil {
		return nil, err
	}
	if err := read(func(c engine.Conn) error { return lab.ReadAfter(ctx, c, readings) }); err != nil {
		return nil, err
	}
	for _, r := range readings {
		why, err := r.Broken()
		if err != nil {
			return nil, err
		}
		if why != "" {
			o.broken = append(o.broken, why)
		}
	}
	return o, nil
}

// reset executes the user's command that makes the first state.
func (x *explorer) reset(ctx context.Context) error {
	env, err := environment([]database{x.base}, x.f.env)
	if err != nil {
		return err
	}
	if _, said, err := x.command(ctx, []string{"sh", "-c", x.f.reset}, env, func(int) {}); err != nil {
		return fmt.Errorf("--reset %q: %w\n%s", x.f.reset, err, said)
	}
	return x.hidden.add(ctx)
}

// observe runs the command against a proxy that schedules its sessions.
func (x *explorer) observe(ctx context.Context, d database, run *search.Run, title string) (*outcome, error) {
	config, err := x.config(d)
	if err != nil {
		return nil, err
	}
	l, err := live.New(live.Options{Log: x.c.log, Now: time.Now(), Clock: time.Now, MaxTxns: config.Limits.Transactions, RequestTags: config.RequestTags, HideValues: !bool(config.Values), NoPredicates: !bool(config.Predicates),
		Judge: live.Judge{Transactions: config.Unit == unitTransaction, Possible: config.Possible}})
	if err != nil {
		return nil, err
	}
	var pid atomic.Int64
	o := control.Options{Schedule: title, Strategy: run, Sessions: x.f.sessions, Think: x.f.think, Locks: x.locks,
		Shown: func(sql string) string { return secret.SQL(sql, lex.Of(product.Of(d.protocol).Dialect)).SQL }}
	if x.asleep {
		o.Asleep = func() bool {
			asleep, err := control.Asleep(int(pid.Load()))
			return pid.Load() != 0 && asleep && err == nil
		}
	}
	gate, err := control.New(ctx, o, nil, x.c.log)
	if err != nil {
		return nil, err
	}
	h := &housekeeping{common: x.c, config: config, checker: l, allTables: true}
	if h.proxy, err = h.listen(ctx, nil, gate); err != nil {
		return nil, err
	}
	env, err := environment([]database{d.through(h.proxy.Addrs()[0])}, x.f.env)
	if err != nil {
		return nil, err
	}
	running, done := context.WithCancel(ctx)
	defer done()
	out := &outcome{run: run}
	ended := make(chan error, 1)
	go func() {
		defer done()
		ended <- x.test(ctx, out, env, func(p int) { pid.Store(int64(p)) })
	}()
	err = h.serve(running, gate)
	done()
	err = errors.Join(<-ended, err)
	found, e := l.Finish()
	if err = errors.Join(err, e); err != nil {
		return nil, err
	}
	out.seen = found.Coverage
	out.result = judged(found.Findings, found.Coverage, config.Unit, config.MinCoverage, "")
	var schedule strings.Builder
	if err := errors.Join(x.f.baseline.apply(&out.result, time.Now()), gate.Report(&schedule, 0)); err != nil {
		return nil, err
	}
	out.schedule = schedule.String()
	return out, nil
}

// test runs the command that is explored.
func (x *explorer) test(ctx context.Context, out *outcome, env []string, started func(pid int)) (err error) {
	limited, cancel := context.WithTimeout(ctx, x.f.limit)
	defer cancel()
	out.exit, out.said, err = x.command(limited, x.args, env, started)
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		out.exit, out.why = int(exitFound), fmt.Sprintf("did not end within %v", x.f.limit)
		return nil
	case errors.As(err, &failed):
		out.why = "failed: " + failed.Error()
		return nil
	}
	return err
}

// saidLimit is how much of what a command wrote is kept.
const saidLimit = 16 << 10

// command runs a command in a process group of its own, which ends with it. said is the end of what it wrote.
func (x *explorer) command(ctx context.Context, args, env []string, started func(pid int)) (exit int, said string, err error) {
	out, err := os.CreateTemp("", "wirecheck-explore-")
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := os.Remove(out.Name()); err != nil { // it needs no name, and is gone whatever ends this process
		return 0, "", err
	}
	child := exec.CommandContext(ctx, args[0], args[1:]...)
	child.Env, child.Stdout, child.Stderr = env, out, out
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGTERM) }
	child.WaitDelay = childPatience
	if err := child.Start(); err != nil {
		return 0, "", err
	}
	started(child.Process.Pid)
	err = child.Wait()
	if e := syscall.Kill(-child.Process.Pid, syscall.SIGKILL); e != nil && !errors.Is(e, syscall.ESRCH) && !errors.Is(e, syscall.EPERM) {
		err = errors.Join(err, e)
	}
	size, e := out.Seek(0, io.SeekEnd)
	if e != nil {
		return 0, "", errors.Join(err, e)
	}
	text := make([]byte, min(size, saidLimit))
	if _, e := out.ReadAt(text, size-int64(len(text))); e != nil && !errors.Is(e, io.EOF) {
		return 0, "", errors.Join(err, e)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		exit = cmp.Or(max(failed.ExitCode(), 0), int(exitFailed))
	}
	return exit, string(text), err
}

// copies makes copies of a database.
type copies struct {
	of   string
	labs *engine.Labs
}

// openCopies connects to the server of a database.
func openCopies(ctx context.Context, d database) (*copies, error) {
	server, err := backends.At(d.direct())
	if err != nil {
		return nil, err
	}
	name, t := server.Target.Database, server.Target
	if name == "" {
		return nil, errors.New("the URL of the test database names no database to copy: it should look like postgres://user:password@host:5432/database")
	}
	t.Database = server.Engine.Lab.Maintenance
	labs, err := engine.OpenLabs(ctx, server.Engine, t)
	if err != nil {
		return nil, fmt.Errorf("copy the test database: %w", err)
	}
	return &copies{of: name, labs: labs}, nil
}

// make makes a copy.
func (k *copies) make(ctx context.Context) (engine.Target, error) {
	t, err := k.labs.Copy(ctx, k.of)
	if err != nil {
		err = fmt.Errorf("%w (--reset COMMAND does without a copy)", err)
	}
	return t, err
}
