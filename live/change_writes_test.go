package live_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// writes are many forms of writing, beside queries of one table. The tables are those of relations, and there are views, functions and procedures.
type writes struct {
	relations
	family bool
}

func (writes) query(rng *rand.Rand) (string, []any) {
	t := pick(rng, "a", "a", "b", "child")
	n := func() string { return fmt.Sprint(rng.IntN(3)) }
	where := pick(rng, "v = "+n(), "v <> "+n(), "v IS NULL", "v IN ("+n()+", "+n()+")", "id > 9", "id < 3", "NOT v = "+n())
	number := pick(rng, "count(*)", "count(v)", "sum(id)", "max(id)", "min(id)", "sum(v)", "coalesce(sum(v), 0)")
	having := " HAVING " + number + pick(rng, " > ", " >= ", " < ", " <= ", " = ", " <> ") + fmt.Sprint(rng.IntN(9))
	return pick(rng, "SELECT id FROM "+t+" WHERE "+where+" ORDER BY id", "SELECT count(*) FROM "+t+" WHERE "+where,
		"SELECT v, count(*) FROM "+t+" WHERE "+where+" GROUP BY v"+having+" ORDER BY v", "SELECT v FROM "+t+" GROUP BY v"+having+" ORDER BY v", "SELECT count(*) FROM "+t+" WHERE "+where+having, "SELECT count(*) FROM (SELECT v FROM "+t+" WHERE "+where+" GROUP BY v"+having+") q"), nil
}

func (w writes) change(rng *rand.Rand) string {
	n := func() string { return pick(rng, "0", "1", "2", "NULL") }
	one, id := func() string { return fmt.Sprint(1 + rng.IntN(3)) }, func() string { return fmt.Sprint(1 + rng.IntN(12)) }
	row := func() string { return "(" + id() + ", " + n() + ", " + n() + ")" }
	long := func() string {
		var list []string
		for i := range 120 {
			list = append(list, fmt.Sprintf("(%d, %s, %s)", 100+i, n(), n()))
		}
		return strings.Join(list, ", ")
	}
	both := []string{
		"INSERT INTO a (id, k, v) SELECT id + 20, a, v FROM b",
		"INSERT INTO a (id, k, v) SELECT " + id() + ", " + one() + ", " + one(),
		"INSERT INTO a (id, k, v) VALUES " + long(),
		"INSERT INTO a VALUES " + row() + ", (50, 1, " + n() + ")",
		"INSERT INTO va VALUES " + row(),
		"UPDATE va SET v = " + n() + " WHERE id = " + one(),
		"DELETE FROM va WHERE id = " + one(),
		"UPDATE a SET v = v + 1 WHERE id = " + one(),
		"UPDATE a SET id = id + 30 WHERE id = " + one(),
		"UPDATE a SET v = (SELECT max(b.v) FROM b) WHERE id = " + one(),
		"UPDATE a SET v = " + n() + " WHERE EXISTS (SELECT 1 FROM b WHERE b.a = a.id)",
		"DELETE FROM a WHERE id IN (SELECT b.a FROM b)",
		"DELETE FROM a WHERE v = (SELECT min(b.v) FROM b)",
		"DELETE FROM a", "UPDATE a SET v = " + one(),
		"CALL writes_a(" + id() + ", " + one() + ")",
		"SELECT writing_a(" + id() + ", " + one() + ")",
		"INSERT INTO logged VALUES (" + id() + ", " + one() + ")",
		"DELETE FROM parent WHERE id = " + one(),
	}
	if w.family {
		return pick(rng, append(both,
			"REPLACE INTO a VALUES "+row(), "REPLACE INTO a SELECT id, a, v FROM b", "INSERT IGNORE INTO a VALUES "+row(), "INSERT IGNORE INTO a VALUES "+row()+", (50, 1, "+n()+")",
			"INSERT INTO a VALUES "+row()+" ON DUPLICATE KEY UPDATE v = "+n(), "INSERT INTO a VALUES "+row()+", (50, 1, 1) ON DUPLICATE KEY UPDATE v = VALUES(v)",
			"INSERT INTO a SET id = "+id()+", v = "+n(), "UPDATE a JOIN b ON b.a = a.id SET a.v = "+n(), "UPDATE a, b SET a.v = b.v WHERE a.id = b.id", "UPDATE a JOIN b ON b.a = a.id SET a.v = "+n()+", b.v = "+n(),
			"DELETE a FROM a JOIN b ON b.a = a.id", "DELETE a, b FROM a JOIN b ON b.a = a.id", "DELETE FROM a ORDER BY id LIMIT 1", "UPDATE a SET v = "+n()+" ORDER BY id DESC LIMIT 1", "UPDATE IGNORE a SET id = "+one()+" WHERE id = "+one(),
			"INSERT INTO a (id, v) VALUES ("+id()+", DEFAULT)", "DELETE FROM a WHERE id = "+one()+" RETURNING id", "INSERT INTO a VALUES "+row()+" RETURNING id",
			"BEGIN NOT ATOMIC INSERT INTO a VALUES "+row()+"; END", "EXECUTE IMMEDIATE 'INSERT INTO a VALUES "+row()+"'", "WITH x AS (SELECT id FROM b) DELETE FROM a WHERE id IN (SELECT id FROM x)")...)
	}
	return pick(rng, append(both,
		"INSERT INTO a VALUES "+row()+" ON CONFLICT DO NOTHING", "INSERT INTO a VALUES "+row()+", (50, 1, 1) ON CONFLICT (id) DO NOTHING", "INSERT INTO a VALUES "+row()+" ON CONFLICT (id) DO UPDATE SET v = excluded.v",
		"INSERT INTO a VALUES "+row()+" ON CONFLICT (id) DO UPDATE SET v = "+n()+" WHERE a.v > 0", "INSERT INTO a SELECT id, a, v FROM b ON CONFLICT DO NOTHING", "UPDATE a SET v = b.v FROM b WHERE b.id = a.id", "DELETE FROM a USING b WHERE b.a = a.id",
		"WITH x AS (DELETE FROM b WHERE id = "+one()+" RETURNING id, v) INSERT INTO a SELECT id + 60, 0, v FROM x", "WITH x AS (INSERT INTO a VALUES "+row()+" RETURNING id) SELECT count(*) FROM x", "WITH x AS (UPDATE a SET v = "+n()+" RETURNING id) SELECT 1",
		"MERGE INTO a USING b ON b.id = a.id WHEN MATCHED THEN UPDATE SET v = b.v WHEN NOT MATCHED THEN INSERT VALUES (b.id, b.a, b.v)", "MERGE INTO a USING b ON b.id = a.id WHEN MATCHED THEN DELETE",
		"DO $$ BEGIN INSERT INTO a VALUES "+row()+"; END $$", "INSERT INTO a VALUES "+row()+" RETURNING id",
		"UPDATE ONLY a SET v = "+n(), "DELETE FROM a WHERE CURRENT_DATE > '2020-01-01' AND id = "+one())...)
}

