package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// unitOf makes a unit: texts, and the rows that each brought ("name=value name=value", rows separated by |).
func unitOf(t *testing.T, list ...string) *Unit {
	t.Helper()
	u := &Unit{Session: 1, tables: map[string]bool{}, Whole: true}
	prep := newPreparer(&Config{Describe: postgres.Describe, Backend: engine.Descriptor{Product: product.Of("postgres"), Protocol: engine.ProtocolPostgres}})
	for i := 0; i < len(list); i += 2 {
		s := &Step{N: i/2 + 1, Statement: &trace.Statement{SQL: list[i]}}
		if strings.Contains(list[i], "$1") {
			s.Statement.Params = []trace.Param{{Value: "x"}}
		}
		prep.prepare(s)
		if s.Skip != "" {
			t.Fatalf("%s: %s", list[i], s.Skip)
		}
		s.Answer = *answerOf(list[i+1])
		u.add(s)
	}
	return u
}

func answerOf(text string) *answer.Answer {
	a := &answer.Answer{Results: []answer.Result{{}}}
	r := &a.Results[0]
	var n int64
	if _, err := fmt.Sscanf(text, "%d rows", &n); err == nil {
		r.Affected = n
		return a
	}
	r.Columns = []answer.Column{}
	for i, row := range strings.Split(text, "|") {
		var values []answer.Value
		for _, f := range strings.Fields(row) {
			name, v, _ := strings.Cut(f, "=")
			if i == 0 {
				r.Columns = append(r.Columns, answer.Column{Name: name})
			}
			values = append(values, answer.Value(v))
		}
		if values != nil {
			r.Rows = append(r.Rows, values)
		}
	}
	return a
}

