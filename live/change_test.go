package live_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/live"
)

// changeRuns is how many queries are compared with one change each: few in `make test`, many in `make soak`.
var changeRuns = flag.Int("changes", 40, "random queries, each compared with one random change")

// queryOf gives a random query over tables a (id, k, v), b (id, a, v) and c (id, b, v), of which any column but id may be NULL.
func queryOf(rng *rand.Rand, family bool) string {
	n := func() int { return rng.IntN(3) }
	if rng.IntN(4) == 0 {
		return withinOf(rng)
	}
	own := func(table string) string {
		return []string{fmt.Sprintf("%s.v = %d", table, n()), fmt.Sprintf("%s.v <> %d", table, n()), fmt.Sprintf("%s.id > %d", table, n()), fmt.Sprintf("%s.v IS NULL", table), fmt.Sprintf("%s.v IN (%d, %d)", table, n(), n()), fmt.Sprintf("%s.id < 99", table)}[rng.IntN(6)]
	}
	and := func(list ...string) string { return strings.Join(list, " AND ") }
	value, more, others := "b.a", "", []string{}
	if rng.IntN(3) == 0 {
		more, others = ", c", append(others, "c.b = b.id", own("c"))
		if rng.IntN(4) == 0 {
			value = "c.v"
		}
	}
	if rng.IntN(2) > 0 {
		others = append(others, own("b"))
	}
	by := pick(rng, "a.k", "a.k", "a.id")
	inside, not := "", pick(rng, "", "NOT ")
	switch kind := rng.IntN(5); {
	case kind == 0 && more == "":
		on := and(append([]string{"b.a = " + by}, others...)...)
		return selected(rng, "a LEFT JOIN b ON "+on, "b.id IS NULL", family)
	case kind < 3:
		inside = fmt.Sprintf("%sEXISTS (SELECT %s FROM b%s WHERE %s)", not, pick(rng, "1", "b.id", "*"), more, and(append([]string{value + " = " + by}, others...)...))
	default:
		where := ""
		if len(others) > 0 {
			where = " WHERE " + and(others...)
		}
		inside = fmt.Sprintf("%s %sIN (SELECT %s FROM b%s%s)", by, not, value, more, where)
	}
	from, list := "a", []string{inside}
	if rng.IntN(4) == 0 {
		from, list = "a JOIN c AS d ON d.b = a.id", append(list, own("d"))
	}
	if rng.IntN(2) == 0 {
		list = append(list, own("a"))
	}
	rng.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	return selected(rng, from, and(list...), family)
}

// withinOf gives a random query of one table that stands within another one.
func withinOf(rng *rand.Rand) string {
	n := func() string { return fmt.Sprint(rng.IntN(3)) }
	own := func(v, id string) string {
		return pick(rng, v+" = "+n(), v+" <> "+n(), id+" > "+n(), v+" IS NULL", v+" IN ("+n()+", "+n()+")", "NOT "+id+" > 2")
	}
	in := "SELECT id, k AS n, v FROM a WHERE " + own("v", "id")
	if rng.IntN(3) == 0 {
		in = "SELECT q.id, q.k AS n, q.v, " + n() + " AS one FROM (" + in[:strings.Index(in, "k AS n")] + "k, v FROM a WHERE " + own("a.v", "a.id") + ") q WHERE " + own("q.v", "q.id")
	}
	with, from := "", "("+in+") w"
	if rng.IntN(2) == 0 {
		with, from = "WITH w AS ("+in+") ", "w"
	}
	return with + pick(rng, "SELECT * FROM "+from+" WHERE "+own("w.v", "w.id"), "SELECT w.* FROM "+from+" WHERE "+own("n", "id")+" ORDER BY id", "SELECT count(*) FROM "+from+" WHERE "+own("w.n", "w.id"), "SELECT count(*), max(v) FROM "+from,
		"SELECT n, count(*) FROM "+from+" WHERE "+own("v", "id")+" GROUP BY n", "SELECT EXISTS (SELECT 1 FROM a WHERE "+own("v", "id")+") AS e", "SELECT NOT EXISTS (SELECT 1 FROM a WHERE "+own("v", "id")+") AS e",
		"SELECT (SELECT count(*) FROM b WHERE "+own("b.v", "b.id")+") AS n", "SELECT w.id, (SELECT count(*) FROM b WHERE "+own("b.v", "b.id")+") AS c FROM "+from, "SELECT a.id, (SELECT count(*) FROM b WHERE b.a = a.id AND "+own("b.v", "b.id")+") AS c FROM a WHERE "+own("a.v", "a.id"), "SELECT id FROM "+from+" WHERE v > (SELECT count(*) FROM b WHERE "+own("b.v", "b.id")+")",
		"SELECT * FROM "+from+" WHERE "+own("v", "id")+" LIMIT 9")
}

