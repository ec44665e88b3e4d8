package isolation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

// Coverage counts what was seen and what could not be judged.
type Coverage struct {
	Exact       int `json:"exact"`       // statements whose accesses are all known
	Approximate int `json:"approximate"` // statements some of whose accesses are not
	Opaque      int `json:"opaque"`      // statements that touch tables and tell nothing
	// Failed counts those of them that the server refused; Mistaken those of these that cannot succeed (product.ErrorClass) and those that were
	// refused because of them. Mistake is the first such error.
	Failed     int    `json:"failed,omitempty"`
	Mistaken   int    `json:"mistaken,omitempty"`
	Mistake    string `json:"mistake,omitempty"`
	Predicates int    `json:"predicates"` // statements whose predicate reads were evaluated in full
	// Unread counts the statements whose predicate reads were not evaluated, or only in part, by reason. Of Partly of them, one of several
	// predicate reads was evaluated in full.
	Unread map[string]int `json:"unread,omitempty"`
	Partly int            `json:"partly,omitempty"`
	// Blind counts changes of rows of which the values captured do not tell whether a predicate holds; Unsettled the pairs of a predicate
	// read and a change in which it is not certain whether the one could see the other.
	Blind     int `json:"blind,omitempty"`
	Unsettled int `json:"unsettled,omitempty"`
	// Others counts the changes by which a row went that a condition found, where the answer only told that there are some: others may have been left.
	Others int `json:"others,omitempty"`
	// Crowded counts how often there were more changes, or more predicate reads, than are compared (maxCompared): the oldest were left out.
	Crowded int `json:"crowded,omitempty"`
	// Unseen counts the INSERTs of whose rows none was seen (MySQL family): no predicate was compared with them.
	Unseen int `json:"unseen,omitempty"`

	ApproxAccesses int `json:"approx_accesses"` // accesses left out because they are not certain
	UnknownWriters int `json:"unknown_writers"` // reads of versions whose writer is not, or no longer, known
	Sessions       int `json:"sessions"`
	Open           int `json:"open,omitempty"` // sessions that had not ended
	Transactions   int `json:"transactions"`
	Committed      int `json:"committed"`
	Aborted        int `json:"aborted"`
	Unknown        int `json:"unknown"`              // transactions whose outcome is not known ...
	Inferred       int `json:"inferred"`             // ... of which so many must have committed, as their versions were seen
	Unfinished     int `json:"unfinished"`           // still open at the end
	Partial        int `json:"partial"`              // too large: their reads were not judged
	Unobserved     int `json:"unobserved,omitempty"` // sessions that went on when they could not be observed any more
	LeftOut        int `json:"left_out,omitempty"`   // sessions that passed unobserved, since only a share is observed
	Forgotten      int `json:"forgotten"`            // dropped while they could still have been on a cycle (Options.MaxTxns)
	// Contradictions counts, by their kind, what in the history cannot be true at once: two transactions that wrote one version, say. What
	// came first is believed.
	Contradictions map[string]int `json:"contradictions,omitempty"`
	// Stale counts reads of versions that a transaction had replaced which is forgotten: the anomaly that such a read may belong to is not
	// found (Options.Keep).
	Stale int `json:"stale,omitempty"`
	// Far counts searches for a cycle that ended at their limit and had found nothing till then (package cycle).
	Far int `json:"far,omitempty"`
	// Broken says why the checker ended judging before the end of the history: it came to a state that cannot be. Unjudged counts the
	// events after it.
	Broken   string `json:"broken,omitempty"`
	Unjudged int    `json:"unjudged,omitempty"`
	// Requests counts the requests of the application that were told apart, and Possible those anomalies between and within them that are not reported, since it is not certain
	// that what was written depends on what was read. Apart counts the rows that a session read outside of a transaction and
	// wrote later, where no request was known, and those that it made after it had asked for them and found none.
	Requests int `json:"requests,omitempty"`
	// Resumed counts those of them that went on when what they had read was forgotten (Options.Keep).
	Resumed int `json:"resumed,omitempty"`
	// Untraced counts the UPDATEs of requests that had read too much at a time, so that it is not known whether what they wrote comes from it. A proxy counts them.
	Untraced int `json:"untraced,omitempty"`
	// Large counts those of them that had more than maxUnit transactions at a time, and Mixed the transactions with statements of several, which belong to none.
	Large    int `json:"large,omitempty"`
	Mixed    int `json:"mixed,omitempty"`
	Possible int `json:"possible,omitempty"`
	// Possibly counts those of Possible by what they would be, and of which table.
	Possibly map[string]int `json:"possibly,omitempty"`
	Apart    int            `json:"apart,omitempty"`
	// Untold counts the transactions whose writes did not come before their session ended (MySQL family), and Awaited those whose writes are
	// still to come.
	Untold   int `json:"untold,omitempty"`
	Awaited  int `json:"awaited,omitempty"`
	Overflow int `json:"overflow"` // findings whose repeats cannot be recognised (Options.MaxFingerprints)
	// Lost are the shapes of statements that were not seen exactly, the most frequent first, if Options.Explain asks for them.
	Lost []Lost `json:"lost,omitempty"`
	// Conditions are, in the same way, the shapes of statements whose predicate reads were not evaluated in full.
	Conditions []Lost `json:"conditions,omitempty"`
	// FailedExact and MistakenExact are how many of Failed and Mistaken are among Exact.
	FailedExact   int `json:"failed_exact,omitempty"`
	MistakenExact int `json:"mistaken_exact,omitempty"`
}

