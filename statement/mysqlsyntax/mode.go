package mysqlsyntax

import "strings"

// Mode is the part of sql_mode and of the character sets that changes how text is read or evaluated.
type Mode uint16

// The modes that matter here.
const (
	AnsiQuotes Mode = 1 << iota
	NoBackslashEscapes
	PipesAsConcat
	IgnoreSpace
	HighNotPrecedence
	// Simultaneous is MariaDB's SIMULTANEOUS_ASSIGNMENT: SET lists are not evaluated from left to right.
	Simultaneous
	// MariaDB says that the server is one: comments for versions of MySQL that it is not are not executed.
	MariaDB
	// Foreign says that the text cannot be read byte by byte (gbk, sjis, ...), that texts made here would be changed by
	// the character sets (ucs2, utf16, utf32), that the grammar is another one (sql_mode ORACLE, MSSQL), that values are read with blanks that
	// they do not have (PAD_CHAR_TO_FULL_LENGTH), or that the binary log would warn of our functions (binlog_format=STATEMENT): nothing is rewritten.
	Foreign
)

// PlainCharset reports whether ASCII characters are single bytes in the character set and no part of other characters.
func PlainCharset(s string) bool {
	switch strings.ToLower(s) {
	case "big5", "cp932", "sjis", "gbk", "gb18030", "gb2312", "euckr", "ucs2", "utf16", "utf16le", "utf32", "filename", "swe7":
		return false
	}
	return true
}
