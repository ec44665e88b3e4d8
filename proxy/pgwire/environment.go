package pgwire

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement"
)

// environment is what a session's statements are planned with, and its warnings written: its settings and the catalog as far as they are known. The
// client half asks for them and notices what changes them; the server half hands over what the server reports by itself.
type environment struct {
	database *database
	hides    bool // the rewriter keeps hidden columns from the client

	mu       sync.Mutex // guards what follows
	settled  bool       // the settings are known
	nameFree bool       // no schema is named wirecheck
	facts    postgres.Session
	catalog  *rewrite.Catalog
	changes  uint64           // of the database, the last that may have concerned anything, when the settings were asked for
	idle     uint64           // changes of the database when the session was seen outside of a transaction
	inside   *rewrite.Catalog // as this session's open transaction sees it, where that was asked
	within   bool             // the settings are those of the open transaction
	schema   bool             // this session changed the schema, perhaps in a transaction that is still open
	touched  []string         // the only relations that it changed; none if it may have changed anything
	zones    uint64           // how often the server told TimeZone
	defined  int              // how many statements that change the schema were sent
	counted  bool             // others know of these changes, and they are committed
	unwanted bool             // client_min_messages leaves warnings out
}

// reported takes over a ParameterStatus.
func (v *environment) reported(name, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch name {
	case "client_encoding":
		v.facts.Encoding = value
	case "standard_conforming_strings":
		v.facts.Backslashes = value == "off"
	case "TimeZone":
		v.zones++
		v.facts.UTC = slices.Contains([]string{"UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal"}, value)
	}
}

// zone is a number of the session's time zone, which changes whenever that may; 0: it is not UTC.
func (v *environment) zone() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.facts.UTC {
		return 0
	}
	return v.zones
}

// sent takes note of what a statement does to the session, from the moment that it is under way.
func (v *environment) sent(p *rewrite.Plan, unparsed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if mentions(p.Text, "session_replication_role") || p.Schema && unchecked.MatchString(p.Text) {
		v.database.orphans.Store(true)
	}
	if p.Control.Verb == statement.ControlReset || unparsed ||
		p.Control.Verb == statement.ControlLevel && p.Control.Scope == statement.ScopeSession {
		v.settled = false
	}
	if !v.settled || changesSchema(p) || p.Control.Verb == statement.ControlRollbackTo {
		v.inside = nil
	}
	if unparsed || p.Control.Verb == statement.ControlReset && p.Verb != "set" {
		v.facts.Temp, v.facts.TempNames = true, nil
	}
	switch {
	case p.Temp:
		v.facts.Temp, v.facts.TempNames, v.settled = true, nil, false
	case changesSchema(p):
		if len(p.Changes) == 0 || v.schema && len(v.touched) == 0 {
			v.touched = nil
		} else {
			v.touched = append(v.touched, p.Changes...)
		}
		v.schema, v.counted = true, false
		v.defined++
		if v.facts.Temp && (len(p.Changes) == 0 || v.facts.TempNames == nil || slices.ContainsFunc(p.Changes, v.temporary)) {
			v.settled = false // it may be a temporary table that is dropped
		}
	}
	if p.Verb == "set" && (mentions(p.Text, "client_min_messages") || mentions(p.Text, "client_connection_check_interval")) || p.Verb == "select" && mentions(p.Text, "set_config") {
		v.settled = false
	}
}

// temporary reports whether a temporary table has a name. mu is held.
func (v *environment) temporary(name string) bool { return slices.Contains(v.facts.TempNames, name) }

// unchecked finds what keeps the server from looking at foreign keys (manual, 20.11.1, ALTER TABLE).
var unchecked = regexp.MustCompile(`(?i)\bDISABLE\s+TRIGGER\b`)

// changesSchema reports whether a statement changes the schema for all sessions. RESET ALL and the like change what this
// session sees of it, which is learned with the settings, and a temporary table is this session's.
func changesSchema(p *rewrite.Plan) bool {
	return p.Schema && p.Control.Verb != statement.ControlReset && !p.Temp
}

// mentions reports whether a word, which has an underscore, is in the text, in any case.
func mentions(text, word string) bool {
	at := strings.IndexByte(word, '_')
	for from := 0; ; {
		i := strings.IndexByte(text[from:], '_')
		if i < 0 {
			return false
		}
		from += i + 1
		if start := from - 1 - at; start >= 0 && start+len(word) <= len(text) && strings.EqualFold(text[start:start+len(word)], word) {
			return true
		}
	}
}

