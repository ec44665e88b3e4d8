package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/backends/instrument"
	"wirecheck/configs"
	"wirecheck/internal/shop"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/report"
)

// The crowd of the demo: correct transactions beside the scenes, of which none may be reported.
const (
	crowdClients   = 4
	crowdTransfers = 100
)

// demoLog keeps the log's lines out of the show; what goes wrong is still said.
const demoLog = zerolog.ErrorLevel

func newDemoCommand(c *common) *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show wirecheck at work on private servers",
		Long: `demo starts a private PostgreSQL server and a private MariaDB server, puts the
proxy in front of both, and runs a small shop and bank. Three transactions are
wrong: a balance check allows write skew, two customers use one coupon (lost
update), and a report reads while a transfer runs (read skew). Many correct
transfers run beside them.

demo prints what every client sent and received, warnings included, and then
wirecheck's own report. It removes the servers at the end.`,
		Example: `  wirecheck demo
  wirecheck demo --engine postgres`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engines := []string{"postgres", "mariadb"}
			if only != "" {
				if !slices.Contains(engines, only) {
					return fmt.Errorf("no demo for engine %q: there is one for %s", only, strings.Join(engines, " and "))
				}
				engines = []string{only}
			}
			return runDemo(cmd.Context(), c, engines)
		},
	}
	cmd.Flags().StringVar(&only, "engine", "", "show one half only: postgres or mariadb")
	return cmd
}

// demoHalf is the part of the demo that one product plays.
type demoHalf struct {
	engine engine.Descriptor
	server *engine.Server
	direct shop.Target
	proxy  shop.Target
}

func runDemo(ctx context.Context, c *common, engines []string) (err error) {
	began := time.Now()
	var halves []*demoHalf
	defer func() {
		for _, h := range halves {
			err = errors.Join(err, h.server.Close())
		}
	}()
	for _, name := range engines {
		h, err := startHalf(ctx, c.stdout, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && len(engines) > 1:
			fmt.Fprintf(c.stdout, "The %s half is left out: %v\n", name, err)
			continue
		case err != nil:
			return err
		}
		halves = append(halves, h)
	}
	if len(halves) == 0 {
		return errors.New("no server could be started: there is nothing to show")
	}
	findings, err := playHalves(ctx, c, halves)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "The demo took %.0f s. The servers are removed.\n", time.Since(began).Seconds())
	return expected(halves, findings)
}

// expected makes the demo fail if an anomaly of a scene was not found: then what it showed is not what it promised.
func expected(halves []*demoHalf, findings []oracle.Finding) error {
	for _, h := range halves {
		for _, s := range shop.Scenes(h.engine.Name) {
			if !slices.ContainsFunc(findings, func(f oracle.Finding) bool {
				return f.Title() == s.Name && f.Transactions[0].Engine == h.engine.Name
			}) {
				return fmt.Errorf("the %s on %s was not found: please report this", s.Name, h.engine.Title)
			}
		}
	}
	return nil
}

// startHalf starts a server and fills its database.
func startHalf(ctx context.Context, out io.Writer, name string) (*demoHalf, error) {
	d, err := backends.ByName(name)
	if err != nil {
		return nil, err
	}
	s, err := d.Start(ctx, engine.Options{})
	if err != nil {
		return nil, err
	}
	h := &demoHalf{engine: d, server: s}
	if err := h.fill(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	fmt.Fprintf(out, "Started a private %s %s at %s\n", d.Title, s.Version, s.Address())
	return h, nil
}

func (h *demoHalf) fill(ctx context.Context) error {
	t := shop.Target{Engine: h.engine.Name, Host: h.server.Host, Port: h.server.Port, User: h.server.User, Password: h.server.Password}
	t.Database = "postgres"
	if h.engine.Protocol == engine.ProtocolMySQL {
		t.Database = ""
	}
	if err := statements(ctx, t, "CREATE DATABASE shop"); err != nil {
		return err
	}
	t.Database = "shop"
	h.direct = t
	if err := statements(ctx, t, shop.Setup...); err != nil {
		return err
	}
	if h.engine.Protocol != engine.ProtocolMySQL {
		return nil
	}
	url := fmt.Sprintf("mariadb://%s@%s/shop", t.User, h.server.Address())
	db, err := instrument.Open(ctx, url, instrument.Options{Password: t.Password})
	if err != nil {
		return err
	}
	for _, table := range db.Tables {
		if r := db.Add(ctx, table); r.Error != "" {
			return errors.Join(fmt.Errorf("instrument %s: %s", table, r.Error), db.Close())
		}
	}
	return db.Close()
}

// statements runs a list of statements on one connection.
func statements(ctx context.Context, t shop.Target, list ...string) (err error) {
	c, err := t.Connect(ctx, shop.Driver)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, sql := range list {
		if _, err := c.Do(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// playHalves puts one proxy in front of all servers and plays the scenes.
func playHalves(ctx context.Context, c *common, halves []*demoHalf) (_ []oracle.Finding, err error) {
	config := configs.Default()
	for _, h := range halves {
		l := configs.DefaultListener()
		l.Listen = string(h.engine.Protocol) + "://127.0.0.1:0"
		l.Upstream = string(h.engine.Protocol) + "://" + h.server.Address()
		config.Listeners = append(config.Listeners, l)
	}
	l, err := live.New(live.Options{Log: c.log.Level(demoLog), Now: time.Now()})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := *c
	quiet.log = c.log.Level(demoLog)
	run := &housekeeping{common: &quiet, config: config, checker: l}
	if run.proxy, err = run.listen(ctx, nil, nil); err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.Go(func() error { return serve(ctx, run.proxy, l, nil) })
	for i, h := range halves {
		h.proxy = h.direct
		h.proxy.Port = run.proxy.Addrs()[i].(*net.TCPAddr).Port
		if err = h.play(ctx, c.stdout); err != nil {
			break
		}
	}
	stop()
	err = errors.Join(err, g.Wait())
	found, finishErr := l.Finish()
	if err = errors.Join(err, finishErr); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.stdout, "\n%s\n\n", heading("What wirecheck reports"))
	return found.Findings, printResult(c.stdout, report.Result{Findings: found.Findings, Coverage: found.Coverage}, c.format, "")
}

// play acts out the scenes of one product, with the crowd beside them.
func (h *demoHalf) play(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n", heading(fmt.Sprintf("%s, through wirecheck at %s:%d", h.engine.Title, h.proxy.Host, h.proxy.Port)))
	var crowd errgroup.Group
	crowd.Go(func() error { return shop.Crowd(ctx, h.proxy, crowdClients, crowdTransfers, 1) })
	for i, s := range shop.Scenes(h.engine.Name) {
		fmt.Fprintf(out, "\n%d. %s: %s.\n\n", i+1, strings.ToUpper(s.Name[:1])+s.Name[1:], s.Title)
		if _, err := shop.Play(ctx, h.proxy, s, out); err != nil {
			return errors.Join(fmt.Errorf("%s: scene %q: %w", h.engine.Title, s.Name, err), crowd.Wait())
		}
		fmt.Fprintf(out, "\n   Effect: %s.\n", s.Effect)
	}
	if err := crowd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", h.engine.Title, err)
	}
	fmt.Fprintf(out, "\n   Beside all this, a crowd of %d clients made %d correct transfers, at the same time and through the same proxy.\n", crowdClients, crowdClients*crowdTransfers)
	return nil
}

func heading(s string) string { return "== " + s + " " + strings.Repeat("=", max(0, 100-len(s))) }
