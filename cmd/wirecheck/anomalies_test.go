package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
)

// interleaving is one classic anomaly as a script, after Hermitage (Kleppmann), on
// test (id INT PRIMARY KEY, value INT) with the rows (1, 10) and (2, 20).
type interleaving struct {
	name  string
	steps string
	// let gives, for "engine level", what is let through there, by the names that are reported. Levels not named
	// prevent it, and nothing may be reported there.
	let map[string][]string
	// conditions says that what is let through shows only where conditions are evaluated: not with columns on PostgreSQL.
	conditions bool
}

const (
	pgRC, pgRR, pgSER       = "postgres READ COMMITTED", "postgres REPEATABLE READ", "postgres SERIALIZABLE"
	myRU, myRC, myRR, mySER = "mariadb READ UNCOMMITTED", "mariadb READ COMMITTED", "mariadb REPEATABLE READ", "mariadb SERIALIZABLE"
	pgRU                    = "postgres READ UNCOMMITTED"
)

// at gives the same names at several levels.
func at(names []string, levels ...string) map[string][]string {
	m := map[string][]string{}
	for _, l := range levels {
		m[l] = names
	}
	return m
}

var interleavings = []interleaving{
	{name: "G0", steps: `
		1 begin
		2 begin
		1 update test set value = 11 where id = 1
		2 update test set value = 12 where id = 1
		1 update test set value = 21 where id = 2
		1 commit
		2 update test set value = 22 where id = 2
		2 commit`},
	{name: "G1a", let: at([]string{"aborted read"}, myRU), steps: `
		1 begin
		2 begin
		1 update test set value = 101 where id = 1
		2 select * from test
		1 rollback
		2 select * from test
		2 commit`},
	{name: "G1b", let: map[string][]string{myRU: {"intermediate read"}, myRC: {"non-repeatable read"}, pgRC: {"non-repeatable read"}, pgRU: {"non-repeatable read"}}, steps: `
		1 begin
		2 begin
		1 update test set value = 101 where id = 1
		2 select * from test
		1 update test set value = 11 where id = 1
		1 commit
		2 select * from test
		2 commit`},
	{name: "G1c", let: map[string][]string{
		myRU: {"circular information flow"}, myRC: {"write skew"}, myRR: {"write skew"}, pgRU: {"write skew"}, pgRC: {"write skew"}, pgRR: {"write skew"},
	}, steps: `
		1 begin
		2 begin
		1 update test set value = 11 where id = 1
		2 update test set value = 22 where id = 2
		1 select * from test where id = 2
		2 select * from test where id = 1
		1 commit
		2 commit`},
	{name: "OTV", let: map[string][]string{
		// Session 3 reads again what it has read, which is another anomaly where there is no snapshot.
		myRU: {"observed transaction vanishes"}, myRC: {"read skew"}, pgRC: {"read skew"}, pgRU: {"read skew"},
	}, steps: `
		1 begin
		2 begin
		3 begin
		1 update test set value = 11 where id = 1
		1 update test set value = 19 where id = 2
		2 update test set value = 12 where id = 1
		1 commit
		3 select * from test
		2 update test set value = 18 where id = 2
		3 select * from test
		2 commit
		3 select * from test
		3 commit`},
	{name: "PMP", conditions: true, let: at([]string{"phantom"}, pgRU, pgRC, myRU, myRC), steps: `
		1 begin
		2 begin
		1 select * from test where value = 30
		2 insert into test (id, value) values (3, 30)
		2 commit
		1 select * from test where value % 3 = 0
		1 commit`},
	{name: "P4", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC, pgRU), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		1 update test set value = 11 where id = 1
		2 update test set value = 11 + 1 where id = 1
		1 commit
		2 commit`},
	{name: "P4, each with its own rows", steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 2
		1 update test set value = 11 where id = 1
		2 update test set value = 21 where id = 2
		1 commit
		2 commit`},
	{name: "P4 done with one atomic update", steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		1 update test set value = value + 1 where id = 1
		2 update test set value = value + 1 where id = 1
		1 commit
		2 commit`},
	{name: "P4 done with a locking read", steps: `
		1 begin
		2 begin
		1 select * from test where id = 1 for update
		2 select * from test where id = 1 for update
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set value = 12 where id = 1
		2 commit`},
	{name: "G-single, read only", let: at([]string{"read skew"}, myRU, myRC, pgRC, pgRU), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		2 select * from test where id = 2
		2 update test set value = 12 where id = 1
		2 update test set value = 18 where id = 2
		2 commit
		1 select * from test where id = 2
		1 commit`},
	{name: "G-single, one snapshot", steps: `
		1 begin
		2 begin
		1 select * from test where id in (1, 2)
		2 update test set value = 12 where id = 1
		2 update test set value = 18 where id = 2
		2 commit
		1 commit`},
	{name: "G-single, write predicate", conditions: true, let: at([]string{"read skew"}, pgRU, pgRC, myRU, myRC, myRR), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test
		2 update test set value = 12 where id = 1
		2 update test set value = 18 where id = 2
		2 commit
		1 delete from test where value = 20
		1 commit`},
	{name: "G-single, write of what the other wrote", let: at([]string{"read-write skew"}, myRU, myRC, myRR, pgRC, pgRU), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 update test set value = 12 where id = 1
		2 update test set value = 18 where id = 2
		2 commit
		1 update test set value = 30 where id = 2
		1 commit`},
	{name: "G2-item", let: at([]string{"write skew"}, myRU, myRC, myRR, pgRC, pgRU, pgRR), steps: `
		1 begin
		2 begin
		1 select * from test where id in (1, 2)
		2 select * from test where id in (1, 2)
		1 update test set value = 11 where id = 1
		2 update test set value = 21 where id = 2
		1 commit
		2 commit`},
	{name: "G2-item, one after the other", steps: `
		1 begin
		1 select * from test where id in (1, 2)
		1 update test set value = 11 where id = 1
		1 commit
		2 begin
		2 select * from test where id in (1, 2)
		2 update test set value = 21 where id = 2
		2 commit`},
	{name: "G2 on a predicate", conditions: true, let: at([]string{"write skew"}, pgRU, pgRC, pgRR, myRU, myRC, myRR), steps: `
		1 begin
		2 begin
		1 select * from test where value % 3 = 0
		2 select * from test where value % 3 = 0
		1 insert into test (id, value) values (3, 30)
		2 insert into test (id, value) values (4, 42)
		1 commit
		2 commit`},
}

