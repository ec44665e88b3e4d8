package pgwire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// settingsQuery asks for what decides how statements are understood, which transactions they run in and which notices
// the client wants. It has no tables but those that all may read, so it fails for nobody; names are qualified since the
// search path may have others. current_schemas makes the schema of temporary tables if the path begins with it, which a
// later PREPARE TRANSACTION would notice: then the path stays unknown.
//
// A new session knows nothing of the server's catalogs, so each table, function and type that is named here costs its process time: subqueries doubled it.
var settingsQuery = `SELECT pg_catalog.current_setting('client_min_messages'), pg_catalog.current_setting('default_transaction_isolation'), ` +
	`CASE WHEN pg_catalog.pg_my_temp_schema() = 0 AND pg_catalog.lower(pg_catalog.current_setting('search_path')) LIKE '%pg_temp%' THEN 'null' ` +
	`ELSE pg_catalog.to_json(pg_catalog.current_schemas(true))::pg_catalog.text END, current_user::pg_catalog.text, pg_catalog.current_setting('row_security'), ` +
	`pg_catalog.pg_my_temp_schema(), pg_catalog.to_regnamespace('wirecheck'), pg_catalog.concat_ws(' '` + definitions() + `), ` +
	`pg_catalog.current_setting('client_connection_check_interval', true), pg_catalog.current_setting('session_replication_role'), ` +
	`pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.text`

// definitions are what definitions write, of all clients: rows of pg_type, pg_attribute, pg_proc, pg_class, pg_constraint, pg_index, pg_inherits, pg_operator, pg_rewrite, pg_trigger
// and pg_policy. The server counts it a second after the transaction, or ten if the session then does nothing (manual, 28.2.2).
func definitions() (calls string) {
	for _, table := range []int{1247, 1249, 1255, 1259, 2606, 2610, 2611, 2617, 2618, 2620, 3256} {
		for _, how := range []string{"inserted", "updated", "deleted"} {
			calls += fmt.Sprintf(", pg_catalog.pg_stat_get_tuples_%s(%d)", how, table)
		}
	}
	return calls
}

// tempQuery asks for the session's temporary tables.
const tempQuery = `SELECT coalesce(pg_catalog.json_agg(relname), '[]')::pg_catalog.text FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()`

// askSettings asks for the settings, and for the temporary tables if there may be any: their names are one more cell.
func askSettings(ask func(sql ...string) (*own, error)) (q *own, err error) {
	q, err = ask(settingsQuery)
	if err != nil || q.err != nil || len(q.rows) != 1 || len(q.rows[0]) != settingsCells || string(q.rows[0][5]) == "0" {
		return q, err
	}
	temp, err := ask(uncompiled, tempQuery)
	if err != nil {
		return q, err
	}
	if q.err = temp.err; q.err == nil && len(temp.rows) == 1 && len(temp.rows[0]) == 1 {
		q.rows[0] = append(q.rows[0], temp.rows[0][0])
	}
	return q, nil
}

// settingsCells are how many cells the answer to settingsQuery has.
const settingsCells = 11

// maxOwn bounds the answer to a question of ours.
const maxOwn = 256 << 20

// refresh learns again what may have changed, if the session is idle: in the transaction that may begin now it could not
// ask, and its statements would be planned without a catalog. A text that only defines things or sets something needs nothing of it, so that one
// definition behind the other asks once.
func (c *clientHalf) refresh(sql string) error {
	if c.plain || !c.pipeline.idle('I') {
		return nil
	}
	if _, current := c.environment.outside(); current && !c.environment.database.old() {
		return nil
	}
	if sql != "" && !c.environment.hides && onlyDefines(c, sql) {
		return nil
	}
	return c.learn(c.question)
}

// onlyDefines reports whether a text names no table to read or write, so that its plan is the same whatever the catalog has, and may change anything:
// a definition that changes certain tables alone is planned with the catalog, so that other sessions need not ask again.
func onlyDefines(c *clientHalf, sql string) bool {
	_, facts := c.environment.known(true)
	s := c.planned(sql, func(r *postgres.Rewriter) *rewrite.Script { return r.Script(sql, empty, facts) })
	return len(s.Plans) > 0 && !slices.ContainsFunc(s.Plans, func(p *rewrite.Plan) bool { return p.Verb != "set" && (p.Verb != "ddl" || len(p.Changes) > 0) })
}

// empty is the catalog of no database.
var empty = rewrite.NewCatalog(rewrite.Server{}, nil)

// firm reports whether a text must be planned so that the server cannot refuse what is added to it: a named statement may be bound within a
// transaction block, where nothing can be sent again (see again).
func firm(c *clientHalf, name string) bool { return name != "" || !c.pipeline.idle('I') }

