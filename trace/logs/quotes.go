package logs

import "bytes"

// openQuote tells whether a text of the MySQL family that grows line by line ends within quotes or a comment, so that what follows may still
// belong to it. Each byte is looked at once.
type openQuote struct {
	in   byte // ', ", `, or * for a comment; 0: neither
	seen int  // bytes
}

// ends takes the whole text so far.
func (o *openQuote) ends(text []byte) bool {
	for ; o.seen < len(text); o.seen++ {
		c, rest := text[o.seen], text[o.seen+1:]
		switch {
		case o.in == '*':
			if c == '*' && bytes.HasPrefix(rest, []byte("/")) {
				o.in = 0
				o.seen++
			}
		case o.in != 0 && c == '\\' && o.in != '`':
			o.seen++
		case o.in != 0 && c == o.in:
			o.in = 0 // a doubled quote closes and opens
		case o.in != 0:
		case c == '\'' || c == '"' || c == '`':
			o.in = c
		case c == '#', c == '-' && len(rest) > 1 && rest[0] == '-' && rest[1] <= ' ':
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				o.seen += end + 1
			} else {
				o.seen = len(text) - 1
			}
		case c == '/' && bytes.HasPrefix(rest, []byte("*")) && !bytes.HasPrefix(rest, []byte("*!")) && !bytes.HasPrefix(rest, []byte("*M!")):
			o.in = '*'
			o.seen++
		}
	}
	return o.in != 0
}
