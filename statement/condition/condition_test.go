package condition

import (
	"math"
	"testing"
)

// TestHolds has conditions, images and their truth.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		where, image string
		want         Truth
	}{
		{"(true)", "", True},
		{"(= number a 1)", "a 1", True}, {"(= number a 1)", "a 1.0", True}, {"(= number a 1)", "a 01", True}, {"(= number a 1)", "a 2", False},
		{"(= number a -0)", "a 0.00", True}, {"(< number a 9)", "a 10", False}, {"(< number a -9)", "a -10", True}, {"(< number a 0.1)", "a 0.09", True},
		{"(> number a 12345678901234567890123.5)", "a 12345678901234567890123.51", True}, {"(>= number a 1)", "a NaN", Unsure}, {"(= number a 1)", "a 1e0", Unsure},
		{"(= number a 1)", "a null", Null}, {"(= number a null)", "a 1", Null}, {"(= number a 1)", "b 1", Unsure},
		{"(not (= number a 1))", "a null", Null}, {"(not (= number a 1))", "a 2", True},
		{"(null a)", "a null", True}, {"(null a)", `a "null"`, False}, {"(null a)", `a ""`, False}, {"(null a)", "b 1", Unsure},
		{"(in number a 1 2)", "a 2", True}, {"(in number a 1 2)", "a 3", False}, {"(in number a 1 null)", "a 3", Null}, {"(in number a 1 null)", "a 1", True},
		{"(and (= number a 1) (= number b 1))", "a 1 b 2", False}, {"(and (= number a 1) (unsure why))", "a 2", False}, {"(and (= number a 1) (unsure why))", "a 1", Unsure},
		{"(and (null a) (= number b 1))", "a null b null", Null}, {"(and)", "", True}, {"(or)", "", False},
		{"(or (= number a 1) (unsure why))", "a 1", True}, {"(or (= number a 1) (unsure why))", "a 2", Unsure}, {"(or (= number a 1) (= number b 1))", "a null b 2", Null},
		{"(= text a x)", "a x", True}, {"(= text a x)", "a X", False}, {"(= text a x)", `a "x "`, False}, {"(prefix text a x)", "a xy", True}, {"(prefix text a x)", "a yx", False},
		{"(= folded a x)", "a x", True}, {"(= folded a x)", "a X", Unsure}, {"(= folded a x)", "a y", False}, {"(= folded a x)", `a "x "`, Unsure}, {"(= folded a ss)", "a ß", Unsure}, {"(<> folded a x)", "a y", True},
		{"(< text a b)", "a a", True}, {"(< text a b)", "a b1", False}, {"(<= text a b)", "a b", True}, {"(< text a b)", "a A", Unsure}, {"(< text a b)", "a 9", True}, {"(< text a b)", "a _", Unsure}, {"(> folded a b)", "a c", True},
		{"(< text a b)", `a "b "`, Unsure}, {"(> text a b)", "a ba", True}, {"(< text a b)", "a ä", Unsure}, {`(< text a "x 2")`, `a "x 10"`, True}, {"(< text a x-2)", "a x-10", True}, {"(< text a x2)", "a x-1", Unsure}, {"(< folded a b)", "a null", Null},
		{"(like text a %ob%)", "a bob", True}, {"(like text a %ob%)", "a bOb", False}, {"(like folded a %ob%)", "a bOb", Unsure}, {"(like folded a %ob%)", "a bab", False}, {"(like text a b_b)", "a bob", True}, {"(like text a b_b)", "a boob", False},
		{"(like text a %a%b)", "a xaabbab", True}, {"(like text a %a%b)", "a xaabba", False}, {"(like text a _%)", `a ""`, False}, {"(like text a %%)", `a ""`, True}, {"(like text a %o%)", "a bö", Unsure}, {"(like text a %o%)", "a null", Null},
		{"(ilike text a %ob%)", "a bOb", True}, {"(ilike text a %ib%)", "a bIb", Unsure}, {"(ilike text a %ob%)", "a bab", False}, {"(ilike folded a %ob%)", "a bOb", True}, {"(ilike text a %ob%)", "b 1", Unsure},
		{"(alike text a x)", "a X", True}, {"(alike text a x)", "a y", False}, {"(alike text a x)", "a xx", False}, {"(alike text a x)", "a null", Null}, {"(alike text a null)", "a x", Null},
		{"(alike text a i)", "a I", Unsure}, {"(alike text a i)", "a i", True}, {"(alike text a ix)", "a iy", False}, {"(alike text a é)", "a É", Unsure}, {"(alike text a é)", "a é", True},
		{`(alike text a "x ")`, "a x", False}, {`(alike folded a "x ")`, "a x", Unsure}, {"(alike folded a x)", "a X", True}, {"(alike folded a x)", "a y", False},
		{"(modulo number a 3 0)", "a 30", True}, {"(modulo number a 3 0)", "a 31", False}, {"(modulo number a 3 -1)", "a -31", True}, {"(modulo number a 0 0)", "a 30", Unsure}, {"(modulo number a 3 0)", "a 1.5", Unsure},
		{"(= bool a t)", "a true", True}, {"(= bool a true)", "a 0", False},
		{"(= uuid a 0189F7E2-5A4B-7C3D-8E9F-000000000001)", "a 0189f7e2-5a4b-7c3d-8e9f-000000000001", True}, {"(= uuid a 1)", "a 1", Unsure},
		{"(< date a 2026-11-22)", "a 2026-11-21", True}, {"(< date a 2026-11-22)", "a infinity", Unsure}, {"(< date a 2026-11-31)", "a 2026-11-30", Unsure},
		{"(= time a 09:00)", "a 09:00:00.000", True}, {"(< time a 09:00:00.5)", "a 09:00:00.49", True},
		{`(= timestamp a "2026-11-22 09:00")`, "a 2026-11-22T09:00:00", True}, {`(= timestamp a "2026-11-22 09:00:00+01")`, "a 2026-11-22T09:00:00", Unsure},
		{`(= local a "2026-11-22T09:00:00.000Z")`, "a 2026-11-22T09:00:00", True}, {`(< local a "2026-11-22 09:00:00.5-03:30")`, "a 2026-11-22T09:00:00", True},
		{`(< local a "2026-11-22 09:00:00+01")`, "a 2026-11-22T09:00:00", False}, {`(= local a "2026-11-22 09:00:00 CET")`, "a 2026-11-22T09:00:00", Unsure},
		{"(< local a 2026-11-22)", "a 2026-11-22T00:00:00", False}, {"(> local a 2026-11-22)", "a 2026-11-22T00:00:00.000001", True}, {"(= timestamp a 2026-11-22)", "a 2026-11-22T00:00:00", Unsure},
		{`(= universal a "2026-11-22 09:00")`, "a 2026-11-22T10:00:00+01:00", True}, {"(<= universal a 2026-11-22)", "a 2026-11-22T00:00:00.000001+00:00", False},
		{`(= universal a "2026-11-22 09:00:00+01")`, "a 2026-11-22T08:00:00+00:00", True}, {`(= universal a "2026-11-22 09:00:00 CET")`, "a 2026-11-22T08:00:00+00:00", Unsure},
		{`(= local a "2026-11-22 09:00:00+1")`, "a 2026-11-22T09:00:00", Unsure},
		{`(= instant a "2026-11-22 09:00:00+01")`, "a 2026-11-22T08:00:00+00:00", True}, {`(< instant a "2026-11-22 09:00:00+01")`, "a 2026-11-22T08:00:00.000001+00:00", False},
		{`(= instant a "2026-11-22 09:00:00.000 +01:00")`, "a 2026-11-22T08:00:00+00:00", True}, {`(= instant a "2026-11-22 09:00:00.000000+0130")`, "a 2026-11-22T07:30:00+00:00", True},
		{`(= instant a "2026-11-22 09:00:00  +01:00")`, "a 2026-11-22T08:00:00+00:00", Unsure}, {`(= instant a "2026-11-22 09:00:00+01 00")`, "a 2026-11-22T08:00:00+00:00", Unsure}, {`(= instant a "2026-11-22 09:00:00+013")`, "a 2026-11-22T08:00:00+00:00", Unsure},
		{`(= local a "2026-1-2 9:00")`, "a 2026-01-02T09:00:00", True}, {`(= timestamp a "2026-1-12 9:00:00.5")`, "a 2026-01-12T09:00:00.5", True}, {"(< date a 2026-1-2)", "a 2026-01-02", False},
		{`(= instant a "2026-1-2 9:00 UTC")`, "a 2026-01-02T09:00:00+00:00", True}, {"(> time a 9:00)", "a 08:59:59", False}, {"(has daterange a 2026-1-2)", `a "[2026-01-01,2026-01-03)"`, True}, {`(&& daterange a "[2026-1-2,2026-1-3)")`, `a "[2026-01-03,2026-01-04)"`, False},
		{`(= local a "2026-1-2 9:0")`, "a 2026-01-02T09:00:00", Unsure}, {"(< date a 2026-1-)", "a 2026-01-02", Unsure}, {"(< date a 2026-1)", "a 2026-01-02", Unsure}, {"(< date a 2026-)", "a 2026-01-02", Unsure}, {`(< date a 2026--1)`, "a 2026-01-02", Unsure},
		{`(= instant a "2026-11-22 09:00:00")`, "a 2026-11-22T08:00:00+00:00", Unsure},
	} {
		c, err := Parse(tt.where)
		image, err2 := ParseImage(tt.image)
		if err != nil || err2 != nil {
			t.Errorf("%s of %s: %v, %v", tt.where, tt.image, err, err2)
			continue
		}
		if got := c.Holds(image); got != tt.want {
			t.Errorf("%s of %s is %d, want %d", tt.where, tt.image, got, tt.want)
		}
		if i, ok := c.Interval(); ok {
			if n, whole := Integer(image[i.Column]); whole && (n < i.From || n > i.To) && tt.want != False {
				t.Errorf("%s of %s is %d, outside of %v", tt.where, tt.image, tt.want, i)
			}
		}
		if back, err := Parse(c.String()); err != nil || back.String() != c.String() {
			t.Errorf("%s is written %s: %v", tt.where, c, err)
		}
	}
}

