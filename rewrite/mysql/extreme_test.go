package mysql

import (
	"testing"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// TestExtremes: what a query for the greatest or least value shows, and near misses.
func TestExtremes(t *testing.T) {
	cat := testCatalog(t)
	r := New(MariaDB, rewrite.CaptureAuto)
	for sql, want := range map[string]string{
		"SELECT MAX(id) FROM account WHERE owner = 'a'":             "id",
		"SELECT MIN(a.id) FROM account a":                           "-id",
		"SELECT MAX(id) AS id__max FROM account LIMIT 1":            "id",
		"SELECT COALESCE(MAX(id), 0) FROM account":                  "id ?0",
		"SELECT IFNULL(MAX(id), 7) + 1 AS n FROM account":           "id ?7 1",
		"SELECT IFNULL(MAX(id), 0) + 2 AS n FROM account":           "id ?0 2",
		"SELECT (MAX(id) + 1) FROM account":                         "id 1",
		"SELECT MIN(id) - 1 FROM account":                           "-id 1",
		"SELECT MAX(id) - 1 FROM account":                           "",
		"SELECT MIN(id) + 1 FROM account":                           "",
		"SELECT MAX(id) * 2 FROM account":                           "",
		"SELECT MAX(id) + 0.5 FROM account":                         "",
		"SELECT 1 + MAX(id) FROM account":                           "",
		"SELECT MAX(id) + balance FROM account":                     "",
		"SELECT COALESCE(MAX(id), balance) FROM account":            "",
		"SELECT MAX(id + 1) FROM account":                           "",
		"SELECT MAX(owner) FROM account":                            "",
		"SELECT SUM(id) FROM account":                               "",
		"SELECT MAX(id), COUNT(*) FROM account":                     "",
		"SELECT MAX(id) FROM account GROUP BY owner":                "",
		"SELECT MAX(id) FROM account HAVING MAX(id) > 3":            "",
		"SELECT id FROM account":                                    "",
		"SELECT MAX(o.id) FROM account o LEFT JOIN account p ON 1":  "",
		"SELECT MAX(id) FROM (SELECT id FROM account LIMIT 3) AS s": "",
	} {
		p := r.Script(sql, cat, Session{Database: "shop", GroupConcat: 1 << 20}).Plans[0]
		got := ""
		if p.ShowsExtreme() {
			e := p.Asks[0].Extreme
			got = map[bool]string{true: "-"}[e.Least] + e.Column + constant(" ?", e.Instead) + constant(" ", e.Plus)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
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
