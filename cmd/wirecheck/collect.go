package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"wirecheck/configs"
	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/internal/garbage"
	"wirecheck/live"
	"wirecheck/live/web"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/report/page"
)

const collectLong = `collect judges together what several proxies publish: anomalies between sessions
of different proxies are found, too. Start each proxy with --publish and the
address of one NATS server with JetStream, and collect with the same address.

The address is nats://HOST:PORT or tls://HOST:PORT, with a user and a password
or a token before the @, and ?creds=FILE, ca=FILE, cert=FILE and key=FILE; or
embedded:DIR for processes of one machine: one of them has the server.

The findings have the ids and texts that one proxy would give. They stay in a
list at NATS, with how far collect has read. So a collector that ends, or is
killed, goes on where it was: each finding is in the list once, and is printed
at least once. What it did not read meanwhile it reads then, as far as NATS
still keeps it: --keep-for and --keep-size.

Sessions that take part in what is found between proxies are warned by their
proxies, as of an anomaly within one proxy, at their next answers.

Where a proxy lost events, since NATS was away for too long, nothing is inferred
across the gap, and collect says so.

Where one collector is too slow, several share its work: each with --part I/N
draws the edges of some of the rows, and one with --parts N finds out which
transactions may be part of an anomaly, and judges these in full.

collect runs until SIGINT or SIGTERM, then prints what was found. With
--until-end, it judges what there is and ends. SIGUSR1 prints what was found so
far. SIGHUP opens the files of the findings and the log again.

Exit status: 0 nothing found; 1 something found; 2 wirecheck could not do its
work; 3 nothing found, but that means nothing: no statement came, or wirecheck
saw none exactly, or fewer than --min-coverage asks for.`

type collectFlags struct {
	from, fleet string
	untilEnd    bool
	keepFor     time.Duration
	keepSize    configs.Size
	config      configs.Config
	unit        unitFlags
	part        partFlag
	parts       int
}