// TestNextDay: the days behind the last ones of months and years.
func TestNextDay(t *testing.T) {
	for day, want := range map[string]string{"2026-01-01": "2026-01-02", "2026-01-31": "2026-02-01", "2024-02-28": "2024-02-29", "2026-02-28": "2026-03-01", "2026-12-31": "2027-01-01", "9999-12-31": "", "2026-02-29": "", "infinity": ""} {
		if got, ok := nextDay(day); got != want || ok != (want != "") {
			t.Errorf("behind %s: %q, %t, want %q", day, got, ok, want)
		}
	}
}

// TestInterval has conditions and the integers for which they are not certainly false.
// TestLists: lists that are known with the answer, and near misses.
func TestLists(t *testing.T) {
	word := func(list ...string) (values []Value) {
		for _, v := range list {
			values = append(values, &v)
		}
		return append([]Value{}, values...)
	}
	c := And(Condition{}, Compare("=", Number, "hour", word("9")...), And(Listed(Number, "room", 1), Always))
	c = c.Bind(func(int) (Value, bool) { return nil, false })
	for _, tt := range []struct {
		lists [][]Value
		want  string
	}{
		{[][]Value{word("7"), word("1", "2")}, "(and (= number hour 9) (in number room 1 2))"},
		{[][]Value{word("7"), word("1")}, "(and (= number hour 9) (= number room 1))"},
		{[][]Value{word("7"), word()}, "(and (= number hour 9) (not (true)))"},
		{[][]Value{word("7"), nil}, `(and (= number hour 9) (unsure "the rows of a join were not listed"))`},
		{[][]Value{word("7")}, `(and (= number hour 9) (unsure "the rows of a join were not listed"))`},
		{nil, `(and (= number hour 9) (unsure "the rows of a join were not listed"))`},
	} {
		if got := c.WithLists(tt.lists).String(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.lists, got, tt.want)
		}
	}
}

