package hunt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/testserver"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// world is a database and an injector in front of it.
type world struct {
	t       *testing.T
	backend engine.Descriptor
	labs    *engine.Labs
	target  engine.Target
	in      *Injector
}

func newWorld(t *testing.T, name string) *world {
	t.Helper()
	var s *testserver.Server
	describe := postgres.Describe
	if name == "postgres" {
		s = testserver.Postgres(t)
	} else {
		s = testserver.MariaDB(t)
		describe = func(sql string) ([]statement.Statement, error) {
			return mysql.New(mysql.Flavor(name)).Describe(sql)
		}
	}
	d, err := backends.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	labs, err := engine.OpenLabs(t.Context(), d, s.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := labs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	target, err := labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, backend: d, labs: labs, target: target, in: New(d, s.Target(), describe)}
}

// script is a case whose steps never wait, and what is to be seen with the fault and without it: in the answers and the
// final rows.
type script struct {
	name    string
	kind    Kind
	level   string // of all sessions; empty: READ COMMITTED
	setup   string
	steps   []string // "s1: BEGIN"
	with    []string // lines with the fault that are not there without it
	without []string // the other way round
	never   bool     // the near miss: nothing in it can have the fault
	only    string   // the product
}

const twoRows = "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10), (2, 20)"

