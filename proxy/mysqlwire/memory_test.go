package mysqlwire

import (
	"fmt"
	"testing"

	"wirecheck/proxy"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// TestPreparedTextsAreBounded: a session does not keep the texts of prepared statements without end.
func TestPreparedTextsAreBounded(t *testing.T) {
	o := &observation{session: &session{ps: &proxy.Session{Config: &proxy.Config{Limits: proxy.Limits{Prepared: 10_000}}}}}
	s := &preparedStatements{o: o}
	s.forget()
	text := string(make([]byte, 1<<20))
	n := 0
	for ; !s.full(preparedSize + len(text)); n++ {
		s.keep(&prepared{id: uint32(n), sql: text, used: &form{plan: &rewrite.Plan{}}})
	}
	if n > 16 {
		t.Errorf("%d texts of 1 MiB are kept", n)
	}
	s.drop(s.byID[3])
	if s.full(preparedSize + len(text)) {
		t.Error("no other one is kept after one is closed")
	}
	s.forget()
	plan := &rewrite.Plan{Asks: []rewrite.Ask{{Where: condition.Condition{Op: "or", Args: make([]condition.Condition, 10_000)}}}}
	for n = 0; !s.full(preparedSize); n++ {
		s.keep(&prepared{id: uint32(n), used: &form{plan: plan}})
	}
	if n > 16 {
		t.Errorf("%d conditions of 10,000 parts are kept", n)
	}
	for _, p := range s.byID {
		s.drop(p)
	}
	if !s.text.Takes(15 << 20) {
		t.Error("statements that are closed still take room")
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
