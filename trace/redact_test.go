package trace

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pingcap/tidb/pkg/parser"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
	"pgregory.net/rapid"

	"wirecheck/answer"
	"wirecheck/statement/pgsyntax"
	"wirecheck/trace/lex"
)

func redactor() *Redactor { return NewRedactor([]byte("a key of the test")) }

// The statements of both dialects hold values that must not be found in what is left: those with the word secret, and the numbers 4711 and 815.
var redactPostgres = []string{
	"SELECT * FROM t WHERE a = 'secret' AND b = 4711 /* secret */ LIMIT 10 OFFSET 20",
	"INSERT INTO t VALUES ('it''s secret', E'secret\\'\\n', $$secret$$, $x$secret$x$, U&'secret', X'4711', B'0101', -815.4711, 4711e5)",
	"SELECT a, b FROM t GROUP BY 1, 2 ORDER BY 2 DESC, 1 LIMIT 5 -- secret",
	"SELECT 'secret'::text, $1, $2 FROM \"4711\" WHERE x LIKE '%secret%' AND d = DATE '2026-11-20'",
	"CREATE TABLE t4711 (a varchar(20) DEFAULT 'secret', b numeric(10,2), c timestamp(3))",
	"DO $$ BEGIN UPDATE t SET a = 'secret' WHERE b = 4711; END $$",
	"SELECT '{\"name\": \"secret\", \"n\": 4711, \"l\": [\"secret\"]}'::jsonb, '{secret,\"se,cret\",4711}'::text[]",
	"SET search_path = 'shop'; SET datestyle TO 'ISO'",
	"SET app.tenant = 'secret'",
	"SELECT * FROM t ORDER BY a FETCH FIRST 3 ROWS ONLY",
	"SELECT count(*) OVER (ORDER BY a), b + 4711 FROM t WHERE c IN (4711, 815)",
}

var redactMySQL = []string{
	"SELECT * FROM t WHERE a = 'secret' AND b = 4711 # secret\n LIMIT 10, 20",
	"INSERT INTO t VALUES ('it\\'s secret', \"secret \\\" x\", 0x4711, x'4711', b'01', _utf8mb4'secret', N'secret', -815.4711)",
	"SELECT /*+ MAX_EXECUTION_TIME(1000) */ a FROM `4711` WHERE d = '2026-11-20 01:02:03' ORDER BY 1",
	"PREPARE s FROM 'SELECT * FROM t WHERE a = ?'",
	"SET NAMES 'utf8mb4'",
	"SET @x = 'secret'",
	"UPDATE t SET a = a + 4711 WHERE b = ? AND c LIKE 'secret%'",
	"CREATE TABLE t (a varchar(20), b decimal(8,2) DEFAULT 4711, c enum('secret'))",
}

// TestRedactSQL demands that no value is left, that what is left parses, and that structure stays.
func TestRedactSQL(t *testing.T) {
	r := redactor()
	my := parser.New()
	for d, list := range map[lex.Dialect][]string{lex.PostgreSQL: redactPostgres, lex.MySQL: redactMySQL} {
		for _, sql := range list {
			got := r.SQL(sql, d)
			without := strings.NewReplacer(`"4711"`, "", "`4711`", "", "t4711", "").Replace(got)
			for _, value := range []string{"secret", "4711", "815", "2026-11-20"} {
				if strings.Contains(without, value) {
					t.Errorf("%s\nbecame %s\nwith %s in it", sql, got, value)
				}
			}
			var err error
			if d == lex.PostgreSQL {
				_, err = pgsyntax.Parse(got)
			} else {
				_, _, err = my.Parse(got, "", "")
			}
			if err != nil {
				t.Errorf("%s\nbecame %s\n%v", sql, got, err)
			}
		}
	}
	for _, stays := range []string{
		"SELECT a FROM t GROUP BY 1, 2 ORDER BY 2 DESC, 1 LIMIT 5 OFFSET 7", "CREATE TABLE t (a varchar(20), b numeric(10,2))", "SET search_path = 'shop'",
		"SELECT * FROM t FETCH FIRST 3 ROWS ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT $1, $2",
	} {
		if got := r.SQL(stays, lex.PostgreSQL); got != stays {
			t.Errorf("%s\nbecame %s", stays, got)
		}
	}
	if a, b := r.SQL("SELECT 'x' WHERE a = 77", lex.PostgreSQL), r.Text("77"); !strings.HasSuffix(a, b) {
		t.Errorf("a literal and a parameter of the same value differ: %s, %s", a, b)
	}
	if a, b := r.SQL("SELECT 'x'", lex.PostgreSQL), NewRedactor([]byte("another")).SQL("SELECT 'x'", lex.PostgreSQL); a == b {
		t.Error("the key does not matter")
	}
}