// Statements counts the statements that touch tables.
func (v Coverage) Statements() int { return v.Exact + v.Approximate + v.Opaque }

// Undecided says why it means nothing that nothing was found; empty: it means something. least is the share of statements that must have
// been seen exactly, from 0 to 1. This is the one law of all commands' exit status 3.
func (v Coverage) Undecided(least float64) string {
	n := v.Statements()
	switch {
	case v.Broken != "":
		return "judging ended early, a defect of wirecheck: " + v.Broken
	case n == 0 && v.Sessions == 0:
		return "no session was seen: no client connected, or none reached its server"
	case n == 0:
		return "no statement that reads or writes a table was seen"
	case 2*v.Mistaken > n:
		return fmt.Sprintf("%d of %s failed, the first with %s", v.Mistaken, prose.Count(n, "statement"), v.Mistake)
	case v.Exact == v.FailedExact && v.Failed == n:
		return fmt.Sprintf("the server refused all of %s", prose.Count(n, "statement"))
	case v.Exact == v.FailedExact:
		return fmt.Sprintf("of %s wirecheck saw none exactly", prose.Count(n, "statement"))
	case float64(v.Exact-v.MistakenExact) < least*float64(n):
		return fmt.Sprintf("wirecheck saw %d of %s exactly, less than the share that --min-coverage asks for (%g)", v.Exact-v.MistakenExact, prose.Count(n, "statement"), least)
	}
	return ""
}

// gap is a number of things that were not seen, or not kept.
type gap struct {
	n          int
	what, more string
}

// gaps are those of sessions, transactions and reads. Statements are counted apart.
func (v *Coverage) gaps() []gap {
	return []gap{
		{v.UnknownWriters, "read", " of unknown writers"},
		{v.Unknown - v.Inferred, "transaction", " of unknown outcome"},
		{v.Unfinished, "transaction", " not ended"},
		{v.Untold, "transaction", " whose writes were not told before its session ended"},
		{v.Awaited, "transaction", " whose writes are told with its session's next statement"},
		{v.Unobserved, "session", " not observed to the end"},
		{v.LeftOut, "session", " left out (--sample): an anomaly between two sessions shows only if both are observed"},
		{v.Partial, "transaction", " too large to judge in full"},
		{v.Forgotten, "transaction", " forgotten early (one stayed open too long)"},
		{v.Stale, "read", " older than the window"},
		{v.Resumed, "request", " went on when what it had read was forgotten: it was not judged"},
		{v.Untraced, "UPDATE", fmt.Sprintf(" of a request that had read more than %d values at a time: whether what it wrote comes from them is not known", history.FollowedValues)},
		{v.Large, "request", fmt.Sprintf(" of more than %d transactions, judged in part", maxUnit)},
		{v.Mixed, "transaction", " with statements of several requests, which was not judged with them"},
	}
}

// String is the coverage: a line with what was seen of the statements, and one for each thing more. What is zero and not expected is left out.
func (v Coverage) String() string {
	lines := []string{fmt.Sprintf("coverage: %d exact, %d approximate, %d opaque", v.Exact, v.Approximate, v.Opaque)}
	if v.Failed > 0 {
		failed := prose.Count(v.Failed, "statement") + " failed"
		if v.Mistaken > 0 && v.Mistaken < v.Failed {
			failed += fmt.Sprintf(", %d of them", v.Mistaken)
		}
		if v.Mistaken > 0 {
			failed += " by mistake (" + v.Mistake + ")"
		}
		lines = append(lines, failed)
	}
	lines = append(lines, v.predicates()...)
	say := func(n int, what, more string) {
		if n > 0 {
			lines = append(lines, prose.Count(n, what)+more)
		}
	}
	for _, g := range v.gaps() {
		say(g.n, g.what, g.more)
	}
	for _, what := range slices.Sorted(maps.Keys(v.Contradictions)) {
		lines = append(lines, fmt.Sprintf("the history contradicts itself: %s (%d)", what, v.Contradictions[what]))
	}
	if v.Far > 0 {
		lines = append(lines, v.far())
	}
	say(v.Requests, "request", " judged")
	lines = append(lines, v.possible()...)
	say(v.Apart, "row", " read outside of a transaction and written later by the same session; requests could not be told apart: add tags (docs/how-to/tags.md) or --unit-gap")
	if v.Broken != "" {
		lines = append(lines, fmt.Sprintf("JUDGING ENDED EARLY, a defect of wirecheck (%s): %s not judged", v.Broken, prose.Count(v.Unjudged, "later event")))
	}
	return strings.Join(lines, "\n  ")
}

