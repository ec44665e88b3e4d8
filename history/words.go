package history

import (
	"strconv"
	"strings"
)

// maxWords bounds the strings that are kept once for all lines.
const maxWords = 8192

// words keeps each string of which there are few different ones once. The zero value is ready.
type words struct {
	all map[string]string
	// recent are those met last, by a part of their bytes: what the next event says is nearly always among them.
	recent [256]string
}

// of is the string that is kept for s.
func (w *words) of(s string) string {
	n := len(s)
	if n == 0 {
		return ""
	}
	at := &w.recent[uint8(n)*31^s[0]^s[n/2]<<2^s[n-1]<<4]
	if *at == s {
		return *at
	}
	if kept, ok := w.all[s]; ok {
		*at = kept
		return kept
	}
	kept := strings.Clone(s)
	if len(w.all) < maxWords {
		if w.all == nil {
			w.all = map[string]string{}
		}
		w.all[kept] = kept
		*at = kept
	}
	return kept
}

// text copies short strings one behind the other into pieces of memory, so that what keeps one keeps neither the line that it stood in nor
// an allocation of its own. The zero value is ready.
type text struct{ piece strings.Builder }

// pieceSize is the size of a piece. A string of more than an eighth has memory of its own.
const pieceSize = 8 << 10

// keep copies a string.
func (t *text) keep(s string) string {
	n := t.piece.Len()
	switch {
	case len(s) == 0:
		return ""
	case len(s) > pieceSize/8:
		return strings.Clone(s)
	case n+len(s) > t.piece.Cap():
		t.piece.Reset()
		t.piece.Grow(pieceSize)
		n = 0
	}
	t.piece.WriteString(s)
	return t.piece.String()[n:]
}

// number is a decimal number.
func (t *text) number(n uint64) string {
	if n < 100 {
		return strconv.FormatUint(n, 10) // takes no memory
	}
	var b [20]byte
	digits := strconv.AppendUint(b[:0], n, 10)
	return t.keep(string(digits))
}
