package record

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/trace"
	"wirecheck/trace/flow"
)

// Requests tells which statements an application meant as one request, and where the values come from that they write. All sessions
// share it, since a request may use several. It keeps what requests have read, within bounds, and no longer than needed.
type Requests struct {
	// Values says that the values of answers and parameters are recorded, so that findings can show them. It is set before sessions begin.
	Values bool

	keys  []string    // of the tags that name a request
	known atomic.Bool // a request was seen

	mu    sync.Mutex
	reads map[string]reads
	order []string // of reads, the oldest first
	size  int      // values in reads
}

// reads is what a request has read last.
type reads map[history.Row]map[string]value

// value is the value of a column as a statement read it.
type value struct {
	txn     uint64
	n       int
	version string
	text    string
	asked   bool // the statement asked for the row by this value
}

const (
	maxRequests = 10_000  // whose reads are kept
	maxValues   = 200_000 // of all requests
	maxCells    = 400     // of one answer: what an application computes with is not a long list
	maxText     = 256     // of one value
)

// NewRequests makes a Requests. keys are the tags that name a request; none: flow.RequestTags.
func NewRequests(keys []string) *Requests {
	if len(keys) == 0 {
		keys = flow.RequestTags
	}
	return &Requests{keys: keys, reads: map[string]reads{}}
}

// Cell is a value of a row that a client gets: of a column of a table.
type Cell struct {
	Table, Column string
	Text          string
	asked         bool // see value
}

// origin is what is known of the request that a statement belongs to.
type origin struct {
	request  string
	tags     []string
	table    string            // that an UPDATE writes, without schema
	operands []history.Operand // of an UPDATE
	params   string            // as history.Event.Params
}

// read is a row of an answer: an access and the values that came with it.
type read struct {
	access int
	cells  []Cell
}

// pauses tells the requests of one session apart that have no tags.
type pauses struct {
	gap  time.Duration
	name string // of the request that the session is in; empty: the next statement begins one
	n    int
	end  time.Time // of the last answer
}

// Wants reports whether requests are told apart, so that the parameters and values of a statement with this text, with its comments, matter.
func (rs *Requests) Wants(sql string, limits Limits) bool {
	return rs != nil && (rs.Values || limits.Gap > 0 || strings.Contains(sql, "='") || rs.known.Load())
}

// From tells the client's text of the statement, with its comments, and how to get its parameters, which may be nil. It is called right after Sending.
func (t *Tracker) From(tk *Ticket, sql string, params func() []flow.Param) {
	rs := t.rec.Requests
	if rs == nil {
		return
	}
	var o origin
	tags := trace.ParseTags(tk.plan.Text, t.dialect)
	if len(tags) == 0 && len(sql) != len(tk.plan.Text) {
		tags = trace.ParseTags(sql, t.dialect)
	}
	if len(tags) > 0 {
		o.request = flow.Request(tags, rs.keys)
		for _, tag := range flow.Route(tags) {
			o.tags = append(o.tags, tag.Key+"="+tag.Value)
		}
	}
	if o.request != "" {
		t.pauses.name = ""
	} else if t.pauses.gap > 0 {
		o.request = t.untagged(tk)
	}
	assigns, shows := tk.plan.Verb == "update" && (o.request != "" || rs.known.Load()), rs.Values && touches(tk.plan)
	var values []flow.Param
	if params != nil && (assigns || shows) {
		values = params()
	}
	if assigns {
		o.table, o.operands = flow.Update(tk.plan.Text, t.dialect, values)
	}
	if shows {
		o.params = paramsImage(values)
	}
	if o.request != "" || o.tags != nil || o.operands != nil || o.params != "" {
		tk.origin = &o
	}
}

// untagged is the request of a statement without tags: what follows without a pause on one session.
func (t *Tracker) untagged(tk *Ticket) string {
	u := &t.pauses
	switch {
	case resetsPool(tk.plan):
		t.ResetPool()
		return ""
	case u.name == "" || tk.n <= 1 && t.flying <= 1 && time.Since(u.end) > u.gap:
		u.n++
		u.name = fmt.Sprintf("%d of session %d", u.n, t.session)
	}
	return u.name
}

