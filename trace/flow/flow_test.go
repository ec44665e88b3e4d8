package flow

import (
	"strings"
	"testing"

	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// TestUpdate: which columns an UPDATE assigns and compares, in texts as drivers and frameworks write them.
func TestUpdate(t *testing.T) {
	params := []Param{{Text: "98"}, {Text: "1"}, {Null: true}, {Unknown: true}}
	for _, tt := range []struct{ sql, want string }{
		{"UPDATE t SET stock = 98 WHERE id = 1", "set stock=98, equal id=1"},
		{`UPDATE "app_product" SET "name" = 'a''b', "stock" = 98 WHERE "app_product"."id" = 1 RETURNING x = 3`, "set name=a'b, set stock=98, equal id=1"},
		{"/*a='b'*/ UPDATE t AS p SET p.stock = $1 WHERE (p.id = $2);", "set stock=98, equal id=1"},
		{"UPDATE t SET stock = $1::int, n = $3, m = $4 WHERE id = $2::bigint", "set stock=98, null n, unknown m, equal id=1"},
		{"UPDATE t SET n = -5 WHERE d = -7", "set n=-5, equal d=-7"},
		{"UPDATE t SET n = excluded.n", "computed n"},
		{"UPDATE t SET n = n - 1, at = now(), m = o + 1, l = 5 * n WHERE id = 1", "computed n, time at, unknown m, unknown l, equal id=1"},
		{"UPDATE t SET n = 5, at = CURRENT_TIMESTAMP(6), b = now(), c = now() + d WHERE id = 1", "set n=5, time at, time b, computed c, equal id=1"},
		{"UPDATE t SET at = now() WHERE id = 1", "computed at, equal id=1"},
		{"UPDATE t SET n = 5, at = now() WHERE at < 7", "set n=5, computed at, range at"},
		{"UPDATE t SET stock = 5 WHERE id = 1 AND stock >= 5 AND name <> 'x'", "set stock=5, equal id=1, range stock, range name"},
		{"UPDATE t SET used = true WHERE id IN (1, 2) AND used IS NULL AND lower(name) = 'x'", "set used=true, checked id, isnull used, checked name"},
		{"UPDATE t SET a = NULL, b = NULL::int, h = NULL::bool or true, c = NULL + 1, d = coalesce(NULL, 1), e = $3 WHERE f IS NULL AND g IS NOT TRUE", "null a, null b, computed h, unknown c, unknown d, null e, checked f, checked g"},
		{"UPDATE t SET a = $1 WHERE f IS NULL AND g IS NULL", "set a=98, isnull f, isnull g"},
		{"UPDATE t SET a = 1 WHERE f IS NULL OR g IS NULL", "set a=1, checked f, checked g"},
		{"UPDATE t SET a = 1 WHERE f IS NOT NULL", "set a=1, checked f"},
		{"UPDATE t SET n = 1 WHERE id = 1 OR version = 3", "set n=1, checked id, checked version"},
		{"UPDATE t SET n = 1 WHERE version = version + 1", "set n=1, checked version, checked version"},
		{"UPDATE t SET n = GREATEST(n - 1, 0)", "computed n"},
		{"UPDATE t SET n = 1", "set n=1"},
		{"UPDATE shop.T p SET n = 1", "set n=1"},
		{"UPDATE t SET (a, b) = (1, 2) WHERE id = 1", ""},
		{"UPDATE t SET n = (SELECT max(n) FROM u)", ""},
		{"UPDATE t, u SET n = 1", ""},
		{"UPDATE t SET n = 1 FROM u WHERE u.id = t.id", ""},
		{"INSERT INTO t (id, n, m) VALUES (1, 9, NULL) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, m = excluded.m, o = excluded.o", "set n=9, null m, unknown o"},
		{"INSERT INTO t (id, n) VALUES (1, $1) ON DUPLICATE KEY UPDATE n = VALUES(n), id = LAST_INSERT_ID(id)", "set n=98, computed id"},
		{"insert into t (id, n) values (1, -9) on duplicate key update n = value(n), m = 5", "set n=-9, set m=5"},
		{"INSERT INTO t (id, n) VALUES (1, 9) AS new ON DUPLICATE KEY UPDATE n = new.n", "set n=9"},
		{"INSERT INTO shop.t AS p (n, id) VALUES ($1, $2) ON CONFLICT (id) WHERE d IS NULL DO UPDATE SET n = excluded.n WHERE p.version = 3 RETURNING id", "set n=98, equal version=3"},
		{"INSERT INTO t (id, n) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n, id = excluded.n + 1", "computed n, unknown id"},
		{"INSERT INTO t (id, n, m) VALUES (1, f(9, 2), 'a' || 'b') ON CONFLICT (id) DO UPDATE SET n = excluded.n, m = excluded.m", "unknown n, unknown m"},
		{"INSERT INTO t (id, n) VALUES (1, 9), (2, 8) ON CONFLICT (id) DO UPDATE SET n = excluded.n, m = 5", "unknown n, set m=5"},
		{"INSERT INTO t VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET n = excluded.n", "unknown n"},
		{"INSERT INTO t (id, n) SELECT 1, 9 ON CONFLICT (id) DO UPDATE SET n = 9", ""},
		{"INSERT INTO t (id, n) VALUES (1, 9) ON CONFLICT DO NOTHING", ""}, {"INSERT INTO t SET n = 9 ON DUPLICATE KEY UPDATE n = 9", ""},
		{"INSERT INTO t (n) VALUES (", ""}, {"INSERT INTO t (n) VALUES (1) ON CONFLICT DO UPDATE SET", ""}, {"INSERT INTO t (n) VALUES (1) ON DUPLICATE KEY UPDATE n = VALUES(", "computed n"},
		{"UPDATE", ""}, {"UPDATE t SET", ""}, {"UPDATE t SET n", ""}, {"UPDATE t SET n =", ""}, {"SELECT 1", ""}, {"", ""},
	} {
		for _, d := range []lex.Dialect{lex.PostgreSQL, lex.MySQL} {
			sql := tt.sql
			if d == lex.MySQL {
				if strings.Contains(sql, "::") || strings.Contains(sql, `"`) {
					continue
				}
				sql = strings.NewReplacer("$1", "?", "$2", "?").Replace(sql)
			}
			var got []string
			table, operands := Update(sql, d, params)
			if name := map[bool]string{true: "app_product", false: "t"}[strings.Contains(sql, "app_product")]; operands != nil && table != name {
				t.Errorf("%s: table %q", sql, table)
			}
			for _, o := range operands {
				text := string(o.Role) + " " + o.Column
				if o.Value != "" {
					text += "=" + o.Value
				}
				got = append(got, text)
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("%s: got %q, want %q", sql, strings.Join(got, ", "), tt.want)
			}
		}
	}
}

// TestRelative: a column that is computed from itself, and near misses.
func TestRelative(t *testing.T) {
	for sql, want := range map[string]string{
		"UPDATE t SET n = n - 1, m = GREATEST(t.m + 2, 0), at = now() WHERE id = 1": "n m",
		`UPDATE "t" SET "n" = "t"."n" - $1 WHERE id = 1`:                            "n",
		"UPDATE t SET n = NULL, m = n, o = 5, p = (p)":                              "p",
		"UPDATE t SET n = 5 * m":                                                    "", "SELECT n - 1 FROM t": "", "UPDATE t, u SET n = n - 1": "",
	} {
		if got := strings.Join(Relative(sql, lex.PostgreSQL), " "); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add("UPDATE t SET n = -5, a.b = $1 WHERE (x = 'y') AND n < 3 RETURNING *")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range []lex.Dialect{lex.PostgreSQL, lex.MySQL} {
			Update(sql, d, []Param{{Text: "1"}}) // must not panic
		}
	})
}

