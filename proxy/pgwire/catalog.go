package pgwire

import (
	"encoding/json"
	"fmt"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// settingsQuery asks for what decides how statements are understood, which transactions they run in and which notices
// the client wants. It has no table but one that all may read, so it fails for nobody; names are qualified since the
// search path may have others.
const settingsQuery = `SELECT pg_catalog.current_setting('client_min_messages'), pg_catalog.current_setting('default_transaction_isolation'), ` +
	`pg_catalog.to_json(pg_catalog.current_schemas(true))::pg_catalog.text, current_user::pg_catalog.text, pg_catalog.current_setting('row_security'), ` +
	`CASE WHEN pg_catalog.pg_my_temp_schema() = 0 THEN '[]' ELSE (SELECT coalesce(pg_catalog.json_agg(relname), '[]')::pg_catalog.text ` +
	`FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema()) END`

// maxOwn bounds the answer to a question of ours.
const maxOwn = 256 << 20

// introduce learns what must be known before the client's first statement. The client waits for its first
// ReadyForQuery; nothing else runs.
func (o *observing) introduce() error {
	err := o.learn(func(sql string) (*own, error) {
		q := &own{}
		if err := o.put(q, sql); err != nil {
			return nil, err
		}
		for !q.done {
			if err := o.answer(); err != nil {
				return nil, err
			}
			if o.lost != "" {
				return nil, errNoAnswer
			}
		}
		return q, nil
	})
	if err != nil {
		return err
	}
	return o.welcomeClient()
}

// refresh learns again what may have changed, if the session is idle. Otherwise statements are planned without it.
func (o *observing) refresh() error {
	o.mu.Lock()
	need := o.idle() && (!o.asked || o.schema || o.database.changes.Load() != o.changes)
	o.mu.Unlock()
	if !need {
		return nil
	}
	return o.learn(o.question)
}

// learnInside learns the catalog as the open transaction sees it, after this transaction changed the schema or settings,
// if the client's text would show hidden columns without it. The client's statement is a query: it would take the
// transaction's snapshot now as well, and later statements that must come before any query would be refused anyway.
func (o *observing) learnInside(sql string) error {
	if !o.observer.rewriter.Hides() {
		return nil
	}
	o.mu.Lock()
	catalog, facts := o.known()
	need := catalog == nil && o.status == 'T' && !o.open && o.queue.empty() && !o.skipping && o.lost == ""
	o.mu.Unlock()
	if !need || !queries(o.observer.rewriter.Script(sql, nil, facts)) {
		return nil
	}
	// An error of ours must not abort the client's transaction.
	if _, err := o.question("SAVEPOINT wirecheck"); err != nil {
		return err
	}
	settings, err := o.question(settingsQuery)
	if err != nil {
		return err
	}
	answer := &own{}
	if settings.err == nil {
		if answer, err = o.question(postgres.CatalogQuery()); err != nil {
			return err
		}
	}
	if settings.err != nil || answer.err != nil {
		if _, err := o.question("ROLLBACK TO SAVEPOINT wirecheck"); err != nil {
			return err
		}
	}
	if _, err := o.question("RELEASE SAVEPOINT wirecheck"); err != nil {
		return err
	}
	c, why := load(answer)
	if why == "" {
		o.observer.keepHorizon(o.database, c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if why2 := o.settings(settings); why == "" && why2 == "" {
		o.within = c
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

// question sends a question and waits for its answer.
func (o *observing) question(sql string) (*own, error) {
	q := &own{}
	if err := o.put(q, sql); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for !q.done && !o.ended && o.lost == "" {
		o.news.Wait()
	}
	if !q.done {
		return nil, errGone
	}
	return q, nil
}

// put sends a question.
func (o *observing) put(q *own, sql string) error {
	o.mu.Lock()
	o.push(&entry{request: ownQuery, ours: true, own: q})
	o.mu.Unlock()
	if err := o.writeQuery(sql); err != nil {
		return err
	}
	return o.toServer.flush()
}

// learn asks for the settings and, where nobody has read it since it changed, for the catalog. What the server refuses
// stays unknown; that is no error.
func (o *observing) learn(ask func(sql string) (*own, error)) error {
	settings, err := ask(settingsQuery)
	if err != nil {
		return fmt.Errorf("ask for settings: %w", err)
	}
	o.mu.Lock()
	why := o.settings(settings)
	o.schema, o.within = false, nil
	o.mu.Unlock()
	if why != "" {
		o.unknown(why, o.database.changes.Load())
		return nil
	}
	catalog, ok, changes := o.observer.known(o.database, o.reader)
	if !ok {
		answer, err := ask(postgres.CatalogQuery())
		if err != nil {
			return fmt.Errorf("ask for the catalog: %w", err)
		}
		if catalog, why = load(answer); why != "" {
			o.unknown(why, changes)
			return nil
		}
		o.observer.learned(o.database, o.reader, catalog, changes)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catalog, o.changes = catalog, changes
	return nil
}

// unknown goes on without a catalog until the schema changes or settings do.
func (o *observing) unknown(why string, changes uint64) {
	o.Log.Warn().Str("why", why).Msg("catalog not known, statements are opaque")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catalog, o.changes, o.asked = nil, changes, true
}

// settings takes over the answer to settingsQuery, or says why it cannot. mu is held.
func (o *observing) settings(q *own) (why string) {
	if q.err != nil {
		return q.err.message
	}
	if len(q.rows) != 1 || len(q.rows[0]) != 6 {
		return "the answer to the question for settings is not one row"
	}
	row := q.rows[0]
	var path []string
	if err := json.Unmarshal(row[2], &path); err != nil {
		return "the search path cannot be read"
	}
	temp := []string{}
	if err := json.Unmarshal(row[5], &temp); err != nil {
		return "the names of temporary tables cannot be read"
	}
	o.mute = muted(string(row[0]))
	o.tracker.SetLevel(level(string(row[1])))
	o.facts.SearchPath, o.facts.Temp, o.facts.TempNames = path, false, temp
	for _, schema := range path {
		if strings.HasPrefix(schema, "pg_temp_") {
			o.facts.Temp = true
		}
	}
	o.reader = readerKey{user: string(row[3]), rowSecurity: string(row[4])}
	o.asked = true
	return ""
}

// muted reports whether a value of client_min_messages leaves warnings out (manual, 20.11.1).
func muted(min string) bool {
	switch strings.ToLower(min) {
	case "error", "fatal", "panic":
		return true
	}
	return false
}

// level gives the level that runs: READ UNCOMMITTED is READ COMMITTED (manual, 13.2).
func level(name string) string {
	if name == "read uncommitted" {
		return "read committed"
	}
	return name
}

func load(q *own) (*rewrite.Catalog, string) {
	if q.err != nil {
		return nil, q.err.message
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
