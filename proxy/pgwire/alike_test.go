package pgwire_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

var (
	alikeFor  = flag.Duration("alike-for", 0, "how long TestAlike runs")
	alikeSeed = flag.Uint64("alike-seed", 1, "the first seed of TestAlike")
)

// randomSchema is made at the beginning of each random session, through the address under test.
const randomSchema = `DROP SCHEMA IF EXISTS f CASCADE; CREATE SCHEMA f; SET search_path = f, public;
CREATE TABLE t (a int PRIMARY KEY, b int, c text); CREATE TABLE u (a int, t int, d numeric(8,2), e text DEFAULT 'e');
CREATE TABLE w (k text PRIMARY KEY, n int UNIQUE CHECK (n < 90), g int GENERATED ALWAYS AS (n * 2) STORED);
CREATE TABLE log (q text DEFAULT 'q', n int); CREATE TABLE p (a int, b int) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1, 2); CREATE TABLE p2 PARTITION OF p DEFAULT;
CREATE VIEW v AS SELECT a, c FROM t WHERE b > 1; CREATE SEQUENCE s;
CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log (n) VALUES (1); RETURN NULL; END';
CREATE TRIGGER tr AFTER UPDATE OR DELETE ON u FOR EACH ROW WHEN (OLD.a = 3) EXECUTE FUNCTION seen();
CREATE FUNCTION tell(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN $1; END';
INSERT INTO t SELECT i, i % 3, chr(96 + i) FROM generate_series(1, 6) i; INSERT INTO u SELECT i, 7 - i, i * 1.5 FROM generate_series(0, 4) i;
INSERT INTO w SELECT 'k' || i, i FROM generate_series(1, 3) i; INSERT INTO p SELECT i, i FROM generate_series(1, 4) i`

// askingSchema is made in some sessions too: the text of the statement is stored.
const askingSchema = `; ALTER TABLE log ALTER q SET DEFAULT current_query(); CREATE VIEW asked AS SELECT a, current_query() AS c FROM t;
CREATE TRIGGER tr AFTER INSERT ON w EXECUTE FUNCTION seen()`

// random makes sessions of the language of wire.step.
type random struct {
	*rand.Rand
	steps  []string
	params int  // of the statement that is made: parameters may be used
	groups bool // statements with GROUP BY, whose rows have no order
}

func (r *random) of(list ...string) string { return list[r.IntN(len(list))] }

// or gives the first with a chance of n in 100.
func (r *random) or(n int, some, other func() string) string {
	if r.IntN(100) < n {
		return some()
	}
	return other()
}

func (r *random) maybe(n int, text func() string) string {
	return r.or(n, text, func() string { return "" })
}

func is(s string) func() string { return func() string { return s } }

