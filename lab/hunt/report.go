package hunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wirecheck/history/prose"
	"wirecheck/product"
	"wirecheck/report"
	"wirecheck/report/page"
)

// line is the progress line.
func (h *hunter) line() string {
	s := &h.store.state
	passed := h.store.base + time.Since(h.began)
	accepted := 0.0
	if s.Statements > 0 {
		accepted = 100 * float64(s.Accepted) / float64(s.Statements)
	}
	return fmt.Sprintf("%d cases, %.1f a second, %.0f%% of statements accepted, %d distinct of %d findings, %d permitted, %d flaky, %d unknown, %d combinations, %d outcomes",
		s.Cases, float64(s.Cases)/max(passed.Seconds(), 0.001), accepted, len(h.store.kept), s.Findings, s.permitted(), s.Flaky, s.Unknown, h.store.steering.Coverage.Len(), h.store.steering.Coverage.Outcomes())
}

// end writes what is left, and gives what the hunt has brought.
func (h *hunter) end(ctx context.Context) (*Report, error) {
	if err := errors.Join(h.store.shared.finish(ctx), h.store.save(time.Since(h.began)), h.store.saveSteering()); err != nil {
		h.store.dump(h.o.Rescue)
		return nil, err
	}
	return &Report{State: h.store.state, Bugs: append([]*Bug{}, h.store.kept...), Invariants: h.invariants, line: h.line(), dir: h.store.dir}, nil
}

// Report is what a hunt has brought, with the runs that it resumed.
type Report struct {
	State
	Bugs []*Bug `json:"bugs"`
	// Invariants are the user's (--invariant), and what this run has to say of them.
	Invariants []*Invariant `json:"invariants,omitempty"`
	line       string       // the last progress line
	dir        string       // the folder
}

// Broke reports whether an invariant is broken.
func (r *Report) Broke() bool {
	return slices.ContainsFunc(r.Invariants, func(v *Invariant) bool { return v.Broken > 0 })
}

// Undecided says why it means nothing that nothing was found; empty: it means something.
func (r *Report) Undecided() string {
	switch left := r.Unjudged + r.Broken + r.Refused; {
	case r.Cases == 0:
		return "no case was executed"
	case 2*left > r.Cases:
		return fmt.Sprintf("%d of %s could not be judged", left, prose.Count(r.Cases, "case"))
	case slices.ContainsFunc(r.Invariants, func(v *Invariant) bool { return v.Judged == 0 }):
		return "an invariant could be judged behind no case"
	case 2*r.Accepted < r.Statements:
		return fmt.Sprintf("the server refused %d of %s", r.Statements-r.Accepted, prose.Count(r.Statements, "statement"))
	}
	return ""
}

// JSON writes all of it.
func (r *Report) JSON(w io.Writer) error {
	return report.Indented(w, struct {
		*Report
		Undecided string `json:"undecided,omitempty"`
	}{r, r.Undecided()})
}

// HTML writes it as a page: an index of the folder, with the smallest case of each bug.
func (r *Report) HTML(w io.Writer) error {
	d := page.Document{Title: "wirecheck hunt: " + r.dir, Notes: []string{prose.Count(len(r.Bugs), "distinct bug"), r.line}}
	if why := r.Undecided(); why != "" {
		d.Notes = append(d.Notes, "undecided: "+why)
	}
	for _, b := range r.Bugs {
		folder := filepath.Join(r.dir, b.Folder)
		item := page.Item{
			Where: []string{fmt.Sprintf("%s, %s at %s, seen %s", folder, product.Of(b.Engine).Title+" "+b.Version, b.Level, prose.Count(b.Seen, "time"))},
			Again: []string{"sh " + filepath.Join(folder, "reproduce.sh")},
		}
		if b.Finding != nil {
			item.Finding = *b.Finding
		}
		text, err := os.ReadFile(filepath.Join(folder, "case.spec"))
		if err == nil {
			item.Scenario = string(text)
		} else {
			d.Notes = append(d.Notes, err.Error())
		}
		d.Items = append(d.Items, item)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		return err
	}
	d.Text = text.String()
	return page.Write(w, d)
}

// Text writes it for people.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s\nseed %d, %s refused, %s, %s that could not be judged\n", r.line, r.Seed, prose.Count(r.Refused, "setup"), fmt.Sprintf("%d crashes and hangs", r.Crashes), prose.Count(r.Broken, "case"))
	for _, cause := range slices.Sorted(maps.Keys(r.Permitted)) {
		fmt.Fprintf(w, "permitted, %s: %d\n", cause, r.Permitted[cause])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Refusals)) {
		fmt.Fprintf(w, "setups refused, %s: %d\n", reason, r.Refusals[reason])
	}
	for _, oracle := range slices.Sorted(maps.Keys(r.Spent)) {
		fmt.Fprintf(w, "time, %s: %.1f s\n", oracle, r.Spent[oracle].Seconds())
	}
	if err := r.print(w); err != nil {
		return err
	}
	for _, b := range r.Bugs {
		also := ""
		if len(b.Also) > 0 {
			also = "; also told by " + strings.Join(b.Also, ", ")
		}
		if _, err := fmt.Fprintf(w, "%s: %s at %s, %s (seen %s%s)\n", b.Folder, b.Title, b.Level, b.Size, prose.Count(b.Seen, "time"), also); err != nil {
			return err
		}
	}
	if err := r.printElsewhere(w); err != nil {
		return err
	}
	for _, v := range r.Invariants {
		v.text(w)
	}
	if why := r.Undecided(); why != "" {
		_, err := fmt.Fprintf(w, "undecided: %s\n", why)
		return err
	}
	return nil
}
