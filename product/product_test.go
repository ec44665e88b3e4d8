package product

import (
	"regexp"
	"slices"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/answer"
)

// TestLevels holds the tables of levels to what they must satisfy as a whole.
func TestLevels(t *testing.T) {
	for _, p := range All() {
		seen := map[string]bool{}
		var last *Level
		for i := range p.Levels {
			l := &p.Levels[i]
			if seen[l.History] || l.Source == "" || l.Gives.Name == "" || (l.Setting == nil) != (l.Under == nil) {
				t.Errorf("%s: level %+v is there twice or is not complete", p.Name, l)
			}
			seen[l.History] = true
			for _, u := range l.Under {
				if p.Level(u) == nil {
					t.Errorf("%s: %s stands under %q, which is no level", p.Name, l.History, u)
				}
			}
			for _, a := range anomaly.List {
				// InnoDB's REPEATABLE READ really is weaker than READ COMMITTED in this: a transaction that has written mixes its snapshot with current rows.
				if last == nil || a.Phenomenon == anomaly.POTV && l.History == RepeatableRead {
					continue
				}
				if last.Gives.Prevents(a.Phenomenon) && !l.Gives.Prevents(a.Phenomenon) {
					t.Errorf("%s prevents %s at %s, but not at %s", p.Name, a.Phenomenon, last.History, l.History)
				}
			}
			last = l
		}
		if !slices.ContainsFunc(p.Levels, func(l Level) bool { return l.SQL == p.Default }) {
			t.Errorf("%s: the default level %q is none of its levels", p.Name, p.Default)
		}
		if p.Title == "" || p.Dialect == "" || p.Refusals == "" {
			t.Errorf("%s lacks a title, a dialect or its refusals", p.Name)
		}
	}
}

func TestPromises(t *testing.T) {
	for _, tt := range []struct {
		product, level string
		ph             anomaly.Phenomenon
		want           bool
	}{
		{"postgres", ReadUncommitted, anomaly.PG1a, true}, {"postgres", ReadCommitted, anomaly.P4, false}, {"postgres", RepeatableRead, anomaly.P4, true},
		{"postgres", RepeatableRead, anomaly.PGNonadjacent, true}, {"postgres", RepeatableRead, anomaly.PG2Item, false}, {"postgres", Serializable, anomaly.PG2Item, true},
		{"mariadb", ReadUncommitted, anomaly.PG1a, false}, {"mariadb", ReadUncommitted, anomaly.PG0, true}, {"mariadb", RepeatableRead, anomaly.POTV, false},
		{"mariadb", RepeatableRead, anomaly.P4, false}, {"mariadb", Snapshot, anomaly.P4, true}, {"mysql", Serializable, anomaly.PG2Item, true},
		{"mysql", Snapshot, anomaly.PG0, false}, {"tidb", RepeatableRead, anomaly.PGSingle, false}, {"tidb", Snapshot, anomaly.PGNonadjacent, true},
		{"sqlite", Serializable, anomaly.PG2Item, true}, {"sqlite", "", anomaly.PG0, false}, {"other", Serializable, anomaly.PG0, false},
	} {
		if got, source := Of(tt.product).Promises(tt.level, tt.ph); got != tt.want || got && source == "" {
			t.Errorf("%s at %q promises to prevent %s: %v (%s)", tt.product, tt.level, tt.ph, got, source)
		}
	}
	for name, want := range map[string]string{"postgres": RepeatableRead, "mysql": Serializable, "mariadb": Snapshot, "tidb": Snapshot, "sqlite": Serializable, "x": ""} {
		if got := Of(name).Weakest(anomaly.P4); got != want {
			t.Errorf("%s prevents lost updates from %q on, want %q", name, got, want)
		}
	}
}