// complete plans a text. Where the plan needs what is not known, and the server can be asked, it is, and the text planned
// again. It gives the catalog too, which is nil if there is none to plan with. hold says that the text is executed at once.
func (c *clientHalf) complete(firm, hold bool, plan func(*rewrite.Catalog, postgres.Session) *rewrite.Script) (s *rewrite.Script, catalog *rewrite.Catalog, err error) {
	again := false
	for i := range 4 { // settings, names, and once more if another session changes something meanwhile
		var facts postgres.Session
		catalog, facts = c.environment.known(c.plain)
		facts.Firm = firm
		s = plan(catalog, facts)
		missing := s.Missing
		if len(missing) == 0 && !again {
			missing = absent(s, facts)
			again = len(missing) > 0
		}
		asked, err := c.learnFor(s, missing, catalog, i == 0)
		if err != nil || asked {
			if err != nil {
				return nil, nil, err
			}
			continue
		}
		if len(s.Missing) > 0 && catalog != nil && c.environment.hides {
			// What was known before is the better guess: without it the columns would show.
			facts.Stale = true
			s = plan(catalog, facts)
		}
		if hold {
			s, err = held(c, s, func() *rewrite.Script {
				facts.Held = true
				return plan(catalog, facts)
			})
		}
		return s, catalog, err
	}
	return s, catalog, nil
}

// absent gives the tables that a script names and that were not there when the server was asked last. A client that does not use this proxy may have made
// them since: most statements name tables that exist.
func absent(s *rewrite.Script, facts postgres.Session) (names []rewrite.Name) {
	if facts.Temp && facts.TempNames == nil {
		return nil
	}
	for _, u := range s.Uses {
		if n := u.Name; !n.Function && n != rewrite.Parents && len(u.Known.Relations) == 0 && !strings.HasPrefix(n.Name, "pg_") && !slices.Contains(facts.TempNames, n.Name) {
			names = append(names, n)
		}
	}
	return names
}

// learnFor asks for names that a script needs. It reports false if there is nothing to ask for, or no way.
func (c *clientHalf) learnFor(s *rewrite.Script, missing []rewrite.Name, catalog *rewrite.Catalog, first bool) (asked bool, err error) {
	if len(missing) == 0 || c.plain {
		return false, nil
	}
	switch {
	case c.pipeline.idle('I'):
		if _, current := c.environment.outside(); !current {
			return true, c.learn(c.question)
		}
		if catalog == nil {
			return false, nil
		}
		names := catalog.Ask(missing)
		answer, err := askNames(c.question, names)
		if err != nil {
			return false, fmt.Errorf("ask for names: %w", err)
		}
		return c.learnNames(answer, catalog, names), nil
	case !first || !c.pipeline.idle('T') || !queries(s):
	case catalog != nil && !catalog.Changed(missing, c.environment.since()), c.environment.hides:
		return c.learnInside(missing, catalog)
	}
	return false, nil
}

// learnNames takes over the answer to a question for names, and reports whether it could.
func (c *clientHalf) learnNames(answer *own, catalog *rewrite.Catalog, names []rewrite.Name) bool {
	v := c.environment
	read, why := load(c.pipeline, answer, names)
	if why != "" {
		c.unknown(why, v.database.changes.Last())
		return false
	}
	if v.database.server(read) != catalog.Server { // it is another server now, or another mode of it
		c.session.observer.Renew(true)
		return true
	}
	catalog.Learn(read.Known, v.since(), false)
	return true
}

// saved makes a savepoint: an error of ours must not abort the client's transaction.
const saved = "SAVEPOINT wirecheck"

// within asks questions within the open transaction, up to the first one that the server refuses. keep says that the transaction keeps what they do.
func within(c *clientHalf, keep bool, ask ...func() (*own, error)) (ok bool, err error) {
	if _, err := c.question(saved); err != nil {
		return false, err
	}
	q := &own{}
	for i := 0; i < len(ask) && q.err == nil; i++ {
		if q, err = ask[i](); err != nil {
			return false, err
		}
	}
	end := []string{"RELEASE " + saved}
	if q.err != nil || !keep {
		end = []string{"ROLLBACK TO " + saved, end[0]}
	}
	_, err = c.question(end...)
	return q.err == nil, err
}

