package rewrite_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/internal/deeptext"
	"wirecheck/rewrite"
	"wirecheck/rewrite/mysql"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement"
	describemysql "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
	"wirecheck/statement/pgsyntax"
	describepostgres "wirecheck/statement/postgres"
)

// deepCatalog has the tables that the forms of package deeptext name.
func deepCatalog() *rewrite.Catalog {
	known := map[rewrite.Name]*rewrite.Known{}
	for i, name := range []string{"a", "b", "c"} {
		r := &rewrite.Relation{
			RelationName: rewrite.RelationName{Schema: "shop", Name: name}, Kind: "table", OID: uint32(20000 + i), Key: []string{"b"}, Unique: [][]string{{"b"}},
			Instrumented: true, Readable: true, Engine: "InnoDB", Rows: 10,
		}
		for _, column := range []string{"b", "c", "d", "e"} {
			r.Columns = append(r.Columns, rewrite.Attribute{Name: column, Type: "int4"})
		}
		r.Columns = append(r.Columns, rewrite.Attribute{Name: rewrite.ColumnRowID, Type: "int8", Hidden: true}, rewrite.Attribute{Name: rewrite.ColumnWriters, Type: "text", Hidden: true})
		known[rewrite.Name{Name: name}] = &rewrite.Known{Relations: []*rewrite.Relation{r}}
		known[rewrite.Name{Schema: "shop", Name: name}] = &rewrite.Known{Relations: []*rewrite.Relation{r}}
	}
	c := rewrite.NewCatalog(rewrite.Server{Database: "shop", Version: "10.11.6-MariaDB", Encoding: "UTF8"}, nil)
	c.Learn(known, 0, true)
	return c
}

// consumers are what reads the text of a statement.
func consumers() map[string]map[string]func(sql string) {
	c := deepCatalog()
	plain := func(string) bool { return true }
	all := map[string]map[string]func(string){"postgres": {
		"describe": func(sql string) { _, _ = describepostgres.Describe(sql) },
		"touches":  func(sql string) { describepostgres.Touches(sql, plain) },
		"define":   func(sql string) { describepostgres.Define(sql) },
		"native":   func(sql string) { postgres.New(rewrite.CaptureNative).Script(sql, c, postgres.Session{}) },
		"columns":  func(sql string) { postgres.New(rewrite.CaptureColumns).Statement(sql, c, postgres.Session{}) },
	}, "mysql": {"define": func(sql string) { describemysql.Define(sql) }}}
	for _, f := range []describemysql.Flavor{describemysql.MariaDB, describemysql.MySQL, describemysql.TiDB} {
		read := describemysql.New(f)
		all["mysql"]["describe "+string(f)] = func(sql string) { _, _ = read.Describe(sql) }
		all["mysql"]["touches "+string(f)] = func(sql string) { read.Touches(sql, plain) }
		all["mysql"]["script "+string(f)] = func(sql string) {
			mysql.New(f, rewrite.CaptureColumns).Script(sql, c, mysql.Session{Database: "shop", MultiStatements: true, GroupConcat: 1 << 20})
		}
	}
	return all
}

// spent is the time that the processors have worked for this process.
func spent(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestDeepTime gives what reads statements the longest and deepest texts that are parsed: it takes bounded time. Each text is read in
// one of the ways, and in all of them where WIRECHECK_TEST_DEEP is set.
func TestDeepTime(t *testing.T) {
	for dialect, forms := range map[string][]deeptext.Form{"postgres": deeptext.Postgres(), "mysql": deeptext.MySQL()} {
		refused := func(sql string) bool { return pgsyntax.Bound(sql) != nil }
		if dialect == "mysql" {
			refused = func(sql string) bool { return mysqlsyntax.Bound(sql, 0) != nil }
		}
		all := consumers()[dialect]
		names := slices.Sorted(maps.Keys(all))
		for i, f := range forms {
			sql := f.Most(pgsyntax.MaxText, refused)
			for k, name := range names {
				if k != i%len(names) && os.Getenv("WIRECHECK_TEST_DEEP") == "" {
					continue
				}
				before := spent(t)
				all[name](sql)
				if took := spent(t) - before; took > time.Second {
					t.Errorf("%s %s of %q, %d bytes: %v", dialect, name, f, len(sql), took)
				} else if took > 60*time.Millisecond {
					t.Logf("%s %s of %q, %d bytes: %v", dialect, name, f, len(sql), took)
				}
			}
		}
	}
}

// TestTooLarge: what is not parsed is opaque, and says why.
func TestTooLarge(t *testing.T) {
	c := deepCatalog()
	sql := "SELECT b FROM a WHERE b = 1" + strings.Repeat(" + 1", 100_000)
	for name, p := range map[string]*rewrite.Plan{
		"native": postgres.New(rewrite.CaptureNative).Script(sql, c, postgres.Session{}).Plans[0],
		"mysql":  mysql.New(mysql.MariaDB, rewrite.CaptureAuto).Script(sql, c, mysql.Session{Database: "shop"}).Plans[0],
	} {
		if p.Coverage != history.CoverageOpaque || !strings.Contains(p.Why, "the text is not parsed") {
			t.Errorf("%s: %s, %s", name, p.Coverage, p.Why)
		}
	}
	for name, describe := range map[string]func(string) ([]statement.Statement, error){
		"postgres": describepostgres.Describe, "mysql": describemysql.New(describemysql.MariaDB).Describe,
	} {
		list, err := describe("BEGIN; " + sql + "; COMMIT")
		if err != nil || len(list) != 3 {
			t.Fatalf("%s: %d statements, %v", name, len(list), err)
		}
		if st := list[1]; !st.Unparsed || !strings.Contains(st.Why, "the text is not parsed") || st.Verb != "select" || list[0].Unparsed || list[2].Unparsed {
			t.Errorf("%s: %+v", name, st.Why)
		}
	}
}
