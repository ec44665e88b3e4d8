package reduce

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/scenario"
)

const large = `
setup { CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 0, b VARCHAR(10), CHECK (a < 100)) }
setup { CREATE TABLE other (x INT) }
setup { INSERT INTO t (id, a, b) VALUES (1, 10, 'x, (y'), (2, 20, NULL), (3, 30, 'z') }
setup { INSERT INTO other VALUES (1) }

session s1
setup { SET x = 1 }
step a1 { BEGIN }
step a2 { SELECT count(*) FROM other }
step a3 { UPDATE t SET a = (a + 1) * 2 WHERE id = 1 AND (b IS NOT NULL OR a > 5) ORDER BY id LIMIT 2 }
step a4 { COMMIT }

session s2
step b1 { BEGIN }
step b2 { DELETE FROM t WHERE id = 2 }
step b3 { COMMIT }

session s3
step c1 { SELECT * FROM other }

permutation a1 b1 a2 c1 a3 b2 b3 a4
`

func parse(t *testing.T, text string) *scenario.Spec {
	t.Helper()
	spec, err := scenario.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// shows asks that a scenario has an update of t after which a delete comes from another session, and table t with column a and
// two rows.
func shows(_ context.Context, spec *scenario.Spec) (bool, error) {
	update, remove := -1, -1
	for i, ps := range spec.Permutations[0].Steps {
		if strings.Contains(ps.Step.SQL, "UPDATE t SET a =") {
			update = i
		}
		if strings.Contains(ps.Step.SQL, "DELETE FROM t") {
			remove = i
		}
	}
	if update < 0 || remove < update || spec.Permutations[0].Steps[update].Step.Session == spec.Permutations[0].Steps[remove].Step.Session {
		return false, nil
	}
	made, rows := false, 0
	for _, b := range spec.Setup {
		table, columns := createdColumns(b.SQL)
		made = made || table == "t" && slices.Contains(columns, "a")
		if strings.Contains(b.SQL, "INTO t") {
			rows += len(valueRows(b.SQL))
		}
	}
	return made && rows >= 2, nil
}

func TestReduce(t *testing.T) {
	spec, progress, err := Reduce(t.Context(), parse(t, large), shows, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := shows(t.Context(), spec); !ok {
		t.Error("the result does not show it any more")
	}
	p := spec.Permutations[0]
	if len(p.Steps) != 2 || len(spec.Sessions) != 2 || len(spec.Setup) != 2 {
		t.Errorf("%d sessions, %d steps, %d setup statements; want 2, 2, 2: %+v", len(spec.Sessions), len(p.Steps), len(spec.Setup), progress)
	}
	if _, columns := createdColumns(spec.Setup[0].SQL); !cmp.Equal(columns, []string{"a"}) {
		t.Errorf("columns %v of %s", columns, spec.Setup[0].SQL)
	}
	for _, ps := range p.Steps {
		if strings.Contains(ps.Step.SQL, "WHERE") {
			t.Errorf("the condition is still there: %s", ps.Step.SQL)
		}
	}
	if _, err := spec.Print(); err != nil {
		t.Error(err)
	}
}

// TestReduceKeeps: what everything is needed for stays as it is.
func TestReduceKeeps(t *testing.T) {
	spec := parse(t, large)
	want := of(spec)
	got, _, err := Reduce(t.Context(), spec, func(_ context.Context, s *scenario.Spec) (bool, error) { d := of(s); return d.key() == want.key(), nil }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := of(got); d.key() != want.key() {
		t.Errorf("got %s", d.key())
	}
}

// TestReduceConfirms: a candidate that shows it only sometimes is not taken.
func TestReduceConfirms(t *testing.T) {
	n := 0
	_, progress, err := Reduce(t.Context(), parse(t, large), func(context.Context, *scenario.Spec) (bool, error) { n++; return n%3 != 0, nil }, Options{Tries: 200})
	if err != nil || progress.Taken != 0 {
		t.Errorf("%d candidates were taken, error %v", progress.Taken, err)
	}
}

func TestReduceEnds(t *testing.T) {
	broken := errors.New("server gone")
	spec, _, err := Reduce(t.Context(), parse(t, large), func(context.Context, *scenario.Spec) (bool, error) { return false, broken }, Options{})
	if !errors.Is(err, broken) || len(spec.Sessions) != 3 {
		t.Errorf("got %d sessions, error %v; want the whole scenario and the error", len(spec.Sessions), err)
	}
	tried := 0
	_, progress, err := Reduce(t.Context(), parse(t, large), func(context.Context, *scenario.Spec) (bool, error) { tried++; return false, nil }, Options{Tries: 7})
	if err != nil || tried != 7 || progress.Tried != 7 {
		t.Errorf("tried %d of 7, error %v", tried, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err = Reduce(ctx, parse(t, large), func(context.Context, *scenario.Spec) (bool, error) { cancel(); return true, nil }, Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: error %v", err)
	}
	if _, _, err := Reduce(t.Context(), &scenario.Spec{}, shows, Options{}); err == nil {
		t.Error("a scenario without a permutation was accepted")
	}
}

func TestSimpler(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT a, b FROM t WHERE a = 1", "SELECT a FROM t WHERE a = 1"},
		{"SELECT a, b FROM t WHERE a = 1", "SELECT b FROM t WHERE a = 1"},
		{"SELECT a FROM t WHERE a = 1 AND b = 2", "SELECT a FROM t WHERE a = 1"},
		{"SELECT a FROM t WHERE a = 1 AND b = 2", "SELECT a FROM t WHERE b = 2"},
		{"SELECT a FROM t WHERE a = 1 AND b = 2", "SELECT a FROM t"},
		{"SELECT DISTINCT a FROM t", "SELECT a FROM t"},
		{"SELECT abs(a + 1) FROM t", "SELECT a + 1 FROM t"},
		{"SELECT (a) FROM t", "SELECT NULL FROM t"},
		{"SELECT a FROM t JOIN s ON t.a = s.a", "SELECT a FROM t"},
		{"SELECT a FROM t ORDER BY a LIMIT 1", "SELECT a FROM t ORDER BY a"},
		{"SELECT ' a  b', c FROM t", "SELECT ' a  b' FROM t"},
		{"UPDATE t SET a = 1, b = 2", "UPDATE t SET a = 1"},
		{"CREATE TABLE t (a INT NOT NULL, b INT)", "CREATE TABLE t (a INT, b INT)"},
	} {
		if got := simpler(test.sql); !slices.ContainsFunc(got, func(s string) bool {
			return strings.Join(strings.Fields(s), " ") == strings.Join(strings.Fields(test.want), " ")
		}) {
			t.Errorf("%s: no %q among\n%s", test.sql, test.want, strings.Join(got, "\n"))
		}
	}
}

func TestWithoutColumn(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"CREATE TABLE t (a INT, b INT DEFAULT (1, 2), PRIMARY KEY (a))", "CREATE TABLE t (a INT, PRIMARY KEY (a))"},
		{"CREATE TABLE u (a INT, b INT)", "CREATE TABLE u (a INT, b INT)"},
		{"INSERT INTO t (a, b) VALUES (1, 'x, y'), (2, f(3, 4))", "INSERT INTO t (a) VALUES (1), (2)"},
		{"INSERT INTO t (b, a) VALUES (1, 2)", "INSERT INTO t (a) VALUES (2)"},
		{"INSERT INTO t VALUES (1, 2), (3, 4)", "INSERT INTO t VALUES (1), (3)"},
		{"INSERT INTO u VALUES (1, 2)", "INSERT INTO u VALUES (1, 2)"},
		{"UPDATE t SET b = 1", "UPDATE t SET b = 1"},
	} {
		if got := withoutColumn(test.sql, "t", "b", 1); got != test.want {
			t.Errorf("%s: got %s, want %s", test.sql, got, test.want)
		}
	}
}

// application is a case as a person writes it: several statements in a block, session settings, long names, texts.
const application = `
#wirecheck: final: SELECT * FROM customers
#wirecheck: final: SELECT * FROM orders
setup { CREATE TABLE customers (customer_id INT PRIMARY KEY, email VARCHAR(50) NOT NULL); CREATE TABLE orders (id INT); INSERT INTO customers VALUES (1701, 'picard@example.com'), (1702, 'riker@example.com') }
session first
setup { SET autocommit = 1; SET names utf8mb4 }
step change { BEGIN; UPDATE customers SET email = 'q@example.com' WHERE customer_id = 1701; COMMIT }
session second
step note { INSERT INTO orders VALUES (5) }
session third
step look { SELECT email FROM customers WHERE email = 'picard@example.com' }
permutation note change look
`

// TestReduceWrites: blocks are cut, settings go, sessions are joined, texts become numbers and names short, as far as it still shows.
func TestReduceWrites(t *testing.T) {
	spec, _, err := Reduce(t.Context(), parse(t, application), func(_ context.Context, s *scenario.Spec) (bool, error) {
		d := of(s)
		if len(d.setup) == 0 {
			return false, nil
		}
		table, _ := createdColumns(d.setup[0])
		update := slices.IndexFunc(d.steps, func(st step) bool { return strings.Contains(st.sql, "UPDATE "+table+" SET") })
		return update >= 0 && slices.ContainsFunc(d.steps[update:], func(st step) bool { return strings.Contains(st.sql, "SELECT") }), nil
	}, Options{Split: func(sql string) (list []string) {
		for part := range strings.SplitSeq(sql, ";") {
			list = append(list, strings.TrimSpace(part))
		}
		return list
	}})
	if err != nil {
		t.Fatal(err)
	}
	d := of(spec)
	if len(d.setup) != 1 || len(d.steps) != 2 || len(d.sessions) != 1 || d.sessions[0].setup != nil {
		t.Errorf("got %s", d.key())
	}
	if !strings.HasPrefix(d.setup[0], "CREATE TABLE t (a INT") || d.steps[0].name != "s1_1" || d.sessions[0].name != "s1" {
		t.Errorf("names and types: %s", d.key())
	}
	if len(d.directives) != 1 || d.directives[0].Value != "SELECT * FROM t" {
		t.Errorf("final queries: %v", d.directives)
	}
	for _, st := range d.steps {
		if strings.Contains(st.sql, "'") {
			t.Errorf("a text is left: %s", st.sql)
		}
	}
}

// TestReduceFinals: the final query of a table goes with the table, also where the names stay as they are; of a table that the setup never created, it stays.
func TestReduceFinals(t *testing.T) {
	text := "#wirecheck: final: SELECT * FROM customers, orders\n#wirecheck: final: SELECT * FROM elsewhere" + application
	spec, _, err := Reduce(t.Context(), parse(t, text), func(_ context.Context, s *scenario.Spec) (bool, error) {
		return len(s.Setup) > 0 && strings.Contains(s.Setup[0].SQL, "CREATE TABLE customers"), nil
	}, Options{Split: func(sql string) []string { return strings.Split(sql, ";") }})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spec.Finals(), []string{"SELECT * FROM elsewhere", "SELECT * FROM customers"}; !slices.Equal(got, want) {
		t.Errorf("final queries: %q, want %q", got, want)
	}
}

// TestReduceTables: two tables become one where one suffices, and stay two where the rows of the second one matter.
func TestReduceTables(t *testing.T) {
	text := "setup { CREATE TABLE t (a INT) }\nsetup { CREATE TABLE u (a INT) }\nsetup { INSERT INTO u VALUES (1) }\n" +
		"session s1\nstep q { SELECT a FROM t WHERE a IN (SELECT a FROM u) }\npermutation q"
	for rows, tables := range []int{1, 2} {
		spec, _, err := Reduce(t.Context(), parse(t, text), func(_ context.Context, s *scenario.Spec) (bool, error) {
			d := of(s)
			setup := strings.Join(d.setup, ";")
			there := func(name string) bool { return strings.Contains(setup, "CREATE TABLE "+name) }
			return len(d.steps) > 0 && strings.Count(d.steps[0].sql, "FROM") == 2 && strings.Contains(d.steps[0].sql, "FROM t") && there("t") &&
				strings.Contains(d.steps[0].sql, "FROM u") == there("u") && strings.Count(setup, "INSERT") == rows, nil
		}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := of(spec); len(d.setup) != tables+rows {
			t.Errorf("%d rows are needed: %q, %q", rows, d.setup, d.steps[0].sql)
		}
	}
}

// TestReduceTree: where a tree is known, tokens are not asked; what is heavier is no candidate.
func TestReduceTree(t *testing.T) {
	asked := map[string]int{}
	_, _, err := Reduce(t.Context(), parse(t, large), func(_ context.Context, s *scenario.Spec) (bool, error) {
		for _, st := range of(s).steps {
			if strings.Contains(st.sql, "heavier") {
				t.Error("a heavier form was tried")
			}
			asked[st.sql]++
		}
		return false, nil
	}, Options{Simpler: func(sql string) (string, []string, bool) {
		return sql, []string{"DO 1", sql + " heavier"}, strings.HasPrefix(sql, "UPDATE")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if asked["DO 1"] == 0 || asked["DELETE FROM t"] == 0 {
		t.Errorf("tried: %v", asked)
	}
	for sql := range asked {
		if strings.HasPrefix(sql, "UPDATE t SET") && !strings.HasSuffix(sql, "LIMIT 2") && !strings.HasSuffix(sql, "LIMIT 0") && !strings.HasSuffix(sql, "LIMIT 1") {
			t.Errorf("made from tokens: %s", sql)
		}
	}
}

func FuzzSimpler(f *testing.F) {
	f.Add("SELECT 'a''b', $$x$$ FROM t WHERE (a = 1 AND (b, c) IN (SELECT 1, 2)) -- x")
	f.Add("INSERT INTO t (a, b) VALUES (1, '\\''), (2, /* , */ 3)")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, s := range simpler(sql) {
			if s == sql {
				t.Errorf("%q is among its own simpler forms", sql)
			}
		}
		_, columns := createdColumns(sql)
		for i, c := range columns {
			withoutColumn(sql, "t", c, i)
		}
		withoutRows(sql, func(i int) bool { return i == 0 })
	})
}
