package statement_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

func TestMain(m *testing.M) { testserver.Main(m) }

var update = flag.Bool("update", false, "write what is described into testdata")

// dialects are the ways to describe a script.
var dialects = map[string]func(string) ([]statement.Statement, error){
	"postgres": postgres.Describe,
	"mysql":    mysql.New(family()).Describe,
}

func family() mysql.Flavor {
	switch {
	case testserver.IsMySQL():
		return mysql.MySQL
	case testserver.IsTiDB():
		return mysql.TiDB
	}
	return mysql.MariaDB
}

// described is a case of testdata/describe: comment lines, a script, a line "----", what Describe says of it.
type described struct{ comment, sql, want string }

func describedIn(t testing.TB, dialect string) (list []described) {
	t.Helper()
	text, err := os.ReadFile("testdata/describe/" + dialect + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n\n") {
		head, want, ok := strings.Cut(block+"\n", "\n----\n")
		if !ok {
			t.Fatalf("%s.txt: no line ---- in %q", dialect, block)
		}
		c := described{want: want}
		for strings.HasPrefix(head, "# ") {
			line, rest, _ := strings.Cut(head, "\n")
			c.comment, head = c.comment+line+"\n", rest
		}
		c.sql = head
		list = append(list, c)
	}
	return list
}

// show is the text form of descriptions: that of each statement, the query of its rows, and the places where text is put in.
func show(list []statement.Statement) string {
	var b strings.Builder
	for i := range list {
		s := &list[i]
		fmt.Fprintf(&b, "- %q\n%s", s.Text, printed(s))
		if q, ok := s.Addressed("1"); ok {
			fmt.Fprintf(&b, "addressed: %q\n", q)
		} else if s.Addressing.Why != "" {
			fmt.Fprintf(&b, "not addressed: %s\n", s.Addressing.Why)
		}
		if places := marked(s); places != s.Text {
			fmt.Fprintf(&b, "places: %q\n", places)
		}
	}
	return b.String()
}

// marked is the statement's text with marks where text is put in.
func marked(s *statement.Statement) string {
	var edits []rewrite.Edit
	add := func(at int, mark string) {
		if at > 0 {
			edits = append(edits, rewrite.Edit{At: at, Add: mark})
		}
	}
	add(s.AssignAt, "<assign>")
	if in := s.Insert; in != nil {
		add(in.NewListAt, "<list>")
		add(in.ColumnAt, "<column>")
		for _, at := range in.RowAt {
			add(at, "<value>")
		}
		add(in.UpdateAt, "<assign>")
	}
	slices.SortStableFunc(edits, func(a, b rewrite.Edit) int { return a.At - b.At })
	return rewrite.Apply(s.Text, edits)
}

