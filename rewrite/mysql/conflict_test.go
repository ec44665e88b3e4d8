package mysql

import (
	"testing"

	"wirecheck/rewrite"
)

// TestMet: INSERT IGNORE asks for the rows with its key, where one key alone can be in the way and nothing else makes it pass over a row.
func TestMet(t *testing.T) {
	rows := [][]string{{"V", "10.11.19-MariaDB", "shop", "0", "", "", ""}}
	table := func(name string, more ...[]string) {
		rows = append(rows, []string{"T", "shop", name, "BASE TABLE", "InnoDB", "", ""})
		for i, c := range [][2]string{{"id", "int(11)"}, {"name", "varchar(20)"}, {"n", "decimal(5,2)"}, {"wc_row_id", "bigint(20) unsigned"}, {"wc_writers", "varchar(168)"}} {
			extra := "|NO|utf8mb4_general_ci"
			switch c[0] {
			case "id":
				if extra = "AUTO_INCREMENT|NO|"; name == "default" {
					extra = "|NO|"
				}
			case "wc_row_id", "wc_writers":
				extra = "INVISIBLE|NO|"
			}
			rows = append(rows, []string{"C", "shop", name, c[0], c[1], extra, string(rune('1' + i))})
		}
		for _, m := range more {
			rows = append(rows, append([]string{m[0], "shop", name}, m[1:]...))
		}
	}
	id, name := []string{"I", "PRIMARY", "id", "0", "1"}, []string{"I", "name", "name", "0", "1"}
	table("tag", id, name)
	table("short", id, []string{"I", "name", "name", "0p", "1"})
	table("kept", id, name, []string{"K", "", "", "", ""})
	table("bare", id)
	table("default", id, name)
	table("sum", []string{"I", "n", "n", "0", "1"})
	table("pair", []string{"I", "both", "id", "0", "1"}, []string{"I", "both", "name", "0", "2"})
	c, err := LoadCatalog(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sql  string
		asks int
	}{
		{"INSERT IGNORE INTO tag (name) VALUES ('a')", 1},
		{"INSERT IGNORE INTO tag (name) VALUES ('a'), ('b')", 2},
		{"INSERT IGNORE INTO tag VALUES (DEFAULT, 'a', 1)", 1},
		{"INSERT IGNORE INTO tag SET name = ?", 1},
		{"INSERT IGNORE INTO pair (id, name) VALUES (-1, 'a')", 1},
		{"INSERT IGNORE INTO bare (id) VALUES (1)", 1},
		{"INSERT IGNORE INTO tag (id, name) VALUES (1, 'a')", 0}, // either key
		{"INSERT IGNORE INTO tag (name) VALUES (NULL)", 0},
		{"INSERT IGNORE INTO tag (name) VALUES (1)", 0},
		{"INSERT IGNORE INTO tag (name) VALUES ('a'), (LOWER('B'))", 0},
		{"INSERT IGNORE INTO tag (name) SELECT 'a'", 0},
		{"INSERT IGNORE INTO tag (name) VALUES ('a') ON DUPLICATE KEY UPDATE n = 1", 0},
		{"INSERT INTO tag (name) VALUES ('a')", 0},
		{"INSERT IGNORE INTO short (name) VALUES ('a')", 0},
		{"INSERT IGNORE INTO kept (name) VALUES ('a')", 0},
		{"INSERT IGNORE INTO `default` (name) VALUES ('a')", 0}, // each row may have the same id
		{"INSERT IGNORE INTO sum (n) VALUES (1)", 0},
		{"INSERT IGNORE INTO pair (name) VALUES ('a')", 0},
	} {
		plan := New(MariaDB, rewrite.CaptureAuto).Prepare(tt.sql, c, Session{Database: "shop", UTF8: true, GroupConcat: 1 << 20}).Plans[0]
		asks := 0
		for _, a := range plan.Asks {
			if a.Met {
				asks++
			}
		}
		if asks != tt.asks || plan.Met != (asks > 0) {
			t.Errorf("%s: %d asks, met %t, want %d; %s %s", tt.sql, asks, plan.Met, tt.asks, plan.Coverage, plan.Why)
		}
	}
}
