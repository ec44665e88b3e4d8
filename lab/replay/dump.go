package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"wirecheck/trace/lex"
)

// openDump looks through the compression of a dump, and refuses what is no dump in plain SQL.
func openDump(name string, r io.Reader) (in *bufio.Reader, closed func(), err error) {
	in, closed = bufio.NewReaderSize(r, lineRoom), func() {}
	head, err := in.Peek(lineRoom)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("open snapshot %s: %w", name, err)
		}
		in = bufio.NewReaderSize(z, lineRoom)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("open snapshot %s: %w", name, err)
		}
		in, closed = bufio.NewReaderSize(z, lineRoom), z.Close
	}
	head, err = in.Peek(lineRoom)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		closed()
		return nil, nil, fmt.Errorf("read snapshot %s: %w", name, err)
	}
	if why := noDump(name, head); why != "" {
		closed()
		return nil, nil, fmt.Errorf("%s: %s", name, why)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // a byte order mark
		if _, err := in.Discard(3); err != nil {
			return nil, nil, fmt.Errorf("read snapshot %s: %w", name, err)
		}
	}
	return in, closed, nil
}

// archived reports whether a file or folder is a dump in pg_dump's custom, tar or directory format, or a folder of mariadb-backup. A file's place does not
// change.
func archived(f *os.File) bool {
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return slices.ContainsFunc([]string{"toc.dat", "mariadb_backup_checkpoints", "xtrabackup_checkpoints"}, func(name string) bool {
			_, err := os.Stat(filepath.Join(f.Name(), name))
			return err == nil
		})
	}
	head := make([]byte, len(tarHead))
	_, err := f.ReadAt(head, 0)
	return err == nil && (bytes.HasPrefix(head, []byte(customHead)) || string(head) == tarHead)
}

// customHead and tarHead begin a dump in pg_dump's custom and tar format (src/bin/pg_dump/pg_backup_archiver.c, ReadHead; pg_backup_tar.c).
const customHead, tarHead = "PGDMP", "toc.dat\x00"

// noDump says why a file is no dump in plain SQL; empty: it may be one.
func noDump(name string, head []byte) string {
	const plain = "it must be plain SQL, as pg_dump, mysqldump and mariadb-dump write it"
	switch {
	case len(head) == 0:
		return "the file is empty: without --snapshot the replay begins with an empty database"
	case bytes.HasPrefix(head, []byte(customHead)):
		return "this is pg_dump's custom format: make plain SQL of it: pg_restore -f " + name + ".sql " + name
	case bytes.HasPrefix(head, []byte(tarHead)):
		return "this is pg_dump's tar format: make plain SQL of it: pg_restore -f " + name + ".sql " + name
	case bytes.HasPrefix(head, []byte("\xfd7zXZ")), bytes.HasPrefix(head, []byte("BZh")), bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x04\x22\x4d\x18")):
		return "this is compressed: decompress it first (gzip and zstd are read as they are)"
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "this is UTF-16: make UTF-8 of it: iconv -f UTF-16 -t UTF-8"
	case bytes.IndexByte(head, 0) >= 0 && bytes.IndexByte(head, 0) < 512:
		return "this is binary: " + plain
	}
	return ""
}

// readLine reads a line with its end. One that is longer than a statement may be is an error before it fills the memory.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return string(line), err
	}
	var b strings.Builder
	for {
		if b.Len()+len(line) > maxChunk {
			return "", fmt.Errorf("a line of more than %d bytes", maxChunk)
		}
		b.Write(line)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return b.String(), err
		}
		line, err = in.ReadSlice('\n')
	}
}

// boundary finds the end of a statement that is read line by line. Each byte is looked at once. (PostgreSQL manual, 4.1 Lexical Structure;
// MySQL manual, 11.1 Literal Values, 11.7 Comments.)
type boundary struct {
	dialect lex.Dialect
	seen    int    // bytes
	in      string // what closes the quotes, or the comment, that are open; empty: none
	escapes bool   // a backslash escapes in them
	nested  int    // comments
	last    byte   // outside of quotes and comments, but for white space
	word    []byte // that is being read
	before  string // the word before
	atomic  bool   // the body of a routine in standard SQL: BEGIN ATOMIC ... END (PostgreSQL manual, CREATE FUNCTION, sql_body)
	depth   int    // of it
}

