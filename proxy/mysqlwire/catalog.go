package mysqlwire

import (
	"strings"
	"sync"
	"time"

	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// catalogs is what the users of one listener see of the server's tables.
type catalogs struct {
	changes rewrite.Changes // of the tables, as far as they were seen

	mu      sync.Mutex
	byUser  map[string]*rewrite.Catalog // the server shows each user other tables
	aged    time.Time                   // when all was last taken for changed because of its age
	bare    time.Time                   // when the tables without hidden columns were, because a session began
	parents pause                       // since the foreign keys were last taken for changed
	follows map[string]*pause           // schemas without instrumented tables, since the server was last asked for one
}

// pause is the time for which the answer to a question that reads all tables is taken for true although changes that are made behind
// the proxy do not show.
type pause struct{ until time.Time }

const (
	// catalogAge is how old what is known may grow before it is asked for again although no change was seen. Changes that are made
	// behind the proxy mostly show as errors, after which it is asked for at once; another order of the columns does not.
	catalogAge = 30 * time.Second
	// bareAge is how old what is known of tables without hidden columns, and of those that did not exist, may be when a session begins: their
	// user may just have instrumented them, or made them, past the proxy.
	bareAge = time.Second
	// pauseShare bounds the share of the time that is spent with questions that read all tables.
	pauseShare = 100
	// catalogsKept bounds how many catalogs, and schemas, are kept. Past it all are dropped, and read again when they are needed.
	catalogsKept = 64
	// wholeCatalog is how many tables are asked for at once when a server is seen for the first time, if it has no more. On a larger
	// one they are asked for as statements name them. Where the hidden columns are ordinary ones all are asked for: those of a table
	// that is not known would show.
	wholeCatalog = 500
)

// over reports whether the server is to be asked again.
func (p *pause) over() bool { return p == nil || !time.Now().Before(p.until) }

// begin starts the pause after a question that was asked at from. It lasts at least that long.
func (p *pause) begin(from time.Time, least time.Duration) {
	p.until = time.Now().Add(max(least, pauseShare*time.Since(from)))
}

// changed says that a statement may have changed tables: a definition, or one that shows that another client did (p is nil).
func (c *catalogs) changed(p *rewrite.Plan) {
	switch {
	case p == nil || dropsSchema(p.Text):
		c.changes.AddRelations()
		return
	case len(p.Changes) == 0:
		c.changes.Add()
		return
	}
	if len(p.Parents) > 0 || p.Renames {
		var renamed []string
		if p.Renames {
			renamed = p.Changes
		}
		c.mu.Lock()
		for _, u := range c.byUser {
			u.Refer(p.Parents, renamed)
		}
		c.mu.Unlock()
	}
	c.changes.Add(p.Changes...)
}

// dropsSchema reports whether a definition only drops a schema, which adds no foreign key.
func dropsSchema(text string) bool {
	words := strings.Fields(text)
	return len(words) > 1 && strings.EqualFold(words[0], "DROP") && (strings.EqualFold(words[1], "DATABASE") || strings.EqualFold(words[1], "SCHEMA"))
}

// get gives what a user sees, or nil. What has grown old is taken for changed.
func (c *catalogs) get(user string) *rewrite.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.aged) > catalogAge {
		c.aged = now
		c.changes.AddRelations()
		if c.parents.over() {
			c.changes.AddParents()
		}
	}
	return c.byUser[user]
}

// begins says that a session of a user begins.
func (c *catalogs) begins(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, now := c.byUser[user], time.Now()
	if u == nil || now.Sub(c.bare) < bareAge {
		return
	}
	c.bare = now
	if names := u.Bare(); len(names) > 0 {
		c.changes.Add(names...)
	}
}

// keep shares what was read when the tables had seen that many changes. All sessions of a user have one catalog.
func (c *catalogs) keep(user string, server rewrite.Server, known map[rewrite.Name]*rewrite.Known, now uint64, whole bool) *rewrite.Catalog {
	server.Database = "" // sessions have different ones
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.byUser[user]
	if u == nil || u.Server != server {
		if c.byUser == nil || len(c.byUser) >= catalogsKept {
			c.byUser = make(map[string]*rewrite.Catalog)
		}
		u = rewrite.NewCatalog(server, &c.changes)
		c.byUser[user] = u
	}
	u.Learn(known, now, whole)
	return u
}

