package hunt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"wirecheck/fleet/work"
	"wirecheck/history/prose"
	"wirecheck/report"
)

// Status is how far a fleet's hunt has come.
type Status struct {
	Server  string          `json:"server"` // the product and its version
	Began   time.Time       `json:"began"`
	Rate    float64         `json:"cases_per_second"` // of the hunters that live
	Counts  *State          `json:"counts"`
	Bugs    []FleetBug      `json:"bugs"`
	Hunters []Hunter        `json:"hunters"`
	Groups  []GroupUnderway `json:"groups"`
}

// FleetBug is a bug that a fleet has found.
type FleetBug struct {
	Folder    string `json:"folder"`
	Title     string `json:"title"`
	Signature string `json:"signature"`
	Seen      int    `json:"seen"`
	By        string `json:"by"` // the hunter that keeps it
}

// GroupUnderway is a group of cases that is not done.
type GroupUnderway struct {
	Number int    `json:"group"` // from 0
	Next   int    `json:"next"`  // case
	Done   int    `json:"done"`  // cases
	By     string `json:"by"`

	holder string
}

// silent is how long a hunter may say nothing and still counts as one that works.
const silent = 10 * signEvery

// ReadStatus asks a fleet how far it has come.
func ReadStatus(ctx context.Context, f *work.Fleet) (*Status, error) {
	s := &Status{Bugs: []FleetBug{}, Hunters: []Hunter{}, Groups: []GroupUnderway{}}
	var id identity
	var server versioned
	for key, into := range map[string]any{identityKey: &id, serverKey: &server} {
		text, err := f.Settled(ctx, key)
		if err == nil && text != nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			return nil, err
		}
	}
	s.Server, s.Began = server.Product+" "+server.Version, id.Began
	var err error
	var groups []GroupUnderway
	if s.Counts, groups, err = viewed(ctx, f); err != nil {
		return nil, err
	}
	s.Counts.Engine, s.Counts.Fleet, s.Counts.Elapsed = id.Engine, id.ID, time.Since(id.Began)
	signs, err := f.Processes(ctx)
	if err != nil {
		return nil, err
	}
	last := time.Time{} // by the server's clock
	for _, sign := range signs {
		if sign.At.After(last) {
			last = sign.At
		}
	}
	names := map[string]string{}
	for _, self := range slices.Sorted(maps.Keys(signs)) {
		var h Hunter
		if err := json.Unmarshal(signs[self].What, &h); err != nil {
			return nil, err
		}
		h.Seen, names[self] = signs[self].At, h.Name
		if passed := h.Seen.Sub(h.Since).Seconds(); !h.Ended && last.Sub(h.Seen) < silent && passed > 0 {
			s.Rate += float64(h.Cases) / passed
		}
		s.Hunters = append(s.Hunters, h)
	}
	slices.SortStableFunc(s.Hunters, func(a, b Hunter) int { return a.Since.Compare(b.Since) })
	for _, g := range groups {
		g.By = names[g.holder]
		s.Groups = append(s.Groups, g)
	}
	return s, s.readBugs(ctx, f)
}

func (s *Status) readBugs(ctx context.Context, f *work.Fleet) error {
	found, err := f.OpenLog(ctx, foundLog)
	if err != nil {
		return err
	}
	for {
		e, err := found.Next(ctx)
		if e == nil || err != nil {
			return err
		}
		var p placed
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		if p.Bug != nil {
			s.Bugs = append(s.Bugs, FleetBug{p.Folder, p.Bug.Title, p.Bug.Signature, s.Counts.Seen[p.Bug.Signature], p.By})
		}
	}
}

// JSON writes all of it.
func (s *Status) JSON(w io.Writer) error { return report.Indented(w, s) }

// statusWidth is that of a terminal.
const statusWidth = 80

// Text writes it for people.
func (s *Status) Text(w io.Writer) error {
	c := s.Counts
	head := fmt.Sprintf("%s since %s: %s, %.1f a second now, %s of %s, %d flaky, %d unknown, %s, %s", s.Server, s.Began.Format(time.DateTime),
		prose.Count(c.Cases, "case"), s.Rate, prose.Count(len(s.Bugs), "bug"), prose.Count(c.Findings, "finding"), c.Flaky, c.Unknown,
		fmt.Sprintf("%d crashes and hangs", c.Crashes), prose.Count(c.Broken, "broken case"))
	fmt.Fprintln(w, prose.Wrap(head, statusWidth, "", "  "))
	for _, b := range s.Bugs {
		fmt.Fprintf(w, "\n%s\n", prose.Wrap(b.Title, statusWidth, b.Folder+": ", "  "))
		fmt.Fprintf(w, "  %s, seen %s\n  kept by %s\n", b.Signature, prose.Count(b.Seen, "time"), b.By)
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "hunter\tsince\tlast sign\tcases\tworks on")
	for _, h := range s.Hunters {
		at := "-"
		for _, g := range s.Groups {
			if g.By == h.Name {
				at = fmt.Sprintf("group %d, case %d", g.Number, g.Next)
			}
		}
		if h.Ended {
			at = "ended"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", prose.Cut(h.Name, 24), h.Since.Format(shortTime), h.Seen.Local().Format(shortTime), h.Cases, at)
	}
	return table.Flush()
}

// shortTime has no room for the year.
const shortTime = "01-02 15:04:05"