// value is an expression of columns that stand for the tables x and y; some are errors, of the parser, the analysis, or the execution.
func (r *random) value(depth int) string {
	if depth <= 0 || r.IntN(3) == 0 {
		switch r.IntN(30) {
		case 0:
			return r.of("nothere", "x.nothere", "z.a", "'x'", "NULL", "''", "*", "x", "9999999999", "1e400", "E'\\\\'", "'ä€'", "$1", "$2::int", "$3")
		case 1, 2, 3:
			if r.params > 0 {
				return r.of("$1", "$1::int", "$2::text", "coalesce($1, 1)")
			}
			return fmt.Sprint(r.IntN(8) - 1)
		case 4, 5, 6, 7:
			return fmt.Sprint(r.IntN(8) - 1)
		case 8:
			return r.of("c", "d", "e", "k", "n")
		}
		return r.of("x.a", "x.a", "x.a", "x.b", "x.c", "a", "b")
	}
	v := func() string { return r.value(depth - 1) }
	switch r.IntN(26) {
	case 0:
		return "1/(" + v() + ")"
	case 1:
		return "CASE WHEN " + r.condition(depth-1) + " THEN " + v() + " ELSE " + v() + " END"
	case 2:
		return "coalesce(" + v() + ", " + v() + ")"
	case 3:
		return "(SELECT " + r.of("max(a)", "count(*)", "b", "x.a", "min(c)", "1/a") + " FROM " + r.of("t", "u", "v", "p") + " y WHERE y.a = " + v() + ")"
	case 4:
		return "tell(" + v() + ")"
	case 5:
		return r.of("current_query()", "nextval('s')", "generate_series(1, 2)", "pg_typeof(x)::text", "length(c)", "unnest(ARRAY[1,2])", "row_to_json(x)", "x::text",
			"current_setting('search_path')", "txid_status(3)", "nosuch(1)", "left(c, 1)", "lower(c)", "abs(a)")
	case 6:
		return "(" + v() + ")::" + r.of("int", "text", "numeric", "date", "nosuch", "bigint")
	case 7:
		return "EXISTS (SELECT " + r.of("1", "*", "1/0", "") + " FROM u y WHERE " + r.of("y.t = x.a", "1/y.a = 1", "y.a > 1", "true") + ")"
	case 8:
		return r.of("count(*)", "sum(a)", "max(c)", "min(a)", "array_agg(a ORDER BY a)", "count(DISTINCT b)", "string_agg(c, ',' ORDER BY c)", "sum(a) FILTER (WHERE a > 2)", "avg(a)")
	case 9:
		return r.of("row_number() OVER (ORDER BY a)", "sum(a) OVER (PARTITION BY b ORDER BY a)", "rank() OVER w")
	case 10:
		return "ARRAY(SELECT a FROM t ORDER BY " + r.of("1", "a", "2") + ")"
	case 11, 12, 13:
		return v() + r.of(" || ", " % ", " = ") + v()
	}
	return v() + r.of(" + ", " - ", " * ") + v()
}

func (r *random) condition(depth int) string {
	v := func() string { return r.value(depth - 1) }
	switch r.IntN(16) {
	case 0:
		return r.of("true", "false", "1 < 2", "1 > 2", "NULL", "a", "1/a = 1", "1/(a - 3) > 0", "a = 1/0")
	case 1:
		return v() + " IN (" + v() + ", " + v() + ")"
	case 2:
		return r.of("a", "b", "x.a") + " IN (SELECT " + r.of("a", "t", "b", "a, t", "1/a") + " FROM " + r.of("u", "t", "p") + " y" + r.maybe(50, is(" WHERE y.a < 4")) + ")"
	case 3:
		return r.condition(depth-1) + r.of(" AND ", " OR ") + r.condition(depth-1)
	case 4:
		return "NOT " + r.condition(depth-1)
	case 5:
		return r.of("", "NOT ") + "EXISTS (SELECT FROM " + r.of("u", "t") + " y WHERE " + r.of("y.a = x.a", "y.t > 3", "1/y.a > 0", "y.a > 100") + ")"
	case 6:
		return v() + " IS " + r.of("", "NOT ") + "NULL"
	case 7:
		return "c LIKE " + r.of("'a%'", "'%'", "'\\'", "c")
	case 8:
		return r.of("a", "x.a", "k") + " = (SELECT " + r.of("max(a)", "a", "min(a), 1") + " FROM u y)"
	case 9:
		return "a > " + r.of("ALL", "ANY") + " (SELECT a FROM u y WHERE 1/y.a > -1)"
	}
	return r.of("x.a", "x.a", "x.b", "a", v()) + r.of(" = ", " = ", " <> ", " < ", " > ", " >= ") + r.or(60, func() string { return fmt.Sprint(r.IntN(7)) }, v)
}