func newCollectCommand(c *common) *cobra.Command {
	f := collectFlags{config: configs.Default()}
	cmd := &cobra.Command{
		Use:   "collect --from ADDRESS",
		Short: "Judge together what several proxies publish",
		Long:  collectLong,
		Example: `  wirecheck collect --from nats://nats.example:4222 --http 127.0.0.1:9091
  wirecheck collect --from embedded:/var/lib/wirecheck/fleet
  wirecheck collect --from nats://nats.example:4222 --part 2/4
  wirecheck collect --from nats://nats.example:4222 --parts 4
  wirecheck collect --from nats://127.0.0.1:4222 --until-end --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.from == "" {
				return errors.New("from where? Say --from nats://HOST:PORT or --from embedded:DIR")
			}
			if err := errors.Join(checkPublish(f.from, f.fleet), f.unit.check(), checkLeast(f.config.MinCoverage), f.checkParts()); err != nil {
				return err
			}
			c.endWithin(fleetPatience)
			f.config.Unit, f.config.Possible, f.config.LogLevel = f.unit.unit, f.unit.possible, c.logLevel
			if f.part.parts > 0 {
				return f.runPart(cmd.Context(), c)
			}
			return f.run(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "address of the NATS server to which the proxies publish, or embedded:DIR")
	fleetFlag(flags, &f.fleet)
	flags.Var(&f.part, "part", "draw the edges of this part of the rows, for a collector with --parts, as in 2/4")
	flags.IntVar(&f.parts, "parts", 0, "judge what so many collectors with --part find")
	flags.BoolVar(&f.untilEnd, "until-end", false, "judge what there is, and end")
	flags.DurationVar(&f.keepFor, "keep-for", 0, "how long NATS keeps events, as in 48h (default 24h)")
	flags.Var(&f.keepSize, "keep-size", "how much NATS keeps of events, as in 10GiB (default 1GiB)")
	flags.StringVar(&f.config.HTTP, "http", "", "serve a page of the findings as they come, and metrics, at this address, as in 127.0.0.1:9091; without a host: this machine alone")
	flags.StringVar(&f.config.Report, "report", "", "write each finding to this file at once, as text")
	flags.StringVar(&f.config.Stream, "stream", "", `write each finding to this file at once, as a line of JSON; "-" is stdout`)
	flags.StringVar(&f.config.Log, "log", "", "write the log to this file and not to stderr")
	f.unit.flags(flags)
	leastFlag(flags, &f.config.MinCoverage)
	flags.Var(&f.config.Values, "values", valuesUsage)
	flags.BoolVar(&f.config.ExplainCoverage, "explain-coverage", false, explainUsage)
	flags.BoolVar(&f.config.Strict, "strict", false, "also report what only session order or real time forbids")
	return cmd
}

// ledger is what collectors remember of one another.
type ledger interface {
	Findings(context.Context) ([][]byte, error)
	Add(ctx context.Context, id string, text []byte) error
	Count(id string)
	Seen(id string) int
}

// collecting is a run of the command.
type collecting struct {
	*common
	config   configs.Config
	out      *outputs
	checker  *live.Checker
	ledger   ledger
	read     func(ctx context.Context, untilEnd bool) error
	old      func() bool // what is found is known to a collector before this one
	coverage func(isolation.Coverage) isolation.Coverage
	missing  func() (gaps, events int) // stream.Collector.Missing
	warner   *stream.Warner
	owner    func(session uint64) (run string, own uint64, open bool) // of the event at hand, see stream.Collector.Owner
	title    string

	known map[string]bool // the ids of the findings in the list; of the goroutine that reads, as err is
	err   error           // why a finding could not be written down

	mu    sync.Mutex // guards found
	found []oracle.Finding
}

// run collects until ctx ends, then prints what was found.
func (f *collectFlags) run(ctx context.Context, c *common) (err error) {
	k := &collecting{common: c, config: f.config, title: "fleet " + f.fleet, known: map[string]bool{}}
	if k.out, err = openOutputs(c, f.config); err != nil {
		return err
	}
	defer func() { err = overStatus(err, k.out.close()) }()
	signal.Ignore(syscall.SIGPIPE) // the end of who reads the log must not end the judging
	defer garbage.Tune()()
	b, err := bus.Open(ctx, f.from, bus.Options{Name: "collect", Changed: tellConnection(c.log, "collecting")})
	if err != nil {
		return err
	}
	defer b.Close()
	if k.warner, err = stream.NewWarner(b, f.fleet); err != nil {
		return err
	}
	defer k.warned()
	o := live.Options{
		Stream: k.out.stream, Strict: f.config.Strict, Explain: f.config.ExplainCoverage, Log: c.log, Now: time.Now(), News: k.news,
		OnFind: func(found oracle.Finding) { k.add(context.WithoutCancel(ctx), found) },
		Judge:  live.Judge{Transactions: f.config.Unit == unitTransaction, Possible: f.config.Possible}, HideValues: !bool(f.config.Values),
	}
	if err := k.open(ctx, f, b, &o); err != nil {
		return err
	}
	if err := k.readList(ctx); err != nil {
		return err
	}
	if k.checker, err = live.New(o); err != nil {
		return err
	}
	c.log.Info().Str("from", b.Where()).Str("fleet", f.fleet).Msg("collecting")
	return k.collect(ctx, f.untilEnd)
}

// open opens what is read: the events of all, or what the parts find.
func (k *collecting) open(ctx context.Context, f *collectFlags, b *bus.Bus, o *live.Options) error {
	keep := stream.Keep{Age: f.keepFor, Bytes: int64(f.keepSize)}
	if f.parts > 0 {
		g, err := stream.NewGathering(ctx, b, f.fleet, keep, f.parts)
		if err != nil {
			return err
		}
		n := k.gather(g, f.parts)
		k.ledger, k.read, k.old, k.coverage, k.missing = g, n.run, func() bool { return false }, n.covered, n.lost
		return nil
	}
	c, err := stream.NewCollector(ctx, b, stream.CollectorOptions{
		Fleet: f.fleet, Keep: keep, Take: func(e *history.Event) { k.checker.Take(e) }, Needed: func() uint64 { return k.checker.Needed() },
		Settled: func() bool { return !k.warner.Waiting() }, Said: func(run, what string) { k.log.Warn().Str("run", run).Msg(what) },
	})
	if err != nil {
		return err
	}
	k.ledger, k.read, k.old, k.coverage, k.missing = c, c.Run, c.Old, func(v isolation.Coverage) isolation.Coverage { return v }, c.Missing
	k.owner, o.Recorder, o.Origin = c.Owner, c.Recorder, c.Origin
	return nil
}

// readList reads what collectors before this one found.
func (k *collecting) readList(ctx context.Context) error {
	texts, err := k.ledger.Findings(ctx)
	if err != nil {
		return fmt.Errorf("read the list of findings: %w", err)
	}
	for _, text := range texts {
		var f oracle.Finding
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("read the list of findings: %w", err)
		}
		k.known[f.ID] = true
		k.found = append(k.found, f)
	}
	return nil
}

// news counts a finding and warns of it, and reports whether it is not in the list.
func (k *collecting) news(f *oracle.Finding) bool {
	if k.old() {
		return false
	}
	k.ledger.Count(f.ID)
	k.err = errors.Join(k.err, k.warn(*f))
	return !k.known[f.ID]
}

// add puts a finding into the list, after it was told.
func (k *collecting) add(ctx context.Context, f oracle.Finding) {
	if k.out.found != nil {
		k.out.found(f)
	}
	text, err := json.Marshal(f)
	if err == nil {
		err = k.ledger.Add(ctx, f.ID, text)
	}
	k.err = errors.Join(k.err, err)
	k.known[f.ID] = true
	k.mu.Lock()
	defer k.mu.Unlock()
	k.found = append(k.found, f)
}

// collect reads until the end.
func (k *collecting) collect(ctx context.Context, untilEnd bool) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)
	var page *web.Server
	if k.config.HTTP != "" {
		var err error
		if page, err = k.openWeb(ctx); err != nil {
			return err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	ctx, end := context.WithCancel(gctx)
	g.Go(func() error {
		defer end()
		return k.read(ctx, untilEnd)
	})
	g.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case s := <-signals:
				k.signal(s)
			}
		}
	})
	if page != nil {
		g.Go(func() error { return page.Serve(ctx, ctx.Done()) })
	}
	err := g.Wait()
	end()
	result, e := k.checker.Finish()
	err = errors.Join(err, e, k.err, k.out.closeFindings())
	r := k.result(result)
	if err = errors.Join(err, k.out.summary(r, k.format)); err != nil {
		return err
	}
	return status(r)
}

// list is the list of findings, with how often each was found.
func (k *collecting) list() []oracle.Finding {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := slices.Clone(k.found)
	for i := range list {
		list[i].Seen = max(1, k.ledger.Seen(list[i].ID))
	}
	return list
}

func (k *collecting) result(seen live.Result) report.Result {
	seen.Coverage = k.coverage(seen.Coverage)
	r := judged(k.list(), seen.Coverage, k.config.Unit, k.config.MinCoverage, "")
	if k.config.ExplainCoverage {
		r.Explained = seen.Coverage.Explain()
	}
	r.Dropped.Gaps, r.Dropped.Lost = k.missing()
	return r
}

// signal does what a signal asks for.
func (k *collecting) signal(s os.Signal) {
	if s == syscall.SIGUSR1 {
		printSoFar(k.common, k.out, k.result(k.checker.Result()))
		return
	}
	if err := k.out.reopen(); err != nil {
		k.log.Error().Err(err).Msg("a file cannot be opened again: the old one stays")
	}
}

// openWeb opens the address of --http.
func (k *collecting) openWeb(ctx context.Context) (*web.Server, error) {
	address, err := configs.HTTPAddress(k.config.HTTP)
	if err != nil {
		return nil, err
	}
	return web.Listen(ctx, web.Options{
		Address: address, Explained: k.config.ExplainCoverage, Log: k.log, Now: time.Now,
		Status: func() live.Status {
			s := k.checker.Status()
			s.Findings, s.Coverage = k.list(), k.coverage(s.Coverage)
			return s
		},
		Document: func(s live.Status) page.Document {
			d := document(judged(s.Findings, s.Coverage, k.config.Unit, k.config.MinCoverage, ""), "")
			d.Title = k.title
			return d
		},
	})
}