func TestRelate(t *testing.T) {
	for _, tt := range []struct{ read, written, want string }{
		{"100", "98", "plus -2"}, {"9.00", "7.50", "plus -1.50"}, {"a", "a", "copy "}, {"abc", "abcd", "prefix d"}, {"abc", "zabc", "suffix z"}, {"abc", "x", ""}, {"0x10", "16", ""},
	} {
		kind, constant, ok := Relate(tt.read, tt.written)
		if got := string(kind) + " " + constant; ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.read, tt.written, got, tt.want)
		}
		if again, _ := kind.Apply(tt.read, constant); ok && again != tt.written {
			t.Errorf("%s to %s: applied again it is %q", tt.read, tt.written, again)
		}
	}
	for s, want := range map[string]bool{"1763800000": true, "1763800000123": true, "1763800000.25": true, "100": false, "9999999999": false, "abcdefghij": false} {
		if IsClock(s) != want {
			t.Errorf("%s: %v", s, !want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"t", "true", true}, {"0", "false", true}, {"1.0", "1", true}, {"new", "NEW", false}, {"t", "f", false}, {"true", "0", false}, {"x", "y", false}, {"", "x", false}} {
		if Same(tt.a, tt.b) != tt.want || Same(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: %v", tt.a, tt.b, !tt.want)
		}
	}
	if !SameNumber("1", "1.00") || SameNumber("1", "x") || SameNumber("1", "2") {
		t.Error("the same number")
	}
}

func TestRequest(t *testing.T) {
	tags := []trace.Tag{{Key: "route", Value: "/buy"}, {Key: "Request_ID", Value: "7"}, {Key: "traceparent", Value: "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01"}}
	for _, tt := range []struct {
		keys []string
		want string
	}{{RequestTags, "5bd66ef5095369c7b0d1f8f4bd33716a"}, {[]string{"request_id"}, "7"}, {[]string{"route"}, "/buy"}, {[]string{"other"}, ""}} {
		if got := Request(tags, tt.keys); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.keys, got, tt.want)
		}
	}
}

