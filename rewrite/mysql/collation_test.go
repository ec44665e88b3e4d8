package mysql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// TestCollations: in the collations whose columns are compared by us, texts of printable ASCII of one or two characters are equal only
// if they are but for case. The server groups them: as many groups as texts without capitals, so none of them are equal.
func TestCollations(t *testing.T) {
	t.Parallel()
	d := testserver.Family(t).Database(t)
	var texts []string
	for a := rune('!'); a <= '~'; a++ {
		if a >= 'A' && a <= 'Z' {
			continue
		}
		texts = append(texts, string(a))
		for b := rune('!'); b <= '~'; b++ {
			if b < 'A' || b > 'Z' {
				texts = append(texts, string(a)+string(b))
			}
		}
	}
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = fmt.Sprintf("(x'%x')", s)
	}
	d.Exec(t, "CREATE TABLE t (v VARBINARY(2) PRIMARY KEY)", "INSERT INTO t VALUES "+strings.Join(quoted, ","))
	db := d.MariaDB(t)
	tried := 0
	for _, charset := range []string{"utf8mb4", "utf8mb3", "latin1", "ascii", "ucs2", "utf16", "utf32", "cp1250", "latin2", "koi8r", "cp1251", "cp866", "greek", "hebrew"} {
		names := []string{charset + "_swedish_ci"}
		for _, rest := range rootCollations {
			names = append(names, charset+"_"+rest)
		}
		for _, name := range names {
			if kindOf(&rewrite.Attribute{Type: "varchar(9)", Collation: name}) != condition.Folded {
				continue
			}
			var n int
			if err := db.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM information_schema.COLLATIONS WHERE COLLATION_NAME IN (?, ?)",
				name, strings.TrimPrefix(name, charset+"_")).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				continue
			}
			query := fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM t GROUP BY CONVERT(v USING %s) COLLATE %s) AS g", charset, name)
			if charset != "ascii" { // of bytes that are ASCII
				query = fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM t GROUP BY CONVERT(CONVERT(v USING ascii) USING %s) COLLATE %s) AS g", charset, name)
			}
			if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
				if strings.Contains(err.Error(), "1253") || strings.Contains(err.Error(), "1273") { // this product does not have the pair
					continue
				}
				t.Fatalf("%s: %v", name, err)
			}
			if tried++; n != len(texts) {
				t.Errorf("%s: %d texts are %d different ones", name, len(texts), n)
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d collations were tried", tried)
	}
	// A near miss: a collation that takes two of these characters for equal is seen to do so.
	var n int
	if err := db.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM (SELECT 1 FROM t GROUP BY CONVERT(CONVERT(v USING ascii) USING utf8mb4) COLLATE utf8mb4_lithuanian_ci) AS g").Scan(&n); err != nil || n >= len(texts) {
		t.Errorf("utf8mb4_lithuanian_ci: %d of %d, %v", n, len(texts), err)
	}
	t.Logf("%d collations; utf8mb4_lithuanian_ci: %d of %d texts", tried, n, len(texts))
}