// ResetPool says that the session's pool of connections has taken it back or hands it out: a request ends.
func (t *Tracker) ResetPool() { t.pauses.name = "" }

// resetsPool reports whether a statement is what pools of connections send when they hand one out or take it back.
func resetsPool(p *rewrite.Plan) bool {
	if p.Verb != "select" && p.Verb != "other" && p.Verb != "set" || len(p.Text) > 40 {
		return false
	}
	switch strings.ToLower(strings.Join(strings.Fields(strings.TrimRight(p.Text, "; ")), " ")) {
	case "discard all", "reset all", "select 1", "select 1 from dual":
		return true
	}
	return false
}

// WantsCells reports whether the values of the rows that follow are worth giving to Cells.
func (r *Running) WantsCells() bool {
	return r.ticket.plan.Verb == "select" && (r.requested() && r.cells <= maxCells || r.values && r.shown < maxShown)
}

func (r *Running) requested() bool { return r.ticket.origin != nil && r.ticket.origin.request != "" }

// Cells keeps the values of the row that was decoded last, of the tables of which it has one row.
func (r *Running) Cells(cells []Cell) {
	r.shown++
	if r.cells += len(cells); r.cells > maxCells {
		r.reads = nil
	}
	rows := map[string]int{}
	for i := r.mark; i < len(r.accesses); i++ {
		rows[r.accesses[i].Row.Table]++
	}
	for i := r.mark; i < len(r.accesses); i++ {
		a := &r.accesses[i]
		if a.Op != history.OpRead && a.Op != history.OpLock || a.Approx || rows[a.Row.Table] != 1 {
			continue
		}
		if r.values && r.shown <= maxShown {
			a.Values = valuesImage(a.Row.Table, cells)
		}
		if !r.requested() || r.cells > maxCells {
			continue
		}
		k := read{access: i}
		for _, c := range cells {
			if c.Table == a.Row.Table && len(c.Text) <= maxText {
				c.Column = strings.ToLower(c.Column)
				k.cells = append(k.cells, c)
			}
		}
		r.reads = append(r.reads, k)
	}
}

// requested fills in what the event says of its request, and remembers what it read.
func (t *Tracker) requested(r *Running, ev *history.Event) {
	o := r.ticket.origin
	if o == nil || ev.Error != nil {
		return
	}
	ev.Request, ev.Tags, ev.Params = o.request, o.tags, o.params
	ev.Operands = o.operands
	if o.request == "" {
		return
	}
	rs := t.rec.Requests
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.of(o.request)
	for _, k := range r.reads {
		if k.access < len(ev.Accesses) {
			if asks := r.ticket.plan.Asks; len(asks) == 1 && asks[0].Table == ev.Accesses[k.access].Row.Table {
				k.cells = askedBy(&settled(&asks[0]).Where, k.cells)
			}
			rs.note(known, &ev.Accesses[k.access], k.cells, ev)
		}
	}
	if ev.Verb == "update" {
		ev.Derived = rs.derive(known, ev, o.table)
	}
}

// askedBy adds to the cells of a row the values by which its statement asked for it: of columns that must be equal to one, or NULL.
func askedBy(where *condition.Condition, cells []Cell) []Cell {
	column, text := where.Column, ""
	not := where.Op == "not"
	if not { // Django asks for NOT used
		where = &where.Args[0]
		column = where.Column
	}
	isValue := len(where.Values) == 1 && where.Values[0] != nil
	switch {
	case where.Op == "and" && !not:
		for i := range where.Args {
			cells = askedBy(&where.Args[i], cells)
		}
		return cells
	case where.Op == "=" && isValue && (!not || where.Kind == condition.Bool):
		if text = *where.Values[0]; not {
			text = map[bool]string{true: "false", false: "true"}[flow.Same(text, "true")]
		}
	case where.Op == "<>" && not && isValue:
		text = *where.Values[0]
	case where.Op != "null" || not:
		return cells
	}
	column = strings.ToLower(column)
	for i := range cells {
		if cells[i].Column == column {
			cells[i].asked = true
			return cells
		}
	}
	return append(cells, Cell{Column: column, Text: text, asked: true})
}

