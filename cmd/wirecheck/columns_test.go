package main

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/rewrite"
)

// undone are interleavings in which versions were undone: the next version of the row has the same place, and after a
// ROLLBACK TO SAVEPOINT the same stamp.
var undone = []interleaving{
	{name: "undone, then written again", steps: `
		1 begin
		1 select * from test where id = 1
		1 savepoint s
		1 update test set value = 11 where id = 1
		1 select * from test where id = 1
		1 rollback to savepoint s
		1 select * from test where id = 1
		1 update test set value = 12 where id = 1
		1 select * from test where id = 1
		1 commit
		2 begin
		2 select * from test where id = 1
		2 update test set value = 13 where id = 1
		2 commit`},
	{name: "aborted, then written by another", steps: `
		1 begin
		1 update test set value = 11 where id = 1
		1 rollback
		2 begin
		2 select * from test where id = 1
		2 update test set value = 12 where id = 1
		2 commit
		3 begin
		3 select * from test where id = 1
		3 delete from test where id = 1
		3 commit`},
	{name: "lost update after an undone one", let: at([]string{"lost update"}, pgRC), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		1 savepoint s
		1 update test set value = 10 where id = 1
		1 rollback to savepoint s
		1 update test set value = 11 where id = 1
		1 commit
		2 savepoint s
		2 update test set value = 11 + 1 where id = 1
		2 rollback to savepoint s
		2 update test set value = 11 + 2 where id = 1
		2 commit`},
	{name: "upserts", let: at([]string{"lost update"}, pgRC), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		1 insert into test values (1, 11) on conflict (id) do update set value = excluded.value
		1 commit
		2 insert into test values (1, 12) on conflict (id) do update set value = excluded.value
		2 commit`},
}

// TestAnomaliesByColumns plays the interleavings against PostgreSQL with capture by columns: the same anomalies must be
// reported as with native capture.
func TestAnomaliesByColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres")
	w.capture = rewrite.CaptureColumns
	w.run(t, "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	w.instrumentAll(t)
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		for _, in := range slices.Concat(interleavings, undone) {
			t.Run(strings.ToLower(level)+"/"+in.name, func(t *testing.T) {
				s, got := in.judge(t, w, level)
				if got.coverage.Exact == 0 || got.coverage.Opaque > 0 || got.coverage.Approximate > 0 {
					t.Errorf("coverage %+v", got.coverage)
				}
				for _, told := range s.told {
					if strings.Contains(told, "wc_") {
						t.Errorf("a client saw the hidden columns: %s", told)
					}
				}
			})
		}
	}
}