func (r *random) from() string {
	table := func(alias string) string {
		return r.or(80, func() string {
			return r.of("t", "t", "t", "t", "t", "t", "t", "u", "p", "p", "v", "w", "f.t", "ONLY t", "(TABLE t)", r.of("log", "asked", "nothere")) + " " + alias
		}, func() string {
			return r.of("(SELECT a, b, c FROM t", "(SELECT a FROM t", "(SELECT * FROM u", "(SELECT a, count(*) b FROM p GROUP BY a", "(SELECT DISTINCT b AS a FROM t", "(SELECT a, 1/b AS b FROM t") +
				r.maybe(30, func() string { return " ORDER BY " + r.of("1", "2", "3", "4", "a") }) + r.maybe(20, is(" LIMIT 3")) + ") " + alias + r.maybe(15, func() string { return r.of("(a, b)", "(p, q, r, s)", "(a, b, c, d, e)", "(a)") })
		})
	}
	out := table("x")
	switch r.IntN(9) {
	case 0:
		out += ", " + table("y")
	case 1, 2:
		out += r.of(" JOIN ", " LEFT JOIN ", " FULL JOIN ", " RIGHT JOIN ") + table("y") + r.of(" ON x.a = y.a", " ON x.a = y.a", " USING (a)", " ON true", " ON 1/y.a > 0", "")
	case 3:
		out += r.of(" NATURAL JOIN ", " CROSS JOIN ") + table("y")
	case 4:
		out += ", LATERAL (SELECT y.a AS z FROM u y WHERE y.a = x.a) q"
	}
	return out
}

func (r *random) list(n int, one func() string) string {
	var out []string
	for range 1 + r.IntN(n) {
		out = append(out, one())
	}
	return strings.Join(out, ", ")
}

// order is mostly a total one; numbers may be behind the select list.
func (r *random) order() string {
	return " ORDER BY " + r.list(3, func() string {
		return r.of("1", "1", "2", "3", "4", "5", "9", "0", "-1", "a", "x.a", "x", "'a'", "1.5", "count(*)", "b", "1 + 1", "nothere", "a % 2", "1/a", "$1") + r.of("", "", " DESC", " NULLS FIRST", " USING <")
	})
}

