package record

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	// Partial says that not all sessions are observed: then the history has no requests, since a part of one may be in a session that is not. It is set before
	// sessions begin.
	Partial bool

	keys  []string    // of the tags that name a request
	known atomic.Bool // a request was seen

	mu    sync.Mutex
	reads map[string]*reads
	order []string // of reads, the oldest first
	size  int      // values and totals in reads
	// cut are requests whose reads are not kept any more, of the last ones, and resumed how many of them went on.
	cut     map[string]bool
	resumed int
	// untraced counts the UPDATEs of tables of which their request had read more values at a time than are kept.
	untraced int
}

const (
	maxRequests = 10_000  // whose reads are kept
	maxCut      = 50_000  // whose reads are known to be kept no more
	maxValues   = 200_000 // of all requests
	maxCells    = history.FollowedValues
	maxText     = 256      // of one value
	maxNamed    = 64 << 10 // bytes of an INSERT or DELETE that is read
)

// NewRequests makes a Requests. keys are the tags that name a request; none: flow.RequestTags.
func NewRequests(keys []string) *Requests {
	if len(keys) == 0 {
		keys = flow.RequestTags
	}
	return &Requests{keys: keys, reads: map[string]*reads{}}
}

// Cell is a value of a row that a client gets.
type Cell struct {
	Table, Column string // empty: it is not a column of a table
	Text          string
	Null          bool
	Unread        bool   // it is in a form that wirecheck does not read
	asked         bool   // see value
	digest        bool   // Text is a digest
	name          string // of the column, for people; Column is in lower case then
}

// origin is what is known of the request that a statement belongs to.
type origin struct {
	request string
	tags    []string
	wrote   flow.Written
	params  string // as history.Event.Params
}

// read is a row of an answer: an access and the values that came with it.
type read struct {
	access int
	cells  []Cell
	others int // values that came with it and are no column of a table
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
		if !rs.Partial {
			o.request = flow.Request(tags, rs.keys)
		}
		for _, tag := range flow.Route(tags) {
			o.tags = append(o.tags, tag.Key+"="+tag.Value)
		}
	}
	if o.request != "" {
		t.pauses.name = ""
	} else if t.pauses.gap > 0 {
		o.request = t.untagged(tk)
	}
	verb := tk.plan.Verb
	several := verb == "update" && strings.Contains(tk.plan.Text, ",") // columns may get values
	assigns, shows := (verb == "update" || verb == "insert") && (o.request != "" || rs.known.Load()), rs.Values && touches(tk.plan)
	if assigns && verb == "insert" {
		assigns = strings.Contains(strings.ToLower(tk.plan.Text), "update")
	}
	switch verb {
	case "insert", "replace", "delete": // perhaps in the place of a row that was read
		assigns = assigns || o.request != "" && len(tk.plan.Text) <= maxNamed && rs.hasRead(o.request)
	}
	var values []flow.Param
	if params != nil && (assigns || shows || several) {
		values = params()
	}
	now := t.rec.now()
	several = several && (flow.MayTime(tk.plan.Text, now) || slices.ContainsFunc(values, func(p flow.Param) bool { return flow.MayTime(p.Text, now) }))
	if assigns || several {
		o.wrote = flow.Write(tk.plan.Text, t.dialect, values, tk.plan.Columns)
	}
	if several || o.wrote.New {
		o.wrote.Times(now)
	}
	if several && !assigns && !slices.ContainsFunc(o.wrote.Operands, func(o history.Operand) bool { return o.Role == history.RoleTime }) {
		o.wrote = flow.Written{}
	}
	if shows {
		o.params = paramsImage(values)
	}
	if o.request != "" || o.tags != nil || o.wrote.Operands != nil || o.params != "" {
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
	p := r.ticket.plan
	return (p.Verb == "select" || p.Verb == "update" && !p.NoRows) && (r.requested() && r.cells <= maxCells || r.values && r.shown < maxShown)
}

func (r *Running) requested() bool { return r.ticket.origin != nil && r.ticket.origin.request != "" }