func (w writes) fill(rng *rand.Rand) []string {
	return append(w.relations.fill(rng), "DELETE FROM logged", "DELETE FROM child", "DELETE FROM parent", "INSERT INTO parent VALUES (1), (2)", "INSERT INTO child VALUES (1, 1, 1), (2, 2, 2)")
}

// writable are the tables with what writes them.
var writable = append([]string{"CREATE TABLE parent (id INT PRIMARY KEY)"}, append(changed,
	"CREATE TABLE child (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)", "CREATE TABLE logged (id INT PRIMARY KEY, v INT)", "CREATE VIEW va AS SELECT id, k, v FROM a")...)

// TestOneWrite compares what a query depends on with its answers before and behind one write of many forms: what is not found is counted.
func TestOneWrite(t *testing.T) {
	newStand(t, 2, append(writable,
		"CREATE FUNCTION writing_a(i INT, x INT) RETURNS INT LANGUAGE plpgsql AS 'BEGIN INSERT INTO a VALUES (i, 0, x); RETURN x; END'",
		"CREATE PROCEDURE writes_a(i INT, x INT) LANGUAGE SQL AS 'INSERT INTO a VALUES (i, 0, x)'",
		"CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO a VALUES (new.id, 0, new.v); RETURN new; END'",
		"CREATE TRIGGER log BEFORE INSERT ON logged FOR EACH ROW EXECUTE FUNCTION logs()",
	)...).changes("READ COMMITTED", writes{})
}

// TestOneWriteFamily does the same on MariaDB, or another product of the family.
func TestOneWriteFamily(t *testing.T) {
	openStand(t, testserver.Family(t).Database(t), true, 2, append(writable,
		"CREATE FUNCTION writing_a(i INT, x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO a VALUES (i, 0, x); RETURN x; END",
		"CREATE PROCEDURE writes_a(i INT, x INT) INSERT INTO a VALUES (i, 0, x)",
		"CREATE TRIGGER log BEFORE INSERT ON logged FOR EACH ROW INSERT INTO a VALUES (new.id, 0, new.v)",
	)...).changes("READ COMMITTED", writes{family: true})
}
