package sqlite

import (
	"math"
	"testing"

	"wirecheck/answer"
)

// TestValues: different values have different forms, and what is written with a form reads as the same form again.
func TestValues(t *testing.T) {
	h, err := open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if _, refused := h.execute("CREATE TABLE t (a)"); refused != nil {
		t.Fatal(refused)
	}
	values := []answer.Value{nil, integerValue(0), integerValue(1), integerValue(math.MinInt64), integerValue(math.MaxInt64), realValue(0), realValue(1), realValue(0.1),
		realValue(-1e300), realValue(math.MaxFloat64), realValue(math.SmallestNonzeroFloat64), realValue(math.Inf(1)), realValue(math.Inf(-1)), realValue(9007199254740993)}
	for _, s := range []string{"", "a", "0", "1", "1.0", "-5", "1e5", "9e999", ".5", "+1", "NULL", "'", "''", "'1'", "X'31'", "x'31'", "it's", "a\x00b", "'\x001", "\u20ac", " 1"} {
		values = append(values, textValue(s))
		values = append(values, blobValue([]byte(s)))
	}
	seen := map[string]bool{}
	for _, v := range values {
		text := []byte("NULL")
		if v != nil {
			if seen[string(v)] {
				t.Errorf("%q is the form of two values", v)
			}
			seen[string(v)] = true
			text = literal(nil, v, "")
		}
		results, refused := h.execute("DELETE FROM t; INSERT INTO t VALUES (" + string(text) + "); SELECT a FROM t")
		if refused != nil {
			t.Errorf("%q as %s: %v", v, text, refused)
			continue
		}
		if got := results[2].Rows[0][0]; string(got) != string(v) || (got == nil) != (v == nil) {
			t.Errorf("%q, written as %s, reads as %q", v, text, got)
		}
	}
}

// TestCodes: result codes have the names of SQLite's header.
func TestCodes(t *testing.T) {
	for rc, want := range map[int32]string{5: "SQLITE_BUSY", 517: "SQLITE_BUSY_SNAPSHOT", 2067: "SQLITE_CONSTRAINT_UNIQUE", 266: "SQLITE_IOERR(266)", 99: "SQLITE_99"} {
		if got := codeName(rc); got != want {
			t.Errorf("%d: %s, want %s", rc, got, want)
		}
	}
}
