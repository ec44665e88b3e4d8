package hunt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// TestExplains: a reduced bug explains what has all that it needs, and nothing else.
func TestExplains(t *testing.T) {
	parse := func(setup, query string) *scenario.Spec {
		spec, err := scenario.Parse("x", []byte("setup { "+setup+" }\nsession s\nstep q { "+query+" }\nstep other { SELECT CAST(1 AS CHAR) }\npermutation q other"))
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	finding := func(class oracle.Class, query string) *oracle.Finding {
		return &oracle.Finding{Class: class, Name: oracle.NameResult, Difference: &oracle.Difference{SQL: query}}
	}
	const setup, query = "CREATE TABLE t (a INT NOT NULL)", "SELECT HEX(IFNULL(a, 'b')) FROM t"
	bug := &Bug{Finding: finding(oracle.Radar, query), Hallmarks: hallmarks(parse(setup, query), []string{query})}
	for _, test := range []struct {
		name, setup, query string
		class              oracle.Class
		want               bool
	}{
		{"the same", setup, query, oracle.Radar, true},
		{"more around it", "CREATE TABLE t1 (c1 INT NOT NULL, c2 TEXT)", "SELECT c2, HEX(IFNULL(c1, 1)) FROM t1 WHERE c2 IN ('a')", oracle.Radar, true},
		{"another function", setup, "SELECT HEX(COALESCE(a, 'b')) FROM t", oracle.Radar, false},
		{"another definition", "CREATE TABLE t (a INT UNIQUE)", query, oracle.Radar, false},
		{"another oracle", setup, query, oracle.TLP, false},
		{"a function of another query only", setup, "SELECT IFNULL(a, 'b') FROM t", oracle.Radar, false},
	} {
		if got := bug.explains(parse(test.setup, test.query), finding(test.class, test.query)); got != test.want {
			t.Errorf("%s: explained %v", test.name, got)
		}
	}
}

// TestShownBy: a case whose reduction did not come to its end is a bug that is kept, if it has all that this one needs and breaks the same rule.
func TestShownBy(t *testing.T) {
	spec := func(setup string) *scenario.Spec { return &scenario.Spec{Setup: []scenario.Block{{SQL: setup}}} }
	finding := func(query, rule string) *oracle.Finding {
		return &oracle.Finding{Class: oracle.Troc, Name: oracle.NameResult, Difference: &oracle.Difference{SQL: query, Rule: rule}}
	}
	const setup, query = "CREATE TABLE t (a INT, PRIMARY KEY (a))", "SELECT ROW_NUMBER() OVER (ORDER BY a DESC) FROM t"
	bug := &Bug{Finding: finding(query, "snapshot"), Hallmarks: hallmarks(spec(setup), []string{query})}
	larger := spec("CREATE TABLE t1 (c1 BOOLEAN NOT NULL, c2 INT, PRIMARY KEY (c2))")
	if !bug.shownBy(larger, finding("SELECT c1, ROW_NUMBER() OVER (ORDER BY c2 DESC) FROM t1 WHERE c2 > 3", "snapshot")) {
		t.Error("a larger case of the same bug is another one")
	}
	if bug.shownBy(larger, finding("SELECT c1 FROM t1 WHERE c2 > 3 ORDER BY c2 DESC", "snapshot")) || bug.shownBy(larger, finding(query, "locks")) {
		t.Error("another statement, or another rule, is the same bug")
	}
}

// TestSameQuery: bugs of one cause in several disguises are one bug.
func TestSameQuery(t *testing.T) {
	spec := func(setup string) *scenario.Spec { return &scenario.Spec{Setup: []scenario.Block{{SQL: setup}}} }
	const setup, query = "CREATE TABLE t (a INT)", "SELECT a FROM t WHERE NOT (NOT a > ANY (SELECT 1))"
	finding := func(name string, class oracle.Class) *oracle.Finding {
		return &oracle.Finding{Oracle: name, Class: class, Name: oracle.NameResult}
	}
	for _, test := range []struct {
		name, setup, query string
		oracle             string
		class              oracle.Class
		want               bool
	}{
		{"another quantifier", setup, "SELECT * FROM t WHERE NOT (NOT a <= ALL (SELECT 1))", "tlp", oracle.TLP, true},
		{"a hint", setup, "SELECT /*+ INL_HASH_JOIN(t) */ a FROM t WHERE NOT (NOT a > SOME (SELECT 1))", "tlp", oracle.TLP, true},
		{"a generated column", "CREATE TABLE t (a INT GENERATED ALWAYS AS(1) STORED)", query, "tlp", oracle.TLP, true},
		{"near miss: a key", "CREATE TABLE t (a INT PRIMARY KEY)", query, "tlp", oracle.TLP, false},
		{"near miss: IS NULL", setup, "SELECT a FROM t WHERE (a > ANY (SELECT NULL)) IS NULL", "tlp", oracle.TLP, false},
		{"near miss: radar, and a generated column", "CREATE TABLE t (a INT GENERATED ALWAYS AS(1) STORED)", query, "radar", oracle.Radar, false},
		{"near miss: schedules", setup, query, "troc", oracle.Troc, false},
	} {
		b := &Bug{Finding: finding(test.oracle, test.class), Hallmarks: hallmarks(spec(setup), []string{query})}
		if got := b.same(finding(test.oracle, test.class), hallmarks(spec(test.setup), []string{test.query})); got != test.want {
			t.Errorf("%s: the same %v", test.name, got)
		}
	}
	const keyed = "CREATE TABLE t (a INT PRIMARY KEY)"
	wrong := &Bug{Finding: finding("radar", oracle.Radar), Hallmarks: hallmarks(spec(keyed), []string{"SELECT HEX(IFNULL(a, '')) FROM t"})}
	for query, want := range map[string]bool{
		"SELECT IFNULL(a, '') IN (X'31') FROM t": true, "SELECT a FROM t WHERE IFNULL(a, '') <= 'a'": true, "SELECT GREATEST(IFNULL(a, ''), 2) FROM t": true,
		"SELECT IFNULL(a, '') = DATE '2024-01-02' FROM t": true, "SELECT CAST(IFNULL(a, '') AS DATE) FROM t": false,
		"SELECT IFNULL(a, '') < TIMESTAMP'2024-01-02 00:00:00' FROM t": true, "SELECT YEAR(IFNULL(a, '')) FROM t": false, "SELECT DATE(IFNULL(a, '')) FROM t": false,
		"SELECT HEX(COALESCE(a, '')) FROM t": false, "SELECT a FROM t WHERE a IN (1.5)": false, "SELECT HEX(a) FROM t": false,
	} {
		if got := wrong.same(finding("radar", oracle.Radar), hallmarks(spec("CREATE TABLE t (a DATETIME NOT NULL)"), []string{query})); got != want {
			t.Errorf("%s: of another type and NOT NULL, the bug of IFNULL %v", query, got)
		}
		if got := wrong.same(finding("radar", oracle.Radar), hallmarks(spec("CREATE TABLE t (a INT)"), []string{query})); got {
			t.Errorf("%s: without a constraint, the bug of IFNULL", query)
		}
		if got := wrong.same(finding("radar", oracle.Radar), hallmarks(spec(keyed), []string{query})); got != want {
			t.Errorf("%s: the bug of IFNULL %v", query, got)
		}
	}
	row := &Bug{Finding: finding("tlp", oracle.TLP), Hallmarks: hallmarks(spec(setup), []string{"SELECT 0 FROM t WHERE (ROW(1,1) = ROW(1,NULL)) IS NULL"})}
	for query, want := range map[string]bool{
		"SELECT * FROM t WHERE ((a, a) = (FALSE, TRUE)) IS NULL": true, "SELECT * FROM t WHERE ((a, 1) <> ROW(a, 1)) IS NULL": true,
		"SELECT * FROM t WHERE (LEFT(a, 1) = 1) IS NULL": false, "SELECT * FROM t WHERE (a = 1) IS NULL": false, "SELECT * FROM t WHERE (a IN (1, 2)) IS NULL": false,
	} {
		if got := row.same(finding("tlp", oracle.TLP), hallmarks(spec(setup), []string{query})); got != want {
			t.Errorf("%s: the bug of ROW %v", query, got)
		}
	}
	for _, test := range []struct {
		name, setup, query, otherSetup, other string
		want                                  bool
	}{
		{"a view of the table", setup, "SELECT a FROM t WHERE (ROW(a, a) = ROW(1, 0)) IS NULL", setup + "; CREATE VIEW u AS SELECT a FROM t", "SELECT a FROM u WHERE (ROW(a, a) = ROW(1, 1)) IS NULL", true},
		{"a primary key is NOT NULL", keyed, "SELECT * FROM t WHERE a > ANY (SELECT NULL FROM t)", "CREATE TABLE t (a INT, b INT NOT NULL)", "SELECT a FROM t WHERE b <= ALL (SELECT NULL FROM t)", true},
		{"near miss: a unique key is not", "CREATE TABLE t (a INT UNIQUE)", "SELECT * FROM t WHERE a > ANY (SELECT NULL FROM t)", "CREATE TABLE t (a INT NOT NULL)", "SELECT a FROM t WHERE a > ANY (SELECT NULL FROM t)", false},
		{"NOT IN is <> ALL", setup, "SELECT * FROM t WHERE a <> ALL (SELECT a FROM t)", setup, "SELECT * FROM t WHERE a IN (SELECT a FROM t)", true},
		{"IN is = ANY", setup, "SELECT * FROM t WHERE a = SOME (SELECT a FROM t)", setup, "SELECT * FROM t WHERE a NOT IN (SELECT a FROM t)", true},
		{"a function of what an outer join leaves NULL", setup, "SELECT 1 FROM t WHERE NULLIF(-1, a)", setup, "SELECT 1 FROM t LEFT JOIN t AS x ON 0 WHERE NULLIF(-1, x.a)", true},
		{"a JSON value as a condition", "CREATE TABLE t (a JSON)", "SELECT 1 FROM t WHERE a", "CREATE TABLE t (a JSON)", "SELECT /*+ HASH_JOIN(t) */ 1 FROM t CROSS JOIN t AS x WHERE t.a", true},
		{"near miss: an outer join alone", setup, "SELECT 1 FROM t WHERE a IS NOT TRUE", setup, "SELECT 1 FROM t LEFT JOIN t AS x ON 0 WHERE x.a IS NOT TRUE", false},
		{"near miss: >= ANY", setup, "SELECT * FROM t WHERE a >= ANY (SELECT a FROM t)", setup, "SELECT * FROM t WHERE a IN (SELECT a FROM t)", false},
	} {
		b := &Bug{Finding: finding("tlp", oracle.TLP), Hallmarks: hallmarks(spec(test.setup), []string{test.query})}
		if got := b.same(finding("norec", oracle.NoREC), hallmarks(spec(test.otherSetup), []string{test.other})); got != test.want {
			t.Errorf("%s: the same %v", test.name, got)
		}
	}
	marks := hallmarks(spec(setup), []string{query})
	b := &Bug{Finding: finding("tlp", oracle.TLP), Hallmarks: marks}
	generated := hallmarks(spec("CREATE TABLE t (a INT GENERATED ALWAYS AS(1) STORED)"), []string{query})
	if !b.same(finding("norec", oracle.NoREC), generated) || b.same(finding("radar", oracle.Radar), generated) {
		t.Error("another oracle of conditions shows the same bug, and radar another one, since how a column gets its values matters to it")
	}
}

// TestSameError: an error on one side only is one bug, whatever the values, the names and the table.
func TestSameError(t *testing.T) {
	refused := func(class oracle.Class, name, observed string) *oracle.Finding {
		return &oracle.Finding{Oracle: "radar", Class: class, Name: name, Difference: &oracle.Difference{Observed: oracle.Side{Text: observed}}}
	}
	const overflow = "error 1690: constant 18446744073709551615 overflows bigint"
	b := &Bug{Finding: refused(oracle.Radar, oracle.NameError, overflow), Hallmarks: []string{"in", "setup primary key"}}
	for _, tt := range []struct {
		text string
		f    *oracle.Finding
		want bool
	}{
		{"another constant", refused(oracle.Radar, oracle.NameError, "error 1690: constant -1.5 overflows bigint"), true},
		{"another type", refused(oracle.Radar, oracle.NameError, "error 1690: constant 7 overflows int"), false},
		{"another number", refused(oracle.Radar, oracle.NameError, "error 1264: constant 7 overflows bigint"), false},
		{"another oracle's", refused(oracle.TLP, oracle.NameError, overflow), false},
		{"no error", refused(oracle.Radar, oracle.NameResult, ""), false},
	} {
		if got := b.same(tt.f, []string{"setup index"}); got != tt.want {
			t.Errorf("%s: the same %v", tt.text, got)
		}
	}
	both := refused(oracle.Radar, oracle.NameError, overflow)
	both.Difference.Expected.Text = "error 1105: index out of range"
	if b.same(both, []string{"setup index"}) {
		t.Error("two different errors are the one")
	}
}

// TestOnly: what is not kept is gone from the sessions and from the order, and the case itself stays as it was.
func TestOnly(t *testing.T) {
	spec, err := scenario.Parse("x", []byte("session s\nstep a { SELECT 1 }\nstep b { SELECT 2 }\nsession q\nstep c { SELECT 3 }\npermutation a c b"))
	if err != nil {
		t.Fatal(err)
	}
	small := only(spec, func(st *scenario.Step) bool { return st.Name != "a" })
	p := small.Permutations[0].Steps
	if len(p) != 2 || p[0].Step.Name != "c" || p[1].Step.Name != "b" || p[1].Step.Index != 0 || len(small.Sessions[0].Steps) != 1 || small.Sessions[0].Steps[0] != p[1].Step {
		t.Errorf("kept %+v of %+v", p, small.Sessions)
	}
	if len(spec.Permutations[0].Steps) != 3 || len(spec.Sessions[0].Steps) != 2 || spec.Sessions[0].Steps[1].Index != 1 {
		t.Error("the case was changed")
	}
}

// TestKnownCause: what an oracle knows by name is one bug, by whatever statements it shows.
func TestKnownCause(t *testing.T) {
	f := &oracle.Finding{Oracle: "wss", Class: oracle.WSSTx, Difference: &oracle.Difference{Cause: "early snapshot"}}
	other := &oracle.Finding{Oracle: "wss", Class: oracle.WSSStmt, Difference: &oracle.Difference{Cause: "early snapshot"}}
	third := &oracle.Finding{Oracle: "wss", Class: oracle.WSSStmt, Difference: &oracle.Difference{Cause: "torn"}}
	stepwise := &oracle.Finding{Oracle: "troc", Class: oracle.Troc, Difference: &oracle.Difference{Cause: "early snapshot"}}
	k, err := newStore(t.TempDir(), "mariadb", "")
	if err != nil {
		t.Fatal(err)
	}
	knows := func(f *oracle.Finding) bool {
		known, err := k.knows(t.Context(), f)
		if err != nil {
			t.Error(err)
		}
		return known
	}
	if knows(f) {
		t.Error("nothing is kept")
	}
	b := &Bug{Signature: signature(engine.Descriptor{}, nil, f), Seen: 1, Finding: f}
	k.kept = append(k.kept, b)
	if !knows(other) || !knows(stepwise) || b.Seen != 3 || !slices.Equal(b.Also, []string{"wss-stmt", "troc"}) || knows(third) || knows(&oracle.Finding{Difference: &oracle.Difference{}}) {
		t.Errorf("kept %+v", b)
	}
}

// TestAlsoTold: what a second oracle finds in a case is looked for in what the case became for the first one, and noted there; in another
// case the cause tells that it is that bug.
func TestAlsoTold(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	h := hunterOn(t, "mariadb", "troc,wss", dir)
	level, err := panel.FindLevel(h.Instance.Engine, "read committed")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse("torn.spec", torn(t))
	if err != nil {
		t.Fatal(err)
	}
	tell := func(class string) {
		t.Helper()
		f, err := h.Find(t.Context(), spec, level, class)
		if err != nil || f == nil {
			t.Fatalf("%s: finding %v, error %v", class, f, err)
		}
		if err := h.found(t.Context(), spec, level, f); err != nil {
			t.Fatal(err)
		}
	}
	tell("troc")
	tell("wss-tx")
	if len(h.store.kept) != 1 || !slices.Equal(h.store.kept[0].Also, []string{"wss-tx"}) {
		t.Fatalf("kept %+v", h.store.kept)
	}
	text, err := os.ReadFile(filepath.Join(dir, "troc-001", "finding.json"))
	if err != nil || !strings.Contains(string(text), `"also": [`) {
		t.Errorf("error %v:\n%s", err, text)
	}
	h.here = nil
	tell("wss-tx")
	if len(h.store.kept) != 1 || h.store.kept[0].Seen != 3 {
		t.Errorf("kept %+v", h.store.kept[0])
	}
}

// TestSameOrigin: a function that has another type in each database is one bug, whatever shows it. Near misses: another function, and a bug that has no such function.
func TestSameOrigin(t *testing.T) {
	spec := &scenario.Spec{Setup: []scenario.Block{{SQL: "CREATE TABLE t (a INT NOT NULL)"}}}
	finding := func(query, origin string) *oracle.Finding {
		return &oracle.Finding{Oracle: "radar", Class: oracle.Radar, Name: oracle.NameResult, Difference: &oracle.Difference{SQL: query, Origin: origin}}
	}
	const query, origin = "SELECT GREATEST(IFNULL(a, ''), 256) FROM t", "IFNULL(a, '')"
	f := finding(query, origin)
	b := &Bug{Finding: f, Hallmarks: hallmarks(spec, []string{query})}
	for _, test := range []struct {
		query, origin string
		want          bool
	}{
		{"SELECT YEAR(IFNULL(t.a, 'x')) FROM t", "IFNULL(t.a, 'x')", true},
		{"SELECT YEAR(ifnull(t.a, 'x')) FROM t", "ifnull(t.a, 'x')", true},
		{"SELECT YEAR(NULLIF(t.a, 'x')) FROM t", "NULLIF(t.a, 'x')", false},
		{"SELECT YEAR(IFNULL(t.a, 'x')) FROM t", "", false},
	} {
		g := finding(test.query, test.origin)
		marks := hallmarks(spec, []string{test.query})
		if got := b.same(g, marks); got != test.want {
			t.Errorf("%s: the same %v", test.query, got)
		}
		if test.origin != "" && test.want != (signature(engine.Descriptor{}, spec, g) == signature(engine.Descriptor{}, spec, f)) {
			t.Errorf("%s: its signature is otherwise", test.query)
		}
		if got := b.explains(spec, g); got != test.want {
			t.Errorf("%s: explained %v", test.query, got)
		}
	}
}

// TestSameBesideRadar: what radar and an oracle of conditions see of one query's features, on the same kind of tables, is one bug. Near misses: other features of
// the tables or of the query, and a query with none that is special.
func TestSameBesideRadar(t *testing.T) {
	spec := func(setup string) *scenario.Spec { return &scenario.Spec{Setup: []scenario.Block{{SQL: setup}}} }
	finding := func(name string, class oracle.Class) *oracle.Finding {
		return &oracle.Finding{Oracle: name, Class: class, Name: oracle.NameResult}
	}
	const setup, query, plain = "CREATE TABLE t (a DECIMAL(10,2), b INT, UNIQUE(b))", "SELECT * FROM t WHERE NOT a IN (SELECT x.b FROM t AS x WHERE x.b)", "SELECT * FROM t WHERE a > 1"
	for _, test := range []struct {
		query, setup, other string
		class               oracle.Class
		want                bool
	}{
		{query, setup, "SELECT * FROM t WHERE a IN (SELECT b FROM t)", oracle.NoREC, true},
		{query, setup, "SELECT * FROM t WHERE a IN (SELECT b FROM t)", oracle.Crash, false},
		{query, "CREATE TABLE t (a DECIMAL(10,2), b INT, PRIMARY KEY(b))", "SELECT * FROM t WHERE a IN (SELECT b FROM t)", oracle.NoREC, false},
		{query, setup, "SELECT * FROM t WHERE ABS(a) IN (SELECT b FROM t)", oracle.NoREC, false},
		{plain, setup, plain, oracle.NoREC, false},
	} {
		bug := &Bug{Finding: finding("radar", oracle.Radar), Hallmarks: hallmarks(spec(setup), []string{test.query})}
		if got := bug.same(finding("norec", test.class), hallmarks(spec(test.setup), []string{test.other})); got != test.want {
			t.Errorf("%s on %s, %s: the same %v", test.other, test.setup, test.class, got)
		}
		bug = &Bug{Finding: finding("norec", test.class), Hallmarks: hallmarks(spec(test.setup), []string{test.other})}
		if got := bug.same(finding("radar", oracle.Radar), hallmarks(spec(setup), []string{test.query})); got != test.want {
			t.Errorf("the other way, %s on %s, %s: the same %v", test.other, test.setup, test.class, got)
		}
	}
}

// TestWorth: what is like an earlier finding is reduced while reductions have taken little of the time, or without a limit of theirs. What is new always is.
func TestWorth(t *testing.T) {
	for _, test := range []struct {
		n            int
		spent, limit time.Duration
		want         bool
	}{
		{1, time.Hour, time.Minute, true}, {2, time.Hour, time.Minute, false}, {2, time.Hour, 0, true}, {2, 0, time.Minute, true},
		{4, 0, time.Minute, true}, {5, 0, time.Minute, false}, {5, 0, 0, false},
	} {
		h := &hunter{o: Options{Reduction: test.limit}, started: time.Now().Add(-time.Hour), reduced: test.spent}
		if got := h.worth(test.n); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}
