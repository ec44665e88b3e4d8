package history

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPlain8: eight bytes at a time end where one at a time do, whatever stands in front and behind.
func TestPlain8(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 8))
	odd := func(c byte) bool { return c == '"' || c == '\\' || c < 0x20 }
	for range 200_000 {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			if b[i] = byte(rng.Uint32()); rng.IntN(8) > 0 {
				b[i] = "aZ!#[] \x7f\x80\xa2\xdc\xff"[rng.IntN(12)]
			}
		}
		from := rng.IntN(len(b) + 1)
		want := from
		for want < len(b) && !odd(b[want]) {
			want++
		}
		got := plain8(string(b), from)
		if got > want || got < want && got+8 <= len(b) {
			t.Fatalf("%q from %d: %d, want %d", b, from, got, want)
		}
	}
}

// TestNumbers: the reader takes the numbers that fit, and no others.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "007": 7, "9999999999999999999": 9999999999999999999, "18446744073709551615": 1<<64 - 1, "00000000000000000000000001": 1} {
		p := parser{s: text}
		if n, err := p.uint(); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"-1", "-", "18446744073709551616", "99999999999999999999", "x", ""} {
		p := parser{s: text}
		if n, err := p.uint(); err == nil || n != 0 || strings.Contains(err.Error(), "%!") {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}
