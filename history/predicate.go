package history

import (
	"encoding/binary"
	"strconv"
)

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
	// Groups says what decided whether the answer showed a group of rows, and what is known of each, in the form of condition.Groups: the condition holds for the rows of
	// all groups. It is empty if each row that comes or goes changes the answer.
	Groups string `json:"groups,omitempty"`
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
	b = appendText(b, `,"groups":`, r.Groups)
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
		case "groups":
			r.Groups, err = p.str()
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

func (w *BinaryWriter) read(b []byte, r *PredicateRead) []byte {
	mask := uint64(0)
	for i, set := range []bool{r.Whole, r.Current, r.Met, r.Within, r.Snapshot != "", r.Some, r.Counted, r.Last != "", r.Groups != ""} { // the order of readWhole and so on
		if set {
			mask |= 1 << i
		}
	}
	b = w.words.append(binary.AppendUvarint(b, mask), r.Table)
	b = appendBytes(b, r.Where)
	b = binary.AppendUvarint(binary.AppendUvarint(b, r.From), r.To)
	if r.Snapshot != "" {
		b = appendBytes(b, r.Snapshot)
	}
	if r.Last != "" {
		b = w.words.append(b, r.Last)
	}
	if r.Groups != "" {
		b = appendBytes(b, r.Groups)
	}
	return b
}

func (r *binaryReader) read() (p PredicateRead) {
	mask := r.uint()
	p.Table, p.Where, p.From, p.To = r.word(), r.str(), r.uint(), r.uint()
	p.Whole, p.Current, p.Met, p.Within, p.Some, p.Counted = mask&readWhole != 0, mask&readCurrent != 0, mask&readMet != 0, mask&readWithin != 0, mask&readSome != 0, mask&readCounted != 0
	if mask&readSnapshot != 0 {
		p.Snapshot = r.str()
	}
	if mask&readLast != 0 {
		p.Last = r.word()
	}
	if mask&readGroups != 0 {
		p.Groups = r.str()
	}
	r.bad = r.bad || mask >= noRead
	return p
}
