package troc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/troc"
	"wirecheck/product"
)

const twoRows = "CREATE TABLE t (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 0), (2, 0)"

// TestHistories judges hand-made histories. Each rule has one that keeps it and a near miss beside it that breaks it.
func TestHistories(t *testing.T) {
	const (
		ru, rc, rr, si, ser = product.ReadUncommitted, product.ReadCommitted, product.RepeatableRead, product.Snapshot, product.Serializable
		result, state       = "violation: " + oracle.NameResult, "violation: " + oracle.NameFinalState
		blocking, refused   = "violation: " + oracle.NameBlocking, "violation: " + oracle.NameWrite
		fails               = "violation: " + oracle.NameError
	)
	type at struct{ products, levels, want string } // several of each
	tests := []struct {
		name, history string
		at            []at
	}{
		{"V1: own writes are seen", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: SELECT * FROM t -> 1|5 2|0
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", ""}, {"postgres", "ru rc rr ser", ""}, {"tidb", "rc rr si", ""}}},
		{"which of several broken constraints is named", `
			A: INSERT INTO t VALUES (1, 7) -> !23503 error
			final: 1|0 2|0`,
			[]at{{"postgres", "ru rc rr ser", ""}}},
		{"another error than that of a constraint", `
			A: INSERT INTO t VALUES (1, 7) -> !42601 error
			final: 1|0 2|0`,
			[]at{{"postgres", "ru rc rr ser", fails}}},
		{"a constraint that is not broken", `
			A: INSERT INTO t VALUES (3, 7) -> !23503 error
			final: 1|0 2|0`,
			[]at{{"postgres", "ru rc rr ser", fails}}},
		{"V1: own writes are not seen", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", result}, {"postgres", "ru rc rr ser", result}, {"tidb", "rc rr si", result}}},
		{"V1: own writes are seen, though an optimistic statement met the row and left it as it is", `
			A: BEGIN PESSIMISTIC
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN OPTIMISTIC
			B: UPDATE t SET b = 0 WHERE a = 1 -> 0
			B: COMMIT
			A: SELECT * FROM t -> 1|5 2|0
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "rr", ""}}},
		{"V1: own writes are not seen, though an optimistic statement met the row and left it as it is", `
			A: BEGIN PESSIMISTIC
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN OPTIMISTIC
			B: UPDATE t SET b = 0 WHERE a = 1 -> 0
			B: COMMIT
			A: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "rr", result}}},
		{"V2: what is not committed is seen", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN
			B: SELECT * FROM t -> 1|5 2|0
			A: ROLLBACK
			B: COMMIT
			final: 1|0 2|0`,
			[]at{{"mysql mariadb", "ru", ""}, {"mysql mariadb", "rc rr", result}, {"postgres", "ru rc rr ser", result}, {"tidb", "rc rr si", result}}},
		{"V2: what is not committed is not seen", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ru", result}, {"mysql mariadb", "rc rr", ""}, {"postgres", "ru rc rr ser", ""}, {"tidb", "rc rr si", ""}}},
		{"V2: what was rolled back is seen", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: ROLLBACK
			B: SELECT * FROM t -> 1|5 2|0
			final: 1|0 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", result}, {"postgres", "rc ser", result}}},
		{"V3: what was committed meanwhile is seen", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|5 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ru rc", ""}, {"mysql mariadb", "rr", result}, {"postgres", "ru rc", ""}, {"postgres", "rr ser", result}, {"tidb", "rc", ""}, {"tidb", "rr si", result}}},
		{"V4: the snapshot stays", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", ""}, {"mysql mariadb", "ru rc", result}, {"postgres", "rr ser", ""}, {"postgres", "ru rc", result}, {"tidb", "rr si", ""}, {"tidb", "rc", result}}},
		{"V4: a descending scan is not held to the snapshot", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t ORDER BY a DESC -> 1|5 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "rr si", "violation: " + string(product.ReverseScan)}, {"mysql mariadb", "rr", result}, {"postgres", "rr", result}}},
		{"V4: a descending scan sees what never was", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t ORDER BY a DESC -> 1|6 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "rr si", result}}},
		{"V4: the snapshot is taken by the first read", `
			B: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|5 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", ""}, {"postgres", "rr ser", ""}, {"tidb", "rr si", result}}},
		{"V4: the snapshot is taken by BEGIN", `
			B: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", result}, {"postgres", "rr ser", result}, {"tidb", "rr si", ""}}},
		{"V4: the snapshot is taken by WITH CONSISTENT SNAPSHOT", `
			B: START TRANSACTION WITH CONSISTENT SNAPSHOT
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", ""}, {"mysql mariadb", "rc", result}}},
		{"V4: a write does not take InnoDB's snapshot, but PostgreSQL's", `
			B: BEGIN
			B: UPDATE t SET b = 7 WHERE a = 2 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|5 2|7
			B: COMMIT
			final: 1|5 2|7`,
			[]at{{"mysql mariadb", "rr", ""}, {"postgres", "rr ser", result}}},
		{"a locking read is current", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t WHERE a = 1 FOR UPDATE -> 1|5
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rc rr", ""}, {"tidb", "rc rr", ""}, {"postgres", "rc", ""}, {"postgres", "rr", result}}},
		{"a locking read is not current", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t WHERE a = 1 FOR UPDATE -> 1|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rc rr", result}, {"tidb", "rc rr", result}, {"postgres", "rr", refused}}},
		{"a write is current, and its rows are seen", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: INSERT INTO t VALUES (3, 0) -> 1
			B: UPDATE t SET b = b + 1 -> 3
			B: SELECT * FROM t -> 1|1 2|1 3|1
			B: COMMIT
			final: 1|1 2|1 3|1`,
			[]at{{"mysql mariadb", "rc rr", ""}, {"tidb", "rc rr", ""}, {"postgres", "rc", ""}, {"postgres", "rr", result}, {"mariadb", "si", result}, {"tidb", "si", result}}},
		{"first updater wins: refused", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 7 WHERE a = 1 -> !40001 serialization failure
			B: ROLLBACK
			final: 1|5 2|0`,
			[]at{{"postgres", "rr ser", ""}}},
		{"first updater wins: a lost update", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 7 WHERE a = 1 -> 1
			B: COMMIT
			final: 1|7 2|0`,
			[]at{{"postgres", "rr ser", refused}, {"mariadb", "si", refused}, {"tidb", "si", refused}, {"postgres mariadb", "rc", ""}, {"mariadb tidb", "rr", ""}}},
		{"an optimistic transaction that the server may execute again: its increment is not lost", `
			A: SET SESSION tidb_disable_txn_auto_retry = 0
			A: BEGIN
			A: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|2 2|0`,
			[]at{{"tidb", "si", ""}}},
		{"an optimistic transaction that the server may execute again: its increment is lost", `
			A: SET SESSION tidb_disable_txn_auto_retry = 0
			A: BEGIN
			A: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|1 2|0`,
			[]at{{"tidb", "si", state}}},
		{"an optimistic transaction that the server may execute again: its own update overwrites", `
			A: SET SESSION tidb_disable_txn_auto_retry = OFF
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 7 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "si", ""}}},
		{"an optimistic transaction that the server does not execute again", `
			A: SET SESSION tidb_disable_txn_auto_retry = ON
			A: BEGIN
			A: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|2 2|0`,
			[]at{{"tidb", "si", "violation: " + oracle.NameWrite}}},
		{"what an optimistic transaction writes is not certain, and undone", `
			B: BEGIN
			B: INSERT INTO t VALUES (1, 7) -> 1
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			B: COMMIT -> !DUP error
			A: SELECT * FROM t -> 1|0 2|5
			final: 1|0 2|5`,
			[]at{{"tidb", "si", ""}}},
		{"what an optimistic transaction writes is not certain, and undone: others see it", `
			B: BEGIN
			B: INSERT INTO t VALUES (1, 7) -> 1
			A: SELECT * FROM t -> 1|7 2|0
			B: COMMIT -> !DUP error
			final: 1|0 2|0`,
			[]at{{"tidb", "si", result}}},
		{"what an optimistic transaction writes is not certain, and undone: it stays", `
			B: BEGIN
			B: INSERT INTO t VALUES (1, 7) -> 1
			B: COMMIT -> !DUP error
			final: 1|7 2|0`,
			[]at{{"tidb", "si", state}}},
		{"first committer wins: the optimistic COMMIT is refused", `
			B: BEGIN
			B: UPDATE t SET b = 7 WHERE a = 1 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: COMMIT -> !9007 serialization failure
			final: 1|5 2|0`,
			[]at{{"tidb", "si", ""}}},
		{"a row deleted since the snapshot is passed over", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: DELETE FROM t WHERE a = 1 -> 1
			B: UPDATE t SET b = 7 -> 1
			B: COMMIT
			final: 2|7`,
			[]at{{"mariadb", "si", "violation: a row deleted since the snapshot is passed over"}, {"postgres", "rr ser", result}, {"mysql mariadb", "rc rr", ""}}},
		{"a read that the optimizer answers need not take the snapshot", `
			B: BEGIN
			B: SELECT * FROM t WHERE a = 9 -> none
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|5 2|0
			B: SELECT * FROM t -> 1|5 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", ""}, {"mariadb", "si", ""}, {"postgres", "rr", result}}},
		{"but takes it once", `
			B: BEGIN
			B: SELECT * FROM t WHERE a = 9 -> none
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|5 2|0
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", result}, {"mariadb", "si", result}}},
		{"another row is no conflict", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 7 WHERE a = 2 -> 1
			B: COMMIT
			final: 1|5 2|7`,
			[]at{{"postgres", "rr ser", ""}, {"mariadb", "si", ""}, {"tidb", "si", ""}}},
		{"a row that another transaction has written is passed", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: ROLLBACK
			final: 1|1 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", blocking}, {"postgres", "rc rr ser", blocking}, {"tidb", "rc rr", ""}}}, // TiDB does not show waits in autocommit
		{"the same in a transaction", `
			A: BEGIN
			B: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: ROLLBACK
			B: COMMIT
			final: 1|1 2|0`,
			[]at{{"mysql mariadb", "rr", blocking}, {"tidb", "rc rr", blocking}, {"tidb", "si", ""}}},
		{"a row that another transaction has written is waited for", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			final: 1|6 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", ""}, {"postgres", "rc", ""}, {"tidb", "rc rr", ""}}},
		{"a wait for nothing is none of ours", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = b + 1 WHERE a = 2 -> 1
			final: 1|5 2|1`,
			[]at{{"mysql mariadb", "rr ser", ""}, {"postgres", "rc rr ser", ""}}},
		{"locks of a savepoint that was rolled back to", `
			A: BEGIN
			A: SAVEPOINT p
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: ROLLBACK TO SAVEPOINT p
			B: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|1 2|0`,
			[]at{{"mariadb", "rc rr", ""}, {"postgres", "rc rr", ""}}},
		{"what was before the savepoint stays", `
			A: BEGIN
			A: UPDATE t SET b = 4 WHERE a = 1 -> 1
			A: SAVEPOINT p
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: ROLLBACK TO SAVEPOINT p
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mariadb", "rc rr", state}, {"postgres", "rc rr", state}}},
		{"a row that is locked FOR UPDATE is passed", `
			A: BEGIN
			B: BEGIN
			A: SELECT * FROM t WHERE a = 1 FOR UPDATE -> 1|0
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: COMMIT
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ru rc rr ser", blocking}, {"postgres", "rc rr ser", blocking}, {"tidb", "rc rr", blocking}}},
		{"optimistic transactions lock nothing", `
			A: BEGIN OPTIMISTIC
			B: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 6 WHERE a = 1 -> 1
			B: COMMIT
			A: COMMIT -> !9007 serialization failure
			final: 1|6 2|0`,
			[]at{{"tidb", "rc rr si", ""}}},
		{"a key that an optimistic transaction has inserted keeps nobody waiting, though another one writes the table", `
			A: BEGIN OPTIMISTIC
			B: BEGIN PESSIMISTIC
			C: BEGIN PESSIMISTIC
			A: INSERT INTO t VALUES (3, 3) -> 1
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			C: INSERT INTO t VALUES (3, 4) -> 1
			A: ROLLBACK
			B: COMMIT
			C: COMMIT
			final: 1|5 2|0 3|4`,
			[]at{{"tidb", "rc rr", ""}}},
		{"a key that a pessimistic transaction has inserted is passed", `
			A: BEGIN OPTIMISTIC
			B: BEGIN PESSIMISTIC
			C: BEGIN PESSIMISTIC
			A: UPDATE t SET b = 3 WHERE a = 2 -> 1
			B: INSERT INTO t VALUES (3, 5) -> 1
			C: INSERT INTO t VALUES (3, 4) -> 1
			A: ROLLBACK
			B: ROLLBACK
			C: COMMIT
			final: 1|0 2|0 3|4`,
			[]at{{"tidb", "rc rr", blocking}}},
		{"and are refused at COMMIT", `
			A: BEGIN OPTIMISTIC
			B: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 6 WHERE a = 1 -> 1
			B: COMMIT
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"tidb", "rc rr si", refused}}},
		{"share locks share", `
			A: BEGIN
			B: BEGIN
			A: SELECT * FROM t WHERE a = 1 FOR SHARE -> 1|0
			B: SELECT * FROM t WHERE a = 1 FOR SHARE -> 1|0
			B: COMMIT
			A: COMMIT
			final: 1|0 2|0`,
			[]at{{"mysql", "rc rr ser", ""}, {"postgres", "rc rr ser", ""}}},
		{"a share lock is passed", `
			A: BEGIN
			B: BEGIN
			A: SELECT * FROM t WHERE a = 1 FOR SHARE -> 1|0
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: COMMIT
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql", "rc rr ser", blocking}, {"postgres", "rc rr ser", blocking}}},
		{"a share lock may be on an index only", `
			A: BEGIN
			B: BEGIN
			A: SELECT b FROM t WHERE a = 1 FOR SHARE -> 0
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: COMMIT
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql", "rc rr ser", ""}, {"postgres", "rc rr ser", blocking}}},
		{"an update passes key share locks", `
			A: BEGIN
			A: SELECT * FROM t WHERE a = 1 FOR KEY SHARE -> 1|0
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"postgres", "rc rr ser", ""}}},
		{"a delete does not", `
			A: BEGIN
			A: SELECT * FROM t WHERE a = 1 FOR KEY SHARE -> 1|0
			B: DELETE FROM t WHERE a = 1 -> 1
			A: COMMIT
			final: 2|0`,
			[]at{{"postgres", "rc rr ser", blocking}}},
		{"plain reads of SERIALIZABLE lock on InnoDB", `
			A: BEGIN
			A: SELECT * FROM t WHERE a = 1 -> 1|0
			B: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ser", blocking}, {"mysql mariadb", "rr", ""}, {"postgres", "ser", ""}}},
		{"not in autocommit", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "ser", ""}}},
		{"a key that is not committed is inserted", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			B: INSERT INTO t VALUES (3, 1) -> 1
			A: ROLLBACK
			final: 1|0 2|0 3|1`,
			[]at{{"mysql mariadb", "rc rr ser", blocking}, {"postgres", "rc rr ser", blocking}}},
		{"another key is", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			B: INSERT INTO t VALUES (4, 1) -> 1
			A: ROLLBACK
			final: 1|0 2|0 4|1`,
			[]at{{"mysql mariadb", "rc rr ser", ""}, {"postgres", "rc rr ser", ""}}},
		{"a key whose deletion is not committed is refused at once", `
			A: BEGIN
			A: DELETE FROM t WHERE a = 1 -> 1
			B: INSERT INTO t VALUES (1, 7) -> !DUP error
			A: COMMIT
			final: 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", blocking}, {"postgres", "rc rr ser", blocking}}},
		{"a key that is there is refused at once", `
			A: BEGIN
			A: DELETE FROM t WHERE a = 1 -> 1
			B: INSERT INTO t VALUES (2, 7) -> !DUP error
			A: COMMIT
			final: 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", ""}, {"postgres", "rc rr ser", ""}}},
		{"the subquery of a locking read takes the snapshot", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN
			B: SELECT * FROM t WHERE EXISTS (SELECT 1 FROM t AS x) FOR UPDATE SKIP LOCKED -> 2|0
			A: COMMIT
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", ""}, {"mysql mariadb", "rc", result}}},
		{"a locking read alone takes none", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: BEGIN
			B: SELECT * FROM t FOR UPDATE SKIP LOCKED -> 2|0
			A: COMMIT
			B: SELECT * FROM t -> 1|0 2|0
			B: COMMIT
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rr", result}}},
		{"a key that is there is taken", `
			B: INSERT INTO t VALUES (2, 7) -> 1
			final: 1|0 2|0 2|7`,
			[]at{{"mysql mariadb", "rc rr ser", fails}, {"postgres", "rc rr ser", fails}, {"tidb", "rc rr", fails}}},
		{"a row comes into what a locking read has locked", `
			A: BEGIN
			A: SELECT * FROM t WHERE b < 5 FOR UPDATE -> 1|0 2|0
			B: INSERT INTO t VALUES (3, 1) -> 1
			A: COMMIT
			final: 1|0 2|0 3|1`,
			[]at{{"mysql mariadb", "rr ser", blocking}, {"mysql mariadb", "ru rc", ""}, {"postgres", "rc rr ser", ""}, {"tidb", "rc rr", ""}}},
		{"a row comes beside it", `
			A: BEGIN
			A: SELECT * FROM t WHERE b < 5 FOR UPDATE -> 1|0 2|0
			B: INSERT INTO t VALUES (3, 7) -> 1
			A: COMMIT
			final: 1|0 2|0 3|7`,
			[]at{{"mysql mariadb", "rr ser", ""}}},
		{"a deadlock between two", `
			A: BEGIN
			B: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			B: UPDATE t SET b = 2 WHERE a = 2 -> 1
			B: UPDATE t SET b = 2 WHERE a = 1 -> !1213 deadlock
			A@4: UPDATE t SET b = 1 WHERE a = 2 -> 1
			A: COMMIT
			final: 1|1 2|1`,
			[]at{{"mysql mariadb", "rc rr ser", ""}}},
		{"a deadlock's victims, and the statement that closed it and did not wait", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			B: BEGIN
			B: UPDATE t SET b = 2 WHERE a = 2 -> 1
			A: UPDATE t SET b = 1 WHERE a = 2 -> 1
			B@4: UPDATE t SET b = 2 WHERE a = 1 -> !1213 deadlock
			C@4: UPDATE t SET b = 3 WHERE a = 1 -> !1213 deadlock
			A: COMMIT
			final: 1|1 2|1`,
			[]at{{"mysql mariadb", "rc rr ser", ""}}},
		{"a waiter that a deadlock's victim let go before the statement that closed it", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			B: BEGIN
			B: UPDATE t SET b = 2 WHERE a = 2 -> 1
			B: UPDATE t SET b = 7 WHERE b < 1 -> 0
			A@4: UPDATE t SET b = 1 WHERE a = 2 -> !1213 deadlock
			C@4: UPDATE t SET b = 9 WHERE a = 1 -> 1
			B: COMMIT
			final: 1|9 2|2`,
			[]at{{"mysql mariadb", "rc rr ser", ""}}},
		{"a statement that came after it", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			B: BEGIN
			B: UPDATE t SET b = 2 WHERE a = 2 -> 1
			B: UPDATE t SET b = 7 WHERE b < 1 -> 0
			A@4: UPDATE t SET b = 1 WHERE a = 2 -> !1213 deadlock
			B: COMMIT
			C: UPDATE t SET b = 9 WHERE a = 1 -> 1
			final: 1|9 2|2`,
			[]at{{"mysql mariadb", "rc rr ser", result}}},
		{"a statement that passed the lock of a waiter, which is the victim of a later deadlock", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			B: BEGIN
			B: UPDATE t SET b = 2 WHERE a = 2 -> 1
			A: UPDATE t SET b = 1 WHERE a = 2 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B@4: UPDATE t SET b = 2 WHERE a = 1 -> !1213 deadlock
			A: COMMIT
			final: 1|5 2|1`,
			[]at{{"mysql mariadb", "rc rr ser", "violation: " + oracle.NameBlocking}}},
		{"a deadlock of one", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			A: UPDATE t SET b = 1 WHERE a = 2 -> !1213 deadlock
			final: 1|0 2|0`,
			[]at{{"mysql mariadb tidb", "rc rr", "violation: " + oracle.NameDeadlock}}},
		{"two waiters, one order", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			C@2: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|5 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", ""}, {"postgres", "rc", ""}, {"tidb", "rc rr", ""}}},
		{"two waiters, the other order", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			C@2: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|6 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", ""}, {"postgres", "rc", ""}, {"tidb", "rc rr", ""}}},
		{"two waiters, no order", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = b + 1 WHERE a = 1 -> 1
			C@2: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|2 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", state}, {"postgres", "rc", state}, {"tidb", "rc rr", state}}},
		{"rows that match after the wait: the statement has the new view", `
			A: BEGIN
			A: UPDATE t SET b = 5 -> 2
			A: COMMIT
			B@2: UPDATE t SET b = 9 WHERE a = 1 OR b = 5 -> 2
			final: 1|9 2|9`,
			[]at{{"mysql mariadb", "rc rr ser", ""}, {"tidb", "rc rr", ""}, {"postgres", "rc", ""}}},
		{"rows that match after the wait: PostgreSQL checks those of its snapshot", `
			A: BEGIN
			A: UPDATE t SET b = 5 -> 2
			A: COMMIT
			B@2: UPDATE t SET b = 9 WHERE a = 2 OR b = 5 -> 1
			final: 1|5 2|9`,
			[]at{{"mysql mariadb", "rc ru", "violation: torn semi-consistent update"}, {"mysql mariadb", "rr ser", result}, {"tidb", "rc rr", result},
				{"postgres", "rc", "permitted: EvalPlanQual"}}},
		{"rows that match after the wait: one that matched before is passed over", `
			A: BEGIN
			A: UPDATE t SET b = 5 -> 2
			A: COMMIT
			B@2: UPDATE t SET b = 9 WHERE a = 2 OR b = 5 -> 1
			final: 1|9 2|5`,
			[]at{{"postgres", "rc", "permitted: EvalPlanQual; " + state}, {"mysql", "rr", result}}},
		{"a record that moved", `
			A: BEGIN
			A: UPDATE t SET a = 0 WHERE a = 2 -> 1
			A: COMMIT
			B@2: DELETE FROM t -> 1
			final: 0|0`,
			[]at{{"mariadb", "rc ru", "violation: row moved behind the scan"}, {"mysql", "rc ru", "permitted: row moved behind the scan"}, {"mysql mariadb", "rr ser", result}, {"postgres", "rc", result}}},
		{"a row inserted behind the scan", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (0, 0) -> 1
			A: COMMIT
			B@2: DELETE FROM t -> 2
			final: 0|0`,
			[]at{{"mysql mariadb", "rc ru", "permitted: missing gap locks"}, {"mysql mariadb", "rr ser", result}}},
		{"a row that did not match and that nobody held was changed behind the scan", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: DELETE FROM t WHERE b = 5 -> 1
			final: 1|5`,
			[]at{{"mysql mariadb", "rc ru", "permitted: missing gap locks"}, {"mysql mariadb", "rr ser", result}}},
		{"a row that did not match and that another transaction held", `
			A: BEGIN
			A: UPDATE t SET b = 1 -> 2
			A: UPDATE t SET b = 5 -> 2
			A: COMMIT
			B@2: DELETE FROM t WHERE b = 5 -> 1
			final: 1|5`,
			[]at{{"mariadb", "rc ru", "violation: row moved behind the scan"}, {"mysql mariadb", "rr ser", result}}},
		{"a row that matched all the time", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: DELETE FROM t WHERE b = 0 OR b = 5 -> 1
			final: 1|5`,
			[]at{{"mariadb", "rc ru", "violation: row moved behind the scan"}, {"mysql mariadb", "rr ser", result}}},
		{"one of two rows that a transaction inserted, and not the other one", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: INSERT INTO t VALUES (0, 0) -> 1
			A: COMMIT
			B@2: DELETE FROM t -> 3
			final: 0|0`,
			[]at{{"mysql mariadb", "rc ru", "violation: one of several rows that a transaction inserted"}, {"mysql mariadb", "rr ser", result}}},
		{"a locking read finds one of two rows that a transaction inserted", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: INSERT INTO t VALUES (0, 0) -> 1
			A: COMMIT
			B@2: SELECT * FROM t FOR UPDATE -> 1|0 2|0 3|0
			final: 0|0 1|0 2|0 3|0`,
			[]at{{"mysql mariadb", "rc ru", "violation: one of several rows that a transaction inserted"}, {"mysql mariadb", "rr ser", result}}},
		{"the row of another transaction was inserted behind the scan", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			B: INSERT INTO t VALUES (0, 0) -> 1
			A: COMMIT
			C@2: DELETE FROM t -> 3
			final: 0|0`,
			[]at{{"mysql mariadb", "rc ru", "permitted: missing gap locks"}, {"mysql mariadb", "rr ser", result}}},
		{"one of two inserted rows, and its key had been there before", `
			B: DELETE FROM t WHERE a = 1 -> 1
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: INSERT INTO t VALUES (1, 0) -> 1
			A: COMMIT
			C@3: DELETE FROM t -> 2
			final: 1|0`,
			[]at{{"mysql mariadb", "rc ru", "permitted: missing gap locks"}, {"mysql mariadb", "rr ser", result}}},
		{"an UPDATE passes a row by to which another transaction has given its key, and waits for the old one", `
			A: BEGIN
			A: UPDATE t SET a = 3 WHERE a = 2 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = 9 -> 1
			final: 1|9 3|0`,
			[]at{{"mysql", "rc ru", "permitted: semi-consistent read passes an inserted row"}, {"mariadb", "rc ru", "violation: semi-consistent read passes an inserted row"}, {"mysql mariadb", "rr ser", result}}},
		{"an UPDATE passes a held row by, of which neither version matches", `
			A: BEGIN
			A: UPDATE t SET b = 1 -> 2
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = 9 WHERE a = 2 OR b = 5 -> 1
			final: 1|5 2|9`,
			[]at{{"mysql mariadb", "rc ru", "violation: torn semi-consistent update"}, {"mysql mariadb", "rr ser", result}}},
		{"an UPDATE releases a row that does not match, and it is changed behind the scan", `
			A: BEGIN
			A: UPDATE t SET b = 1 WHERE a = 2 -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = 9 WHERE a = 2 OR b = 5 -> 1
			final: 1|5 2|9`,
			[]at{{"mysql mariadb", "rc ru", "permitted: missing gap locks"}, {"mysql mariadb", "rr ser", result}}},
		{"a row inserted, and the wait was for one that is not changed", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: UPDATE t SET b = 0 WHERE a = 1 -> 0
			A: COMMIT
			B@3: DELETE FROM t -> 2
			final: 3|0`,
			[]at{{"tidb", "rc rr", ""}, {"mysql mariadb", "rr ser", result}}},
		{"a row inserted, and the wait was for one that is not changed: neither of what it may have read", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: UPDATE t SET b = 0 WHERE a = 1 -> 0
			A: COMMIT
			B@3: DELETE FROM t -> 1
			final: 2|0 3|0`,
			[]at{{"tidb", "rc rr", "unknown: table t was not compared to the end: s5: it waited for a row that was not changed in the end, and whether it reads again then is not documented"}, {"mysql mariadb", "rr ser", result}}},
		{"another row comes to match, and the wait was for one that is not changed", `
			A: BEGIN
			A: UPDATE t SET b = 0 WHERE a = 1 -> 0
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: COMMIT
			B@3: DELETE FROM t WHERE a = 1 OR b = 5 -> 1
			final: 2|5`,
			[]at{{"tidb", "rc rr", ""}, {"mysql mariadb", "rr ser", result}}},
		{"another row comes to match, and the wait was for one that is changed", `
			A: BEGIN
			A: UPDATE t SET b = 7 WHERE a = 1 -> 1
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: COMMIT
			B@3: DELETE FROM t WHERE a = 1 OR b = 5 -> 1
			final: 2|5`,
			[]at{{"tidb", "rc rr", result}, {"mysql mariadb", "rr ser", result}}},
		{"a row inserted, and the wait was for one that is changed", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 0) -> 1
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: COMMIT
			B@3: DELETE FROM t -> 2
			final: 3|0`,
			[]at{{"tidb", "rc rr", result}, {"mysql mariadb", "rr ser", result}}},
		{"a row inserted before the wait", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (0, 0) -> 1
			A: COMMIT
			B@3: DELETE FROM t -> 2
			final: 0|0`,
			[]at{{"mariadb", "rc ru", "violation: row moved behind the scan"}, {"mysql mariadb", "rr ser", result}}},
		{"a row with the key of a deleted one is a newer version of it", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 1 -> 1
			B: INSERT INTO t VALUES (1, 5) -> 1
			A: DELETE FROM t WHERE a = 1 -> 1
			A: SELECT * FROM t -> 2|0
			A: COMMIT
			final: 2|0`,
			[]at{{"mysql mariadb tidb", "rr", ""}}},
		{"a row with the key of a deleted one, beside which the deleted one is seen", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 1 -> 1
			B: INSERT INTO t VALUES (1, 5) -> 1
			A: DELETE FROM t WHERE a = 1 -> 1
			A: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			final: 2|0`,
			[]at{{"mysql mariadb", "rr", result}, {"tidb", "rr", "permitted: a row that another transaction deleted stays in the snapshot of a transaction that wrote"}}}, // the key of TiDB's record may be another one
		{"a row with another key than the deleted one", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 1 -> 1
			B: INSERT INTO t VALUES (3, 5) -> 1
			A: DELETE FROM t WHERE a = 3 -> 1
			A: SELECT * FROM t -> 2|0
			A: COMMIT
			final: 2|0`,
			[]at{{"mysql mariadb tidb", "rr", result}}},
		{"an update that changes nothing", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 5 -> 1
			B: SELECT * FROM t -> 1|0 2|5
			B: COMMIT
			final: 1|5 2|5`,
			[]at{{"mysql mariadb tidb", "rr", "violation: an update that changes nothing is not a write"}, {"mysql mariadb tidb", "rc", result}}},
		{"an update that changes nothing is seen", `
			B: BEGIN
			B: SELECT * FROM t -> 1|0 2|0
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			B: UPDATE t SET b = 5 -> 1
			B: SELECT * FROM t -> 1|5 2|5
			B: COMMIT
			final: 1|5 2|5`,
			[]at{{"mysql mariadb tidb", "rr rc", ""}}},
		{"a row that is inserted and not committed", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 7) -> 1
			B: UPDATE t SET b = 9 WHERE b > 5 -> 0
			A: COMMIT
			final: 1|0 2|0 3|7`,
			[]at{{"mysql", "ru rc", "permitted: semi-consistent read passes an inserted row"}, {"mariadb", "ru rc", "violation: semi-consistent read passes an inserted row"}, {"postgres", "rc", "permitted: statement snapshot"}, {"postgres", "rr", ""}}},
		{"a row that is inserted and not committed, and does not match", `
			A: BEGIN
			A: INSERT INTO t VALUES (3, 1) -> 1
			B: UPDATE t SET b = 9 WHERE b > 5 -> 0
			A: COMMIT
			final: 1|0 2|0 3|1`,
			[]at{{"mysql mariadb", "ru rc", ""}, {"postgres", "rc", ""}}},
		{"the tables: a committed write is lost", `
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|0 2|0`,
			[]at{{"mysql mariadb postgres", "rc rr ser", state}, {"tidb", "rc rr", state}}},
		{"the tables: a write that was rolled back is there", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: ROLLBACK
			final: 1|5 2|0`,
			[]at{{"mysql mariadb postgres", "rc rr ser", state}}},
		{"the tables: a transaction that was left open", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|0 2|0`,
			[]at{{"mysql mariadb postgres", "rc rr ser", ""}}},
		{"the tables: two rows' values are swapped", `
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			final: 1|0 2|5`,
			[]at{{"mysql mariadb postgres", "rc rr ser", state}}},
		{"a failed transaction lets go", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: INSERT INTO t VALUES (2, 2) -> !23505 error
			B: UPDATE t SET b = 6 WHERE a = 1 -> 1
			A: ROLLBACK
			final: 1|6 2|0`,
			[]at{{"postgres", "rc rr ser", ""}}},
		{"a failed statement of InnoDB does not", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 1 -> 1
			A: INSERT INTO t VALUES (2, 2) -> !1062 error
			B: UPDATE t SET b = 6 WHERE a = 1 -> 1
			A: ROLLBACK
			final: 1|6 2|0`,
			[]at{{"mysql mariadb", "rc rr ser", blocking}}},
		{"a row whose key another transaction has changed is another row", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: UPDATE t SET a = 7 WHERE a = 2 -> 1
			A: DELETE FROM t -> 2
			A: SELECT * FROM t -> 2|0
			A: COMMIT
			final: none`,
			[]at{{"mysql tidb", "rr", "permitted: a row that another transaction moved stays in the snapshot of a transaction that wrote"},
				{"mariadb", "rr", "violation: a row that another transaction moved stays in the snapshot of a transaction that wrote"},
				{"mysql mariadb tidb", "rc", result}}},
		{"a row that another transaction has deleted stays in the snapshot of one that wrote", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: UPDATE t SET b = 3 -> 1
			A: SELECT * FROM t -> 1|3 2|0
			A: COMMIT
			final: 1|3`,
			[]at{{"mysql mariadb tidb", "rr", "permitted: a row that another transaction deleted stays in the snapshot of a transaction that wrote"}}},
		{"a row that another transaction has deleted, for which the condition of the write does not hold", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: UPDATE t SET b = 3 WHERE a = 1 -> 1
			A: SELECT * FROM t -> 1|3 2|0
			A: COMMIT
			final: 1|3`,
			[]at{{"mysql mariadb tidb", "rr", ""}}},
		{"a row that another transaction has moved before the snapshot", `
			B: UPDATE t SET a = 7 WHERE a = 2 -> 1
			A: BEGIN
			A: SELECT * FROM t -> 1|0 7|0
			A: UPDATE t SET b = 3 -> 2
			A: SELECT * FROM t -> 1|3 7|3
			A: COMMIT
			final: 1|3 7|3`,
			[]at{{"mysql mariadb tidb", "rr rc", ""}}},
		{"two rows with one primary key", `
			A: SELECT * FROM t -> 1|0 1|5 2|0
			final: 1|0 2|0`,
			[]at{{"mysql mariadb", "rr", result}, {"postgres", "rc", result}}},
		{"two rows with one primary key, of a view that no table can hold", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: UPDATE t SET a = 7 WHERE a = 2 -> 1
			A: UPDATE t SET a = 2 WHERE a = 7 -> 1
			A: SELECT * FROM t -> 1|0 2|0 2|0
			A: COMMIT
			final: 1|0 2|0`,
			[]at{{"mysql mariadb", "rr", result}}},
		{"one row of each key, of a view that no table can hold", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: UPDATE t SET a = 7 WHERE a = 2 -> 1
			A: UPDATE t SET a = 2 WHERE a = 7 -> 1
			A: SELECT * FROM t -> 1|0 2|0
			A: COMMIT
			final: 1|0 2|0`,
			[]at{{"mysql mariadb", "rr", ""}}},
		{"two rows with one primary key: one that another transaction has deleted since the snapshot, and its own", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (2, 5) -> 1
			A: SELECT * FROM t -> 1|0 2|0 2|5
			A: COMMIT
			final: 1|0 2|5`,
			[]at{{"tidb", "rr", "violation: " + string(product.KeyTwice)}, {"postgres", "rr", "permitted: " + string(product.KeyTwice)}, {"mysql mariadb", "rr", result}, {"postgres", "rc", result}}},
		{"two rows with one primary key: one that the transaction has locked", `
			A: BEGIN
			A: SELECT * FROM t WHERE a = 2 FOR UPDATE -> 2|0
			A: SELECT * FROM t -> 1|0 2|0 2|0
			A: COMMIT
			final: 1|0 2|0`,
			[]at{{"tidb", "rr", "violation: " + string(product.LockedKey)}, {"mysql mariadb postgres", "rr", result}}},
		{"two rows with one primary key, of which the transaction has locked none", `
			A: BEGIN
			B: SELECT * FROM t WHERE a = 2 FOR UPDATE -> 2|0
			A: SELECT * FROM t -> 1|0 2|0 2|0
			A: COMMIT
			final: 1|0 2|0`,
			[]at{{"tidb mysql mariadb postgres", "rr", result}}},
		{"one of them", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (2, 5) -> 1
			A: SELECT * FROM t -> 1|0 2|5
			A: COMMIT
			final: 1|0 2|5`,
			[]at{{"tidb", "rr", ""}, {"mysql mariadb", "rr", ""}}},
		{"a row that no transaction wrote, beside a view that no table can hold", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (2, 5) -> 1
			A: SELECT * FROM t WHERE a = 1 -> 1|9
			A: COMMIT
			final: 1|0 2|5`,
			[]at{{"tidb", "rr", result}, {"postgres", "rr ser", result}}},
		{"a row of it", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: DELETE FROM t WHERE a = 2 -> 1
			A: INSERT INTO t VALUES (2, 5) -> 1
			A: SELECT * FROM t WHERE a = 1 -> 1|0
			A: COMMIT
			final: 1|0 2|5`,
			[]at{{"tidb", "rr", ""}, {"postgres", "rr ser", ""}}},
		{"it is gone if its key is as it was", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: UPDATE t SET b = 7 WHERE a = 2 -> 1
			A: DELETE FROM t -> 2
			A: SELECT * FROM t -> 2|0
			A: COMMIT
			final: none`,
			[]at{{"mysql mariadb tidb", "rr rc", result}}},
		{"what a waiting statement has done so far is seen without isolation", `
			A: BEGIN
			A: UPDATE t SET b = 5 WHERE a = 2 -> 1
			B: SELECT * FROM t -> 1|7 2|5
			A: ROLLBACK
			C@2: UPDATE t SET b = 7 -> 2
			final: 1|7 2|7`,
			[]at{{"mysql mariadb", "ru", ""}, {"mysql mariadb", "rc", result}}},
		{"a key that the snapshot does not show", `
			A: BEGIN
			A: SELECT * FROM t -> 1|0 2|0
			B: INSERT INTO t VALUES (3, 3) -> 1
			A: INSERT INTO t VALUES (3, 4) -> !DUP error
			A: ROLLBACK
			final: 1|0 2|0 3|3`,
			[]at{{"postgres", "rc rr ser", ""}, {"mysql mariadb", "rc rr", ""}, {"mariadb", "si", ""}}},
	}
	levels := map[string]string{"ru": ru, "rc": rc, "rr": rr, "si": si, "ser": ser}
	for _, test := range tests {
		for _, at := range test.at {
			for _, product := range strings.Fields(at.products) {
				for _, level := range strings.Fields(at.levels) {
					duplicate := "1062"
					if product == "postgres" {
						duplicate = "23505"
					}
					s := played(t, product, levels[level], twoRows, strings.ReplaceAll(test.history, "DUP", duplicate))
					v, err := troc.Check(t.Context(), s, &toy{product: product}, troc.Options{})
					if err != nil {
						t.Fatalf("%s, %s at %s: %v", test.name, product, levels[level], err)
					}
					if got := short(v); got != at.want {
						t.Errorf("%s, %s at %s: got %q, want %q\n%s", test.name, product, levels[level], got, at.want, account(nil, s, v))
					}
				}
			}
		}
	}
}

// TestSubqueryView: each table of a statement has a view of its own.
func TestSubqueryView(t *testing.T) {
	const setup = "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 3), (2, 8); INSERT INTO u VALUES (1, 5)"
	history := func(affected, rows string) string {
		return `
			A: BEGIN
			A: SELECT * FROM u -> 1|5
			B: UPDATE u SET b = 9 -> 1
			A: UPDATE t SET b = 4 WHERE b < (SELECT MAX(b) FROM u) -> ` + affected + `
			A: COMMIT
			final: ` + rows + `
			final u: 1|9`
	}
	for _, test := range []struct{ product, level, affected, rows, want string }{
		{"mysql", product.RepeatableRead, "2", "1|4 2|4", "permitted: current read in a write"},
		{"mysql", product.RepeatableRead, "1", "1|4 2|8", ""},
		{"mysql", product.RepeatableRead, "0", "1|3 2|8", "violation: " + oracle.NameResult},
		{"mysql", product.ReadCommitted, "2", "1|4 2|4", ""},
		{"mysql", product.ReadCommitted, "1", "1|4 2|8", "violation: " + oracle.NameResult},
		{"postgres", product.RepeatableRead, "1", "1|4 2|8", ""},
		{"postgres", product.RepeatableRead, "2", "1|4 2|4", "violation: " + oracle.NameResult},
		{"postgres", product.ReadCommitted, "2", "1|4 2|4", ""},
	} {
		s := played(t, test.product, test.level, setup, history(test.affected, test.rows))
		v, err := troc.Check(t.Context(), s, &toy{product: test.product}, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); got != test.want {
			t.Errorf("%s at %s, %s rows: got %q, want %q\n%s", test.product, test.level, test.affected, got, test.want, account(nil, s, v))
		}
	}
}

// TestDirtyWait: a statement that waits at READ UNCOMMITTED may have read what was not committed when it was sent, though it was rolled back since:
// a course that explains what was seen leaves nothing undecided.
func TestDirtyWait(t *testing.T) {
	const setup = "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 3), (2, 8); INSERT INTO u VALUES (1, 5)"
	const history = `
		C: BEGIN
		C: UPDATE u SET b = 9 -> 1
		A: BEGIN
		A: UPDATE t SET b = 2 WHERE a = 1 -> 1
		C: ROLLBACK
		A: COMMIT
		B@%d: UPDATE t SET b = 4 WHERE b < (SELECT MAX(b) FROM u) -> %s
		final: %s
		final u: 1|5`
	const open = "unknown: table t was not compared to the end: s7: it waited in the middle of several tables" // a row of t was changed meanwhile, too
	for _, test := range []struct {
		level string
		sent  int
		rows  string
		final string
		want  string
	}{
		{product.ReadUncommitted, 4, "2", "1|4 2|4", ""},
		{product.ReadUncommitted, 4, "1", "1|4 2|8", ""},
		{product.ReadUncommitted, 4, "1", "1|4 2|4", open},
		{product.ReadUncommitted, 5, "2", "1|4 2|4", open},
		{product.ReadCommitted, 4, "2", "1|4 2|4", open},
	} {
		s := played(t, "mysql", test.level, setup, fmt.Sprintf(history, test.sent, test.rows, test.final))
		v, err := troc.Check(t.Context(), s, &toy{product: "mysql"}, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); got != test.want {
			t.Errorf("%s, sent behind %d, %s rows: got %q, want %q\n%s", test.level, test.sent, test.rows, got, test.want, account(nil, s, v))
		}
	}
}

// TestCoveringIndex: MariaDB with innodb_snapshot_isolation does not hold a secondary index that has all columns against the snapshot.
func TestCoveringIndex(t *testing.T) {
	const newer = `
		A: BEGIN
		A: SELECT * FROM t -> 1|3 2|8
		B: INSERT INTO t VALUES (3, 9) -> 1
		A: SELECT * FROM t%s -> 1|3 2|8 3|9
		A: COMMIT
		final: 1|3 2|8 3|9`
	const index = "CREATE TABLE t (a INT PRIMARY KEY, b INT, INDEX i (b)); INSERT INTO t VALUES (1, 3), (2, 8)"
	const result = "violation: " + oracle.NameResult
	for _, test := range []struct{ name, setup, lock, level, want string }{
		{"an index", index, " LOCK IN SHARE MODE", product.Snapshot, "violation: a covering index is not held against the snapshot"},
		{"no index", strings.Replace(index, ", INDEX i (b)", "", 1), " LOCK IN SHARE MODE", product.Snapshot, result},
		{"an exclusive lock is on the row, too", index, " FOR UPDATE", product.Snapshot, result},
		{"no lock", index, "", product.Snapshot, result},
		{"another level", index, " LOCK IN SHARE MODE", product.RepeatableRead, ""},
	} {
		s := played(t, "mariadb", test.level, test.setup, fmt.Sprintf(newer, test.lock))
		v, err := troc.Check(t.Context(), s, &toy{product: "mariadb"}, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); got != test.want {
			t.Errorf("%s: got %q, want %q\n%s", test.name, got, test.want, account(nil, s, v))
		}
	}
}

// TestStageFails: what fails with an internal error when it is executed alone tells nothing of what should have come. Near misses: the stage works, and a statement that
// fails in the schedule alone.
func TestStageFails(t *testing.T) {
	const history = `
		A: BEGIN
		A: DELETE FROM t WHERE a = 1 -> %s
		A: COMMIT
		final: %s`
	for _, test := range []struct{ broken, answer, final, want string }{
		{"DELETE", "1", "2|0", "unknown: table t was not compared to the end: s2: alone on its view it ends in an internal error: error 1105: index out of range"},
		{"", "1", "2|0", ""},
		{"", "!1105 error", "1|0 2|0", "violation: " + oracle.NameError},
	} {
		s := played(t, "tidb", product.RepeatableRead, twoRows, fmt.Sprintf(history, test.answer, test.final))
		v, err := troc.Check(t.Context(), s, &toy{product: "tidb", broken: test.broken}, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); got != test.want {
			t.Errorf("%q, answer %s: got %q, want %q", test.broken, test.answer, got, test.want)
		}
	}
}

// TestUnrefusedSubquery: what a write of MariaDB reads beside its target with innodb_snapshot_isolation is locked, and refused if it is newer than the
// snapshot. That a row was deleted is not always noticed; other rows pass in a secondary index alone.
func TestUnrefusedSubquery(t *testing.T) {
	const passing = `
		A: BEGIN
		A: SELECT * FROM u -> 1|3 2|8
		B: %s -> 1
		A: UPDATE t SET b = 7 WHERE b < (SELECT MAX(b) FROM u) -> %s
		A: COMMIT
		final: %s
		final u: %s`
	const index = "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT, INDEX i (b)); INSERT INTO t VALUES (1, 5), (2, 8); INSERT INTO u VALUES (1, 3), (2, 8)"
	const result, deleted, covering = "violation: " + oracle.NameResult, "violation: a row deleted since the snapshot is passed over", "violation: a covering index is not held against the snapshot"
	none := strings.Replace(index, ", INDEX i (b)", "", 1)
	for _, test := range []struct{ name, setup, level, write, changed, final, other, want string }{
		{"the snapshot's row", none, product.Snapshot, "DELETE FROM u WHERE a = 2", "1", "1|7 2|8", "1|3", ""},
		{"a deletion", none, product.Snapshot, "DELETE FROM u WHERE a = 2", "0", "1|5 2|8", "1|3", deleted},
		{"a deletion, and more", none, product.Snapshot, "DELETE FROM u WHERE a = 2", "2", "1|7 2|7", "1|3", result},
		{"a changed row, no index", none, product.Snapshot, "UPDATE u SET b = 3 WHERE a = 2", "0", "1|5 2|8", "1|3 2|3", result},
		{"a changed row, an index", index, product.Snapshot, "UPDATE u SET b = 3 WHERE a = 2", "0", "1|5 2|8", "1|3 2|3", covering},
		{"a new row, no index", none, product.Snapshot, "INSERT INTO u VALUES (3, 9)", "2", "1|7 2|7", "1|3 2|8 3|9", result},
		{"a new row, an index", index, product.Snapshot, "INSERT INTO u VALUES (3, 9)", "2", "1|7 2|7", "1|3 2|8 3|9", covering},
		{"another level", none, product.RepeatableRead, "DELETE FROM u WHERE a = 2", "0", "1|5 2|8", "1|3", "permitted: " + string(product.CurrentRead)},
	} {
		s := played(t, "mariadb", test.level, test.setup, fmt.Sprintf(passing, test.write, test.changed, test.final, test.other))
		v, err := troc.Check(t.Context(), s, &toy{product: "mariadb"}, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(v); got != test.want {
			t.Errorf("%s: got %q, want %q\n%s", test.name, got, test.want, account(nil, s, v))
		}
		if test.want == deleted || test.want == covering {
			if expected := v.Findings[0].Difference.Expected.Text; expected != "refused: serialization failure" {
				t.Errorf("%s: expected is %q", test.name, expected)
			}
		}
	}
}

// TestOverblocking: a wait that no documented lock explains is a finding, if the user asks for it; a near miss is one that a lock explains.
func TestOverblocking(t *testing.T) {
	const found = "violation: " + oracle.NameOverblocking
	const pairs = "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 0), (2, 0); INSERT INTO u VALUES (1, 5)"
	const queue = `
		A: BEGIN
		A: DELETE FROM t%s
		B: BEGIN
		C: BEGIN
		A: COMMIT
		B@4: SELECT * FROM t FOR UPDATE -> %s
		B: COMMIT
		C@4: %s
		C: COMMIT
		final: %s
		final u: 1|5`
	for _, test := range []struct{ name, products, levels, history, want string }{
		{"for one that found no row", "mysql mariadb", "rr ser rc", fmt.Sprintf(queue, " -> 2", "none", "SELECT * FROM t FOR UPDATE -> none", "none"), found},
		{"for one that found a row", "mysql mariadb", "rr ser rc", fmt.Sprintf(queue, " WHERE a = 1 -> 1", "2|0", "SELECT * FROM t FOR UPDATE -> 2|0", "2|0"), ""},
		{"to insert into a gap that it locked", "mysql mariadb", "rr ser", fmt.Sprintf(queue, " -> 2", "none", "INSERT INTO t VALUES (3, 3) -> 1", "3|3"), ""},
		{"for a key that is not there", "tidb", "rr", fmt.Sprintf(queue, " -> 2", "none", "SELECT * FROM t FOR UPDATE -> none", "none"), ""},
		{"for one that wrote another table", "mysql postgres tidb", "rc rr", `
			A: BEGIN
			A: UPDATE u SET b = 6 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = 1 WHERE a = 1 -> 1
			final: 1|1 2|0
			final u: 1|6`, found},
		{"for one that wrote this table, too", "mysql postgres tidb", "rc rr", `
			A: BEGIN
			A: UPDATE u SET b = 6 -> 1
			A: UPDATE t SET b = 3 WHERE a = 2 -> 1
			A: COMMIT
			B@2: UPDATE t SET b = 1 WHERE a = 1 -> 1
			final: 1|1 2|3
			final u: 1|6`, ""},
		{"a plain read", "mysql mariadb postgres", "rc", `
			A: BEGIN
			A: UPDATE t SET b = 6 -> 2
			A: COMMIT
			B@2: SELECT * FROM t -> 1|6 2|6
			final: 1|6 2|6
			final u: 1|5`, found},
		{"a locking read", "mysql mariadb postgres", "rc", `
			A: BEGIN
			A: UPDATE t SET b = 6 -> 2
			A: COMMIT
			B@2: SELECT * FROM t FOR UPDATE -> 1|6 2|6
			final: 1|6 2|6
			final u: 1|5`, ""},
		{"it is not certain who let it go", "mysql", "rc", `
			A: BEGIN
			A: UPDATE u SET b = 6 -> 1
			A: COMMIT
			C: SELECT * FROM t -> 1|0 2|0
			B@2: UPDATE t SET b = 1 WHERE a = 1 -> 1
			final: 1|1 2|0
			final u: 1|6`, ""},
	} {
		for _, name := range strings.Fields(test.products) {
			for _, short1 := range strings.Fields(test.levels) {
				level := map[string]string{"rc": product.ReadCommitted, "rr": product.RepeatableRead, "ser": product.Serializable}[short1]
				s := played(t, name, level, pairs, test.history)
				v, err := troc.Check(t.Context(), s, &toy{product: name}, troc.Options{Overblocking: true})
				if err != nil {
					t.Fatal(err)
				}
				if got := short(schedule.Verdict{Findings: v.Findings}); got != test.want {
					t.Errorf("%s, %s at %s: got %q, want %q\n%s", test.name, name, level, got, test.want, account(nil, s, v))
				}
				if plain, err := troc.Check(t.Context(), s, &toy{product: name}, troc.Options{}); err != nil || strings.Contains(short(plain), oracle.NameOverblocking) {
					t.Errorf("%s, %s at %s: not asked for, got %q, %v", test.name, name, level, short(plain), err)
				}
			}
		}
	}
}

// TestUnknown: what cannot be decided is said so, and is no finding.
func TestUnknown(t *testing.T) {
	const wrong = `
		A: BEGIN
		A: UPDATE t SET b = 5 WHERE a = 1 -> 1
		A: COMMIT
		final: 1|0 2|0`
	check := func(s *schedule.Schedule, stage *toy) string {
		t.Helper()
		v, err := troc.Check(t.Context(), s, stage, troc.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return short(v)
	}
	base := func() *schedule.Schedule { return played(t, "postgres", product.ReadCommitted, twoRows, wrong) }
	if got := check(base(), &toy{product: "postgres"}); got != "violation: "+oracle.NameFinalState {
		t.Fatalf("the history is not the near miss that it should be: %q", got)
	}
	for name, change := range map[string]func(s *schedule.Schedule){
		"trouble": func(s *schedule.Schedule) { s.Trouble = "it stood still" },
		"crash":   func(s *schedule.Schedule) { s.Crashed = true },
		"trigger": func(s *schedule.Schedule) {
			s.Setup = append(s.Setup, "CREATE TRIGGER x BEFORE UPDATE ON t EXECUTE FUNCTION f()")
		},
		"lazy": func(s *schedule.Schedule) {
			s.Setup = append(s.Setup, "SET GLOBAL tidb_constraint_check_in_place_pessimistic = 0")
		},
		"ddl":    func(s *schedule.Schedule) { s.Steps[1].Statement.DDL = true },
		"script": func(s *schedule.Schedule) { s.Steps[1].Statement.Verb = "script" },
		"level":  func(s *schedule.Schedule) { s.Level = product.Snapshot; s.Product = "cockroach" },
		"volatile": func(s *schedule.Schedule) {
			s.Steps[1].Statement.Volatile = "random values"
		},
		"unparsed": func(s *schedule.Schedule) { s.Steps[1].Statement.Unparsed = true },
	} {
		s := base()
		change(s)
		if got := check(s, &toy{product: "postgres"}); !strings.HasPrefix(got, "unknown: ") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	refused := &toy{product: "postgres", refuse: errors.New("row size too large")}
	if got := check(base(), refused); !strings.Contains(got, "unknown: the tables cannot be given row ids: row size too large") {
		t.Errorf("no row ids: got %q", got)
	}
}

// gone is a stage whose server has ended.
type gone struct{ toy }

func (g *gone) Prepare(context.Context, []string, int) error { return errors.New("the server is gone") }

func TestStageGone(t *testing.T) {
	s := played(t, "postgres", product.ReadCommitted, twoRows, "A: UPDATE t SET b = 5 -> 2\nfinal: 1|5 2|5")
	if _, err := troc.Check(t.Context(), s, &gone{}, troc.Options{}); err == nil || !strings.Contains(err.Error(), "the server is gone") {
		t.Errorf("got %v", err)
	}
}
