package replay

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/trace/lex"
)

// Snapshot restores a dump: pg_dump's in each of its formats (COPY becomes INSERT), mysqldump's and mariadb-dump's.
type Snapshot struct {
	Conn    engine.Conn // nil: nothing is executed
	Dialect lex.Dialect
	// Confined leaves databases and accounts alone: it is somebody else's server.
	Confined bool
	// Archive gives the plain SQL of a dump in the vendor's own format (engine.Lab.Archive).
	Archive func(ctx context.Context, path, database string) (io.ReadCloser, error)
	// Database is the one to restore, where a dump in such a format may have several.
	Database string
	// Skipped says what was left out, and how often.
	Skipped map[string]int
	// Definitions are the dump's statements that make tables and what belongs to them, without rows, owners and rights.
	Definitions Definitions

	name string
	line int // that was read last
}

const (
	copyBatch = 500       // rows in one INSERT
	copyBytes = 4 << 20   // of it
	maxChunk  = 256 << 20 // one statement of a dump, or one row of COPY
	lineRoom  = 64 << 10  // first
)

// Restore reads the dump and executes it.
func (s *Snapshot) Restore(ctx context.Context, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the snapshot, a dump of the database from before the first statement: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if s.Archive != nil && archived(f) {
		out, err := s.Archive(ctx, path, s.Database)
		if err != nil {
			return fmt.Errorf("open snapshot %s: %w", path, err)
		}
		return errors.Join(s.Read(ctx, path, out), out.Close())
	}
	in, closed, err := openDump(path, f)
	if err != nil {
		return err
	}
	defer closed()
	return s.Read(ctx, path, in)
}

// Read reads plain SQL and executes it; without a connection it only notes the definitions. name is what errors call it.
func (s *Snapshot) Read(ctx context.Context, name string, from io.Reader) error {
	s.name, s.line = name, 0
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	return s.restore(ctx, bufio.NewReaderSize(from, lineRoom))
}

func (s *Snapshot) read(in *bufio.Reader) (string, error) {
	line, err := readLine(in)
	if line != "" && (err == nil || errors.Is(err, io.EOF)) {
		s.line++
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read snapshot %s, line %d: %w", s.name, s.line+1, err)
	}
	return line, err
}

