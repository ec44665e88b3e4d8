// Package flow reads from the texts, tags and answers of statements which ones an application meant as one request, and which values
// that it wrote come from values that it had read. The proxy's recorder and replay share it.
package flow

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Kind is how a value that was written comes from one that was read.
type Kind string

// The kinds.
const (
	Copy   Kind = "copy"
	Plus   Kind = "plus"   // a number and a constant, which may be negative
	Prefix Kind = "prefix" // the value read stands at the beginning of the one written
	Suffix Kind = "suffix" // and at its end
	// Asked: the values show no relation, but the row was asked for by the value that was read.
	Asked Kind = "asked"
	// Current: the server computes the value from the current one, and only a check of the application may rest on the value that was read.
	Current Kind = "current"
)

// Digest stands for a text that is too long to be kept.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%d%s%x", len(text), ofDigest, sum[:8])
}

// ofDigest stands between the length and the hash in a digest.
const ofDigest = " bytes, hash "

// digested is how many bytes a text has that a digest stands for; 0: it is none.
func digested(digest string) (n int) {
	if size, hash, ok := strings.Cut(digest, ofDigest); ok && len(hash) == 16 {
		n, _ = strconv.Atoi(size)
	}
	return max(n, 0)
}

// IsDigest reports whether a text may be a digest.
func IsDigest(text string) bool { return digested(text) > 0 }

// relateLong is Relate for a text that was read and of which the digest is known.
func relateLong(digest, written string) (kind Kind, constant string, ok bool) {
	n := digested(digest)
	switch {
	case n == 0 || len(written) < n:
	case Digest(written[:n]) == digest && len(written) == n:
		return Copy, "", true
	case Digest(written[:n]) == digest:
		return Prefix, written[n:], true
	case Digest(written[len(written)-n:]) == digest:
		return Suffix, written[:len(written)-n], true
	}
	return "", "", false
}

// Same reports whether two texts may be the same value: 1 and 1.00, t and true. One of them may be a digest.
func Same(a, b string) bool {
	if a == b || SameNumber(a, b) || len(b) > 0 && digested(a) == len(b) && Digest(b) == a || len(a) > 0 && digested(b) == len(a) && Digest(a) == b {
		return true
	}
	x, y := truth[strings.ToLower(a)], truth[strings.ToLower(b)]
	return x != 0 && x == y
}

// truth are the forms of booleans.
var truth = map[string]int{"t": 1, "true": 1, "1": 1, "f": 2, "false": 2, "0": 2}

// Relate says how a value comes from another one, of which it may be given the digest alone. constant is what is added or put to it.
func Relate(read, written string) (kind Kind, constant string, ok bool) {
	if read == written {
		return Copy, "", true
	}
	if IsNumber(read) && IsNumber(written) {
		a, ok1 := new(big.Rat).SetString(read)
		b, ok2 := new(big.Rat).SetString(written)
		if !ok1 || !ok2 {
			return "", "", false
		}
		return Plus, new(big.Rat).Sub(b, a).FloatString(Scale(read, written)), true
	}
	if kind, constant, ok := relateLong(read, written); ok {
		return kind, constant, true
	}
	if len(read) >= 1 && strings.HasPrefix(written, read) {
		return Prefix, written[len(read):], true
	}
	if len(read) >= 1 && strings.HasSuffix(written, read) {
		return Suffix, written[:len(written)-len(read)], true
	}
	return "", "", false
}

// Apply computes the value again from another one that was read.
func (k Kind) Apply(read, constant string) (string, bool) {
	switch k {
	case Plus:
		a, ok1 := new(big.Rat).SetString(read)
		c, ok2 := new(big.Rat).SetString(constant)
		if !ok1 || !ok2 {
			return "", false
		}
		return new(big.Rat).Add(a, c).FloatString(Scale(read, constant)), true
	case Prefix:
		return read + constant, true
	case Suffix:
		return constant + read, true
	}
	return read, true
}

// Scale is how many digits behind the point the numbers have.
func Scale(numbers ...string) (most int) {
	for _, n := range numbers {
		if _, digits, ok := strings.Cut(n, "."); ok {
			most = max(most, len(digits))
		}
	}
	return most
}

// IsNumber reports whether a value is a decimal number.
func IsNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xXnNpP_")
}

// SameNumber reports whether two texts are the same number: 1 and 1.00.
func SameNumber(a, b string) bool {
	if !IsNumber(a) || !IsNumber(b) {
		return false
	}
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// IsClock reports whether a number may be a reading of a clock of our days: seconds since 1970 (2001 to 2065), or thousandths, millionths or
// billionths of one. The later of two such readings was not computed from the earlier one.
func IsClock(s string) bool {
	whole, _, _ := strings.Cut(s, ".")
	switch len(whole) {
	case 10, 13, 16, 19:
		return IsNumber(s) && whole[0] >= '1' && whole[0] <= '2'
	}
	return false
}
