package explore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"wirecheck/history/prose"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/report"
	"wirecheck/report/page"
	"wirecheck/trace"
	"wirecheck/trace/flow"
)

// Report is all that a replay has to tell.
type Report struct {
	Trace           string           `json:"trace"`
	Engine          string           `json:"engine"`
	Version         string           `json:"version"`
	Seed            uint64           `json:"seed,omitempty"`
	Replay          *replay.Result   `json:"replay"`
	Findings        []oracle.Finding `json:"findings"`
	Undecided       string           `json:"undecided,omitempty"` // why it means nothing that nothing was found
	Coverage        fmt.Stringer     `json:"coverage,omitempty"`
	Lacking         *Lacking         `json:"lacking,omitempty"`
	LeftOut         map[string]int   `json:"left_out,omitempty"` // sessions of other databases
	SnapshotSkipped map[string]int   `json:"snapshot_skipped,omitempty"`

	Explored *Explored `json:"explored,omitempty"`
	Broken   []string  `json:"broken,omitempty"` // the invariants that the replay in the recorded order broke, with what their queries gave
	Tables   []Table   `json:"tables,omitempty"`

	judged  *live.Result
	options Options
	title   string   // of the product
	advice  []string // where to take a snapshot from
	room    room
	told    bool // Replayed has said why it is undecided
}

// JSON writes all of it.
func (p *Report) JSON(w io.Writer) error { return report.Indented(w, p) }

// HTML writes it as a page: the findings, and below them all that the text says.
func (p *Report) HTML(w io.Writer) error {
	result := report.Result{Source: p.Trace, Findings: p.Findings, Undecided: p.Undecided}
	if p.judged != nil {
		result.Coverage = p.judged.Coverage
	}
	d := page.Of(result, nil)
	if p.Explored != nil {
		for _, a := range p.Explored.Anomalies {
			item := page.Item{Where: []string{"another order of sessions " + sessionList(a.Sessions)}, Scenario: a.Spec}
			if a.Captured {
				item.Where[0] = "the order of the trace, sessions " + sessionList(a.Sessions)
			}
			if a.Kept != "" {
				item.Again = []string{a.again(a.Kept, p.Engine)}
			}
			for i := range a.findings {
				item.Finding = a.findings[i]
				d.Items = append(d.Items, item)
			}
		}
		if n := len(d.Items) - len(p.Findings); n > 0 {
			d.Notes[0] += fmt.Sprintf("; in other orders: %d", n)
		}
	}
	d.Text = p.whole()
	return page.Write(w, d)
}

// How many of a kind are printed: on a screen, and where there is room.
const (
	firstShown = 10
	onScreen   = 3
	maxShown   = 1000
)

// whole is the text with all that the report keeps.
func (p *Report) whole() string {
	all := *p
	all.room = true
	return written(all.Text)
}

// written is the text that a function writes, which fails only where its writer does.
func written(text func(io.Writer) error) string {
	var b strings.Builder
	_ = text(&b)
	return b.String()
}

// room says that a text may be long.
type room bool

// few is how many of a kind to print.
func (r room) few() int {
	if r {
		return maxShown
	}
	return onScreen
}

// more says that a list goes on.
func (p *Report) more(w io.Writer, n int) {
	where := " (all: --format html, or --out)"
	if p.room {
		where = ""
	}
	fmt.Fprintf(w, "  and %d more%s\n", n, where)
}

// Text writes it for people, on about one screen.
func (p *Report) Text(to io.Writer) error { return errors.Join(p.Replayed(to), p.Others(to)) }

