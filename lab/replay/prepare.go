package replay

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/statement"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// duration is how long a statement took, as far as the trace tells.
func duration(st *trace.Statement) time.Duration {
	switch {
	case st.Took > 0:
		return time.Duration(st.Took)
	case st.Start != 0 && st.End > st.Start:
		return time.Duration(st.End - st.Start)
	}
	return 0
}

// letsGo reports whether a statement ended a transaction, or let go of locks in another way: an error rolls PostgreSQL's transaction back
// at once, and is how the victim of a deadlock ends.
func letsGo(st *trace.Statement) bool {
	if st.Error != nil || st.After == answer.Idle && st.Before != answer.Idle {
		return true
	}
	word := strings.ToLower(scenario.FirstWord(st.SQL))
	switch word {
	case "commit", "rollback", "end", "abort", "unlock":
		return true
	case "select", "show", "begin", "start", "set", "savepoint", "with":
		return strings.Contains(strings.ToLower(st.SQL), "unlock")
	}
	return st.Before == answer.Idle && st.After == answer.Idle
}

// preparer makes statements of a trace ready to be sent.
type preparer struct {
	config  *Config
	dialect lex.Dialect
	system  func(schema string) bool
	known   map[string]form // by text without literals
	shapes  map[string]string
}

const knownTexts = 10_000

// dialectOf is the dialect of the server.
func dialectOf(c *Config) lex.Dialect {
	if c.Backend.Protocol == engine.ProtocolMySQL {
		return lex.MySQL
	}
	return lex.PostgreSQL
}

func newPreparer(c *Config) *preparer {
	return &preparer{config: c, dialect: dialectOf(c), system: c.Backend.System, known: map[string]form{}, shapes: map[string]string{}}
}

// prepare fills in what is sent, or why nothing is.
func (p *preparer) prepare(s *Step) {
	st := s.Statement
	if st == nil {
		return
	}
	switch {
	case st.Lost:
		s.Skip = "the trace does not have its whole text"
	case st.NoParams:
		s.Skip = "the trace does not have its parameters"
	case st.Protocol == trace.ProtocolFetch:
		s.Skip = "it fetches more rows of a cursor of the wire protocol"
	case strings.TrimSpace(strings.Trim(st.SQL, "; \t\r\n")) == "":
		s.Skip = "it is empty"
	}
	if s.Skip != "" {
		if st.Error != nil && st.Before == answer.Open && st.After == answer.Failed {
			// What follows rests on the transaction having failed.
			s.standIn, s.Skip, s.SQL = s.Skip+"; it had failed, and a statement that fails stands in for it", "", "SELECT 1/0"
		}
		return
	}
	known, shared := p.describe(st.SQL)
	if s.form, s.Skip = known.verbs, known.refused; s.Skip != "" {
		return
	}
	if p.overridden(st.SQL, s.form) {
		s.Skip = overriddenWhy
		return
	}
	var err error
	if s.SQL, err = Inline(st, p.dialect); err != nil {
		s.Skip = err.Error()
		return
	}
	s.SQL = WithoutTags(s.SQL, p.dialect) // they are in Statement.Tags
	if p.config.Level != "" && slices.ContainsFunc(s.form, namesLevel) {
		s.SQL = levelClause.ReplaceAllString(s.SQL, "")
	}
	if text := s.SQL; shared || text != st.SQL {
		s.exact = sync.OnceValue(func() []statement.Statement {
			if list, err := p.config.Describe(text); err == nil {
				return list
			}
			return known.verbs
		})
	}
	if p.config.Made[s.SQL] {
		s.Skip = "--infer-schema has executed it before"
		return
	}
	if s.took > 0 {
		s.shape = known.shape
	}
	for _, v := range s.form {
		s.Volatile = cmp.Or(s.Volatile, v.Volatile)
		for _, t := range v.Tables {
			if t.Kind == statement.SourceTable {
				s.tables = append(s.tables, use{name: strings.ToLower(t.Name), write: t.Target || t.Lock != statement.LockNone})
			}
		}
	}
}

// overriddenWhy is why a statement is not sent that sets what Config sets.
const overriddenWhy = "it sets what --what-if sets"

// overridden reports whether a statement sets nothing but what the configuration sets.
func (p *preparer) overridden(sql string, verbs []statement.Statement) bool {
	if len(verbs) != 1 || strings.Count(sql, "=") > 1 {
		return false
	}
	if c := verbs[0].Control; p.config.Level != "" && c.Verb == statement.ControlLevel && c.Level != "" {
		return true
	}
	m := variable.FindStringSubmatch(sql)
	return m != nil && (p.config.Level != "" && anyLevel.MatchString(m[1]) || slices.ContainsFunc(p.config.Settings, func(name string) bool { return strings.EqualFold(name, m[1]) }))
}

// form is what statements do that differ in literals alone, their text without these, and why they are not replayed; empty: they are.
type form struct {
	verbs   []statement.Statement
	shape   string
	refused string
}

