package oracle

import (
	"testing"

	"wirecheck/anomaly"
)

func TestFingerprint(t *testing.T) {
	make := func(sql string, from int) *Finding {
		f := &Finding{Class: anomaly.GSingle, Name: anomaly.LostUpdate, Transactions: []Transaction{
			{Statements: []Statement{{N: 1, SQL: "SELECT n FROM t WHERE id=1"}, {N: 2, SQL: sql}}},
			{Statements: []Statement{{N: 1, SQL: sql}}},
		}}
		f.Edges = []Edge{{From: 0, To: 1, Kind: EdgeRW, FromStatement: 1, ToStatement: 1}, {From: 1, To: 0, Kind: EdgeWW, FromStatement: 1, ToStatement: 2}}
		for i := range f.Edges {
			f.Edges[i].Row.Table = "t"
		}
		f.Edges = append(f.Edges[from:], f.Edges[:from]...)
		return f
	}
	base := make("UPDATE t SET n=8 WHERE id=1", 0).Fingerprint()
	if got := make("update t set n = 9 where id = 77", 1).Fingerprint(); got != base {
		t.Errorf("other values and another first edge: %s, want %s", got, base)
	}
	if got := make("UPDATE t SET m=8 WHERE id=1", 0).Fingerprint(); got == base {
		t.Error("another column has the same fingerprint")
	}
	other := make("UPDATE t SET n=8 WHERE id=1", 0)
	other.Name = anomaly.ReadSkew
	if other.Fingerprint() == base {
		t.Error("another name has the same fingerprint")
	}
	if len(base) != len("WC-2f81c0") {
		t.Errorf("fingerprint %q", base)
	}
}
