package rewrite

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Catalog is what is known of the tables and functions of one database, as one user sees them. All sessions of that user
// share it. It fills as statements name tables: a View tells which names are not known, the session asks the server for
// these and calls Learn. What a Changes says to have changed is not known any more, and is asked for again when a
// statement names it. So a change costs what the next statements use, however large the database is.
type Catalog struct {
	Server
	changes *Changes

	mu    sync.RWMutex
	known map[Name]*entry
	asked []Name  // the names learned last
	whole reading // what is not in known does not exist

	counted string // see Counted
}

// Server is what must be known of a server and the database. It stays the same for the life of a Catalog.
type Server struct {
	Database string // current database (PostgreSQL)
	Version  string // the server's version string
	// Horizon says which versions are initial on PostgreSQL; nil elsewhere.
	Horizon *Horizon
	// FoldNames says that the server compares names of schemas and tables without regard to case (MySQL family,
	// lower_case_table_names other than 0): names are in lower case then.
	FoldNames     bool
	Standby       bool   // PostgreSQL: the server is in recovery
	Encoding      string // PostgreSQL: server_encoding
	Minimal       bool   // PostgreSQL: wal_level is minimal
	EventTriggers bool   // PostgreSQL: any definition may change anything
	Operators     bool   // PostgreSQL: a user's operators may be what compares values of built-in types
}

// Horizon is the oldest transaction id that was still running when a judgement of the database began: versions written by older ones are initial
// (PostgreSQL's pg_snapshot_xmin). Plans refer to it, so they stay when a new judgement begins. Its methods may be called from several goroutines.
type Horizon struct{ xid atomic.Uint64 }

// Learn takes over what the server said, unless it is known already: what was written in between is not initial.
func (h *Horizon) Learn(xid uint64) { h.xid.CompareAndSwap(0, xid) }

// Forget has the horizon asked for again. It is for those who begin a new judgement.
func (h *Horizon) Forget() { h.xid.Store(0) }

// XID gives the transaction id; known is false if nothing was learned. No horizon, that is nil, is never known.
func (h *Horizon) XID() (xid uint64, known bool) {
	if h == nil {
		return 0, false
	}
	xid = h.xid.Load()
	return xid, xid != 0
}

// Name is what a statement may name. On PostgreSQL it is bare, since the search path decides what it means.
type Name struct {
	Schema, Name string
	Function     bool
}

// Parents is the Name of the foreign keys of all tables, which the MySQL family lists for all of them only.
var Parents = Name{}

// Known is what a name means. It does not change.
type Known struct {
	Relations []*Relation // of all schemas, if the name is bare
	Function  FunctionKind
	Parents   map[string]Cascade // by the bare name of a table
}

// Cascade is what foreign keys that refer to a table change with its rows.
type Cascade struct {
	Delete bool     // other rows when its rows are deleted
	Update []string // the indexes of the table whose columns change other rows when they are assigned, or Columns; "" if any column may
}

// Columns puts columns in the place of the name of an index.
func Columns(names []string) string { return columnsMark + strings.Join(names, columnsMark) }

// ColumnsOf gives the columns that stand in the place of the name of an index.
func ColumnsOf(index string) (names []string, ok bool) {
	rest, ok := strings.CutPrefix(index, columnsMark)
	if !ok {
		return nil, false
	}
	return strings.Split(rest, columnsMark), true
}

const columnsMark = "\x00" // no name has it

// AddParent adds what foreign keys change with the rows of a table.
func (k *Known) AddParent(table string, c Cascade) {
	if k.Parents == nil {
		k.Parents = make(map[string]Cascade)
	}
	all := slices.Concat(k.Parents[table].Update, c.Update)
	slices.Sort(all)
	k.Parents[table] = Cascade{k.Parents[table].Delete || c.Delete, slices.Compact(all)}
}

var nothing = &Known{}

// reading is a time at which the server was asked, by the count of a Changes; 0 if it was not.
type reading uint64

type entry struct {
	known *Known
	read  reading
}

// NewCatalog makes a Catalog in which nothing is known.
func NewCatalog(s Server, changes *Changes) *Catalog {
	return &Catalog{Server: s, changes: changes, known: make(map[Name]*entry)}
}

// maxKnown bounds the names that are kept. Past it all are dropped, and asked for again when they are needed.
const maxKnown = 50_000

