package mysqlwire

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// request is one command that executes statements.
type request struct {
	plans    []*rewrite.Plan
	send     func() error // puts the command into the output to the server
	binary   bool
	prepared *prepared
	// mark makes send put out the text that has the stamp in itself. nil: the text takes it from the server's variable.
	mark func(stamp string)
	// again sends the client's own text after the server said that ours does not fit the tables any more, or would not let
	// us mark it. nil: ours is the client's own, or it is too long to be kept.
	again func(why string) error
	apart bool // what is sent only prepares the statement (apart.go)
}

// query relays COM_QUERY.
func (s *session) query(f frame) error {
	if f.n > min(s.ps.Config.Limits.Text, packetMax) {
		return s.longQuery(f)
	}
	b, err := s.client.packet(f)
	if err != nil {
		return s.badClient(err, "command")
	}
	return s.text(string(b[1:]))
}

// text executes the text of a COM_QUERY.
func (s *session) text(sql string) error {
	script := s.analyse(sql)
	news, err := s.refresh(script)
	if err != nil {
		return err
	}
	if news {
		script = s.analyse(sql)
	}
	if err := s.restoreFoundRows(script); err != nil {
		return err
	}
	r := request{plans: script.Plans, send: s.sendQuery(script.SQL)}
	switch p := script.Plans[0]; {
	case p.ParsedApart > 0:
		r = s.apart(r, script.SQL)
	case len(s.front) > 0 && showWarnings.MatchString(sql): // without its LIMIT, which is ours to apply
		r.send = s.sendQuery("SHOW WARNINGS")
	case p.Marked != nil && len(script.Plans) == 1 && (s.hasLog || !p.Log):
		text := script.SQL
		r.send = func() error { return s.sendQuery(text)() }
		r.mark = func(stamp string) { text = p.WithStamp(sql, dialect.CleanStamp(stamp)) }
	}
	if script.Changed(sql) {
		r.again = func(why string) error {
			return s.perform(request{plans: forwarded(script.Plans, why), send: s.sendQuery(sql)})
		}
	}
	return s.perform(r)
}

func (s *session) sendQuery(sql string) func() error {
	return func() error { return s.server.put(0, []byte{mysql.COM_QUERY}, []byte(sql)) }
}

// analyse asks the dialect what to do with a text. What cannot be carried out in one request is forwarded as it is.
func (s *session) analyse(sql string) *rewrite.Script {
	catalog := s.catalog
	if s.blind {
		catalog = nil
	}
	script := s.rewriter.Script(sql, catalog, s.current())
	if len(script.Plans) == 0 { // an empty text; the server has an error for it
		return &rewrite.Script{SQL: sql, Plans: []*rewrite.Plan{{Text: sql, Verb: "other"}}}
	}
	why := scattered(script)
	if script.Plans[0].Diagnostics && script.Plans[0].Stamp {
		why = inquisitive
	}
	if why != "" {
		return &rewrite.Script{SQL: sql, Plans: forwarded(script.Plans, why)}
	}
	return script
}

// inquisitive is why a statement is forwarded in front of which ours would change what it asks for: UPDATE t SET n = ROW_COUNT().
const inquisitive = "it asks for what the statement before it left behind"

// scattered says why a script of several statements cannot be rewritten: a stamp goes in front of a whole request, and
// behind a statement with any number of results nobody knows whose the next one is.
func scattered(script *rewrite.Script) string {
	if len(script.Plans) < 2 {
		return ""
	}
	for i, p := range script.Plans {
		if p.Stamp || p.Log {
			return "one of several statements in one request"
		}
		if manyResults(p) && i < len(script.Plans)-1 {
			return "behind a statement with any number of results"
		}
	}
	return ""
}

var manyResultsText = regexp.MustCompile(`(?is)^[\s(]*(?:(?:/\*.*?\*/|#[^\n]*\n|-- [^\n]*\n)\s*)*(?:CALL|EXECUTE|BEGIN\s+NOT|IF|CASE|LOOP|WHILE|REPEAT|FOR)\b`)

// manyResults reports whether the server may answer the statement with several results, of which an OK is the last.
func manyResults(p *rewrite.Plan) bool {
	return p.Verb == "other" && manyResultsText.MatchString(p.Text)
}

// forwarded gives the plans for statements that are sent as the client wrote them after all.
func forwarded(plans []*rewrite.Plan, why string) []*rewrite.Plan {
	out := make([]*rewrite.Plan, len(plans))
	for i, p := range plans {
		q := *p
		q.Edits, q.Marked, q.Hidden, q.NoRows, q.Decode, q.Stamp, q.Log, q.ParsedApart = nil, nil, 0, false, nil, false, false, 0
		if q.Coverage != history.CoverageNone && (p.Hidden > 0 || p.Stamp || p.Log) {
			q.Coverage, q.Why = history.CoverageOpaque, why
		}
		out[i] = &q
	}
	return out
}

