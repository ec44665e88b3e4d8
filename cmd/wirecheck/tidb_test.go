package main

import (
	"context"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
)

// TiDB executes a statement again that met a write conflict. What its first attempt found is not what it wrote.
func TestTiDBAttempts(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	w := newWorld(t, "tidb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	for _, test := range []struct {
		sql  string
		rows []string // it wrote, or found as they were
	}{
		{"update test set value = 5 where value = 20", nil},
		{"update test set value = value + 1 where value > 0", []string{"update id=1", "update id=2"}},
		{"update test set value = 21 where value > 0", []string{"update id=1", "match id=2"}},
		{"delete from test where value = 20", nil},
		{"delete from test where value > 0", []string{"delete id=1", "delete id=2"}},
		{"insert into test (id, value) values (2, 7) on duplicate key update value = value + 1", []string{"update id=2"}},
	} {
		t.Run(test.sql, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			th := w.observe(t, "DELETE FROM test", "INSERT INTO test (id, value) VALUES (1, 10), (2, 20)")
			s := newStage(t, ctx, w.admin, th.target, "REPEATABLE READ")
			s.play(ctx, []string{"1 begin", "2 begin", "1 update test set value = 21 where id = 2", "2 " + test.sql, "1 commit", "2 commit"})
			s.close()
			th.stop(t)
			var got []history.Access
			found := false
			for ev := range recorded(t, th.file) {
				if ev.SQL == test.sql {
					found, got = true, ev.Accesses
				}
			}
			if !found || len(got) != len(test.rows) {
				t.Fatalf("accesses %+v, want %v\n%v", got, test.rows, s.told)
			}
			for i, a := range got {
				if is := string(a.Op) + " " + a.Name; is != test.rows[i] {
					t.Errorf("access %d is %s, want %s", i, is, test.rows[i])
				}
				if a.Name == "id=2" && a.Op.Writes() && a.PrevOrder != 2 {
					t.Errorf("it overwrote %+v, not what the other session wrote", a)
				}
			}
		})
	}
}
