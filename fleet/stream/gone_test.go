package stream_test

import (
	"slices"
	"testing"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
)

// TestGone: a process that has died does not say that it ends. Once it was silent for too long, by the stream's clock, its sessions end as not observed any more, and
// before that they go on.
func TestGone(t *testing.T) {
	where := bus.Embedded + t.TempDir()
	b := openBus(t, where, bus.Options{})
	for i, tt := range []struct {
		prepare func(*stream.Collector)
		ended   int
		said    []string
	}{
		{func(*stream.Collector) {}, 0, nil},
		{func(c *stream.Collector) { c.SetSilence(1) }, 1, []string{"it has said nothing for a minute"}},
	} {
		other := openBus(t, where, bus.Options{})
		dies := publisher(t, other, stream.Options{Run: []string{"dies", "diestoo"}[i]})
		dies.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
		dies.Event(&history.Event{Kind: history.EventBegin, Session: 1, Txn: 1})
		published(t, dies)
		other.Close()
		goesOn := publisher(t, b, stream.Options{Run: []string{"on", "ontoo"}[i]})
		goesOn.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
		transaction(goesOn, 1, 1)
		published(t, goesOn)
		ended := 0
		r := collectWith(t, b, 1000, tt.prepare)
		for _, e := range r.events {
			if e.Kind == history.EventClose && e.Why != "" {
				ended++
			}
		}
		if ended != tt.ended || !slices.Equal(r.said, tt.said) || r.fresh < 6 {
			t.Errorf("%d sessions ended, want %d; %d events; %v", ended, tt.ended, r.fresh, r.said)
		}
		if n := goesOn.Close(patience); n > 0 {
			t.Errorf("%d events were not published", n)
		}
	}
}