// longQuery streams a text that is too long to be looked at as a whole.
func (s *session) longQuery(f frame) error {
	b, err := s.client.prefix(f, 256)
	if err != nil {
		return err
	}
	plan := &rewrite.Plan{
		Text: strings.ToValidUTF8(string(b[1:]), "") + " ...", Verb: "other", Coverage: history.CoverageOpaque, Why: "the text is too long",
		Schema: true, Control: rewrite.Control{Verb: rewrite.ControlReset},
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(b[1:])), " ")
	switch word = strings.ToLower(word); word {
	case "select", "insert", "update", "delete", "replace":
		plan.Verb, plan.Schema, plan.Control = word, false, rewrite.Control{}
	}
	return s.perform(request{plans: []*rewrite.Plan{plan}, send: func() error {
		_, err := s.client.relay(s.server, 0)
		return err
	}})
}

// perform sends a request with what must go in front of it, all in one write, and relays the answer.
func (s *session) perform(r request) error {
	fetch := s.fetchesLog(r.plans)
	a := &answer{binary: r.binary, prepared: r.prepared}
	for _, p := range r.plans {
		p = s.withWarnings(s.named(p))
		a.statements = append(a.statements, &statement{plan: p, ticket: s.tracker.Sending(p)})
		s.clearWarnings(p)
	}
	first := a.statements[0]
	stamp := ""
	if first.plan.Stamp {
		stamp = s.tracker.Stamp(first.ticket)
	}
	name := stamp
	if stamp != "" && r.mark != nil {
		r.mark(stamp)
		stamp = "" // the server need not hold it
	}
	var refused *errPacket
	own := func() (err error) { // the answer to our own statement
		switch {
		case fetch:
			refused, err = s.logArrives(stamp)
		case stamp != "":
			_, refused, err = s.ownAnswer()
			s.stamps(stamp, refused)
		}
		return err
	}
	var err error
	switch {
	case fetch:
		err = s.sendFetch(stamp)
	case stamp != "":
		err = s.ownQuery(dialect.SetToken(stamp))
	}
	if err != nil {
		return err
	}
	if stamp != "" && s.mayMislead(stamp) {
		if err := own(); err != nil {
			return err
		}
		for tries := 1; refused != nil && tries < stampTries; tries++ {
			if _, refused, err = s.ownRows(dialect.SetToken(stamp)); err != nil {
				return err
			}
			s.stamps(stamp, refused)
		}
		if refused != nil {
			for _, st := range a.statements {
				s.tracker.Drop(st.ticket)
			}
			if r.again == nil { // too long to be kept
				return s.fail(s.seq, errorLost("the statement could not be marked: "+refused.message), errors.New("a statement could not be marked"))
			}
			return r.again("its stamp could not be set: " + refused.message)
		}
		fetch, stamp = false, ""
	}
	if err := r.send(); err != nil {
		return err
	}
	if err := own(); err != nil {
		return err
	}
	if r.apart {
		why, ok, err := s.execApart(a)
		if err != nil {
			return err
		}
		if !ok {
			for _, st := range a.statements {
				s.tracker.Drop(st.ticket)
			}
			return r.again(why)
		}
	}
	first.running = s.tracker.Answer(first.ticket)
	if refused != nil && stamp != "" {
		first.running.Opaque("its stamp could not be set: " + refused.message)
	}
	if r.again != nil && !s.onTiDB() { // there the client's own text would have our columns before it
		a.hold = func(e errPacket) bool { return s.seq == 1 && dialect.Stale(e.code, e.message) }
	}
	if err := s.relayAnswer(a); err != nil {
		return err
	}
	if a.failed && s.onTiDB() && dialect.Stale(a.err.code, a.err.message) {
		s.observer.changed()
	}
	if a.held {
		s.observer.changed()
		return r.again("the tables were changed")
	}
	if first.plan.Log && s.onTiDB() {
		s.attempted(name, first.plan, a)
	}
	if first.plan.Log {
		s.logged += max(a.affected, 1) // rows that an UPDATE matched without changing them are logged too
		if first.plan.Verb == "select" {
			s.logged = fetchEvery // nothing tells how many rows it logged
		}
	}
	return nil
}

// stampTries is how often a stamp is tried to be set before a statement goes without.
const stampTries = 3