// of gives what a request has read. mu is held.
func (rs *Requests) of(request string) reads {
	if known := rs.reads[request]; known != nil {
		return known
	}
	for len(rs.order) > 0 && (len(rs.order) >= maxRequests || rs.size >= maxValues) {
		for _, row := range rs.reads[rs.order[0]] {
			rs.size -= len(row)
		}
		delete(rs.reads, rs.order[0])
		rs.order = rs.order[1:]
	}
	known := reads{}
	rs.reads[request] = known
	rs.known.Store(true)
	rs.order = append(rs.order, request)
	return known
}

// note remembers the values of a row. mu is held.
func (rs *Requests) note(known reads, a *history.Access, cells []Cell, ev *history.Event) {
	if len(cells) == 0 || a.Row.Key == "" || rs.size+len(cells) > 2*maxValues {
		return
	}
	row := known[a.Row]
	if row == nil {
		row = make(map[string]value, len(cells))
		known[a.Row] = row
	}
	before := len(row)
	for _, c := range cells {
		row[c.Column] = value{ev.Txn, ev.N, a.Version, c.Text, c.asked}
	}
	rs.size += len(row) - before
}

// derive tells which of the values that an UPDATE assigns may come from what its request has read of the rows of its table, and forgets what it
// overwrites. Which rows it really writes may become known later (MySQL family). mu is held.
func (rs *Requests) derive(known reads, ev *history.Event, table string) (list []history.Derived) {
	for row, values := range known {
		if !writes(table, ev, row) || !addresses(values, ev.Operands) {
			continue
		}
		for _, o := range ev.Operands {
			v, ok := values[o.Column]
			if !ok || !o.Role.Assigns() || o.Role == history.RoleComputed {
				continue
			}
			from := history.Derived{Column: o.Column, Row: row, Txn: v.txn, N: v.n, Version: v.version, Read: v.text}
			if kind, constant, ok := flow.Relate(v.text, o.Value); ok && o.Role == history.RoleSet && telling(kind, v.text, o.Value) {
				from.Kind, from.Constant = string(kind), constant
			} else if v.asked && o.Role == history.RoleSet && !flow.Same(v.text, o.Value) {
				from.Kind = string(flow.Asked)
			}
			if len(list) < maxCells {
				list = append(list, from)
			}
		}
		for _, o := range ev.Operands {
			if _, ok := values[o.Column]; ok && o.Role.Assigns() {
				delete(values, o.Column)
				rs.size--
			}
		}
	}
	return list
}

// writes reports whether the statement may write a row: it did, or what it wrote is not known yet.
func writes(table string, ev *history.Event, row history.Row) bool {
	told := false
	for i := range ev.Accesses {
		if a := &ev.Accesses[i]; a.Op.Writes() {
			if told = true; a.Row == row {
				return true
			}
		}
	}
	return !told && strings.EqualFold(table, row.Table[strings.LastIndexByte(row.Table, '.')+1:])
}

// addresses reports whether the condition of a statement may hold of a row with these values.
func addresses(values map[string]value, operands []history.Operand) bool {
	assigned := map[string]bool{}
	for _, o := range operands {
		assigned[o.Column] = assigned[o.Column] || o.Role.Assigns()
	}
	for _, o := range operands {
		if v, ok := values[o.Column]; ok && o.Role == history.RoleEqual && !assigned[o.Column] && v.text != o.Value && !flow.SameNumber(v.text, o.Value) {
			return false
		}
	}
	return true
}

// telling reports whether a relation of two values is such that it is not met by chance: a piece of text is long enough, and the two are not readings of a clock.
func telling(kind flow.Kind, read, written string) bool {
	switch kind {
	case flow.Prefix, flow.Suffix:
		return len(read) >= 3
	case flow.Plus:
		return !flow.IsClock(read) || !flow.IsClock(written)
	}
	return true
}
