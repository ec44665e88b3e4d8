package explore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/fleet/work"
)

// stage is work of an advice whose jobs do not depend on each other, but on the stages before.
type stage struct {
	text string // of the progress, with the job's number and how many there are
	jobs []job
}

// job is one trial, or the remedies of one pair.
type job struct {
	run  func(ctx context.Context, a *adviser) error
	made func() any              // what it has brought, as JSON
	take func(made []byte) error // takes over what it has brought elsewhere
}

// trying is the job of executing a pair at a level, or of saying why not.
func trying(o *Outcome, run func(ctx context.Context, a *adviser) error) job {
	return job{run: run, made: func() any { return o }, take: func(made []byte) error {
		level := o.level
		*o = Outcome{level: level}
		err := json.Unmarshal(made, o)
		if o.Refused == nil {
			o.Refused = map[string]int{}
		}
		return err
	}}
}

// mending is the job of executing the remedies of each pair.
func mending(text string, pairs []*Pair) stage {
	s := stage{text: text}
	for _, p := range pairs {
		s.jobs = append(s.jobs, job{
			run:  func(ctx context.Context, a *adviser) error { return a.remedies(ctx, p) },
			made: func() any { return &p.mended },
			take: func(made []byte) error {
				p.mended = mended{}
				return json.Unmarshal(made, &p.mended)
			},
		})
	}
	return s
}

// stages are all that there is to execute.
func (a *adviser) stages() []stage {
	var first, rest []job
	for i := range a.advice.Levels { // by level, since each has labs of its own
		for _, p := range a.advice.Pairs {
			o := p.Levels[i]
			run := trying(o, func(ctx context.Context, a *adviser) error { return a.try(ctx, p, o) })
			if o.Level == p.Level {
				first = append(first, run)
			} else {
				rest = append(rest, run)
			}
		}
	}
	pairs := "pair and level %d of %d"
	return []stage{
		{pairs, append(first, rest...)}, mending("remedies of pair %d of %d", a.advice.Pairs),
		{"three at once and level %d of %d", a.tryTriples()}, mending("remedies of three at once %d of %d", a.advice.Triples),
	}
}

