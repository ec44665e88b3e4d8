package main

import (
	"testing"
	"time"
	"fmt"
	"wirecheck/backends"
	"wirecheck/backends/engine"
)

func TestTM(t *testing.T) {
	ctx := t.Context()
	for _, name := range []string{"postgres", "mariadb"} {
		d, _ := backends.ByName(name)
		s, err := d.Start(ctx, engine.Options{Settings: d.LabSettings})
		if err != nil { t.Fatal(err) }
		defer s.Close()
		labs, _ := engine.OpenLabs(ctx, d, s.Target())
		tg, _ := labs.Create(ctx)
		c, _ := d.Connect(ctx, tg)
		d.Lab.PrepareConn(ctx, c)
		engine.Exec(ctx, c, "CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT); INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40), (5, 3, 50)")
		m, err := d.Lab.Remember(ctx, c)
		if err != nil { t.Fatal(err) }
		w, _ := d.Watch(ctx, tg)
		tables := m.Tables
		for what, f := range map[string]func() error{
			"changed": func() error { _, err := m.Changed(ctx, c); return err },
			"quick": func() error { return m.Reset(ctx, c, false) },
			"thorough": func() error { return m.Reset(ctx, c, true) },
			"readrows": func() error { return d.Lab.ReadRows(ctx, c, tables) },
			"look": func() error { _, err := w.Look(ctx, []uint64{c.ID(), 3}); return err },
			"select1": func() error { return engine.Exec(ctx, c, "SELECT 1") },
			"begin;commit": func() error { engine.Exec(ctx, c, "BEGIN"); return engine.Exec(ctx, c, "COMMIT") },
			"update": func() error { return engine.Exec(ctx, c, "UPDATE t SET v = v+1 WHERE id = 3") },
		} {
			f()
			b := time.Now()
			for range 200 { if err := f(); err != nil { t.Fatal(what, err) } }
			fmt.Printf("%s %-14s %v\n", name, what, time.Since(b)/200)
		}
	}
}