// complete takes the whole text so far, and tells whether a semicolon outside of everything ends it.
func (b *boundary) complete(text string) bool {
	for b.seen < len(text) {
		rest := text[b.seen:]
		if b.in != "" {
			b.seen += b.within(rest)
			continue
		}
		c := rest[0]
		if wordByte(c) {
			b.word = append(b.word, c|0x20)
			b.last = c
			b.seen++
			continue
		}
		prefix := string(b.word)
		b.endWord()
		b.seen += b.outside(rest, prefix)
	}
	return b.in == "" && b.last == ';' && b.depth <= 0
}

func wordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= '0' && c <= '9' || c >= 0x80
}

func (b *boundary) endWord() {
	if len(b.word) == 0 {
		return
	}
	word := string(b.word[:min(len(b.word), 20)])
	b.word = b.word[:0]
	switch {
	case word == "atomic" && b.before == "begin":
		b.atomic, b.depth = true, 1
	case b.atomic && word == "case":
		b.depth++
	case b.atomic && word == "end":
		b.depth--
	}
	b.before = word
}

// outside takes what stands outside of quotes and is no word, and gives how many bytes that is.
func (b *boundary) outside(s, prefix string) int {
	mysql := b.dialect == lex.MySQL
	switch c := s[0]; {
	case c == '\'', c == '"', c == '`' && mysql:
		b.in, b.last = s[:1], c
		b.escapes = c != '`' && (mysql || c == '\'' && prefix == "e")
		return 1
	case strings.HasPrefix(s, "--") && (!mysql || len(s) > 2 && s[2] <= ' '), c == '#' && mysql:
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			return i
		}
		return len(s)
	case strings.HasPrefix(s, "/*") && (!mysql || !strings.HasPrefix(s, "/*!") && !strings.HasPrefix(s, "/*M!")):
		b.in, b.nested = "*/", 1
		return 2
	case c == '$' && !mysql && prefix == "":
		if tag := dollarTag.FindString(s); tag != "" {
			b.in, b.last, b.escapes = tag, c, false
			return len(tag)
		}
		b.last = c
	case c > ' ':
		b.last = c
	}
	return 1
}

var dollarTag = regexp.MustCompile(`^\$(?:[A-Za-z_\x80-\x{10ffff}][A-Za-z0-9_\x80-\x{10ffff}]*)?\$`)

// within takes what stands in quotes or a comment.
func (b *boundary) within(s string) int {
	switch {
	case b.escapes && s[0] == '\\':
		return min(2, len(s))
	case b.in == "*/" && b.dialect == lex.PostgreSQL && strings.HasPrefix(s, "/*"): // they nest
		b.nested++
		return 2
	case strings.HasPrefix(s, b.in):
		n := len(b.in)
		if b.in == "*/" {
			if b.nested--; b.nested > 0 {
				return n
			}
		}
		b.in, b.escapes = "", false // a doubled quote closes and opens
		return n
	}
	return 1
}

// touchesFiles tells whether a text of a dump reads or writes files of the server, or executes programs there (COPY with a file or PROGRAM, LOAD DATA,
// INTO OUTFILE). Dumps do not; and the server of a replay may belong to whoever gets the dump from somebody else. It does not look into routines.
func touchesFiles(sql string, d lex.Dialect) bool {
	if !fileWords.MatchString(sql) {
		return false
	}
	first, before := true, ""
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Kind == lex.Space || t.Kind == lex.Comment:
			continue
		case t.Kind == lex.Word:
			switch w := strings.ToLower(t.Text); {
			case d == lex.PostgreSQL && first && w == "copy",
				d == lex.MySQL && before == "load" && (w == "data" || w == "xml"), d == lex.MySQL && before == "into" && (w == "outfile" || w == "dumpfile"):
				return true
			default:
				before = w
			}
		default:
			before = ""
		}
		first = t.Kind == lex.Other && t.Text == ";"
	}
	return false
}

var fileWords = regexp.MustCompile(`(?i)\b(?:copy|load|outfile|dumpfile)\b`)