var scripts = []script{
	{
		name: "lost write", kind: LostWrite, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s1: COMMIT"},
		with:  []string{"final (1, 10) (2, 20)"}, without: []string{"final (1, 11) (2, 20)"},
	},
	{
		name: "lost autocommit write", kind: LostWrite, setup: twoRows,
		steps: []string{"s1: INSERT INTO t VALUES (3, 30)", "s1: SELECT n FROM t ORDER BY id"},
		with:  []string{"s1: SELECT n FROM t ORDER BY id -> (10) (20)"}, without: []string{"s1: SELECT n FROM t ORDER BY id -> (10) (20) (30)", "final (1, 10) (2, 20) (3, 30)"},
	},
	{
		name: "a write that is rolled back is not lost", kind: LostWrite, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11", "s1: ROLLBACK", "s1: UPDATE t SET n = 12 WHERE id = 7"},
	},
	{
		name: "rolled-back write", kind: RolledBackWrite, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: DELETE FROM t WHERE id = 2", "s1: ROLLBACK", "s2: SELECT id FROM t ORDER BY id"},
		with:  []string{"s2: SELECT id FROM t ORDER BY id -> (1)"}, without: []string{"s2: SELECT id FROM t ORDER BY id -> (1) (2)", "final (1, 10) (2, 20)"},
	},
	{
		name: "a transaction that only read, or changed nothing", kind: RolledBackWrite, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: SELECT id FROM t ORDER BY id", "s1: UPDATE t SET n = 5 WHERE id = 5", "s1: ROLLBACK"},
	},
	{
		name: "dirty read", kind: DirtyRead, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t ORDER BY id", "s1: ROLLBACK"},
		with:  []string{"s2: SELECT n FROM t ORDER BY id -> (11) (20)"}, without: []string{"s2: SELECT n FROM t ORDER BY id -> (10) (20)"},
	},
	{
		name: "dirty read of a serializable transaction", kind: DirtyRead, level: "SERIALIZABLE", setup: twoRows, only: "postgres",
		steps: []string{"s1: BEGIN", "s2: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t ORDER BY id", "s2: COMMIT", "s1: ROLLBACK"},
		with:  []string{"s2: SELECT n FROM t ORDER BY id -> (11) (20)"}, without: []string{"s2: SELECT n FROM t ORDER BY id -> (10) (20)"},
	},
	{
		name: "nothing uncommitted to read", kind: DirtyRead, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s1: COMMIT", "s2: SELECT n FROM t ORDER BY id", "s2: BEGIN", "s2: UPDATE t SET n = 5", "s2: SELECT n FROM t ORDER BY id", "s2: COMMIT"},
	},
	{
		name: "stale read", kind: StaleRead, setup: twoRows,
		steps: []string{"s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t ORDER BY id"},
		with:  []string{"s2: SELECT n FROM t ORDER BY id -> (10) (20)"}, without: []string{"s2: SELECT n FROM t ORDER BY id -> (11) (20)"},
	},
	{
		name: "nothing has changed", kind: StaleRead, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t ORDER BY id", "s1: ROLLBACK", "s2: SELECT n FROM t ORDER BY id"},
	},
	{
		name: "skipped row", kind: SkippedRow, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = n + 1 WHERE n < 100", "s1: COMMIT"},
		with:  []string{"s1: UPDATE t SET n = n + 1 WHERE n < 100 -> 1 rows"}, without: []string{"s1: UPDATE t SET n = n + 1 WHERE n < 100 -> 2 rows"},
	},
	{
		name: "skipped row without a condition, in autocommit", kind: SkippedRow, setup: twoRows,
		steps: []string{"s1: UPDATE t SET n = n + 1"},
		with:  []string{"s1: UPDATE t SET n = n + 1 -> 1 rows"}, without: []string{"s1: UPDATE t SET n = n + 1 -> 2 rows"},
	},
	{
		name: "an UPDATE of one row", kind: SkippedRow, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = n + 1 WHERE id = 1", "s1: COMMIT", "s1: UPDATE t SET n = 7 WHERE id > 1"},
	},
	{
		name: "dropped lock", kind: DroppedLock, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: SELECT n FROM t WHERE id = 1 FOR UPDATE", "s2: SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT", "s1: COMMIT"},
		with:  []string{"s2: SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT -> (10)"}, without: []string{"s2: SELECT n FROM t WHERE id = 1 FOR UPDATE NOWAIT -> error"},
	},
	{
		name: "write in autocommit", kind: DroppedLock, setup: twoRows,
		steps: []string{"s1: BEGIN", "s1: UPDATE t SET n = 11 WHERE id = 1", "s1: ROLLBACK"},
		with:  []string{"final (1, 11) (2, 20)"}, without: []string{"final (1, 10) (2, 20)"},
	},
	{
		name: "a lock that somebody else holds cannot be dropped", kind: DroppedLock, setup: twoRows, never: true,
		steps: []string{"s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t WHERE id = 1 FOR UPDATE", "s1: BEGIN", "s1: SELECT n FROM t ORDER BY id", "s1: COMMIT"},
	},
	{
		name: "wrong value", kind: WrongValue, setup: "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10)",
		steps: []string{"s1: SELECT n FROM t", "s2: UPDATE t SET n = n + 1"},
		with:  []string{"s1: SELECT n FROM t -> (11)"}, without: []string{"s1: SELECT n FROM t -> (10)"},
	},
	{
		name: "no row, no value", kind: WrongValue, setup: twoRows, never: true,
		steps: []string{"s1: SELECT n FROM t WHERE id = 7", "s1: UPDATE t SET n = 1"},
	},
	{
		name: "duplicate insert", kind: DuplicateInsert, setup: "CREATE TABLE t (id INT, n INT)",
		steps: []string{"s1: BEGIN", "s1: INSERT INTO t VALUES (1, 10)", "s1: COMMIT"},
		with:  []string{"final (1, 10) (1, 10)"}, without: []string{"final (1, 10)"},
	},
	{
		name: "a key forbids it", kind: DuplicateInsert, setup: twoRows, never: true,
		steps: []string{"s1: BEGIN", "s1: INSERT INTO t VALUES (3, 10)", "s1: SELECT id FROM t ORDER BY id", "s1: COMMIT", "s1: INSERT INTO t VALUES (4, 10)"},
	},
	{
		name: "swapped values", kind: SwappedValues, setup: twoRows,
		steps: []string{"s1: UPDATE t SET n = 11 WHERE id = 1", "s2: SELECT n FROM t ORDER BY id"},
		with:  []string{"s2: SELECT n FROM t ORDER BY id -> (20) (11)"}, without: []string{"s2: SELECT n FROM t ORDER BY id -> (11) (20)"},
	},
	{
		name: "rows that differ in nothing else are the same rows when swapped", kind: SwappedValues, setup: "CREATE TABLE t (id INT, n INT); INSERT INTO t VALUES (1, 10), (1, 20)", never: true,
		steps: []string{"s1: UPDATE t SET n = 11 WHERE n = 10"},
	},
	{
		name: "nothing to swap", kind: SwappedValues, setup: "CREATE TABLE t (id INT, n INT); INSERT INTO t VALUES (1, 10), (1, 10)", never: true,
		steps: []string{"s1: UPDATE t SET n = 11", "s2: SELECT n FROM t", "s1: BEGIN", "s1: DELETE FROM t", "s1: ROLLBACK"},
	},
}

// play executes a script: its answers and, last, the rows that are there in the end, and the transaction's states before and after
// each step.
func (w *world) play(sc script, d engine.Descriptor, armed *uint64) (text, states string) {
	w.t.Helper()
	ctx := w.t.Context()
	fail := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	side, err := w.backend.Connect(ctx, w.target)
	fail(err)
	defer side.Close()
	fail(engine.Exec(ctx, side, "DROP TABLE IF EXISTS t; "+sc.setup))
	level := product.Level{SQL: "READ COMMITTED", History: "read committed"}
	if sc.level != "" {
		level = product.Level{SQL: sc.level, History: strings.ToLower(sc.level)}
	}
	sessions := map[string]engine.Conn{}
	for _, name := range []string{"s1", "s2"} {
		t := w.target
		t.Application = "test/" + name
		c, err := d.Connect(ctx, t)
		fail(err)
		fail(engine.Exec(ctx, c, w.backend.SetLevel(level.SQL)))
		sessions[name] = c
		defer c.Close()
	}
	var plan []Step
	for _, line := range sc.steps {
		name, sql, _ := strings.Cut(line, ": ")
		plan = append(plan, Step{name, sql})
	}
	if armed != nil {
		_, err := w.in.Arm(sc.kind, *armed, level, plan)
		fail(err)
	}
	var out strings.Builder
	for _, st := range plan {
		a, err := sessions[st.Session].Do(ctx, st.SQL)
		fail(err)
		fmt.Fprintf(&out, "%s: %s -> %s\n", st.Session, st.SQL, shown(a))
		states += fmt.Sprint(a.Before, a.After, " ")
	}
	if armed != nil {
		fail(w.in.Disarm())
	}
	a, err := side.Do(ctx, "SELECT * FROM t ORDER BY 1, 2")
	fail(err)
	fmt.Fprintf(&out, "final %s\n", shown(a))
	return out.String(), states
}

