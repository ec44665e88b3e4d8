package live_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"wirecheck/internal/testserver"
)

// shapes are queries of many shapes of the tables of relations.
type shapes struct{ relations }

func (s shapes) query(rng *rand.Rand) (string, []any) {
	n := func() string { return fmt.Sprint(rng.IntN(3)) }
	own := func(t string) string {
		return pick(rng, t+".v = "+n(), t+".v <> "+n(), t+".id > "+n(), t+".v IS NULL", t+".v IN ("+n()+", "+n()+")", t+".id < 99", t+".v >= "+n(), "NOT "+t+".v = "+n())
	}
	of := func(t string) string { return t + " WHERE " + own(t) }
	than := func() string { return pick(rng, " < ", " > ", " = ", " <> ", " >= ", " <= ") + n() }
	aggregate := func(t string) string {
		return pick(rng, "count(*)", "sum("+t+".v)", "max("+t+".v)", "min("+t+".id)", "count("+t+".v)", "count(DISTINCT "+t+".v)")
	}
	set := pick(rng, "UNION", "UNION ALL", "EXCEPT", "INTERSECT")
	return pick(rng,
		"SELECT b.a, "+aggregate("b")+" FROM "+of("b")+" GROUP BY b.a HAVING "+aggregate("b")+than()+" ORDER BY 1",
		"SELECT b.a FROM b GROUP BY b.a HAVING "+aggregate("b")+than()+" ORDER BY 1",
		"SELECT "+aggregate("b")+" FROM "+of("b")+" HAVING "+aggregate("b")+than(),
		"SELECT "+aggregate("b")+", "+aggregate("b")+" FROM "+of("b"),
		"SELECT "+pick(rng, "max(b.v)", "min(b.v)", "coalesce(max(b.v), 1)", "coalesce(max(b.v), 0) + 1", "min(b.id) - 1", "max(b.id)")+" FROM "+pick(rng, of("b"), "b"),
		"SELECT a.id, a.v FROM "+of("a")+" AND (SELECT "+aggregate("b")+" FROM b WHERE b.a = a.id)"+than()+" ORDER BY a.id",
		"SELECT a.id FROM a WHERE (SELECT "+aggregate("b")+" FROM "+of("b")+")"+than()+" ORDER BY a.id",
		"SELECT count(*) FROM a WHERE "+own("a")+" AND (SELECT "+aggregate("b")+" FROM b WHERE b.a = a.id AND "+own("b")+")"+than(),
		"SELECT a.id FROM a WHERE (SELECT coalesce(sum(b.v), 0) FROM b WHERE b.a = a.k)"+pick(rng, " < ", " >= ", " <> ")+"a.v ORDER BY a.id LIMIT 5",
		"SELECT a.id FROM a LEFT JOIN b ON b.a = a.id WHERE b.id IS NULL ORDER BY a.id LIMIT 1",
		"SELECT a.id, b.id FROM a JOIN b ON b.a = a.id WHERE "+own("a")+" AND "+own("b")+" ORDER BY a.id, b.id",
		"SELECT a.id, b.id FROM a LEFT JOIN b ON b.a = a.id AND "+own("b")+" WHERE "+own("a")+" ORDER BY a.id, b.id",
		"SELECT count(*) FROM a JOIN b ON b.a = a.id JOIN c ON c.b = b.id WHERE "+own("c"),
		"SELECT DISTINCT b.v FROM "+of("b")+" ORDER BY b.v",
		"SELECT b.id FROM "+of("b")+" ORDER BY b.v, b.id LIMIT 2 OFFSET 1",
		"SELECT b.id FROM "+of("b")+" ORDER BY b.id LIMIT 1 OFFSET 1",
		"SELECT a.v FROM "+of("a")+" "+set+" SELECT b.v FROM "+of("b")+" ORDER BY 1",
		"SELECT b.id, rank() OVER (ORDER BY b.v) FROM "+of("b")+" ORDER BY b.id",
		"SELECT a.id FROM a WHERE a.v "+pick(rng, "=", "<", ">", "<>")+" (SELECT max(b.v) FROM "+of("b")+") ORDER BY a.id",
		"SELECT a.id FROM a WHERE a.v "+pick(rng, "> ALL", "= ANY", "<> ALL", "< ANY")+" (SELECT b.v FROM "+of("b")+") ORDER BY a.id",
		"SELECT CASE WHEN EXISTS (SELECT 1 FROM "+of("b")+") THEN 'yes' ELSE 'no' END",
		"SELECT a.id, EXISTS (SELECT 1 FROM b WHERE b.a = a.id AND "+own("b")+") FROM "+of("a")+" ORDER BY a.id",
		"WITH w AS (SELECT b.a, count(*) AS n FROM "+of("b")+" GROUP BY b.a) SELECT a.id, w.n FROM a JOIN w ON w.a = a.id ORDER BY a.id",
		"SELECT a.id FROM a JOIN (SELECT b.a, max(b.v) AS v FROM b GROUP BY b.a) w ON w.a = a.id WHERE w.v"+than()+" ORDER BY a.id",
		"SELECT a.id FROM "+of("a")+" OR a.id IN (SELECT b.a FROM "+of("b")+") ORDER BY a.id",
		"SELECT a.id FROM a WHERE a.k IN (SELECT b.a FROM "+of("b")+" AND b.id IN (SELECT c.b FROM "+of("c")+")) ORDER BY a.id",
		"SELECT a.id FROM a WHERE (a.k, a.v) IN (SELECT b.a, b.v FROM b) ORDER BY a.id",
		"SELECT coalesce((SELECT b.v FROM "+of("b")+" ORDER BY b.id LIMIT 1), -1)",
		"SELECT a.id FROM "+of("a")+" ORDER BY (SELECT count(*) FROM b WHERE b.a = a.id), a.id LIMIT 1",
		"SELECT a.id FROM a WHERE "+own("a")+" AND a.k IN (SELECT x.k FROM a x WHERE "+own("x")+") ORDER BY a.id",
		"SELECT count(*) FROM a WHERE "+own("a")+" AND EXISTS (SELECT 1 FROM a x WHERE x.k = a.k AND "+own("x")+")",
		"SELECT x.id, y.id FROM a x JOIN a y ON y.k = x.k AND y.id > x.id WHERE "+own("x")+" ORDER BY x.id, y.id",
	), nil
}

// TestOneChangeShapes compares what queries of many shapes depend on with their answers before and behind one change.
func TestOneChangeShapes(t *testing.T) {
	newStand(t, 2, changed...).changes("READ COMMITTED", shapes{})
}

// TestOneChangeShapesFamily does the same on MariaDB, or another product of the family.
func TestOneChangeShapesFamily(t *testing.T) {
	openStand(t, testserver.Family(t).Database(t), true, 2, changed...).changes("READ COMMITTED", shapes{relations{family: true}})
}
