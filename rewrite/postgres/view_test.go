package postgres_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// viewForms are queries of views, with their coverage and what they read.
var viewForms = []form{
	{`SELECT * FROM rich`, "exact", "read account 2, read account 3, read account 4"},
	{`SELECT owner FROM rich r WHERE owner LIKE 'b%'`, "exact", "read account 2"},
	{`SELECT owner FROM public.rich WHERE rich.id = 3`, "exact", "read account 3"},
	{`SELECT id FROM rich ORDER BY id LIMIT 1`, "exact", "read account 2"},
	{`SELECT count(*) FROM rich`, "exact", "read account 2, read account 3, read account 4"},
	{`SELECT count(*), max(owner) FROM rich WHERE id < 4`, "exact", "read account 2, read account 3"},
	{`SELECT owner, count(*) FROM rich GROUP BY owner ORDER BY owner`, "exact", "read account 2, read account 3, read account 4"},
	{`SELECT by, owner, count(*) FROM placed GROUP BY placed.by, owner ORDER BY placed.owner DESC, by`, "exact", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT * FROM richer`, "exact", "read account 3, read account 4"},
	{`SELECT amount FROM placed WHERE by = 1`, "exact", "read account 1, read account 1, read orders 10, read orders 11"},
	{`SELECT * FROM placed_rich WHERE id = 12`, "opaque", ""}, // one table comes twice
	{`SELECT r.id, o.id FROM rich r JOIN orders o ON o.account_id = r.id`, "exact", "read account 2, read orders 12"},
	{`SELECT r.id, p.id FROM rich r, placed p WHERE p.by = r.id`, "exact", "read account 2, read account 2, read orders 12"},
	{`SELECT id FROM rich WHERE id = 9`, "exact", ""},
	{`SELECT r.id, (SELECT note FROM orders WHERE account_id = r.id) FROM rich r WHERE id = 2`, "exact", "read account 2, read orders 12"},

	{`SELECT r.id, o.id FROM rich r LEFT JOIN orders o ON o.account_id = r.id WHERE r.id = 2`, "approximate", "read orders 12"},
	{`SELECT a.id FROM account a LEFT JOIN rich r ON r.id = a.id WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id FROM account a WHERE a.id IN (SELECT id FROM rich)`, "approximate", "read account 2, read account 3, read account 4"},
	{`SELECT a, b FROM rich AS r(a, b)`, "opaque", ""},
	{`SELECT DISTINCT owner FROM rich`, "opaque", ""},
	{`SELECT upper(owner) AS owner, count(*) FROM rich GROUP BY owner ORDER BY owner`, "opaque", ""},
	{`SELECT owner, array_agg(id) FROM rich GROUP BY owner ORDER BY owner`, "opaque", ""},
	{`SELECT owner, count(*) FROM rich GROUP BY owner`, "opaque", ""},
	{`SELECT by, owner, count(*) FROM placed GROUP BY by, owner ORDER BY owner`, "opaque", ""},
	{`SELECT owner, count(*) FROM rich GROUP BY owner HAVING count(*) > 1 ORDER BY owner`, "opaque", ""},
	{`SELECT owner, count(*) FROM rich GROUP BY owner ORDER BY owner LIMIT 1`, "opaque", ""},
	{`SELECT owner FROM rich WHERE id = 2 FOR UPDATE`, "opaque", ""},
	{`SELECT id FROM rich UNION ALL SELECT id FROM orders WHERE id = 10`, "approximate", "read orders 10"},
	{`SELECT * FROM nameless`, "opaque", ""},
	{`SELECT * FROM totals`, "opaque", ""},
	{`SELECT * FROM maybe`, "opaque", ""},
	{`SELECT * FROM busy`, "opaque", ""},
	{`SELECT * FROM couples`, "opaque", ""},
	{`SELECT * FROM first`, "opaque", ""},
}

// TestViews: a view that shows the keys of its tables is seen, and one that does not is not.
func TestViews(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	for i, f := range slices.Concat(viewForms, viewForms) {
		sc := r.Script(f.sql, c, postgres.Session{Firm: i >= len(viewForms)})
		var all []history.Access
		for _, a := range verify(t, conn, sc, f.sql, "") {
			all = append(all, a...)
		}
		if got := facts(all); got != f.facts || coverage(sc.Plans[0]) != f.coverage {
			t.Errorf("%s\nsent %s\ntells %q, %s (%s), want %q, %s", f.sql, sc.SQL, got, coverage(sc.Plans[0]), sc.Plans[0].Why, f.facts, f.coverage)
		}
	}
}

// TestViewReplaced: a view that became another one since the server was asked tells nothing, and so does one at a level at which the subquery would lock.
func TestViewReplaced(t *testing.T) {
	conn, c, _ := setUp(t)
	sql := `SELECT id FROM rich WHERE id = 2`
	sc := postgres.New(rewrite.CaptureAuto).Script(sql, c, postgres.Session{})
	read := func(before string) string {
		t.Helper()
		results, err := conn.Exec(t.Context(), "BEGIN; "+before+sc.SQL+"; ROLLBACK").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		row := results[len(results)-2].Rows[0]
		list, err := sc.Plans[0].Decode(nil, row[len(row)-sc.Plans[0].Hidden:])
		if err != nil {
			return err.Error()
		}
		return facts(list)
	}
	if got := read(""); got != "read account 2" {
		t.Errorf("the view as it was tells %q", got)
	}
	for _, before := range []string{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; ", "CREATE OR REPLACE VIEW rich AS SELECT id, note AS owner FROM orders WHERE id = 12 UNION ALL SELECT 2, 'x'; "} {
		if got := read(before); got != rewrite.ErrPartial.Error() {
			t.Errorf("behind %s it tells %q", before, got)
		}
	}
}

// TestViewColumns: a column of a view stands for that of the table that it shows, and one that it computes for none.
func TestViewColumns(t *testing.T) {
	_, c, _ := setUp(t)
	for view, want := range map[string]map[string]rewrite.Shows{
		"placed": {"id": {Table: "public.orders", Name: "id"}, "account_id": {Table: "public.orders", Name: "account_id"}, "amount": {Table: "public.orders", Name: "amount"},
			"note": {Table: "public.orders", Name: "note"}, "by": {Table: "public.account", Name: "id"}, "owner": {Table: "public.account", Name: "owner"}},
		"richer": {"key": {Table: "public.account", Name: "id"}},
	} {
		plan := postgres.New(rewrite.CaptureAuto).Script(`SELECT * FROM `+view+` v WHERE 1 = 1`, c, postgres.Session{}).Plans[0]
		if diff := cmp.Diff(map[string]map[string]rewrite.Shows{"public." + view: want}, plan.Views); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
}
