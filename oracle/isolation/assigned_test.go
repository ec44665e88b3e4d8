package isolation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/trace/lex"
)

// TestColumns has writes of one row: which columns they assign decides whether one comes before the other. Each finding has a near miss beside it.
func TestColumns(t *testing.T) {
	const (
		own  = two + "t1 r x@0 -- SELECT a FROM t\nt2 r x@0 -- SELECT a, b FROM t\n"
		star = two + "t1 r x@0 -- SELECT * FROM t\nt2 r x@0 -- SELECT * FROM t\n"
		ends = "t1 commit\nt2 commit"
		lost = "G-single lost update [1 2]"
		// Neither lost what the other one wrote: t2 did not read it.
		apart = two + "t1 r x@0 -- SELECT a FROM t\nt2 r x@0 -- SELECT b FROM t\n"
	)
	// t1 reads one row before and one row after t2 wrote both.
	skew := func(list string) string {
		read := "-- SELECT " + list + " FROM t\n"
		return two + "t1 r x@0 " + read + "t2 w x 0>1 -- UPDATE t SET a = 1\nt2 w y 0>1 -- UPDATE t SET a = 1\nt2 commit\nt1 r y@1 " + read + "t1 commit"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"each its own", own + "t1 w x 0>1 -- UPDATE t SET a = 1 WHERE id = 1\nt2 w x 1>2 -- UPDATE t SET b = 2 WHERE id = 1\n" + ends, ""},
		{"the same", own + "t1 w x 0>1 -- UPDATE t SET a = 1 WHERE id = 1\nt2 w x 1>2 -- UPDATE t SET a = 2 WHERE id = 1\n" + ends, lost},
		{"the same in other letters", own + "t1 w x 0>1 -- UPDATE t SET a = 1 WHERE id = 1\nt2 w x 1>2 -- UPDATE t SET \"A\" = 2 WHERE id = 1\n" + ends, lost},
		{"one of several", own + "t1 w x 0>1 -- UPDATE t SET a = 1, c = 1\nt2 w x 1>2 -- UPDATE t SET b = 2, c = 2\n" + ends, lost},
		{"a condition on the other's column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2 WHERE a = 0\n" + ends, "G-single  [1 2]"},
		{"computed from the other's column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = a + 1, c = 5\n" + ends, "G-single  [1 2]"},
		{"computed from its own column", own + "t1 inc x 0>1 -- UPDATE t SET a = a + 1\nt2 inc x 1>2 -- UPDATE t SET b = b + 1\n" + ends, ""},
		{"computed, then overwritten", own + "t1 inc x 0>1 -- UPDATE t SET b = b + 1\nt2 w x 1>2 -- UPDATE t SET b = 7\n" + ends, lost},
		{"a statement that was not captured so", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- CALL p(1)\n" + ends, lost},
		{"a row value", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET (b, c) = (1, 2)\n" + ends, lost},
		{"an upsert of another column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET b = 2\n" + ends, ""},
		{"an upsert of the same column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 2\n" + ends, lost},
		{"an upsert that inserted", two + "t2 r x@0\nt1 d x 0>1 -- DELETE FROM t\nt2 i x >2 -- INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 2\n" + ends, lost},
		{"deleted", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 d x 1>2 -- DELETE FROM t\n" + ends, lost},
		{"both read all", star + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, "G2-item write skew [1 2]"},
		{"one read all", two + "t2 r x@0 -- SELECT * FROM t\nt1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, ""},
		{"both read all, of a view", strings.ReplaceAll(star, "FROM t", "FROM v") + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, ""},
		{"both read both by name", strings.ReplaceAll(star, "* FROM t", "id, o.a, \"b\" AS c FROM public.t o") + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, "G2-item write skew [1 2]"},
		{"both read both, the first by a join", strings.Replace(star, "SELECT * FROM t", "SELECT * FROM t JOIN y ON t.id = y.id", 1) + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, ""},
		{"the second statement is the same", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\nt2 w x 2>3 -- UPDATE t SET a = 2\n" + ends, lost},
		{"the first of two is the same", own + "t1 w x 0>1 -- UPDATE t SET b = 1\nt1 w x 1>2 -- UPDATE t SET a = 1\nt2 w x 2>3 -- UPDATE t SET b = 2\n" + ends, lost},
		{"told late", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\nt2 commit\nt1 commit", ""},
		{"the same, another between", three + "t2 r x@0\nt1 w x 0>1 -- UPDATE t SET a = 1\nt1 commit\nt3 w x 1>2 -- UPDATE t SET b = 2\nt3 commit\nt2 w x 2>3 -- UPDATE t SET a = 3\nt2 commit", lost},
		{"the same, another between, told late", three + "t2 r x@0\nt1 w x 0>1 -- UPDATE t SET a = 1\nt3 w x 1>2 -- UPDATE t SET b = 2\nt2 w x 2>3 -- UPDATE t SET a = 3\nt2 commit\nt3 commit\nt1 commit", lost},
		{"each its own, without keys", strings.ReplaceAll(own, "x@0", "_@a") + "t1 w _ a>b -- UPDATE t SET a = 1\nt2 w _ b>c -- UPDATE t SET b = 2\n" + ends, ""},
		{"the same, without keys", strings.ReplaceAll(own, "x@0", "_@a") + "t1 w _ a>b -- UPDATE t SET a = 1\nt2 w _ b>c -- UPDATE t SET a = 2\n" + ends, lost},
		{"written back, as its image says", own + "t1 w x 0>1 image \"a 1 b 0\" was \"a 0 b 0\" -- UPDATE t SET a = 1, b = 0\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, "G-single  [1 2]"},
		{"written back and changed, as its image says", own + "t1 w x 0>1 image \"a 1 b 1\" was \"a 0 b 0\" -- UPDATE t SET a = 1, b = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, lost},
		{"written back, the image does not say", own + "t1 w x 0>1 image \"a 1\" was \"a 0\" -- UPDATE t SET a = 1, b = 0\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, lost},
		{"chosen by a subquery", two + "t1 r x@0 -- SELECT id, c FROM t\nt1 r y@0\nt2 w x 0>1 -- UPDATE t SET a = NULL WHERE id IN (SELECT id FROM u WHERE d = 1)\nt2 r z@0\nt2 commit\nt1 w z 0>1\nt1 commit", ""},
		{"chosen by a subquery, and the column was read", two + "t1 r x@0 -- SELECT id, a FROM t\nt1 r y@0\nt2 w x 0>1 -- UPDATE t SET a = NULL WHERE id IN (SELECT id FROM u WHERE d = 1)\nt2 r z@0\nt2 commit\nt1 w z 0>1\nt1 commit", "G2-item write skew [1 2]"},
		{"chosen by a subquery that names the other's column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2 WHERE id IN (SELECT id FROM t WHERE a = 0)\n" + ends, "G-single  [1 2]"},
		{"assigned what a subquery gives", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = (SELECT max(c) FROM u)\n" + ends, lost},
		{"joined by FROM", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = u.c FROM u WHERE u.id = t.id\n" + ends, ""},
		{"left as it was, as its image says", star + "t1 w x 0>1 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET a = 2\n" + ends, ""},
		{"left as it was, the image does not say", star + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET a = 2\n" + ends, lost},
		{"left as the other one had made it", star + "t1 w x 0>1 image \"a 1\" was \"a 0\" -- UPDATE t SET a = 1\nt2 w x 1>2 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\n" + ends, lost},
		{"left as it was by both", star + "t1 w x 0>1 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\nt2 w x 1>2 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\n" + ends, ""},
		{"left as it was at the end alone", star + "t1 w x 0>1 image \"a 1\" was \"a 0\" -- UPDATE t SET a = 1\nt1 w x 1>2 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\nt2 w x 2>3 -- UPDATE t SET a = 2\n" + ends, lost},
		{"what was left as it was is what another one made it", three + "t1 r y@0\nt3 w x 0>1 -- UPDATE t SET a = 1\nt3 w y 0>1\nt3 commit\nt2 w x 1>2 image \"a 1\" was \"a 1\" -- UPDATE t SET a = 1\nt2 commit\nt1 r x@2 -- SELECT * FROM t\nt1 commit", "G-single read skew [1 3]"},
		{"a match of another column", own + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 match x@1 -- UPDATE t SET b = 0\n" + strings.Replace(ends, "t2", "t2 r x@0 -- SELECT b FROM t\nt2", 1), ""},
		{"a match of the same column", own + "t2 r x@0 -- SELECT a FROM t\nt1 inc x 0>1 -- UPDATE t SET a = a + 1\nt2 match x@1 -- UPDATE t SET a = 1\n" + ends, lost},
		{"a level that protects rows", strings.ReplaceAll(own, "read committed", "repeatable read") + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, "violation: G-single  [1 2]"},
		{"one level that protects rows", strings.Replace(own, "read committed", "repeatable read", 1) + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 2\n" + ends, ""},
		{"each its own, and the time", own + "t1 w x 0>1 set a=1 time at=1 -- UPDATE t SET a = 1, at = '1'\nt2 w x 1>2 set b=2 time at=2 -- UPDATE t SET b = 2, at = '2'\n" + ends, ""},
		{"each its own, and a date", own + "t1 w x 0>1 set a=1 set at=1 -- UPDATE t SET a = 1, at = '1'\nt2 w x 1>2 set b=2 set at=2 -- UPDATE t SET b = 2, at = '2'\n" + ends, lost},
		{"each its own, and the server's time", own + "t1 w x 0>1 -- UPDATE t SET a = 1, at = now()\nt2 w x 1>2 -- UPDATE t SET b = 2, at = now()\n" + ends, ""},
		{"the same, and the time", own + "t1 w x 0>1 set a=1 time at=1 -- UPDATE t SET a = 1, at = '1'\nt2 w x 1>2 set a=2 time at=2 -- UPDATE t SET a = 2, at = '2'\n" + ends, lost},
		{"both read all, each its own, and the time", star + "t1 w x 0>1 set a=1 time at=1 -- UPDATE t SET a = 1, at = '1'\nt2 w x 1>2 set b=2 time at=2 -- UPDATE t SET b = 2, at = '2'\n" + ends, "G2-item write skew [1 2]"},
		{"the same, and one read neither", apart + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET a = 2\n" + ends, ""},
		{"the same, and it read its key again", two + "t2 r x@0 -- SELECT * FROM t\nt1 w x 0>1 -- UPDATE t SET a = 1\nt1 commit\nt2 r x@1 -- SELECT id FROM t\nt2 w x 1>2 -- UPDATE t SET a = 2\nt2 commit", lost},
		{"the same, and it read again", two + "t2 r x@0 -- SELECT * FROM t\nt1 w x 0>1 -- UPDATE t SET a = 1\nt1 commit\nt2 r x@1 -- SELECT a FROM t\nt2 w x 1>2 -- UPDATE t SET a = 2\nt2 commit", "G-single non-repeatable read [1 2]"},
		{"a read of another column", skew("b"), ""},
		{"a read of that column", skew("a"), "G-single read skew [1 2]"},
		{"a read of a column with the same letters", skew("ab"), ""},
		{"a read of all", skew("*"), "G-single read skew [1 2]"},
		{"a read of all of one name", skew("x.*"), "G-single read skew [1 2]"},
		{"a read of a sum", skew("b + a"), "G-single read skew [1 2]"},
		{"a read of a product", skew("b * 2"), ""},
		{"a count", skew("count(*)"), ""},
		{"a condition", strings.ReplaceAll(skew("b"), "FROM t", "FROM t WHERE a = 1"), "G-single read skew [1 2]"},
		{"an order", strings.ReplaceAll(skew("b"), "FROM t", "FROM t ORDER BY id, a LIMIT 1"), "G-single read skew [1 2]"},
		{"the row itself", skew("t"), "G-single read skew [1 2]"},
		{"the row itself by another name", strings.ReplaceAll(skew("row_to_json(o)"), "FROM t", "FROM t o"), "G-single read skew [1 2]"},
		{"a view", strings.ReplaceAll(skew("b"), "FROM t", "FROM v"), "G-single read skew [1 2]"},
		{"a join", strings.ReplaceAll(skew("t.b"), "FROM t", "FROM t JOIN u ON t.id = u.id"), ""},
		{"a join by that column", strings.ReplaceAll(skew("t.b"), "FROM t", "FROM t JOIN u ON t.a = u.id"), "G-single read skew [1 2]"},
		{"a join USING that column", strings.ReplaceAll(skew("t.b"), "FROM t", "FROM u LEFT JOIN (t) USING (a)"), "G-single read skew [1 2]"},
		{"a natural join", strings.ReplaceAll(skew("b"), "FROM t", "FROM t NATURAL JOIN u"), "G-single read skew [1 2]"},
		{"a join that gives all", strings.ReplaceAll(skew("u.*"), "FROM t", "FROM u, s.t AS o"), "G-single read skew [1 2]"},
		{"a join that gives the row itself", strings.ReplaceAll(skew("o"), "FROM t", "FROM u, s.t AS o"), "G-single read skew [1 2]"},
		{"a join with a view of it", strings.ReplaceAll(skew("b"), "FROM t", "FROM v JOIN u ON v.id = u.id"), "G-single read skew [1 2]"},
		{"other names for its columns", strings.ReplaceAll(skew("b"), "FROM t", "FROM t AS o (b, c)"), "G-single read skew [1 2]"},
		{"a subquery", strings.ReplaceAll(skew("b"), "FROM t", "FROM t WHERE id IN (SELECT id FROM t)"), ""},
		{"a subquery of that column", strings.ReplaceAll(skew("b"), "FROM t", "FROM t WHERE id IN (SELECT a FROM t)"), "G-single read skew [1 2]"},
		{"EXISTS", strings.ReplaceAll(skew("b"), "SELECT b FROM t", "SELECT EXISTS (SELECT * FROM t WHERE b = 1) AS e"), ""},
		{"EXISTS of a row with that column", strings.ReplaceAll(skew("b"), "SELECT b FROM t", "SELECT NOT EXISTS (SELECT * FROM t WHERE a = 1) AS e"), "G-single read skew [1 2]"},
		{"EXISTS beside a row", strings.ReplaceAll(skew("b"), "SELECT b FROM t", "SELECT 1 AS e FROM (SELECT 1 AS d) d WHERE EXISTS (SELECT 1 FROM t JOIN u ON u.id = t.id WHERE b = 1 LIMIT 1)"), ""},
		{"a derived table", strings.ReplaceAll(skew("q.c"), "FROM t", "FROM (SELECT b AS c FROM t WHERE id > 0) q WHERE extract(year FROM c) = 1"), ""},
		{"all of a derived table", strings.ReplaceAll(skew("c"), "FROM t", "FROM (SELECT * FROM t) q"), "G-single read skew [1 2]"},
		{"a set operation", strings.ReplaceAll(skew("b"), "FROM t", "FROM t UNION SELECT c FROM u WHERE c IS DISTINCT FROM 1"), ""},
		{"a set operation of that column", strings.ReplaceAll(skew("b"), "FROM t", "FROM t UNION SELECT a FROM u"), "G-single read skew [1 2]"},
		{"a system column", skew("xmin"), "G-single read skew [1 2]"},
		{"a text that the server executes", skew("b /*! , a */"), "G-single read skew [1 2]"},
		{"rows deleted and made", strings.NewReplacer("t2 w x 0>1 -- UPDATE t SET a = 1", "t2 d x 0>1 -- DELETE FROM t", "t2 w y 0>1 -- UPDATE t SET a = 1", "t2 i y >1 -- INSERT INTO t VALUES (1)").Replace(skew("b")), "G-single read skew [1 2]"},
		{"a read of the time", strings.ReplaceAll(skew("at"), "SET a = 1", "SET a = 1, at = now()"), "G-single read skew [1 2]"},
		{"a level that protects rows, and a read of another column", strings.ReplaceAll(skew("b"), "read committed", "repeatable read"), "violation: G-single read skew [1 2]"},
		{"one level that protects rows, and a read of another column", strings.Replace(skew("b"), "read committed", "repeatable read", 1), ""},
		{"dirty writes of different columns", two + "t1 w x 0>1 -- UPDATE t SET a = 1\nt2 w x 1>2 -- UPDATE t SET b = 1\nt2 w y 0>1 -- UPDATE t SET a = 1\nt1 w y 1>2 -- UPDATE t SET b = 1\n" + ends, "violation: G0 dirty write [1 2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs, _ := run(Options{}, parse(t, strings.ReplaceAll(tt.text, "; s2", "\ns2")))
			if got := briefs(fs); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUsesOf(t *testing.T) {
	for sql, want := range map[string]*uses{
		"UPDATE t SET a = 1 WHERE id = 2":                                                   {[]string{"a"}, []string{"a", "id", "set", "t", "update", "where"}, nil},
		"UPDATE t SET `B` = \"c\" -- x":                                                     {[]string{"b"}, []string{"b", "c", "set", "t", "update"}, nil},
		"UPDATE t SET a = 1 RETURNING b, *":                                                 {[]string{"a"}, []string{"a", "set", "t", "update"}, nil},
		"UPDATE t SET a = 1;":                                                               {[]string{"a"}, []string{"a", "set", "t", "update"}, nil},
		"UPDATE t SET a = 1 /*! , b = 2 */ WHERE id = 2":                                    nil,
		"UPDATE t SET a = 1; UPDATE t SET b = 2":                                            nil,
		"UPDATE t, u SET t.a = 1":                                                           nil,
		"UPDATE t SET a = (SELECT 1)":                                                       nil,
		"INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a), b = b + 1":      {[]string{"a", "b"}, []string{"a", "b", "set", "t", "update", "values"}, nil},
		"INSERT INTO t (id, a) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET a = excluded.a": {[]string{"a"}, []string{"a", "excluded", "set", "t", "update"}, nil},
		"INSERT INTO t VALUES (1)":                                                          nil,
	} {
		if d := cmp.Diff(want, usesOf(sql, lex.MySQL), cmp.AllowUnexported(uses{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", sql, d)
		}
	}
}

// TestAlike: what looks like one UPDATE with other values assigns the same columns.
func TestAlike(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"UPDATE t SET a = 1 WHERE id = 20", "UPDATE t SET a = 31 WHERE id = 2", true},
		{"UPDATE t SET a = 'x' WHERE id = 20", "UPDATE t SET a = 'other' WHERE id = 2", true},
		{"UPDATE t SET a1 = 1", "UPDATE t SET a2 = 1", false},
		{"UPDATE t SET a = 1", "UPDATE t SET a = 1, b = 2", false},
		{"UPDATE t SET a = 'x", "UPDATE t SET a = 'y', b = 2", false},
		{"UPDATE t SET a = 'x', b = 'y'", "UPDATE t SET a = 'x', c = 'y'", false},
		{"UPDATE t SET a = 1", "UPDATE t SET b = 1", false},
	} {
		by := func(sql string) *version { return &version{writer: &txn{stmts: []stmt{{verb: "update", sql: sql}}}} }
		if got := by(tt.a).alike(by(tt.b)); got != tt.want {
			t.Errorf("%s, %s: %v", tt.a, tt.b, got)
		}
	}
}

// TestSelection: what a SELECT reads of a table is among the names in its text, or is not known.
func TestSelection(t *testing.T) {
	for sql, want := range map[string]string{
		"WITH w AS (SELECT b, c FROM t) SELECT b FROM w":                                        "t w: b c w",
		"WITH w (b) AS (SELECT a FROM t) SELECT b FROM w":                                       "t w: a b w",
		"WITH w AS (SELECT b FROM t) SELECT * FROM w":                                           "",
		"SELECT x.b FROM t x USE INDEX (i), u FORCE INDEX FOR JOIN (k) WHERE c":                 "t u: b c i k x",
		"SELECT b FROM generate_series(1, 2) g, LATERAL (SELECT b FROM ONLY t WHERE t.c = 1) q": "t: b c g t",
		"SELECT trim(leading 'x' FROM b) FROM t":                                                "t: b leading trim",
		"SELECT b FROM t; DELETE FROM t":                                                        "",
		"SELECT b FROM t)":                                                                      "",
		"SELECT b FROM (t":                                                                      "",
		"SELECT b FROM t AS x (c)":                                                              "",
		"SELECT x AS y FROM t x":                                                                "",
		"SELECT count(x) FROM t x":                                                              "",
		"TABLE t":                                                                               "",
		"SELECT a FROM u WHERE a IN (TABLE t)":                                                  "",
		"SELECT":                                                                                ":",
		"SELECT b FROM 'x'":                                                                     "",
	} {
		got := ""
		if s := selectionOf(sql, lex.PostgreSQL); s != nil && s.named != nil {
			slices.Sort(s.tables)
			words := slices.DeleteFunc(slices.Clone(s.named), func(n string) bool {
				return slices.Contains([]string{"", "with", "as", "select", "from", "where", "use", "index", "force", "for", "join", "lateral", "only"}, n)
			})
			got = strings.Join(s.tables, " ") + ": " + strings.Join(words, " ")
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}