// TestBarring: NOT IN is not true for a value if it is among those of the rows, or NULL is, or it is NULL.
func TestBarring(t *testing.T) {
	one, two := "1", "2"
	c := And(Compare("=", Number, "hour", &two), Barring(Number, "room", 0))
	for _, tt := range []struct {
		list []Value
		want string
	}{
		{[]Value{&one}, "(and (= number hour 2) (or (null room) (= number room 1)))"},
		{[]Value{&one, nil}, "(and (= number hour 2) (true))"},
		{[]Value{}, "(and (= number hour 2) (or (null room) (not (true))))"},
		{nil, `(and (= number hour 2) (unsure "the rows of a join were not listed"))`},
	} {
		if got := c.WithLists([][]Value{tt.list}).String(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.list, got, tt.want)
		}
	}
	if got, want := c.WithoutLists().String(), "(and (= number hour 2) (or (null room) (not (null room))))"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestBetween: BETWEEN is not certain if one of its bounds is not (MySQL manual, 14.4.2).
func TestBetween(t *testing.T) {
	first, second, nine := "$1", "$2", "=9"
	for _, tt := range []struct {
		c    Condition
		want string
	}{
		{Open(">=", Number, "n", &first).Between(Open("<=", Number, "n", &second)), "(and (>= number n 1) (<= number n 2))"},
		{Open(">=", Number, "n", &nine).Between(Open("<=", Number, "n", &second)), "(and (>= number n 9) (<= number n 2))"},
		{Open(">=", Number, "n", &nine).Between(Open("<=", Number, "n", &[]string{"$3"}[0])), `(unsure "the value of parameter $3 is not known")`},
		{Open(">=", Number, "n", &nine).Between(Unknown("a text")), `(unsure "a text")`},
		{Open(">=", Number, "n", &nine).Between(Open("<=", Number, "n", nil)), "(and (>= number n 9) (<= number n null))"},
	} {
		got := tt.c.Bind(func(n int) (Value, bool) {
			v := []string{"1", "2"}[min(n, 2)-1]
			return &v, n < 3
		}).String()
		if got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

func TestInterval(t *testing.T) {
	for _, tt := range []struct {
		where    string
		want     Interval
		from, to bool // it ends there
	}{
		{"(= number a 5)", Interval{"a", 5, 5}, true, true}, {"(in number a 7 -3 5)", Interval{"a", -3, 7}, true, true},
		{"(and (>= number a 3) (<= number a 9))", Interval{"a", 3, 9}, true, true}, {"(and (> number a 3) (unsure why) (< number b 9))", Interval{"a", 3, 0}, true, false},
		{"(and (unsure why) (and (= number b 1) (< number a 9)))", Interval{"b", 1, 1}, true, true}, {"(and (= number a 1) (= number a 2))", Interval{"a", 2, 1}, true, true},
		{"(<= number a 999999999999999999)", Interval{"a", 0, 999999999999999999}, false, true},
		// Near misses: nothing is certain of these.
		{"(or (= number a 5) (= number b 5))", Interval{}, false, false}, {"(not (= number a 5))", Interval{}, false, false}, {"(<> number a 5)", Interval{}, false, false},
		{"(= number a null)", Interval{}, false, false}, {"(in number a 1 null)", Interval{}, false, false}, {"(= number a 1.5)", Interval{}, false, false},
		{"(= text a 5)", Interval{}, false, false}, {"(modulo number a 3 1)", Interval{}, false, false}, {"(= number a 1000000000000000000)", Interval{}, false, false}, {"(and)", Interval{}, false, false},
	} {
		if !tt.from && tt.want.Column != "" {
			tt.want.From = math.MinInt64
		}
		if !tt.to && tt.want.Column != "" {
			tt.want.To = math.MaxInt64
		}
		c, err := Parse(tt.where)
		got, ok := c.Interval()
		if !ok {
			got = Interval{}
		}
		if err != nil || ok != (tt.want.Column != "") || got != tt.want {
			t.Errorf("%s: got %v, %t, %v; want %v", tt.where, got, ok, err, tt.want)
		}
	}
}

// TestCompare: a value or an operator that is not certain gives no comparison.
func TestCompare(t *testing.T) {
	text := func(s string) Value { return &s }
	for _, tt := range []struct {
		c    Condition
		want string
	}{
		{Compare("=", Number, "a", text("1")), "(= number a 1)"},
		{Compare("=", Number, "a", text("x")), `(unsure "the value of a is not of a form that certainly compares")`},
		{Compare("<", Bool, "a", text("true")), `(unsure "the order of a depends on its collation")`}, {Compare("like", Number, "a", text("1%")), `(unsure "a has no letters of certain case")`},
		{Compare("=", Other, "a", text("x")), `(unsure "the value of a is not of a form that certainly compares")`},
		{Like("like", Text, "a", text("x%")), "(prefix text a x)"}, {Like("like", Text, "a", text("x")), "(= text a x)"}, {Like("like", Text, "a", text("x_%")), `(like text a x_%)`},
		{Like("like", Folded, "a", text("x%")), `(prefix folded a x)`}, {Like("like", Number, "a", text("1%")), `(unsure "a has no letters of certain case")`}, {Like("like", Text, "a", text(`1\%%`)), `(unsure "the pattern of LIKE has escapes")`},
		{Like("ilike", Text, "a", text("x")), "(alike text a x)"}, {Like("ilike", Text, "a", text("x%")), "(ilike text a x%)"}, {Like("ilike", Text, "a", nil), "(= text a null)"},
		{Open("=", Number, "a", text("$1")).Bind(func(int) (Value, bool) { return text("5"), true }), "(= number a 5)"},
		{Open("=", Number, "a", text("$1")).Bind(func(int) (Value, bool) { return nil, true }), "(= number a null)"},
		{Open("=", Number, "a", text("$1")).Bind(func(int) (Value, bool) { return nil, false }), `(unsure "the value of parameter $1 is not known")`},
		{Open("like", Text, "a", text("=x_%"), text("=!")).Bind(nil), "(like text a x_%)"}, {Open("like", Text, "a", text("=x!_%"), text("=!")).Bind(nil), `(unsure "the pattern of LIKE has escapes")`},
		{Open("upper like", Text, "a", text("=A%"), text("=a")).Bind(nil), `(unsure "the pattern of LIKE has escapes")`}, {Open("like", Text, "a", nil, text("=!")).Bind(nil), "(= text a null)"},
		{Open("in", Text, "a", text("=$1"), text("$2")).Bind(func(int) (Value, bool) { return text("b c"), true }), `(in text a $1 "b c")`},
	} {
		if got := tt.c.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`(and (= number a 1) (unsure "why so") (in text b x null ""))`, `a 1 b "x y" c null`)
	f.Add(`(= number (sum "") 1)`, ``)
	f.Add(`(= number ""0)`, ``)
	f.Add(`(or (>= number (sum +a -b "=1 2" ~3 0) 0) (&& daterange (range +d +e "=[]") [2026-01-01,]) (overlaps date (period +d =2026-01-01) "[2026-01-01,2026-01-02]"))`, `a 1 b 2 d 2026-01-01 e null`)
	f.Add(`(and (= text (left (trim +a) =3) ann) (> number (sum +n -(product +n =2) (length +a)) 1) (null (lower +a)) (@> json g "{\"k\":[1,{\"b\":null}]}") (member texts h x) (? json g k) (= number (number (->> (-> +g =k) =b)) 1))`, `a " anna" n 3 g "{\"k\":[1]}" h {x,NULL}`)
	f.Add(`(or (= local (date_trunc =day (plus +l "=90 minutes")) 2026-1-2) (= number (extract =hour (utc +z)) 9) (= text (to_char +l =YYYY-MM) 2026-01) (= text (#>> +g {a,b}) x) (< number (quotient (remainder (bitand (abs +n) =7) =4) =2) 1))`, `l 2026-01-01T23:00:00 z 2026-01-01T23:00:00+01:00 n -9 g "{\"a\":{\"b\":\"x\"}}"`)
	f.Fuzz(func(t *testing.T, where, image string) {
		if c, err := Parse(where); err == nil {
			back, err := Parse(c.String())
			if err != nil || back.String() != c.String() {
				t.Errorf("%s is written %s: %v", where, c, err)
			}
			values, _ := ParseImage(image)
			holds := c.Holds(values)
			if i, ok := c.Interval(); ok && holds != False {
				if n, whole := Integer(values[i.Column]); whole && (n < i.From || n > i.To) {
					t.Errorf("%s of %s is %d, outside of %v", where, image, holds, i)
				}
			}
			c.Words()
		}
	})
}

// TestWordsOfParts: beside another condition, what holds for all rows is not worth words.
func TestWordsOfParts(t *testing.T) {
	for text, want := range map[string]string{`(and (= number room 1) (or (= number hour 9) (unsure "why")))`: "room = 1 and hour = 9", `(or (= number hour 9) (unsure "why") (null hour))`: "hour = 9 or hour is null", `(or (unsure "why") (unsure "why"))`: "... or ...",
		`(not (null hour))`: "hour is not null", `(not (= text guest ann))`: "guest <> 'ann'", `(not (in number room 1 2))`: "room not in (1, 2)", `(not (prefix text guest a))`: "guest not like 'a%'",
		`(not (< number room 1))`: "not (room < 1)", `(not (or (= number room 1) (null hour)))`: "not (room = 1 or hour is null)",
		`(and (= number @@foreign_key_checks 1) (= number room 1))`: "room = 1", `(= number @@foreign_key_checks 1)`: "true",
		`(and (= number room 1) (true))`: "room = 1", `(or (= number room 1) (true))`: "true", `(true)`: "true", `(and (true) (and))`: "true", `(and (= number room 1) (null hour))`: "room = 1 and hour is null"} {
		c, err := Parse(text)
		if got := c.Words(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestWordsOfTerms: what conditions that compute are called.
func TestWordsOfTerms(t *testing.T) {
	for text, want := range map[string]string{
		"(>= number (sum +n -reserved =2) 0)": "n + 2 >= reserved", "(< number (sum -n) 0)": "0 < n", "(= number (sum +n -m) 5)": "n - m = 5", "(< number (coalesce +n =0) 1)": "coalesce(n, 0) < 1",
		"(= number (extract =year (utc +at)) 2026)": "extract(year from at) = 2026", "(> timestamp (plus +at =1 =HOUR) 2026-01-01)": "at + interval '1 HOUR' > '2026-01-01'", "(= text (->> (-> +doc =a) =b) x)": "doc->'a'->>'b' = 'x'",
		"(< number (product +n +price) 100)": "n * price < 100", "(= text (left (trim +name) =3) ann)": "left(trim(name), 3) = 'ann'", "(member texts tags a)": "'a' = any(tags)",
		`(&& daterange (range +begins +ends "=[]") "[\"2026-01-01\",2026-01-03)")`: "[begins, ends] && '[2026-01-01,2026-01-03)'", "(has daterange during 2026-01-01)": "during @> '2026-01-01'",
		`(overlaps date (period +a +b) "[\"2026-01-01\",\"2026-01-02\"]")`: "(a, b) overlaps ('2026-01-01', '2026-01-02')",
	} {
		c, err := Parse(text)
		if got := c.Words(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestArrayNull: with array_nulls = off, NULL in the text of an array is a text of four letters.
func TestArrayNull(t *testing.T) {
	for kind, certain := range map[Kind]bool{Text: false, Folded: false, Number: true} {
		array := "{1,NULL}"
		if c := (Condition{Column: "a", Kind: kind}).any(&array); (c.Op == "in") != certain {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

// TestWhole: which texts compare with a number as the integer does, and near misses.
func TestWhole(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "9": true, "-12": true, "999999999999999": true, "": false, "-0": false, "+9": false, "09": false, "9.0": false, " 9": false, "9 ": false, "1e3": false, "9007199254740993": false, "x": false} {
		if Whole(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