// learnInside asks for names within the open transaction. The client's statement is a query: it would take the
// transaction's snapshot now as well, and later statements that must come before any query would be refused anyway. What
// the transaction sees holds for all sessions, if no change was seen since before it began. After this transaction changed
// the schema or settings, it holds for this transaction alone; that is asked for only if the client's text would show
// hidden columns without it.
func (c *clientHalf) learnInside(names []rewrite.Name, catalog *rewrite.Catalog) (asked bool, err error) {
	var settings, answer *own
	questions := []func() (*own, error){func() (q *own, err error) {
		answer, err = askNames(c.question, names)
		return answer, err
	}}
	if catalog == nil {
		questions = slices.Insert(questions, 0, func() (q *own, err error) {
			settings, err = askSettings(c.question)
			return settings, err
		})
	}
	if ok, err := within(c, false, questions...); err != nil || !ok {
		return false, err
	}
	if catalog != nil && !c.environment.own(catalog) {
		return c.learnNames(answer, catalog, names), nil
	}
	read, why := load(c.pipeline, answer, names)
	if why != "" {
		return false, nil
	}
	if catalog == nil {
		if _, _, why := c.adopt(settings); why != "" {
			return false, nil
		}
		catalog = rewrite.NewCatalog(c.environment.database.server(read), nil)
		c.environment.learnedInside(catalog)
	}
	catalog.Learn(read.Known, 0, false)
	return true, nil
}

// queries reports whether a text begins with a statement that reads or writes tables.
func queries(s *rewrite.Script) bool {
	if len(s.Plans) == 0 {
		return false
	}
	switch s.Plans[0].Verb {
	case "select", "insert", "update", "delete", "merge", "copy":
		return true
	}
	return false
}

// uncompiled is a statement in front of a question that reads tables of the catalog. A session that takes ways of planning away (enable_seqscan = off)
// makes the question look so dear that the server would compile it, for seconds (manual, 32.1). It holds until the end of the transaction, which is that of
// the question alone, or until the savepoint is taken back. It has no rows; servers before PostgreSQL 11 do not have the setting.
const uncompiled = `SELECT WHERE CASE WHEN pg_catalog.current_setting('jit', true) = 'on' THEN pg_catalog.set_config('jit', 'off', true) IS NULL END`

// question asks the server and waits for the answer. The statements of one question are one transaction, where none is open.
func (c *clientHalf) question(sql ...string) (*own, error) {
	return ask(c, sql, func() *own { return &own{} })
}

func ask(c *clientHalf, sql []string, entry func() *own) (*own, error) {
	return tidy(sql, func(sql ...string) (*own, error) {
		q := entry()
		if err := c.put(q, sql...); err != nil {
			return nil, err
		}
		answered := false
		err := c.pipeline.await(func() bool {
			answered = q.done
			return answered
		})
		if err == nil && !answered {
			err = errGone
		}
		return q, err
	})
}

// tidy asks a question, and the empty one after an error.
func tidy(sql []string, ask func(...string) (*own, error)) (*own, error) {
	q, err := ask(sql...)
	if err == nil && q.err != nil {
		_, err = ask()
	}
	return q, err
}

// ownName is the name of the statement and of the portal of our questions.
const ownName = "wirecheck: question"

// put sends a question, in the extended protocol: the client's unnamed statement, which a Query would drop, stays. The empty text, which is parsed
// last, takes ours out of pg_stat_activity. A question without statements does what the server left out because of an error in the one before.
func (c *clientHalf) put(q *own, sql ...string) error {
	if tidied(c.pipeline) {
		if err := c.put(&own{}); err != nil {
			return err
		}
	}
	c.pipeline.send(&entry{request: ownQuery, ours: true, own: q})
	const none, named = "\x00\x00", ownName + "\x00"
	type m struct {
		kind byte
		body string
	}
	done := []m{{'C', "S" + named}, {'C', "P" + named}}
	var list []m
	for _, text := range sql {
		list = append(append(list, m{'P', named + text + "\x00" + none}, m{'B', named + named + none + none + none}, m{'E', named + none + none}), done...)
	}
	if len(sql) == 0 {
		list = done
	}
	for _, m := range append(list, m{'P', named + "\x00" + none}, m{'C', "S" + named}, m{'S', ""}) {
		if err := c.out.message(m.kind, []byte(m.body)); err != nil {
			return err
		}
	}
	return c.out.flush()
}

// wholeCatalog is how many relations are asked for at once when a database is seen for the first time, if it has no more.
// In a larger one they are asked for as statements name them. Where columns are hidden all are asked for: one that is not
// known when a client sends many statements at once would show.
const wholeCatalog = 500