func shown(a answer.Answer) string {
	var parts []string
	for _, r := range a.Results {
		for _, row := range r.Rows {
			parts = append(parts, answer.RowText(row))
		}
		if r.Columns == nil {
			parts = append(parts, fmt.Sprintf("%d rows", r.Affected))
		}
	}
	if a.Err != nil {
		return "error"
	}
	return strings.Join(parts, " ")
}

// TestFaults shows each kind by its effect, that a disarmed injector changes nothing, that the same seed does the same again, and
// that the near misses have no fault at all.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, name)
			for _, sc := range scripts {
				if sc.only != "" && sc.only != name {
					continue
				}
				t.Run(sc.name, func(t *testing.T) {
					w.t = t
					truth, states := w.play(sc, w.backend, nil)
					if got, same := w.play(sc, w.in.Backend(), nil); got != truth || same != states {
						t.Errorf("disarmed:\n%s\n%s", cmp.Diff(truth, got), cmp.Diff(states, same))
					}
					// A kind may have several ways: the first seed that shows the one that is looked for.
					seed, spoiled, spoiledStates, effect := uint64(0), "", "", ""
					for range tries(sc) {
						spoiled, spoiledStates = w.play(sc, w.in.Backend(), &seed)
						if effect = w.in.Effect(); sc.never && (spoiled != truth || effect != "") {
							t.Errorf("a near miss has a fault: %s\n%s", effect, cmp.Diff(truth, spoiled))
						}
						if !sc.never && has(spoiled, sc.with[0]) {
							break
						}
						seed++
					}
					if sc.never {
						return
					}
					if spoiledStates != states {
						t.Errorf("the transactions' states are others: %s", cmp.Diff(states, spoiledStates))
					}
					for _, line := range sc.with {
						if !has(spoiled, line) || has(truth, line) {
							t.Errorf("with the fault %q is wanted, and not without it:\n%s\nwithout:\n%s", line, spoiled, truth)
						}
					}
					for _, line := range sc.without {
						if has(spoiled, line) || !has(truth, line) {
							t.Errorf("without the fault %q is wanted, and not with it:\n%s\nwithout:\n%s", line, spoiled, truth)
						}
					}
					if !strings.HasPrefix(effect, string(sc.kind)+": s") {
						t.Errorf("effect: %q", effect)
					}
					if again, _ := w.play(sc, w.in.Backend(), &seed); again != spoiled || w.in.Effect() != effect {
						t.Errorf("the same seed did otherwise: %s\n%s", w.in.Effect(), cmp.Diff(spoiled, again))
					}
				})
			}
			for _, k := range Kinds() {
				if !slices.ContainsFunc(scripts, func(sc script) bool { return sc.kind == k && !sc.never }) ||
					!slices.ContainsFunc(scripts, func(sc script) bool { return sc.kind == k && sc.never }) {
					t.Errorf("%s lacks an example or a near miss", k)
				}
			}
		})
	}
}

// tries is how many seeds are tried; for a near miss one may hit what another one does not.
func tries(sc script) int {
	if sc.never {
		return 4
	}
	return 20
}

// TestOptionalMethods: a lab asks a connection what more it can, and gets the same answer with the injector in between.
func TestOptionalMethods(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		w := newWorld(t, name)
		can := func(d engine.Descriptor) string {
			c, err := d.Connect(t.Context(), w.target)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, resets := c.(engine.Resetter)
			if resets {
				if err := r.Reset(t.Context()); err != nil {
					t.Error(err)
				}
			}
			k, checks := c.(engine.Checker)
			told := ""
			if checks {
				tells, err := k.Tell(t.Context())
				told = fmt.Sprint(tells, err, k.Checked())
			}
			s, settles := c.(engine.Settler)
			if settles {
				s.Settle(t.Context())
			}
			return fmt.Sprint(resets, checks, settles, told)
		}
		if got, want := can(w.in.Backend()), can(w.backend); got != want || !strings.Contains(want, "true") {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// has reports whether a text has a line.
func has(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}