// Learn takes over what the server said of names when it was asked at the time that Changes.Now gave. whole says that what is
// not in the answer does not exist.
func (c *Catalog) Learn(found map[Name]*Known, now uint64, whole bool) {
	at := reading(now + 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known)+len(found) > maxKnown {
		c.known, c.whole = make(map[Name]*entry), 0
	}
	if whole && at >= c.whole {
		c.whole = at
		maps.DeleteFunc(c.known, func(n Name, e *entry) bool { return e.read <= at && found[n] == nil })
	}
	for n, k := range found {
		if !whole {
			c.want(n)
			if !n.Function && n != Parents && len(k.Relations) == 0 { // a table that was dropped is hardly asked for again
				c.asked = slices.DeleteFunc(c.asked, func(a Name) bool { return a == n })
			}
		}
		old := c.known[n]
		switch {
		case old == nil || old.read <= at && !reflect.DeepEqual(old.known, k):
			c.known[n] = &entry{k, at}
		case old.read < at:
			old.read = at // plans that rest on it stay
		}
	}
}

// maxAsked is how many names are asked for again together when one of them is.
const maxAsked = 64

func (c *Catalog) want(n Name) {
	if !slices.Contains(c.asked, n) {
		c.asked = append(c.asked[max(0, len(c.asked)+1-maxAsked):], n)
	}
}

// Want notes names that a statement misses while the server cannot be asked. Ask adds them to those of a later one.
func (c *Catalog) Want(missing []Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range missing {
		c.want(n)
	}
}

// Refer adds tables to those whose foreign keys change others, as a definition did. Where renamed is not nil, the definition renamed
// tables or columns: if one of them is such a table, all of them are from now on.
func (c *Catalog) Refer(parents map[string]Cascade, renamed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known[Parents]
	if e == nil {
		return
	}
	k := &Known{Parents: maps.Clone(e.known.Parents)}
	for table, cascade := range parents {
		k.AddParent(table, cascade)
	}
	for _, old := range renamed {
		for _, now := range renamed {
			if is, ok := e.known.Parents[old]; ok {
				if slices.ContainsFunc(is.Update, func(index string) bool { _, ok := ColumnsOf(index); return ok }) {
					is.Update = append(slices.Clip(is.Update), "") // one of the columns may have another name
				}
				k.AddParent(now, is)
			}
		}
	}
	if !reflect.DeepEqual(k, e.known) {
		c.known[Parents] = &entry{k, e.read}
	}
}

// Counted reports whether the server counts more definitions, whoever makes them, than when Compare was last told: then Lately, or
// everything, should be asked for. count must be from before that question.
func (c *Catalog) Counted(count string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return count != c.counted
}

// Compare takes over what the server said, as Learn does. What it was not asked for is not known any more.
func (c *Catalog) Compare(found map[Name]*Known, now uint64, whole bool, count string) {
	c.mu.Lock()
	if !whole {
		c.whole = 0
		maps.DeleteFunc(c.known, func(n Name, _ *entry) bool { return found[n] == nil })
	}
	c.counted = count
	c.mu.Unlock()
	c.Learn(found, now, whole)
}

// Lately gives the names that were learned last.
func (c *Catalog) Lately() []Name {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.asked)
}

// Whole reports whether what is not known does not exist.
func (c *Catalog) Whole() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.whole > 0
}

// Bare gives the bare names of tables without hidden columns. What is not known may exist from now on.
func (c *Catalog) Bare() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole = 0
	for n, e := range c.known {
		if !n.Function && n != Parents && !slices.ContainsFunc(e.known.Relations, func(r *Relation) bool { return r.Instrumented }) {
			names = append(names, n.Name)
		}
	}
	return names
}