// tryAll executes everything that there is time for, and gives the number of interleavings.
func (a *adviser) tryAll(ctx context.Context) (executed int, err error) {
	stages := a.stages()
	if a.r.o.Fleet != nil {
		return a.share(ctx, stages)
	}
	all := a.crew()
	defer func() {
		for _, b := range all[1:] {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	for _, s := range stages {
		if executed, err = s.work(ctx, all); err != nil {
			break
		}
	}
	return executed, err
}

// mostWorkers is how many advisers work at the same time, one for each processor: while one waits for its server process, another one works. Each has
// databases and connections of its own, of which a server that is not private has fewer.
const mostWorkers, mostGuests = 4, 2

// crew is this adviser, and others like it.
func (a *adviser) crew() []*adviser {
	n := min(runtime.NumCPU(), mostWorkers)
	if !a.r.private() {
		n = min(n, mostGuests)
	}
	all := []*adviser{a}
	for len(all) < n {
		b := *a
		b.explorer = newExplorer(a.r, a.defined)
		all = append(all, &b)
	}
	return all
}

// work executes the jobs of a stage, each by who is free, and gives the number of interleavings that all have executed.
func (s *stage) work(ctx context.Context, all []*adviser) (executed int, err error) {
	var mu sync.Mutex // guards what follows
	next, total := 0, 0
	for _, a := range all {
		total += a.executed
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range all {
		before := a.executed
		g.Go(func() error {
			for {
				mu.Lock()
				total += a.executed - before
				before = a.executed
				i := next
				if next++; i < len(s.jobs) {
					a.progress(*s, i, total)
				}
				mu.Unlock()
				if i >= len(s.jobs) {
					return nil
				}
				if err := s.jobs[i].run(ctx, a); err != nil {
					return err
				}
			}
		})
	}
	err = g.Wait()
	for _, a := range all {
		executed += a.executed
	}
	return executed, err
}

func (a *adviser) progress(s stage, i, executed int) {
	a.r.o.Progress(int64(i), int64(len(s.jobs)), s.text+", interleavings: %d", i+1, len(s.jobs), executed)
}

// brought is what a job has brought, as a fleet keeps it.
type brought struct {
	Executed int             `json:"executed"`
	Made     json.RawMessage `json:"made"`
}

// share executes the jobs together with a fleet. Each job is an item; who has all results of the stages before, begins a stage.
func (a *adviser) share(ctx context.Context, stages []stage) (executed int, err error) {
	var jobs []job
	var ends []uint64 // the last job of each stage
	for _, s := range stages {
		jobs = append(jobs, s.jobs...)
		ends = append(ends, uint64(len(jobs)))
	}
	had, at := uint64(0), 0
	err = a.r.o.Fleet.Share(ctx, work.Sharing{
		UpTo: func() uint64 {
			for at < len(ends)-1 && had >= ends[at] {
				at++
			}
			return ends[at]
		},
		Do: func(ctx context.Context, n uint64) (any, error) {
			i, s := int(n)-1, 0
			for n > ends[s] {
				i -= len(stages[s].jobs)
				s++
			}
			a.progress(stages[s], i, executed)
			j, before := jobs[n-1], a.executed
			if err := j.run(ctx, a); err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) { // what the budget allowed counts
				return nil, err
			}
			made, err := json.Marshal(j.made())
			return &brought{a.executed - before, made}, err
		},
		Have: func(n uint64, result []byte) error {
			var b brought
			if err := json.Unmarshal(result, &b); err != nil {
				return err
			}
			had, executed = had+1, executed+b.Executed
			return jobs[n-1].take(b.Made)
		},
		Waits: func(err error) {
			a.r.o.Judging.Log.Warn().Err(err).Msg("the fleet's server does not answer; it is asked again")
		},
		Taken: func(n uint64) {
			a.r.o.Judging.Log.Warn().Uint64("item", n).Msg("another process of the fleet has gone on with this, since this one gave no sign of life")
		},
	})
	return executed, err
}

// common is what all processes of a fleet must have alike for an advice.
type common struct {
	Began time.Time `json:"began"` // of the first one: the budget is the fleet's
	Input string    `json:"input"` // a digest of the trace and the snapshot
}

// agree compares the files with the fleet's, and gives the fleet's beginning.
func agree(ctx context.Context, f *work.Fleet, path, snapshot string, began time.Time) (time.Time, error) {
	digest := sha256.New()
	for _, name := range []string{path, snapshot} {
		if name == "" {
			continue
		}
		if err := copyFile(digest, name); err != nil {
			return began, fmt.Errorf("compare with the fleet's: %w", err)
		}
	}
	mine := common{began, hex.EncodeToString(digest.Sum(nil))}
	first, err := work.Agree(ctx, f, "advice", mine)
	if err == nil && first.Input != mine.Input {
		err = errors.New("the fleet advises on another trace, or with another --snapshot: give the same files, or name another --fleet")
	}
	return first.Began, err
}

func copyFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}

// sameWork compares this process's server, and what there is to execute on it, with the fleet's: jobs must be the same everywhere.
func (a *adviser) sameWork(ctx context.Context) error {
	f := a.r.o.Fleet
	server := a.r.instance.Engine.Title + " " + a.r.instance.Version
	first, err := work.Agree(ctx, f, "server", server)
	if err != nil {
		return err
	}
	if first != server {
		return fmt.Errorf("the fleet executes on %s, and this server is %s: use the same version, or name another --fleet", first, server)
	}
	text, err := json.Marshal(a.advice)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	mine := hex.EncodeToString(sum[:])
	if first, err = work.Agree(ctx, f, "work", mine); err == nil && first != mine {
		err = errors.New("executed again, the trace has other transactions here than at the fleet's first process: its replay is not the same each time; advise without --join")
	}
	return err
}
