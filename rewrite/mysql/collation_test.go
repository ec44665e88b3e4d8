package mysql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
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
	tried, ordered, unsure := 0, 0, 0
	pairs := textPairs(rand.New(rand.NewPCG(7, 13)))
	d.Exec(t, "CREATE TABLE p (n INT PRIMARY KEY, a VARBINARY(9), b VARBINARY(9))", "INSERT INTO p VALUES "+hexPairs(pairs))
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
			less := fmt.Sprintf("SELECT n FROM p WHERE CONVERT(CONVERT(a USING ascii) USING %[1]s) COLLATE %[2]s < CONVERT(CONVERT(b USING ascii) USING %[1]s) COLLATE %[2]s", charset, name)
			was := map[int]bool{}
			rows, err := db.QueryContext(context.Background(), less)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				if err := rows.Scan(&n); err != nil {
					t.Fatal(err)
				}
				was[n] = true
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			for i, p := range pairs {
				c := condition.Compare("<", condition.Folded, "a", &p[1])
				switch got := c.Holds(condition.Image{"a": &p[0]}); {
				case got == condition.Unsure:
					unsure++
				case (got == condition.True) != was[i]:
					t.Errorf("%s: %q < %q is %t", name, p[0], p[1], was[i])
				default:
					ordered++
				}
			}
		}
	}
	if 2*ordered < unsure {
		t.Errorf("%d pairs of texts are in a certain order, %d not", ordered, unsure)
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

// textPairs are texts of ASCII that begin alike.
func textPairs(rng *rand.Rand) (list [][2]string) {
	text := func(most int) string {
		b := make([]byte, rng.IntN(most+1))
		for i := range b {
			b[i] = "aabzXY059 -_.'"[rng.IntN(14)]
		}
		return string(b)
	}
	for range 1500 {
		begin := text(4)
		list = append(list, [2]string{begin + text(3), begin + text(3)})
	}
	return list
}

func hexPairs(pairs [][2]string) string {
	var rows []string
	for i, p := range pairs {
		rows = append(rows, fmt.Sprintf("(%d, x'%x', x'%x')", i, p[0], p[1]))
	}
	return strings.Join(rows, ",")
}

// TestUTF8Charsets: what a column of texts may contain, whatever bytes came into it, becomes UTF-8 in strict mode without an error. A near miss: in a character
// set whose texts are not compared, it does not.
func TestUTF8Charsets(t *testing.T) {
	t.Parallel()
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE one (b BINARY(1) PRIMARY KEY)", "INSERT INTO one WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 255) SELECT UNHEX(LPAD(HEX(i), 2, '0')) FROM n",
		"CREATE TABLE two (b VARBINARY(2) PRIMARY KEY)", "INSERT INTO two SELECT b FROM one UNION ALL SELECT CONCAT(x.b, y.b) FROM one x JOIN one y")
	db := d.MariaDB(t)
	refused, tried := 0, 0
	for _, charset := range append(slices.Clone(utf8Charsets), "cp1251", "greek", "ujis", "sjis") {
		a := rewrite.Attribute{Type: "varchar(9)", Collation: charset + "_bin"}
		d.Exec(t, "DROP TABLE IF EXISTS x, y", "CREATE TABLE y (h VARCHAR(99))")
		if _, err := db.Exec("CREATE TABLE x (v VARCHAR(9) CHARACTER SET " + charset + ")"); err != nil {
			continue // this product does not have it
		}
		d.Exec(t, "INSERT IGNORE INTO x SELECT b FROM two")
		_, err := db.Exec("INSERT INTO y SELECT " + inHex(inUTF8("v", &a)) + " FROM x")
		if kindOf(&a) != condition.Folded {
			if err != nil {
				refused++
			}
			continue
		}
		if tried++; err != nil {
			t.Errorf("%s: %v", charset, err)
		}
	}
	if tried < 15 || refused == 0 && !testserver.IsMySQL() {
		t.Errorf("%d character sets were tried; %d others were refused", tried, refused)
	}
}
