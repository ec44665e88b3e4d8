package main

import (
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"

	"wirecheck/fleet/work"
	"wirecheck/live/control"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/scheduler"
	"wirecheck/scheduler/search"
)

// searching is a search for a schedule that fails. Runs have numbers from 1, and each schedule depends on its number and on the runs before alone, so
// that it does not matter who runs it.
type searching struct {
	x       *explorer
	e       *explored
	all     search.All
	seen    map[string]bool
	steps   int // of the first run, over which pct spreads its changes of priority
	choices int
	ended   bool
}

// smallest is what became of the schedule of a run that fails.
type smallest struct {
	failed *outcome
	from   int // switches at first
	tried  int // runs that looked for a smaller one
	again  bool
}

// search runs schedules until one fails, and looks for a small one that fails in the same way.
func (x *explorer) search(ctx context.Context, e *explored, fleet *work.Fleet) error {
	s := &searching{x: x, e: e, seen: map[string]bool{}, steps: control.UsualSteps}
	if x.f.strategy != "all" {
		e.seed = x.c.chooseSeed()
	}
	if fleet != nil {
		if err := s.share(ctx, fleet); err != nil {
			return err
		}
	}
	for !s.ended {
		o, small, err := s.run(ctx, e.runs+1)
		if err != nil {
			return err
		}
		s.ran(o, small)
	}
	if e.failed != nil {
		return x.save(e)
	}
	if s.choices == 0 && e.nothing == "" {
		e.nothing = "all runs are alike: never did two sessions have a statement at the same time"
		if sessions := slices.Compact(slices.Sorted(slices.Values(e.last.run.Order()))); len(sessions) == 1 {
			e.nothing = "the command has one session alone: there is nothing that could go in another order"
		}
	}
	return nil
}

// known is how many runs are known by now.
func (s *searching) known() int {
	switch {
	case s.ended:
		return s.e.runs
	case s.x.f.strategy == "all":
		return min(s.all.Known(), s.x.f.runs)
	case s.e.runs == 0:
		return 1
	}
	return s.x.f.runs
}

// run does run n, and makes its schedule small if it fails.
func (s *searching) run(ctx context.Context, n int) (o *outcome, small *smallest, err error) {
	var next *search.Run
	if s.x.f.strategy == "all" {
		next = s.all.Run(n)
	} else {
		strategy, err := control.Strategy(s.x.f.strategy, s.steps, mathrand.New(mathrand.NewPCG(s.e.seed, uint64(n-1))).IntN)
		if err != nil {
			return nil, nil, err
		}
		next = search.NewRun(strategy)
	}
	s.x.c.progressOf(int64(n-1), int64(s.x.f.runs), "run %d, %d different schedules", n, len(s.seen))
	if o, err = s.x.run(ctx, next, s.e.title(n)); err != nil || !o.fails() {
		return o, nil, err
	}
	small, err = s.x.shrink(ctx, o, n, s.e.title(n))
	return o, small, err
}

// ran takes over the next run. small is nil if it does not fail.
func (s *searching) ran(o *outcome, small *smallest) {
	e := s.e
	e.runs++
	e.ran(o)
	s.seen[fmt.Sprint(o.run.Order())] = true
	e.schedules = len(s.seen)
	s.choices += o.run.Choices()
	if e.runs == 1 {
		s.steps = max(len(o.run.Decisions), 1)
	}
	if s.x.f.strategy == "all" {
		s.all.Ran(o.run.Decisions)
	}
	switch {
	case o.fails():
		e.failed, e.number, e.from, e.smaller, e.again = small.failed, e.runs, small.from, small.tried, small.again
	case len(o.run.Decisions) == 0:
		e.nothing = nothingCame
	case s.choices == 0 && e.runs >= alike || e.runs == s.x.f.runs:
	case s.x.f.strategy == "all" && s.all.Known() == e.runs:
		e.exhausted = true
	default:
		return
	}
	s.ended = true
}

// title says how the schedule of a run was chosen.
func (e *explored) title(n int) string {
	if e.seed == 0 {
		return e.strategy
	}
	return fmt.Sprintf("%s, seed %d, run %d", e.strategy, e.seed, n)
}