// Replayed writes what the replay in the recorded order brought.
func (p *Report) Replayed(to io.Writer) error {
	w := bufio.NewWriter(to)
	x := p.Replay
	fmt.Fprintf(w, "%s on %s %s, order %s: %s of %s in %v\n", p.Trace, p.title, p.Version, x.Order,
		prose.Count(x.Statements, "statement"), prose.Count(x.Sessions, "session"), x.Elapsed.Round(time.Millisecond))
	fmt.Fprintf(w, "  waited for locks: %d, refused by the server: %d\n", x.Waited, x.Errors)
	counted(w, "  not replayed", x.Skipped)
	counted(w, "  left out of the snapshot", p.SnapshotSkipped)
	for _, name := range slices.Sorted(maps.Keys(p.LeftOut)) {
		fmt.Fprintf(w, "  left out: %s of database %q (--database)\n", prose.Count(p.LeftOut[name], "session"), name)
	}
	if x.Begun > 0 {
		fmt.Fprintf(w, "  in a transaction when the trace began: %s; BEGIN was put in front\n", prose.Count(x.Begun, "session"))
	}
	if x.Left > 0 {
		fmt.Fprintf(w, "  open when it ended, and rolled back: %s\n", prose.Count(x.Left, "transaction"))
	}
	if x.Asked > 0 {
		fmt.Fprintf(w, "  sent again behind a commit that it overlapped, until the answer was the trace's: %s\n", prose.Count(x.Asked, "read"))
	}
	if x.Late > 0 {
		fmt.Fprintf(w, "  so far out of order in the file that their place is not certain: %s\n", prose.Count(x.Late, "statement"))
	}
	for _, n := range x.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
	p.divergence(w, &x.Divergence)
	p.latencies(w, x.Latencies)
	p.tables(w)
	broken(w, p.Broken)
	if x.Deviated > 0 {
		fmt.Fprintf(w, "\norder not kept: %s\n", prose.Count(x.Deviated, "time"))
		for i, d := range x.Deviations {
			if i == p.room.few() {
				p.more(w, x.Deviated-i)
				break
			}
			fmt.Fprintf(w, "  statement %d of session %d: %s\n    %s\n", d.Step, d.Session, d.SQL, d.Text)
		}
	}
	for i, d := range x.Deadlocks {
		if i == p.room.few() {
			fmt.Fprintln(w)
			p.more(w, len(x.Deadlocks)-i)
			break
		}
		deadlock(w, &d)
	}
	p.lacking(w)
	p.told = p.judged != nil && p.Undecided != ""
	if p.judged != nil {
		fmt.Fprintf(w, "\n%s, of the whole replay:\n", panel.IsolationName)
		_ = report.Text(w, p.judged.Findings) // w remembers its error
		_ = report.Summary(w, report.Result{Findings: p.judged.Findings, Coverage: p.judged.Coverage, Undecided: p.Undecided})
	}
	return w.Flush()
}

// Others writes what other orders brought, and what the whole run says.
func (p *Report) Others(to io.Writer) error {
	w := bufio.NewWriter(to)
	if p.Explored != nil {
		p.explored(w, p.Explored)
	}
	if p.Undecided != "" && !p.told {
		fmt.Fprintf(w, "undecided: %s\n", p.Undecided)
	}
	return w.Flush()
}

// explored tells what other orders brought.
func (p *Report) explored(w io.Writer, x *Explored) {
	for i, a := range x.Anomalies {
		if i == p.room.few() {
			fmt.Fprintln(w)
			p.more(w, len(x.Anomalies)-i)
			break
		}
		p.wrong(w, a, i == 0 || bool(p.room))
	}
	for i, a := range x.Possible {
		if i == 0 {
			fmt.Fprintln(w, "\nPossible only: the application might not have done this, since what it read would have been different in a way that is not understood:")
		}
		if i == p.room.few() {
			p.more(w, len(x.Possible)-i)
			break
		}
		fmt.Fprintf(w, "  %s (sessions %s): %s\n", strings.Join(a.Found, ", "), sessionList(a.Sessions), a.Mark)
	}
	fmt.Fprintf(w, "\n%ss: %d, combinations run: %d", p.options.unit(), x.Units, x.Groups)
	if p.options.Mode.Kind != "" {
		fmt.Fprintf(w, "; other interleavings: %d, wrong: %d", x.Interleavings, x.Wrong)
		if x.Marked > 0 {
			fmt.Fprintf(w, ", possible only: %d", x.Marked)
		}
	}
	fmt.Fprintln(w)
	if x.OneUnit != nil {
		fmt.Fprintf(w, "--unit-gap %v made one unit of all transactions of %s (sessions %s): choose a shorter time, or let the application write tags\n", p.options.UnitGap, prose.Count(len(x.OneUnit), "session"), sessionList(x.OneUnit))
	}
	if x.Left > 0 {
		fmt.Fprintf(w, "combinations not run: %d (--groups)\n", x.Left)
	}
	if x.Before > 0 {
		fmt.Fprintf(w, "invariants that did not hold before a combination began, and so were not judged there: %d\n", x.Before)
	}
	if x.TooLong > 0 {
		fmt.Fprintf(w, "combinations ended before all of their orders had run: %d (one took longer than --limit %v)\n", x.TooLong, p.options.Limit)
	}
	if x.NotShown > 0 {
		fmt.Fprintf(w, "found, but not shown again by a scenario of its own, and so not reported: %d\n", x.NotShown)
		p.list(w, "  ", x.Unconfirmed, x.NotShown)
	}
	if x.NotJudged > 0 {
		p.list(w, "not judged: ", x.Unjudged, x.NotJudged)
	}
}

