package mysql

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// TestShape: what is a plain literal, and beside it what is none.
func TestShape(t *testing.T) {
	show := strings.NewReplacer("\x01", "#", "\x02", "#.#", "\x03", "'#'")
	for _, test := range []struct {
		sql, want string // empty: it has no shape
		mode      mysqlsyntax.Mode
	}{
		{"SELECT c FROM t WHERE id = 5", "SELECT c FROM t WHERE id = #", 0},
		{"SELECT c FROM t WHERE id=5;", "SELECT c FROM t WHERE id=#;", 0},
		{"SELECT c FROM t WHERE id BETWEEN 5 AND 1.5", "SELECT c FROM t WHERE id BETWEEN # AND #.#", 0},
		{"SELECT c FROM t WHERE id = -5 AND x IN (1,'a', 2)", "SELECT c FROM t WHERE id = -# AND x IN (#,'#', #)", 0},
		{"SELECT 'x', 5 FROM t ORDER BY 1 LIMIT 3, 4", "SELECT '#', # FROM t ORDER BY 1 LIMIT #, #", 0},
		{"INSERT INTO t VALUES (1,'a'),(2,'b')", "INSERT INTO t VALUES (#,'#'),(#,'#')", 0},
		{"UPDATE t SET a='x' WHERE b LIKE 'y%'", "UPDATE t SET a='#' WHERE b LIKE '#'", 0},
		{"SELECT c FROM t WHERE id = 123456789012345678", "SELECT c FROM t WHERE id = #", 0},
		// not what fits no integer, and other forms of numbers
		{"SELECT c FROM t WHERE id = 1234567890123456789", "", 0},
		{"SELECT c FROM t WHERE id = 0x1f", "", 0},
		{"SELECT c FROM t WHERE id = 1e5", "", 0},
		{"SELECT c FROM t WHERE id = 5.", "", 0},
		{"SELECT c FROM t WHERE id = .5", "", 0},
		// not what other characters may change
		{"SELECT c FROM t WHERE a = 'x\\'y' OR b = 2", "SELECT c FROM t WHERE a = 'x\\'y' OR b = #", 0},
		{"SELECT c FROM t WHERE a = 'x''y' OR b = 2", "SELECT c FROM t WHERE a = 'x''y' OR b = #", 0},
		{"SELECT c FROM t WHERE a = 'x\\' OR b = 2", "SELECT c FROM t WHERE a = 'x\\' OR b = #", mysqlsyntax.NoBackslashEscapes},
		{"SELECT c FROM t WHERE a = '\xff' OR b = 2", "SELECT c FROM t WHERE a = '\xff' OR b = #", 0},
		{"SELECT c FROM t WHERE a = 'é' OR b = 2", "SELECT c FROM t WHERE a = '#' OR b = #", 0},
		{"SELECT c FROM t WHERE a = 'a<=>b' OR b = 2", "SELECT c FROM t WHERE a = 'a<=>b' OR b = #", 0},
		{`SELECT "a" FROM t WHERE b = 2`, `SELECT "a" FROM t WHERE b = #`, mysqlsyntax.AnsiQuotes},
		// not what means something where it stands
		{"SELECT c FROM t WHERE a = _utf8'x'", "", 0},
		{"SELECT c FROM t WHERE a = _utf8 'x'", "", 0},
		{"SELECT c FROM t WHERE a = x'41'", "", 0},
		{"SELECT c FROM t WHERE a = 'x' 'y'", "SELECT c FROM t WHERE a = '#' 'y'", 0},
		{"SELECT c 'x' FROM t", "", 0},
		{"SELECT c AS 'x' FROM t", "", 0},
		{"SELECT c FROM t WHERE a LIKE b ESCAPE '|'", "", 0},
		{"SELECT c FROM t WHERE a = b COLLATE 'utf8mb4_bin'", "", 0},
		{"SELECT c FROM t WHERE a = NOW(6)", "", 0},
		{"SELECT CAST(c AS DECIMAL(10,2)) FROM t", "", 0},
		{"SELECT CAST((5) AS CHAR) FROM t", "", 0},
		{"SELECT a->'$.x' FROM t", "", 0},
		{"SELECT c FROM t WHERE a > 'x'", "SELECT c FROM t WHERE a > '#'", 0},
		{"SELECT c FROM t WHERE d > NOW() - INTERVAL 5 DAY", "", 0},
		{"SELECT @v5 FROM t", "", 0},
		{"SELECT c FROM t5", "", 0},
		{"SELECT c FROM t LIMIT 5 INTO OUTFILE 'x'", "SELECT c FROM t LIMIT # INTO OUTFILE 'x'", 0},
		// comments stand as they are; those that may be executed are left to the parser
		{"SELECT /* 5 */ c FROM t WHERE id = 5", "SELECT /* 5 */ c FROM t WHERE id = #", 0},
		{"SELECT /*+ MAX_EXECUTION_TIME(5) */ c FROM t WHERE id = 5", "SELECT /*+ MAX_EXECUTION_TIME(5) */ c FROM t WHERE id = #", 0},
		{"SELECT /*!50000 c, */ b FROM t WHERE id = 5", "", 0},
		// others than these statements
		{"SET autocommit = 0", "", 0},
		{"SET tx_isolation = 'serializable'", "", 0},
		{"CALL p(5)", "", 0},
		{"SELECT 1; SELECT 2", "", 0},
		{"SELECT c FROM t WHERE id = 5", "", mysqlsyntax.Foreign},
		{"SELECT c FROM t WHERE a = 'open", "", 0},
		{"SELECT c FROM t WHERE a = 5 \x01", "", 0},
	} {
		m, ok := shape(test.sql, test.mode)
		if got := show.Replace(m.shape); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %v, got  %s\nwant %s", test.sql, ok, got, test.want)
		}
	}
}

