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
