package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends"
	"wirecheck/configs"
	"wirecheck/fleet/stream"
	"wirecheck/internal/garbage"
	"wirecheck/live"
	"wirecheck/live/control"
	"wirecheck/product"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
	"wirecheck/report"
	"wirecheck/rewrite"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
	"wirecheck/trace/recorder"
	"wirecheck/trace/secret"
)

// flushEvery is how far the history on disk may be behind.
const flushEvery = time.Second

const proxyLong = `proxy listens for clients and forwards each connection to a server. Clients
authenticate with the server itself, so wirecheck needs no passwords.

The modes:
  observe   see the row versions that each statement reads and writes, judge
            them, and warn the sessions of an anomaly at their next answers:
            with a WARNING in PostgreSQL, with a row of SHOW WARNINGS in
            MariaDB and MySQL
  pass      forward only
  control   observe, and decide which session goes next

In mode control the scheduler holds each statement back until it picks it. So a
test of your own meets a chosen interleaving; with the same --seed, or with the
saved --schedule, it meets the same one again. The clients must do the same each
time and must have different names: application_name or program_name, user, or
first statement. The first decision waits until --sessions clients have sent a
statement. If a client sends nothing for --think, the others go on, and the run
is marked as not repeatable. --locks names the server for a user who may see its
locks. Without --locks, wirecheck takes a slow statement for a waiting one.

PostgreSQL needs no preparation. MariaDB and MySQL tables need the hidden
columns first: wirecheck instrument add.

--record NAME.wct records all that clients send and receive, in any mode.
"wirecheck trace" shows it, "wirecheck replay" executes it again, and "wirecheck
check" judges what the proxy recorded in mode observe. After a crash the file
lacks the last second at most. A full disk ends the recording, not the traffic.

An application that runs each statement in a transaction of its own loses
updates between the statements of a request. wirecheck knows requests by
the tags in the statements' comments (traceparent, request_id), or, with
--unit-gap, by pauses: docs/how-to/tags.md.

Exit status: 0 nothing found; 1 something found; 2 wirecheck could not do its
work; 3 nothing found, but that means nothing: no statement came through, or
wirecheck saw none exactly (tables without hidden columns), or fewer than
--min-coverage asks for, or most of them failed by mistake. A proxy in mode pass
judges nothing: 0 if it records, else 3.

With --sample, mode observe looks at a share of the sessions only. The others
pass as in mode pass. An anomaly between two sessions shows only if both are
observed: with --sample 0.05, one in 400 of those between two sessions, and one
in 8,000 of those between three. What other sessions write is never mistaken for
an observed session's. Requests are not judged. The same --seed chooses the same
sessions, counted in the order in which they come.

Each --listen takes the first --upstream of its protocol. --config FILE says the
same and more. The proxy runs until SIGINT or SIGTERM, lets open transactions
finish, and prints what it found.

--http 127.0.0.1:9090 serves a page that shows the findings as they come, the
open transactions, and what wirecheck sees and costs; /metrics for Prometheus,
/healthz, /readyz, and /debug/pprof for this machine. The page shows statements
with their values to everyone who can reach the address.

SIGHUP reopens the log, the report and the stream of findings, reads the files
of certificates and the configuration again, and takes over warn and log_level;
the log names what else has changed. A configuration or certificate that is not
good changes nothing. If the terminal that the proxy runs in is closed, it ends.
SIGUSR1 prints what was found so far, as text: to stdout, or with another
--format to stderr.`

