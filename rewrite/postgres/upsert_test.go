package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/condition"
)

// TestUpsertLeaves: what an upsert does not assign is in the row that it met, too, if nothing else changes it.
func TestUpsertLeaves(t *testing.T) {
	conn := testserver.Postgres(t).Database(t).Postgres(t).PgConn()
	exec(t, conn, `CREATE TABLE a (id int PRIMARY KEY, b int, c text, twice int GENERATED ALWAYS AS (b * 2) STORED); INSERT INTO a VALUES (1, 2, 'x');
		CREATE TABLE changed (LIKE a INCLUDING ALL); INSERT INTO changed VALUES (1, 2, 'x');
		CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.c := NEW.c || ''!''; RETURN NEW; END';
		CREATE TRIGGER more BEFORE UPDATE ON changed FOR EACH ROW EXECUTE FUNCTION more()`)
	cat := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	r.WantAll()
	for _, f := range []struct {
		sql, was string
		op       history.Op
	}{
		{"INSERT INTO a VALUES (1, 3, 'y') ON CONFLICT (id) DO UPDATE SET b = 9", "id 1 c x", history.OpUpdate},
		{"INSERT INTO a AS o VALUES (1, 3, 'y') ON CONFLICT (id) DO UPDATE SET (b, c) = (o.b + 1, 'z') WHERE o.id = 1", "id 1", history.OpUpdate},
		{"INSERT INTO a VALUES (1, 3, 'y') ON CONFLICT (id) DO UPDATE SET id = 7, c = 'z'", "b 2", history.OpUpdate},
		{"INSERT INTO a VALUES (5, 3, 'y') ON CONFLICT (id) DO UPDATE SET b = 9", "", history.OpInsert},
		{"INSERT INTO changed VALUES (1, 3, 'y') ON CONFLICT (id) DO UPDATE SET b = 9", "", history.OpUpdate},
	} {
		exec(t, conn, "BEGIN")
		list := written(t, conn, r.Script(f.sql, cat, postgres.Session{}))
		exec(t, conn, "ROLLBACK")
		if len(list) != 1 || list[0].Op != f.op {
			t.Errorf("%s: %+v", f.sql, list)
			continue
		}
		got, err := condition.ParseImage(list[0].Was)
		if err != nil {
			t.Fatal(err)
		}
		want, err := condition.ParseImage(f.was)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: it was (-want +got)\n%s", f.sql, d)
		}
	}
}
