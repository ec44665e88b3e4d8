package mysqlwire

import (
	"sync"
	"time"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// Observer is what the sessions of one listener in observe mode share. Its exported fields are not changed while
// sessions run.
type Observer struct {
	Recorder *record.Recorder
	Limits   record.Limits
	Capture  rewrite.Capture
	// Warn tells warnings to the client. Without it they are only recorded.
	Warn bool
	// Aborts reports whether the server's error of this number rolled back the whole transaction. nil: AbortsByDefault.
	Aborts func(engine string, code uint16) bool
	// Instrument adds the hidden columns to tables that are created through the proxy.
	Instrument Instrument

	mu        sync.Mutex
	rewriters map[dialect.Flavor]*dialect.Rewriter
	catalogs  map[string]*sharedCatalog // by user: what a session sees depends on that
	changes   uint64                    // how often the tables were changed through this listener
}

// AbortsByDefault knows the errors that roll back the whole transaction at the servers' default settings: a deadlock
// (1213), and on MariaDB with innodb_snapshot_isolation a changed row (1020). A lock wait timeout (1205) undoes the
// statement alone (MariaDB and MySQL, innodb_rollback_on_timeout). TiDB has its own numbers.
func AbortsByDefault(engine string, code uint16) bool {
	if engine == "tidb" {
		return abortsOnTiDB(code)
	}
	return code == 1213 || code == 1020 && engine == "mariadb"
}

// Instrument says which tables that are created through the proxy get the hidden columns.
type Instrument string

// The ways to instrument new tables. InstrumentFollow, the default, does it in schemas that have instrumented tables.
const (
	InstrumentFollow Instrument = "follow"
	InstrumentAuto   Instrument = "auto"
	InstrumentOff    Instrument = "off"
)

// sharedCatalog is a catalog with the count of changes at which it was read.
type sharedCatalog struct {
	catalog *rewrite.Catalog
	changes uint64
	read    time.Time
}

// catalogAge is how old a catalog may grow before it is read again although no change was seen. Changes that are made
// behind the proxy mostly show as errors, which make it read at once; that somebody put columns into another order does not.
const catalogAge = 30 * time.Second

// rewriter gives the rewriter for a product; its cache is shared.
func (o *Observer) rewriter(f dialect.Flavor) *dialect.Rewriter {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.rewriters[f]; r != nil {
		return r
	}
	if o.rewriters == nil {
		o.rewriters = make(map[dialect.Flavor]*dialect.Rewriter)
	}
	r := dialect.New(f, o.Capture)
	o.rewriters[f] = r
	return r
}

// changed says that tables were changed, so that all catalogs are old.
func (o *Observer) changed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
}

// catalog gives what user sees; it may be nil. fresh says that no change was seen since it was read, and changes is to be
// given to keep with a catalog that is read from now on.
func (o *Observer) catalog(user string) (c *rewrite.Catalog, fresh bool, changes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.catalogs[user]
	if s == nil {
		return nil, false, o.changes
	}
	return s.catalog, s.changes == o.changes && time.Since(s.read) < catalogAge, o.changes
}

// catalogsKept bounds how many catalogs are kept. Past it they are forgotten and read again when needed.
const catalogsKept = 64

// keep shares a catalog.
func (o *Observer) keep(user string, c *rewrite.Catalog, changes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.catalogs == nil || len(o.catalogs) >= catalogsKept {
		o.catalogs = make(map[string]*sharedCatalog)
	}
	o.catalogs[user] = &sharedCatalog{c, changes, time.Now()}
}