func (r *random) query(depth int) string {
	r1 := func() string {
		out := "SELECT " + r.maybe(12, func() string {
			return r.of("DISTINCT ", "DISTINCT ON (1) ", "DISTINCT ON (a) ", "DISTINCT ON (3) ", "ALL ")
		})
		out += r.or(25, func() string { return r.of("*", "*", "*", "1", "1 AS a, 'x'") }, func() string {
			return r.maybe(97, func() string {
				return r.list(3, func() string {
					return r.value(depth) + r.maybe(20, func() string { return r.of(" AS a", " AS n", " z") })
				})
			})
		})
		out += r.maybe(93, func() string { return " FROM " + r.from() }) + r.maybe(60, func() string { return " WHERE " + r.condition(depth) })
		grouped := 0
		if r.groups {
			grouped = 40
		}
		out += r.maybe(grouped, func() string {
			return " GROUP BY " + r.list(2, func() string { return r.of("1", "2", "3", "a", "b", "c", "()", "ROLLUP (a)", "4", "a % 2", "$1") })
		})
		out += r.maybe(10, func() string { return " HAVING " + r.or(50, is("1 < 2"), func() string { return r.condition(1) }) })
		return out + r.maybe(5, is(" WINDOW w AS (ORDER BY a)"))
	}
	out := r1()
	if r.IntN(8) == 0 {
		out += r.of(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ", " UNION ALL ") + r1()
	}
	limited := 20
	if r.groups {
		limited = 0
	}
	out += r.maybe(60, r.order) + r.maybe(limited, func() string { return " LIMIT " + r.of("0", "1", "1", "2", "NULL", "-1", "1/0", "$1", "$2") }) + r.maybe(limited/2, is(" OFFSET 1")) +
		r.maybe(5, func() string { return r.of(" FOR UPDATE", " FOR SHARE OF x", " FOR UPDATE OF z") })
	return r.maybe(8, func() string {
		return "WITH x" + r.of("", "(a)", "(a, b)", "(a, b, c, d)") + " AS " + r.of("", "MATERIALIZED ") + "(SELECT " + r.of("a, b", "*", "a", "1/b AS a") + " FROM t x) "
	}) + out
}

func (r *random) write() string {
	returning := r.maybe(40, func() string {
		return " RETURNING " + r.list(2, func() string { return r.or(40, is("*"), func() string { return r.value(1) }) })
	})
	tab := r.of("t", "t", "t", "u", "w", "p", "v", "log", r.of("nothere", "t"))
	where := r.maybe(85, func() string { return " WHERE " + r.condition(2) })
	switch r.IntN(4) {
	case 0:
		return "UPDATE " + tab + " x SET " + r.list(2, func() string { return r.of("b", "b", "b", "c", "a", r.of("n", "e", "nothere")) + " = " + r.value(1) }) + r.maybe(15, is(" FROM u y")) + where + returning
	case 1:
		return "DELETE FROM " + tab + " x" + r.maybe(15, is(" USING u y")) + where + returning
	}
	cols := r.of("", "", " (a, b)", " (a)", " (k, n)", " (nothere)", " (n)", " (a, c)")
	src := " VALUES (" + r.list(3, func() string {
		return r.or(70, func() string { return fmt.Sprint(r.IntN(20)) }, func() string { return r.of("DEFAULT", "'x'", "NULL", "1/0", "$1", "a") })
	}) + ")"
	if r.IntN(4) == 0 {
		src = " " + r.query(1)
	}
	return "INSERT INTO " + tab + r.maybe(30, is(" AS x")) + cols + r.or(5, is(" DEFAULT VALUES"), is(src)) +
		r.maybe(20, func() string {
			return " ON CONFLICT " + r.of("DO NOTHING", "(a) DO UPDATE SET b = 1", "(a) DO UPDATE SET b = excluded.b + x.b", "(b) DO NOTHING")
		}) + returning
}

func (r *random) ddl() string {
	return r.of("ALTER TABLE t ADD COLUMN z int", "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE t RENAME a TO aa", "ALTER TABLE u ADD PRIMARY KEY (a)",
		"ALTER TABLE t ALTER b TYPE bigint", "CREATE TABLE x1 (a int)", "CREATE TEMP TABLE t (a int, q text)", "DROP TABLE x1", "CREATE INDEX ON t (b)", "CREATE TABLE IF NOT EXISTS t (a int)",
		"CREATE OR REPLACE VIEW v AS SELECT a, c FROM t", "DROP VIEW v", "TRUNCATE u", "CREATE TABLE y1 AS SELECT a FROM t", "ALTER TABLE t RENAME TO t2", "ALTER TABLE t2 RENAME TO t", "DROP TABLE u CASCADE",
		"SET search_path = f, pg_temp", "SET search_path = public", "SET search_path = f", "SET client_encoding = 'latin1'", "RESET ALL", "ALTER TABLE t ALTER b DROP NOT NULL", "ALTER TABLE t DROP COLUMN a")
}

func (r *random) control() string {
	return r.of("BEGIN", "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "RELEASE a", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE", "COMMIT AND CHAIN", "END", "BEGIN READ ONLY",
		"PREPARE TRANSACTION 'x'", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "ABORT")
}

func (r *random) other() string {
	return r.of("DECLARE c CURSOR FOR "+r.query(1), "DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a", "FETCH 2 FROM c", "FETCH ALL FROM h", "FETCH 1 FROM q1", "MOVE 1 FROM c", "CLOSE c", "CLOSE ALL",
		"UPDATE t SET b = 1 WHERE CURRENT OF c", "PREPARE p1 AS "+r.query(1), "EXECUTE p1", "EXECUTE s1", "EXECUTE s1(1)", "DEALLOCATE p1", "DEALLOCATE s1", "DEALLOCATE ALL", "DISCARD ALL", "EXPLAIN (COSTS OFF) SELECT 1", "SHOW search_path",
		"COPY (SELECT a FROM t ORDER BY a) TO STDOUT", "LISTEN ch", "NOTIFY ch, 'x'", "VALUES (1), (2)", "TABLE t", "SELECT q FROM log ORDER BY q", "DO 'BEGIN RAISE NOTICE ''n''; END'", "SELEC 1", "SELECT 'x", "", " ", "-- x", ";",
		"MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DO NOTHING", "SELECT current_query(), a FROM t ORDER BY a LIMIT 1", "SELECT name, statement FROM pg_prepared_statements WHERE name = 'never'", "SET client_min_messages = 'debug1'", "SET client_min_messages = 'notice'",
		"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%wirecheck%'", "LOCK TABLE t", "SELECT a AS "+strings.Repeat("long", 20)+" FROM t WHERE a = 1")
}

func (r *random) statement() string {
	switch n := r.IntN(100); {
	case n < 55:
		return r.query(2)
	case n < 78:
		return r.write()
	case n < 83:
		return r.ddl()
	case n < 90:
		return r.control()
	}
	return r.other()
}

func (r *random) add(steps ...string) { r.steps = append(r.steps, steps...) }

// unit adds one request, or a batch of them.
func (r *random) unit() {
	switch n := r.IntN(100); {
	case n < 45:
		sql := r.statement()
		if r.IntN(8) == 0 {
			sql += "; " + r.statement()
		}
		r.add("Q " + sql)
	case n < 48: // several at once
		r.add("q "+r.query(1), "q "+r.write(), "q "+r.control(), "W Z 3")
	case n < 51:
		r.add("q COPY "+r.of("t", "u (a, t)", "nothere", "log (n)")+" FROM STDIN", "d "+r.of("30\t1\tx", "31\t2", "bad", "32"), r.of("c", "f stop"), "W Z 1")
	case n < 53:
		r.add(fmt.Sprintf("F %s %d", r.of("1397", "99999", "873"), r.IntN(9)-4))
	default:
		r.batch()
	}
}

// batch adds messages of the extended protocol up to a Sync.
func (r *random) batch() {
	r.params = 1
	defer func() { r.params = 0 }()
	stmt := func() string { return r.of("", "", "s1", "s2", "none") }
	portal := func() string { return r.of("", "", "q1", "q2") }
	formats := func() string { return r.of("", "", "", "0", "1", "1,1", "0,1,0", "2") }
	bind := func(portal, stmt string) string {
		return "B " + portal + " " + stmt + "|" + r.of("", "", "0", "1", "0,0") + "|" + r.of("", "", "1", "2", "NULL", "x", "1,2", `\x00000001`) + "|" + formats()
	}
	execute := func(portal string) string {
		if r.groups {
			return "E " + portal + " 0"
		}
		return "E " + portal + " " + r.of("0", "0", "0", "1", "2")
	}
	if r.IntN(3) > 0 { // as drivers do
		s, p := r.of("", "", "s1", "s2"), r.of("", "", "q1")
		if s != "" && r.IntN(3) == 0 {
			r.add("C S" + s)
		}
		r.add("P " + s + " " + r.of("", "", "", "23", "25", "0,0") + "|" + r.statement())
		if r.IntN(2) == 0 {
			r.add("D S"+s, "S")
		}
		r.add(bind(p, s), "D P"+p, execute(p))
		if r.IntN(4) == 0 {
			r.add(execute(p))
		}
	} else {
		bound := false
		for range 1 + r.IntN(6) {
			switch r.IntN(12) {
			case 0, 1, 2:
				r.add("P " + stmt() + " " + r.of("", "", "23") + "|" + r.statement())
			case 3, 4, 5:
				p := portal()
				bound = bound || p == ""
				r.add(bind(p, stmt()))
			case 6:
				r.add("D " + r.of("S", "P") + r.of("", "s1", "q1", "none"))
			case 7, 8, 9:
				p := r.of("", "", "q1", "q2", "none")
				if p == "" && !bound { // the server itself may end (15.18)
					p = "none"
				}
				r.add(execute(p))
			case 10:
				r.add("C " + r.of("S", "P") + r.of("", "s1", "s2", "q1"))
			case 11:
				r.add("H")
			}
		}
	}
	if strings.Contains(strings.Join(r.steps[max(0, len(r.steps)-12):], "\n"), "COPY") && r.IntN(2) == 0 {
		r.add("d x", "c")
	}
	r.add("S")
}

func randomSession(seed uint64, units int) []string {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 12)), groups: seed%3 == 0}
	for range units {
		if r.IntN(12) == 0 { // another session changes the schema
			r.add("2 Q SET search_path = f; SET lock_timeout = '20ms'; " + r.ddl())
			continue
		}
		r.unit()
	}
	return r.steps
}

