package postgres_test

import (
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/condition"
)

// TestOrdering: which rows LIMIT does not hide, and where that is not certain.
func TestOrdering(t *testing.T) {
	c, r := offline(t), postgres.New(rewrite.CaptureAuto)
	for sql, want := range map[string]string{
		"SELECT id FROM orders ORDER BY id DESC LIMIT 1":                            `(> number id #0)`,
		"SELECT * FROM orders o WHERE note = 'x' ORDER BY o.account_id, id LIMIT 3": `(or (< number account_id #0) (and (= number account_id #0) (< number id #1)))`,
		"SELECT o.id AS n FROM orders o ORDER BY id ASC NULLS FIRST LIMIT $1":       `(< number id #0)`,
		"SELECT o.id + 1, account_id FROM orders o ORDER BY id DESC LIMIT 1":        `(> number id #0)`,
		"SELECT coalesce(id, 0) + 1 AS n FROM orders ORDER BY orders.id LIMIT 1":    `(< number id #0)`,

		"SELECT -id AS id FROM orders ORDER BY id LIMIT 1":                                             "",
		"SELECT account_id AS id FROM orders ORDER BY id LIMIT 1":                                      "",
		"SELECT id::text FROM orders ORDER BY id LIMIT 1":                                              "", // its name is id
		"SELECT CASE WHEN true THEN 1 ELSE id END FROM orders ORDER BY id LIMIT 1":                     "", // its name, too
		"SELECT id FROM orders ORDER BY id USING > LIMIT 1":                                            "",
		"SELECT id FROM orders ORDER BY -id LIMIT 1":                                                   "",
		"SELECT id FROM orders ORDER BY 1 LIMIT 1":                                                     "",
		"SELECT id FROM orders ORDER BY id, note LIMIT 1 OFFSET 1":                                     `(< number id #0)`,
		"SELECT id FROM orders ORDER BY note DESC, amount LIMIT 1":                                     `(or (> null text note #0) (and (= text note #0) (< number amount #1)))`,
		"SELECT id FROM orders ORDER BY note, -id LIMIT 1":                                             `(or (< text note #0) (and (= text note #0) unsure))`,
		"SELECT o.id FROM orders o LEFT JOIN account a ON a.id = o.account_id ORDER BY o.note LIMIT 1": `(< text note #0)`,
		"SELECT id FROM orders LIMIT 1":                                                                `never`,
		"SELECT id FROM orders LIMIT 1 FOR UPDATE":                                                     `never`,
		"SELECT o.id FROM orders o LEFT JOIN account a ON a.id = o.account_id LIMIT 1":                 `never`,

		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.note, o.id LIMIT 1":                 `(or (< text note #0) (and (= text note #0) (< number id #1)))`,
		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.note, a.id LIMIT 1":                 `(or (< text note #0) (and (= text note #0) unsure))`,
		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY id LIMIT 1":                           "",
		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id LIMIT 1 FOR UPDATE":              "",
		"SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id FETCH FIRST 1 ROW WITH TIES":     "",
		"SELECT DISTINCT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id LIMIT 1":                "",
		"SELECT o.id, count(*) FROM orders o JOIN account a ON a.id = o.account_id GROUP BY o.id ORDER BY o.id LIMIT 1": "",
		"SELECT o.id, generate_series(1, 2) FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id LIMIT 1":  "",
		"SELECT a.id, o.id FROM account a LEFT JOIN orders o ON a.id = o.account_id ORDER BY o.id LIMIT 1":              "",
		"SELECT id FROM orders ORDER BY note LIMIT 1 OFFSET 1":                                                          `(< text note #0)`,

		"SELECT o.id FROM orders o LEFT JOIN account a ON a.id = o.account_id ORDER BY note LIMIT 1": "",
		"SELECT o.id FROM orders o LEFT JOIN account a ON a.id = o.account_id ORDER BY a.id LIMIT 1": "",
		"SELECT generate_series(1, account_id) FROM orders LIMIT 1":                                  "",
		"SELECT DISTINCT account_id FROM orders LIMIT 1":                                             "",
		"SELECT account_id FROM orders GROUP BY account_id LIMIT 1":                                  "",
		"SELECT id FROM orders ORDER BY id FETCH FIRST 1 ROW WITH TIES":                              "",
		"SELECT id FROM orders ORDER BY id LIMIT 1 FOR UPDATE":                                       "",
		"SELECT id, generate_series(1, account_id) FROM orders ORDER BY id LIMIT 1":                  "",
		"SELECT DISTINCT id FROM orders ORDER BY id LIMIT 1":                                         "",
		"SELECT id FROM orders GROUP BY id ORDER BY id LIMIT 1":                                      "",
		"SELECT id FROM orders ORDER BY id":                                                          "",
	} {
		p := r.Script(sql, c, postgres.Session{}).Plans[0]
		got := ""
		for _, a := range p.Asks {
			got += inBrackets(a.Beyond)
		}
		if got != want || (p.Lacking > 0) != strings.Contains(want, "#") || p.Keys != strings.Count(want, " #0)")+strings.Count(want, " #1)")-strings.Count(want, "(= ") {
			t.Errorf("%s: %q, want %q; %d columns from %d on", sql, got, want, p.Keys, p.Lacking)
		}
	}
}

// inBrackets is a condition with values that are not known yet.
func inBrackets(c condition.Condition) string {
	switch {
	case c.IsNever():
		return "never"
	case c.Op == "parameters":
		return "(" + c.Reason + " " + string(c.Kind) + " " + c.Column + " " + *c.Values[0] + ")"
	case len(c.Args) == 0:
		return c.Op
	}
	list := []string{c.Op}
	for _, a := range c.Args {
		list = append(list, inBrackets(a))
	}
	return "(" + strings.Join(list, " ") + ")"
}
