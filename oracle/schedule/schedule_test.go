package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// script makes a schedule of lines "session before>after [effect]: SQL", where states are - (idle), o (open) and f (failed).
func script(t *testing.T, product, level string, lines ...string) *Schedule {
	t.Helper()
	s := &Schedule{Product: product, Level: level}
	describe := mysql.New(mysql.MariaDB).Describe
	if product == "postgres" {
		describe = postgres.Describe
	}
	states := map[byte]answer.State{'-': answer.Idle, 'o': answer.Open, 'f': answer.Failed}
	for n, line := range lines {
		head, sql, ok := strings.Cut(line, ": ")
		words := strings.Fields(head)
		if !ok || len(words) < 2 {
			t.Fatalf("line %q", line)
		}
		var session int
		if _, err := fmt.Sscanf(words[0], "s%d", &session); err != nil {
			t.Fatal(err)
		}
		for len(s.Sessions) < session {
			s.Sessions = append(s.Sessions, Session{Name: fmt.Sprintf("s%d", len(s.Sessions)+1)})
		}
		list, err := describe(sql)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d statements, error %v", sql, len(list), err)
		}
		st := Step{Session: session - 1, Name: fmt.Sprint("step", n), Statement: list[0], Sent: 2*n + 1, Done: 2*n + 2, Before: states[words[1][0]], After: states[words[1][2]], Effect: answer.EffectNone}
		if len(words) > 2 {
			st.Effect = answer.Effect(strings.Join(words[2:], " "))
			if st.Effect != answer.EffectRolledBack || st.Statement.Control.Verb == statement.ControlNone {
				st.Answer.Err = &answer.Error{Code: "1213"}
			}
		}
		s.Steps = append(s.Steps, st)
	}
	return s
}

