package troc

import (
	"slices"
	"testing"

	"wirecheck/oracle"
)

// TestTableII compares the data with table II of the paper, for the products that it has.
func TestTableII(t *testing.T) {
	paper := map[Kind][4]Visibility{ // RU, RC, RR, SER; V1 always holds, and SERIALIZABLE has nothing else, since locks keep all others away
		KindSelect: {V2, V3, V4, V3}, KindShare: {V3, V3, V3, V3}, KindForUpdate: {V3, V3, V3, V3},
		KindUpdate: {V3, V3, V3, V3}, KindInsert: {V3, V3, V3, V3}, KindDelete: {V3, V3, V3, V3},
	}
	levels := []string{oracle.ReadUncommitted, oracle.ReadCommitted, oracle.RepeatableRead, oracle.Serializable}
	for _, product := range innodb {
		for kind, want := range paper {
			for i, level := range levels {
				s, ok := StrategyOf(product, level, kind)
				if !ok || s.Locked != want[i] {
					t.Errorf("%s, %s, %s: got V%d, want V%d", product, level, kind, s.Locked, want[i])
				}
			}
		}
	}
	// TiDB's are the same (III-E2), at the levels that it has.
	for kind, want := range paper {
		for i, level := range levels[1:3] {
			if s, ok := StrategyOf("tidb", level, kind); !ok || s.Locked != want[i+1] {
				t.Errorf("tidb, %s, %s: got V%d, want V%d", level, kind, s.Locked, want[i+1])
			}
		}
	}
	for _, level := range []string{oracle.ReadUncommitted, oracle.Serializable} {
		if _, ok := StrategyOf("tidb", level, KindSelect); ok {
			t.Errorf("tidb has no %s", level)
		}
	}
}

// TestTablesAreWhole: every level that a product promises something at has a line for each kind, with a source.
func TestTablesAreWhole(t *testing.T) {
	for _, p := range oracle.Promises {
		if p.Product == "cockroach" || p.Product == "sqlite" {
			continue
		}
		for _, kind := range all {
			s, ok := StrategyOf(p.Product, p.Level, kind)
			l, also := LocksOf(p.Product, p.Level, kind)
			if !ok || !also || s.Source == "" || l.Source == "" {
				t.Errorf("%s at %s, %s: %v, %v", p.Product, p.Level, kind, s, l)
			}
		}
	}
	for _, c := range Causes {
		if c.Source == "" || c.Reason == "" || c.Kind != oracle.KindViolation && c.Kind != oracle.KindPermitted {
			t.Errorf("cause %+v", c)
		}
	}
}

// TestTableIII compares the data with table III of the paper.
func TestTableIII(t *testing.T) {
	type cell struct {
		mode      Mode
		predicate bool
	}
	none, s, x := cell{}, cell{mode: Share}, cell{mode: Update}
	sp, xp := cell{Share, true}, cell{Update, true}
	mysql := map[Kind][4]cell{
		KindShare: {s, s, sp, sp}, KindForUpdate: {x, x, xp, xp}, KindUpdate: {x, x, xp, xp}, KindInsert: {x, x, x, x}, KindDelete: {x, x, xp, xp},
		KindSelect: {none, none, none, none}, // in SERIALIZABLE transactions it is a KindShare
	}
	for kind, want := range mysql {
		for i, level := range []string{oracle.ReadUncommitted, oracle.ReadCommitted, oracle.RepeatableRead, oracle.Serializable} {
			for _, product := range innodb {
				if l, _ := LocksOf(product, level, kind); (cell{l.Mode, l.Predicate}) != want[i] {
					t.Errorf("%s, %s, %s: got %v %v, want %v", product, level, kind, l.Mode, l.Predicate, want[i])
				}
			}
		}
	}
	tidb := map[Kind]cell{KindSelect: none, KindShare: none, KindForUpdate: x, KindUpdate: x, KindInsert: x, KindDelete: x} // FOR SHARE: unlike the paper, TiDB takes no locks
	for kind, want := range tidb {
		for _, level := range []string{oracle.ReadCommitted, oracle.RepeatableRead} {
			if l, _ := LocksOf("tidb", level, kind); (cell{l.Mode, l.Predicate}) != want {
				t.Errorf("tidb, %s, %s: got %v %v, want %v", level, kind, l.Mode, l.Predicate, want)
			}
		}
	}
}

// TestModes is the table of conflicts of PostgreSQL's manual, 13.3.2 (table 13.3).
func TestModes(t *testing.T) {
	conflicts := map[Mode][]Mode{
		KeyShare: {Update}, Share: {NoKeyUpdate, Update}, NoKeyUpdate: {Share, NoKeyUpdate, Update}, Update: {KeyShare, Share, NoKeyUpdate, Update},
	}
	for _, a := range []Mode{None, KeyShare, Share, NoKeyUpdate, Update} {
		for _, b := range []Mode{None, KeyShare, Share, NoKeyUpdate, Update} {
			if got, want := a.Conflicts(b), slices.Contains(conflicts[a], b); got != want {
				t.Errorf("%v and %v: got %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestFeatures(t *testing.T) {
	f := featuresOf([]string{
		"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9) DEFAULT 'x, serial', c TIMESTAMP DEFAULT now())",
		"CREATE TABLE u (a INT, b INT, CONSTRAINT p PRIMARY KEY (a, b), UNIQUE (b), c INT REFERENCES u (b))",
		"CREATE VIEW v AS SELECT a FROM u", "CREATE VIEW w AS SELECT random() FROM u",
	}, []string{"t", "u"})
	if !slices.Equal(f.generated["t"], []string{"id", "c"}) && !slices.Equal(f.generated["t"], []string{"id", "b", "c"}) || f.generated["u"] != nil {
		t.Errorf("generated: %v", f.generated)
	}
	if !slices.Equal(f.primary["t"], []string{"id"}) || !slices.Equal(f.primary["u"], []string{"a", "b"}) || !slices.Equal(f.unique["u"], []string{"b"}) {
		t.Errorf("keys: %v, %v", f.primary, f.unique)
	}
	if !f.itself["u"] || f.itself["t"] || !f.keys || !f.views["v"] || f.views["w"] {
		t.Errorf("features: %+v", f)
	}
	for sql, want := range map[string]bool{
		"CREATE TABLE t (a INT) ENGINE=MyISAM": true, "CREATE TABLE t (a INT) ENGINE=InnoDB": false, "CREATE TRIGGER x AFTER INSERT ON t": true,
		"CREATE TABLE t (a INT) INHERITS (u)": true, "CREATE TABLE trigger_log (a INT)": false,
		"ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (a) DEFERRABLE INITIALLY DEFERRED": true,
	} {
		if got := featureless([]string{sql}); (got != "") != want {
			t.Errorf("%s: %q", sql, got)
		}
	}
}
