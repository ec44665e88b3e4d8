package mysql

import (
	"testing"

	"wirecheck/history"
	"wirecheck/statement/condition"
)

// TestImagesByDefault: the image of a new row has the columns that are the time of the statement by default, unless another value was given. They are as the row has them.
func TestImagesByDefault(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("images have none of them there")
	}
	p := newPair(t, 0)
	p.images = true
	p.rewriter.WantAll()
	p.plain.exec(t, "SET timestamp=1700000000.654321")
	p.wired.exec(t, "SET timestamp=1700000000.654321")
	for sql, want := range map[string]string{ // columns of which the image has the time of the statement
		"INSERT INTO logged (id) VALUES (1), (2)":                                   "abcd",
		"INSERT INTO logged VALUES (3, DEFAULT, DEFAULT, DEFAULT, DEFAULT)":         "abcd",
		"INSERT INTO logged SET id = 4, a = '2001-01-01', c = NULL":                 "abcd",
		"INSERT INTO logged (id, b) VALUES (5, DEFAULT), (6, '2001-01-01')":         "acd", // each row has its own
		"INSERT INTO logged (id, c) VALUES (7, '2001-01-01'), (8, NOW(6))":          "abcd",
		"INSERT INTO logged (id, b) SELECT 9, '2001-01-01'":                         "ac",
		"INSERT INTO logged (id) VALUES (1) ON DUPLICATE KEY UPDATE d = NOW()":      "abcd",
		"INSERT INTO logged (id, a) VALUES (10, NOW()) ON DUPLICATE KEY UPDATE d=1": "abcd",
	} {
		_, accesses := p.check(t, sql)
		for _, a := range accesses {
			image, err := condition.ParseImage(a.Image)
			got := ""
			for _, c := range []string{"a", "b", "c", "d"} {
				if _, known := image[c]; known {
					got += c
				}
			}
			if a.Op == history.OpInsert && (err != nil || got != want) {
				t.Errorf("%s: image %q, want of %s", sql, a.Image, want)
			}
		}
		if len(accesses) == 0 {
			t.Errorf("%s: nothing was written", sql)
		}
	}
}