// TestLiteralsLimit: how many rows LIMIT lets through is no condition. The near miss stands behind a subquery's LIMIT.
func TestLiteralsLimit(t *testing.T) {
	clauses := ""
	for _, l := range Literals("SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d = 1 LIMIT 2) AND e = 3 LIMIT 4", lex.PostgreSQL) {
		clauses += l.Value + " " + l.Clause + " " + l.Column + "; "
	}
	if want := "1 where d; 2 limit ; 3 where e; 4 limit ; "; clauses != want {
		t.Errorf("got %q, want %q", clauses, want)
	}
}

// TestLoads: TypeORM's texts by which save() reads a row and writes it, and near misses.
func TestLoads(t *testing.T) {
	for sql, want := range map[string]bool{
		`SELECT "T"."id" AS "T_id", "T"."n" AS "T_n" FROM "t" "T" WHERE "T"."id" IN ($1)`:                     true,
		`SELECT "T"."id" AS "T_id" FROM "public"."t" "T" WHERE "T"."id" IN (-1, $2) /*a='b'*/`:                true,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" IN ($1) LIMIT 1`:                               false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" IN ($1) FOR UPDATE`:                            false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE (("T"."id" = $1)) LIMIT 1`:                              false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE (("T"."id" IN ($1)))`:                                   false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" IN ($1) AND "T"."n" = 1`:                       false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" IN (SELECT 1)`:                                 false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" LEFT JOIN "u" "U" ON "U"."t"="T"."id" WHERE "T"."id" IN ($1)`: false,
		`SELECT "T"."id" AS "T_id", count(*) FROM "t" "T" WHERE "T"."id" IN ($1)`:                             false,
		`SELECT "T"."id" AS "id" FROM "t" "T" WHERE "T"."id" IN ($1)`:                                         false,
		`SELECT T.id AS T_id FROM t T WHERE T.id IN (1)`:                                                      false,
		`SELECT * FROM "t" WHERE "id" IN ($1)`:                                                                false,
		``:                                                                                                    false,
		`SELECT "i"."id" AS "id", "i"."t" AS "t" FROM "i" "i" WHERE (("i"."t" = $1))`:                         true,
		`SELECT "I"."id" AS "I_id", "I"."t" AS "I_t" FROM "i" "I" WHERE (("I"."t" = $1))`:                     false,
		`SELECT "I"."id" AS "id" FROM "i" "I" WHERE (("I"."t" = $1))`:                                         false,
		`UPDATE "t" SET "n" = $1 WHERE "id" IN ($2)`:                                                          true,
		`UPDATE "t" SET "n" = $1, "rev" = "rev" + 1 WHERE "id" IN ($2) RETURNING "rev"`:                       true,
		`UPDATE "t" SET "n" = $1 WHERE "id" = $2`:                                                             true,
		`UPDATE "t" SET "n" = $1, "rev" = "rev" + 1 WHERE "id" = -2 RETURNING "rev"`:                          true,
		`UPDATE "t" SET "n" = $1 WHERE "id" = $2 AND "rev" = $3`:                                              false,
		`UPDATE "t" SET "n" = $1 WHERE "id" = "u"`:                                                            false,
		`UPDATE "t" SET "n" = $1 WHERE "id" =`:                                                                false,
		`SELECT "T"."id" AS "T_id", "T"."n" AS "T_n" FROM "t" "T" WHERE "T"."id" = $1`:                        true,
		`SELECT "t"."id" AS "t_id", "t"."n" AS "t_n" FROM "t" "t" WHERE "t"."id" = $1`:                        false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" = $1 LIMIT 1`:                                  false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" = $1 FOR UPDATE`:                               false,
		`SELECT "T"."id" AS "T_id" FROM "t" "T" WHERE "T"."id" = "T"."n"`:                                     false,
		`UPDATE "t" SET "n" = $1 WHERE "id" IN ($2) AND "rev" = $3`:                                           false,
		`UPDATE "t" SET "n" = $1 WHERE "id" IN ()`:                                                            false,
		`UPDATE "t" SET "n" = $1`:                                                                             false,
	} {
		got := Loads
		if strings.Contains(sql, `"I"`) || strings.Contains(sql, `"i"`) {
			got = LoadsRelated
		}
		if strings.HasPrefix(sql, "UPDATE") {
			got = Saves
		}
		if got(sql, lex.PostgreSQL) != want {
			t.Errorf("%s: %v", sql, !want)
		}
		if sql = strings.ReplaceAll(sql, `"`, "`"); got(sql, lex.MySQL) != want && !strings.Contains(sql, "$") {
			t.Errorf("%s: %v", sql, !want)
		}
	}
}
