package mysqlwire

import (
	"sync"
	"time"

	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// catalogs is what the users of one listener see of the server's tables.
type catalogs struct {
	mu      sync.Mutex
	byUser  map[string]*userCatalog // the server shows each user other tables
	changes uint64                  // how often the tables were changed through this listener
}

// userCatalog is a catalog with the count of changes at which it was read.
type userCatalog struct {
	catalog *rewrite.Catalog
	changes uint64
	read    time.Time
}

const (
	// catalogAge is how old a catalog may grow before a session reads it again although it saw no change. Changes that are
	// made behind the proxy mostly show as errors, after which it is read at once; another order of the columns does not.
	catalogAge = 30 * time.Second
	// catalogsKept bounds how many catalogs are kept. Past it all are dropped, and read again when they are needed.
	catalogsKept = 64
)

// changed says that tables were changed, so that all catalogs are old.
func (c *catalogs) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}

// get gives what user sees; it may be nil. fresh says that no change was seen since it was read. Give changes to keep with a
// catalog that is read from now on.
func (c *catalogs) get(user string) (catalog *rewrite.Catalog, fresh bool, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.byUser[user]
	if u == nil {
		return nil, false, c.changes
	}
	return u.catalog, u.changes == c.changes && time.Since(u.read) < catalogAge, c.changes
}

// keep shares what was read. All sessions of a user have one catalog, in which plans stay that rest on what is as it was.
func (c *catalogs) keep(user string, server rewrite.Server, known map[rewrite.Name]*rewrite.Known, changes uint64) *rewrite.Catalog {
	server.Database = "" // sessions have different ones
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.byUser[user]
	if u == nil || u.catalog.Server != server {
		if c.byUser == nil || len(c.byUser) >= catalogsKept {
			c.byUser = make(map[string]*userCatalog)
		}
		u = &userCatalog{catalog: rewrite.NewCatalog(server, nil)}
		c.byUser[user] = u
	}
	if changes >= u.changes {
		u.catalog.Learn(known, changes, true)
		u.changes, u.read = changes, time.Now()
	}
	return u.catalog
}

// readCatalog reads the tables, unless another session has read them since their last change. If the server refuses, the
// session goes on with the catalog that it had.
func (o *observation) readCatalog() error {
	c, fresh, changes := o.observer.catalogs.get(o.user)
	if fresh {
		o.catalog = c
		return nil
	}
	// A LIMIT of its own, as the client may have set sql_select_limit: half a catalog would be wrong.
	rows, refused, err := o.ownRows(dialect.CatalogQuery() + " LIMIT 18446744073709551615")
	if err != nil {
		return err
	}
	if refused != nil {
		o.ps.Log.Warn().Str("error", refused.Message).Msg("the tables cannot be read")
		return nil
	}
	var server rewrite.Server
	var known map[rewrite.Name]*rewrite.Known
	if !o.tracker.guard(func() { server, known, err = dialect.ReadCatalog(rows) }) {
		return nil
	}
	if err != nil {
		o.ps.Log.Warn().Err(err).Msg("the tables are not understood")
		return nil
	}
	o.catalog = o.observer.catalogs.keep(o.user, server, known, changes)
	return nil
}

// known is the catalog that the next statement is rewritten with: none while the session's settings are not known.
func (o *observation) known() *rewrite.Catalog {
	if o.settings.state != settingsKnown || o.settings.opaque || !o.tracker.observed() {
		return nil
	}
	return o.catalog
}
