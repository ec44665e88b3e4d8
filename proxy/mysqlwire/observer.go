package mysqlwire

import (
	"sync"
	"sync/atomic"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// Observer is what the sessions of one listener in observe mode share. Its exported fields do not change while sessions
// run.
type Observer struct {
	Recorder *record.Recorder
	Limits   record.Limits
	Capture  rewrite.Capture
	// Warn sends warnings to the client. Without it they are only recorded.
	Warn bool
	// Instrument adds the hidden columns to tables that are created through the proxy.
	Instrument Instrument
	// Images asks for images of all rows that are written, whether a predicate reads them or not.
	Images bool
	// Early is the time in which images of all rows that are written are asked for in any case; nil: it is over.
	Early *rewrite.Early

	mu        sync.Mutex
	rewriters map[dialect.Flavor]*dialect.Rewriter
	catalogs  catalogs
	bare      sync.Map                 // by rewrite.RelationName: tables without hidden columns of which the log has heard
	byName    bool                     // no catalog is read whole
	variables atomic.Pointer[[]string] // see askVariables
}

// Instrument says which tables that are created through the proxy get the hidden columns.
type Instrument string

// The ways to instrument new tables. InstrumentFollow, the default, does it in schemas that have instrumented tables.
const (
	InstrumentFollow Instrument = "follow"
	InstrumentAuto   Instrument = "auto"
	InstrumentOff    Instrument = "off"
)

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
	if o.Images {
		r.WantAll()
	}
	r.WantEarly(o.Early)
	o.rewriters[f] = r
	return r
}