// shrink looks for a smaller schedule that fails as run n did, and runs it once more.
func (x *explorer) shrink(ctx context.Context, first *outcome, n int, title string) (_ *smallest, err error) {
	s := &smallest{failed: first, from: search.Switches(first.run.Order())}
	if first.run.Choices() == 0 {
		return s, nil
	}
	best := first.run.Order()
	if x.f.shrink > 0 {
		best = search.Smallest(best, func(order []scheduler.Session) ([]scheduler.Session, bool, bool) {
			s.tried++
			x.c.progressOf(int64(s.tried-1), int64(x.f.shrink), "run %d failed; a smaller one: run %d", n, s.tried)
			var o *outcome
			if o, err = x.run(ctx, search.NewRun(scheduler.Recorded(order)), title); err != nil {
				return order, false, false
			}
			same := o.failsAs(first)
			if same && search.Switches(o.run.Order()) < search.Switches(s.failed.run.Order()) {
				s.failed = o
			}
			return o.run.Order(), same, s.tried < x.f.shrink
		})
		if err != nil {
			return nil, err
		}
	}
	x.c.progressf("the smallest schedule once more")
	o, err := x.run(ctx, search.NewRun(scheduler.Recorded(best)), title)
	if err != nil {
		return nil, err
	}
	s.again = o.failsAs(first)
	return s, nil
}

// sharedRun is a run as a fleet keeps it.
type sharedRun struct {
	Decisions []search.Decision  `json:"decisions"`
	Findings  []oracle.Finding   `json:"findings"`
	Known     int                `json:"known"`
	Dropped   report.Dropped     `json:"dropped"`
	Undecided string             `json:"undecided"`
	Seen      isolation.Coverage `json:"seen"`
	Exit      int                `json:"exit"`
	Why       string             `json:"why"`
	Said      string             `json:"said"`
	Schedule  string             `json:"schedule"`
	Smallest  *sharedRun         `json:"smallest,omitempty"`
	From      int                `json:"from"`
	Tried     int                `json:"tried"`
	Again     bool               `json:"again"`
}

func shareable(o *outcome, small *smallest) *sharedRun {
	if o == nil {
		return nil
	}
	r := &sharedRun{Decisions: o.run.Decisions, Findings: o.result.Findings, Known: o.result.Known, Dropped: o.result.Dropped, Undecided: o.result.Undecided,
		Seen: o.seen, Exit: o.exit, Why: o.why, Said: o.said, Schedule: o.schedule}
	if small != nil {
		r.Smallest, r.From, r.Tried, r.Again = shareable(small.failed, nil), small.from, small.tried, small.again
	}
	return r
}

func (r *sharedRun) outcome() (*outcome, *smallest) {
	o := &outcome{run: &search.Run{Decisions: r.Decisions}, seen: r.Seen, exit: r.Exit, why: r.Why, said: r.Said, schedule: r.Schedule,
		result: report.Result{Findings: r.Findings, Known: r.Known, Coverage: r.Seen, Dropped: r.Dropped, Undecided: r.Undecided}}
	if r.Smallest == nil {
		return o, nil
	}
	failed, _ := r.Smallest.outcome()
	return o, &smallest{failed, r.From, r.Tried, r.Again}
}

// sameTest compares the command and the server with the fleet's.
func (s *searching) sameTest(ctx context.Context, fleet *work.Fleet) error {
	for _, same := range [][2]string{{"server", s.x.server}, {"command", strings.Join(s.x.args, " ")}} {
		first, err := work.Agree(ctx, fleet, same[0], same[1])
		if err != nil {
			return err
		}
		if first != same[1] {
			return fmt.Errorf("the fleet's %s is %s, and this process's %s: explore the same, or name another --fleet", same[0], first, same[1])
		}
	}
	return nil
}

// share does the runs together with a fleet: run n is item n. A run is begun by who has all runs on which its schedule depends.
func (s *searching) share(ctx context.Context, fleet *work.Fleet) error {
	if err := s.sameTest(ctx, fleet); err != nil {
		return err
	}
	had := map[int]*sharedRun{} // beyond those that s has taken over
	least := s.x.f.runs         // the first that is known to fail: nobody needs the runs behind it
	upTo := func() uint64 { return uint64(min(least, s.known())) }
	return fleet.Share(ctx, work.Sharing{
		UpTo: upTo,
		Do: func(ctx context.Context, n uint64) (any, error) {
			if n > upTo() { // made before a run was known to fail
				return nil, nil
			}
			o, small, err := s.run(ctx, int(n))
			return shareable(o, small), err
		},
		Have: func(n uint64, result []byte) error {
			var r *sharedRun
			if err := json.Unmarshal(result, &r); err != nil || r == nil {
				return err
			}
			had[int(n)] = r
			if r.Smallest != nil {
				least = min(least, int(n))
			}
			for next := had[s.e.runs+1]; next != nil && !s.ended; next = had[s.e.runs+1] {
				delete(had, s.e.runs+1)
				s.ran(next.outcome())
			}
			return nil
		},
		Waits: func(err error) {
			s.x.c.log.Warn().Err(err).Msg("the fleet's server does not answer; it is asked again")
		},
		Taken: func(n uint64) {
			s.x.c.log.Warn().Uint64("run", n).Msg("another process of the fleet has gone on with this run, since this one gave no sign of life")
		},
	})
}
