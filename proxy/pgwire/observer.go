package pgwire

import (
	"fmt"
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
	changes rewrite.Changes // of the schema, as far as they were seen
	asks    atomic.Uint64   // the last bit is the answer to AsksQuery, the others the change behind which it was asked, plus 1
	horizon rewrite.Horizon // a session that finds it unknown asks for it
	readers map[readerKey]*reading
	orphans atomic.Bool  // a session wrote, or may have written, rows whose foreign keys nobody looked at
	looked  atomic.Int64 // when a session last asked for settings, and what the server counts of definitions; nanoseconds
}

// reading is what a reader has read of the catalog.
type reading struct {
	*rewrite.Catalog
	compared atomic.Int64 // when it was last compared with the server, in nanoseconds
}

// comparePause is for how long what was compared with the server is taken for true although the server counts more definitions: there are
// programs that make temporary tables all the time.
const comparePause = time.Second

func (r *reading) mayCompare() bool {
	return time.Now().UnixNano()-r.compared.Load() >= int64(comparePause)
}

// countAge is how old the server's count of definitions may grow before a session asks for it again: until then one that goes past the
// proxy is not noticed by sessions that are open already.
const countAge = 30 * time.Second

// old reports whether the server's count of definitions has grown old. It says so to one session.
func (d *database) old() bool {
	at, now := d.looked.Load(), time.Now().UnixNano()
	return now-at > int64(countAge) && d.looked.CompareAndSwap(at, now)
}

// asked says that a session has asked for the count.
func (d *database) asked() { d.looked.Store(time.Now().UnixNano()) }

// soon says that the count has changed and nothing was compared: a session asks again as soon as comparing is allowed.
func (d *database) soon() { d.looked.Add(int64(comparePause - countAge)) }

// asking reports whether something in the database may ask for the text of the running statement. It asks the server, unless a session has done so since
// the last change that may have concerned it.
func (d *database) asking(ask func(sql ...string) (*own, error), changes uint64) (bool, error) {
	if d.asks.Load()>>1 != changes+1 {
		answer, err := ask(uncompiled, postgres.AsksQuery)
		if err != nil {
			return false, fmt.Errorf("ask for what shows texts: %w", err)
		}
		asks := (changes + 1) << 1
		if len(answer.rows) != 1 || string(answer.rows[0][0]) != "f" {
			asks |= 1
		}
		d.asks.Store(asks)
	}
	return d.asks.Load()&1 == 1, nil
}

// readerKey is who reads a catalog, as far as it decides what they may see.
type readerKey struct{ user, rowSecurity string }

// maxReaders bounds the catalogs kept of one database.
const maxReaders = 64

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

// known gives what a reader has read, or nil.
func (o *Observer) known(d *database, r readerKey) *reading {
	o.mu.Lock()
	defer o.mu.Unlock()
	return d.readers[r]
}

// learned makes the catalog for a reader, in which nothing is known yet.
func (o *Observer) learned(d *database, r readerKey, read *postgres.Reading) *reading {
	server := d.server(read)
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := d.readers[r]; c != nil && c.Server == server { // another session was faster
		return c
	}
	if len(d.readers) >= maxReaders {
		clear(d.readers)
	}
	c := &reading{Catalog: rewrite.NewCatalog(server, &d.changes)}
	d.readers[r] = c
	return c
}

// server gives what a reading says of the server, with the horizon of the database.
func (d *database) server(read *postgres.Reading) rewrite.Server {
	s := read.Server
	s.Horizon = &d.horizon
	return s
}

// Renew takes everything that was written up to now for initial: the next question for settings says which transactions these are. It is for
// those who begin a new judgement, while no session is in a transaction. afresh says that clients who do not use the proxy may have changed definitions:
// then the catalog is read again, too.
func (o *Observer) Renew(afresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.databases {
		d.horizon.Forget()
		if afresh {
			clear(d.readers)
			d.changes.Add()
		}
	}
}
