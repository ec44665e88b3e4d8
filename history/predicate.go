package history

import "strconv"

// PredicateRead is what one statement asked of one table: the rows for which a condition holds, those included that it did not find
// (Adya 1999, section 4.4).
type PredicateRead struct {
	Table string `json:"table"` // as Row.Table
	Where string `json:"where"` // the condition, in the form of package statement/condition
	// What the statement could see was settled between these ticks: it saw what transactions wrote whose COMMIT was answered
	// before From, and nothing of those whose COMMIT was sent after To.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Whole says that the statement's accesses name every row of the table for which the condition held.
	Whole bool `json:"whole,omitempty"`
	// Met says that the condition held for a row that was in the way of an INSERT, which passed over it. No other row could be.
	Met bool `json:"met,omitempty"`
	// Some says that the answer only tells that there are some such rows, which it does not name: as long as one is left, another change of them does not matter.
	Some bool `json:"some,omitempty"`
	// Counted says that the answer only tells of all such rows together (COUNT, SUM): the client saw none of them.
	Counted bool `json:"counted,omitempty"`
	// Last is a column whose greatest or least value the answer showed: the condition asks for rows from that one on. It is empty if there is none.
	Last string `json:"last,omitempty"`
	// Current says that the statement locked the rows or wrote them, and saw what was current, whatever the transaction's view is.
	Current bool `json:"current,omitempty"`
	// Within says that a subquery of a statement that writes asked this: what the statement wrote does not tell what it saw.
	Within bool `json:"within,omitempty"`
	// Snapshot is that of the statement, see Snapshot; it may say what the ticks do not. It is empty if it is not known.
	Snapshot string `json:"snapshot,omitempty"`
}

func appendRead(b []byte, r *PredicateRead) []byte {
	b = appendString(append(b, `{"table":`...), r.Table)
	b = appendString(append(b, `,"where":`...), r.Where)
	b = strconv.AppendUint(append(b, `,"from":`...), r.From, 10)
	b = strconv.AppendUint(append(b, `,"to":`...), r.To, 10)
	b = appendBool(b, `,"whole":true`, r.Whole)
	b = appendBool(b, `,"met":true`, r.Met)
	b = appendBool(b, `,"some":true`, r.Some)
	b = appendBool(b, `,"counted":true`, r.Counted)
	b = appendText(b, `,"last":`, r.Last)
	b = appendBool(b, `,"current":true`, r.Current)
	b = appendBool(b, `,"within":true`, r.Within)
	if r.Snapshot != "" {
		b = appendString(append(b, `,"snapshot":`...), r.Snapshot)
	}
	return append(b, '}')
}

func (p *parser) read(r *PredicateRead) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "table":
			r.Table, err = word[string](p)
		case "where":
			r.Where, err = p.str()
		case "from":
			r.From, err = p.uint()
		case "to":
			r.To, err = p.uint()
		case "whole":
			r.Whole, err = p.bool()
		case "met":
			r.Met, err = p.bool()
		case "some":
			r.Some, err = p.bool()
		case "counted":
			r.Counted, err = p.bool()
		case "last":
			r.Last, err = word[string](p)
		case "current":
			r.Current, err = p.bool()
		case "within":
			r.Within, err = p.bool()
		case "snapshot":
			r.Snapshot, err = p.str()
		default:
			return unknownKey("reads." + key)
		}
		return err
	})
}