func newProxyCommand(c *common) *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Stand between clients and servers and report anomalies live",
		Long:  proxyLong,
		Example: `  wirecheck proxy --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432
  wirecheck proxy --listen mysql://127.0.0.1:6033 --upstream mariadb://127.0.0.1:3306 --record history.jsonl
  wirecheck proxy --config wirecheck.yaml --warn=off
  wirecheck proxy --http 127.0.0.1:9090 --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432
  wirecheck proxy --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432 --sample 0.05
  wirecheck proxy --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432 \
      --record shop.wct --record-part-size 1GiB
  wirecheck proxy --mode control --seed 7 --locks postgres://postgres@127.0.0.1:5432/shop \
      --listen postgres://127.0.0.1:6432 --upstream postgres://127.0.0.1:5432 --save-schedule failing.schedule`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			load := func() (configs.Config, error) {
				return configs.Load(f.config, os.Getenv, func(config *configs.Config) error { return f.apply(cmd, config) })
			}
			config, err := load()
			if err != nil {
				return err
			}
			stopping := func() {}
			err = runProxy(cmd.Context(), c, config, load, hooks{ready: func([]net.Addr) { stopping = c.notifySystemd(cmd.Context()) }})
			stopping()
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration file (YAML); flags override it")
	flags.StringArrayVar(&f.listen, "listen", nil, "URL to listen on: postgres://127.0.0.1:6432, mysql://127.0.0.1:6033")
	flags.StringArrayVar(&f.upstream, "upstream", nil, "URL of the server: postgres://, mariadb:// or mysql://host:port")
	flags.StringVar(&f.mode, "mode", "", "mode of all listeners: observe (default), pass, control")
	flags.Float64Var(&f.sample, "sample", 1, "mode observe: share of the sessions to observe, as in 0.05; the others pass")
	f.control(flags)
	flags.StringVar(&f.capture, "capture", "", "how all listeners see row versions: auto (default), columns, native")
	f.warn = true
	flags.Var(&f.warn, "warn", "warn clients in their sessions")
	flags.BoolVar(&f.others, "show-others", false, "warnings may quote the statements and values of other users' sessions")
	f.values = true
	flags.Var(&f.values, "values", valuesUsage)
	f.predicates = true
	flags.Var(&f.predicates, "predicates", "judge what statements asked, besides the rows that they found")
	flags.StringVar(&f.record, "record", "", "record to this new file: NAME.wct holds all traffic, any other name the history alone")
	flags.IntVar(&f.recording.Rows, "record-rows", recorder.DefaultRows, "rows of each result that a trace keeps; a digest covers all rows")
	flags.Var(&f.recording.PartSize, "record-part-size", "begin the next part of the trace (NAME.2.wct) at this size, as in 1GiB; 0: never")
	flags.DurationVar(&f.recording.PartAge, "record-part-age", 0, "begin the next part of the trace at this age, as in 1h; 0: never")
	flags.BoolVar(&f.redact, "redact", false, "replace all values in what wirecheck writes and shows by tokens")
	flags.StringVar(&f.log, "log", "", "write the log to this file and not to stderr")
	flags.StringVar(&f.report, "report", "", "write each finding to this file at once, as text")
	flags.StringVar(&f.stream, "stream", "", `write each finding to this file at once, as a line of JSON; "-" is stdout`)
	flags.StringVar(&f.publish.To, "publish", "", "send the history to NATS with JetStream at this address, for wirecheck collect: nats://HOST:PORT, tls://HOST:PORT or embedded:DIR")
	fleetFlag(flags, &f.publish.Fleet)
	f.publish.Buffer = stream.DefaultBuffer
	flags.Var(&f.publish.Buffer, "publish-buffer", "keep up to this size of events while NATS is away; what has no room is lost, and counted")
	flags.StringVar(&f.http, "http", "", "serve a page of the findings as they come, and metrics, at this address, as in 127.0.0.1:9090; without a host: this machine alone")
	f.unit.flags(flags)
	leastFlag(flags, &f.least)
	flags.DurationVar(&f.gap, "unit-gap", 0, "a pause in a session that ends a request without tags, as in 50ms; 0: wirecheck does not look for such requests")
	flags.StringSliceVar(&f.tags, "request-tag", nil, "tag that names a request; repeatable (default: "+strings.Join(flow.RequestTags, ", ")+")")
	flags.BoolVar(&f.explain, "explain-coverage", false, explainUsage)
	flags.BoolVar(&f.strict, "strict", false, "also report what only session order or real time forbids")
	return cmd
}

type proxyFlags struct {
	config, mode, capture, record, log, report, stream, http string
	listen, upstream                                         []string
	warn                                                     configs.Switch
	others                                                   bool
	values, predicates                                       configs.Switch
	strict, redact, explain                                  bool
	sample                                                   float64
	unit                                                     unitFlags
	least                                                    float64
	gap                                                      time.Duration
	tags                                                     []string
	recording                                                configs.Recording
	publish                                                  configs.Publish

	schedule, locks, save string // mode control
	sessions              int
	think                 time.Duration
}

