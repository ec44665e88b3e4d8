package pgwire

import (
	"testing"
	"time"

	"wirecheck/rewrite/postgres"
)

// TestComparedForEachReader: what is compared is what one user reads, so it says nothing of what another one has read.
func TestComparedForEachReader(t *testing.T) {
	o := NewObserver(ObserverConfig{})
	d := o.at(databaseKey{"server", "database"})
	one, other := o.learned(d, readerKey{user: "one"}, &postgres.Reading{}), o.learned(d, readerKey{user: "other"}, &postgres.Reading{})
	one.compared.Store(time.Now().Add(time.Hour).UnixNano())
	if one.mayCompare() || o.known(d, readerKey{user: "one"}).mayCompare() {
		t.Error("what one user has read is compared again at once")
	}
	if !other.mayCompare() {
		t.Error("what another user has read is not compared")
	}
	d.asked()
	if d.old() {
		t.Error("the count is asked for again at once")
	}
	d.soon()
	if age := time.Now().UnixNano() - d.looked.Load(); age < int64(countAge-comparePause) {
		t.Errorf("after %s, nothing was compared, and the count is asked for in %s", time.Duration(age), countAge)
	}
}

// TestRenewKeepsTheCatalog: a judgement that begins over rows alone moves the horizon and reads nothing again. Beside it stands one that begins afresh.
func TestRenewKeepsTheCatalog(t *testing.T) {
	o := NewObserver(ObserverConfig{})
	d, reader := o.at(databaseKey{"server", "database"}), readerKey{user: "one"}
	read := o.learned(d, reader, &postgres.Reading{})
	d.horizon.Learn(7)
	if xid, known := read.Horizon.XID(); xid != 7 || !known {
		t.Errorf("the catalog has the horizon %d, %v", xid, known)
	}
	changes := d.changes.Last()
	o.Renew(false)
	if _, known := read.Horizon.XID(); known || o.known(d, reader) != read || d.changes.Last() != changes {
		t.Error("over rows alone, the horizon stays, or the catalog does not")
	}
	d.horizon.Learn(9)
	d.horizon.Learn(11)
	if xid, _ := read.Horizon.XID(); xid != 9 {
		t.Errorf("the horizon is %d and not the first one that a session was told", xid)
	}
	o.Renew(true)
	if _, known := read.Horizon.XID(); known || o.known(d, reader) != nil || d.changes.Last() == changes {
		t.Error("afresh, the horizon or the catalog stays")
	}
}
