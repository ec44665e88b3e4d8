package postgres

import (
	"testing"

	"wirecheck/backends/engine"
)

// TestWatchPlansOnce: the server plans the watcher's query once, however often it looks, and not for each array of sessions.
func TestWatchPlansOnce(t *testing.T) {
	t.Parallel()
	d := Descriptor()
	s, err := d.Start(t.Context(), engine.Options{Settings: d.LabSettings})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	looker, err := Watch(t.Context(), s.Target())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := looker.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := looker.(*watcher)
	for i := range 7 {
		if _, err := w.Look(t.Context(), []uint64{uint64(w.conn.PID()), uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.conn.Exec(t.Context(), "SELECT generic_plans, custom_plans FROM pg_catalog.pg_prepared_statements WHERE name = '"+lookName+"'").ReadAll()
	if err != nil || len(got) != 1 || len(got[0].Rows) != 1 {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	if row := got[0].Rows[0]; string(row[0]) != "7" || string(row[1]) != "0" {
		t.Errorf("generic and custom plans: %q", row)
	}
}