// Ask adds to the names that a statement misses those that statements have missed lately and that have changed since. So a
// change that may have concerned anything costs one question more, and not one for each statement.
func (c *Catalog) Ask(missing []Name) []Name {
	c.mu.RLock()
	lately := slices.Clone(c.asked)
	c.mu.RUnlock()
	all := slices.Clone(missing)
	for _, n := range lately {
		if _, fresh := c.find(n); !fresh && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// find gives what a name means, and whether that is as new as the last change of it.
func (c *Catalog) find(n Name) (k *Known, fresh bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	k, at := nothing, reading(0)
	if e := c.known[n]; e != nil {
		k, at = e.known, e.read
	}
	at = cmp.Or(at, c.whole)
	return k, at > 0 && c.changes.fresh(n, k, at)
}

// Stale gives the names of which a plan rests on what may have changed since.
func (c *Catalog) Stale(uses []Use) (names []Name) {
	if c == nil {
		return nil
	}
	for _, u := range uses {
		if _, fresh := c.find(u.Name); !fresh {
			names = append(names, u.Name)
		}
	}
	return names
}

// Current reports whether all that a plan rests on is as the plan found it. stale does not ask for more than was known.
func (c *Catalog) Current(uses []Use, stale bool) bool {
	return c == nil || !slices.ContainsFunc(uses, func(u Use) bool {
		k, fresh := c.find(u.Name)
		return k != u.Known || !fresh && !stale
	})
}

// Changed reports whether one of the names has changed since then.
func (c *Catalog) Changed(names []Name, since uint64) bool {
	return slices.ContainsFunc(names, func(n Name) bool { return !c.changes.fresh(n, nothing, reading(since+1)) })
}

// All gives all relations that are known.
func (c *Catalog) All() (list []*Relation) {
	if c == nil {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range c.known {
		list = append(list, e.known.Relations...)
	}
	return list
}

// Changes counts what changed in a database. Several catalogs share one.
type Changes struct {
	now atomic.Uint64

	mu      sync.Mutex
	all     uint64 // when anything may have changed
	names   map[string]uint64
	parents uint64 // when any foreign key may have been added
}

// maxChanged bounds the names that are counted apart.
const maxChanged = 10_000

// Now is the number of changes.
func (c *Changes) Now() uint64 { return c.now.Load() }

// Last is the time of the last change that may have concerned anything.
func (c *Changes) Last() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Add says that relations of these bare names were changed, or, if there are none, that anything may have been.
func (c *Changes) Add(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now.Load() + 1
	if len(names) == 0 {
		c.parents = now
	}
	if len(names) == 0 || len(c.names)+len(names) > maxChanged {
		c.all, c.names = now, nil
	}
	for _, n := range names {
		if c.names == nil {
			c.names = make(map[string]uint64)
		}
		c.names[n] = now
	}
	c.now.Store(now)
}

// AddRelations says that any relation or function may have been changed, but that no foreign key was added.
func (c *Changes) AddRelations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.names = c.now.Load()+1, nil
	c.now.Store(c.all)
}

// AddParents says that foreign keys may have been added.
func (c *Changes) AddParents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parents = c.now.Load() + 1
	c.now.Store(c.parents)
}

// fresh reports whether nothing that a name means has changed since it was read. What one of a partitioned table and its
// partitions is depends on the others, as do tables that inherit, so each change concerns them.
func (c *Changes) fresh(n Name, k *Known, read reading) bool {
	if c == nil || uint64(read) > c.Now() {
		return true
	}
	if slices.ContainsFunc(k.Relations, func(r *Relation) bool { return r.Root != nil || r.Kind == "partitioned" || r.Inherits }) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n == Parents {
		return uint64(read) > c.parents
	}
	return uint64(read) > c.all && uint64(read) > c.names[n.Name]
}

// Use is a name that a plan rests on, with what it meant.
type Use struct {
	Name  Name
	Known *Known
}

// View is a Catalog as one planning sees it: a name means the same each time, and all names that were looked up are noted.
type View struct {
	Server
	catalog *Catalog // nil if nothing may be used
	stale   bool     // what was known may be used, even if it has changed since
	Uses    []Use
	Missing []Name // names that are not known
}

// View makes a View. c may be nil.
func (c *Catalog) View(stale bool) *View {
	v := &View{catalog: c, stale: stale}
	if c != nil {
		v.Server = c.Server
	}
	return v
}

// Usable reports whether there is a catalog.
func (v *View) Usable() bool { return v.catalog != nil }

// Relation gives the relation of a qualified name, on the MySQL family, or nil.
func (v *View) Relation(schema, name string) *Relation {
	for _, r := range v.find(Name{Schema: schema, Name: name}).Relations {
		return r
	}
	return nil
}

// Named gives the relations of a bare name in all schemas, system schemas left out.
func (v *View) Named(name string) []*Relation { return v.find(Name{Name: name}).Relations }

// Function gives what must be known of the functions of a bare name. The MySQL family lists stored functions only.
func (v *View) Function(name string) FunctionKind {
	return v.find(Name{Name: name, Function: true}).Function
}

// Parent gives what foreign keys change with the rows of a table, or nil, on the MySQL family.
func (v *View) Parent(name string) *Cascade {
	k := v.find(Parents)
	if c, is := k.Parents[name]; is {
		return &c
	}
	if k == nothing {
		return &Cascade{Delete: true, Update: []string{""}}
	}
	return nil
}

// Guessed reports whether a name means nothing in this view only because the server was never asked for it.
func (v *View) Guessed(n Name) bool {
	if v.find(n) != nothing || v.catalog == nil {
		return false
	}
	v.catalog.mu.RLock()
	defer v.catalog.mu.RUnlock()
	return v.catalog.whole == 0
}

func (v *View) find(n Name) *Known {
	if i := slices.IndexFunc(v.Uses, func(u Use) bool { return u.Name == n }); i >= 0 {
		return v.Uses[i].Known
	}
	if v.catalog != nil {
		if k, fresh := v.catalog.find(n); fresh || v.stale {
			v.Uses = append(v.Uses, Use{n, k})
			return k
		}
	}
	if !slices.Contains(v.Missing, n) {
		v.Missing = append(v.Missing, n)
	}
	return nothing
}