// learn asks for the settings and, where no session has read anything of it yet, for the catalog. What the server refuses
// stays unknown; that is no error.
func (c *clientHalf) learn(ask func(sql ...string) (*own, error)) error {
	v, observer := c.environment, c.session.observer
	changes, now := v.database.changes.Last(), v.database.changes.Now()
	settings, err := askSettings(ask)
	if err != nil {
		return fmt.Errorf("ask for settings: %w", err)
	}
	v.database.asked()
	reader, count, why := c.adopt(settings)
	if why != "" {
		c.unknown(why, changes)
		return nil
	}
	catalog := observer.known(v.database, reader)
	switch known := catalog != nil; {
	case known && !catalog.Counted(count):
	case known && !catalog.mayCompare():
		v.database.soon()
	default:
		names := []rewrite.Name{}
		if known {
			names = catalog.Lately()
		}
		read, whole, why, err := read(c.pipeline, ask, names, v.hides, !known || catalog.Whole())
		if err != nil {
			return err
		}
		if why != "" {
			c.unknown(why, changes)
			return nil
		}
		if !known || v.database.server(read) != catalog.Server { // a user has defined an operator, say
			catalog = observer.learned(v.database, reader, read)
		}
		catalog.Compare(read.Known, now, whole, count)
		catalog.compared.Store(time.Now().UnixNano())
	}
	asks, err := v.database.asking(ask, changes)
	if err != nil {
		return err
	}
	v.learned(catalog.Catalog, changes, asks)
	return nil
}

// read asks for the whole catalog, if all must be known or it is wanted and small enough, and else for names. why says why what came cannot be used.
func read(p *pipeline, ask func(sql ...string) (*own, error), names []rewrite.Name, all, wanted bool) (read *postgres.Reading, whole bool, why string, err error) {
	if whole = all; !whole && wanted {
		small, err := ask(uncompiled, postgres.SmallQuery(wholeCatalog))
		if err != nil {
			return nil, false, "", fmt.Errorf("ask for the size of the catalog: %w", err)
		}
		whole = len(small.rows) == 1 && string(small.rows[0][0]) == "t"
	}
	var answer *own
	if whole {
		names = nil
		answer, err = ask(uncompiled, postgres.CatalogQuery())
	} else {
		answer, err = askNames(ask, names)
	}
	if err != nil {
		return nil, false, "", fmt.Errorf("ask for the catalog: %w", err)
	}
	read, why = load(p, answer, names)
	return read, whole, why, nil
}

// askNames asks for what the catalog says of names.
func askNames(ask func(sql ...string) (*own, error), names []rewrite.Name) (*own, error) {
	q, err := ask(uncompiled, postgres.NamesQuery(names))
	if err != nil || q.err != nil {
		return q, err
	}
	if query := postgres.RestQuery(texts(q.rows)); query != "" {
		rest, err := ask(uncompiled, query)
		if err != nil {
			return nil, err
		}
		q.rows, q.err = append(q.rows, rest.rows...), rest.err
	}
	return q, nil
}

// interval reads a setting that is a time: "2min", or "0" (manual, 20.1.1); 0 if it makes no sense. Servers before PostgreSQL 14 do not have it.
func interval(text string) time.Duration {
	unit := strings.TrimLeft(text, "0123456789")
	n, err := strconv.Atoi(text[:len(text)-len(unit)])
	if err != nil {
		return 0
	}
	return time.Duration(n) * map[string]time.Duration{"": time.Millisecond, "ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit]
}

// adopt takes over the answer to settingsQuery and gives who reads the catalog and what the server counts of definitions, or says why it cannot.
func (c *clientHalf) adopt(q *own) (reader readerKey, count, why string) {
	reader, level, count, why := c.environment.settings(q)
	if why == "" {
		c.pipeline.set(level, interval(string(q.rows[0][8])))
	}
	return reader, count, why
}

// unknown goes on without a catalog until the schema changes or settings do.
func (c *clientHalf) unknown(why string, changes uint64) {
	c.session.Log.Warn().Str("why", why).Msg("catalog not known, statements are opaque")
	c.environment.learned(nil, changes, false)
}

// load understands the answer to a question for the catalog, or says why it cannot.
func load(p *pipeline, answer *own, names []rewrite.Name) (read *postgres.Reading, why string) {
	if answer.err != nil {
		return nil, answer.err.Message
	}
	why = "a defect of wirecheck"
	p.guard(func() {
		var err error
		if read, err = postgres.ReadCatalog(texts(answer.rows), names); err != nil {
			why = err.Error()
		} else {
			why = ""
		}
	})
	return read, why
}

// texts gives rows as texts; NULLs are empty.
func texts(rows [][][]byte) [][]string {
	list := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			list[i] = append(list[i], string(cell))
		}
	}
	return list
}