// control are the flags of mode control.
func (f *proxyFlags) control(flags *pflag.FlagSet) {
	flags.StringVar(&f.schedule, "schedule", "", "mode control: random (default), pct, pct:DEPTH, or a file that --save-schedule wrote")
	flags.IntVar(&f.sessions, "sessions", 0, "mode control: clients that the first decision waits for (default 2)")
	flags.DurationVar(&f.think, "think", 0, "mode control: how long the others wait for a client that sends nothing (default 1s)")
	flags.StringVar(&f.locks, "locks", "", "mode control: URL of the server, with a user who may see its locks; the password stands in "+backends.PasswordVariable)
	flags.StringVar(&f.save, "save-schedule", "", "mode control: write the schedule to this file")
}

// apply puts the flags that were given over the configuration.
func (f *proxyFlags) apply(cmd *cobra.Command, c *configs.Config) error {
	given := cmd.Flags().Changed
	if given("listen") || given("upstream") {
		if err := c.SetURLs(f.listen, f.upstream); err != nil {
			return fmt.Errorf("--listen and --upstream: %w", err)
		}
	}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if given("mode") {
			l.Mode = f.mode
		}
		if given("sample") {
			l.Sample = f.sample
		}
		if given("capture") {
			l.Capture = f.capture
		}
		if given("warn") {
			l.Warn = f.warn
		}
		if given("unit-gap") {
			l.UnitGap = f.gap
		}
	}
	for name, set := range map[string]func(){
		"record": func() { c.Record = f.record }, "record-rows": func() { c.Recording.Rows = f.recording.Rows },
		"record-part-size": func() { c.Recording.PartSize = f.recording.PartSize }, "record-part-age": func() { c.Recording.PartAge = f.recording.PartAge },
		"publish": func() { c.Publish.To = f.publish.To }, "fleet": func() { c.Publish.Fleet = f.publish.Fleet }, "publish-buffer": func() { c.Publish.Buffer = f.publish.Buffer },
		"redact": func() { c.Recording.Redact = configs.Switch(f.redact) }, "report": func() { c.Report = f.report },
		"log": func() { c.Log = f.log }, "log-level": func() { c.LogLevel = cmd.Flag("log-level").Value.String() },
		"stream": func() { c.Stream = f.stream }, "http": func() { c.HTTP = f.http }, "strict": func() { c.Strict = f.strict },
		"explain-coverage": func() { c.ExplainCoverage = f.explain },
		"unit":             func() { c.Unit = f.unit.unit }, "possible": func() { c.Possible = f.unit.possible }, "show-others": func() { c.ShowOthers = f.others }, "values": func() { c.Values = f.values }, "predicates": func() { c.Predicates = f.predicates }, "request-tag": func() { c.RequestTags = f.tags }, "min-coverage": func() { c.MinCoverage = f.least },
		"schedule": func() { c.Control.Schedule = f.schedule }, "sessions": func() { c.Control.Sessions = f.sessions },
		"think": func() { c.Control.Think = f.think }, "locks": func() { c.Control.Locks = f.locks },
		"save-schedule": func() { c.Control.Save = f.save },
	} {
		if given(name) {
			set()
		}
	}
	return nil
}

// hooks are what another command adds to a run of the proxy.
type hooks struct {
	ready     func([]net.Addr)           // called when the proxy listens
	judged    func(*report.Result) error // gets what was found before it is printed
	allTables bool                       // MySQL family: all tables that clients make get the hidden columns
}

