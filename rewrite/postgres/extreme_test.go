package postgres_test

import (
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/condition"
)

// TestExtremes: what a query for the greatest or least value shows, and near misses.
func TestExtremes(t *testing.T) {
	c, r := offline(t), postgres.New(rewrite.CaptureAuto)
	for sql, want := range map[string]string{
		"SELECT max(id) FROM orders WHERE account_id = 1":             "id",
		"SELECT MIN(o.id) FROM orders o":                              "-id",
		"SELECT pg_catalog.max(id) AS id__max FROM orders LIMIT 1":    "id",
		"SELECT coalesce(max(id), 0) FROM orders":                     "id ?0",
		"SELECT COALESCE(MAX(id), 7) + 1 AS n FROM orders":            "id ?7 1",
		"SELECT COALESCE(MAX(id), 0) + 2 AS n FROM orders":            "id ?0 2",
		"SELECT (max(id) + 1) FROM orders":                            "id 1",
		"SELECT min(id) - 1 FROM orders":                              "-id 1",
		"SELECT max(id) - 1 FROM orders":                              "",
		"SELECT min(id) + 1 FROM orders":                              "",
		"SELECT max(id) * 2 FROM orders":                              "",
		"SELECT 1 + max(id) FROM orders":                              "",
		"SELECT max(id) + $1 FROM orders":                             "",
		"SELECT max(id) + count(*) FROM orders":                       "",
		"SELECT coalesce(max(id), min(id)) FROM orders":               "",
		"SELECT max(id) FILTER (WHERE account_id > 1) FROM orders":    "",
		"SELECT max(id) OVER () FROM orders":                          "",
		"SELECT max(id + 1) FROM orders":                              "",
		"SELECT max(note) FROM orders":                                "",
		"SELECT sum(id) FROM orders":                                  "",
		"SELECT mine.max(id) FROM orders":                             "",
		"SELECT max(id), count(*) FROM orders":                        "",
		"SELECT max(id) FROM orders GROUP BY account_id":              "",
		"SELECT max(id) FROM orders HAVING max(id) > 3":               "",
		"SELECT id FROM orders":                                       "",
		"SELECT max(o.id) FROM orders o LEFT JOIN account a ON true":  "",
		"SELECT max(id) FROM (SELECT id FROM orders LIMIT 3) AS s":    "",
		"SELECT EXISTS (SELECT max(id) FROM orders WHERE note = 'x')": "",
	} {
		p := r.Script(sql, c, postgres.Session{}).Plans[0]
		got := ""
		if p.ShowsExtreme() {
			e := p.Asks[0].Extreme
			got = map[bool]string{true: "-"}[e.Least] + e.Column + constant(" ?", e.Instead) + constant(" ", e.Plus)
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%s)", sql, got, want, p.Unread)
		}
	}
}

// constant is a literal behind a mark, if there is one.
func constant(mark string, v condition.Value) string {
	if v == nil {
		return ""
	}
	text, _ := condition.Constant(*v)
	return mark + text
}
