package configs

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a configuration file. The time of the YAML parser grows with the square of the text, and its memory with the
// square of the depth, so a file is looked at before it is parsed.
const (
	maxFile  = 256 << 10 // bytes
	maxLine  = 4 << 10   // bytes
	maxDepth = 100
)

// bounded refuses a file that is larger or deeper than a configuration can be, and says in which line.
func bounded(text []byte) (line int, err error) {
	if len(text) > maxFile {
		return 1, fmt.Errorf("the file is larger than %d KiB", maxFile>>10)
	}
	deep := fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	n := 0
	for text := range bytes.SplitSeq(text, []byte("\n")) {
		n++
		if len(text) > maxLine {
			return n, fmt.Errorf("the line is longer than %d bytes", maxLine)
		}
		// Each of these may begin a level where nothing else stands before it.
		if i := len(text) - len(bytes.TrimLeft(text, "-?: \t")); i > maxDepth {
			return n, deep
		}
	}
	depth := 0
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxDepth {
				return t.Position.Line, deep
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
	}
	return 0, nil
}
