package mysqlwire

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"wirecheck/history/prose"
	"wirecheck/product"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// createTable finds the name of the table in a CREATE TABLE: the schema, if it is named, and the table.
var createTable = regexp.MustCompile("(?is)^\\s*(?:/\\*.*?\\*/\\s*)*CREATE\\s+(OR\\s+REPLACE\\s+)?TABLE\\s+(IF\\s+NOT\\s+EXISTS\\s+)?" +
	"(?:(`(?:[^`]|``)+`|[^\\s`.(]+)\\s*\\.\\s*)?(`(?:[^`]|``)+`|[^\\s`.(;]+)")

// definedTable is a table that a statement creates, if it was not there.
type definedTable struct {
	rewrite.RelationName
	perhaps bool // it may have been there
}

// created are the tables that the statements create. A schema that is not named is the session's, which is empty here.
func (a *answer) created() (tables []definedTable) {
	for _, st := range a.statements {
		if !st.plan.Schema {
			continue
		}
		if m := createTable.FindStringSubmatch(st.plan.Text); m != nil {
			tables = append(tables, definedTable{rewrite.RelationName{Schema: bareName(m[3]), Name: bareName(m[4])}, m[1]+m[2] != ""})
		}
	}
	return tables
}

// bareName takes the quotes from a name.
func bareName(name string) string {
	if len(name) > 1 && name[0] == '`' {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// newTables is a session's way with the tables that its client creates.
type newTables struct{ *observation }

// instrument adds the hidden columns to tables that the client has just created, before the client gets the answer. It
// keeps the server's warnings, which our statements clear.
func (o newTables) instrument(created []definedTable) error {
	if o.observer.Instrument == InstrumentOff || !o.tracker.observed() || o.settings.state == settingsRefused || o.settings.inTransaction() || o.settings.once != "" ||
		o.settings.state == settingsKnown && !slices.ContainsFunc(created, o.mayFollow) {
		return nil
	}
	if err := o.counts.save(&o.link); err != nil {
		return err
	}
	kept := o.warnings.server
	if err := o.warnings.keep(&o.link); err != nil {
		return err
	}
	if o.traits.WarnsOfAssignments { // MySQL: COM_PING counts them
		o.warnings.parsed += int(kept)
	}
	if o.settings.state != settingsKnown {
		if err := o.ask(); err != nil || o.settings.state != settingsKnown {
			return err
		}
	}
	if err := o.instrumentNew(created); err != nil {
		return err
	}
	if kept > 0 { // where nothing was to be asked the server still has them, and a table that warns when it is opened has warned again
		if err := o.forgetWarnings(); err != nil {
			return err
		}
	}
	if o.settings.status&statusAutocommit == 0 { // reading the catalog may have opened a transaction
		if _, _, err := o.ownRows("COMMIT"); err != nil {
			return err
		}
	}
	return o.restoreChanged()
}

// instrumentNew adds the hidden columns to those of the tables that were not there before, or were and had the columns.
func (o newTables) instrumentNew(created []definedTable) error {
	var names []rewrite.Name
	before := o.catalog.View(true) // the definition has made it old
	for _, c := range created {
		c.Schema = cmp.Or(c.Schema, o.settings.env.Database)
		n := dialect.NameOf(before.Server, c.RelationName)
		if was := before.Relation(n.Schema, n.Name); o.catalog == nil || was != nil && !was.Instrumented || c.perhaps && before.Guessed(n) {
			continue
		}
		follow, err := o.follows(n.Schema)
		if err != nil {
			return err
		}
		if follow {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil
	}
	said, err := askCatalog(o.observation, names)
	if err != nil || said.rows == nil {
		return err
	}
	said.keep(o.observation)
	added, certain := false, true
	now := o.catalog.View(true)
	for _, n := range names {
		rel := now.Relation(n.Schema, n.Name)
		if rel == nil || rel.Instrumented {
			continue
		}
		if _, ok := dialect.Instrumentable(rel); !ok {
			continue
		}
		for _, sql := range dialect.AddColumns(o.settings.flavor, rel) {
			_, refused, err := o.ownRows(sql)
			if err != nil {
				return err
			}
			if refused != nil {
				o.ps.Log.Warn().Stringer("table", rel.RelationName).Str("error", refused.Message).Msg("table is not instrumented")
				certain = false
				continue
			}
			added = true
		}
		more := dialect.AddedRows(o.settings.flavor, rel)
		said.rows, certain = append(said.rows, more...), certain && more != nil
	}
	if !added {
		return nil
	}
	o.observer.catalogs.changes.Add(bareNames(names)...)
	if !certain {
		return o.learn(names)
	}
	said.now++ // unless something else has changed meanwhile, it is as new as the change that was just noted
	said.keep(o.observation)
	return nil
}

func bareNames(names []rewrite.Name) (bare []string) {
	for _, n := range names {
		bare = append(bare, n.Name)
	}
	return bare
}

// mayFollow reports whether a new table may get the hidden columns, as far as that is known without a question.
func (o newTables) mayFollow(c definedTable) bool {
	schema := cmp.Or(c.Schema, o.settings.env.Database)
	return o.observer.Instrument == InstrumentAuto || o.hasInstrumented(schema) || o.observer.catalogs.mayFollow(schema)
}

// hasInstrumented reports whether a table is known in a schema that has the hidden columns.
func (o newTables) hasInstrumented(schema string) bool {
	return slices.ContainsFunc(o.catalog.All(), func(r *rewrite.Relation) bool { return r.Instrumented && strings.EqualFold(r.Schema, schema) })
}

// follows reports whether new tables of a schema get the hidden columns.
func (o newTables) follows(schema string) (bool, error) {
	if o.observer.Instrument == InstrumentAuto || o.hasInstrumented(schema) {
		return true, nil
	}
	all, from := &o.observer.catalogs, time.Now()
	if !all.mayFollow(schema) {
		return false, nil
	}
	rows, refused, err := o.ownRows(dialect.InstrumentedQuery(schema))
	if err != nil {
		return false, err
	}
	if refused != nil || len(rows) == 0 {
		all.doesNotFollow(schema, from)
		return false, nil
	}
	return true, nil
}

// terminal reports whether a person sits at the client.
func (o *observation) terminal() bool {
	return o.program != "" && slices.ContainsFunc(product.All(), func(p *product.Product) bool { return p.Client == o.program })
}

// codeBare and stateBare are those of the warning that wirecheck sees nothing of a table; findings have the ones before them.
const (
	codeBare  = 51010
	stateBare = "01WCA"
)

// sawBare says that a statement used a table without hidden columns, of which wirecheck sees nothing: once for each table in the log, and once
// in each session.
func (o *observation) sawBare(p *rewrite.Plan) []record.Warning {
	if p.Bare == nil || !o.tracker.observed() {
		return nil
	}
	server := o.ps.Config.Upstream
	url := o.traits.Name + "://USER@" + server.Addr + "/" + p.Bare.Schema
	if server.Network == "unix" {
		url = o.traits.Name + "://USER@localhost/" + p.Bare.Schema + "?socket=" + server.Addr
	}
	table, command := prose.Printable(p.Bare.String()), prose.Printable("wirecheck instrument add "+url)
	if _, known := o.observer.bare.LoadOrStore(*p.Bare, true); !known {
		o.ps.Log.Warn().Str("table", table).Str("command", command).Msg("TABLE IS NOT INSTRUMENTED: wirecheck sees nothing of it and finds no anomaly in it")
	}
	if o.bare {
		return nil
	}
	o.bare = true
	return []record.Warning{{
		SQLState: stateBare, Code: codeBare, Message: "wirecheck: table " + table + " is not instrumented: wirecheck sees nothing of it and finds no anomaly in it",
		Hint: command, Schema: p.Bare.Schema, Table: p.Bare.Name,
	}}
}