// TestUnknown: a product without rows gives nothing, and above all not another one's rows.
func TestUnknown(t *testing.T) {
	p := Of("cockroach")
	if p.Known() || p.Traits != (Traits{}) || p.Weakest(anomaly.PG0) != "" || p.Cause(Counter) != nil || p.Real(RepeatableRead, true) != RepeatableRead || p.Stricter() != nil {
		t.Errorf("of an unknown product something is known: %+v", p)
	}
	for _, at := range []struct {
		p     *Product
		level string
	}{{p, Serializable}, {Of("sqlite"), Serializable}, {Of("mysql"), Snapshot}, {Of("tidb"), Serializable}} {
		if _, ok := at.p.View(at.level, Select); ok {
			t.Errorf("%s at %s has a line of table II", at.p.Name, at.level)
		}
	}
	if _, ok := Of("sqlite").Lock(Serializable, Update); ok {
		t.Error("SQLite has a line of table III, and nothing waits there")
	}
	if Of("mysql").Cause(DeletedRow) != nil {
		t.Error("MySQL has MariaDB's bug")
	}
}

// report finds the name of a report, or that none is known.
var report = regexp.MustCompile(`bugs\.mysql\.com/\d+|MDEV-\d+|#\d+|\d@|no report known`)

// TestPermitted: what is permitted names the vendor's words, and the reports that the vendor closed, or says that none is known. A near miss does not.
func TestPermitted(t *testing.T) {
	for _, p := range All() {
		for _, c := range p.Causes {
			if !c.Confirmed && (c.Reason == "" || !report.MatchString(c.Source)) {
				t.Errorf("%s: %s names no report: %q", p.Name, c.ID, c.Source)
			}
		}
	}
	if report.MatchString("MySQL manual, 17.7.2.1, READ COMMITTED") {
		t.Error("the manual's words alone count as a report")
	}
}

// TestRows: tables II and III are complete for products that wait, and every line has its source and can be reached.
func TestRows(t *testing.T) {
	kinds := []Kind{Select, Share, ForUpdate, Update, Delete, Insert}
	for _, p := range All() {
		views, locks := map[string]bool{}, map[string]bool{}
		for _, l := range p.Levels {
			for _, k := range kinds {
				v, viewed := p.View(l.History, k)
				lock, locked := p.Lock(l.History, k)
				if viewed != locked || viewed != (p.AfterWait != WaitUnknown) {
					t.Errorf("%s at %s: %s has a line of table II: %v, of table III: %v", p.Name, l.History, k, viewed, locked)
				}
				if viewed && (v.Source == "" || lock.Source == "" || v.Locked == 0 || v.Read == 0) {
					t.Errorf("%s at %s: the lines of %s are not complete", p.Name, l.History, k)
				}
				views[v.Source], locks[lock.Source] = true, true
			}
		}
		for _, v := range p.Views {
			if !views[v.Source] {
				t.Errorf("%s: no level and kind reach the view %q", p.Name, v.Source)
			}
		}
		for _, l := range p.Locks {
			if !locks[l.Source] {
				t.Errorf("%s: no level and kind reach the lock %q", p.Name, l.Source)
			}
		}
		causes := map[CauseID]bool{}
		for _, c := range p.Causes {
			if causes[c.ID] || c.ID == "" || c.Reason == "" || c.Source == "" {
				t.Errorf("%s: cause %q is there twice, or has no reason or source", p.Name, c.ID)
			}
			causes[c.ID] = true
		}
	}
}