// maybe counts a finding that is only possible and not shown.
func (v *Coverage) maybe(name string, tb *table) {
	if v.Possible++; v.Possibly == nil {
		v.Possibly = map[string]int{}
	}
	v.Possibly[name+" of "+tb.name]++
}

// possible names what is only possible, the most frequent first.
func (v Coverage) possible() []string {
	if v.Possible == 0 {
		return nil
	}
	list := slices.SortedFunc(maps.Keys(v.Possibly), func(a, b string) int { return cmp.Or(v.Possibly[b]-v.Possibly[a], strings.Compare(a, b)) })
	lines := []string{prose.Count(v.Possible, "possible finding") + ", which --possible shows:"}
	for i, what := range list {
		if i == maxPossibly {
			lines = append(lines, "  and others")
			break
		}
		lines = append(lines, fmt.Sprintf("  %d %s", v.Possibly[what], what))
	}
	return lines
}

// maxPossibly is how many kinds of possible findings are named.
const maxPossibly = 5

// Doubts counts the findings that are only possible, and not shown.
func (v Coverage) Doubts() int { return v.Possible }

// far says how many searches ended early.
func (v Coverage) far() string {
	return prose.Count(v.Far, "attempt") + " to find a long cycle ended early"
}

// Caution says where an anomaly may hide although nothing was found; empty: nowhere that is known.
func (v Coverage) Caution() string {
	var list []string
	say := func(n int, what string) {
		if n > 0 {
			list = append(list, prose.Count(n, "statement")+" chose rows by a condition "+what+" could not be judged: double bookings hide there")
		}
	}
	if n := v.Unevaluated() - v.Partly; n > 0 && v.Partly > 0 {
		say(n, "that")
		list = append(list, fmt.Sprintf("of %d more a part was judged", v.Partly))
	} else {
		say(n, "that")
		say(v.Partly, "of which a part")
	}
	if v.Far > 0 {
		list = append(list, v.far()+": anomalies of many transactions may hide there")
	}
	return strings.Join(list, "; ")
}

// predicates says how many predicate reads were evaluated, and why not the others.
func (v Coverage) predicates() (lines []string) {
	left := v.Unevaluated()
	if v.Predicates+left == 0 {
		return nil
	}
	evaluated := fmt.Sprintf("the predicates of %d of %s were evaluated", v.Predicates, prose.Count(v.Predicates+left, "statement"))
	if v.Partly > 0 {
		evaluated += fmt.Sprintf(", and a part of those of %d", v.Partly)
	}
	lines = append(lines, evaluated)
	var why []string
	for _, reason := range v.reasons() {
		if n := v.Unread[reason]; n > 0 {
			why = append(why, fmt.Sprintf("%s (%d)", reason, n))
		}
	}
	if n := len(why) - maxReasons; n > 0 {
		why = append(why[:maxReasons], prose.Count(n, "more reason"))
	}
	if left > 0 {
		lines = append(lines, "not evaluated: "+strings.Join(why, ", "))
	}
	const without = "the predicates were not compared with %s: %s"
	if v.Blind > 0 {
		lines = append(lines, fmt.Sprintf(without, prose.Count(v.Blind, "change"), "the values are not known well enough"))
	}
	if v.Unseen > 0 && v.Predicates > 0 {
		lines = append(lines, fmt.Sprintf(without, "the rows of "+prose.Count(v.Unseen, "INSERT"), "they were not seen"))
	}
	if v.Unsettled > 0 {
		lines = append(lines, fmt.Sprintf(without, prose.Count(v.Unsettled, "change"), "it is not certain what the statement saw"))
	}
	if v.Others > 0 {
		lines = append(lines, fmt.Sprintf(without, prose.Count(v.Others, "change"), "another row may make EXISTS true, or NOT EXISTS false, all the same"))
	}
	if v.Crowded > 0 {
		lines = append(lines, fmt.Sprintf("%s or predicate read had so many others beside it that the oldest of them were not compared with it", prose.Count(v.Crowded, "change")))
	}
	return lines
}

