package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// TestWrite: the rows that statements name by their values, and what they assign there.
func TestWrite(t *testing.T) {
	show := func(list []history.Operand) string {
		var out []string
		for _, o := range list {
			out = append(out, fmt.Sprintf("%s %s %s", o.Column, o.Role, o.Value))
		}
		return strings.Join(out, ", ")
	}
	params := []Param{{Text: "1"}, {Text: "8"}, {Text: "2"}, {Text: "18"}}
	for _, tt := range []struct{ sql, want string }{
		{"INSERT INTO shop.item (id, stock) VALUES (1, -8)", "item new: id set 1, stock set -8; [id=1 stock=-8] id set 1, stock set -8"},
		{"INSERT INTO item VALUES (1, 8), (2, 18)", "item new: id unknown , stock unknown ; [id=1 stock=8] id set 1, stock set 8; [id=2 stock=18] id set 2, stock set 18"},
		{"INSERT INTO item (id, stock) VALUES ($1, $2), ($3, $4) RETURNING id", "item new: id unknown , stock unknown ; [id=1 stock=8] id set 1, stock set 8; [id=2 stock=18] id set 2, stock set 18"},
		{"INSERT INTO item (id, stock, at) VALUES (1, 3 + 4, now())", "item new: at time , id set 1, stock unknown ; [id=1] at time , id set 1, stock unknown "},
		{"INSERT INTO item (id) SELECT 1", " : "},
		{"INSERT INTO item (id, stock) VALUES (1, 8), (2, 18) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock, n = item.n + 1",
			"item : stock unknown , n computed ; [id=1 stock=8] stock set 8, n computed ; [id=2 stock=18] stock set 18, n computed "},
		{"INSERT INTO item VALUES (1, 8) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock", "item : stock set 8; [id=1 stock=8] stock set 8"},
		{"INSERT INTO item VALUES (1, 8), (2, 18) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock",
			"item : stock unknown ; [id=1 stock=8] stock set 8; [id=2 stock=18] stock set 18"},
		{"INSERT INTO item (stock, id) VALUES (8, 1), (18, 2) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock",
			"item : stock unknown ; [id=1 stock=8] stock set 8; [id=2 stock=18] stock set 18"},
		{"INSERT INTO item (id, stock) VALUES (1, 8), (2, 18) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock + 5",
			"item : stock unknown ; [id=1 stock=8] stock unknown ; [id=2 stock=18] stock unknown "},
		{"INSERT INTO item (id, stock) VALUES (1, 8) ON CONFLICT (id) DO NOTHING", "item new: id set 1, stock set 8; [id=1 stock=8] id set 1, stock set 8"},
		{"DELETE FROM item WHERE id = 1 AND stock = 10", "item : id equal 1, stock equal 10"},
		{"DELETE FROM item", "item : "},
		{"DELETE FROM item USING other WHERE item.id = other.id", " : "},
		{"UPDATE item SET stock = v.stock FROM (VALUES (1, 8), (2, 18::int)) AS v(id, stock) WHERE item.id = v.id",
			"item : stock unknown , id checked , id checked ; [id=1] stock set 8, id checked , id checked ; [id=2] stock set 18, id checked , id checked "},
		{"UPDATE item t SET stock = c.n::int FROM (VALUES ($2, $1)) c (n, id) WHERE c.id = t.id AND t.version = 3",
			"item : stock set 8, id checked , id checked , version equal 3; [id=1] stock set 8, id checked , id checked , version equal 3"},
		{`WITH "_data" ("id", "stock") AS (VALUES (1::BIGINT, 8::BIGINT), (2::BIGINT, 18::BIGINT)) UPDATE "item" AS "t" SET "stock" = _data."stock" FROM "_data" WHERE ("t"."id" = _data."id")`,
			"item : stock unknown , id checked , id checked ; [id=1] stock set 8, id checked , id checked ; [id=2] stock set 18, id checked , id checked "},
		{"UPDATE item SET stock = v.stock FROM (VALUES (1, 8)) AS v(id, stock), other WHERE item.id = v.id", " : "},
		{"UPDATE item SET stock = CASE id WHEN 1 THEN 8 WHEN 2 THEN -18 END, n = n + 1 WHERE id IN (1, 2)",
			"item : stock unknown , n computed , id checked ; [id=1] stock set 8, n computed , id checked ; [id=2] stock set -18, n computed , id checked "},
		{`UPDATE "item" SET "stock" = (CASE WHEN ("item"."id" = $1) THEN $2 WHEN ("item"."id" = $3) THEN $4::int ELSE NULL END)::integer WHERE "item"."id" IN (1, 2)`,
			"item : stock unknown , id checked ; [id=1] stock set 8, id checked ; [id=2] stock set 18, id checked "},
		{"UPDATE item SET a = CASE WHEN id = 1 THEN 8 ELSE a END, b = CASE id WHEN 2 THEN NULL ELSE item.b END",
			"item : a unknown , b unknown ; [id=1] a set 8, b unknown ; [id=2] a unknown , b null "},
		{"UPDATE item SET stock = CASE id WHEN 1 THEN 8 ELSE 9 END", "item : stock unknown "},
		{"UPDATE item SET stock = CASE WHEN id > 1 THEN 8 END", "item : stock unknown "},
		{"UPDATE item SET stock = CASE WHEN id = 1 AND n = 2 THEN 8 END", "item : stock unknown "},
		{"UPDATE item SET stock = CASE id WHEN 1 THEN 8 END + 1", "item : stock unknown "},
		{"UPDATE item SET stock = CASE id WHEN 1 THEN stock + 8 END", "item : stock unknown ; [id=1] stock unknown "},
		{"UPDATE item SET stock = o.stock FROM other o WHERE item.id = o.id", " : "},
	} {
		w := Write(tt.sql, lex.PostgreSQL, params, []string{"id", "stock"})
		got := w.Table + " " + map[bool]string{true: "new"}[w.New] + ": " + show(w.Operands)
		for _, r := range w.Rows {
			var named []string
			for k, v := range r.Named {
				named = append(named, k+"="+v)
			}
			slices.Sort(named)
			got += fmt.Sprintf("; %v %s", named, show(r.Operands))
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.sql, got, tt.want)
		}
	}
	w := Write("REPLACE INTO `item` (`id`, `stock`) VALUES (1, '8')", lex.MySQL, nil, nil)
	if got := w.Table + show(w.Operands); got != "itemid set 1, stock set 8" || !w.New {
		t.Error(got)
	}
	for _, sql := range []string{"", "INSERT", "REPLACE INTO t VALUES (", "WITH v (a) AS (VALUES (", "UPDATE t SET a = v.a FROM (VALUES (1", "DELETE FROM", "WITH a ( b ) AS ( VALUES (1))", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE", "UPDATE t SET a = (CASE WHEN (t.b = 1) THEN 2 ELSE a END)::int WHERE c = 3"} {
		for cut := range len(sql) + 1 {
			Write(sql[:cut], lex.MySQL, nil, []string{"a"}) // must not panic
		}
	}
}

// TestDigest: what a digest stands for, and near misses.
func TestDigest(t *testing.T) {
	long := strings.Repeat("lorem ", 50)
	for written, want := range map[string]string{long: "copy ", long + "ipsum": "prefix ipsum", "my " + long: "suffix my ", long[1:]: "", strings.ToUpper(long): ""} {
		kind, constant, _ := Relate(Digest(long), written)
		if got := strings.TrimLeft(string(kind)+" "+constant, " "); got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
		if Same(Digest(long), written) != (written == long) || Same(written, Digest(long)) != (written == long) {
			t.Errorf("%s is the same, or not", written)
		}
	}
	if IsDigest("300 bytes") || IsDigest("") || Same("", "0 bytes, hash 0123456789abcdef") {
		t.Error("a digest that is none")
	}
}