// describe gives what a text does. shared: it is that of a text that differs from it in literals.
func (p *preparer) describe(sql string) (f form, shared bool) {
	key := formOf(sql, p.dialect)
	if f, ok := p.known[key]; ok {
		return f, true
	}
	if list, err := p.config.Describe(sql); err == nil {
		f.verbs = list
	}
	f.shape, f.refused = p.shape(sql), p.refused(sql, f.verbs)
	if len(f.verbs) > 0 && !slices.ContainsFunc(f.verbs, literalsMatter) {
		if len(p.known) >= knownTexts {
			clear(p.known)
		}
		p.known[key] = f
	}
	return f, false
}

// literalsMatter reports whether another literal could make of a statement one that does something else: SET, a function that is not known.
func literalsMatter(v statement.Statement) bool {
	return !slices.Contains([]string{"select", "insert", "update", "delete"}, v.Verb) || v.Control.Verb != statement.ControlNone || v.Volatile != "" && v.Volatile != statement.UnorderedLimit
}

// formOf is a text without its literals, and without comments that the server ignores.
func formOf(sql string, d lex.Dialect) string {
	var b strings.Builder
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Kind == lex.Number, t.Kind == lex.String && !timeWord.MatchString(t.Text):
			b.WriteByte('?')
		case t.Kind == lex.Comment && len(t.Text) > 2 && !strings.ContainsAny(t.Text[2:3], "!+M"):
			b.WriteByte(' ')
		default:
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// timeWord is a literal that may be a reading of the clock (PostgreSQL manual, 8.5.1.4).
var timeWord = regexp.MustCompile(`(?i)\b(now|today|tomorrow|yesterday)\b`)

// shape is a statement's text without literals. One string serves all statements of a shape.
func (p *preparer) shape(sql string) string {
	text := shapeOf(sql, p.dialect)
	if known, ok := p.shapes[text]; ok {
		return known
	}
	if len(p.shapes) >= knownTexts {
		clear(p.shapes)
	}
	p.shapes[text] = text
	return text
}

// administration are statements about the server, not about the application's data. They are not replayed: accounts and databases are
// made for the replay, and the rest would change what the replay stands on.
var administration = regexp.MustCompile(`(?is)^\s*(` +
	`(create|drop|alter)\s+(or\s+replace\s+)?(database|schema\s+if|user|role|tablespace|server|system|subscription|publication|instance|group\s)` +
	`|(grant|revoke|flush|reset\s+(master|slave|replica)|purge|shutdown|restart|kill|checkpoint|backup|change\s+(master|replication)|install|uninstall|start\s+(slave|replica)|stop\s+(slave|replica)|binlog|clone)\b` +
	`|set\s+(global|persist|persist_only|@@global\b|password)` +
	`|set\s+session\s+authorization|set\s+(local\s+)?role\b` +
	`)`)

// serverFunctions act on the server or on other sessions by number.
var serverFunctions = regexp.MustCompile(`(?i)\b(pg_(create|drop)_(logical|physical)_replication_slot|pg_logical_slot_\w+|pg_replication_\w+|pg_terminate_backend|pg_cancel_backend|` +
	`pg_reload_conf|pg_rotate_logfile|pg_switch_wal|pg_start_backup|pg_stop_backup|pg_backup_start|pg_backup_stop|pg_promote|lo_import|lo_export|pg_read_file|pg_ls_dir)\s*\(`)

var (
	createDatabase = regexp.MustCompile(`(?is)^\s*(create|drop)\s+(database|schema)\b`)
	copyStatement  = regexp.MustCompile(`(?is)^\s*copy\b`)
	loadData       = regexp.MustCompile(`(?is)^\s*load\s+(data|xml)\b|\binto\s+(outfile|dumpfile)\b`)
)

// refused says why a statement is not replayed at all; empty: it is.
func (p *preparer) refused(sql string, verbs []statement.Statement) string {
	postgres := p.dialect == lex.PostgreSQL
	switch {
	case administration.MatchString(sql), serverFunctions.MatchString(sql), !postgres && createDatabase.MatchString(sql):
		return "it administers the server"
	case postgres && copyStatement.MatchString(sql):
		if toStdout.MatchString(sql) {
			return ""
		}
		return "the data of COPY is not in the trace"
	case loadData.MatchString(sql):
		return "it reads or writes a file"
	}
	for _, v := range verbs {
		for _, t := range v.Tables {
			if t.Schema == "" || t.Kind != statement.SourceTable {
				continue
			}
			if t.Target && p.system(strings.ToLower(t.Schema)) {
				return "it administers the server"
			}
			if p.config.Confined && !postgres && !strings.EqualFold(t.Schema, p.config.Target.Database) && !p.system(strings.ToLower(t.Schema)) {
				return "it names a database that is not the replay's own"
			}
		}
		if p.config.Confined && !postgres && v.Control.Verb == statement.ControlDatabase {
			return "it changes the database"
		}
	}
	if p.config.Confined && !postgres && len(verbs) == 0 {
		return "nobody here understands it, and it could name another database"
	}
	return ""
}

var toStdout = regexp.MustCompile(`(?is)\bto\s+stdout\b`)