// number is one that each database has for itself: OIDs, the place of an index tuple, and the time that the compiler took.
var number = regexp.MustCompile(`[1-9]\d{4,}|tuple \(\d+,\d+\)|\d\.\d{3}s`)

// playRandom plays a session and gives what each step brought.
func playRandom(t testing.TB, addr, database string, seed uint64, steps []string) []string {
	t.Helper()
	ended, played := false, []string(nil)
	defer func() {
		if !ended {
			t.Logf("seed %d does not end at %s; the last steps:\n%s", seed, addr, strings.Join(played[max(0, len(played)-20):], "\n"))
		}
	}()
	schema := randomSchema
	if seed%4 == 0 {
		schema += askingSchema
	}
	// The plan decides whether a parallel worker finds an error, which the error says, and its cost whether a compiler is used, which debugging messages say.
	w, other := dialWire(t, addr, testserver.AppTrust, database, "options", "-c max_parallel_workers_per_gather=0 -c jit=off"), (*wire)(nil)
	defer func() { _ = w.conn.Close() }()
	out := append([]string{"setup"}, w.step("Q SET client_min_messages = warning;"+strings.ReplaceAll(schema, "\n", " ")+"; RESET client_min_messages")...)
	for _, step := range steps {
		out, played = append(out, "> "+step), append(played, step)
		if s, ok := strings.CutPrefix(step, "2 "); ok {
			if other == nil {
				other = dialWire(t, addr, testserver.AppTrust, database)
				defer func() { _ = other.conn.Close() }()
			}
			if out = append(out, other.step(s)...); out[len(out)-1] == gone {
				other = nil
			}
			continue
		}
		if out = append(out, w.step(step)...); out[len(out)-1] == gone { // some sessions end PostgreSQL's own
			break
		}
	}
	for i := range out {
		out[i] = number.ReplaceAllString(out[i], "N")
	}
	for from := 0; seed%3 == 0 && from < len(out); from++ { // groups come in the plan's order
		to := from
		for to < len(out) && strings.HasPrefix(out[to], "D \"") {
			to++
		}
		if slices.Sort(out[from:to]); to < len(out) && strings.HasPrefix(out[to], "E \"") { // so any of them may come in front of one that brings an error
			out = slices.Delete(out, from, to)
		}
	}
	ended = true
	return out
}