// reasons are those of Unread, the most frequent first.
func (v Coverage) reasons() []string {
	return slices.SortedFunc(maps.Keys(v.Unread), func(a, b string) int {
		return cmp.Or(v.Unread[b]-v.Unread[a], strings.Compare(a, b))
	})
}

// WhyUnread is the most frequent reason why predicate reads were not evaluated; empty if all were.
func (v Coverage) WhyUnread() string {
	if v.Unevaluated() == 0 {
		return ""
	}
	return v.reasons()[0]
}

// Unevaluated is how many statements have predicate reads that were not evaluated in full.
func (v Coverage) Unevaluated() (n int) {
	for _, k := range v.Unread {
		n += k
	}
	return n
}

// maxReasons is how many reasons the coverage line names.
const maxReasons = 4

// unread counts a statement whose predicate reads are not evaluated in full.
func (v *Coverage) unread(why string) {
	if v.Unread == nil {
		v.Unread = map[string]int{}
	}
	v.Unread[why]++
}

// evaluated takes back that a statement's predicate reads were not evaluated.
func (v *Coverage) evaluated(why string) {
	v.Predicates++
	if v.Unread[why]--; v.Unread[why] == 0 {
		delete(v.Unread, why)
	}
}

// Since is what was counted after an earlier moment. Transactions that are open, whose writes are awaited, or whose writers are unknown, are those of now.
func (v Coverage) Since(before Coverage) Coverage {
	d := v.plus(before, -1)
	d.UnknownWriters, d.Sessions, d.Open, d.Unfinished, d.LeftOut, d.Unjudged, d.Awaited, d.Untraced = v.UnknownWriters, v.Sessions, v.Open, v.Unfinished, v.LeftOut, v.Unjudged, v.Awaited, v.Untraced
	return d
}

// counted counts a statement.
func counted(c *Checker, e *history.Event) {
	c.coverage.count(e.Coverage, 1)
	c.lost.inexact(e, lex.Of(c.sessionOf(e.Session).dbms.Dialect))
}

// sees counts a statement of a session of the MySQL family that inserts rows of which none is told, or takes that back when they are told later.
func sees(c *Checker, t *txn, s *stmt, e *history.Event) {
	unseen := (e.Verb == "insert" || e.Verb == "replace" || e.Verb == "load") && e.Error == nil &&
		(e.Coverage == history.CoverageApproximate || e.Coverage == history.CoverageOpaque || e.Why == history.UnseenRows) && t.product().Dialect == product.DialectMySQL &&
		!slices.ContainsFunc(e.Accesses, func(a history.Access) bool { return a.Op.Writes() || a.Op == history.OpMatch })
	switch {
	case unseen && !s.unseen:
		c.coverage.Unseen++
	case !unseen && s.unseen:
		c.coverage.Unseen--
	}
	s.unseen = unseen
}

// count counts a statement, or takes back (n is -1) how one was counted of which more became known.
func (v *Coverage) count(c history.Coverage, n int) {
	switch c {
	case history.CoverageExact:
		v.Exact += n
	case history.CoverageApproximate:
		v.Approximate += n
	case history.CoverageOpaque:
		v.Opaque += n
	}
}

// failed counts a statement that the server refused.
func (v *Coverage) failed(e *history.Event, mistaken bool) {
	if e.Coverage == history.CoverageNone {
		return
	}
	exact := 0
	if e.Coverage == history.CoverageExact {
		exact = 1
	}
	v.Failed++
	v.FailedExact += exact
	if mistaken {
		v.Mistaken++
		v.MistakenExact += exact
		if v.Mistake == "" {
			v.Mistake = prose.Line(e.Error.Text(), prose.Width)
		}
	}
}

// unknownWriters counts t's reads of versions whose writer was never found.
func (v *Coverage) unknownWriters(t *txn) {
	if t.state != stateCommitted {
		return
	}
	for i := range t.accesses {
		a := &t.accesses[i]
		if n := a.node; n != nil && !a.op.writes() && !a.own && n.is == unknownWriter && n.writer == nil && n.order != history.OrderInitial {
			v.UnknownWriters++
		}
	}
}

// Coverage is what was seen up to now.
func (c *Checker) Coverage() Coverage {
	v := counts(c)
	if len(c.requests.doubts) > 0 {
		v.Possibly = maps.Clone(v.Possibly)
		for _, d := range c.requests.doubts {
			v.maybe(anomaly.SkewBetween, d.m.ch.v.table)
		}
	}
	if c.opts.Only != nil {
		v.UnknownWriters = c.counts.UnknownWriters
		return v
	}
	for _, t := range c.ended {
		v.unknownWriters(t)
	}
	return v
}
