package postgres_test

import (
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestOrdering: which rows LIMIT does not hide, and where that is not certain.
func TestOrdering(t *testing.T) {
	c, r := offline(t), postgres.New(rewrite.CaptureAuto)
	for sql, want := range map[string]string{
		"SELECT id FROM orders ORDER BY id DESC LIMIT 1":                            `(> number id #0)`,
		"SELECT * FROM orders o WHERE note = 'x' ORDER BY o.account_id, id LIMIT 3": `(< number account_id #0)`,
		"SELECT o.id AS n FROM orders o ORDER BY id ASC NULLS FIRST LIMIT $1":       `(< number id #0)`,
		"SELECT o.id + 1, account_id FROM orders o ORDER BY id DESC LIMIT 1":        `(> number id #0)`,
		"SELECT coalesce(id, 0) + 1 AS n FROM orders ORDER BY orders.id LIMIT 1":    `(< number id #0)`,

		"SELECT -id AS id FROM orders ORDER BY id LIMIT 1":                                      "",
		"SELECT account_id AS id FROM orders ORDER BY id LIMIT 1":                               "",
		"SELECT id::text FROM orders ORDER BY id LIMIT 1":                                       "", // its name is id
		"SELECT CASE WHEN true THEN 1 ELSE id END FROM orders ORDER BY id LIMIT 1":              "", // its name, too
		"SELECT id FROM orders ORDER BY id USING > LIMIT 1":                                     "",
		"SELECT id FROM orders ORDER BY -id LIMIT 1":                                            "",
		"SELECT id FROM orders ORDER BY 1 LIMIT 1":                                              "",
		"SELECT id FROM orders ORDER BY note LIMIT 1":                                           "",
		"SELECT id FROM orders ORDER BY id LIMIT 1 OFFSET 1":                                    "",
		"SELECT id FROM orders ORDER BY id FETCH FIRST 1 ROW WITH TIES":                         "",
		"SELECT id FROM orders ORDER BY id LIMIT 1 FOR UPDATE":                                  "",
		"SELECT id, generate_series(1, account_id) FROM orders ORDER BY id LIMIT 1":             "",
		"SELECT DISTINCT id FROM orders ORDER BY id LIMIT 1":                                    "",
		"SELECT id FROM orders GROUP BY id ORDER BY id LIMIT 1":                                 "",
		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id LIMIT 1": "",
		"SELECT id FROM orders LIMIT 1":                                                         "",
		"SELECT id FROM orders ORDER BY id":                                                     "",
	} {
		p := r.Script(sql, c, postgres.Session{}).Plans[0]
		got := ""
		for _, a := range p.Asks {
			if b := a.Beyond; b.Op != "" {
				got = "(" + b.Reason + " " + string(b.Kind) + " " + b.Column + " " + *b.Values[0] + ")"
			}
		}
		if got != want || (p.Lacking > 0) != (want != "") {
			t.Errorf("%s: %q, want %q; column %d", sql, got, want, p.Lacking)
		}
	}
}
