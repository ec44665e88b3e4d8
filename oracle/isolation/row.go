package isolation

import (
	"sort"
	"strconv"

	"wirecheck/history"
)

// table is one table of the history.
type table struct {
	name string
	seen int             // accesses
	rows map[string]*row // by key, but for keys that are numbers
	// numbered are the rows whose keys are numbers, as hidden row ids are: without the key's text there is less to
	// fetch from memory.
	numbered map[uint64]*row
	// byID finds versions without a row key: rows of tables without primary key, and updates that change the key, are
	// identified by the chain of their versions (history.Access.Prev). Version ids are unique within the table then.
	// It is filled once the table is seen to need it. A nil entry means that the id was met in two rows.
	byID map[string]*version

	assigned assigned

	reads   []*predicate // of committed transactions, in the order of their ends
	changes []*change
	forgot  bool // some of changes
}

// row is a row with a key: its versions in their order.
type row struct {
	table   *table
	key     string
	label   string     // what people know it by, if a statement told it
	ordered []*version // order known, ascending
	floats  []*version // only an upper bound (asOf) known, ascending by it
	byID    map[string]*version
	first   [1]*version // room for ordered: most rows have one version
	sum     hash        // see named; zero until it is asked for
	gone    uint64      // see goneAt
	// goneAsked says that gone counts: Checker.gone has it of rows without versions.
	goneAsked bool

	mark uint32 // epoch and index of the scratch record while a transaction is installed
	rec  int32
}

// A version's standing.
type standing uint8

const (
	unknownWriter standing = iota // not seen, open, or not yet told
	live                          // by a committed transaction
	dead                          // by a rolled-back transaction or statement
	forgotten                     // by a committed transaction that is no longer kept
)

// version is one version of a row.
type version struct {
	table  *table
	row    *row // nil: known by links only
	id     string
	order  uint64
	asOf   uint64
	token  string // the writer's, while it is in Checker.pending
	writer *txn   // kept writer, see standing; or a transaction in limbo
	wstmt  int32  // index of the writing statement; -1: not captured
	is     standing
	inter  bool // not the last version that its writer gave the row
	del    bool // the dead version of a deletion
	thin   bool // nobody wrote it, see garbage
	mixed  bool // it took over what one before it wrote, so that its readers read that, too
	image  image
	did    *uses // what its statement did, if images tell that columns that it assigned kept their values; nil: what its text says

	prev, next *version // immediate neighbours, where a write told them
	readers    []reader

	mark    uint32
	rec     int32
	dropped bool
	number  uint32 // for graph.levels; 0: none yet
}

// reader is one read of a version by a committed transaction: access number acc of t.
type reader struct {
	t   *txn
	acc int32
}

func (r reader) access() *access { return &r.t.accesses[r.acc] }

func (c *Checker) tableOf(name string) *table {
	if c.last != nil && c.last.name == name {
		return c.last
	}
	tb := c.tables[name]
	if tb == nil {
		tb = &table{name: name, rows: map[string]*row{}, numbered: map[uint64]*row{}}
		c.tables[name] = tb
	}
	c.last = tb
	return tb
}

// mapFrom is how many versions a row has before a map finds them.
const mapFrom = 16

// node finds or makes a version.
func (tb *table) node(key, id string) *version {
	if key == "" {
		if tb.byID == nil {
			tb.index()
		}
		v := tb.byID[id]
		if v == nil {
			v = &version{table: tb, id: id, wstmt: -1}
			tb.byID[id] = v
		}
		return v
	}
	return tb.row(key).node(id)
}

// node finds or makes a version of the row or rows that an access names.
func (s *told) node(id string) *version {
	if s.row != nil {
		return s.row.node(id)
	}
	return s.table.node(s.key, id)
}

// node finds or makes a version of the row.
func (r *row) node(id string) *version {
	if v := r.find(id); v != nil {
		return v
	}
	tb := r.table
	v := (*version)(nil)
	if tb.byID != nil {
		if u := tb.byID[id]; u != nil && u.row == nil {
			v = u
		}
	}
	if v == nil {
		v = &version{table: tb, id: id, wstmt: -1}
		if tb.byID != nil {
			if _, met := tb.byID[id]; met {
				tb.byID[id] = nil
			} else {
				tb.byID[id] = v
			}
		}
	}
	v.row = r
	r.insert(v)
	return v
}

