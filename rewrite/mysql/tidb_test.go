package mysql

import (
	"slices"
	"testing"

	"wirecheck/internal/testserver"
)

// What clients see of every form is the same on TiDB with the columns and without, and what is captured is what happened.
func TestFormsOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	for _, forms := range [][]form{selects, updates, inserts, deletes} {
		for _, f := range forms {
			p.check(t, f.sql)
		}
	}
}

// withoutOriginalName takes the sixth string out of a column's definition, the name of the column in its table. TiDB leaves it empty
// where it finds a row by its key without a plan, which it does not do if there is an expression among the columns.
func withoutOriginalName(def []byte) []byte {
	at := 0
	for range 5 {
		at += 1 + int(def[at]) // no name here has 251 bytes
	}
	return slices.Concat(def[:at], []byte{0}, def[at+1+int(def[at]):])
}