// differ gives the place of the first difference, -1 if there is none.
func differ(want, got []string) int {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	if at == len(want) && at == len(got) {
		return -1
	}
	return at
}

// textError is an error about a text whose names mean something else by now, or nothing (class 42, and what number makes of its codes), or about a failed transaction.
var textError = regexp.MustCompile(`^E "SERROR\\x00VERROR\\x00C(?:42|N|25P02)`)

// limited reports whether a difference is one of those that docs/reference/limits.md tells of: of prepared statements whose tables have changed, a Describe of one that returns
// no rows, a Bind or an EXECUTE with another number of parameters, and a Parse of an EXECUTE bring the error that comes with their execution otherwise; in a failed
// transaction the Describe of a portal does; and a format that does not exist is an error where rows come that the client does not get.
func limited(want, got []string, at int) bool {
	if at == 0 || at >= min(len(want), len(got)) {
		return false
	}
	executes := func() bool { // in the batch
		return slices.ContainsFunc(want[max(0, at-12):at], regexp.MustCompile(`^> P \w* [^|]*\|EXECUTE `).MatchString)
	}
	return strings.Contains(got[at], `unsupported format code: `) && strings.HasPrefix(want[at], `C "`) || textError.MatchString(got[at]) &&
		(want[at] == `n ""` && (strings.HasPrefix(want[at-1], `t "`) || strings.Contains(got[at], `C25P02`)) || (strings.Contains(want[at], `C42P05\x00Mprepared`) || want[at] == `1 ""`) && executes() ||
			strings.Contains(want[at], `C08P01\x00Mbind message supplies`) || strings.HasPrefix(want[at-1], "> Q EXECUTE ") && strings.Contains(want[at], "wrong number of parameters for prepared statement"))
}

