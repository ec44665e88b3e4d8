package main

import (
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// columnWrites are interleavings of transactions that write columns of one row, on test (id INT PRIMARY KEY, value INT, b INT, c INT) with the
// row (1, 10, 20, 30). Nothing is lost where each wrote a column of its own.
var columnWrites = []interleaving{
	{name: "each its own column", steps: `
		1 begin
		2 begin
		1 select value from test where id = 1
		2 select b from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set b = 21 where id = 1
		2 commit`},
	{name: "each its own column, one read all", steps: `
		1 begin
		2 begin
		2 select * from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set b = 21 where id = 1
		2 commit`},
	{name: "each its own column, both read all", let: at([]string{"write skew"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		1 select * from test where id = 1
		2 select * from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set b = 21 where id = 1
		2 commit`},
	{name: "each its own columns, several statements", steps: `
		1 begin
		2 begin
		2 select b from test where id = 1
		1 update test set value = 11 where id = 1
		1 update test set c = 31 where id = 1
		1 commit
		2 update test set b = 21 where id = 1
		2 update test set b = 22 where id = 1
		2 commit`},
	{name: "one column of two is the same", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select b, c from test where id = 1
		1 update test set value = 11, c = 31 where id = 1
		1 commit
		2 update test set b = 21, c = 32 where id = 1
		2 commit`},
	{name: "the same column", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set value = 12 where id = 1
		2 commit`},
	{name: "the same column in a second statement", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set b = 21 where id = 1
		2 update test set value = 12 where id = 1
		2 commit`},
	{name: "the same column, another one in between", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		3 begin
		2 select value from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		3 update test set b = 21 where id = 1
		3 commit
		2 update test set value = 12 where id = 1
		2 commit`},
	{name: "computed, of its own column", steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = value + 1 where id = 1
		1 commit
		2 update test set b = b + 1 where id = 1
		2 commit`},
	{name: "computed, then overwritten", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = value + 1 where id = 1
		1 commit
		2 update test set value = 12, b = b + 1 where id = 1
		2 commit`},
	{name: "deleted, another column read", steps: `
		1 begin
		2 begin
		2 select b from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 delete from test where id = 1
		2 commit`},
	{name: "deleted, the same column read", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 delete from test where id = 1
		2 commit`},
	{name: "an upsert of its own column", steps: `
		1 begin
		2 begin
		2 select b from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 insert into test (id, value) values (1, 1) UPSERT b = 21
		2 commit`},
	{name: "an upsert of the same column", let: at([]string{"lost update"}, myRU, myRC, myRR, pgRC), steps: `
		1 begin
		2 begin
		2 select value from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 insert into test (id, value) values (1, 1) UPSERT value = 21
		2 commit`},
	{name: "another column that is as it was", steps: `
		1 begin
		2 begin
		2 select b from test where id = 1
		1 update test set value = 11 where id = 1
		1 commit
		2 update test set b = 20 where id = 1
		2 commit`},
}

// TestColumnWrites plays them on real servers: what is said live and of the recorded history is the same.
func TestColumnWrites(t *testing.T) {
	t.Parallel()
	engines := []string{"postgres", "mariadb"}
	switch {
	case testserver.IsMySQL():
		engines = []string{"mysql"}
	case testserver.IsTiDB():
		engines = []string{"tidb"}
	}
	for _, engine := range engines {
		w := newWorld(t, engine, "CREATE TABLE test (id INT PRIMARY KEY, value INT, b INT DEFAULT 20, c INT DEFAULT 30)")
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			for _, in := range columnWrites {
				upsert := map[bool]string{true: "on conflict (id) do update set", false: "on duplicate key update"}[engine == "postgres"]
				in.steps = strings.ReplaceAll(in.steps, "UPSERT", upsert)
				t.Run(engine+"/"+strings.ToLower(level)+"/"+in.name, func(t *testing.T) { in.judge(t, w, level) })
			}
		}
	}
}
