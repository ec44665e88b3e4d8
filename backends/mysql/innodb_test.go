package mysql

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

func status(t *testing.T, name string) Status {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return ParseStatus(text)
}

// TestParseStatus reads what the servers printed: MariaDB 10.11 with innodb_status_output_locks, MySQL 9.7 without.
func TestParseStatus(t *testing.T) {
	record := func(page, mode string, heap ...string) Lock {
		return Lock{Table: "`d`.`t`", Mode: mode, Record: true, Page: page, Heap: heap}
	}
	gap := record("space id 5 page no 4", "X", "4")
	gap.Gap, gap.Insertion = true, true
	row, shared := record("space id 5 page no 3", "X", "2"), record("space id 5 page no 3", "S", "4")
	row.NoGap, shared.NoGap = true, true
	intention := Lock{Table: "`d`.`t`", Mode: "IX"}
	want := Status{Transactions: []Transaction{
		{ID: "26", Connection: 8, Waiting: &gap, Waited: 50406000, Locks: []Lock{intention}},
		{ID: "(0x7efd0f9c0680)"},
		{ID: "23", Connection: 6, Locks: []Lock{intention, row, record("space id 5 page no 4", "S", "1", "4"), shared}},
	}}
	if diff := cmp.Diff(want, status(t, "mariadb.txt")); diff != "" {
		t.Errorf("MariaDB (-want +got):\n%s", diff)
	}
	gap.Page = "space id 2 page no 5"
	want = Status{Transactions: []Transaction{
		{ID: "375300556051224"}, {ID: "1569", Connection: 13, Waiting: &gap}, {ID: "1565", Connection: 11},
	}}
	if diff := cmp.Diff(want, status(t, "mysql.txt")); diff != "" {
		t.Errorf("MySQL (-want +got):\n%s", diff)
	}
}

// TestParseStatusDamaged: whatever is cut off, nobody is said to wait who is not there, and the cut is noticed.
func TestParseStatusDamaged(t *testing.T) {
	b, err := os.ReadFile("testdata/mariadb.txt")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(b)
	for i := range whole {
		s := ParseStatus([]byte(whole[:i]))
		if !s.Truncated && i < strings.LastIndex(whole, "FILE I/O\n")+len("FILE I/O\n") {
			t.Fatalf("cut after %d bytes: not noticed", i)
		}
		for _, tr := range s.Transactions {
			if tr.Waiting != nil && tr.ID != "26" {
				t.Fatalf("cut after %d bytes: transaction %q waits", i, tr.ID)
			}
		}
	}
	omitted := strings.Replace(whole, "---TRANSACTION (0x", "... truncated...\n---TRANSACTION (0x", 1)
	if s := ParseStatus([]byte(omitted)); !s.Truncated {
		t.Error("the server's own mark of omission was not noticed")
	}
	if s := ParseStatus([]byte(whole)); s.Truncated {
		t.Error("the whole text counts as cut")
	}
}

// TestBlocks: which lock on a record makes which other one wait (MySQL manual, "InnoDB Locking").
func TestBlocks(t *testing.T) {
	lock := func(text string) Lock {
		l := Lock{Table: "t", Record: true, Page: "p", Heap: []string{"4"}, Mode: text[:1]}
		l.Gap, l.NoGap = strings.Contains(text, "gap"), strings.Contains(text, "row")
		if l.Insertion = strings.Contains(text, "insert"); l.Insertion {
			l.Gap = true
		}
		if strings.Contains(text, "end") {
			l.Heap = []string{"1"}
		}
		if table, ok := strings.CutPrefix(text, "table "); ok {
			l = Lock{Table: "t", Mode: table}
		}
		return l
	}
	tests := []struct {
		held, wanted string
		blocks       bool
	}{
		{"X row", "X row", true}, {"X row", "S row", true}, {"S row", "S row", false}, {"S row", "X row", true},
		{"X", "X row", true}, {"X gap", "X row", false}, {"X gap", "X gap", false}, {"X row", "X gap", true},
		{"X gap", "X insert", true}, {"S gap", "X insert", true}, {"X row", "X insert", false}, {"X", "X insert", true},
		{"X insert", "X insert", false}, {"X insert", "X row", false},
		{"X end", "X end", false}, {"X end", "X end insert", true}, {"X end", "X", false},
		{"table IX", "table IX", false}, {"table IX", "table S", true}, {"table IS", "table X", true}, {"table IS", "table S", false},
		{"table AUTO-INC", "table AUTO-INC", true}, {"table AUTO-INC", "table IX", false}, {"table X", "table IS", true}, {"table S", "table S", false},
		{"table X", "X row", false},
	}
	for _, test := range tests {
		if got := lock(test.held).Blocks(lock(test.wanted)); got != test.blocks {
			t.Errorf("%s held, %s wanted: blocks %v", test.held, test.wanted, got)
		}
	}
	other := lock("X row")
	other.Page = "q"
	if other.Blocks(lock("X row")) {
		t.Error("a lock on another page blocks")
	}
}

