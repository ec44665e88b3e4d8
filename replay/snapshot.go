package replay

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/trace"
)

// Snapshot restores a dump in plain SQL: pg_dump's (COPY becomes INSERT), mysqldump's and mariadb-dump's.
type Snapshot struct {
	Conn    engine.Conn
	Dialect trace.Dialect
	// Confined leaves databases and accounts alone: it is somebody else's server.
	Confined bool
	// Skipped says what was left out, and how often.
	Skipped map[string]int
	// Definitions are the dump's statements that make tables and what belongs to them, without rows, owners and rights.
	Definitions Definitions

	name string
	line int // that was read last
}

const (
	copyBatch = 500      // rows in one INSERT
	copyBytes = 4 << 20  // of it
	maxChunk  = 1 << 30  // one statement of a dump
	lineRoom  = 64 << 10 // first
)

// Restore reads the dump and executes it.
func (s *Snapshot) Restore(ctx context.Context, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReaderSize(f, lineRoom)
	if head, _ := in.Peek(5); string(head) == "PGDMP" {
		return fmt.Errorf("%s: this is pg_dump's custom format: make plain SQL of it: pg_restore -f %s.sql %s", path, path, path)
	} else if len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("open snapshot %s: %w", path, err)
		}
		in = bufio.NewReaderSize(z, lineRoom)
	}
	s.name, s.line = path, 0
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	return s.restore(ctx, in)
}

func (s *Snapshot) read(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if line != "" {
		s.line++
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read snapshot %s: %w", s.name, err)
	}
	return line, err
}

func (s *Snapshot) restore(ctx context.Context, in *bufio.Reader) error {
	var chunk strings.Builder
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
			if s.Dialect == trace.PostgreSQL && strings.HasPrefix(text, `\`) {
				if err := s.meta(text); err != nil {
					return err
				}
				continue
			}
			if word, d, ok := strings.Cut(strings.TrimSpace(text), " "); ok && s.Dialect == trace.MySQL && strings.EqualFold(word, "DELIMITER") {
				delimiter = strings.TrimSpace(d)
				continue
			}
		}
		if chunk.Len()+len(line) > maxChunk {
			return fmt.Errorf("%s:%d: a statement of more than %d bytes", s.name, begin, maxChunk)
		}
		chunk.WriteString(line)
		end := strings.TrimRight(text, " \t")
		if !strings.HasSuffix(end, delimiter) || delimiter == ";" && !complete(chunk.String(), s.Dialect) {
			continue
		}
		sql := strings.TrimSpace(chunk.String())
		sql = strings.TrimSuffix(sql, delimiter)
		chunk.Reset()
		if m := copyFrom.FindStringSubmatch(withoutComments(sql, s.Dialect)); m != nil && s.Dialect == trace.PostgreSQL {
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

// complete reports whether the text's last token is a semicolon that ends a statement.
func complete(sql string, d trace.Dialect) bool {
	last := ""
	atomic, depth := false, 0
	before := ""
	for t := range trace.Tokens(sql, d) {
		if t.Kind == trace.TokenSpace || t.Kind == trace.TokenComment {
			continue
		}
		last = ""
		if t.Kind == trace.TokenOther {
			last = t.Text
		}
		if t.Kind != trace.TokenWord {
			continue
		}
		// The body of a routine in standard SQL: BEGIN ATOMIC ... END (PostgreSQL manual, CREATE FUNCTION, sql_body).
		switch word := strings.ToLower(t.Text); {
		case word == "atomic" && before == "begin":
			atomic, depth = true, 1
		case atomic && word == "case":
			depth++
		case atomic && word == "end":
			depth--
		}
		before = strings.ToLower(t.Text)
	}
	return last == ";" && depth <= 0
}

func withoutComments(sql string, d trace.Dialect) string {
	var b strings.Builder
	for t := range trace.Tokens(sql, d) {
		if t.Kind == trace.TokenComment {
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
		return fmt.Errorf("%s:%d: COPY with options (%s): pg_dump writes none", s.name, s.line, brief(options))
	}
	begin := s.line
	var b strings.Builder
	rows := 0
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
		if rows == 0 {
			fmt.Fprintf(&b, "INSERT INTO %s %s OVERRIDING SYSTEM VALUE VALUES ", table, columns)
		} else {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for i, field := range strings.Split(line, "\t") {
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

var (
	databaseStatement = regexp.MustCompile(`(?is)^\s*(create|drop|alter)\s+(database|schema)\b|^\s*use\b`)
	globalSetting     = regexp.MustCompile(`(?is)^\s*set\s+@@global\b|^\s*set\s+global\b|@@session\.sql_log_bin`)
	missingRole       = regexp.MustCompile(`role "(.*)" does not exist`)
	settingStatement  = regexp.MustCompile(`(?is)^\s*set\b`)
)

// execute executes one statement of the dump.
func (s *Snapshot) execute(ctx context.Context, sql string, line int) error {
	plain := sql
	if s.Dialect == trace.MySQL {
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
	s.note(plain)
	for range 10 {
		a, err := s.Conn.Do(ctx, sql)
		if err != nil {
			return fmt.Errorf("%s:%d: restore the snapshot: %w", s.name, line, err)
		}
		if a.Err == nil {
			return nil
		}
		if s.Dialect == trace.PostgreSQL {
			switch again, ok := s.forgive(ctx, plain, a.Err); {
			case again:
				continue
			case ok:
				return nil
			}
		}
		return fmt.Errorf("%s:%d: the server refuses a statement of the snapshot: %v: %s", s.name, line, a.Err, brief(sql))
	}
	return fmt.Errorf("%s:%d: the statement names too many roles that do not exist: %s", s.name, line, brief(sql))
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
func (s *Snapshot) forgive(ctx context.Context, sql string, e *engine.ServerError) (again, ok bool) {
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
