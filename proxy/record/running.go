package record

import (
	"errors"

	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/trace/secret"
)

// Running is a request whose answer has begun.
type Running struct {
	ticket   *Ticket
	limit    int
	facts    *Share // the session's
	accesses []history.Access
	dropped  int
	opaque   string
	decoded  int  // rows that came or were changed, see rewrite.Plan.WithRows
	mark     int  // the first access of the row that was decoded last
	cells    int  // values that came with rows
	values   bool // they are recorded for people,
	shown    int  // of so many rows up to now
	reads    []read
	totals   []string            // numbers of the answer that are in no row of a table
	lists    [][]condition.Value // see rewrite.Plan.Lists
	moments  []condition.Value   // see rewrite.Plan.Moments
	cascaded []rewrite.Cascaded  // with the rows, see rewrite.Plan.Cascades,
	gone     int                 // and how many accesses they have
	snapshot string              // see rewrite.Plan.Snapshot
	blank    bool                // the answer has no row, see rewrite.Plan.Blank
	row      bool                // see Existed: the answer has one,
	none     bool                // and its first value is 0 or false
	// pinned are the predicate reads whose conditions fix a whole key. They matter if the log tells no such row.
	pinned []history.PredicateRead
	logged *loggedGroups
}

// Decode keeps the facts, which may be none, that p reads in the hidden columns of a row of the answer. What came before
// an error stays, and if it is rewrite.ErrPartial what came with it too.
func (r *Running) Decode(p *rewrite.Plan, hidden [][]byte) error {
	r.mark = len(r.accesses)
	last := max(0, len(hidden)-p.Moments)
	if n := last - p.Lists; r.decoded == 0 && p.Lists > 0 && p.Lacking <= n {
		r.lists = append(make([][]condition.Value, p.Keys), rewrite.ReadLists(hidden[n:last])...)
	}
	if r.moments == nil && last < len(hidden) {
		r.moments = rewrite.ReadMoments(hidden[last:])
	}
	r.lacking(p, hidden)
	if p.Snapshot > 0 && p.Snapshot <= len(hidden) && r.snapshot == "" {
		r.snapshot = string(hidden[p.Snapshot-1])
	}
	r.blank = r.blank || p.IsBlank(hidden)
	list, err := p.DecodeRow(r.accesses, hidden, r.decoded == 0)
	if err != nil && !errors.Is(err, rewrite.ErrPartial) || p.IsBlank(hidden) {
		return err
	}
	r.decoded++
	if p.Cascades != nil && err == nil {
		var c rewrite.Cascaded
		if c, err = p.Cascades(hidden[last-1]); err == nil {
			r.keep(c)
		}
	}
	size := (len(list) - r.mark) * accessSize
	if !r.facts.Takes(size) {
		r.limit = min(r.limit, r.mark) // no later row either: reads tell accesses by their place
	}
	r.facts.Add(size)
	if over := len(list) - r.limit; over > 0 {
		r.facts.Add(-over * accessSize)
		r.dropped += over
		list = list[:r.limit]
	}
	r.accesses = list
	return err
}

// lacking keeps the values that a row tells for lists (rewrite.Plan.Lacking), of so many rows and of the last one.
func (r *Running) lacking(p *rewrite.Plan, hidden [][]byte) {
	first := p.Lacking - 1
	if first < 0 || first+p.Keys > len(hidden) || p.IsBlank(hidden) {
		return
	}
	if r.lists == nil {
		r.lists = make([][]condition.Value, p.Keys)
	}
	for i, cell := range hidden[first : first+p.Keys] {
		var v condition.Value
		if cell != nil {
			text := string(cell)
			v = &text
		}
		r.lists[i] = append(r.lists[i][:min(len(r.lists[i]), maxLacking-1)], v)
	}
}

// maxLacking bounds the lists, in rows.
const maxLacking = 200

// keep keeps what foreign keys delete with a row.
func (r *Running) keep(c rewrite.Cascaded) {
	size := len(c.Accesses) * accessSize
	if over := r.gone + len(c.Accesses) - r.limit; over > 0 || !r.facts.Takes(size) {
		r.dropped += len(c.Accesses)
		return
	}
	r.facts.Add(size)
	r.gone += len(c.Accesses)
	r.cascaded = append(r.cascaded, c)
}

// Opaque says that the answer does not have what the plan promised.
func (r *Running) Opaque(why string) { r.opaque = why }

// Plan is the plan of the statement that runs.
func (r *Running) Plan() *rewrite.Plan { return r.ticket.plan }

// bounded reports whether the answer has fewer rows than LIMIT allows, see rewrite.Plan.Bounded.
func (r *Running) bounded() bool {
	p := r.Plan()
	return p.Bounded && len(p.Asks) > 0 && p.Asks[0].Limit != nil && settled(&p.Asks[0]).Allows(r.decoded+1)
}

// coverage is what was seen of the statement, and why not all.
func (r *Running) coverage() (history.Coverage, string) {
	p := r.Plan()
	seen, why := p.Coverage, p.Why
	if p.WithRows != "" && (p.Below == 0 && !p.Bounded && r.decoded > 0 && (p.Rows == 0 || r.decoded == p.Rows) || r.decoded < p.Below || r.met() || r.bounded()) {
		seen, why = p.WithRows, ""
	}
	if p.WithoutRows != "" && r.decoded == 0 {
		seen, why = p.WithoutRows, ""
	}
	if p.Empty != "" && r.none {
		seen, why = p.Empty, ""
	}
	switch {
	case r.opaque != "" && len(r.accesses) > 0:
		return history.CoverageApproximate, r.opaque
	case r.opaque != "":
		return history.CoverageOpaque, r.opaque
	case r.dropped > 0 && seen == history.CoverageExact:
		return history.CoverageApproximate, "more rows than are kept of one statement, or of all at a time"
	}
	return seen, why
}

// Log writes a line about a statement that ended, if lines of the level debug are wanted: what was seen of it, why not all, and the statement without
// its values.
func (t *Tracker) Log(log zerolog.Logger, r *Running, res Result) {
	line := log.Debug()
	if line == nil {
		return
	}
	p := r.Plan()
	seen, why := r.coverage()
	line = line.Str("verb", p.Verb).Str("coverage", string(seen))
	if why != "" {
		line = line.Str("why", why)
	}
	switch {
	case res.Err != nil && res.Err.Code != "":
		line = line.Str("sqlstate", res.Err.Code)
	case res.Tag != "":
		line = line.Str("tag", res.Tag)
	}
	line.Str("statement", statement.Shape(prose.Cut(secret.SQL(p.Text, t.dialect).SQL, maxLogged), t.dialect)).Msg("statement")
}

// maxLogged is how many bytes of a statement are logged.
const maxLogged = 2048
