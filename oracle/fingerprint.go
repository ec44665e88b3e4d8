package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/trace/lex"
)

// Fingerprint makes a finding's id from the class, the tables, the statement shapes and the kinds of edges, never from
// values. A cycle has no first edge: the least rotation is taken, so that it does not matter where the search began.
func (f *Finding) Fingerprint() string {
	if f.Difference != nil {
		return f.fingerprint()
	}
	parts := make([]string, len(f.Edges))
	known := map[[2]string]string{} // a long cycle has few texts
	shape := func(txn, n int) string {
		of := [2]string{f.Transactions[txn].Engine, f.sql(txn, n)}
		if _, ok := known[of]; !ok {
			known[of] = f.shape(txn, n)
		}
		return known[of]
	}
	for i, e := range f.Edges {
		parts[i] = strings.Join([]string{string(e.Kind), e.Row.Table,
			shape(e.From, e.FromStatement), shape(e.To, e.ToStatement)}, "\x00")
	}
	least := ""
	for i := range parts {
		r := strings.Join(append(append([]string{}, parts[i:]...), parts[:i]...), "\x01")
		if i == 0 || r < least {
			least = r
		}
	}
	sum := sha256.Sum256([]byte(string(f.Class) + "\x02" + f.Name + "\x02" + least))
	return "WC-" + hex.EncodeToString(sum[:3])
}

// shape is the shape of statement n of a transaction; empty if it is not among those kept.
func (f *Finding) shape(txn, n int) string {
	return statement.Shape(f.sql(txn, n), lex.Of(product.Of(f.Transactions[txn].Engine).Dialect))
}

// sql is the text of statement n of a transaction; empty if it is not among those kept.
func (f *Finding) sql(txn, n int) string {
	for _, s := range f.Transactions[txn].Statements {
		if s.N == n {
			return s.SQL
		}
	}
	return ""
}