func TestReal(t *testing.T) {
	for _, tt := range []struct {
		product, level string
		on             bool
		want           string
	}{
		{"mariadb", RepeatableRead, true, Snapshot}, {"mariadb", RepeatableRead, false, RepeatableRead}, {"mariadb", Serializable, true, Serializable},
		{"mysql", RepeatableRead, true, RepeatableRead}, {"tidb", ReadCommitted, true, Snapshot}, {"tidb", RepeatableRead, true, Snapshot}, {"postgres", RepeatableRead, true, RepeatableRead},
	} {
		if got := Of(tt.product).Real(tt.level, tt.on); got != tt.want {
			t.Errorf("%s: %s with the setting %v is %s, want %s", tt.product, tt.level, tt.on, got, tt.want)
		}
	}
	if tidb := Of("tidb"); !tidb.Optimistic(Snapshot, true) || tidb.Optimistic(Snapshot, false) || tidb.Optimistic(RepeatableRead, true) || Of("mariadb").Optimistic(Snapshot, true) {
		t.Error("an optimistic transaction is an explicit one of TiDB's at snapshot")
	}
}

// TestParticipation: statements that use tables are numbers, "(n" is going back to a savepoint that stands in front of statement n.
func TestParticipation(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []int // n: statement n; -n: back to in front of n
		want  []bool
	}{
		{"savepoint before the first statement", []int{1, 2, -1}, []bool{true}},
		{"savepoint behind the first statement", []int{1, 2, -2}, []bool{false}},
		{"nothing was done", []int{-1}, []bool{false}},
		{"twice to the same savepoint", []int{1, -1, 2, -1}, []bool{true, true}},
		{"a second savepoint, set after the restart", []int{1, -1, 2, -2}, []bool{true, true}},
		{"a second savepoint, set behind a statement after the restart", []int{1, -1, 2, 3, -3}, []bool{true, false}},
		{"back and nothing done since", []int{1, -1, -1}, []bool{true, false}},
	} {
		var p Participation
		var got []bool
		for _, n := range tt.steps {
			if n > 0 {
				p.Use(n)
			} else {
				got = append(got, p.RollbackTo(-n))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	// PostgreSQL manual, table 13.3.
	modes := []Mode{LockKeyShare, LockShare, LockNoKeyUpdate, LockUpdate}
	want := [][]bool{{false, false, false, true}, {false, false, true, true}, {false, true, true, true}, {true, true, true, true}}
	for i, a := range modes {
		for j, b := range modes {
			if a.Conflicts(b) != want[i][j] {
				t.Errorf("%d and %d conflict: %v", a, b, !want[i][j])
			}
		}
		if LockNone.Conflicts(a) {
			t.Errorf("no lock conflicts with %d", a)
		}
	}
}

func TestOfVersion(t *testing.T) {
	for version, want := range map[string]string{
		"10.11.6-MariaDB-0+deb12u1": "mariadb", "5.5.5-10.6.1-mariadb": "mariadb", "8.0.11-TiDB-v7.5.1": "tidb", "8.4.3": "mysql", "": "mysql",
	} {
		if got := OfVersion(version).Name; got != want {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
	}
}

// TestErrors tells errors apart that have one code.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		dbms, code, message string
		want                answer.Reason
		retry               bool
	}{
		{"tidb", "1105", "lock wait timeout", answer.ReasonLockTimeout, true},
		{"tidb", "1105", "pessimistic lock retry limit reached", answer.ReasonLockTimeout, true},
		{"tidb", "1105", "can not execute write statement when 'tidb_snapshot' is set", answer.ReasonOther, false},
		{"tidb", "1105", "runtime error: index out of range [3] with length 3", answer.ReasonInternal, false},
		{"mysql", "1105", "lock wait timeout", answer.ReasonInternal, false},
		{"postgres", "XX000", "tuple concurrently updated", answer.ReasonSerialization, true},
		{"postgres", "XX000", "could not find memoization table entry", answer.ReasonInternal, false},
		{"postgres", "40001", "could not serialize access due to concurrent update", answer.ReasonSerialization, true},
	} {
		if got := Of(tt.dbms).Error(tt.code, tt.message); got.Reason != tt.want || got.Retry != tt.retry {
			t.Errorf("%s %s %q: %s, to be repeated: %v; want %s, %v", tt.dbms, tt.code, tt.message, got.Reason, got.Retry, tt.want, tt.retry)
		}
	}
}
