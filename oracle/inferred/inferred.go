// Package inferred finds isolation anomalies in histories of keys and values, in which the order of versions has to be inferred
// (Kingsbury and Alvaro, Elle, VLDB 2020). Its verdicts are Elle's; docs/explain/inferred.md says where they differ, and why.
//
// # Version order
//
// A list's elements are its versions, and the longest list that was read is their order. An append that nobody read comes behind it. Of a
// register the initial version is known to be the first, and a transaction that reads one version and writes another one shows that they
// follow one another: otherwise the history has a G1c. All else is not known, and nothing is inferred from it.
//
// # Graph
//
// Nodes are committed transactions, and those of unknown outcome of which a committed one read something. Edges are ww, wr and rw between
// neighbours of the version order; with Options.Order session order and real time besides.
//
// # What is not known
//
// Where the order of a register's versions is not known, no cycle means nothing. Then the package looks for a serial order that gives
// every read its value. If there is one the history is serializable; if the search can show that there is none, or if the orders of versions
// that it forces contradict one another, it is not. Otherwise Result.Undecided says what is missing.
package inferred

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/level"
)

// Descriptor describes this oracle.
var Descriptor = oracle.Oracle{
	Name: "inferred",
	Doc: `finds anomalies in histories of keys and values (Elle, Plume, dbcop, TimeKiller)
Infers the order of versions from what was read. From Elle (VLDB 2020) and Adya.`,
}

// The classes besides the cycles and dirty reads.
const (
	DuplicateElements = anomaly.DuplicateElements
	IncompatibleOrder = anomaly.IncompatibleOrder
	CyclicVersions    = anomaly.CyclicVersions
	LostUpdate        = anomaly.BothUpdate
	GarbageRead       = anomaly.GarbageRead
	NotSerializable   = anomaly.NotSerializable
	NotStrict         = anomaly.NotStrict
)

// Options sets what is looked for.
type Options struct {
	// Order also reports what only session order or real time forbids (classes -process and -realtime).
	Order bool
	// Levels says which levels the history satisfies and breaks (Result.Levels).
	Levels bool
}

// Result is a judgement.
type Result struct {
	Findings  []oracle.Finding
	Coverage  Coverage
	Undecided string // why it means nothing that nothing more was found; empty: it means something
	Levels    []level.Verdict
	// Unsure says why a level that no dependency breaks may be broken nevertheless; empty: it is not.
	Unsure string
}

// Coverage says what was judged.
type Coverage struct {
	Transactions int `json:"transactions"`
	Committed    int `json:"committed"`
	Aborted      int `json:"aborted"`
	Unknown      int `json:"unknown"`  // outcome unknown
	Inferred     int `json:"inferred"` // of these: committed, since something of theirs was read
	Keys         int `json:"keys"`
	// Unordered counts the keys of which the order of the versions is not known.
	Unordered int            `json:"unordered"`
	Preloaded int            `json:"preloaded,omitempty"` // keys that had a value before the history began
	Omitted   map[string]int `json:"omitted,omitempty"`
	Edges     map[string]int `json:"edges"`
	Serial    bool           `json:"serial,omitempty"` // a serial order was found
}

// String is the coverage, in lines.
func (v Coverage) String() string {
	s := fmt.Sprintf("coverage: %s (%d committed, %d aborted, %d unknown), %s, %d of them in unknown order",
		prose.Count(v.Transactions, "transaction"), v.Committed, v.Aborted, v.Unknown, prose.Count(v.Keys, "key"), v.Unordered)
	if v.Serial {
		s += "\n  a serial order was found"
	}
	return s
}

// Caution says where an anomaly may hide.
func (v Coverage) Caution() string {
	var parts []string
	for reason, n := range v.Omitted {
		parts = append(parts, fmt.Sprintf("%d times: %s", n, reason))
	}
	slices.Sort(parts)
	if v.Preloaded > 0 {
		parts = append(parts, prose.Count(v.Preloaded, "key")+" with a value that no transaction wrote; taken for the value before the history")
	}
	if len(parts) == 0 {
		return ""
	}
	return "not judged: " + strings.Join(parts, "; ")
}

// Doubts is 0: what is only possible is no finding.
func (v Coverage) Doubts() int { return 0 }

// Check judges a history.
func Check(h *observed.History, opts Options) Result {
	c := &checker{h: h, opts: opts, seen: map[string]int{}}
	c.index()
	c.promote()
	c.resolveReads()
	for t := range h.Transactions {
		if h.Transactions[t].Outcome == history.OutcomeCommitted {
			c.inside(t)
			c.dirty(t)
		}
	}
	c.lostUpdates()
	for k := range c.keys {
		if c.keys[k].list {
			c.listKey(k)
		} else {
			c.registerKey(k)
		}
	}
	data := len(c.edges)
	if opts.Order {
		c.orderEdges()
	}
	c.cycles()
	c.decide(data)
	c.coverage.Omitted = h.Omitted
	r := Result{Findings: c.found, Coverage: c.coverage, Undecided: c.undecided}
	if opts.Levels {
		r.Levels, r.Unsure = levels(c, c.edges[:data]), unsure(c)
	}
	return r
}
