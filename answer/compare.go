package answer

import (
	"bytes"
	"slices"
)

// CompareRows orders rows by their values' bytes, NULL first, and shorter rows before longer ones.
func CompareRows(a, b []Value) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == nil && b[i] == nil:
		case a[i] == nil:
			return -1
		case b[i] == nil:
			return 1
		default:
			if c := bytes.Compare(a[i], b[i]); c != 0 {
				return c
			}
		}
	}
	return len(a) - len(b)
}

// Difference is what two multisets of rows do not have in common: Missing is in the first only, Extra in the second only.
type Difference struct{ Missing, Extra [][]Value }

// Equal reports whether there is no difference.
func (d Difference) Equal() bool { return len(d.Missing)+len(d.Extra) == 0 }

// DiffRows compares rows as multisets: the order in which a server returns them is not looked at.
func DiffRows(want, got [][]Value) (d Difference) {
	want, got = slices.Clone(want), slices.Clone(got)
	slices.SortFunc(want, CompareRows)
	slices.SortFunc(got, CompareRows)
	for len(want) > 0 && len(got) > 0 {
		switch c := CompareRows(want[0], got[0]); {
		case c == 0:
			want, got = want[1:], got[1:]
		case c < 0:
			d.Missing, want = append(d.Missing, want[0]), want[1:]
		default:
			d.Extra, got = append(d.Extra, got[0]), got[1:]
		}
	}
	d.Missing, d.Extra = append(d.Missing, want...), append(d.Extra, got...)
	return d
}
