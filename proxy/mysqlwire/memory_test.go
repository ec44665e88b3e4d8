package mysqlwire

import (
	"fmt"
	"testing"

	"wirecheck/proxy"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// TestPreparedTextsAreBounded: a session does not keep the texts of prepared statements without end.
func TestPreparedTextsAreBounded(t *testing.T) {
	o := &observation{session: &session{ps: &proxy.Session{Config: &proxy.Config{Limits: proxy.Limits{Prepared: 10_000}}}}}
	s := &preparedStatements{o: o}
	s.forget()
	text := string(make([]byte, 1<<20))
	n := 0
	for ; !s.full(preparedSize + len(text)); n++ {
		s.keep(&prepared{id: uint32(n), sql: text})
	}
	if n > 16 {
		t.Errorf("%d texts of 1 MiB are kept", n)
	}
	s.drop(s.byID[3])
	if s.full(preparedSize + len(text)) {
		t.Error("no other one is kept after one is closed")
	}
}

// TestTemporaryTablesAreBounded: the names of temporary tables are part of each plan's key. A session that creates them without end is
// not rewritten any more.
func TestTemporaryTablesAreBounded(t *testing.T) {
	o := &observation{catalog: &rewrite.Catalog{}, tracker: recording{tracker: &record.Tracker{}}}
	for i := range 100_000 {
		o.settings.follow(&rewrite.Plan{Temporary: fmt.Sprintf("test.a_name_of_some_length_%d", i)})
		if len(o.settings.env.Temporary) > 2*temporaryMax {
			t.Fatalf("%d bytes of names after %d tables", len(o.settings.env.Temporary), i)
		}
		if i == 10 && o.known() == nil {
			t.Error("after ten temporary tables nothing is rewritten")
		}
	}
	if o.known() != nil {
		t.Error("statements are rewritten although it is unknown which names are hidden")
	}
}
