package panel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends"
	"wirecheck/lab"
)

// TestAbreast: judges say the same side by side as one after the other, of queries that are answered alike and of one that MariaDB answers in two ways.
// Judges that look at the database of another one, as txcheck does, judge beside them.
func TestAbreast(t *testing.T) {
	list, err := Select("all")
	if err != nil {
		t.Fatal(err)
	}
	list.Isolation = false
	var text strings.Builder
	text.WriteString("setup { CREATE TABLE t (a INT PRIMARY KEY, b INT) }\nsetup { INSERT INTO t VALUES (1, 0), (2, NULL), (3, 1) }\nsession s1\n")
	queries := []string{"BEGIN"}
	for i := range 8 {
		queries = append(queries, fmt.Sprintf("SELECT a FROM t WHERE b = %d OR a > %d", i%2, i), fmt.Sprintf("UPDATE t SET b = %d WHERE a = 1", i))
	}
	queries = append(queries, "SELECT a FROM t WHERE ROW(b, a) = ROW(0, NULL)", "ROLLBACK")
	order := "permutation"
	for i, q := range queries {
		fmt.Fprintf(&text, "step q%d { %s }\n", i, q)
		order += fmt.Sprintf(" q%d", i)
	}
	spec := parse(t, text.String()+order)
	for _, name := range []string{"postgres", "mariadb", "sqlite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := backends.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			level, err := FindLevel(s.Engine, s.Engine.Default)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level}, list, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close(context.Background()) })
			said := map[bool][]string{}
			for _, b.Abreast = range []bool{false, true} {
				d, err := b.Run(t.Context(), spec, spec.Permutations[0])
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range d.Rulings {
					line := fmt.Sprintf("%s: %d compared, unknown %q", v.Oracle, v.Compared, v.Unknown)
					for _, f := range v.Findings {
						line += fmt.Sprintf("; %s %s %d of %d", f.Kind, f.ID, f.Difference.Reproduced, f.Difference.Attempts)
					}
					said[b.Abreast] = append(said[b.Abreast], line)
				}
			}
			if diff := cmp.Diff(said[false], said[true]); diff != "" {
				t.Errorf("one after the other (-) and side by side (+):\n%s", diff)
			}
			if found := strings.Contains(strings.Join(said[true], "\n"), "violation"); found != (name == "mariadb") {
				t.Errorf("a violation: %v\n%s", found, strings.Join(said[true], "\n"))
			}
		})
	}
}