// TestShapesShareOnePlan: the second text of a shape is not parsed.
func TestShapesShareOnePlan(t *testing.T) {
	r, cat := New(MariaDB, rewrite.CaptureAuto), testCatalog(t)
	session := Session{Database: "shop", GroupConcat: 1 << 20}
	entries := func(sql string) int {
		if s := r.Script(sql, cat, session); !s.Changed(sql) {
			t.Errorf("%s is not rewritten", sql)
		}
		return r.cache.Len()
	}
	first := entries("SELECT * FROM account WHERE id = 5")
	if n := entries("SELECT * FROM account WHERE id = 12345"); n != first {
		t.Errorf("%d entries, want %d: the plan is not shared", n, first)
	}
	if n := entries("SELECT * FROM account WHERE id = '5'"); n == first {
		t.Error("a string shares the plan of a number")
	}
}

// literals take the place of others in the differential test: plain ones and all kinds of odd ones.
var literals = []string{
	"0", "1", "2", "7", "10", "123456", "123456789012345678", "1234567890123456789", "99999999999999999999", "1.5", "0.25", "5.", ".5", "1e3", "0x1f", "0b1", "-3", "- 4", "--5",
	"''", "'a'", "'longer text'", "'it''s'", "'back\\\\slash'", "'\\''", "'é'", "'<=>'", "'%a_'", `"double"`, "x'41'", "N'n'", "_utf8'u'", "'a' 'b'", "NULL", "TRUE", "'2020-01-01'",
	"'-- '", "'/*'", "';'", "'?'", "'@wc_log'", "'wc_row_id'", "(5)", "(('x'))", "/* c */ 6", "6 /* c */", "'\t'", "'\xff'",
}

// mutant puts other literals in the places of some of a text's.
func mutant(rnd *rand.Rand, sql string, mode mysqlsyntax.Mode) string {
	text, err := mysqlsyntax.Lex(sql, mode)
	if err != nil {
		return sql
	}
	for _, tok := range slices.Backward(text.Tokens) {
		if (tok.Kind == statement.TokenNumber || tok.Kind == statement.TokenString) && rnd.IntN(3) > 0 {
			sql = sql[:tok.Start] + literals[rnd.IntN(len(literals))] + sql[tok.End:]
		}
	}
	return sql
}

const shapeSample = 4

var shapeRounds = flag.Int("shape-rounds", shapeSample, "how many mutants of each form TestShapedPlansAreParsedPlans makes in each mode")

