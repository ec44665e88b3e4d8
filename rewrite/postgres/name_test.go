package postgres

import (
	"strings"
	"testing"
)

func TestRowName(t *testing.T) {
	for _, f := range []struct{ types, key, want string }{
		{"int4", "1", "a=1"},
		{"text", "it's", "a='it's'"},
		{"text", "", "a=''"},
		{"int4 text", "1 'x y'", "a=1, b='x y'"},
		{"text int4", "'o''x' 7", "a='o''x', b=7"},
		{"text text", `E'a\\b' 'ä'`, `a=E'a\\b', b='ä'`},
		{"uuid", "3d7c9ac7-0000-0000-0000-000000000001", "a=3d7c9ac7-0000-0000-0000-000000000001"},
		{"date", "00000001", "a='2000-01-02'"},
		{"date", "7fffffff", "a='infinity'"},
		{"timestamptz", "00000000000f4240", "a='2000-01-01 00:00:01Z'"},
		{"timestamp int2", "8000000000000000 3", "a='-infinity', b=3"},
		{"time", "00000000000f4240", "a='00:00:01'"},
		{"float8", "3ff8000000000000", "a=1.5"},
		{"float4", "3fc00000", "a=1.5"},
		{"bytea", "00ff", `a='\x00ff'`},
		{"bytea", "", ""},
		{"interval", "0000000000000000000000000000000c", "a=x0000000000000000000000000000000c"},
		{"text", strings.Repeat("ä", 100), "a='" + strings.Repeat("ä", 27) + "..."},
		{"int4 text", "1", ""},
		{"text int4", "'open 1", ""},
		{"", "1", ""},
	} {
		var cols []keyColumn
		for i, typ := range strings.Fields(f.types) {
			cols = append(cols, keyColumn{string(rune('a' + i)), typ})
		}
		got := rowName(cols, f.key)
		if len(got) > maxName {
			t.Errorf("%s %q: %d bytes", f.types, f.key, len(got))
		}
		if got != f.want {
			t.Errorf("rowName(%s, %q) = %q, want %q", f.types, f.key, got, f.want)
		}
	}
}
