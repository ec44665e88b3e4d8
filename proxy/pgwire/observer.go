package pgwire

import (
	"sync"
	"sync/atomic"
	"time"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

var noTime time.Time

// Observer holds what the sessions in observe mode share: the rewriter, the recorder and the catalogs that were read.
type Observer struct {
	rewriter *postgres.Rewriter
	recorder *record.Recorder
	limits   record.Limits
	silent   bool

	mu        sync.Mutex
	databases map[databaseKey]*database
}

// ObserverConfig says how an Observer works.
type ObserverConfig struct {
	Rewriter *postgres.Rewriter
	Recorder *record.Recorder
	Limits   record.Limits
	Silent   bool // no warnings to clients
}

// NewObserver makes an Observer.
func NewObserver(c ObserverConfig) *Observer {
	return &Observer{
		rewriter: c.Rewriter, recorder: c.Recorder, limits: c.Limits, silent: c.Silent,
		databases: make(map[databaseKey]*database),
	}
}

type databaseKey struct{ upstream, name string }

// database is what is known of one database of one server.
type database struct {
	changes atomic.Uint64    // of the schema, as far as they were seen
	first   *rewrite.Catalog // the first one read, for its horizon
	readers map[readerKey]*reading
}

// readerKey is who reads a catalog, as far as it decides what they may see.
type readerKey struct{ user, rowSecurity string }

// maxReaders bounds the catalogs kept of one database.
const maxReaders = 64

// reading is a catalog as it was read at some time.
type reading struct {
	catalog *rewrite.Catalog
	changes uint64 // of the database when the reading began
}

// at gives what is known of a database.
func (o *Observer) at(k databaseKey) *database {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.databases[k]
	if d == nil {
		d = &database{readers: make(map[readerKey]*reading)}
		o.databases[k] = d
	}
	return d
}

// known gives the catalog for a reader. It returns false if it must be read, and in any case the number of changes.
func (o *Observer) known(d *database, r readerKey) (c *rewrite.Catalog, ok bool, changes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	changes = d.changes.Load()
	have := d.readers[r]
	if have == nil || have.changes != changes {
		return nil, false, changes
	}
	return have.catalog, true, changes
}

// keepHorizon gives a catalog that is not shared the horizon of the database.
func (o *Observer) keepHorizon(d *database, c *rewrite.Catalog) {
	o.mu.Lock()
	defer o.mu.Unlock()
	postgres.KeepHorizon(c, d.first)
}

// Renew takes everything that was written up to now for initial: the next reading of a database's catalog says which
// transactions these are. It is for those who begin a new judgement, while no session is in a transaction.
func (o *Observer) Renew() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.databases {
		d.first = nil
		d.changes.Add(1)
	}
}

// learned keeps a catalog whose reading began when the database had seen that many changes.
func (o *Observer) learned(d *database, r readerKey, c *rewrite.Catalog, changes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	postgres.KeepHorizon(c, d.first)
	if d.first == nil {
		d.first = c
	}
	if len(d.readers) >= maxReaders {
		clear(d.readers)
	}
	d.readers[r] = &reading{catalog: c, changes: changes}
}