// askedParents notes when the server was asked for foreign keys.
func (c *catalogs) askedParents(from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parents.begin(from, catalogAge)
}

// mayFollow reports whether the server is to be asked whether a schema has instrumented tables.
func (c *catalogs) mayFollow(schema string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.follows[schema].over()
}

// doesNotFollow notes that a schema had no instrumented tables when the server was asked.
func (c *catalogs) doesNotFollow(schema string, from time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.follows == nil || len(c.follows) >= catalogsKept {
		c.follows = make(map[string]*pause)
	}
	c.follows[schema] = &pause{}
	c.follows[schema].begin(from, 0)
}

// readCatalog gets the user's catalog. The first session reads the tables, if there are not too many.
func (o *observation) readCatalog() error {
	if o.catalog = o.observer.catalogs.get(o.user); o.catalog != nil {
		return nil
	}
	whole := o.traits.ordinaryColumns
	if !whole && !o.observer.byName {
		rows, refused, err := o.ownRows(dialect.SmallQuery(wholeCatalog))
		if err != nil {
			return err
		}
		whole = refused == nil && len(rows) == 1 && rows[0][0] == "1"
	}
	if whole {
		return o.learn(nil)
	}
	return o.learn([]rewrite.Name{})
}

// learn asks the server for names, or for everything (nil). If it refuses, the session goes on with what it knew.
func (o *observation) learn(names []rewrite.Name) error {
	said, err := askCatalog(o, names)
	if err == nil {
		said.keep(o)
	}
	return err
}

// told is what the server said of names, all that there are if names is nil.
type told struct {
	names []rewrite.Name
	rows  [][]string // none if it refused to answer
	now   uint64     // how many changes there had been
	from  time.Time
}

func askCatalog(o *observation, names []rewrite.Name) (*told, error) {
	t := &told{names: names, now: o.observer.catalogs.changes.Now(), from: time.Now()}
	query := dialect.CatalogQuery(o.greeting.flavor())
	if names != nil {
		query = dialect.NamesQuery(names, o.greeting.flavor())
	}
	rows, refused, err := o.ownRows(query)
	if err == nil && refused != nil {
		o.ps.Log.Warn().Str("error", refused.Message).Msg("the tables cannot be read")
	}
	t.rows = rows
	return t, err
}

// keep puts it into the catalog.
func (t *told) keep(o *observation) {
	var server rewrite.Server
	var known map[rewrite.Name]*rewrite.Known
	var err error
	if t.rows == nil || !o.tracker.guard(func() { server, known, err = dialect.ReadCatalog(t.rows, t.names) }) {
		return
	}
	if err != nil {
		o.ps.Log.Warn().Err(err).Msg("the tables are not understood")
		return
	}
	if known[rewrite.Parents] != nil {
		o.observer.catalogs.askedParents(t.from)
	}
	o.catalog = o.observer.catalogs.keep(o.user, server, known, t.now, t.names == nil)
}

// known is the catalog that the next statement is rewritten with: none while the session's settings are not known.
func (o *observation) known() *rewrite.Catalog {
	if o.settings.state != settingsKnown || o.settings.opaque || !o.tracker.observed() {
		return nil
	}
	return o.catalog
}

// learnFor asks for the names that a statement misses, if the server can be asked now; else a later statement does. It reports whether
// it has learned something.
func (o *observation) learnFor(missing []rewrite.Name) (bool, error) {
	switch {
	case o.catalog == nil && o.mayAsk():
		if err := o.counts.save(&o.link); err != nil {
			return false, err
		}
		return true, o.readCatalog()
	case o.catalog == nil || len(missing) == 0:
		return false, nil
	case !o.mayAsk():
		o.catalog.Want(missing)
		return false, nil
	}
	if err := o.counts.save(&o.link); err != nil {
		return false, err
	}
	return true, o.learn(o.catalog.Ask(missing))
}

// mayAsk reports whether statements of ours may run that read the catalog: the client's transaction does not begin or take its snapshot
// with them, and a level for the next transaction only stays for it.
func (o *observation) mayAsk() bool {
	s := &o.settings
	switch {
	case s.state != settingsKnown:
		return false
	case s.inTransaction():
		return o.traits.CatalogApart
	}
	return s.once == "" && (s.status&statusAutocommit != 0 || o.traits.CatalogApart)
}
