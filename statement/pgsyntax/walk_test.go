package pgsyntax

import (
	"slices"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestWalkAsReflection visits the same messages in the same order as protocol buffers' own reflection does.
func TestWalkAsReflection(t *testing.T) {
	for _, sql := range []string{
		"SELECT 1, 0, -2, 1.5, 'a', '', NULL, true, false, B'01', X'1f'",
		"SELECT a.b, a.* FROM a JOIN b USING (c) WHERE a.b IN (1, 0, 'x', NULL) AND (a.c, a.d) = (SELECT 1, 2) ORDER BY 1 LIMIT 0",
		"INSERT INTO a VALUES (1, 'x'), (DEFAULT, NULL) ON CONFLICT (a) DO UPDATE SET (b, c) = (1, 2) RETURNING *",
		"CREATE TABLE a (b integer DEFAULT 0, c text[] CHECK (c <> '{}')); SET a = 1, 'b'; ALTER TABLE a ALTER b SET STATISTICS 0",
	} {
		tree, err := Parse(sql)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []proto.Message
		keep := func(list *[]proto.Message) func(proto.Message) bool {
			return func(m proto.Message) bool {
				*list = append(*list, m)
				return true
			}
		}
		var reflected func(m protoreflect.Message, visit func(proto.Message) bool)
		reflected = func(m protoreflect.Message, visit func(proto.Message) bool) {
			if visit(m.Interface()) {
				EachPart(m, func(part protoreflect.Message) { reflected(part, visit) })
			}
		}
		Walk(tree, keep(&got))
		reflected(tree.ProtoReflect(), keep(&want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d messages, not the same as the %d that there are", sql, len(got), len(want))
		}
	}
}

// TestSame compares trees that differ in one constant at most, in each kind of list.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"SELECT 1 WHERE a IN (1, 2)", "SELECT  1 WHERE a IN (1,   2)", true},
		{"SELECT 1 WHERE a IN (1, 2)", "SELECT 1 WHERE a IN (1, 3)", false},
		{"SELECT 1 WHERE a IN (1, 0)", "SELECT 1 WHERE a IN (1)", false},
		{"SELECT 1 WHERE a IN (0, 0)", "SELECT 1 WHERE a IN (0, 0)", true},
		{"SELECT 1 WHERE a IN (0)", "SELECT 1 WHERE a IN (NULL)", false},
		{"SELECT 1 WHERE a IN (NULL)", "SELECT 1 WHERE a IN (NULL)", true},
		{"SELECT 1 WHERE a IN ('x')", "SELECT 1 WHERE a IN ('x')", true},
		{"SELECT 1 WHERE a IN ('x')", "SELECT 1 WHERE a IN ('y')", false},
		{"SELECT 1 WHERE a IN ('1')", "SELECT 1 WHERE a IN (1)", false},
		{"SELECT 1 WHERE a IN (1.0)", "SELECT 1 WHERE a IN (1)", false},
		{"SELECT 1 WHERE a IN (1.0)", "SELECT 1 WHERE a IN (1.5)", false},
		{"SELECT 1 WHERE a IN (true)", "SELECT 1 WHERE a IN (false)", false},
		{"SELECT 1 WHERE a IN (b)", "SELECT 1 WHERE a IN ('b')", false},
		{"INSERT INTO a VALUES (1), (2)", "INSERT INTO a VALUES (1), (2)", true},
		{"INSERT INTO a VALUES (1), (2)", "INSERT INTO a VALUES (1, 2)", false},
		{"INSERT INTO a VALUES (DEFAULT)", "INSERT INTO a VALUES (NULL)", false},
	} {
		var statements [2]*pg.Node
		for i, sql := range []string{c.a, c.b} {
			tree, err := Parse(sql)
			if err != nil {
				t.Fatal(err)
			}
			statements[i] = tree.Stmts[0].Stmt
		}
		if got := Same(statements[0], statements[1]); got != c.same {
			t.Errorf("%s and %s: same %v", c.a, c.b, got)
		}
	}
	if Same(&pg.Node{}, &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Isnull: true}}}) || !Same(&pg.Node{}, &pg.Node{}) || !Same((*pg.List)(nil), (*pg.List)(nil)) || Same((*pg.List)(nil), &pg.List{}) {
		t.Error("an empty node is like no other, and a list that is not there like no empty one")
	}
}