func TestRecompute(t *testing.T) {
	const read, write = "SELECT uses_left FROM coupon WHERE code = 'A'", "UPDATE coupon SET uses_left = 9 WHERE code = 'A'"
	tests := []struct {
		name string
		unit []string // statements and what they brought in the trace
		now  []string // and what they bring now
		want []string // the statements that change; empty: none
		mark string   // part of the reason
	}{
		{"minus a constant", []string{read, "uses_left=10", write, "1 rows"}, []string{"uses_left=5", "1 rows"},
			[]string{"UPDATE coupon SET uses_left = 4 WHERE code = 'A'"}, ""},
		{"nothing changed", []string{read, "uses_left=10", write, "1 rows"}, []string{"uses_left=10", "1 rows"}, nil, ""},
		{"in quotes with a cast", []string{read, "uses_left=10", "UPDATE coupon SET uses_left = '9'::int4 WHERE code = 'A'", "1 rows"}, []string{"uses_left=5", "1 rows"},
			[]string{"UPDATE coupon SET uses_left = '4'::int4 WHERE code = 'A'"}, ""},
		{"the database computes: the literal is none of the application's results", []string{read, "uses_left=10", "UPDATE coupon SET uses_left = uses_left - 1 WHERE code = 'A'", "1 rows"},
			[]string{"uses_left=5", "1 rows"}, nil, "it read"},
		{"under another name", []string{"SELECT uses_left AS n FROM coupon WHERE code = 'A'", "n=10", write, "1 rows"}, []string{"n=5", "1 rows"},
			[]string{"UPDATE coupon SET uses_left = 4 WHERE code = 'A'"}, ""},
		{"a column that an ORM names after its table", []string{"SELECT room.number AS room_number, room.price AS room_price FROM room WHERE room.number = 2", "room_number=2 room_price=82.50",
			"UPDATE room SET price=87.75 WHERE room.number = 2", "1 rows"}, []string{"room_number=2 room_price=90.00", "1 rows"}, []string{"UPDATE room SET price=95.25 WHERE room.number = 2"}, ""},
		{"a sum is no column", []string{"SELECT number, price + tax AS n FROM room WHERE number = 2", "number=2 n=8", "UPDATE room SET tax = 9 WHERE number = 2", "1 rows"}, []string{"number=2 n=20", "1 rows"},
			nil, "it read"},
		{"the next number of a sequence", []string{"SELECT nextval('entry_seq')", "nextval=7", "INSERT INTO entry (id, n) VALUES (7, 1)", "1 rows"}, []string{"nextval=9", "1 rows"},
			[]string{"INSERT INTO entry (id, n) VALUES (9, 1)"}, ""},
		{"decimals", []string{"SELECT price FROM coupon WHERE code = 'A'", "price=10.50", "UPDATE coupon SET price = 9.25 WHERE code = 'A'", "1 rows"}, []string{"price=1.00", "1 rows"},
			[]string{"UPDATE coupon SET price = -0.25 WHERE code = 'A'"}, ""},
		{"the row that the write names", []string{"SELECT id, n FROM coupon", "id=17 n=1|id=18 n=2", "UPDATE coupon SET n = 3 WHERE id = 18", "1 rows"}, []string{"id=17 n=1|id=18 n=5", "1 rows"},
			[]string{"UPDATE coupon SET n = 6 WHERE id = 18"}, ""},
		{"a text with something behind it", []string{"SELECT log FROM coupon WHERE code = 'A'", "log=ab", "UPDATE coupon SET log = 'abc' WHERE code = 'A'", "1 rows"}, []string{"log=xy", "1 rows"},
			[]string{"UPDATE coupon SET log = 'xyc' WHERE code = 'A'"}, ""},
		{"a copy into another table", []string{"SELECT id FROM coupon WHERE code = 'A'", "id=4711", "INSERT INTO used (coupon_id) VALUES (4711)", "1 rows"}, []string{"id=4712", "1 rows"},
			[]string{"INSERT INTO used (coupon_id) VALUES (4712)"}, ""},
		{"an input is not a copy", []string{"SELECT n, id FROM coupon WHERE id = 4711", "n=1 id=4711", "INSERT INTO used (coupon_id) VALUES (4711)", "1 rows"}, []string{"n=2 id=4711", "1 rows"}, nil, "it read"},
		{"a count decides: not known what then", []string{"SELECT count(*) FROM coupon", "count=0", "INSERT INTO coupon (code) VALUES ('B')", "1 rows"}, []string{"count=1", "1 rows"}, nil, "it read"},
		{"ids that are alike: the row's own counts, not the nearest", []string{"SELECT id, used FROM coupon WHERE code = 'A'", "id=1 used=f", "INSERT INTO coupon_use (coupon_id) VALUES (1) RETURNING id", "id=1",
			"UPDATE coupon SET used = true WHERE id = 1", "1 rows"}, []string{"id=1 used=f", "id=2", "1 rows"}, nil, "it read"},
		{"near miss: the id of the row that was put in", []string{"SELECT id FROM coupon WHERE code = 'A'", "id=1", "INSERT INTO coupon_use (coupon_id) VALUES (1) RETURNING id", "id=1",
			"UPDATE coupon_use SET paid = true WHERE id = 1", "1 rows"}, []string{"id=1", "id=2", "1 rows"}, []string{"UPDATE coupon_use SET paid = true WHERE id = 2"}, ""},
		{"ids of two tables that are alike: the one that the column is named after", []string{"SELECT id FROM coupon WHERE code = 'A'", "id=1", "SELECT id FROM customer WHERE name = 'x'", "id=1",
			"INSERT INTO coupon_use (coupon_id, customer_id) VALUES (1, 1)", "1 rows"}, []string{"id=3", "id=4", "1 rows"}, []string{"INSERT INTO coupon_use (coupon_id, customer_id) VALUES (3, 4)"}, ""},
		{"the id of another table in a column that is named otherwise", []string{"SELECT id FROM person WHERE name = 'x'", "id=1", "INSERT INTO orders (customer_id) VALUES (1)", "1 rows"},
			[]string{"id=4", "1 rows"}, []string{"INSERT INTO orders (customer_id) VALUES (4)"}, ""},
		{"optimistic locking that fails", []string{"SELECT version FROM coupon WHERE code = 'A'", "version=3", "UPDATE coupon SET used = true WHERE code = 'A' AND version = 3", "1 rows", "COMMIT", "0 rows"},
			[]string{"version=3", "0 rows", "0 rows"}, nil, "0 rows changed in place of 1"},
		{"a count under another name decides, too", []string{"SELECT COUNT(*) AS __count FROM doctor WHERE on_call", "__count=3", "UPDATE doctor SET shift = 0 WHERE id = 1", "1 rows"}, []string{"__count=2", "1 rows"}, nil, "it read"},
		{"a read after which nothing is written", []string{"SELECT count(*) FROM coupon", "count=0"}, []string{"count=1"}, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := unitOf(t, test.unit...)
			var answers []*answer.Answer
			for _, text := range test.now {
				answers = append(answers, answerOf(text))
			}
			texts, mark := NewLane(u, lex.PostgreSQL).Recompute(answers, lex.PostgreSQL)
			var changed []string
			for i, s := range texts {
				if s != u.Steps[i].SQL {
					changed = append(changed, s)
				}
			}
			if strings.Join(changed, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got %q, want %q", changed, test.want)
			}
			if (mark == "") != (test.mark == "") || !strings.Contains(mark, test.mark) {
				t.Errorf("marked %q, want %q", mark, test.mark)
			}
		})
	}
}

