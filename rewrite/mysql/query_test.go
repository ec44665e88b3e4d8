package mysql

import (
	"testing"

	"wirecheck/history"
)

// TestDecodeReadsOnce: a row that an aggregate of a join shows twice is read once; another version of it, and another row, are reads of their own.
func TestDecodeReadsOnce(t *testing.T) {
	decode := decodeReads([]told{{table: "a", limit: 1000}, {table: "b", limit: 1000}}, history.OpRead)
	earlier := history.Access{Op: history.OpRead, Row: history.Row{Table: "a", Key: "1"}}
	got, err := decode([]history.Access{earlier}, [][]byte{[]byte("1 1:T1.1;2 1:T1.1;1 1:T1.1;1 2:T1.1,T2.1"), []byte("1 1:T1.1;1 1:T1.1")})
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, a := range got {
		names += a.Row.Table + a.Row.Key + "@" + a.Version + " "
	}
	if want := "a1@ a1@1:T1.1 a2@1:T1.1 a1@2:T2.1 b1@1:T1.1 "; names != want {
		t.Errorf("got %s, want %s", names, want)
	}
}