func TestLimited(t *testing.T) {
	const gone, failed, other = `E "SERROR\x00VERROR\x00CN\x00Mcolumn`, `E "SERROR\x00VERROR\x00C25P02\x00M`, `E "SERROR\x00VERROR\x00C22P02\x00M`
	count := `E "SERROR\x00VERROR\x00CN\x00Mwrong number of parameters for prepared statement \"s1\"`
	for _, c := range []struct {
		before, want, got string
		is                bool
	}{
		{`t "\x00\x00"`, `n ""`, gone, true},
		{`t "\x00\x00"`, `n ""`, failed, true},
		{`t "\x00\x00"`, `n ""`, other, false},
		{`t "\x00\x00"`, `n ""`, `T "\x00\x01"`, false},
		{`t "\x00\x00"`, `T "\x00\x01"`, gone, false},
		{`2 ""`, `n ""`, gone, false}, // of a portal
		{`2 ""`, `n ""`, failed, true},
		{"> P  |EXECUTE s1", `1 ""`, gone, true},
		{"> P  |SELECT 1", `1 ""`, gone, false},
		{`2 ""`, `C "SELECT 0"`, `E "SERROR\x00VERROR\x00CN\x00Munsupported format code: 2`, true},
		{`2 ""`, `D "x"`, `E "SERROR\x00VERROR\x00CN\x00Munsupported format code: 2`, false},
		{"> S", `E "SERROR\x00VERROR\x00C08P01\x00Mbind message supplies 2 parameters`, gone, true},
		{"> S", `E "SERROR\x00VERROR\x00C08P01\x00Mbind message supplies 2 parameters`, `2 ""`, false},
		{"> S", `E "SERROR\x00VERROR\x00C08P01\x00Mbind message has 2 parameter formats`, other, false},
		{"> P s1 |EXECUTE s1(1)", `E "SERROR\x00VERROR\x00C42P05\x00Mprepared statement \"s1\"`, gone, true},
		{"> P s1 |SELECT 1", `E "SERROR\x00VERROR\x00C42P05\x00Mprepared statement \"s1\"`, gone, false},
		{"> Q EXECUTE s1", count, gone, true},
		{"> Q EXECUTE s1", count, `C "SELECT 1"`, false},
		{"> Q EXECUTE s1", `C "SELECT 1"`, gone, false},
		{"> Q SELECT 1", count, gone, false},
	} {
		if got := limited([]string{c.before, c.want}, []string{c.before, c.got}, 1); got != c.is {
			t.Errorf("behind %s, %s directly and %s through the proxy: %v", c.before, c.want, c.got, got)
		}
	}
}

// divergence shows the first difference and the steps before.
func divergence(want, got []string, at int) string {
	step := at
	for n := 0; step > 0 && n < 12; {
		if step--; strings.HasPrefix(want[step], "> ") {
			n++
		}
	}
	return strings.Join(want[step:at], "\n") + "\n" + cmp.Diff(want[at:min(at+6, len(want))], got[at:min(at+6, len(got))])
}

// TestAlike plays random statements in random messages directly and through the proxy: each message must be the same. A seed that fails
// is shown with its last steps. For hours: go test ./proxy/pgwire -run TestAlike -timeout 0 -alike-for 2h -alike-seed 1000
func TestAlike(t *testing.T) {
	srv := testserver.Postgres(t)
	type path struct{ name, addr, database string }
	paths := []path{{"direct", srv.Address(), srv.Database(t).Name}}
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
		paths = append(paths, path{string(mode), r.addr.String(), srv.Database(t).Name})
	}
	began, failed, sessions, limits := time.Now(), 0, 0, 0
	for seed := *alikeSeed; failed < 20 && (*alikeFor == 0 && seed < *alikeSeed+8 || *alikeFor > 0 && time.Since(began) < *alikeFor); seed++ {
		steps := randomSession(seed, 25)
		var want []string
		for i, p := range paths {
			got := playRandom(t, p.addr, p.database, seed, steps)
			if i == 0 {
				want = got
			} else if at := differ(want, got); at >= 0 && limited(want, got, at) {
				limits++
			} else if at >= 0 {
				failed++
				t.Errorf("seed %d, %s (-direct +proxy):\n%s", seed, p.name, divergence(want, got, at))
			}
		}
		sessions++
	}
	t.Logf("%d sessions; %d end at what limits.md says of prepared statements", sessions, limits)
}
