package history

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// space skips white space.
func (p *parser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *parser) syntax(want string) error {
	if p.i >= len(p.s) {
		return fmt.Errorf("the line ends where %s was expected", want)
	}
	return fmt.Errorf("column %d: found %q where %s was expected", p.i+1, p.s[p.i], want)
}

// take steps over c after white space, if it is there.
func (p *parser) take(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) rest() error {
	p.space()
	if p.i < len(p.s) {
		return p.syntax("the end of the line")
	}
	return nil
}

// object reads an object and calls field with each key; field reads the value.
func (p *parser) object(field func(key string) error) error {
	if !p.take('{') {
		return p.syntax("{")
	}
	if p.take('}') {
		return nil
	}
	for {
		key, err := p.raw()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.syntax(":")
		}
		if err := field(key); err != nil {
			return err
		}
		if p.take('}') {
			return nil
		}
		if !p.take(',') {
			return p.syntax(", or }")
		}
	}
}

func (p *parser) array(element func() error) error {
	if !p.take('[') {
		return p.syntax("[")
	}
	if p.take(']') {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if p.take(']') {
			return nil
		}
		if !p.take(',') {
			return p.syntax(", or ]")
		}
	}
}

func (p *parser) digits() (string, error) {
	p.space()
	start := p.i
	if p.i < len(p.s) && p.s[p.i] == '-' {
		p.i++
	}
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
	}
	if p.i == start {
		return "", p.syntax("a number")
	}
	return p.s[start:p.i], nil
}

func (p *parser) uint() (uint64, error) {
	d, err := p.digits()
	if err != nil {
		return 0, err
	}
	if len(d) < 20 && d[0] != '-' { // it fits
		n := uint64(0)
		for i := range len(d) {
			n = n*10 + uint64(d[i]-'0')
		}
		return n, nil
	}
	n, err := strconv.ParseUint(d, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("column %d: %s is no whole number from 0 to 2^64-1", p.i-len(d)+1, d)
	}
	return n, nil
}

func (p *parser) int() (int64, error) {
	d, err := p.digits()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(d, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("column %d: %s is no whole number of 64 bits", p.i-len(d)+1, d)
	}
	return n, nil
}

// small reads a number of a statement.
func (p *parser) small() (int, error) {
	n, err := p.uint()
	if err == nil && n > math.MaxInt32 {
		return 0, fmt.Errorf("column %d: %d is too large", p.i, n)
	}
	return int(n), err
}

func (p *parser) bool() (bool, error) {
	p.space()
	switch {
	case strings.HasPrefix(p.s[p.i:], "true"):
		p.i += 4
		return true, nil
	case strings.HasPrefix(p.s[p.i:], "false"):
		p.i += 5
		return false, nil
	}
	return false, p.syntax("true or false")
}

// word reads a string of which there are few different ones in a file, such as a statement's text.
func word[T ~string](p *parser) (T, error) {
	s, err := p.raw()
	if err != nil {
		return "", err
	}
	return T(p.words.of(s)), nil
}

// str reads a string that stays valid.
func (p *parser) str() (string, error) {
	s, err := p.raw()
	if err != nil || p.text == nil {
		return s, err
	}
	return p.text.keep(s), nil
}

// raw reads a string that may share the line's memory.
func (p *parser) raw() (string, error) {
	if !p.take('"') {
		return "", p.syntax("a string")
	}
	for i := plain8(p.s, p.i); i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			s := p.s[p.i:i]
			p.i = i + 1
			return s, nil
		case c == '\\':
			return p.escaped(i)
		case c < 0x20:
			p.i = i
			return "", p.syntax("the rest of a string")
		}
	}
	p.i = len(p.s)
	return "", p.syntax("the end of a string")
}

// plain8 is the first place from i on at which a string may end or need a second look. It looks at eight bytes at a time, and leaves the last ones.
func plain8(s string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 | uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, slash := x^('"'*ones), x^('\\'*ones)
		// The lowest byte in which a bit stays is one that is 0, or below 0x20. Higher ones may only seem so.
		if odd := ((quote-ones)&^quote | (slash-ones)&^slash | (x-0x20*ones)&^x) & highs; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	return i
}

// escaped reads the rest of a string whose first backslash is at i.
func (p *parser) escaped(i int) (string, error) {
	b := append([]byte(nil), p.s[p.i:i]...)
	for i < len(p.s) {
		c := p.s[i]
		switch {
		case c == '"':
			p.i = i + 1
			return string(b), nil
		case c < 0x20:
			p.i = i
			return "", p.syntax("the rest of a string")
		case c != '\\':
			b = append(b, c)
			i++
			continue
		}
		if i+1 >= len(p.s) {
			break
		}
		i += 2
		switch e := p.s[i-1]; e {
		case '"', '\\', '/':
			b = append(b, e)
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'u':
			u, ok := p.hex(i)
			if !ok {
				p.i = min(i, len(p.s))
				return "", p.syntax("four hexadecimal digits")
			}
			i += 4
			if u >= 0xd800 && u < 0xdc00 && strings.HasPrefix(p.s[i:], `\u`) {
				if lo, ok := p.hex(i + 2); ok && lo >= 0xdc00 && lo < 0xe000 {
					i += 6
					b = utf8.AppendRune(b, (u-0xd800)<<10+(lo-0xdc00)+0x10000)
					continue
				}
			}
			if u >= 0xdc80 && u < 0xdd00 {
				b = append(b, byte(u)) // see appendString
			} else {
				b = utf8.AppendRune(b, u)
			}
		default:
			p.i = i - 1
			return "", p.syntax("an escape")
		}
	}
	p.i = len(p.s)
	return "", p.syntax("the end of a string")
}

func (p *parser) hex(i int) (rune, bool) {
	if i+4 > len(p.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[i:i+4], 16, 16)
	return rune(n), err == nil
}
