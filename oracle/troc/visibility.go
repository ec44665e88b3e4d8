package troc

import (
	"wirecheck/product"
	"wirecheck/statement"
)

// kindOf classifies a statement. explicit says that it is in a transaction of several statements.
func kindOf(p *product.Product, level string, explicit bool, st *statement.Statement) (k product.Kind, ok bool) {
	switch st.Verb {
	case "select":
		if len(st.Targets()) > 0 { // within a common table expression
			return product.Update, true
		}
		lock := st.Locking.Lock
		for _, u := range st.Tables {
			if u.Lock.Stronger(lock) {
				lock = u.Lock
			}
		}
		switch {
		case lock == statement.LockUpdate, lock == statement.LockNoKeyUpdate:
			return product.ForUpdate, true
		case lock != statement.LockNone && p.ShareIgnored:
			return product.Select, true
		case lock != statement.LockNone:
			return product.Share, true
		case level == product.Serializable && p.ReadsLock && explicit:
			return product.Share, true
		}
		return product.Select, true
	case "update", "merge":
		return product.Update, true
	case "delete":
		return product.Delete, true
	case "insert", "replace":
		return product.Insert, true
	}
	return 0, false
}

// moment is what product.V2, product.V3 and product.V4 come down to: the versions of transactions that were committed at a time, or all.
type moment struct {
	dirty bool
	at    int
	gone  int // leaves out rows that others have deleted by then; 0: none
}