func TestDescribe(t *testing.T) {
	for name, describe := range dialects {
		t.Run(name, func(t *testing.T) {
			var all strings.Builder
			cases := describedIn(t, name)
			for i, c := range cases {
				list, err := describe(c.sql)
				if err != nil {
					t.Fatalf("%s: %v", c.sql, err)
				}
				got := show(list)
				if diff := cmp.Diff(c.want, got); diff != "" && !*update {
					t.Errorf("%s: want(-), got(+):\n%s", c.sql, diff)
				}
				if i > 0 {
					all.WriteString("\n")
				}
				all.WriteString(c.comment + c.sql + "\n----\n" + got)
			}
			if *update {
				if err := os.WriteFile("testdata/describe/"+name+".txt", []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A text that cannot be cut into statements is an error that says what is wrong.
func TestDescribeRefuses(t *testing.T) {
	for name, describe := range dialects {
		for _, sql := range []string{"SELECT 'a", "SELECT 1; SELECT /* x", `SELECT 1; UPDATE t SET a = 'it''s`} {
			if list, err := describe(sql); err == nil || !strings.HasPrefix(err.Error(), "describe statement: ") {
				t.Errorf("%s: %s: got %v, %v; want an error", name, sql, list, err)
			}
		}
		for _, sql := range []string{"", " ", ";;", "-- SELECT 1"} {
			if list, err := describe(sql); err != nil || len(list) > 0 {
				t.Errorf("%s: %q: got %v, %v; want no statements", name, sql, list, err)
			}
		}
	}
}

// What is put in at the places of a description is what the new statement has more.
func TestDescribePlaces(t *testing.T) {
	for name, describe := range dialects {
		for _, c := range describedIn(t, name) {
			list, err := describe(c.sql)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				checkPlaces(t, describe, &list[i])
			}
		}
	}
}

func checkPlaces(t *testing.T, describe func(string) ([]statement.Statement, error), s *statement.Statement) {
	t.Helper()
	again := func(edits []rewrite.Edit) statement.Statement {
		sql := rewrite.Apply(s.Text, edits)
		list, err := describe(sql)
		if err != nil || len(list) != 1 || list[0].Unparsed {
			t.Fatalf("%s\nis not one statement: %+v, %v", sql, list, err)
		}
		return list[0]
	}
	for _, a := range append(slices.Clone(s.Assignments), updates(s)...) {
		if got := s.Text[a.At : a.At+len(a.Expr)]; got != a.Expr {
			t.Errorf("%s: at %d is %q, want %q", s.Text, a.At, got, a.Expr)
		}
	}
	if s.AssignAt > 0 {
		got := again([]rewrite.Edit{{At: s.AssignAt, Add: ", wkey = 7"}})
		if n := len(s.Assignments); len(got.Assignments) != n+1 || got.Assignments[n].Column != "wkey" || got.Clauses != s.Clauses {
			t.Errorf("%s: with one more assignment:\n%s", s.Text, printed(&got))
		}
	}
	in := s.Insert
	if in == nil {
		return
	}
	if in.UpdateAt > 0 {
		got := again([]rewrite.Edit{{At: in.UpdateAt, Add: ", wkey = 7"}})
		if n := len(in.Updates); len(got.Insert.Updates) != n+1 || got.Insert.Updates[n].Column != "wkey" {
			t.Errorf("%s: with one more assignment:\n%s", s.Text, printed(&got))
		}
	}
	if in.ColumnAt > 0 && len(in.RowAt) > 0 {
		edits := []rewrite.Edit{{At: in.ColumnAt, Add: ", wkey"}}
		want := *in
		want.Columns, want.Rows = append(slices.Clone(in.Columns), "wkey"), nil
		for i, at := range in.RowAt {
			edits = append(edits, rewrite.Edit{At: at, Add: ", 7"})
			want.Rows = append(want.Rows, append(slices.Clone(in.Rows[i]), "7"))
		}
		got := again(edits)
		if diff := cmp.Diff([]any{want.Columns, want.Rows}, []any{got.Insert.Columns, got.Insert.Rows}); diff != "" {
			t.Errorf("%s: with one more column: want(-), got(+):\n%s", s.Text, diff)
		}
	}
	if in.NewListAt > 0 {
		got := again([]rewrite.Edit{{At: in.NewListAt, Add: " (x, y)"}})
		if !slices.Equal(got.Insert.Columns, []string{"x", "y"}) || len(got.Insert.Rows) != len(in.Rows) || got.Insert.Select != in.Select {
			t.Errorf("%s: with a list of columns:\n%s", s.Text, printed(&got))
		}
	}
}

func updates(s *statement.Statement) []statement.Assignment {
	if s.Insert == nil {
		return nil
	}
	return s.Insert.Updates
}

// checkDescriptions looks at what must hold of the descriptions of any text.
func checkDescriptions(t *testing.T, describe func(string) ([]statement.Statement, error), sql string) {
	list, err := describe(sql)
	if err != nil {
		return
	}
	end := 0
	for i := range list {
		s := &list[i]
		if s.Text == "" || s.At < end || !strings.HasPrefix(sql[s.At:], s.Text) {
			t.Fatalf("%q: statement %d is %q at %d, behind %d", sql, i, s.Text, s.At, end)
		}
		end = s.At + len(s.Text)
		if s.Verb == "" || s.Unparsed && (s.Why == "" || s.Volatile == "") {
			t.Fatalf("%q: %+v", sql, s)
		}
		marked(s) // the places are in the text and do not overlap
		for _, a := range append(slices.Clone(s.Assignments), updates(s)...) {
			if !strings.HasPrefix(s.Text[a.At:], a.Expr) {
				t.Fatalf("%q: assignment %+v", sql, a)
			}
		}
		q, ok := s.Addressed("1")
		if !ok {
			continue
		}
		again, err := describe(q)
		if err != nil || len(again) != 1 || again[0].Verb != "select" || again[0].Unparsed || again[0].Clauses.From != s.Clauses.From ||
			again[0].Clauses.Where != s.Clauses.Where || again[0].Clauses.Limit != s.Clauses.Limit {
			t.Fatalf("%q: the query of its rows %q is described as %+v, %v", s.Text, q, again, err)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	for name := range dialects {
		for _, c := range describedIn(f, name) {
			f.Add(c.sql)
		}
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, describe := range dialects {
			checkDescriptions(t, describe, sql)
		}
	})
}

// Texts that break off, lack a word or have one twice are described or refused, by both dialects.
func TestDescribeBroken(t *testing.T) {
	for name := range dialects {
		for _, c := range describedIn(t, name) {
			words := strings.SplitAfter(c.sql, " ")
			for i := range words {
				for _, sql := range []string{
					strings.Join(words[:i], ""), strings.Join(words[i:], ""),
					strings.Join(slices.Concat(words[:i], words[i+1:]), ""),
					strings.Join(slices.Concat(words[:i+1], words[i:]), ""),
				} {
					for _, describe := range dialects {
						checkDescriptions(t, describe, sql)
					}
				}
			}
		}
	}
}
