package radar_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/oracle"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// TestOrigin: the innermost call of a function that has another type on the two databases is named. Near misses: the same types, a call that has a subquery, an
// aggregate.
func TestOrigin(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (3);\n"
	tests := []struct {
		query, typed string // typed: the query of which the server's answer has another type
		want         string
		refused      string // the error of the query itself; empty: it has no rows
	}{
		{"SELECT ABS(COALESCE(a, 0)) FROM t", "SELECT COALESCE(a, 0) FROM t", "COALESCE(a, 0)", ""},
		{"SELECT ABS(COALESCE(a, 0)) FROM t", "SELECT ABS(COALESCE(a, 0)) FROM t", "ABS(COALESCE(a, 0))", ""},
		{"SELECT a FROM t WHERE ABS(a) < 4", "SELECT ABS(a) FROM t", "ABS(a)", ""},
		{"SELECT ABS(COALESCE(a, 0)) FROM t", "", "", ""},
		{"SELECT a FROM t WHERE a IN (SELECT ABS(a) FROM t AS x)", "SELECT ABS(a) FROM t", "ABS(a)", ""},
		{"SELECT ABS((SELECT 3)) FROM t", "SELECT ABS((SELECT 3)) FROM t", "", ""},
		{"SELECT MAX(a) FROM t", "SELECT MAX(a) FROM t", "", ""},
		{"SELECT COALESCE(a, 0) - 9 FROM t", "SELECT COALESCE(a, 0) FROM t", "COALESCE(a, 0)", "77777"},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		for i, test := range tests {
			spec, err := lab.Script(fmt.Sprint("origin", i), table+test.query+";", p.describe())
			if err != nil {
				t.Fatal(err)
			}
			spoil := func(sql string, st *schedule.Step) {
				if sql == test.query && test.refused != "" {
					st.Answer = answer.Result{Err: &answer.Error{Code: test.refused, Message: "made up"}}
				} else if sql == test.query {
					st.Answer.Rows = nil
				}
				if strings.TrimSpace(sql) == test.typed && len(st.Answer.Columns) == 1 {
					st.Answer.Columns = slices.Clone(st.Answer.Columns)
					st.Answer.Columns[0] = answer.Column{Name: st.Answer.Columns[0].Name, Type: "made up"}
				}
			}
			v, err := radar.Check(t.Context(), s.execute(t, spec), faulty{Stage: s.first, spoil: spoil}, s.options)
			if err != nil || len(v.Findings) != 1 {
				t.Fatalf("%s: %v, %d findings", test.query, err, len(v.Findings))
			}
			if d := v.Findings[0].Difference; d.Origin != test.want || (d.Types != "") != (test.want != "") || test.want != "" && !strings.HasPrefix(d.Types, "made up, and ") {
				t.Errorf("%s: got %q (%s), want %q", test.query, d.Origin, d.Types, test.want)
			}
		}
	})
}

// TestFirstType: TiDB's IFNULL of another type has a name. Near misses: another function, another product.
func TestFirstType(t *testing.T) {
	for _, test := range []struct {
		product, origin string
		want            product.CauseID
	}{
		{"tidb", "IFNULL(a, 0)", product.FirstType}, {"tidb", "COALESCE(a, 0)", ""}, {"tidb", "", ""}, {"mariadb", "IFNULL(a, 0)", ""},
	} {
		f := oracle.Finding{Difference: &oracle.Difference{Origin: test.origin}}
		if radar.Named(product.Of(test.product), &f); f.Difference.Cause != string(test.want) {
			t.Errorf("%s, %q: got %q, want %q", test.product, test.origin, f.Difference.Cause, test.want)
		}
	}
}
