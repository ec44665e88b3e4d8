package replay

import (
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/statement"
	"wirecheck/trace/lex"
)

// TestBeside makes a copy of a unit with the values of another one of its shape: not of the rows on which both meet, nor what was computed from an answer.
func TestBeside(t *testing.T) {
	step := func(n int, sql, verb, table, column, value string) *Step {
		s := &Step{N: n, SQL: sql, form: []statement.Statement{{Verb: verb, Tables: []statement.TableUse{{Kind: statement.SourceTable, Name: table, Target: verb != "select"}}}}, tables: []use{{table, verb != "select"}}}
		if column != "" {
			s.Answer = answer.Answer{Results: []answer.Result{{Columns: []answer.Column{{Name: column}}, Rows: [][]answer.Value{{answer.Value(value)}}}}}
		}
		return s
	}
	unit := func(code, customer, id string) *Unit {
		return &Unit{tables: map[string]bool{"coupon": true, "orders": true, "item": true, "customer": false}, Steps: []*Step{
			step(1, "SELECT used FROM coupon WHERE code = '"+code+"'", "select", "coupon", "used", "f"),
			step(2, "SELECT name FROM customer WHERE id = "+customer, "select", "customer", "name", "name of "+customer),
			step(3, "INSERT INTO orders (customer) VALUES ("+customer+") RETURNING id", "insert", "orders", "id", id),
			step(4, "INSERT INTO item (order_id, sku) VALUES ("+id+", 'tea')", "insert", "item", "", ""),
			step(5, "UPDATE coupon SET used = true WHERE code = '"+code+"'", "update", "coupon", "", ""),
		}}
	}
	u := unit("ONCE", "711", "1")
	c := u.beside(unit("SUMMER", "822", "2"), lex.PostgreSQL)
	want := []string{"SELECT used FROM coupon WHERE code = 'ONCE'", "SELECT name FROM customer WHERE id = 822", "INSERT INTO orders (customer) VALUES (822) RETURNING id",
		"INSERT INTO item (order_id, sku) VALUES (1, 'tea')", "UPDATE coupon SET used = true WHERE code = 'ONCE'"}
	for i, s := range c.Steps {
		if s.SQL != want[i] || s.N < later {
			t.Errorf("step %d is %q, want %q", i+1, s.SQL, want[i])
		}
	}
	if got := string(c.Steps[1].Answer.Results[0].Rows[0][0]); got != "name of 822" {
		t.Errorf("it read %q, want the other customer's name", got)
	}
	flows := c.flows(lex.PostgreSQL)
	if len(flows) != 1 || flows[0].From != 2 || flows[0].To != 3 {
		t.Errorf("data flow %v, want the new id in the item", flows)
	}
	if u.Steps[1].SQL == want[1] {
		t.Error("the unit itself was changed")
	}
}

// TestMeetings: two that write different rows after both have read more than these meet as well, besides two that write the same row. Two that name
// nothing in common do not.
func TestMeetings(t *testing.T) {
	const off = "UPDATE doctor SET on_call = false WHERE id = "
	leave := func(id string) *Unit {
		return unitOf(t, "SELECT count(*) FROM doctor WHERE on_call", "count=2", off+id, "1 rows")
	}
	apart := func(units ...*Unit) (found bool) {
		shapes := Shapes(units, lex.PostgreSQL)
		if len(shapes) != 1 {
			t.Fatalf("%d shapes, want one", len(shapes))
		}
		for _, m := range Meetings(shapes[0], shapes[0], lex.PostgreSQL) {
			found = found || m.Units[0].Steps[len(m.Units[0].Steps)-1].SQL != m.Units[1].Steps[len(m.Units[1].Steps)-1].SQL
		}
		return found
	}
	if !apart(leave("1"), leave("2")) {
		t.Error("two doctors who leave never meet")
	}
	if !apart(leave("1"), leave("1"), leave("2")) {
		t.Error("the same doctor twice hides two doctors")
	}
	if apart(unitOf(t, off+"1", "1 rows"), unitOf(t, off+"2", "1 rows")) {
		t.Error("two that read nothing meet, and name no row in common")
	}
}

// TestCounted finds the columns that statements fill from counters themselves.
func TestCounted(t *testing.T) {
	g := &Group{Units: []*Unit{
		unitOf(t, "INSERT INTO entry (id, n) VALUES (nextval('entry_seq'), 7) RETURNING entry.id", "id=3"),
		unitOf(t, "SELECT nextval('bill_seq')", "nextval=8", "INSERT INTO bill (number, n) VALUES (8, 1)", "1 rows"),
		unitOf(t, "SELECT max(n) FROM bill", "max=4", "INSERT INTO other (n) VALUES (5)", "1 rows"),
	}}
	got := g.Counted(lex.PostgreSQL)
	if len(got) != 2 || !got["entry.id"] || !got["bill.number"] {
		t.Errorf("got %v, want entry.id and bill.number", got)
	}
}