func TestTransactions(t *testing.T) {
	for _, test := range []struct {
		name           string
		product, level string
		lines          []string
		want           []string // session, steps, level, outcome, explicit or not, in the order of their ends
	}{
		{"the order of their ends", "mariadb", product.ReadCommitted,
			[]string{"s1 ->o: BEGIN", "s2 ->o: BEGIN", "s1 o>o: UPDATE t SET a = 1", "s2 o>o: UPDATE t SET b = 1", "s2 o>-: COMMIT", "s1 o>-: ROLLBACK"},
			[]string{"s2.1 [1 3 4] read committed committed explicit", "s1.1 [0 2 5] read committed aborted explicit"}},
		{"autocommit between explicit ones, settings outside", "mariadb", product.ReadCommitted,
			[]string{"s1 ->-: SET @x = 1", "s1 ->-: INSERT INTO t VALUES (1)", "s1 ->- statement failed: INSERT INTO t VALUES (1)", "s1 ->o: BEGIN", "s1 o>-: COMMIT"},
			[]string{"s1.1 [1] read committed committed implicit", "s1.2 [2] read committed aborted implicit", "s1.3 [3 4] read committed committed explicit"}},
		{"a COMMIT begins the next one by completion_type", "mariadb", product.ReadCommitted,
			[]string{"s1 ->-: SET completion_type = 1", "s1 ->o: BEGIN", "s1 o>o: COMMIT", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK AND NO CHAIN"},
			[]string{"s1.1 [1 2] read committed committed explicit", "s1.2 [3 4] read committed aborted explicit"}},
		{"a level for the next one only", "mariadb", product.ReadCommitted,
			[]string{"s1 ->-: SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "s1 ->o: BEGIN", "s1 o>-: COMMIT", "s1 ->-: SELECT 1"},
			[]string{"s1.1 [1 2] serializable committed explicit", "s1.2 [3] read committed committed implicit"}},
		{"a level for the session", "mariadb", product.ReadCommitted,
			[]string{"s1 ->-: SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "s1 ->-: SELECT 1", "s1 ->-: SELECT 1"},
			[]string{"s1.1 [1] serializable committed implicit", "s1.2 [2] serializable committed implicit"}},
		{"snapshot isolation by a setting", "mariadb", product.RepeatableRead,
			[]string{"s1 ->-: SET innodb_snapshot_isolation = ON", "s1 ->-: SELECT 1", "s1 ->-: SET innodb_snapshot_isolation = OFF", "s1 ->-: SELECT 1"},
			[]string{"s1.1 [1] snapshot committed implicit", "s1.2 [3] repeatable read committed implicit"}},
		{"the setting is MariaDB's", "mysql", product.RepeatableRead,
			[]string{"s1 ->-: SET innodb_snapshot_isolation = ON", "s1 ->-: SELECT 1"},
			[]string{"s1.1 [1] repeatable read committed implicit"}},
		{"TiDB's optimistic sessions", "tidb", product.RepeatableRead,
			[]string{"s1 ->-: SET SESSION tidb_txn_mode = 'optimistic'", "s1 ->o: BEGIN", "s1 o>-: COMMIT"},
			[]string{"s1.1 [1 2] snapshot committed explicit"}},
		{"a failed commit is an abort", "tidb", product.Snapshot,
			[]string{"s1 ->o: BEGIN", "s1 o>- rolled back: COMMIT"},
			[]string{"s1.1 [0 1] snapshot aborted explicit"}},
		{"a deadlock's victim", "mariadb", product.RepeatableRead,
			[]string{"s1 ->o: BEGIN", "s1 o>- rolled back: UPDATE t SET a = 1", "s1 ->-: COMMIT"},
			[]string{"s1.1 [0 1] repeatable read aborted explicit"}},
		{"an implicit commit", "mariadb", product.RepeatableRead,
			[]string{"s1 ->o: BEGIN", "s1 o>o: INSERT INTO t VALUES (1)", "s1 o>-: CREATE TABLE u (a INT)", "s1 ->o: BEGIN", "s1 o>o: BEGIN", "s1 o>-: COMMIT"},
			[]string{"s1.1 [0 1] repeatable read committed explicit", "s1.2 [2] repeatable read committed implicit", "s1.3 [3] repeatable read committed explicit",
				"s1.4 [4 5] repeatable read committed explicit"}},
		{"chained", "mariadb", product.RepeatableRead,
			[]string{"s1 ->o: BEGIN", "s1 o>o: COMMIT AND CHAIN", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK"},
			[]string{"s1.1 [0 1] repeatable read committed explicit", "s1.2 [2 3] repeatable read aborted explicit"}},
		{"open at the end, and a lost connection", "mariadb", product.RepeatableRead,
			[]string{"s1 ->o: BEGIN", "s2 ->o: BEGIN", "s2 o>- connection gone: COMMIT", "s3 ->o: BEGIN", "s3 o>- connection gone: SELECT 1"},
			[]string{"s2.1 [1 2] repeatable read unknown explicit", "s3.1 [3 4] repeatable read aborted explicit", "s1.1 [0] repeatable read aborted explicit"}},
	} {
		s := script(t, test.product, test.level, test.lines...)
		var got []string
		transactions := s.Transactions()
		for i, tx := range transactions {
			kind := "implicit"
			if tx.Explicit {
				kind = "explicit"
			}
			got = append(got, fmt.Sprintf("s%d.%d %v %s %s %s", tx.Session+1, tx.N, tx.Steps, tx.Level, tx.Outcome, kind))
			if i > 0 && tx.End < transactions[i-1].End {
				t.Errorf("%s: %v ends before the one in front of it", test.name, tx)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestTransactionsReadOnly(t *testing.T) {
	s := script(t, "mariadb", product.RepeatableRead, "s1 ->o: START TRANSACTION READ ONLY", "s1 o>-: COMMIT", "s1 ->o: BEGIN", "s1 o>-: COMMIT")
	list := s.Transactions()
	if !list[0].ReadOnly || list[1].ReadOnly {
		t.Errorf("read only: %v, %v; want true, false", list[0].ReadOnly, list[1].ReadOnly)
	}
	if tx := Of(list, 3); tx == nil || tx.N != 2 {
		t.Errorf("step 3 belongs to %v", tx)
	}
	if tx := Of(list, 9); tx != nil || list[0].Outcome != history.OutcomeCommitted {
		t.Errorf("step 9 belongs to %v", tx)
	}
}

// TestAccess: which transactions of a session are READ ONLY, in all forms in which that is said.
func TestAccess(t *testing.T) {
	for _, test := range []struct {
		product string
		lines   []string
		want    string // for each transaction: it is READ ONLY, or not
	}{
		{"mysql", []string{"SET SESSION TRANSACTION READ ONLY", "BEGIN", "BEGIN"}, "yes yes"},
		{"mysql", []string{"set session transaction isolation level serializable, read only", "BEGIN"}, "yes"},
		{"mysql", []string{"SET TRANSACTION READ ONLY", "BEGIN", "BEGIN"}, "yes no"},
		{"mariadb", []string{"SET SESSION TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "BEGIN", "BEGIN"}, "no yes"},
		{"mariadb", []string{"SET SESSION TRANSACTION READ ONLY", "START TRANSACTION READ WRITE", "BEGIN"}, "no yes"},
		{"mariadb", []string{"SET tx_read_only = 1", "BEGIN", "SET SESSION tx_read_only = OFF", "BEGIN"}, "yes no"},
		{"mysql", []string{"SET @@session.transaction_read_only := on", "BEGIN", "BEGIN"}, "yes yes"},
		{"mysql", []string{"SET @@transaction_read_only = 1", "BEGIN", "BEGIN"}, "yes no"},
		{"mysql", []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"}, "no"},
		{"postgres", []string{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN"}, "yes"},
		{"postgres", []string{"SET default_transaction_read_only TO on", "BEGIN", "BEGIN READ WRITE"}, "yes no"},
		{"postgres", []string{"SET default_transaction_read_only = 'on'", "SET default_transaction_read_only = off", "BEGIN"}, "no"},
		{"postgres", []string{"BEGIN", "SET TRANSACTION READ ONLY", "BEGIN"}, "yes no"},
		{"postgres", []string{"BEGIN READ ONLY", "SET LOCAL transaction_read_only = off"}, "no"},
		{"postgres", []string{"BEGIN", "SET transaction_read_only = on", "BEGIN"}, "yes no"},
		{"postgres", []string{"SET TRANSACTION READ ONLY", "BEGIN"}, "no"}, // a warning: there is no transaction
	} {
		lines, inside := []string{}, false
		for _, sql := range test.lines {
			begins := strings.HasPrefix(sql, "BEGIN") || strings.HasPrefix(sql, "START")
			switch {
			case begins && inside:
				lines = append(lines, "s1 o>-: COMMIT", "s1 ->o: "+sql)
			case begins:
				lines = append(lines, "s1 ->o: "+sql)
			case inside && (test.product == "postgres"):
				lines = append(lines, "s1 o>o: "+sql)
			case inside:
				lines, inside = append(lines, "s1 o>-: COMMIT", "s1 ->-: "+sql), false
			default:
				lines = append(lines, "s1 ->-: "+sql)
			}
			inside = inside || begins
		}
		var got []string
		for _, tx := range script(t, test.product, product.RepeatableRead, lines...).Transactions() {
			got = append(got, map[bool]string{true: "yes", false: "no"}[tx.ReadOnly])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s, %q: READ ONLY %v, want %s", test.product, test.lines, got, test.want)
		}
	}
}

// TestRestarted: InnoDB begins its part of a transaction again where the transaction goes back to a savepoint from before its first statement.
func TestRestarted(t *testing.T) {
	for _, test := range []struct {
		name, product string
		lines         []string
		want          int
	}{
		{"before the first statement", "mariadb", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO SAVEPOINT P", "s1 o>o: SELECT 1"}, 3},
		{"twice", "mysql", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p"}, 5},
		{"a savepoint that is new after it", "mysql", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p", "s1 o>o: SAVEPOINT q", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO q"}, 6},
		{"after the first statement", "mariadb", []string{"s1 ->o: BEGIN", "s1 o>o: SELECT 1", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p"}, -1},
		{"set again after the first statement", "mariadb", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: SAVEPOINT p", "s1 o>o: ROLLBACK TO p"}, -1},
		{"the snapshot was taken before", "mariadb", []string{"s1 ->o: START TRANSACTION WITH CONSISTENT SNAPSHOT", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p"}, -1},
		{"it was refused", "mariadb", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o failed: ROLLBACK TO p"}, -1},
		{"another product", "postgres", []string{"s1 ->o: BEGIN", "s1 o>o: SAVEPOINT p", "s1 o>o: SELECT 1", "s1 o>o: ROLLBACK TO p"}, -1},
	} {
		s := script(t, test.product, product.RepeatableRead, test.lines...)
		tx := s.Transactions()[0]
		for i := range s.Steps {
			if want := i > test.want; s.Held(&tx, i) != want {
				t.Errorf("%s: step %d is held: %v", test.name, i, !want)
			}
		}
		if test.want >= 0 && !s.Restarted(&tx, test.want) {
			t.Errorf("%s: step %d does not restart the transaction", test.name, test.want)
		}
	}
}

// TestUnchecked: a query behind a write of an optimistic transaction that was not committed may see duplicates, and no other.
func TestUnchecked(t *testing.T) {
	for _, test := range []struct {
		name, product, level string
		lines                []string
		want                 []int
	}{
		{"rolled back", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: SELECT 1", "s1 o>o: INSERT INTO t VALUES (1)", "s1 o>o: SELECT 2", "s1 o>-: ROLLBACK", "s1 ->-: SELECT 3"}, []int{3, 4}},
		{"refused at COMMIT, after an UPDATE", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: UPDATE t SET a = 1", "s1 o>o: SELECT 1", "s1 o>- rolled back: COMMIT"}, []int{2, 3}},
		{"another session", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: INSERT INTO t VALUES (1)", "s2 ->-: SELECT 1", "s1 o>-: ROLLBACK"}, []int{3}},
		{"committed", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: INSERT INTO t VALUES (1)", "s1 o>o: SELECT 1", "s1 o>-: COMMIT"}, nil},
		{"only deleted", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: DELETE FROM t", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK"}, nil},
		{"the INSERT failed", "tidb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o failed: INSERT INTO t VALUES (1)", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK"}, nil},
		{"pessimistic", "tidb", product.RepeatableRead, []string{"s1 ->o: BEGIN", "s1 o>o: INSERT INTO t VALUES (1)", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK"}, nil},
		{"another product", "mariadb", product.Snapshot, []string{"s1 ->o: BEGIN", "s1 o>o: INSERT INTO t VALUES (1)", "s1 o>o: SELECT 1", "s1 o>-: ROLLBACK"}, nil},
	} {
		s := script(t, test.product, test.level, test.lines...)
		list := s.Unchecked()
		var got []int
		for i := range s.Steps {
			if list[&s.Steps[i]] {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