// Cells keeps the values of the row that was decoded last, of the tables of which it has one row. All that the client gets of the row is in the list.
func (r *Running) Cells(cells []Cell) {
	r.shown++
	rows := map[string]int{}
	for i := r.mark; i < len(r.accesses); i++ {
		rows[r.accesses[i].Row.Table]++
	}
	others := 0
	for i := range cells {
		c := &cells[i]
		c.Column, c.name = strings.ToLower(c.Column), c.Column
		if of, ok := r.ticket.plan.Views[c.Table][c.Column]; ok {
			c.Table, c.Column, c.name = of.Table, strings.ToLower(of.Name), of.Name
		}
		if long := len(c.Text) > maxText; long && !c.Unread && r.requested() && r.cells <= maxCells && utf8.ValidString(c.Text) {
			c.Text, c.digest = flow.Digest(c.Text), true
		} else {
			c.Unread = c.Unread || long
		}
		if c.Table == "" || rows[c.Table] == 0 && !c.Null { // a view's
			if others++; len(r.totals) < maxTotals && !c.Null && !c.Unread && flow.IsNumber(c.Text) {
				r.totals = append(r.totals, c.Text)
			}
		} else if !c.Null {
			r.cells++
		}
	}
	if r.cells > maxCells {
		r.reads = nil
	}
	for i := r.mark; i < len(r.accesses); i++ {
		a := &r.accesses[i]
		reads := a.Op == history.OpRead || a.Op == history.OpLock
		if !reads && a.Op != history.OpUpdate || a.Approx || rows[a.Row.Table] != 1 {
			continue
		}
		if reads && r.values && r.shown <= maxShown {
			a.Values = valuesImage(a.Row.Table, cells)
		}
		if !r.requested() || r.cells > maxCells {
			continue
		}
		k := read{access: i, others: others}
		for _, c := range cells {
			if c.Table == a.Row.Table {
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
	if ev.Operands = o.wrote.Operands; o.wrote.New && ev.Verb != "replace" {
		ev.Operands = nil // unless it stands in the place of a row that was read
	}
	var own []string // the columns that an UPDATE computes from their own values
	if slices.ContainsFunc(ev.Operands, func(o history.Operand) bool { return o.Role == history.RoleComputed }) {
		own = flow.Relative(r.ticket.plan.Text, t.dialect)
	}
	ev.CurrentRead = ev.CurrentRead || len(own) > 0 && !slices.ContainsFunc(ev.Operands, func(o history.Operand) bool {
		return o.Role.Assigns() && o.Role != history.RoleTime && !slices.Contains(own, o.Column)
	})
	if o.request == "" {
		return
	}
	rs := t.rec.Requests
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.of(o.request)
	var load load
	switch {
	case ev.Verb == "delete":
		known.compared(ev)
	case ev.Verb == "update" || len(o.wrote.Operands) > 0:
		if !r.ticket.txn.implicit && flow.Saves(r.ticket.plan.Text, t.dialect) {
			load = t.load
		}
		if ev.Derived = rs.derive(known, ev, &o.wrote, own, load); len(ev.Derived) > 0 {
			ev.Operands = o.wrote.Operands
		}
	case ev.Verb == "select" && flow.Loads(r.ticket.plan.Text, t.dialect):
		t.load.session = t.session
		load = t.load
	case ev.Verb == "select" && !flow.LoadsRelated(r.ticket.plan.Text, t.dialect):
		t.load.n++
	}
	if r.cells > maxCells {
		known.tooLong(ev)
	}
	if len(known.rows) > 0 {
		known.doubt(r, ev, t.dialect)
	}
	if ev.Verb == "select" {
		rs.total(known, r, ev, t.dialect)
	}
	for _, k := range r.reads {
		if k.access < len(ev.Accesses) {
			if asks := r.ticket.plan.Asks; ev.Verb == "select" && len(asks) == 1 && asks[0].Table == ev.Accesses[k.access].Row.Table {
				k.cells = askedBy(&settled(&asks[0]).Where, k.cells)
			}
			rs.note(known, &ev.Accesses[k.access], k.cells, ev, load)
		}
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
	if where.Term != nil {
		return cells
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
		if c := &cells[i]; c.Column == column {
			if c.asked = true; c.Null || c.Unread {
				c.Null, c.Unread, c.Text = false, false, text
			}
			return cells
		}
	}
	return append(cells, Cell{Column: column, Text: text, asked: true})
}

// Untraced is how many UPDATEs set values of which it is not known whether they come from what their request had read: an answer had more than maxCells values.
func (rs *Requests) Untraced() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.untraced
}

// Resumed is how many requests went on when what they had read was kept no more: what they wrote since then is not known to come from it.
func (rs *Requests) Resumed() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.resumed
}

// of gives what a request has read. mu is held.
func (rs *Requests) of(request string) *reads {
	if known := rs.reads[request]; known != nil {
		return known
	}
	if rs.cut[request] {
		delete(rs.cut, request)
		rs.resumed++
	}
	for len(rs.order) > 0 && (len(rs.order) >= maxRequests || rs.size >= maxValues) {
		oldest := rs.reads[rs.order[0]]
		for _, row := range oldest.rows {
			rs.size -= len(row)
		}
		rs.size -= len(oldest.totals)
		delete(rs.reads, rs.order[0])
		if rs.cut == nil || len(rs.cut) >= maxCut {
			rs.cut = map[string]bool{}
		}
		rs.cut[rs.order[0]] = true
		rs.order = rs.order[1:]
	}
	known := &reads{rows: map[history.Row]columns{}}
	rs.reads[request] = known
	rs.known.Store(true)
	rs.order = append(rs.order, request)
	return known
}