// list prints the first lines of a list of n.
func (p *Report) list(w io.Writer, before string, lines []string, n int) {
	lines = lines[:min(len(lines), p.room.few())]
	for _, line := range lines {
		fmt.Fprintf(w, "%s%s\n", before, line)
	}
	if n > len(lines) {
		p.more(w, n-len(lines))
	}
}

func sessionList(list []uint64) string { return strings.Trim(fmt.Sprint(list), "[]") }

// wrong tells of an interleaving in which something was found; spec says whether its scenario is printed where no file has it.
func (p *Report) wrong(w io.Writer, a *WrongRun, spec bool) {
	where := fmt.Sprintf("in production this went well; in %d of %s it does not", a.Wrong, prose.Count(a.Runs, "other interleaving"))
	switch {
	case a.Captured:
		where = "in the order of the trace"
	case a.Already:
		where = fmt.Sprintf("in production, and in %d of %s", a.Wrong, prose.Count(a.Runs, "other interleaving"))
	}
	fmt.Fprintf(w, "\nANOMALY: %s: %s of sessions %s%s\n  %s\n", strings.ToUpper(strings.Join(a.Found, ", ")), p.options.unit()+"s", sessionList(a.Sessions), tagText(a.Tags), where)
	if a.Invariant != "" {
		fmt.Fprintf(w, "  %s\n", a.blame())
	}
	if len(a.Tables) > 0 {
		fmt.Fprintf(w, "  on      %s\n", strings.Join(a.Tables, ", "))
	}
	fmt.Fprintf(w, "  level   %s\n", a.Level)
	if a.OneSession {
		fmt.Fprintln(w, "  in the trace they came from one session; two sessions can do the same at once")
	}
	for _, why := range a.Why {
		fmt.Fprintf(w, "  %s\n", why)
	}
	for _, f := range a.Flows {
		fmt.Fprintf(w, "  computed again: %s\n", f)
	}
	switch {
	case a.Kept != "":
		fmt.Fprintf(w, "  shown by: %s\n", a.again(a.Kept, p.Engine))
	case a.Spec != "" && !spec:
		fmt.Fprintln(w, "  its scenario: --out FOLDER")
	case a.Spec != "":
		fmt.Fprintf(w, "  the shortest one, for %s:\n\n    %s\n", a.again("FILE", p.Engine), strings.ReplaceAll(strings.TrimRight(a.Spec, "\n"), "\n", "\n    "))
	default:
		fmt.Fprintf(w, "  it cannot be written as a scenario file: %s\n", a.Unprintable)
	}
}

// tables tells how the tables that the replay left differ from the dump's.
func (p *Report) tables(w io.Writer) {
	if p.options.Compare == "" {
		return
	}
	same := 0
	for _, t := range p.Tables {
		if t.OnlyHere+t.OnlyThere == 0 && t.Columns == nil {
			same++
		}
	}
	fmt.Fprintf(w, "tables as in %s: %d of %d\n", p.options.Compare, same, len(p.Tables))
	for _, t := range p.Tables {
		if t.OnlyHere+t.OnlyThere > 0 || t.Columns != nil {
			fmt.Fprintf(w, "  %s: %s only here, %d only there; columns that differ: %s\n", t.Name, prose.Count(t.OnlyHere, "row"), t.OnlyThere, strings.Join(t.Columns, ", "))
		}
	}
}