// TestIndifferent: how many rows an UPDATE changed in the MySQL family says nothing of a row that had the value already, unless LIMIT or a condition on what it
// sets chose it.
func TestIndifferent(t *testing.T) {
	describe := mysql.New(mysql.MariaDB).Describe
	prep := newPreparer(&Config{Describe: describe, Backend: engine.Descriptor{Product: product.Of("mariadb"), Protocol: engine.ProtocolMySQL}})
	for sql, want := range map[string]bool{
		"UPDATE seat SET guest = 'a' WHERE room = 1":                    true,
		"UPDATE seat SET guest = 'a' WHERE room = 1 LIMIT 1":            false,
		"UPDATE seat SET guest = 'a' WHERE room = 1 ORDER BY n LIMIT 2": false,
		"UPDATE seat SET guest = 'a' WHERE guest = 'b'":                 false,
		"UPDATE seat SET taken = true WHERE room = 1 AND NOT taken":     false,
	} {
		u := &Unit{Session: 1, tables: map[string]bool{}}
		for _, sql := range []string{sql, "COMMIT"} {
			s := &Step{Statement: &trace.Statement{SQL: sql}, Answer: *answerOf("1 rows")}
			prep.prepare(s)
			u.add(s)
		}
		_, mark := NewLane(u, lex.MySQL).Recompute([]*answer.Answer{answerOf("0 rows"), answerOf("0 rows")}, lex.MySQL)
		if (mark == "") != want {
			t.Errorf("%s: marked %q, want a mark: %v", sql, mark, !want)
		}
	}
}

// TestFlowFlag: in the MySQL family a BOOLEAN is a number. What a unit sets from 0 to 1 is no counter; in a column of another type it may be one.
func TestFlowFlag(t *testing.T) {
	for kind, want := range map[string]int{"tinyint": 0, "int": 1} {
		u := unitOf(t, "SELECT on_call FROM doctor WHERE id = 1", "on_call=0", "UPDATE doctor SET on_call = 1 WHERE id = 1", "1 rows")
		u.Steps[0].Answer.Results[0].Columns[0].Type = kind
		if got := u.flows(lex.MySQL); len(got) != want {
			t.Errorf("%s: %v, want %d", kind, got, want)
		}
	}
	u := unitOf(t, "SELECT n FROM doctor WHERE id = 1", "n=7", "UPDATE doctor SET n = 8 WHERE id = 1", "1 rows")
	u.Steps[0].Answer.Results[0].Columns[0].Type = "tinyint"
	if got := u.flows(lex.MySQL); len(got) != 1 {
		t.Errorf("a small number: %v, want one more", got)
	}
}

