package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/backends"
	"wirecheck/backends/engine"
)

const (
	replayRows    = 10_000
	replayClients = 8
	advisedShapes = 20
	advisedTables = 5
)

// benchReplay measures replay and advise: a capture of many transactions replayed in the order of its commits against the time that it took to record, the
// interleavings executed in a second, and the advice on a capture of twenty shapes.
func benchReplay(ctx context.Context, o options) error {
	for _, name := range []string{"postgres", "mariadb"} {
		if err := replayOn(ctx, o, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// captures makes captures of a server of one product.
type captures struct {
	o      options
	engine engine.Descriptor
	server *engine.Server
	dir    string
	schema string // the file with the database as it was before
}

func replayOn(ctx context.Context, o options, name string) (err error) {
	c := &captures{o: o}
	if c.dir, err = os.MkdirTemp("", "wirecheck-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if c.engine, err = backends.ByName(name); err != nil {
		return err
	}
	if c.server, err = c.engine.Start(ctx, engine.Options{Settings: c.engine.LabSettings}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.server.Close()) }()
	if err := c.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("replay: %s %s, %d transactions of %d clients; to reach: 0.5 of the recorded speed in less than 1024 MiB, 150 interleavings/s, %d shapes in 10m\n",
		c.engine.Title, c.server.Version, o.transactions, replayClients, advisedShapes)
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"speed", c.speed}, {"interleavings", c.interleavings}, {"advice", c.advise}} {
		if wanted, err := regexp.MatchString(o.match, part.name); err != nil {
			return err
		} else if !wanted {
			continue
		}
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// prepare makes the database, and the file from which replay makes it.
func (c *captures) prepare(ctx context.Context) error {
	lines := []string{"CREATE TABLE account (id INT PRIMARY KEY, n INT)"}
	for at := 0; at < replayRows; at += 500 {
		rows := make([]string, 500)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d, 100)", at+i)
		}
		lines = append(lines, "INSERT INTO account VALUES "+strings.Join(rows, ", "))
	}
	for i := range advisedTables {
		lines = append(lines, fmt.Sprintf("CREATE TABLE t%d (id INT PRIMARY KEY, n INT)", i), fmt.Sprintf("INSERT INTO t%d VALUES (1, 100), (2, 100)", i))
	}
	c.schema = filepath.Join(c.dir, "before.sql")
	if err := os.WriteFile(c.schema, []byte(strings.Join(lines, ";\n")+";\n"), 0o600); err != nil {
		return err
	}
	t := c.server.Target()
	t.Database = c.engine.Lab.Maintenance
	if err := c.execute(ctx, t, "CREATE DATABASE bench"); err != nil {
		return err
	}
	t.Database = "bench"
	return c.execute(ctx, t, lines...)
}