// find gives the row with a key, or nil.
func (tb *table) find(key string) *row {
	if n, isNumber := number(key); isNumber {
		return tb.numbered[n]
	}
	return tb.rows[key]
}

// row finds or makes the row with a key.
func (tb *table) row(key string) *row {
	if r := tb.find(key); r != nil {
		return r
	}
	r := &row{table: tb, key: key}
	r.ordered = r.first[:0]
	if n, isNumber := number(key); isNumber {
		tb.numbered[n] = r
	} else {
		tb.rows[key] = r
	}
	return r
}

// drop takes out a row.
func (tb *table) drop(r *row) {
	if n, ok := number(r.key); ok {
		delete(tb.numbered, n)
	} else {
		delete(tb.rows, r.key)
	}
}

// all gives the rows in no order.
func (tb *table) all(yield func(*row) bool) {
	for _, r := range tb.numbered {
		if !yield(r) {
			return
		}
	}
	for _, r := range tb.rows {
		if !yield(r) {
			return
		}
	}
}

// number is the value of a key that is a decimal number as it is printed: no other key is the same number.
func number(key string) (n uint64, ok bool) {
	if len(key) == 0 || len(key) > 19 || key[0] == '0' && len(key) > 1 { // 20 digits may be too many for 64 bits
		return 0, false
	}
	for i := range len(key) {
		d := key[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}

// index fills byID from the rows that have keys.
func (tb *table) index() {
	tb.byID = map[string]*version{}
	for r := range tb.all {
		for _, list := range [][]*version{r.ordered, r.floats} {
			for _, v := range list {
				if _, met := tb.byID[v.id]; met {
					tb.byID[v.id] = nil
				} else {
					tb.byID[v.id] = v
				}
			}
		}
	}
}

// deletion makes the dead version of a deletion.
func deletion(t *txn, stmt int32, a *told) *version {
	// The id cannot be met in a history: versions are named by engines, which use no such sign.
	id := "\x00deleted " + strconv.FormatUint(t.id, 10) + "." + strconv.Itoa(int(stmt)) + " " + a.prev
	if a.key == "" && a.prev == "" {
		return nil // neither a row nor a link
	}
	v := a.node(id)
	v.del = true
	return v
}

func (r *row) find(id string) *version {
	if r.byID != nil {
		return r.byID[id]
	}
	for i := len(r.ordered) - 1; i >= 0; i-- {
		if r.ordered[i].id == id {
			return r.ordered[i]
		}
	}
	for i := len(r.floats) - 1; i >= 0; i-- {
		if r.floats[i].id == id {
			return r.floats[i]
		}
	}
	return nil
}

// insert puts v in its place. Of two versions with equal places the one that came first stays first.
func (r *row) insert(v *version) {
	if v.order > 0 {
		r.ordered = insertAt(r.ordered, v, func(u *version) bool { return u.order > v.order })
	} else {
		r.floats = insertAt(r.floats, v, func(u *version) bool { return u.asOf > v.asOf })
	}
	if r.byID != nil {
		r.byID[v.id] = v
		return
	}
	if len(r.ordered)+len(r.floats) > mapFrom {
		r.byID = make(map[string]*version, 2*mapFrom)
		for _, u := range r.ordered {
			r.byID[u.id] = u
		}
		for _, u := range r.floats {
			r.byID[u.id] = u
		}
	}
}

// insertAt puts v before the first element for which after holds; most arrive last.
func insertAt(list []*version, v *version, after func(*version) bool) []*version {
	i := len(list)
	if i > 0 && after(list[i-1]) {
		i = sort.Search(len(list), func(k int) bool { return after(list[k]) })
	}
	list = append(list, nil)
	copy(list[i+1:], list[i:])
	list[i] = v
	return list
}

// remove takes v out; empty rows leave their table, and it reports that.
func (r *row) remove(v *version) (empty bool) {
	r.unplace(v)
	if r.byID != nil {
		delete(r.byID, v.id)
	}
	if empty = len(r.ordered)+len(r.floats) == 0; empty {
		r.table.drop(r)
	}
	return empty
}

// unplace takes v out of its list.
func (r *row) unplace(v *version) {
	list, from := &r.floats, sort.Search(len(r.floats), func(k int) bool { return r.floats[k].asOf >= v.asOf })
	if v.order > 0 {
		list, from = &r.ordered, sort.Search(len(r.ordered), func(k int) bool { return r.ordered[k].order >= v.order })
	}
	for i := from; i < len(*list); i++ {
		if (*list)[i] != v {
			continue
		}
		if i == 0 && len(*list) > mapFrom {
			(*list)[0] = nil
			*list = (*list)[1:]
			return
		}
		copy((*list)[i:], (*list)[i+1:])
		(*list)[len(*list)-1] = nil
		*list = (*list)[:len(*list)-1]
		return
	}
}

// older reports whether it is known that v is an older version of o's row.
func (v *version) older(o *version) bool {
	return v.row != nil && v.row == o.row && v.order > 0 && v.order < o.order
}

// setPlace tells v's place or a bound of it.
func (v *version) setPlace(order, asOf uint64) {
	if v.order > 0 || order == 0 && (asOf == 0 || v.asOf != 0 && v.asOf <= asOf) {
		return
	}
	if v.row != nil {
		v.row.unplace(v)
		defer v.row.insert(v)
	}
	if order > 0 {
		v.order = order
	} else {
		v.asOf = asOf
	}
}

// join tells that v replaced p. A contradiction with what is known is counted and draws no edge: none is better than a wrong one.
func (c *Coverage) join(p, v *version) {
	if p.next == v && v.prev == p {
		return
	}
	if p == v || p.next != nil || v.prev != nil || p.order > 0 && v.order > 0 && p.order >= v.order {
		c.contradiction(twoOrders)
		return
	}
	for u, i := v.next, 0; u != nil; u, i = u.next, i+1 {
		if u == p || i == maxWalk {
			c.contradiction(twoOrders)
			return
		}
	}
	p.next, v.prev = v, p
}

// maxWalk bounds every walk along the versions of a row, so that a history that contradicts itself cannot hang us.
const maxWalk = 1 << 16

// after is the next known version.
func (v *version) after() *version {
	switch {
	case v.next != nil:
		return v.next
	case v.row == nil:
		return nil
	}
	list := v.row.ordered
	at := len(list)
	switch {
	case v.order > 0:
		at = sort.Search(len(list), func(i int) bool { return list[i].order > v.order })
	case v.asOf > 0:
		at = sort.Search(len(list), func(i int) bool { return list[i].order >= v.asOf })
	}
	if at == len(list) {
		return nil
	}
	return list[at]
}

// before is the version known to precede v most closely.
func (v *version) before() *version {
	if v.prev != nil || v.row == nil || v.order == 0 {
		return v.prev
	}
	list := v.row.ordered
	at := sort.Search(len(list), func(i int) bool { return list[i].order >= v.order })
	if at == 0 {
		return nil
	}
	return list[at-1]
}

// installed reports whether v is a version of the graph: the last one that a committed, kept transaction gave the row.
func (v *version) installed() bool { return v.is == live && !v.inter && v.writer != nil }

// nextInstalled is the next installed version by another writer than v's.
func (v *version) nextInstalled() *version {
	if v.next == nil && v.row != nil && v.order > 0 {
		if list := v.row.ordered; len(list) > 0 && list[len(list)-1] == v {
			return nil // as nearly always
		}
	}
	n := v.after()
	for i := 0; n != nil && i < maxWalk; i++ {
		if n.installed() && (v.writer == nil || n.writer != v.writer) {
			return n
		}
		n = n.after()
	}
	return nil
}

// name is the row's name for people. Rows without key are named by their table alone.
func (v *version) name() history.Row {
	if v.row == nil {
		return history.Row{Table: v.table.name}
	}
	return history.Row{Table: v.table.name, Key: v.row.key}
}

// rowLabel is what people know the row of v by; empty if that was not told.
func (v *version) rowLabel() string {
	if v.row == nil {
		return ""
	}
	return v.row.label
}

// label is the version's name for people.
func (v *version) label() string {
	if v.del {
		return "deleted"
	}
	return v.id
}
