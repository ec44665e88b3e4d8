package history

import (
	"encoding/binary"
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
type text struct {
	piece   strings.Builder
	lends   bool           // strings stay in the memory that they stood in
	numbers [1024]decimals // those met last
}

// decimals is a number and how it is written.
type decimals struct {
	n    uint64
	text string
}

// pieceSize is the size of a piece. A string of more than an eighth has memory of its own.
const pieceSize = 8 << 10

// keep copies a string.
func (t *text) keep(s string) string {
	if t.lends {
		return s
	}
	return t.copy(s)
}

func (t *text) copy(s string) string {
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
	at := &t.numbers[n%uint64(len(t.numbers))]
	if at.n != n || at.text == "" {
		var b [20]byte
		*at = decimals{n, t.copy(string(strconv.AppendUint(b[:0], n, 10)))}
	}
	return at.text
}

// vocabulary is the table of words of who writes. The zero value is ready.
type vocabulary struct {
	numbers map[string]uint64
	count   int // words that were written out, of which a reader numbers the first maxWords
	// met has the sketches of statements' texts that were written out, each where its own bits say.
	met []uint32
}

// metSize is a power of two.
const metSize = 4096

// append appends the number of a word, or 0 and the word.
func (v *vocabulary) append(b []byte, s string) []byte {
	if n := v.numbers[s]; n > 0 {
		return binary.AppendUvarint(b, n)
	}
	if v.count < maxWords {
		if v.numbers == nil {
			v.numbers = map[string]uint64{}
		}
		v.numbers[s] = uint64(v.count + 1)
	}
	return v.whole(b, s)
}

// appendText is append for the text of a statement. Most texts with values in them come once, so one is not remembered before its second time.
func (v *vocabulary) appendText(b []byte, s string) []byte {
	if v.met == nil {
		v.met = make([]uint32, metSize)
	}
	sketch := sketch(s)
	if at := &v.met[sketch%metSize]; *at != sketch {
		*at = sketch
		return v.whole(b, s)
	}
	return v.append(b, s)
}

// whole appends a word in full, which gets the next number.
func (v *vocabulary) whole(b []byte, s string) []byte {
	v.count = min(v.count+1, maxWords)
	return appendBytes(append(b, 0), s)
}

// reset has the numbers begin anew.
func (v *vocabulary) reset() {
	clear(v.numbers)
	v.count = 0
}

// sketch is a hash that is the same in every process.
func sketch(s string) uint32 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, as in Fibonacci hashing
	h := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = (h ^ word) * odd
		h ^= h >> 32
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * odd
		h ^= h >> 32
	}
	return uint32(h) | 1 // never 0, which stands where nothing was met
}

// decimal reads a number of up to 19 digits that is written as numbers are.
func decimal(s string) (n uint64, ok bool) {
	if len(s) == 0 || len(s) > 19 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}