// TestRedactShapes demands that a token is of the kind of its value.
func TestRedactShapes(t *testing.T) {
	r := redactor()
	for s, ok := range map[string]func(string) bool{
		"12345":                                func(g string) bool { n, err := strconv.Atoi(g); return err == nil && n >= 10000 && n <= 99999 },
		"-12.50":                               func(g string) bool { return len(g) == 6 && g[0] == '-' && g[3] == '.' },
		"007":                                  func(g string) bool { _, err := strconv.Atoi(g); return err == nil && len(g) == 3 },
		"123456789012345678901234567890":       func(g string) bool { return len(g) == 30 && strings.Trim(g, "0123456789") == "" && g[0] != '0' },
		"2026-11-20":                           func(g string) bool { _, err := time.Parse(time.DateOnly, g); return err == nil },
		"2026-11-20 01:02:03.5+00":             func(g string) bool { _, err := time.Parse("2006-01-02 15:04:05.9-07", g); return err == nil },
		"01:02:03":                             func(g string) bool { _, err := time.Parse(time.TimeOnly, g); return err == nil },
		"1000-01-01":                           func(g string) bool { _, err := time.Parse(time.DateOnly, g); return err == nil },
		"5bd66ef5-0953-69c7-b0d1-f8f4bd33716a": func(g string) bool { return len(g) == 36 && isUUID(g) },
		`\x00ff17`:                             func(g string) bool { return len(g) == 8 && g[:2] == `\x` && isHex(g[2:]) },
		"true":                                 func(g string) bool { return g == "true" },
		"":                                     func(g string) bool { return g == "" },
		`{"k":[1,"v"]}`:                        func(g string) bool { return strings.HasPrefix(g, `{"k":[`) && !strings.Contains(g, `"v"`) },
		"{a,NULL}":                             func(g string) bool { return strings.HasPrefix(g, "{r") && strings.HasSuffix(g, "}") },
		"%abc%":                                func(g string) bool { return strings.HasPrefix(g, "%r") && strings.HasSuffix(g, "%") },
		"hello":                                func(g string) bool { return strings.HasPrefix(g, "r") },
	} {
		if got := r.Text(s); !ok(got) || got != r.Text(s) {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// TestRedactKeepsApart demands that different numbers, and days, stay different.
func TestRedactKeepsApart(t *testing.T) {
	r := redactor()
	seen := map[string]string{}
	add := func(s string) {
		got := r.Text(s)
		if other, ok := seen[got]; ok {
			t.Fatalf("%s and %s became %s", s, other, got)
		}
		seen[got] = s
	}
	for n := range 12000 {
		add(strconv.Itoa(n))
	}
	for n := range 5000 {
		add(time.Date(2020, 1, 1+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(2, 1<<40).Draw(t, "n")
		a, b := rapid.Uint64Range(0, n-1).Draw(t, "a"), rapid.Uint64Range(0, n-1).Draw(t, "b")
		x, y := r.exchange("c", a, n), r.exchange("c", b, n)
		if x >= n || y >= n || (a == b) != (x == y) {
			t.Errorf("%d and %d below %d became %d and %d", a, b, n, x, y)
		}
	})
}

func TestRedactRecord(t *testing.T) {
	r := redactor()
	rec := &Record{Kind: KindStatement, Statement: &Statement{
		SQL: "SELECT 'secret', $1 /*route='secret',traceparent='00-1-2-01'*/", Prepared: "PREPARE p AS SELECT 'secret'",
		Params:  []Param{{Value: "secret"}, {Null: true}, {Binary: true, Value: "\x00secret"}, {Type: "bool", Value: "t"}},
		Results: []Result{{Columns: []answer.Column{{Name: "a", Type: "text"}, {Name: "b", Type: "BLOB"}}, Rows: [][]Value{{{Text: "secret"}, {Text: "\x01secret"}}}, Digest: "secret", Count: 1, Affected: Unknown}},
		Error:   &answer.Error{Code: "23505", Message: "Key (a)=(secret) already exists"},
		Tags:    []Tag{{"route", "secret"}, {"traceparent", "00-1-2-01"}},
	}}
	r.Record(rec, "postgres")
	open := &Record{Kind: KindSession, Open: &Session{Client: "10.1.2.3:secret", User: "app"}}
	r.Record(open, "postgres")
	end := &Record{Kind: KindEnd, End: &End{Reason: "secret"}}
	r.Record(end, "postgres")
	for _, x := range []*Record{rec, open, end} {
		if text := fmt.Sprintf("%+v", flat(x)); strings.Contains(text, "secret") {
			t.Errorf("a value is left: %s", text)
		}
	}
	st := rec.Statement
	if st.Params[0].Value != r.Text("secret") || !st.Params[1].Null || len(st.Params[2].Value) != 7 || st.Params[3].Value != "t" || st.Error.Code != "23505" || open.Open.User != "app" {
		t.Errorf("%+v", st)
	}
	if want := []Tag{{"traceparent", "00-1-2-01"}}; !cmp.Equal(st.Tags[1:], want) {
		t.Errorf("tags: %v", st.Tags)
	}
}

func TestTags(t *testing.T) {
	for sql, want := range map[string][]Tag{
		"SELECT 1 /*action='a%2Fb',route='it\\'s'*/":          {{"action", "a/b"}, {"route", "it's"}},
		"/* traceparent='00-1-2-01' , x='1' */ SELECT 1":      {{"traceparent", "00-1-2-01"}, {"x", "1"}},
		"SELECT '/*action=''x''*/'":                           nil,
		"SELECT 1 /* where a='x' and b='y' */":                nil,
		"SELECT 1 /*a='1' b='2'*/":                            nil,
		"SELECT 1 /*a='1'":                                    nil,
		"SELECT 1 /*a='1*/":                                   nil,
		"SELECT 1 -- a='1'":                                   nil,
		"SELECT a='x' FROM t /* not a tag */ /*key='value'*/": {{"key", "value"}},
	} {
		if got := ParseTags(sql, lex.PostgreSQL); !cmp.Equal(got, want) {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

// FuzzLexer demands that the tokens of any text are the text, and that redacting has an end.
func FuzzLexer(f *testing.F) {
	for _, list := range [][]string{redactPostgres, redactMySQL} {
		for _, sql := range list {
			f.Add(sql)
		}
	}
	r := redactor()
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range []lex.Dialect{lex.PostgreSQL, lex.MySQL} {
			var joined strings.Builder
			for token := range lex.Tokens(sql, d) {
				if token.Text == "" {
					t.Fatalf("an empty token in %q", sql)
				}
				joined.WriteString(token.Text)
			}
			if joined.String() != sql {
				t.Errorf("%q became %q", sql, joined.String())
			}
			r.SQL(sql, d)
			ParseTags(sql, d)
		}
	})
}

// TestRedactColumns: MySQL names a column after its expression. Its name is then that of the redacted statement.
func TestRedactColumns(t *testing.T) {
	r := NewRedactor([]byte("key"))
	st := &Statement{SQL: "SELECT 'alice', count(*), name = 'bob', 4711 FROM t", Results: []Result{{Columns: []answer.Column{
		{Name: "alice"}, {Name: "count(*)"}, {Name: "name = 'bob'"}, {Name: "4711"},
	}}}}
	r.Record(&Record{Kind: KindStatement, Statement: st}, "mariadb")
	var names []string
	for _, c := range st.Results[0].Columns {
		names = append(names, c.Name)
	}
	if got, want := "SELECT '"+names[0]+"', "+strings.Join(names[1:], ", ")+" FROM t", st.SQL; got != want || strings.Contains(got, "alice") || strings.Contains(got, "4711") {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestRedactSettings: only settings that are no data keep their values.
func TestRedactSettings(t *testing.T) {
	r := NewRedactor([]byte("key"))
	for sql, keeps := range map[string]bool{
		"SET search_path = 'shop'": true, "SET NAMES 'utf8mb4'": true, "SET TIME ZONE 'UTC'": true, "SET application_name = 'alice'": false, "SET app.user = 'alice'": false,
		"SELECT /*+ x('alice') */ 1": false,
	} {
		for _, d := range []lex.Dialect{lex.MySQL, lex.PostgreSQL} {
			if got := r.SQL(sql, d); (got == sql) != keeps || strings.Contains(got, "alice") {
				t.Errorf("%s: %s", sql, got)
			}
		}
	}
}
