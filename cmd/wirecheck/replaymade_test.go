package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// madeApps are applications that read a number, write it back changed, and let the server make values beside it. race says what is reported as
// sure; possible, what only as possible.
var madeApps = []struct {
	table, race string
	possible    bool
	use         func(c *shopper, i int)
}{
	{"returned", "lost update", false, func(c *shopper, _ int) {
		n := c.number("SELECT n FROM returned WHERE id = 1")
		c.first("INSERT INTO returned_log (what) VALUES ('less') RETURNING id, key, at")
		c.exec("UPDATE returned SET n = $1 WHERE id = 1", n-1)
	}},
	{"filled", "lost update", false, func(c *shopper, _ int) { // an ORM reads all columns; a trigger fills two of them
		n := c.first("SELECT n, id, key, at FROM filled WHERE id = 1")
		c.exec("UPDATE filled SET n = $1 WHERE id = 1", n-1)
	}},
	{"sequence", "lost update", false, func(c *shopper, _ int) {
		n := c.number("SELECT n FROM sequence WHERE id = 1")
		order := c.number("INSERT INTO sequence_log (what) VALUES ('order') RETURNING id")
		c.exec("INSERT INTO sequence_item (log_id, what) VALUES ($1, 'tea')", order)
		c.exec("UPDATE sequence SET n = $1 WHERE id = 1", n-1)
	}},
	{"asked", "lost update", false, func(c *shopper, _ int) {
		c.text("SELECT now()::text")
		c.number("SELECT nextval('asked_seq')")
		c.number("SELECT lastval()")
		n := c.first("SELECT n, now(), gen_random_uuid() FROM asked WHERE id = 1")
		c.exec("UPDATE asked SET n = $1 WHERE id = 1", n-1)
	}},
	// Near misses: no race, whatever the server makes.
	{"locked", "", false, func(c *shopper, _ int) {
		n := c.first("SELECT n, key, at FROM locked WHERE id = 1 FOR UPDATE")
		c.first("INSERT INTO locked_log (what) VALUES ('less') RETURNING id, key, at")
		c.exec("UPDATE locked SET n = $1, key = gen_random_uuid() WHERE id = 1", n-1)
	}},
	// The same columns, and a difference that the server did not make.
	{"chosen", "", true, func(c *shopper, i int) {
		c.text("SELECT key::text FROM chosen WHERE id = 1")
		c.exec("UPDATE chosen SET key = $1 WHERE id = 1", []string{"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"}[i])
		c.exec("UPDATE chosen SET key = gen_random_uuid() WHERE id = 2")
	}},
}

// first executes a statement whose answer begins with a number, and reads all of the row.
func (c *shopper) first(sql string, args ...any) (n int) {
	c.t.Helper()
	rows, err := c.conn.Query(context.Background(), sql, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		into := make([]any, len(rows.FieldDescriptions()))
		into[0] = &n
		if err := rows.Scan(into...); err != nil {
			c.t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := rows.Err(); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// TestReplayServerMade finds lost updates beside what the server makes (defaults, functions, sequences, RETURNING, triggers): as sure, and
// nothing that rests on such values.
func TestReplayServerMade(t *testing.T) {
	t.Parallel()
	p := startProduction(t)
	setup := p.connect(t, "shop")
	setup.exec("CREATE SEQUENCE asked_seq START 7")
	setup.exec("CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.key := gen_random_uuid(); NEW.at := clock_timestamp(); RETURN NEW; END $$")
	for _, app := range madeApps {
		setup.exec("CREATE TABLE " + app.table + " (id int PRIMARY KEY, n int NOT NULL, key uuid, at timestamptz DEFAULT now())")
		setup.exec("CREATE TABLE " + app.table + "_log (id bigserial PRIMARY KEY, what text, key uuid DEFAULT gen_random_uuid(), at timestamptz DEFAULT now())")
		setup.exec("CREATE TABLE " + app.table + "_item (id bigserial PRIMARY KEY, log_id bigint REFERENCES " + app.table + "_log, what text)")
		setup.exec("INSERT INTO " + app.table + " VALUES (1, 100, gen_random_uuid(), '2026-01-01'), (2, 5, gen_random_uuid(), '2026-01-01')")
	}
	setup.exec("CREATE TRIGGER touch BEFORE UPDATE ON filled FOR EACH ROW EXECUTE FUNCTION touch()")
	setup.close()
	dump := p.dump(t)
	uses := []func(c *shopper, i int){}
	for _, app := range madeApps {
		uses = append(uses, app.use)
	}
	path := p.oneByOne(t, uses)
	r := replayed(t, exitFound, path, "--snapshot", dump, "--engine", "postgres", "--interleavings", "random:12", "--window", "2", "--seed", "7")
	r.sameAsCaptured(t)
	found, possible, why := map[string]string{}, map[string]string{}, map[string]string{}
	for _, x := range r.Explored.Anomalies {
		found[strings.Join(x.Tables, ", ")] += strings.Join(x.Found, ", ")
		why[strings.Join(x.Tables, ", ")] = fmt.Sprint(x.Why, x.Spec)
	}
	for _, x := range r.Explored.Possible {
		possible[strings.Join(x.Tables, ", ")] = fmt.Sprint(x.Found, x.Mark)
	}
	for _, app := range madeApps {
		if found[app.table] != app.race || (possible[app.table] != "") != app.possible {
			t.Errorf("%s: found %q, possible only: %s; want %q, %v", app.table, found[app.table], possible[app.table], app.race, app.possible)
		}
		delete(found, app.table)
	}
	if len(found) > 0 || slices.ContainsFunc(r.Explored.Unconfirmed, func(s string) bool { return s != "" }) || r.Explored.NotShown+len(r.Explored.Unjudged) > 0 {
		t.Errorf("found besides: %v %s, not shown: %v, not judged: %v", found, why[""], r.Explored.Unconfirmed, r.Explored.Unjudged)
	}
}