func (s *Snapshot) restore(ctx context.Context, in *bufio.Reader) error {
	var chunk strings.Builder
	end := &boundary{dialect: s.Dialect}
	begin := 1
	delimiter := ";"
	for {
		line, err := s.read(in)
		if errors.Is(err, io.EOF) {
			if strings.TrimSpace(withoutComments(chunk.String(), s.Dialect)) != "" {
				return fmt.Errorf("%s:%d: the dump ends in the middle of a statement", s.name, begin)
			}
			return nil
		} else if err != nil {
			return err
		}
		text := strings.TrimRight(line, "\r\n")
		if chunk.Len() == 0 {
			begin = s.line
			if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "--") {
				continue
			}
			if s.Dialect == lex.PostgreSQL && strings.HasPrefix(text, `\`) {
				if err := s.meta(text); err != nil {
					return err
				}
				continue
			}
			if word, d, ok := strings.Cut(strings.TrimSpace(text), " "); ok && s.Dialect == lex.MySQL && strings.EqualFold(word, "DELIMITER") {
				delimiter = strings.TrimSpace(d)
				continue
			}
		}
		if chunk.Len()+len(line) > maxChunk {
			return fmt.Errorf("%s:%d: a statement of more than %d bytes", s.name, begin, maxChunk)
		}
		chunk.WriteString(line)
		if !strings.HasSuffix(strings.TrimRight(text, " \t"), delimiter) || delimiter == ";" && !end.complete(chunk.String()) {
			continue
		}
		sql := strings.TrimSpace(chunk.String())
		sql = strings.TrimSuffix(sql, delimiter)
		chunk.Reset()
		end = &boundary{dialect: s.Dialect}
		if m := copyFrom.FindStringSubmatch(withoutComments(sql, s.Dialect)); m != nil && s.Dialect == lex.PostgreSQL {
			if err := s.copy(ctx, in, m[1], m[2], m[3]); err != nil {
				return err
			}
			continue
		}
		if err := s.execute(ctx, sql, begin); err != nil {
			return err
		}
	}
}

// meta takes a line of psql's own.
func (s *Snapshot) meta(text string) error {
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case `\restrict`, `\unrestrict`, `\connect`, `\c`, `\echo`, `\encoding`:
		return nil
	}
	return fmt.Errorf("%s:%d: psql's command %s: only dumps as pg_dump writes them can be restored (pg_dump --format=plain)", s.name, s.line, word)
}

func withoutComments(sql string, d lex.Dialect) string {
	var b strings.Builder
	for t := range lex.Tokens(sql, d) {
		if t.Kind == lex.Comment {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(t.Text)
	}
	return strings.TrimSpace(b.String())
}

var copyFrom = regexp.MustCompile(`(?is)^\s*COPY\s+(\S+|"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")?)\s*(\([^;]*?\))?\s+FROM\s+stdin\b\s*(.*)$`)

// copy makes INSERTs of the rows of COPY's text format (manual, COPY, "Text Format").
func (s *Snapshot) copy(ctx context.Context, in *bufio.Reader, table, columns, options string) error {
	if strings.Trim(options, " ;") != "" {
		return fmt.Errorf("%s:%d: COPY with options (%s): pg_dump writes none", s.name, s.line, prose.Line(options, prose.Width))
	}
	begin := s.line
	var b strings.Builder
	rows, values := 0, 0
	if columns != "" {
		values = 1
		for t := range lex.Tokens(columns, s.Dialect) {
			if t.Kind == lex.Other && t.Text == "," {
				values++
			}
		}
	}
	flush := func() error {
		if rows == 0 {
			return nil
		}
		sql := b.String()
		b.Reset()
		rows = 0
		return s.execute(ctx, sql, begin)
	}
	for {
		line, err := s.read(in)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: the rows of COPY %s do not end: the dump is cut off", s.name, begin, table)
		} else if err != nil {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == `\.` {
			return flush()
		}
		fields := strings.Split(line, "\t")
		values = cmp.Or(values, len(fields))
		if len(fields) != values {
			return fmt.Errorf("%s:%d: the row has %d values, COPY %s %d: the dump is damaged", s.name, s.line, len(fields), table, values)
		}
		if rows == 0 {
			fmt.Fprintf(&b, "INSERT INTO %s %s OVERRIDING SYSTEM VALUE VALUES ", table, columns)
		} else {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for i, field := range fields {
			if i > 0 {
				b.WriteByte(',')
			}
			if field == `\N` {
				b.WriteString("NULL")
			} else {
				b.WriteString(quotePostgres(unescapeCopy(field)))
			}
		}
		b.WriteByte(')')
		if rows++; rows >= copyBatch || b.Len() > copyBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

func unescapeCopy(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '0', '1', '2', '3', '4', '5', '6', '7', 'x': // a byte by its number (pg_dump writes none)
			n, v := copyByte(s[i:])
			b.WriteByte(v)
			i += n - 1
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'v':
			b.WriteByte('\v')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// copyByte reads up to three octal digits, or x and up to two hexadecimal ones, and says how many bytes these are.
func copyByte(s string) (n int, v byte) {
	digits, base, most := s, 8, 3
	if s[0] == 'x' {
		digits, base, most = s[1:], 16, 2
	}
	for k := most; k > 0; k-- {
		if k > len(digits) {
			continue
		}
		if u, err := strconv.ParseUint(digits[:k], base, 16); err == nil {
			return len(s) - len(digits) + k, byte(u)
		}
	}
	return 1, s[0] // \x without digits
}

var (
	databaseStatement = regexp.MustCompile(`(?is)^\s*(create|drop|alter)\s+(database|schema)\b|^\s*use\b`)
	globalSetting     = regexp.MustCompile(`(?is)^\s*set\s+@@global\b|^\s*set\s+global\b|@@session\.sql_log_bin`)
	missingRole       = regexp.MustCompile(`role "(.*)" does not exist`)
	settingStatement  = regexp.MustCompile(`(?is)^\s*set\b`)
)

// execute executes one statement of the dump.
func (s *Snapshot) execute(ctx context.Context, sql string, line int) error {
	plain := sql
	if s.Dialect == lex.MySQL {
		if !rowsFollow.MatchString(sql) {
			sql = definer.ReplaceAllString(sql, "") // accounts are not in the dump: who restores it is the definer
		}
		plain = withoutComments(sql, s.Dialect)
		hint := strings.TrimSpace(sql)
		if i := strings.Index(hint, "/*!"); i >= 0 && plain == "" { // executed by the server: /*!40000 DROP DATABASE IF EXISTS `shop`*/
			plain = strings.TrimLeft(hint[i+3:], "0123456789 ")
		}
		if databaseStatement.MatchString(plain) || databaseStatement.MatchString(strings.ReplaceAll(sql, "/*!32312 IF NOT EXISTS*/", "")) {
			s.Skipped["databases are not made or changed: the replay has its own"]++
			return nil
		}
		if globalSetting.MatchString(plain) {
			s.Skipped["settings of the server"]++
			return nil
		}
	} else if createDatabase.MatchString(plain) && strings.Contains(strings.ToLower(firstWords(plain, 2)), "database") {
		s.Skipped["databases are not made or changed: the replay has its own"]++
		return nil
	}
	if touchesFiles(sql, s.Dialect) {
		return fmt.Errorf("%s:%d: it reads or writes a file of the server, or runs a program there, which no dump of a database does: %s", s.name, line, prose.Line(sql, prose.Width))
	}
	s.note(plain)
	if s.Conn == nil {
		return nil
	}
	for range 10 {
		a, err := s.Conn.Do(ctx, sql)
		if err != nil {
			return fmt.Errorf("%s:%d: restore the snapshot: %w", s.name, line, err)
		}
		if a.Err == nil {
			return nil
		}
		if s.Dialect == lex.PostgreSQL {
			switch again, ok := s.forgive(ctx, plain, a.Err); {
			case again:
				continue
			case ok:
				return nil
			}
		}
		return fmt.Errorf("%s:%d: the server refuses a statement of the snapshot: %w: %s", s.name, line, a.Err, prose.Line(sql, prose.Width))
	}
	return fmt.Errorf("%s:%d: the statement names too many roles that do not exist: %s", s.name, line, prose.Line(sql, prose.Width))
}

var (
	definition = regexp.MustCompile(`(?is)^\s*(create|alter)\b`)
	ownership  = regexp.MustCompile(`(?is)\bowner\s+to\b|^\s*alter\s+default\s+privileges|\b(enable|disable)\s+keys\b|^\s*create\s+schema\s+"?public\b`)
	rowsFollow = regexp.MustCompile(`(?is)^\s*(insert|replace)\b`)
	definer    = regexp.MustCompile("(?i)\\bdefiner\\s*=\\s*(`[^`]*`|'[^']*'|[\\w%.]+)@(`[^`]*`|'[^']*'|[\\w%.]+)\\s*")
)

// note keeps what defines things.
func (s *Snapshot) note(plain string) {
	if definition.MatchString(plain) && !ownership.MatchString(plain) {
		s.Definitions.Add(plain)
	}
}

// forgive handles refusals that have nothing to do with the data. again: the statement is to be executed again; ok: it is left out.
func (s *Snapshot) forgive(ctx context.Context, sql string, e *answer.Error) (again, ok bool) {
	switch {
	case e.Code == "42704" && missingRole.MatchString(e.Message):
		role := missingRole.FindStringSubmatch(e.Message)[1]
		if s.Confined {
			s.Skipped["owners and rights of roles that this server has not"]++
			return false, true
		}
		return engine.Exec(ctx, s.Conn, `CREATE ROLE "`+strings.ReplaceAll(role, `"`, `""`)+`" LOGIN SUPERUSER`) == nil, false
	case e.Code == "42704" && settingStatement.MatchString(sql):
		s.Skipped["settings that this version has not"]++ // transaction_timeout of pg_dump 17
		return false, true
	case e.Code == "42P06" && strings.Contains(strings.ToLower(sql), "public"):
		return false, true // CREATE SCHEMA public
	case s.Confined && e.Code == "42501":
		s.Skipped["what this user may not do (owners, rights, extensions)"]++
		return false, true
	}
	return false, false
}

func firstWords(sql string, n int) string {
	w := strings.Fields(sql)
	return strings.Join(w[:min(n, len(w))], " ")
}