// mayMislead reports whether a wrong name would stand in the rows if stamp could not be set (KILL QUERY and
// max_statement_time can hit our statement): then the client's statement waits until it is set. The stamp of another
// statement of the same transaction does no harm, if they stand or fall together.
func (s *session) mayMislead(stamp string) bool {
	return s.stamped != "" && (s.stamped != dialect.StampToken(stamp) || s.stampedApart)
}

// stamps notes which transaction's stamp the server may hold after it was to be set.
func (s *session) stamps(stamp string, refused *errPacket) {
	if refused != nil && s.stamped != "" {
		return // the old one or the new one
	}
	s.stamped, s.stampedApart = dialect.StampToken(stamp), false
	s.hasLog = s.hasLog || refused == nil
}

// fetchEvery is the number of logged rows after which the log is fetched within a transaction, so that it does not
// reach its limit.
const fetchEvery = 100

// fetchesLog reports whether the log is to be fetched in front of the statements: nobody asks what the last one left
// behind, and a transaction is over or is about to be.
func (s *session) fetchesLog(plans []*rewrite.Plan) bool {
	if !s.tracker.PendingLog() {
		return false
	}
	ends := !s.tracker.InTransaction() || s.logged >= fetchEvery
	for _, p := range plans {
		if p.Diagnostics {
			return false
		}
		switch p.Control.Verb {
		case rewrite.ControlCommit, rewrite.ControlRollback, rewrite.ControlAutocommit:
			ends = true
		}
		ends = ends || p.Control.Ends
	}
	return ends
}

// fetchQuery fetches the log, and sets the stamp of the statement behind it, or takes the old one away: one statement of
// ours instead of two.
func fetchQuery(stamp string) string {
	sql := dialect.FetchLog() + ",FOUND_ROWS()"
	if stamp == "" {
		return sql + ",@wc_t:=NULL"
	}
	return sql + ",@wc_t:='" + stamp + "'" // letters, digits and dots (record.NewRecorder)
}

// sendFetch puts into the output what fetches the log and sets the stamp.
func (s *session) sendFetch(stamp string) error {
	if s.rewriter.Flavor() == dialect.MySQL {
		return s.fetchQuietly(stamp)
	}
	return s.ownQuery(fetchQuery(stamp))
}

// fetchLog fetches the log now, if there is one: the session is about to lose it.
func (s *session) fetchLog() error {
	if !s.tracker.PendingLog() {
		return nil
	}
	if err := s.sendFetch(""); err != nil {
		return err
	}
	_, err := s.logArrives("")
	return err
}

// logArrives reads the answer to fetchQuery.
func (s *session) logArrives(stamp string) (refused *errPacket, err error) {
	rows, refused, lost, err := s.logAnswer(stamp)
	if err != nil {
		return nil, err
	}
	s.stamps(stamp, refused)
	s.logged = 0
	if lost || len(rows) != 1 || len(rows[0]) < 3 {
		s.late(s.tracker.Logged(nil, true))
		return refused, nil
	}
	s.foundNow = 1 // the row of this answer
	if s.found == nil {
		s.keepFoundRows(string(rows[0][2]))
	}
	if rows[0][0] == nil { // somebody else set the variable
		s.late(s.tracker.Logged(nil, true))
		return nil, nil
	}
	entries, truncated, err := dialect.DecodeLog(rows[0][0])
	if err != nil {
		s.ps.Log.Warn().Err(err).Msg("the log of a session is not understood")
		entries, truncated = nil, true
	}
	s.lasting(entries)
	s.late(s.tracker.Logged(entries, truncated))
	return nil, nil
}

// late keeps warnings that became due between two statements for the next one's answer.
func (s *session) late(due []record.Warning) { s.due = append(s.due, due...) }

// createTable finds the name of the table in a CREATE TABLE: the schema, if it is named, and the table.
var createTable = regexp.MustCompile("(?is)^\\s*(?:/\\*.*?\\*/\\s*)*CREATE\\s+(?:OR\\s+REPLACE\\s+)?TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?" +
	"(?:(`(?:[^`]|``)+`|[^\\s`.(]+)\\s*\\.\\s*)?(`(?:[^`]|``)+`|[^\\s`.(;]+)")

// created are the tables that the statements create. A schema that is not named is the session's, which is empty here.
func (a *answer) created() (names []rewrite.RelationName) {
	for _, st := range a.statements {
		if !st.plan.Schema {
			continue
		}
		if m := createTable.FindStringSubmatch(st.plan.Text); m != nil {
			names = append(names, rewrite.RelationName{Schema: bareName(m[1]), Name: bareName(m[2])})
		}
	}
	return names
}