func TestStateKind(t *testing.T) {
	tests := map[string]engine.WaitKind{
		"Waiting for table metadata lock": engine.WaitMetadata, "Waiting for schema metadata lock": engine.WaitMetadata,
		"Waiting for global read lock": engine.WaitGlobal, "Waiting for backup lock": engine.WaitGlobal, "Waiting for table flush": engine.WaitGlobal,
		"Waiting for table level lock": engine.WaitTable, "User lock": engine.WaitAdvisory, "Waiting for something new lock": engine.WaitOther,
		"User sleep": "", "updating": "", "Waiting for query cache lock": "", "Waiting on empty queue": "", "waiting for handler commit": "", "": "", "Waiting for next activation": "",
	}
	for state, want := range tests {
		if got := stateKind(state); got != want {
			t.Errorf("%q: got %q, want %q", state, got, want)
		}
	}
}

func TestCommits(t *testing.T) {
	for sql, want := range map[string]bool{
		"COMMIT": true, " commit ; ": true, "UPDATE t SET a = 1; Commit": true, "COMMIT AND CHAIN": true,
		"ROLLBACK": false, "COMMIT; SELECT 1": false, "": false, ";": false,
	} {
		if got := commits(sql); got != want {
			t.Errorf("%q: got %v", sql, got)
		}
	}
}

// TestPackets: what is cut short is an error, never a panic.
func TestPackets(t *testing.T) {
	row := []byte{1, 'a', 0xfb, 0, 2, 'b', 'c'}
	got, err := textRow(row, 4)
	if diff := cmp.Diff([]answer.Value{[]byte("a"), nil, {}, []byte("bc")}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "\xfc", "\xfc\x01", "\xfd\x01\x02", "\xfe\x01\x02\x03\x04\x05\x06\x07", "\xff\x01"} {
		if _, _, n := lengthInt([]byte(text)); n != 0 {
			t.Errorf("%q is read as an integer of %d bytes", text, n)
		}
	}
	for text, want := range map[string]uint64{"\xfa": 250, "\xfc\x01\x02": 0x201, "\xfd\x01\x02\x03": 0x30201, "\xfe\x01\x00\x00\x00\x00\x00\x00\x80": 1<<63 + 1} {
		if v, null, n := lengthInt([]byte(text + "x")); v != want || null || n != len(text) {
			t.Errorf("%q is read as %d, null %v, %d bytes", text, v, null, n)
		}
	}
	def := []byte("\x03def\x01d\x01t\x01t\x01a\x01a\x0c\x21\x00\x0a\x00\x00\x00\x03\x21\x00\x00\x00\x00")
	if c, err := column(def); err != nil || c.Name != "a" || c.Type != "int unsigned" || !c.Numeric {
		t.Errorf("column: %+v, %v", c, err)
	}
	for i := range row {
		if _, err := textRow(row[:i], 4); err == nil {
			t.Errorf("a row cut after %d bytes is read", i)
		}
	}
	for i := range def {
		if _, err := column(def[:i]); err == nil {
			t.Errorf("a column cut after %d bytes is read", i)
		}
	}
	ok := []byte{0, 2, 1, 2, 0, 3, 0}
	if r, flags, err := okPacket(ok); err != nil || r.Affected != 2 || r.LastInsertID != 1 || r.Warnings != 3 || flags != 2 {
		t.Errorf("OK: %+v, %d, %v", r, flags, err)
	}
	for i := 1; i < len(ok); i++ {
		if _, _, err := okPacket(ok[:i]); err == nil {
			t.Errorf("an OK packet cut after %d bytes is read", i)
		}
	}
	errs := []byte("\xff\xbd\x04#40001Deadlock")
	if e := errorPacket(errs); e.Code != "1213" || e.SQLState != "40001" || e.Message != "Deadlock" {
		t.Errorf("ERR: %+v", e)
	}
	for i := 1; i < len(errs); i++ {
		errorPacket(errs[:i])
	}
}
