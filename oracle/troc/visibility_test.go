package troc

import (
	"slices"
	"testing"

	"wirecheck/answer"

	"wirecheck/product"
)

// TestTableII compares the data with table II of the paper, for the products that it has.
func TestTableII(t *testing.T) {
	paper := map[product.Kind][4]product.Visibility{ // RU, RC, RR, SER; V1 always holds, and SERIALIZABLE has nothing else, since locks keep all others away
		product.Select: {product.V2, product.V3, product.V4, product.V3}, product.Share: {product.V3, product.V3, product.V3, product.V3}, product.ForUpdate: {product.V3, product.V3, product.V3, product.V3},
		product.Update: {product.V3, product.V3, product.V3, product.V3}, product.Insert: {product.V3, product.V3, product.V3, product.V3}, product.Delete: {product.V3, product.V3, product.V3, product.V3},
	}
	levels := []string{product.ReadUncommitted, product.ReadCommitted, product.RepeatableRead, product.Serializable}
	for _, name := range []string{"mysql", "mariadb"} {
		for kind, want := range paper {
			for i, level := range levels {
				s, ok := product.Of(name).View(level, kind)
				if !ok || s.Locked != want[i] {
					t.Errorf("%s, %s, %s: got V%d, want V%d", name, level, kind, s.Locked, want[i])
				}
			}
		}
	}
	// TiDB's are the same (III-E2), at the levels that it has.
	for kind, want := range paper {
		for i, level := range levels[1:3] {
			if s, ok := product.Of("tidb").View(level, kind); !ok || s.Locked != want[i+1] {
				t.Errorf("tidb, %s, %s: got V%d, want V%d", level, kind, s.Locked, want[i+1])
			}
		}
	}
	for _, level := range []string{product.ReadUncommitted, product.Serializable} {
		if _, ok := product.Of("tidb").View(level, product.Select); ok {
			t.Errorf("tidb has no %s", level)
		}
	}
}

// TestTableIII compares the data with table III of the paper.
func TestTableIII(t *testing.T) {
	type cell struct {
		mode      product.Mode
		predicate bool
	}
	none, s, x := cell{}, cell{mode: product.LockShare}, cell{mode: product.LockUpdate}
	sp, xp := cell{product.LockShare, true}, cell{product.LockUpdate, true}
	mysql := map[product.Kind][4]cell{
		product.Share: {s, s, sp, sp}, product.ForUpdate: {x, x, xp, xp}, product.Update: {x, x, xp, xp}, product.Insert: {x, x, x, x}, product.Delete: {x, x, xp, xp},
		product.Select: {none, none, none, none}, // in SERIALIZABLE transactions it is a product.Share
	}
	for kind, want := range mysql {
		for i, level := range []string{product.ReadUncommitted, product.ReadCommitted, product.RepeatableRead, product.Serializable} {
			for _, name := range []string{"mysql", "mariadb"} {
				if l, _ := product.Of(name).Lock(level, kind); (cell{l.Mode, l.Predicate}) != want[i] {
					t.Errorf("%s, %s, %s: got %v %v, want %v", name, level, kind, l.Mode, l.Predicate, want[i])
				}
			}
		}
	}
	tidb := map[product.Kind]cell{product.Select: none, product.Share: none, product.ForUpdate: x, product.Update: x, product.Insert: x, product.Delete: x} // FOR SHARE: unlike the paper, TiDB takes no locks
	for kind, want := range tidb {
		for _, level := range []string{product.ReadCommitted, product.RepeatableRead} {
			if l, _ := product.Of("tidb").Lock(level, kind); (cell{l.Mode, l.Predicate}) != want {
				t.Errorf("tidb, %s, %s: got %v %v, want %v", level, kind, l.Mode, l.Predicate, want)
			}
		}
	}
}

func TestFeatures(t *testing.T) {
	f := featuresOf([]string{
		"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9) DEFAULT 'x, serial', c TIMESTAMP DEFAULT now())",
		"CREATE TABLE u (a INT, b INT, CONSTRAINT p PRIMARY KEY (a, b), UNIQUE (b), c INT REFERENCES u (b))",
		"CREATE VIEW v AS SELECT a FROM u", "CREATE VIEW w AS SELECT random() FROM u",
		"CREATE VIEW x AS SELECT a FROM v WHERE a > 1", "CREATE VIEW y AS SELECT u.a FROM u JOIN t ON u.a = t.id",
	}, []string{"t", "u"})
	if !slices.Equal(f.generated["t"], []string{"id", "c"}) && !slices.Equal(f.generated["t"], []string{"id", "b", "c"}) || f.generated["u"] != nil {
		t.Errorf("generated: %v", f.generated)
	}
	if !slices.Equal(f.primary["t"], []string{"id"}) || !slices.Equal(f.primary["u"], []string{"a", "b"}) || !slices.Equal(f.unique["u"], []string{"b"}) {
		t.Errorf("keys: %v, %v", f.primary, f.unique)
	}
	part := featuresOf([]string{"CREATE TABLE t (a INT, c VARCHAR(9), PRIMARY KEY (a DESC, `c`(3)))", "CREATE TABLE u (a INT, PRIMARY KEY (a, (a + 1)))"}, []string{"t", "u"})
	columns := []answer.Column{{Name: "a"}, {Name: "c"}}
	rekeys := func(from, to string) [2]bool {
		certain, perhaps := part.rekeys("t", columns, []answer.Value{answer.Value("1"), answer.Value(from)}, []answer.Value{answer.Value("1"), answer.Value(to)})
		return [2]bool{certain, perhaps}
	}
	if !slices.Equal(part.primaryKey("t", columns), []int{0, 1}) || part.primaryKey("u", columns) != nil || rekeys("abc", "abx") != [2]bool{false, true} || rekeys("abc", "abc") != [2]bool{} {
		t.Errorf("a key with the beginning of a column: %v, %v", part.primary, part.prefixes)
	}
	_, both := f.views["y"]
	_, random := f.views["w"]
	if !f.keys || f.views["v"] != "u" || f.views["x"] != "u" || !both || f.views["y"] != "" || random {
		t.Errorf("features: %+v", f)
	}
	for sql, want := range map[string]bool{
		"CREATE TRIGGER x AFTER INSERT ON t": true, "CREATE TABLE t (a INT) INHERITS (u)": true, "CREATE TABLE trigger_log (a INT)": false,
		"ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (a) DEFERRABLE INITIALLY DEFERRED":                   false,
		"ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (a) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED": false,
	} {
		if got := featureless([]string{sql}); (got != "") != want {
			t.Errorf("%s: %q", sql, got)
		}
	}
}