// TestParent: a row that all read and none writes can be locked in place of the rows that are not there yet.
func TestParent(t *testing.T) {
	const book = "INSERT INTO booking (room) VALUES (3)"
	room := func(number string) *Unit {
		return unitOf(t, "SELECT price FROM room WHERE number = "+number, "price=80", "SELECT id FROM booking WHERE room = 3", "", book, "1 rows")
	}
	if table, sql := (&Group{Units: []*Unit{room("3"), room("3")}}).Parent(lex.PostgreSQL); table != "room" || sql != "SELECT price FROM room WHERE number = 3 FOR UPDATE" {
		t.Errorf("got %q, %q, want the room", table, sql)
	}
	if table, _ := (&Group{Units: []*Unit{room("3"), room("4")}}).Parent(lex.PostgreSQL); table != "" {
		t.Errorf("got %q of two different rooms", table)
	}
	written := unitOf(t, "SELECT price FROM room WHERE number = 3", "price=80", "UPDATE room SET price = 90 WHERE number = 3", "1 rows")
	if table, _ := (&Group{Units: []*Unit{written, written}}).Parent(lex.PostgreSQL); table != "" {
		t.Errorf("got %q, which they write", table)
	}
	if g := (&Group{Units: []*Unit{room("3"), room("3")}}).LockedTable("room", lex.PostgreSQL); g.Units[1].Steps[0].SQL != "SELECT price FROM room WHERE number = 3 FOR UPDATE" {
		t.Errorf("locked: %q", g.Units[1].Steps[0].SQL)
	}
}

// TestShapeSavepoints: frameworks number their savepoints, which makes no other shape of a transaction. Another table does.
func TestShapeSavepoints(t *testing.T) {
	unit := func(name, table string) *Unit {
		return unitOf(t, "BEGIN", "", `SAVEPOINT "`+name+`"`, "", "INSERT INTO "+table+" (n) VALUES (1)", "1 rows", `RELEASE SAVEPOINT "`+name+`"`, "", "ROLLBACK TO SAVEPOINT "+name, "", "COMMIT", "")
	}
	if n := len(Shapes([]*Unit{unit("s1_x1", "tag"), unit("s1_x2", "tag")}, lex.PostgreSQL)); n != 1 {
		t.Errorf("%d shapes of two names of a savepoint, want 1", n)
	}
	if n := len(Shapes([]*Unit{unit("s1_x1", "tag"), unit("s1_x1", "tags")}, lex.PostgreSQL)); n != 2 {
		t.Errorf("%d shapes of two tables, want 2", n)
	}
}