func TestRequestJoin(t *testing.T) {
	tagged := func(session uint64, lo, hi int64, request string) *Unit {
		return &Unit{Session: session, lo: lo, hi: hi, Request: request, Steps: []*Step{{start: lo * 1e6}}, tables: map[string]bool{}, txns: 1}
	}
	units := []*Unit{tagged(1, 1, 2, "r1"), tagged(2, 3, 4, "r2"), tagged(3, 5, 6, "r1"), tagged(4, 10, 11, ""), tagged(4, 12, 13, ""), tagged(4, 900, 901, "")}
	count := func(r Request) (list []int) {
		var copies []*Unit
		for _, u := range units {
			c := *u
			copies = append(copies, &c)
		}
		for _, u := range r.Join(copies) {
			list = append(list, u.txns)
		}
		return list
	}
	for _, test := range []struct {
		r    Request
		want string
	}{
		{Request{}, "[1 1 1 1 1 1]"},
		{Request{On: true}, "[2 1 1 1 1]"},
		{Request{On: true, Gap: 50e6}, "[2 1 2 1]"},
	} {
		if got := fmt.Sprint(count(test.r)); got != test.want {
			t.Errorf("%+v: transactions of the units %s, want %s", test.r, got, test.want)
		}
	}
	if got := flow.Request([]trace.Tag{{Key: "action", Value: "x"}, {Key: "traceparent", Value: "00-abc-def-01"}}, flow.RequestTags); got != "abc" {
		t.Errorf("request %q, want the trace's id", got)
	}
}

// TestFlowsOfRows: what is written comes from the row that is written, not from the nearest one that was read.
func TestFlowsOfRows(t *testing.T) {
	u := unitOf(t, "SELECT id, owner, n FROM wallet WHERE owner = 'bob' LIMIT 1", "id=22 owner=bob n=105", "SELECT id, owner, n FROM wallet WHERE owner = 'ann' LIMIT 1", "id=11 owner=ann n=95",
		"UPDATE wallet SET owner = 'bob', n = 98 WHERE id = 22", "1 rows", "UPDATE wallet SET owner = 'ann', n = 102 WHERE id = 11", "1 rows")
	var got []string
	for _, f := range u.flows(lex.PostgreSQL) {
		if f.Kind == flow.Plus {
			got = append(got, f.String())
		}
	}
	if want := []string{"step 3 writes what step 1 read minus 7", "step 4 writes what step 2 read plus 7"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFlowsOfIds: the id of a row that was inserted comes back where the row is named, and is no source of the numbers that are written into it. The only
// value of a SELECT is one of the only number that is written.
func TestFlowsOfIds(t *testing.T) {
	const into, sum = `INSERT INTO "orders" ("buyer_id", "total") VALUES (1, 0) RETURNING "orders"."id"`, "SELECT total + 0 AS x FROM orders WHERE id = 1"
	for _, test := range []struct{ first, answer, then, want string }{
		{into, "id=1", `UPDATE "orders" SET "buyer_id" = 1, "total" = 9.99 WHERE ("orders"."id" = 1)`, "step 2 uses the value that step 1 read"},
		{into, "id=7", `UPDATE "orders" SET "total" = 9 WHERE ("orders"."id" = 7)`, "step 2 uses the value that step 1 read"},
		{into, "id=7", "INSERT INTO line (order_id, n) VALUES (7, 7)", "step 2 uses the value that step 1 read"},
		{sum, "x=1", "UPDATE orders SET total = 3 WHERE id = 1", "step 2 writes what step 1 read plus 2"},
		{sum, "x=1", "UPDATE orders SET total = 3, buyer_id = 2 WHERE id = 1", ""},
		{"SELECT total, buyer_id FROM orders WHERE id = 1", "total=1 buyer_id=2", "UPDATE orders SET total = 3, buyer_id = 2 WHERE id = 1", "step 2 writes what step 1 read plus 2; step 2 uses the value that step 1 read"},
	} {
		var got []string
		for _, f := range unitOf(t, test.first, test.answer, test.then, "1 rows").flows(lex.PostgreSQL) {
			got = append(got, f.String())
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: got %q, want %q", test.then, text, test.want)
		}
	}
}
