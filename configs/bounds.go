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

// bounded refuses a file that is larger or deeper than a configuration can be.
func bounded(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("it is larger than %d KiB", maxFile>>10)
	}
	deep := func(line, column int) error {
		return fmt.Errorf("[%d:%d] it is nested more than %d levels deep", line, column, maxDepth)
	}
	n := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		n++
		if len(line) > maxLine {
			return fmt.Errorf("[%d:%d] the line is longer than %d bytes", n, maxLine+1, maxLine)
		}
		// Each of these may begin a level where nothing else stands before it.
		if i := len(line) - len(bytes.TrimLeft(line, "-?: \t")); i > maxDepth {
			return deep(n, i)
		}
	}
	depth := 0
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxDepth {
				return deep(t.Position.Line, t.Position.Column)
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		}
	}
	return nil
}