// selected gives a query of FROM and WHERE clauses.
func selected(rng *rand.Rand, from, where string, family bool) string {
	forms := []string{"SELECT a.id, a.k, a.v FROM %s WHERE %s", "SELECT a.* FROM %s WHERE %s ORDER BY a.id", "SELECT count(*) FROM %s WHERE %s", "SELECT EXISTS (SELECT 1 FROM %s WHERE %s)", "SELECT a.v, count(*) FROM %s WHERE %s GROUP BY a.v",
		"SELECT a.* FROM %s WHERE %s LIMIT 9", "SELECT a.id, a.k, a.v FROM %s WHERE %s ORDER BY a.id LIMIT 1", "SELECT 1 AS one FROM %s WHERE %s LIMIT 1"}
	return fmt.Sprintf(forms[rng.IntN(len(forms))], from, where)
}

// changeOf gives a random change of one row.
func changeOf(rng *rand.Rand) string {
	n := func() string {
		return pick(rng, "0", "1", "1", "2", "2", "2", "NULL")
	}
	table, column := "a", "k"
	if i := rng.IntN(5); i > 0 {
		table, column = pick(rng, "b", "b", "c"), ""
		column = map[string]string{"b": "a", "c": "b"}[table]
	}
	switch rng.IntN(5) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO %s (id, %s, v) VALUES (%d, %s, %s)", table, column, 10+rng.IntN(3), n(), n())
	case 2:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, 1+rng.IntN(4))
	case 3:
		return fmt.Sprintf("UPDATE %s SET v = %s WHERE id = %d", table, n(), 1+rng.IntN(4))
	}
	return fmt.Sprintf("UPDATE %s SET %s = %s WHERE id = %d", table, column, n(), 1+rng.IntN(4))
}

var changed = []string{"CREATE TABLE a (id INT PRIMARY KEY, k INT, v INT)", "CREATE TABLE b (id INT PRIMARY KEY, a INT, v INT)", "CREATE TABLE c (id INT PRIMARY KEY, b INT, v INT)", "CREATE TABLE mark (id INT PRIMARY KEY, n INT)"}

// TestOneChange compares what a query depends on with its answers before and behind one change.
func TestOneChange(t *testing.T) {
	newStand(t, 2, changed...).changes("READ COMMITTED", relations{})
}

// TestOneChangeFamily does the same on MariaDB, or another product of the family.
func TestOneChangeFamily(t *testing.T) {
	openStand(t, testserver.Family(t).Database(t), true, 2, changed...).changes("READ COMMITTED", relations{family: true})
}

// relations are three tables that refer to one another.
type relations struct{ family bool }

func (r relations) query(rng *rand.Rand) (string, []any) { return queryOf(rng, r.family), nil }

func (relations) change(rng *rand.Rand) string { return changeOf(rng) }

func (relations) fill(rng *rand.Rand) []string {
	value := func() string { return pick(rng, "0", "1", "1", "2", "2", "2", "NULL") }
	fill := []string{"DELETE FROM a", "DELETE FROM b", "DELETE FROM c"}
	for i := range 3 {
		for _, table := range []string{"a", "b", "c"} {
			if rng.IntN(3) > 0 {
				fill = append(fill, fmt.Sprintf("INSERT INTO %s (id, %s, v) VALUES (%d, %s, %s)", table, map[string]string{"a": "k", "b": "a", "c": "b"}[table], i+1, value(), value()))
			}
		}
	}
	return fill
}

// scheme makes queries of tables, what is in them, and changes of one row. The tables are there.
type scheme interface {
	query(rng *rand.Rand) (query string, args []any)
	fill(rng *rand.Rand) []string
	change(rng *rand.Rand) string
}