// execute executes statements in a session.
func (c *captures) execute(ctx context.Context, t engine.Target, statements ...string) (err error) {
	conn, err := c.engine.Connect(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, sql := range statements {
		if err := engine.Exec(ctx, conn, sql); err != nil {
			return err
		}
	}
	return nil
}

// capture records what a client does, and gives the trace's file and how long it took.
func (c *captures) capture(ctx context.Context, name string, client func(engine.Target) error) (path string, took time.Duration, err error) {
	path = filepath.Join(c.dir, name+".wct")
	p, err := startProxy(c.o, c.engine.Name, c.server.Address(), "pass", "--record", path)
	if err != nil {
		return "", 0, err
	}
	t := c.server.Target()
	t.Host, t.Port, t.Database = "127.0.0.1", p.port, "bench"
	began := time.Now()
	err = client(t)
	took = time.Since(began)
	return path, took, errors.Join(err, p.stop())
}

// measured runs wirecheck, and gives what it printed as JSON, how long it took and its largest resident set in MiB.
func (c *captures) measured(ctx context.Context, to any, args ...string) (took time.Duration, peak float64, err error) {
	cmd := exec.CommandContext(ctx, c.o.wirecheck, append(args, "--engine", c.engine.Name, "--snapshot", c.schema, "--format", "json", "--log-level", "error", "--no-progress")...)
	began := time.Now()
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 && cmd.ProcessState.ExitCode() != 3 { // 1: it found something; 3: it cannot tell
		return 0, 0, fmt.Errorf("%q: %w", args, err)
	}
	return time.Since(began), float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024, json.Unmarshal(out, to)
}

// speed compares a replay with its recording.
func (c *captures) speed(ctx context.Context) error {
	path, recorded, err := c.capture(ctx, "many", func(t engine.Target) error {
		var clients errgroup.Group
		for client := range replayClients {
			clients.Go(func() error {
				random := rand.New(rand.NewPCG(7, uint64(client)))
				var list []string
				for range c.o.transactions / replayClients {
					id := random.IntN(replayRows)
					list = append(list, "BEGIN", fmt.Sprintf("SELECT n FROM account WHERE id = %d", id), fmt.Sprintf("UPDATE account SET n = n + 1 WHERE id = %d", id), "COMMIT")
				}
				return c.execute(ctx, t, list...)
			})
		}
		return clients.Wait()
	})
	if err != nil {
		return err
	}
	var r struct {
		Replay struct {
			Statements int
			Elapsed    time.Duration `json:"elapsed_ns"`
			Divergence struct{ Compared, Same int }
		}
	}
	_, peak, err := c.measured(ctx, &r, "replay", path, "--order", "commit", "--oracle", "none")
	if err != nil {
		return err
	}
	fmt.Printf("  recorded in %v, replayed in %v: %.2f of the speed; %d statements, %d of %d answers the same; %.0f MiB at most; load of the machine %s, %d cores\n",
		recorded.Round(time.Millisecond), r.Replay.Elapsed.Round(time.Millisecond), recorded.Seconds()/r.Replay.Elapsed.Seconds(), r.Replay.Statements,
		r.Replay.Divergence.Same, r.Replay.Divergence.Compared, peak, loadAverage(), runtime.NumCPU())
	return nil
}

// tagged is a transaction that reads a row of one table and writes one of another.
func tagged(route string, read, write, id int) []string {
	list := []string{"BEGIN", fmt.Sprintf("SELECT n FROM t%d WHERE id = %d", read, id), fmt.Sprintf("UPDATE t%d SET n = 77 WHERE id = %d", write, id), "COMMIT"}
	for i := range list {
		list[i] += " /*route='" + route + "'*/"
	}
	return list
}

// interleavings measures how many are executed in a second, without the start of the server and the replays before.
func (c *captures) interleavings(ctx context.Context) error {
	path, _, err := c.capture(ctx, "few", func(t engine.Target) error {
		var list []string
		for i := range 12 {
			first, second := tagged("a", i%2, (i+1)%2, 1), tagged("b", (i+1)%2, i%2, 2)
			list = append(append(append(list, first[:3]...), second[1:3]...), first[3])
		}
		return c.execute(ctx, t, list...)
	})
	if err != nil {
		return err
	}
	var alone, all struct{ Explored struct{ Interleavings int } }
	without, _, err := c.measured(ctx, &alone, "replay", path, "--oracle", "none", "--interleavings", "random:1", "--groups", "1")
	if err != nil {
		return err
	}
	with, _, err := c.measured(ctx, &all, "replay", path, "--oracle", "none", "--interleavings", "random:60", "--window", "6")
	if err != nil {
		return err
	}
	n := all.Explored.Interleavings - alone.Explored.Interleavings
	fmt.Printf("  %d interleavings in %v: %.0f/s; load of the machine %s\n", n, (with - without).Round(time.Millisecond), float64(n)/(with-without).Seconds(), loadAverage())
	return nil
}

// advise measures the advice on twenty shapes.
func (c *captures) advise(ctx context.Context) error {
	path, _, err := c.capture(ctx, "shapes", func(t engine.Target) error {
		var list []string
		for id := 1; id <= 2; id++ {
			for i := range advisedShapes {
				list = append(list, tagged(fmt.Sprint("r", i), i%advisedTables, (i+1+i/advisedTables)%advisedTables, id)...)
			}
		}
		return c.execute(ctx, t, list...)
	})
	if err != nil {
		return err
	}
	type outcome struct {
		Tried   int `json:"interleavings"`
		Untried string
	}
	var a struct {
		Shapes         []struct{ Number int }
		Pairs, Triples []struct{ Levels []outcome }
		Interleavings  int
	}
	took, peak, err := c.measured(ctx, &a, "advise", path)
	if err != nil {
		return err
	}
	left, outcomes := 0, 0
	for _, p := range append(a.Pairs, a.Triples...) {
		for _, o := range p.Levels {
			if outcomes++; strings.Contains(o.Untried, "--budget") {
				left++
			}
		}
	}
	fmt.Printf("  advice on %d shapes, %d pairs and %d triples in %v: %d interleavings, %.0f/s; left when the budget ended: %d of %d pairs or triples and levels; %.0f MiB at most; load of the machine %s\n",
		len(a.Shapes), len(a.Pairs), len(a.Triples), took.Round(time.Second), a.Interleavings, float64(a.Interleavings)/took.Seconds(), left, outcomes, peak, loadAverage())
	return nil
}