// runProxy serves until ctx ends, then prints what was found.
func runProxy(ctx context.Context, c *common, config configs.Config, load func() (configs.Config, error), with hooks) (err error) {
	h := &housekeeping{common: c, config: config, load: load, allTables: with.allTables, signals: make(chan os.Signal, 4)}
	signal.Notify(h.signals, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(h.signals)
	defer zerolog.SetGlobalLevel(zerolog.GlobalLevel())
	c.log = c.log.Level(zerolog.DebugLevel) // the level that SIGHUP changes is zerolog's own
	zerolog.SetGlobalLevel(levelOf(config.LogLevel))
	out, err := openOutputs(c, config)
	if err != nil {
		return err
	}
	defer func() { err = overStatus(err, out.close()) }()
	c.endWithin(config.Timeouts.Shutdown + labPatience)
	signal.Ignore(syscall.SIGPIPE) // the end of who reads the log must not end the sessions
	now, redact := time.Now(), redactor(config)
	run := live.RunName(now)
	var rec *recorder.Recorder
	if isTraceFile(config.Record) {
		if rec, err = newRecording(config, run, redact(), now, c.log); err != nil {
			return err
		}
	}
	p, err := publish(ctx, config, run, c.log)
	if err != nil {
		return err
	}
	defer func() { err = overStatus(err, p.close()) }()
	l, err := live.New(live.Options{
		Publish: p.of(), Record: out.record, Closes: true, Trace: rec, Stream: out.stream, Strict: config.Strict, MaxTxns: config.Limits.Transactions, Window: config.Limits.Window, Explain: config.ExplainCoverage, Log: c.log, Run: run, Now: now, Clock: time.Now, Pace: config.HTTP != "",
		OnFind: out.found, Redact: redact(), Judge: live.Judge{Transactions: config.Unit == unitTransaction, Sampled: samples(config), Possible: config.Possible}, RequestTags: config.RequestTags, ShowOthers: config.ShowOthers,
		HideValues: !bool(config.Values), NoPredicates: !bool(config.Predicates),
	})
	if err == nil {
		err = p.hear(l, config.Publish.Fleet)
	}
	if err != nil {
		return err
	}
	if observes(config) {
		defer garbage.Tune()()
	}
	gate, err := controlGate(ctx, c, config, redact())
	if err == nil {
		h.checker, h.out = l, out
		h.proxy, err = h.listen(ctx, rec, gate)
	}
	if err == nil && config.HTTP != "" {
		if h.web, err = h.openWeb(ctx); err != nil {
			err = errors.Join(err, h.proxy.Close())
		}
	}
	if err == nil && with.ready != nil {
		with.ready(h.proxy.Addrs())
	}
	if err == nil {
		err = h.serve(ctx, gate)
	}
	if err != nil {
		_, e := l.Finish()
		return errors.Join(err, e)
	}
	found, err := l.Finish()
	found.Coverage.LeftOut = h.proxy.LeftOut()
	err = errors.Join(err, out.closeFindings())
	var tally recorder.Tally
	if rec != nil {
		tally = rec.Tally()
		tellRecording(c.log, config.Record, tally)
	}
	if gate != nil {
		out.log.Flush(flushPatience) // a terminal shows both
		err = errors.Join(err, tellSchedule(c, config, gate))
	}
	r := judged(found.Findings, found.Coverage, config.Unit, config.MinCoverage, "")
	r.Between = found.Between
	if config.ExplainCoverage {
		r.Explained = found.Coverage.Explain()
	}
	if !observes(config) {
		r = report.Result{Undecided: "a proxy in mode pass judges nothing"}
	}
	r.Dropped = out.dropped(c.log, found.Dropped, tally)
	if with.judged != nil {
		err = errors.Join(err, with.judged(&r))
	}
	err = errors.Join(err, out.summary(r, c.format))
	switch { // a file that could not be written does not make the findings untrue
	case err != nil:
		return err
	case !observes(config) && rec != nil: // it recorded, which is all that it was asked for
		return nil
	}
	return status(r)
}

func observes(config configs.Config) bool {
	return slices.ContainsFunc(config.Listeners, func(l configs.Listener) bool { return proxy.Mode(l.Mode).Observes() })
}

// samples reports whether sessions are left out. Then requests are not judged: parts of them may be in such sessions.
func samples(config configs.Config) bool {
	return slices.ContainsFunc(config.Listeners, func(l configs.Listener) bool { return l.Sample < 1 })
}

// controlGate makes the gate of the listener in mode control; nil if there is none.
func controlGate(ctx context.Context, c *common, config configs.Config, redact *trace.Redactor) (*control.Gate, error) {
	for _, l := range config.Listeners {
		if l.Mode == string(proxy.Control) {
			k := config.Control
			protocol, _, _ := configs.SplitAddress(l.Listen)
			shown := func(sql string) string {
				sql = secret.SQL(sql, lex.Of(product.Of(protocol).Dialect)).SQL
				if redact != nil {
					sql = redact.SQL(sql, lex.Of(product.Of(protocol).Dialect))
				}
				return sql
			}
			return control.New(ctx, control.Options{Schedule: k.Schedule, Sessions: k.Sessions, Think: k.Think, Locks: k.Locks, Shown: shown}, c.random().IntN, c.log)
		}
	}
	return nil, nil
}

// tellSchedule prints the schedule of a controlled run, and saves it where that is wanted.
func tellSchedule(c *common, config configs.Config, gate *control.Gate) error {
	if path := config.Control.Save; path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("save the schedule: %w", err)
		}
		if err := errors.Join(gate.Report(f, c.seed), f.Close()); err != nil {
			return fmt.Errorf("save the schedule: %w", err)
		}
	}
	if c.format != "text" {
		return nil
	}
	return gate.Report(c.stdout, c.seed)
}

