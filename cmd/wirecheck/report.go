package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// line is the progress line.
func (h *hunter) line() string {
	s := &h.keeper.state
	passed := h.keeper.base + time.Since(h.began)
	accepted := 0.0
	if s.Statements > 0 {
		accepted = 100 * float64(s.Accepted) / float64(s.Statements)
	}
	return fmt.Sprintf("%d cases, %.1f a second, %.0f%% of statements accepted, %d distinct of %d findings, %d permitted, %d flaky, %d unknown, %d combinations, %d outcomes",
		s.Cases, float64(s.Cases)/max(passed.Seconds(), 0.001), accepted, len(h.keeper.kept), s.Findings, s.permitted(), s.Flaky, s.Unknown, h.keeper.steering.Coverage.Len(), h.keeper.steering.Coverage.Outcomes())
}

// end writes what is left, and gives what the hunt has brought.
func (h *hunter) end() (*huntReport, error) {
	if err := errors.Join(h.keeper.save(time.Since(h.began)), h.keeper.saveSteering()); err != nil {
		h.keeper.dump(h.o.rescue)
		return nil, err
	}
	return &huntReport{huntState: h.keeper.state, Bugs: append([]*keptBug{}, h.keeper.kept...), line: h.line()}, nil
}

// huntReport is what a hunt has brought, with the runs that it resumed.
type huntReport struct {
	huntState
	Bugs []*keptBug `json:"bugs"`
	line string     // the last progress line
}

// json writes all of it.
func (r *huntReport) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// text writes it for people.
func (r *huntReport) text(w io.Writer) error {
	fmt.Fprintf(w, "%s\nseed %d, %d setups refused, %d crashes and hangs, %d cases that could not be judged\n", r.line, r.Seed, r.Refused, r.Crashes, r.Broken)
	for _, cause := range slices.Sorted(maps.Keys(r.Permitted)) {
		fmt.Fprintf(w, "permitted, %s: %d\n", cause, r.Permitted[cause])
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
		if _, err := fmt.Fprintf(w, "%s: %s at %s, %s (seen %d times%s)\n", b.Folder, b.Title, b.Level, b.Size, b.Seen, also); err != nil {
			return err
		}
	}
	return nil
}