// TestShapedPlansAreParsedPlans: whatever text the plan of a shape was made of, it is the plan that a text of that shape
// gets by itself.
func TestShapedPlansAreParsedPlans(t *testing.T) {
	cat := testCatalog(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	all := slices.Concat(selects, updates, inserts, deletes)
	for _, extra := range []string{
		"SELECT DISTINCT owner FROM account WHERE id BETWEEN 1 AND 2 ORDER BY 1", "SELECT balance FROM account ORDER BY id LIMIT 5",
		"SELECT balance FROM account WHERE owner = 'x' AND balance = 5", "SELECT MIN(balance), 'x' FROM account WHERE id > 5 GROUP BY 2 HAVING 1 LIMIT 1",
		"SELECT id, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 1 OFFSET 0", "SELECT id, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 0, 1",
		"SELECT 1 UNION SELECT owner FROM account WHERE id = 5", "UPDATE account SET owner = 'x', balance = balance + 1 WHERE id = 1 LIMIT 1",
		"/* SELECT 5 */ SELECT owner FROM account WHERE id = 5 ;", "SELECT owner FROM account WHERE id = 5 RETURNING 5",
	} {
		all = append(all, form{sql: extra})
	}
	shared, total := 0, 0
	for _, mode := range []mysqlsyntax.Mode{0, mysqlsyntax.AnsiQuotes, mysqlsyntax.NoBackslashEscapes, mysqlsyntax.PipesAsConcat | mysqlsyntax.IgnoreSpace | mysqlsyntax.HighNotPrecedence} {
		s := Session{Database: "shop", Mode: mode, MultiStatements: true, GroupConcat: 1 << 20}
		r := New(MariaDB, rewrite.CaptureAuto)
		r.WantAll()
		for range *shapeRounds {
			for _, f := range all {
				sql := mutant(rnd, strings.ReplaceAll(f.sql, "@@db", "shop"), mode)
				total++
				if m, ok := shape(sql, mode); ok {
					if e, ok := r.cache.Get(key{sql: m.shape, shape: true, catalog: cat, session: s}); ok && e.template != nil {
						shared++
					}
				}
				comparePlans(t, sql, r.Script(sql, cat, s), r.script(key{sql: sql, catalog: cat, session: s}))
			}
		}
	}
	if shared < total/20 {
		t.Errorf("%d of %d texts had a shape that was known: too few to tell anything", shared, total)
	}
}

// seen is a script without its functions, which cannot be compared; whether there is one can.
func seen(s *rewrite.Script) (out []rewrite.Plan, functions []bool) {
	for _, p := range s.Plans {
		q := *p
		functions = append(functions, q.Decode != nil, q.Conceal != nil)
		q.Decode, q.Conceal = nil, nil
		out = append(out, q)
	}
	return out, functions
}

func comparePlans(t *testing.T, sql string, got, want *rewrite.Script) {
	t.Helper()
	gotPlans, gotFunctions := seen(got)
	wantPlans, wantFunctions := seen(want)
	if diff := cmp.Diff(wantPlans, gotPlans); diff != "" {
		t.Fatalf("%q (-parsed +shaped):\n%s", sql, diff)
	}
	if got.SQL != want.SQL || got.Unparsed != want.Unparsed || !slices.Equal(gotFunctions, wantFunctions) {
		t.Fatalf("%q\nshaped %q %v\nparsed %q %v", sql, got.SQL, gotFunctions, want.SQL, wantFunctions)
	}
	for i, p := range want.Plans {
		if p.Decode == nil {
			continue
		}
		cells := make([][]byte, p.Hidden)
		for _, cell := range []string{"7 1:T1.2.x", "7 1:T1.2.x 5", "7 2:T1.2.x,T2.1.x 5,6"} {
			for k := range cells {
				cells[k] = []byte(cell)
			}
			a, err1 := p.Decode(nil, cells)
			b, err2 := got.Plans[i].Decode(nil, cells)
			if diff := cmp.Diff(a, b); diff != "" || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%q: %v, %v: decoded otherwise:\n%s", sql, err1, err2, diff)
			}
		}
	}
}

// FuzzShapes: the plan of a text and of a mutant of it, each from the other's shape where they have the same.
func FuzzShapes(f *testing.F) {
	for _, forms := range [][]form{selects, updates, inserts, deletes} {
		for _, form := range forms {
			f.Add(form.sql, uint64(1), uint8(0))
		}
	}
	cat := testCatalog(f)
	f.Fuzz(func(t *testing.T, sql string, seed uint64, mode uint8) {
		s := Session{Database: "shop", Mode: mysqlsyntax.Mode(mode) & (mysqlsyntax.AnsiQuotes | mysqlsyntax.NoBackslashEscapes), GroupConcat: 1 << 20}
		r := New(MariaDB, rewrite.CaptureAuto)
		r.WantAll()
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 4 {
			comparePlans(t, sql, r.Script(sql, cat, s), r.script(key{sql: sql, catalog: cat, session: s}))
			sql = mutant(rnd, sql, s.Mode)
			if len(sql) > 1<<12 {
				return
			}
		}
	})
}