// serve runs a proxy that no signal changes, see housekeeping.serve.
func serve(ctx context.Context, p *proxy.Proxy, l *live.Checker, gate *control.Gate) error {
	return (&housekeeping{proxy: p, checker: l}).serve(ctx, gate)
}

// serve runs the proxy until ctx ends and keeps the history on disk up to date meanwhile. gate is nil but in mode control.
func (h *housekeeping) serve(ctx context.Context, gate *control.Gate) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	g, gctx := errgroup.WithContext(context.WithoutCancel(ctx))
	served := make(chan struct{})
	if gate != nil {
		scheduling, stop := context.WithCancel(gctx)
		g.Go(func() error {
			<-served // until then sessions may finish their transactions
			stop()
			return nil
		})
		g.Go(func() error {
			defer stop()
			defer end() // nobody is let go any more
			return gate.Run(scheduling)
		})
	}
	g.Go(func() error {
		defer close(served)
		return h.proxy.Serve(ctx)
	})
	if h.web != nil {
		serving, stop := context.WithCancel(gctx)
		g.Go(func() error {
			<-served
			stop()
			return nil
		})
		g.Go(func() error { return h.web.Serve(serving, ctx.Done()) })
	}
	g.Go(func() error {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-served:
				return nil
			case <-gctx.Done():
				return nil
			case <-tick.C:
				h.checker.Flush()
			case s := <-h.signals:
				if s == syscall.SIGHUP && hungUp() {
					h.log.Info().Msg("the terminal is gone: the proxy ends")
					end()
					continue
				}
				h.signal(s)
			}
		}
	})
	return g.Wait()
}

// listen opens all listeners of the configuration.
func (h *housekeeping) listen(ctx context.Context, rec *recorder.Recorder, gate *control.Gate) (*proxy.Proxy, error) {
	config := h.config
	var list []proxy.Config
	settings := map[string]live.Observation{}
	for i, cfg := range config.Listeners {
		pc, err := proxyConfig(config, cfg)
		if err != nil {
			return nil, err
		}
		pc.Name = cmp.Or(pc.Name, pc.Listen.String())
		if _, taken := settings[pc.Name]; taken {
			pc.Name = fmt.Sprintf("%s (%d)", pc.Name, i+1)
		}
		settings[pc.Name] = live.Observation{
			Capture: rewrite.Capture(cfg.Capture), Warn: true, Limits: record.Limits{Accesses: config.Limits.Accesses, Gap: cfg.UnitGap},
			AllTables: h.allTables,
		}
		pc.Tap, pc.Quiet = taps(rec), &atomic.Bool{}
		if pc.Mode == proxy.Control {
			pc.Gate = gate
			if rec == nil {
				pc.Tap = gate.Tap()
			}
		}
		pc.Quiet.Store(!bool(cfg.Warn))
		h.quiet = append(h.quiet, pc.Quiet)
		if cfg.Sample < 1 {
			h.random() // it chooses the seed
			pc.Sample, pc.Seed = cfg.Sample, h.seed
		}
		list = append(list, pc)
	}
	warnOpen(h.log, list)
	return proxy.Listen(ctx, h.log, func(pc proxy.Config) (proxy.Handler, error) { return h.checker.Handler(pc, settings[pc.Name]) }, list...)
}
