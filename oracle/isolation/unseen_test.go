package isolation

import (
	"strings"
	"testing"

	"wirecheck/history"
)

// TestUnseenInserts: rows that an INSERT of the MySQL family made and nobody saw are counted, since no predicate was compared with them, until they are told.
func TestUnseenInserts(t *testing.T) {
	const line = "the predicates were not compared with the rows of 1 INSERT: they were not seen"
	for _, test := range []struct {
		name, text string
		unseen     int
	}{
		{"its rows are not told", "t1 approximate -- INSERT INTO b SELECT 1 FROM c", 1},
		{"opaque", "t1 opaque -- INSERT INTO b SELECT 1 FROM c", 1},
		{"its rows are told", "t1 w x 0>1 approximate -- INSERT INTO b SELECT 1 FROM c", 0},
		{"told later", "t1 approximate -- INSERT INTO b SELECT 1 FROM c\nt1 late 2 w x 0>1 -- INSERT INTO b SELECT 1 FROM c", 0},
		{"exact", "t1 stmt -- INSERT INTO b SELECT 1 FROM c", 0},
		{"exact, and its rows are not told", "t1 stmt -- REPLACE INTO b VALUES (1)", 1},
		{"no INSERT", "t1 approximate -- SELECT 1 FROM c", 0},
	} {
		for product, unseen := range map[string]int{"mariadb": test.unseen, "postgres": 0} {
			events, err := history.ParseText(strings.NewReader("s1 session " + product + "\ns1 t1 begin serializable\nt1 all b \"(= number room 1)\"\n" + test.text + "\nt1 commit\n"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range events { // the text form has no verbs
				events[i].Verb, _, _ = strings.Cut(strings.ToLower(events[i].SQL), " ")
				if strings.Contains(events[i].SQL, "REPLACE") {
					events[i].Why = history.UnseenRows
				}
			}
			for _, opts := range []Options{{}, {Only: func(uint64) bool { return false }}} {
				c := New(opts)
				for i := range events {
					c.Add(&events[i])
				}
				v := c.Coverage()
				if v.Unseen != unseen || strings.Contains(v.String(), line) != (unseen > 0) {
					t.Errorf("%s on %s: %d unseen; %s", test.name, product, v.Unseen, v)
				}
				if since := v.Since(v); since.Unseen != 0 {
					t.Errorf("%d unseen since then", since.Unseen)
				}
			}
		}
	}
}
