package replay

import (
	"testing"

	"wirecheck/backends/engine"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// rowsOf is a result of a made-up trace with its rows.
func rowsOf(rows ...[]string) []trace.Result {
	r := trace.Result{Count: int64(len(rows)), Affected: trace.Unknown}
	var d trace.Digest
	for _, row := range rows {
		var values []trace.Value
		for _, v := range row {
			values = append(values, trace.Value{Text: v})
		}
		d.Add(values)
		r.Rows = append(r.Rows, values)
	}
	r.Digest = d.String()
	return []trace.Result{r}
}

// TestRunGenerated replays what a clock, a counter and chance made: the answers differ in nothing else, and what the application sends back of
// them is what the replay brought. The near misses are other values that look like these.
func TestRunGenerated(t *testing.T) {
	const key, at, begin = "6f1f1f6e-4f0c-4a53-9a4e-0c8f2a1f7c11", "2026-11-20 09:31:14", int64(1_795_167_074_000) // milliseconds
	eachEngine(t, func(t *testing.T, p *place) {
		mysql := p.config.Backend.Protocol == engine.ProtocolMySQL
		if mysql {
			p.do("CREATE TABLE orders (id int PRIMARY KEY AUTO_INCREMENT, token varchar(40) DEFAULT (UUID()), at datetime DEFAULT CURRENT_TIMESTAMP, until datetime DEFAULT (NOW() + INTERVAL 30 DAY), due date DEFAULT '2020-01-01', n int) AUTO_INCREMENT = 100")
			p.do("CREATE TABLE item (order_id int REFERENCES orders (id), n int)")
		} else {
			p.do("CREATE TABLE orders (id serial PRIMARY KEY, token uuid DEFAULT gen_random_uuid(), at timestamp(0) DEFAULT now(), until timestamp(0) DEFAULT now() + interval '30 days', due date DEFAULT '2020-01-01', n int)")
			p.do("CREATE TABLE item (order_id int REFERENCES orders (id), n int)")
			p.do("SELECT setval('orders_id_seq', 99)")
		}
		var list []said
		step := func(sql string, results []trace.Result) {
			n := begin + int64(len(list))*10
			list = append(list, said{session: 1, sql: sql, start: n, end: n + 1, results: results})
		}
		step("INSERT INTO orders (n) VALUES (7) RETURNING id, token, at, until", rowsOf([]string{"7", key, at, "2026-12-20 09:31:14"}))
		step("SELECT n, at FROM orders WHERE id = 7", rowsOf([]string{"7", at}))
		step("UPDATE orders SET n = 2 WHERE token = '"+key+"'", []trace.Result{{Affected: 1, Count: trace.Unknown}})
		step("INSERT INTO item (order_id, n) VALUES (7, 7)", []trace.Result{{Affected: 1, Count: trace.Unknown}})
		step("SELECT order_id, n FROM item WHERE order_id IN (7)", rowsOf([]string{"7", "7"}))
		step("SELECT due, n FROM orders WHERE n = 2", rowsOf([]string{"2020-01-01", "2"}))
		step("INSERT INTO orders (n) VALUES (5) RETURNING id AS made, token", rowsOf([]string{"8", "7f1f1f6e-4f0c-4a53-9a4e-0c8f2a1f7c11"}))
		step("SELECT id AS made FROM orders WHERE id = 8", rowsOf([]string{"8"}))
		r := p.run(list)
		if d := r.Divergence; d.Count() > 0 || d.Compared != 8 || d.Same != 3 || d.Generated["clock, counter, random"] != 1 || d.Generated["clock"] != 1 || d.Generated["counter"] != 2 || d.Generated["counter, random"] != 1 {
			t.Fatalf("got %+v, want five answers that differ in generated values and three that do not", d)
		}
		// A quantity is no id, and a date that the application chose is no clock's.
		list = nil
		step("SELECT n FROM item WHERE n = 7", rowsOf([]string{"8"}))
		step("SELECT due FROM orders WHERE n = 2", rowsOf([]string{"2026-11-20"}))
		step("SELECT n FROM orders WHERE n = 2", rowsOf([]string{"3"}))
		if d := p.run(list).Divergence; d.Kinds[DivergedRows] != 3 {
			t.Errorf("got %+v, want three that differ", d)
		}
	})
}

// TestRunNumbered: a text that a statement makes of a sequence, as the number of an order, is the replay's where it comes back. The near miss is
// another text.
func TestRunNumbered(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			return // MariaDB's sequences are another syntax
		}
		p.do("CREATE TABLE orders (id serial PRIMARY KEY, no text, n int)")
		p.do("CREATE SEQUENCE no_seq START 50")
		r := p.run([]said{
			{session: 1, sql: "INSERT INTO orders (no, n) VALUES ('ORD-' || nextval('no_seq'), 1) RETURNING no", start: 1, end: 2, results: rowsOf([]string{"ORD-901"})},
			{session: 1, sql: "SELECT n, no FROM orders WHERE no = 'ORD-901'", start: 3, end: 4, results: rowsOf([]string{"1", "ORD-901"})},
			{session: 1, sql: "INSERT INTO orders (no, n) VALUES ('ORD-' || nextval('no_seq'), 2) RETURNING no, n", start: 5, end: 6, results: rowsOf([]string{"BILL-902", "2"})},
		})
		if d := r.Divergence; d.Generated["counter"] != 2 || d.Count()+d.Kinds[DivergedVolatile] != 1 {
			t.Errorf("got %+v, want two answers that differ in the number, and one that differs", d)
		}
	})
}

// TestGeneratedMaps: a value of the trace is replaced where it stands for the same thing, and nowhere else.
func TestGeneratedMaps(t *testing.T) {
	const was, is = "6f1f1f6e-4f0c-4a53-9a4e-0c8f2a1f7c11", "11111111-4f0c-4a53-9a4e-0c8f2a1f7c11"
	g := NewGenerated(lex.PostgreSQL)
	g.learn("", was, is)
	g.learn("shop_order", "7", "9")
	for sql, want := range map[string]string{
		"SELECT 1 FROM shop_order WHERE id = 7":                      "SELECT 1 FROM shop_order WHERE id = 9",
		"SELECT 1 FROM shop_order WHERE id IN (6, 7)":                "SELECT 1 FROM shop_order WHERE id IN (6, 9)",
		"UPDATE shop_order SET qty = 7 WHERE id = '7'":               "UPDATE shop_order SET qty = 7 WHERE id = '9'",
		"INSERT INTO line (order_id, product_id) VALUES (7, 7)":      "INSERT INTO line (order_id, product_id) VALUES (9, 7)",
		"SELECT 1 FROM product WHERE id = 7":                         "SELECT 1 FROM product WHERE id = 7",
		"INSERT INTO log (what) VALUES ('order " + was + " is new')": "INSERT INTO log (what) VALUES ('order " + is + " is new')",
		"SELECT 1 FROM shop_order LIMIT 7":                           "SELECT 1 FROM shop_order LIMIT 7",
	} {
		verbs, err := postgres.Describe(sql)
		if err != nil {
			t.Fatal(err)
		}
		s := &Step{SQL: sql, Statement: &trace.Statement{}, form: verbs}
		for _, u := range verbs[0].Tables {
			s.tables = append(s.tables, use{name: u.Name})
		}
		if got := g.mapped(s); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