// known gives what statements are planned with. A catalog that may not be the server's is none. plain asks for none.
func (v *environment) known(plain bool) (*rewrite.Catalog, postgres.Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.facts.Orphans = v.database.orphans.Load()
	switch {
	case plain:
		return nil, v.facts
	case v.inside != nil && v.hides:
		return v.inside, v.facts
	case !v.settled || v.schema:
		return nil, v.facts
	case v.database.changes.Last() != v.changes && !v.hides:
		// Others changed something. With hidden columns what was known before is the better guess: without it the columns
		// would show until the transaction ends.
		return nil, v.facts
	}
	return v.catalog, v.facts
}

// outside says that the session is outside of a transaction and the server has nothing to do: what this session did to the
// schema is there. It reports whether the settings are known, and whether what they depend on is as it was and a catalog has its horizon.
func (v *environment) outside() (settled, current bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count()
	v.settled = v.settled && !v.within
	v.schema, v.touched, v.inside, v.within = false, nil, nil, false
	v.idle = v.database.changes.Now()
	_, judged := v.database.horizon.XID()
	return v.settled, v.settled && v.database.changes.Last() == v.changes && (judged || v.catalog == nil)
}

// since gives the number of changes that the open transaction, or one that begins now, sees for sure.
func (v *environment) since() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.idle
}

// warnings says whether it is known which warnings the client wants, whether it wants ours, and whether they must be in ASCII.
func (v *environment) warnings() (known, wanted, ascii bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.settled, !v.unwanted, !strings.EqualFold(v.facts.Encoding, "UTF8")
}

// definitions is how many statements that change the schema were sent.
func (v *environment) definitions() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.defined
}

// committed says that no transaction is open: others see what this session did to the schema. answered is how many of the definitions the server
// has surely answered; -1: not known.
func (v *environment) committed(answered int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count()
	v.counted = v.defined == answered
}

// count lets others know of the changes of this session, which may be committed. Once is enough, behind the commit: later it would make them forget
// what they read since. mu is held.
func (v *environment) count() {
	if v.schema && !v.counted {
		v.database.changes.Add(v.touched...)
	}
}

// learned takes over a catalog, which may be none, that was read outside of a transaction when the last change of the database that may have concerned
// anything was that one; asks is what database.asking gave.
func (v *environment) learned(c *rewrite.Catalog, changes uint64, asks bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.facts.Asks = asks
	v.catalog, v.changes, v.settled = c, changes, true
}

// learnedInside takes over a catalog that was read in the open transaction.
func (v *environment) learnedInside(c *rewrite.Catalog) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.inside, v.within = c, true
}

// own reports whether a catalog is that of the open transaction.
func (v *environment) own(c *rewrite.Catalog) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inside == c
}

// settings takes over the answer to settingsQuery, and gives who reads the catalog, the level of the next transactions and what the server counts of
// definitions; or it says why it cannot.
func (v *environment) settings(q *own) (reader readerKey, level, count, why string) {
	if q.err != nil {
		return reader, "", "", q.err.Message
	}
	if len(q.rows) != 1 || len(q.rows[0]) < settingsCells {
		return reader, "", "", "the answer to the question for settings is not one row"
	}
	row := q.rows[0]
	var path []string
	if err := json.Unmarshal(row[2], &path); err != nil {
		return reader, "", "", "the search path cannot be read"
	}
	temp := []string{}
	if string(row[5]) != "0" && (len(row) == settingsCells || json.Unmarshal(row[settingsCells], &temp) != nil) {
		return reader, "", "", "the names of temporary tables cannot be read"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unwanted = muted(string(row[0]))
	v.facts.SearchPath, v.facts.Temp, v.facts.TempNames = path, false, temp
	for _, schema := range path {
		if strings.HasPrefix(schema, "pg_temp_") {
			v.facts.Temp = true
		}
	}
	v.settled, v.nameFree = true, len(row[6]) == 0
	horizon, err := strconv.ParseUint(string(row[10]), 10, 64)
	if err != nil {
		return reader, "", "", "the oldest running transaction cannot be read"
	}
	v.database.horizon.Learn(horizon)
	if string(row[9]) == "replica" {
		v.database.orphans.Store(true)
	}
	return readerKey{user: string(row[3]), rowSecurity: string(row[4])}, running(string(row[1])), string(row[7]), ""
}

// muted reports whether a value of client_min_messages leaves warnings out (manual, 20.11.1).
func muted(min string) bool {
	switch strings.ToLower(min) {
	case "error", "fatal", "panic":
		return true
	}
	return false
}

// running gives the level that runs: READ UNCOMMITTED is READ COMMITTED (manual, 13.2).
func running(level string) string {
	if level == "read uncommitted" {
		return "read committed"
	}
	return level
}