// changes makes a cycle of a query and a change by a row that both transactions use besides. It is a finding if the query depends on the change. What the server
// refuses is left out.
func (s *stand) changes(level string, of scheme) {
	t, counts := s.t, map[string]int{}
	for seed := range uint64(*changeRuns) {
		rng := rand.New(rand.NewPCG(seed, 11))
		query, args := of.query(rng)
		s.asked = func(int) (string, []any) { return query, args }
		rows := of.fill(rng)
		fill := func() {
			for i, q := range append([]string{"DELETE FROM mark", "INSERT INTO mark (id, n) VALUES (1, 0)"}, rows...) {
				if _, err := ask(s.direct, q); err != nil && i < 3 {
					t.Fatal(err)
				}
			}
		}
		for range 4 {
			change := of.change(rng)
			if strings.HasPrefix(query, "UPDATE") && !strings.HasPrefix(change, "INSERT") { // it would wait
				continue
			}
			fill()
			if _, err := ask(s.direct, query, args...); err != nil {
				counts["query refused"]++
				break
			}
			if _, err := ask(s.direct, change); err != nil {
				counts["change refused"]++
				continue
			}
			fill()
			found, r := s.play(level, "1 ?", "2 SELECT n FROM mark WHERE id = 1", "2 "+change, "2 COMMIT", "1 UPDATE mark SET n = 1 WHERE id = 1", "1 COMMIT")
			if _, err := ask(s.direct, "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
			answers := func(query string) string {
				answer, err := ask(s.direct, query, args...)
				if err != nil {
					t.Fatal(query, err)
				}
				return answer
			}
			shown := query
			if strings.HasPrefix(query, "UPDATE") {
				shown = counted(query)
			}
			after, nowHolds := answers(shown), answers(counted(query))
			fill()
			before, heldFor := answers(shown), answers(counted(query))
			// A row that makes EXISTS true may change and still do so.
			shows := counted(query) == query || strings.HasPrefix(change, "UPDATE") && nowHolds == heldFor
			counts[s.judgeChange(shows, fmt.Sprintf("seed %d: %v %s %v; %s: %s, then %s", seed, rows, query, args, change, before, after), before != after, found, r)]++
		}
	}
	t.Logf("%v", counts)
}

// counted gives a query that counts the rows of one that only tells whether there are some, or of an UPDATE; of another one, the query.
func counted(query string) string {
	if table, where, is := strings.Cut(query, " SET n = n + 1 WHERE "); is {
		return "SELECT count(*) FROM " + strings.TrimPrefix(table, "UPDATE ") + " WHERE " + where
	}
	inner, exists := strings.CutPrefix(query, "SELECT EXISTS (")
	if exists {
		inner = inner[:strings.LastIndex(inner, ")")]
	} else if !strings.HasPrefix(query, "SELECT 1 AS one ") {
		return query
	}
	_, from, _ := strings.Cut(strings.TrimSuffix(inner, " LIMIT 1"), " FROM ")
	return "SELECT count(*) FROM " + from
}

// judgeChange compares what is found with whether the answer differs: what is not found must be counted. shows: a row that was read may have changed
// though the answer is the same.
func (s *stand) judgeChange(shows bool, what string, differs bool, found []string, r live.Result) string {
	byRow := false // a row that it read was changed, and shows, maybe without what was changed
	for _, f := range r.Findings {
		for _, e := range f.Edges {
			byRow = byRow || !e.ByCondition() && !strings.Contains(e.Text, "mark") && shows
		}
	}
	c := r.Coverage
	switch {
	case len(found) > 0 && !differs && aggregates.MatchString(what): // an aggregate reads its rows, whatever comes of them
		return "found, the aggregate is the same"
	case len(found) > 0 && !differs && !byRow:
		s.t.Errorf("found, and the answer is the same: %s", what)
		for _, e := range r.Findings[0].Edges {
			s.t.Log(e.Text, e.Condition)
		}
		return "false"
	case len(found) > 0:
		return "found"
	case differs && c.Blind+c.Unsettled+c.Others+c.Unseen+c.Unevaluated()+c.Approximate+c.Opaque == 0:
		s.t.Errorf("nothing is found, and the answer is another one: %s; %s", what, c)
		return "missed"
	case differs:
		if *changeUnjudged {
			s.t.Logf("not judged: %s; %s", what, c)
		}
		return "not judged"
	}
	return "the same"
}

// aggregates are those that may be the same of other rows.
var aggregates = regexp.MustCompile(`\b(max|min|sum|count)\((DISTINCT )?\w+\.`)

var changeUnjudged = flag.Bool("changes-unjudged", false, "show the random changes that are not judged")
