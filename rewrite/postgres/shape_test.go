package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/rewrite"
)

func TestShape(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"select a1 from t where id = 5 and b='it''s' -- 5", "select a1 from t where id = \x00 and b=\x01 -- 5"},
		{`select "a'1" /* 1 /* 2 */ 'x' */ , .5, 1.5, $1`, "select \"a'1\" /* 1 /* 2 */ 'x' */ , \x02, \x02, $1"},
		{"select E'x', 1", ""}, {"select U&'x', 1", ""}, {"select 1e5", ""}, {"select $$x$$, 1", ""}, {"select 'x", ""},
		{"select 1 /* x", ""}, {"select x from t", ""}, {"select 1..2", ""}, {`select U&"x", 1`, ""}, {"select $a$ 1 $a$", ""},
		{"select x'1F', 1", ""}, {`select "x, 1`, ""}, {"select '\x00'", ""},
	} {
		got, _, ok := shape(c.in)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("shape(%q) = %q, %v, want %q", c.in, got, ok, c.want)
		}
	}
}

// FuzzShape checks that a template gives what the parser gives.
func FuzzShape(f *testing.F) {
	f.Add("SELECT 'a', id FROM t WHERE v = 1; UPDATE t SET v = 12 WHERE id = 3 -- end", "it''s", "7777")
	f.Add("insert into t values ('x', 5)", "", "0")
	f.Add("SELECT id, count(*) FROM t WHERE id = 1 GROUP BY id LIMIT 1 OFFSET 0", "", "1")
	f.Add("SELECT id, count(*) FROM t WHERE id = 1 GROUP BY id LIMIT 1", "", "0")
	f.Add("SELECT DISTINCT v, 'a' FROM t WHERE id < 100 AND v <> 5; SELECT 1 UNION SELECT v FROM t WHERE id = 5 AND v IN (2, 3)", "ä", "1")
	f.Add("SELECT v FROM t WHERE id = 1 AND id IN (SELECT id FROM t WHERE v = 2000)", "", "12")
	rel := &rewrite.Relation{RelationName: rewrite.RelationName{Schema: "public", Name: "t"}, Kind: "table", OID: 1, Readable: true,
		Columns: []rewrite.Attribute{{Name: "id", Type: "int4"}, {Name: "v", Type: "int4"}}, Key: []string{"id"}, Unique: [][]string{{"id"}}}
	c := rewrite.NewCatalog(rewrite.Server{}, nil)
	c.Learn(map[rewrite.Name]*rewrite.Known{
		{Name: "t"}: {Relations: []*rewrite.Relation{rel}}, {Name: "count", Function: true}: {Function: rewrite.FunctionAggregate},
	}, 0, true)
	f.Fuzz(func(t *testing.T, sql, text, number string) {
		_, lits, ok := shape(sql)
		if !ok {
			return
		}
		other, at := "", 0
		for _, l := range lits {
			other += sql[at:l.At]
			if sql[l.At] == '\'' {
				other += "'" + text + "'"
			} else {
				other += number
			}
			at = l.End
		}
		other += sql[at:]
		s1, _, ok1 := shape(sql)
		s2, _, ok2 := shape(other)
		if !ok1 || !ok2 || s1 != s2 {
			return
		}
		r := New(rewrite.CaptureAuto)
		r.Script(sql, c, Session{})
		got := r.Script(other, c, Session{})
		want := New(rewrite.CaptureAuto).Script(other, c, Session{})
		if got.Unparsed != want.Unparsed && !want.Unparsed { // text that only one of them parses
			return
		}
		clean := func(s *rewrite.Script) {
			for _, p := range s.Plans {
				p.Decode = nil
			}
		}
		if want.Unparsed {
			return
		}
		clean(got)
		clean(want)
		if want.Own {
			t.Errorf("%q has the plans of another text, though there is none", other)
		}
		want.Own = got.Own // which of the two ways it was
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q after %q (-parsed +template):\n%s", other, sql, d)
		}
	})
}