// bareName takes the quotes from a name.
func bareName(name string) string {
	if len(name) > 1 && name[0] == '`' {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// afterDDL gives tables that the client just created the hidden columns, before the client hears of it. The server's
// warnings, which our statements clear, are kept.
func (s *session) afterDDL(created []rewrite.RelationName) error {
	if s.observer.Instrument == InstrumentOff || s.blind && !s.asked || s.inTransaction() || s.once != "" {
		return nil
	}
	if err := s.saveFoundRows(); err != nil {
		return err
	}
	if s.serverWarnings > 0 {
		rows, refused, err := s.ownRows("SHOW WARNINGS")
		if err != nil {
			return err
		}
		if refused == nil {
			s.keepWarnings(rows)
		}
	}
	if s.blind {
		if err := s.ask(); err != nil || s.blind {
			return err
		}
	}
	before := s.catalog
	if err := s.readCatalog(); err != nil {
		return err
	}
	added := false
	for _, rel := range newTables(before, s.catalog, s.observer.Instrument) {
		if !slices.ContainsFunc(created, func(name rewrite.RelationName) bool { return s.means(name, rel.RelationName) }) {
			continue // somebody else's: it may be in another database, and in use
		}
		for _, sql := range dialect.AddColumns(s.facts.Flavor, rel) {
			_, refused, err := s.ownRows(sql)
			if err != nil {
				return err
			}
			if refused != nil {
				s.ps.Log.Warn().Stringer("table", rel.RelationName).Str("error", refused.message).Msg("table is not instrumented")
				continue
			}
			added = true
		}
	}
	if added {
		s.observer.changed()
		if err := s.readCatalog(); err != nil {
			return err
		}
	}
	if s.status&statusAutocommit == 0 { // reading the catalog may have opened a transaction
		_, _, err := s.ownRows("COMMIT")
		return err
	}
	return nil
}

// means reports whether the client's name, as it wrote it, is that of a table. Case is not looked at: where it matters to the
// server, at worst a table that the client has also just created is meant.
func (s *session) means(name, table rewrite.RelationName) bool {
	if name.Schema == "" {
		name.Schema = s.env.Database
	}
	return strings.EqualFold(name.Schema, table.Schema) && strings.EqualFold(name.Name, table.Name)
}

// newTables are the tables to be instrumented that were not there before, or were and had the columns.
func newTables(before, now *rewrite.Catalog, how Instrument) []*rewrite.Relation {
	if before == nil || now == nil {
		return nil
	}
	follow := make(map[string]bool)
	for _, c := range []*rewrite.Catalog{before, now} { // before may be old
		for _, rel := range c.Relations {
			follow[rel.Schema] = follow[rel.Schema] || rel.Instrumented
		}
	}
	var add []*rewrite.Relation
	for name, rel := range now.Relations {
		old := before.Relations[name]
		if _, ok := dialect.Instrumentable(rel); !ok || rel.Instrumented || old != nil && !old.Instrumented {
			continue
		}
		if how == InstrumentAuto || follow[rel.Schema] {
			add = append(add, rel)
		}
	}
	return add
}

// keepWarnings keeps the server's own rows of SHOW WARNINGS, which it is about to forget.
func (s *session) keepWarnings(rows [][]string) {
	for _, r := range rows {
		if len(r) == 3 {
			s.listed = append(s.listed, listed{r[0], uint16(atoi(r[1])), r[2]})
		}
	}
	s.serverWarnings = 0
}

// setsFoundRows are the statements after which FOUND_ROWS() says something new, as tried on MariaDB 10.11.
var setsFoundRows = regexp.MustCompile(`(?is)^[\s(]*(?:(?:/\*.*?\*/|#[^\n]*\n|-- [^\n]*\n)\s*)*(?:SELECT|WITH|TABLE|DESC|DESCRIBE|EXPLAIN|CALL|EXECUTE` +
	`|(?:INSERT|REPLACE|CREATE\s(?:.*\s)?TABLE)\b.*\bSELECT|(?:UPDATE|DELETE)\b.*\b(?:JOIN|SELECT|USING)` +
	`|SHOW\s+(?:FULL\s+|SESSION\s+|GLOBAL\s+|OPEN\s+|EXTENDED\s+)*(?:COUNT|TABLES?|COLUMNS|FIELDS|VARIABLES|STATUS|DATABASES|SCHEMAS|ENGINES|INDEX|INDEXES|KEYS|PLUGINS|COLLATION|CHARACTER|CHARSET|TRIGGERS|EVENTS|PROCEDURE|FUNCTION|PACKAGE))\b`)

// noteFoundRows notes that the client's own statement has set FOUND_ROWS() anew.
func (s *session) noteFoundRows(p *rewrite.Plan) {
	if s.found != nil && s.setsFound(p) {
		s.found = nil
	}
}
