package mysql

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// An UPDATE that finds a row and changes nothing reads it under its lock, and says so; everything else stays as it was.
func TestUnchangedRowsAreMatches(t *testing.T) {
	p := newPair(t, 0)
	rel := p.wired.db.Name + ".account"
	p.wired.exec(t, SetToken("T1.1.run"))
	p.wired.conn.send(t, p.rewriter.Script("UPDATE account SET balance = 101 WHERE id = 1", p.catalog, p.session))
	p.wired.fetchLog(t)
	id := p.wired.texts(t, "SELECT "+keyOf(p.relation("account"))+" FROM account WHERE id = 1")[0][0]
	row := history.Row{Table: rel, Key: id}
	match := []history.Access{{Op: history.OpMatch, Row: row, Version: "1:T1.1.run", Writer: "T1.run", Order: 2}}
	changed := []history.Access{{Op: history.OpUpdate, Row: row, Version: "2:T2.1.run", Prev: "1:T1.1.run", PrevWriter: "T1.run", PrevOrder: 2, Order: 3}}
	for _, test := range []struct {
		sql      string
		want     []history.Access
		affected uint64
	}{
		{"UPDATE account SET balance = 101 WHERE id = 1", match, 0},
		{"UPDATE account SET balance = balance WHERE id = 1", match, 0},
		{"UPDATE account SET balance = 102 WHERE id = 1", changed, 1},
		{"UPDATE account SET balance = 101 WHERE id = 1 AND balance = 100", nil, 0}, // no row
		{"UPDATE account SET balance = 101 WHERE id = 1 LIMIT 0", nil, 0},
		{"UPDATE account SET balance = 101, owner = 'ann' WHERE id = 1", match, 0},
		{"UPDATE account SET balance = 101, owner = 'Ann' WHERE id = 1", changed, 1},
		{"INSERT INTO account (id, owner, balance) VALUES (1, 'x', 1) ON DUPLICATE KEY UPDATE balance = 101", match, 0},
		{"INSERT INTO account (id, owner, balance) VALUES (1, 'x', 1) ON DUPLICATE KEY UPDATE balance = 102", changed, 2},
		{"INSERT INTO account (id, owner, balance) VALUES (9, 'x', 1) ON DUPLICATE KEY UPDATE balance = 101", nil, 1},
	} {
		p.wired.exec(t, "BEGIN")
		before := p.wired.texts(t, "SELECT *, wc_writers FROM account WHERE id = 1")[0]
		p.wired.exec(t, SetToken("T2.1.run"))
		r := p.wired.conn.send(t, p.rewriter.Script(test.sql, p.catalog, p.session))
		log, _, err := DecodeLog([]byte(p.wired.fetchLog(t)))
		if err != nil {
			t.Fatal(err)
		}
		got := log["T2.1.run"]
		for i := range got {
			got[i].Name = ""
		}
		if diff := cmp.Diff(test.want, got); diff != "" || r.affected != test.affected {
			t.Errorf("%s: %d rows affected, want %d; log (-want +got):\n%s", test.sql, r.affected, test.affected, diff)
		}
		after := p.wired.texts(t, "SELECT *, wc_writers FROM account WHERE id = 1")[0]
		if same := cmp.Equal(before, after); same != (len(test.want) == 0 || test.want[0].Op == history.OpMatch) {
			t.Errorf("%s: the row was %q and is %q", test.sql, before, after)
		}
		p.wired.exec(t, "ROLLBACK")
	}
}

// Two sessions read a counter of 5 and both set it to 6: the second UPDATE changes nothing.
func TestLostUpdateOfACounter(t *testing.T) {
	p := newPair(t, 0)
	other := &side{db: p.wired.db, conn: dial(t, p.wired.db, 0)}
	const sql = "UPDATE account SET balance = 6 WHERE id = 1"
	sent := p.rewriter.Script(sql, p.catalog, p.session).SQL
	p.wired.exec(t, SetToken("T1.1.run"))
	other.exec(t, SetToken("T2.1.run"))
	p.wired.exec(t, "BEGIN")
	other.exec(t, "BEGIN")
	if r := p.wired.exec(t, sent); r.affected != 1 {
		t.Fatalf("the first: %d rows", r.affected)
	}
	other.conn.command(t, 3, []byte(sent)) // waits for the first
	p.wired.exec(t, "COMMIT")
	if r := other.conn.replies(t, false); r.err != "" || r.affected != 0 {
		t.Fatalf("the second: %+v", r)
	}
	log, _, err := DecodeLog([]byte(other.fetchLog(t)))
	if got := log["T2.1.run"]; err != nil || len(got) != 1 || got[0].Op != history.OpMatch || got[0].Writer != "T1.run" || got[0].Order != 2 {
		t.Errorf("the second read %+v, %v", got, err)
	}
	other.exec(t, "COMMIT")
}
