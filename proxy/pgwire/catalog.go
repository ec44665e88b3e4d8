package pgwire

import (
	"fmt"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// settingsQuery asks for what decides how statements are understood, which transactions they run in and which notices
// the client wants. It has no table but one that all may read, so it fails for nobody; names are qualified since the
// search path may have others. current_schemas makes the schema of temporary tables if the path begins with it, which a
// later PREPARE TRANSACTION would notice: then the path stays unknown.
const settingsQuery = `SELECT pg_catalog.current_setting('client_min_messages'), pg_catalog.current_setting('default_transaction_isolation'), ` +
	`CASE WHEN pg_catalog.pg_my_temp_schema() = 0 AND pg_catalog.lower(pg_catalog.current_setting('search_path')) LIKE '%pg_temp%' THEN 'null' ` +
	`ELSE pg_catalog.to_json(pg_catalog.current_schemas(true))::pg_catalog.text END, current_user::pg_catalog.text, pg_catalog.current_setting('row_security'), ` +
	`CASE WHEN pg_catalog.pg_my_temp_schema() = 0 THEN '[]' ELSE (SELECT coalesce(pg_catalog.json_agg(relname), '[]')::pg_catalog.text ` +
	`FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()) END`

// maxOwn bounds the answer to a question of ours.
const maxOwn = 256 << 20

// refresh learns again what may have changed, if the session is idle. Otherwise statements are planned without it.
func (c *clientHalf) refresh() error {
	if !c.environment.stale() || !c.pipeline.idle('I') {
		return nil
	}
	return c.learn(c.question)
}

// learnInside learns the catalog as the open transaction sees it, after this transaction changed the schema or settings,
// if the client's text would show hidden columns without it. The client's statement is a query: it would take the
// transaction's snapshot now as well, and later statements that must come before any query would be refused anyway.
func (c *clientHalf) learnInside(sql string) error {
	if !c.environment.hides {
		return nil
	}
	if catalog, _ := c.environment.known(); catalog != nil || !c.pipeline.idle('T') || !queries(c.script(sql)) {
		return nil
	}
	// An error of ours must not abort the client's transaction.
	if _, err := c.question("SAVEPOINT wirecheck"); err != nil {
		return err
	}
	settings, err := c.question(settingsQuery)
	if err != nil {
		return err
	}
	answer := &own{}
	if settings.err == nil {
		if answer, err = c.question(postgres.CatalogQuery()); err != nil {
			return err
		}
	}
	if settings.err != nil || answer.err != nil {
		if _, err := c.question("ROLLBACK TO SAVEPOINT wirecheck"); err != nil {
			return err
		}
	}
	if _, err := c.question("RELEASE SAVEPOINT wirecheck"); err != nil {
		return err
	}
	read, why := c.load(answer, func(read *rewrite.Catalog) { c.session.observer.keepHorizon(c.environment.database, read) })
	if _, refused := c.adopt(settings); refused == "" && why == "" {
		c.environment.learnedInside(read)
	}
	return nil
}

// queries reports whether a text begins with a statement that reads or writes tables.
func queries(s *rewrite.Script) bool {
	if len(s.Plans) == 0 || s.Plans[0].Coverage == history.CoverageNone {
		return false
	}
	switch s.Plans[0].Verb {
	case "select", "insert", "update", "delete", "merge", "copy":
		return true
	}
	return false
}

// question asks the server and waits for the answer.
func (c *clientHalf) question(sql string) (*own, error) { return tidy(sql, c.await) }

// tidy asks a question, and the empty one after an error.
func tidy(sql string, ask func(string) (*own, error)) (*own, error) {
	q, err := ask(sql)
	if err == nil && q.err != nil {
		_, err = ask("")
	}
	return q, err
}

func (c *clientHalf) await(sql string) (*own, error) {
	q := &own{}
	if err := c.put(q, sql); err != nil {
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
}

// ownName is the name of the statement and of the portal of our questions.
const ownName = "wirecheck: question"

// put sends a question, in the extended protocol: the client's unnamed statement, which a Query would drop, stays. The empty text, which is parsed
// last, takes ours out of pg_stat_activity. An empty question does what the server left out because of an error in the one before.
func (c *clientHalf) put(q *own, sql string) error {
	c.pipeline.send(&entry{request: ownQuery, ours: true, own: q})
	const none = "\x00\x00"
	named := ownName + "\x00"
	type m struct {
		kind byte
		body string
	}
	list := []m{{'P', named + sql + "\x00" + none}, {'B', named + named + none + none + none}, {'E', named + none + none}}
	if sql == "" {
		list = nil
	}
	for _, m := range append(list, m{'C', "S" + named}, m{'C', "P" + named}, m{'P', named + "\x00" + none}, m{'C', "S" + named}, m{'S', ""}) {
		if err := c.out.message(m.kind, []byte(m.body)); err != nil {
			return err
		}
	}
	return c.out.flush()
}

// learn asks for the settings and, where no session has read it since it changed, for the catalog. What the server refuses
// stays unknown; that is no error.
func (c *clientHalf) learn(ask func(sql string) (*own, error)) error {
	settings, err := ask(settingsQuery)
	if err != nil {
		return fmt.Errorf("ask for settings: %w", err)
	}
	v, observer := c.environment, c.session.observer
	reader, why := c.adopt(settings)
	if why != "" {
		c.unknown(why, v.database.changes.Load())
		return nil
	}
	catalog, ok, changes := observer.known(v.database, reader)
	if !ok {
		answer, err := ask(postgres.CatalogQuery())
		if err != nil {
			return fmt.Errorf("ask for the catalog: %w", err)
		}
		catalog, why = c.load(answer, func(read *rewrite.Catalog) { observer.learned(v.database, reader, read, changes) })
		if why != "" {
			c.unknown(why, changes)
			return nil
		}
	}
	v.learned(catalog, changes)
	return nil
}

// adopt takes over the answer to settingsQuery and gives who reads the catalog, or says why it cannot.
func (c *clientHalf) adopt(q *own) (reader readerKey, why string) {
	reader, level, why := c.environment.settings(q)
	if why == "" {
		c.pipeline.setLevel(level)
	}
	return reader, why
}

// unknown goes on without a catalog until the schema changes or settings do.
func (c *clientHalf) unknown(why string, changes uint64) {
	c.session.Log.Warn().Str("why", why).Msg("catalog not known, statements are opaque")
	c.environment.learned(nil, changes)
}

// load makes a catalog of the answer to the question for it and has it kept, or says why it cannot.
func (c *clientHalf) load(answer *own, keep func(*rewrite.Catalog)) (read *rewrite.Catalog, why string) {
	why = "a defect of wirecheck"
	c.pipeline.guard(func() {
		if read, why = load(answer); why == "" {
			keep(read)
		}
	})
	return read, why
}

func load(q *own) (*rewrite.Catalog, string) {
	if q.err != nil {
		return nil, q.err.Message
	}
	rows := make([][]string, len(q.rows))
	for i, r := range q.rows {
		for _, c := range r {
			rows[i] = append(rows[i], string(c))
		}
	}
	c, err := postgres.LoadCatalog(rows)
	if err != nil {
		return nil, err.Error()
	}
	return c, ""
}
