package postgres

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/engine"
)

func TestParsePIDs(t *testing.T) {
	for text, want := range map[string][]uint64{"{}": nil, "{7}": {7}, "{7,0,4294967295}": {7, 0, 4294967295}} {
		if got, err := parsePIDs([]byte(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "{", "7", "{7", "{a}", "{-1}", "{1,,2}", "{NULL}"} {
		if got, err := parsePIDs([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestWaitOf(t *testing.T) {
	ids := []uint64{7, 8}
	tests := []struct {
		name, blockers, safe, lock string
		want                       engine.Wait
	}{
		{"not blocked", "{}", "{}", "", engine.Wait{}},
		{"row", "{8,7,8}", "{}", "transactionid ShareLock", engine.Wait{Blocked: true, Kind: engine.WaitRow, For: []uint64{7, 8}}},
		{"queue", "{8}", "{}", "tuple ExclusiveLock", engine.Wait{Blocked: true, Kind: engine.WaitRow, For: []uint64{8}}},
		{"somebody else", "{9}", "{}", "relation RowExclusiveLock", engine.Wait{Blocked: true, Kind: engine.WaitTable, Foreign: true}},
		{"a prepared transaction", "{0,7}", "{}", "advisory ExclusiveLock", engine.Wait{Blocked: true, Kind: engine.WaitAdvisory, Foreign: true, For: []uint64{7}}},
		{"safe snapshot", "{}", "{7}", "", engine.Wait{Blocked: true, Kind: engine.WaitSnapshot, For: []uint64{7}}},
		{"safe snapshot, nobody knows whose", "{}", "{}", "SafeSnapshot", engine.Wait{Blocked: true, Kind: engine.WaitSnapshot}},
		{"granted meanwhile", "{7}", "{}", "", engine.Wait{}},
		{"for microseconds", "{7}", "{}", "extend ExclusiveLock", engine.Wait{Blocked: true, Kind: engine.WaitOther, For: []uint64{7}}},
		{"unknown", "{7}", "{}", "applytransaction X", engine.Wait{Blocked: true, Kind: engine.WaitOther, For: []uint64{7}}},
	}
	for _, test := range tests {
		row := [][]byte{[]byte("1"), []byte(test.blockers), []byte(test.safe), nil}
		if test.lock != "" {
			row[3] = []byte(test.lock)
		}
		got, brief, err := waitOf(row, ids)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" || brief != (test.lock == "extend ExclusiveLock") {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
}

func TestTypes(t *testing.T) {
	for oid, want := range map[uint32]string{23: "int4", 1043: "varchar", 1007: "_int4", 790: "money", 2278: "void", 16385: "user-defined", 1: "unknown"} {
		if got := typeName(oid); got != want {
			t.Errorf("%d: got %q, want %q", oid, got, want)
		}
	}
	for oid, want := range map[uint32]bool{23: true, 1700: true, 26: true, 790: true, 25: false, 16: false, 1114: false, 1007: false} {
		if numeric(oid) != want {
			t.Errorf("%d: numeric is %v", oid, !want)
		}
	}
}