func (p *Report) divergence(w io.Writer, d *replay.Divergence) {
	if d.Compared == 0 {
		fmt.Fprintln(w, "divergence: unknown: the trace tells nothing of any answer")
		return
	}
	made := 0
	for _, n := range d.Generated {
		made += n
	}
	if d.Same+made == d.Compared {
		fmt.Fprintf(w, "divergence: none in %s that the trace tells something of\n", prose.Count(d.Compared, "answer"))
	} else {
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(d.Kinds)) {
			kinds = append(kinds, fmt.Sprintf("%s: %d", k, d.Kinds[k]))
		}
		fmt.Fprintf(w, "divergence: %d of %s (%s)\n", d.Compared-d.Same-made, prose.Count(d.Compared, "answer"), strings.Join(kinds, ", "))
	}
	for i, what := range slices.Sorted(maps.Keys(d.Generated)) {
		if i == 0 {
			fmt.Fprintf(w, "  the same but for values that the server makes: %d\n", made)
		}
		fmt.Fprintf(w, "    %s: %d\n", what, d.Generated[what])
	}
	for i, x := range d.First {
		if i == p.room.few() {
			p.more(w, d.Compared-d.Same-made-i)
			break
		}
		fmt.Fprintf(w, "  statement %d of session %d, %s: %s%s\n    trace:  %s\n    replay: %s\n", x.Step, x.Session, x.Kind, x.SQL, tagText(x.Tags), x.Want, x.Got)
	}
}

// latencies tells which statements took longer or shorter than in the trace.
func (p *Report) latencies(out io.Writer, list []replay.Latency) {
	if len(list) == 0 {
		return
	}
	how := ""
	if p.judged != nil {
		how = " (in the replay through the proxy that watches; without: --oracle none)"
	}
	fmt.Fprintf(out, "latency, trace -> replay, most different first%s:\n", how)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for i, l := range list {
		if i == p.room.few() {
			_ = w.Flush() // out remembers its error
			p.more(out, len(list)-i)
			return
		}
		fmt.Fprintf(w, "  p50 %s -> %s\tp99 %s -> %s\tof %d\t%s\n", short(l.Recorded.P50), short(l.Replayed.P50), short(l.Recorded.P99), short(l.Replayed.P99), l.Count, prose.Query(l.Statement, 48))
	}
	_ = w.Flush()
}

// short is a duration with as many digits as it is known to.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(unit)
}

func deadlock(w io.Writer, d *replay.Deadlock) {
	where := "in the replay, not in the trace"
	switch {
	case d.OtherVictim:
		where = "in the trace and in the replay, with another victim"
	case d.Captured && d.Replayed:
		where = "in the trace and in the replay"
	case d.Captured:
		where = "in the trace, not in the replay"
	}
	fmt.Fprintf(w, "\nDEADLOCK (%s): the server ended statement %d of session %d\n  %s%s\n", where, d.Step, d.Session, d.SQL, tagText(d.Tags))
	for _, o := range d.Others {
		fmt.Fprintf(w, "  against session %d: %s%s\n", o.Session, o.SQL, tagText(o.Tags))
	}
	fmt.Fprintln(w, "  Fix: take the locks in the same order everywhere, and retry transactions that the server ends so")
}

// tagText prints what the application said of a statement.
func tagText(tags []trace.Tag) string {
	if len(tags) == 0 {
		return ""
	}
	var parts []string
	for _, t := range flow.Route(tags) {
		parts = append(parts, t.Key+"="+t.Value)
	}
	return " [" + strings.Join(parts, ", ") + "]"
}

func counted(w io.Writer, what string, m map[string]int) {
	for _, why := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(w, "%s: %d: %s\n", what, m[why], why)
	}
}

// Found reports whether something was found.
func (p *Report) Found() bool {
	return len(p.Findings)+len(p.Broken) > 0 || len(p.Replay.Deadlocks) > 0 || p.Explored != nil && len(p.Explored.Anomalies) > 0
}

// Diverged reports whether an answer differs from the trace's, or a table from the dump with which it was compared.
func (p *Report) Diverged() bool {
	return p.Replay.Divergence.Count() > 0 || slices.ContainsFunc(p.Tables, func(t Table) bool { return t.OnlyHere+t.OnlyThere > 0 })
}
