package explore

import (
	"wirecheck/oracle"
	"wirecheck/trace"
)

// Explored is what running transactions in other orders brought.
type Explored struct {
	Units         int      `json:"units"`
	Groups        int      `json:"groups"`
	Left          int      `json:"groups_left,omitempty"`     // beyond --groups
	TooLong       int      `json:"groups_too_long,omitempty"` // that were ended before all of their orders had run: one took longer than --limit
	Interleavings int      `json:"interleavings"`
	Wrong         int      `json:"wrong"`                              // of these, in how many something was found
	Before        int      `json:"invariants_broken_before,omitempty"` // readings of invariants that did not hold before the first statement of their combination
	Marked        int      `json:"marked,omitempty"`                   // with a finding that the application might not have produced
	Unjudged      []string `json:"unjudged,omitempty"`                 // why groups could not be judged, the first reasons
	NotJudged     int      `json:"not_judged,omitempty"`
	// Unconfirmed are the first of NotShown findings whose own scenario did not show them; they are none.
	Unconfirmed []string    `json:"unconfirmed,omitempty"`
	NotShown    int         `json:"not_confirmed,omitempty"`
	Anomalies   []*WrongRun `json:"anomalies"`
	Possible    []*WrongRun `json:"possible,omitempty"`
	// NoRequests says why requests were asked for and none could be told apart; OneUnit which sessions --unit-gap made one unit of.
	NoRequests string   `json:"no_requests,omitempty"`
	OneUnit    []uint64 `json:"one_unit,omitempty"`
	refusals   *tally   // by shape; nil: nobody compares them
	planned    int      // groups
	seen       map[string]*WrongRun
	runs       map[string]int // interleavings by what the units do
}

// WrongRun is the shortest interleaving of its kind in which something was found.
type WrongRun struct {
	Captured    bool        `json:"captured"`      // the order is that of the trace
	Already     bool        `json:"already"`       // the order of the trace is wrong, too
	Runs        int         `json:"interleavings"` // that were run of units that do the same
	Found       []string    `json:"found"`         // names; "not serializable" where the values show it
	Sessions    []uint64    `json:"sessions"`
	Tables      []string    `json:"tables,omitempty"`
	Level       string      `json:"level"`
	OneSession  bool        `json:"one_session,omitempty"` // in the trace, two of them came from the same session
	Wrong       int         `json:"wrong"`
	Permutation string      `json:"permutation"`
	Why         []string    `json:"why,omitempty"` // for each serial order, what it would have brought
	Flows       []string    `json:"recomputed,omitempty"`
	Mark        string      `json:"mark,omitempty"` // why the application might not have produced it
	Units       []string    `json:"requests,omitempty"`
	Tags        []trace.Tag `json:"tags,omitempty"`
	Spec        string      `json:"spec,omitempty"`
	Kept        string      `json:"kept,omitempty"`
	Unprintable string      `json:"unprintable,omitempty"`
	// Invariant is the one that it breaks. Serial is a serial order that breaks it as well.
	Invariant string `json:"invariant,omitempty"`
	Serial    string `json:"serial,omitempty"`
	Copied    bool   `json:"copied,omitempty"` // the last session is a copy of another one, with other values
	switches  int
	steps     int
	shape     string
	oracles   []string // that show it
	findings  []oracle.Finding
}
