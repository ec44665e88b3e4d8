package mysql

import (
	"strings"
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

// TestImagesOfNumbers: the image of a new row has the number that the text gives it in the place of the server's counter, and the row its name.
func TestImagesOfNumbers(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("images are made in another way there")
	}
	p := newPair(t, 0)
	p.images = true
	p.rewriter.WantAll()
	for sql, want := range map[string]string{ // ids of the new rows that are known
		"INSERT INTO item (id, name) VALUES (70, 'a') ON DUPLICATE KEY UPDATE qty = 1":               "70",
		"INSERT INTO item VALUES (71, 1, 'b', 1) ON DUPLICATE KEY UPDATE name = 'c'":                 "71",
		"INSERT INTO item (id, name) VALUES (72, 'd'), ('73', 'e')":                                  "72 73",
		"INSERT IGNORE INTO item (name, id) VALUES ('d', 74), ('e', 75)":                             "74 75",
		"INSERT INTO item (id, name) VALUES (0, 'f') ON DUPLICATE KEY UPDATE qty = 1":                "-",
		"INSERT INTO item (id, name) VALUES (NULL, 'g') ON DUPLICATE KEY UPDATE qty = 1":             "-",
		"INSERT INTO item (id, name) VALUES (-5, 'h') ON DUPLICATE KEY UPDATE qty = 1":               "-",
		"INSERT INTO item (id, name) VALUES (76, 'i'), (DEFAULT, 'j')":                               "- -",
		"INSERT INTO item (id, name) VALUES (80, 'i'), (0, 'j')":                                     "80 -",
		"INSERT INTO item (id, name) VALUES (77, 'k'), (70 + 8, 'l')":                                "77 78",
		"INSERT INTO item (id, name) VALUES (10, 'm') ON DUPLICATE KEY UPDATE qty = 1":               "", // of id 10 there is a row
		"INSERT INTO item (id, name) VALUES (10, 'm'), (79, 'n') ON DUPLICATE KEY UPDATE name = 'o'": "79",
	} {
		_, accesses := p.check(t, sql)
		var got []string
		for _, a := range accesses {
			if a.Op != history.OpInsert {
				continue
			}
			image, err := condition.ParseImage(a.Image)
			id := "-"
			if image["id"] != nil {
				id = *image["id"]
			}
			if got = append(got, id); err != nil || a.Name != strings.TrimSuffix("id="+id, "id=-") {
				t.Errorf("%s: image %q, name %q, error %v", sql, a.Image, a.Name, err)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: ids %q, want %q", sql, got, want)
		}
	}
}