// TestAnomaliesThroughTheProxy plays each interleaving at each level that the products offer. What a product lets
// through must be reported under its name, to the client too; what it prevents must not be.
func TestAnomaliesThroughTheProxy(t *testing.T) {
	t.Parallel()
	levels := map[string][]string{
		"postgres": {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"},
		"mariadb":  {"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"},
	}
	engines := []string{"postgres", "mariadb"}
	switch {
	case testserver.IsMySQL():
		engines = []string{"mysql"}
	case testserver.IsTiDB():
		engines = []string{"tidb"}
	}
	levels["mysql"] = levels["mariadb"]
	levels["tidb"] = []string{"READ COMMITTED", "REPEATABLE READ", tidbOptimistic}
	for _, engine := range engines {
		w := newWorld(t, engine, "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
		for _, level := range levels[engine] {
			for _, in := range interleavings {
				t.Run(engine+"/"+strings.ToLower(level)+"/"+in.name, func(t *testing.T) {
					s, _ := in.judge(t, w, level)
					want := in.lets(engine, level)
					heard := 0
					for _, a := range s.actors {
						heard += len(a.heard)
					}
					if (heard > 0) != (len(want) > 0) {
						t.Errorf("clients heard %d warnings, %d anomalies were reported\n%s", heard, len(want), strings.Join(s.told, "\n"))
					}
				})
			}
		}
	}
}

// judge plays the interleaving through a proxy and compares what is reported with what the product lets through.
func (in interleaving) judge(t *testing.T, w *world, level string) (*stage, results) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	through := w.observe(t, "DELETE FROM test", "INSERT INTO test (id, value) VALUES (1, 10), (2, 20)")
	s := newStage(t, ctx, w.admin, through.target, level)
	s.play(ctx, lines(in.steps))
	s.close()
	got := through.stop(t)
	names := []string{}
	for _, f := range got.findings {
		names = append(names, f.Title())
		if f.Kind != "anomaly" {
			t.Errorf("%s is called a %s: the product promises no such thing at %s", f.Title(), f.Kind, level)
		}
	}
	slices.Sort(names)
	want := append([]string{}, in.lets(w.direct.Engine, level)...)
	if in.conditions && w.direct.Engine == "postgres" && w.capture == rewrite.CaptureColumns {
		want = []string{}
	}
	if diff := cmp.Diff(want, slices.Compact(names)); diff != "" {
		t.Fatalf("reported (-want +got):\n%s\nwhat happened:\n%s\n%s", diff, strings.Join(s.told, "\n"), got.report)
	}
	return s, got
}

// lets gives what is let through; MySQL's InnoDB is as MariaDB's without snapshot isolation, and so are TiDB's pessimistic
// transactions. Its optimistic ones are as PostgreSQL's snapshots.
func (in interleaving) lets(engine, level string) []string {
	switch {
	case engine == "tidb" && level == tidbOptimistic:
		engine, level = "postgres", "REPEATABLE READ"
	case engine == "mysql", engine == "tidb":
		engine = "mariadb"
	}
	return in.let[engine+" "+level]
}

func lines(s string) []string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}
