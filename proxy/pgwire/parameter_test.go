package pgwire

import "testing"

// TestParameter: a decimal number may be cast to an integer, which rounds it.
func TestParameter(t *testing.T) {
	for _, tt := range []struct {
		column string
		oid    uint32
		value  string
		known  bool
	}{
		{"int4", 1700, "1.6", false}, {"int4", 1700, "1", true}, {"numeric", 1700, "1.6", true}, {"int4", 0, "1", true}, {"numeric", 20, "1", true},
		{"int4", 25, "1", false}, {"timestamp", 1184, "2026-01-01 09:00+01", false}, {"varchar", 25, "a", true}, {"int4[]", 1231, "{1.6}", false}, {"int4[]", 1016, "{1}", true},
	} {
		if _, known := parameter(tt.column, tt.oid, []byte(tt.value), false); known != tt.known {
			t.Errorf("%s of type %d for %s: known is %t", tt.value, tt.oid, tt.column, known)
		}
	}
}