// TestUniqueAsked: what an ORM asks with LIMIT, and then inserts, a constraint can refuse. Where it asked for something that the row does not have, it cannot.
func TestUniqueAsked(t *testing.T) {
	for sql, want := range map[string]string{
		`SELECT (1) AS "a" FROM "booking" WHERE ("booking"."room" = 1 AND "booking"."slot" = 9) LIMIT 1`: `CREATE UNIQUE INDEX wirecheck_once ON "booking" (room, slot)`,
		`SELECT 1 FROM "booking" WHERE "booking"."room" = 2 LIMIT 1`:                                     "",
	} {
		g := &Group{Units: []*Unit{unitOf(t, sql, "", `INSERT INTO "booking" ("room", "slot", "who") VALUES (1, 9, 'a') RETURNING "booking"."id"`, "id=1")}}
		if got := strings.Join(g.Unique(nil, lex.PostgreSQL), "; "); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

// TestUniqueThere: a key on some of the columns refuses the second row already. Keys of other tables, or with other columns, do not.
func TestUniqueThere(t *testing.T) {
	g := &Group{Units: []*Unit{unitOf(t, "SELECT 1 FROM booking WHERE room = 1 AND slot = 9", "", "INSERT INTO booking (room, slot, who) VALUES (1, 9, 'a')", "1 rows")}}
	for _, test := range []struct {
		keys Keys
		want bool
	}{
		{nil, true}, {Keys{"booking": {{"id"}, {"slot", "room"}}}, false}, {Keys{"booking": {{"room"}}}, false},
		{Keys{"booking": {{"room", "slot", "who"}}}, true}, {Keys{"bookings": {{"room", "slot"}}}, true},
	} {
		if got := len(g.Unique(test.keys, lex.PostgreSQL)) > 0; got != test.want {
			t.Errorf("keys %v: proposed %v, want %v", test.keys, got, test.want)
		}
	}
}

// TestGuarded: the condition of an UPDATE asks for what it sets. What names a row and no more is no such condition.
func TestGuarded(t *testing.T) {
	for sql, want := range map[string]bool{
		"UPDATE ware SET n = 49, version = 2 WHERE id = 1 AND version = 1":                    true,
		`UPDATE "coupon" SET "used" = true WHERE ("coupon"."id" = 1 AND NOT "coupon"."used")`: true,
		"UPDATE pool SET n = n - 1 WHERE id = 1 AND n > 0":                                    true,
		"UPDATE pool SET n = n - 1 WHERE id = 1 AND 'n' = 'n'":                                false,
		"UPDATE ware SET n = 49 WHERE id = 1 AND version = 1":                                 false,
		"UPDATE wallet SET owner = 'ann', n = 95 WHERE (wallet.owner = 'ann')":                false,
		"UPDATE ware SET id = 1, n = 49, version = 2 WHERE id = 1 AND version = 1":            true,
		"UPDATE ware SET n = 49, version = 1 WHERE id = 1 AND version = 1":                    false,
		"DELETE FROM ware WHERE n = 1":                                                        false,
	} {
		if got := unitOf(t, sql, "1 rows").Steps[0].Guarded(lex.PostgreSQL); got != want {
			t.Errorf("%s: guarded %v, want %v", sql, got, want)
		}
	}
}

// TestComputed: the server computes what the application computed, and what it wrote back as it was is left out.
func TestComputed(t *testing.T) {
	for _, test := range []struct{ read, values, write, want string }{
		{"SELECT n FROM w WHERE id = 1", "n=10", "UPDATE w SET n = 9 WHERE id = 1;", "UPDATE w SET n = n - 1 WHERE id = 1"},
		{"SELECT n, price FROM w WHERE id = 1", "n=10 price=2.50", "UPDATE w SET n = 13, price = 2.75 WHERE id = 1", "UPDATE w SET n = n + 3, price = price + 0.25 WHERE id = 1"},
		{`SELECT "t1"."name", "t1"."n", "t1"."kind" FROM "w" AS "t1" WHERE ("t1"."id" = 1) LIMIT 1`, "name=a n=10 kind=x",
			`UPDATE "w" SET "name" = 'a', "n" = 8 , "kind" = 'x' WHERE ("w"."id" = 1) RETURNING id`, `UPDATE "w" SET "n" = n - 2 WHERE ("w"."id" = 1) RETURNING id`},
		{"SELECT name, n FROM w WHERE id = 1", "name=a n=10", "UPDATE w SET name = upper('b'), n = 8, at = coalesce(now(), at) WHERE id = 1", "UPDATE w SET name = upper('b'), n = n - 2, at = coalesce(now(), at) WHERE id = 1"},
		{"SELECT name, n FROM w WHERE id = 1", "name=a n=10", "UPDATE w SET name = 'z', n = 9 WHERE id = 1", "UPDATE w SET name = 'z', n = n - 1 WHERE id = 1"},
		{"SELECT name FROM w WHERE id = 1", "name=a", "UPDATE w SET name = 'a' WHERE id = 1", ""},
		{"SELECT n FROM w WHERE id = 1", "n=10", "UPDATE w SET n = n - 1 WHERE id = 1", ""},
		{"SELECT n FROM other WHERE id = 1", "n=10", "UPDATE w SET n = 9 WHERE id = 1", ""},
	} {
		g := &Group{Units: []*Unit{unitOf(t, test.read, test.values, test.write, "1 rows")}}
		if _, got := g.Computed(lex.PostgreSQL); got != test.want {
			t.Errorf("%s: got %q, want %q", test.write, got, test.want)
		}
	}
}

// TestCommittedBefore: giving up undoes what the open transaction wrote, and not what was committed.
func TestCommittedBefore(t *testing.T) {
	const write, read = "INSERT INTO orders (n) VALUES (1)", "SELECT n FROM orders"
	for _, test := range []struct {
		before []string
		want   bool
	}{
		{[]string{"BEGIN", write}, false}, {[]string{"BEGIN", write, "COMMIT", "BEGIN"}, true}, {[]string{write}, true}, {[]string{"BEGIN", read, "COMMIT", read}, false},
		{[]string{"BEGIN", write, "ROLLBACK", "BEGIN"}, false}, {[]string{"BEGIN", "SELECT n FROM orders FOR UPDATE", "COMMIT"}, false}, {nil, false},
	} {
		var list []string
		for _, sql := range append(test.before, "UPDATE coupon SET used = true WHERE NOT used") {
			list = append(list, sql, "")
		}
		if got := unitOf(t, list...).CommittedBefore(len(test.before)); got != test.want {
			t.Errorf("behind %q: %v, want %v", test.before, got, test.want)
		}
	}
}

// TestReadsLocking: rows that an aggregate counts can be locked, too: on PostgreSQL in a query of its own. Groups cannot.
func TestReadsLocking(t *testing.T) {
	const count = `SELECT COUNT(*) AS "__count" FROM "doctor" WHERE "doctor"."on_call"`
	for _, tt := range []struct {
		sql  string
		d    lex.Dialect
		want string
	}{
		{count, lex.PostgreSQL, `SELECT COUNT(*) AS "__count" FROM (SELECT * FROM "doctor" WHERE "doctor"."on_call" FOR UPDATE) AS "doctor"`},
		{"SELECT sum(n) FROM doctor d WHERE d.on_call", lex.PostgreSQL, "SELECT sum(n) FROM (SELECT * FROM doctor d WHERE d.on_call FOR UPDATE) AS \"d\""},
		{count, lex.MySQL, count + " FOR UPDATE"},
		{"SELECT shift, count(*) FROM doctor GROUP BY shift", lex.PostgreSQL, ""},
		{"SELECT count(*) AS n FROM (SELECT doctor.id AS doctor_id FROM doctor WHERE doctor.on_call = true) AS x", lex.PostgreSQL, "SELECT count(*) AS n FROM (SELECT doctor.id AS doctor_id FROM doctor WHERE doctor.on_call = true FOR UPDATE) AS x"},
		{"SELECT count(*) FROM (SELECT DISTINCT shift FROM doctor) AS x", lex.PostgreSQL, ""},
		{"SELECT count(*) FROM (SELECT id FROM doctor LIMIT 3) AS x", lex.PostgreSQL, ""},
		{"SELECT count(*) FROM (SELECT count(*) FROM doctor) AS x", lex.PostgreSQL, ""},
		{"SELECT count(*) FROM doctor a, doctor b", lex.PostgreSQL, ""},
	} {
		u := unitOf(t, tt.sql, "count=2", "UPDATE doctor SET on_call = false WHERE id = 1", "1 rows")
		got := ""
		for _, r := range (&Group{Units: []*Unit{u}}).Reads(tt.d) {
			got = r.Locking
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.sql, got, tt.want)
		}
	}
}

// TestAlike: units that set the same constants lose nothing. A value that was computed from what was read, another value, another row, or a row that is put
// in is something else.
func TestAlike(t *testing.T) {
	read := func(table string) string { return "SELECT n, state FROM " + table + " WHERE id = 1" }
	for _, test := range []struct {
		name     string
		one, two string // what they write
		want     bool
	}{
		{"a flag", "UPDATE job SET on_call = true WHERE id = 1", "UPDATE job SET on_call = true WHERE id = 1", true},
		{"a state", "UPDATE job SET state = 'paid' WHERE id = 1", "UPDATE job SET state = 'paid' WHERE id = 1", true},
		{"a number that one has counted", "UPDATE job SET n = 99 WHERE id = 1", "UPDATE job SET n = 99 WHERE id = 1", false},
		{"the database counts", "UPDATE job SET n = n - 1 WHERE id = 1", "UPDATE job SET n = n - 1 WHERE id = 1", false},
		{"a state as a parameter", "UPDATE job SET state = $1 WHERE id = 1", "UPDATE job SET state = $1 WHERE id = 1", true},
		{"other states", "UPDATE job SET state = 'paid' WHERE id = 1", "UPDATE job SET state = 'sent' WHERE id = 1", false},
		{"other rows", "UPDATE job SET on_call = true WHERE id = 1", "UPDATE job SET on_call = true WHERE id = 2", false},
		{"a row is put in", "INSERT INTO job (id) VALUES (7)", "INSERT INTO job (id) VALUES (7)", false},
		{"nothing is written", "SELECT 1", "SELECT 1", false},
	} {
		unit := func(write string) *Unit {
			return unitOf(t, "BEGIN", "", read("job"), "n=100 state=new", write, "1 rows", "COMMIT", "")
		}
		if got := Alike([]*Unit{unit(test.one), unit(test.two)}, lex.PostgreSQL); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
