package mysqlwire

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

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

// instrument adds the hidden columns to tables that the client has just created, before the client gets the answer. It
// keeps the server's warnings, which our statements clear.
func (o *observation) instrument(created []rewrite.RelationName) error {
	if o.observer.Instrument == InstrumentOff || !o.tracker.observed() || o.settings.state == settingsRefused || o.settings.inTransaction() || o.settings.once != "" {
		return nil
	}
	if err := o.counts.save(&o.link); err != nil {
		return err
	}
	if o.warnings.server > 0 {
		rows, refused, err := o.ownRows("SHOW WARNINGS")
		if err != nil {
			return err
		}
		if refused == nil {
			o.warnings.keepServers(rows)
		}
	}
	if o.settings.state != settingsKnown {
		if err := o.ask(); err != nil || o.settings.state != settingsKnown {
			return err
		}
	}
	if o.catalog == nil {
		created = nil // it is not known what was there before
	}
	before := o.catalog.All()
	if err := o.readCatalog(); err != nil {
		return err
	}
	added := false
	for _, rel := range newTables(before, o.catalog.All(), o.observer.Instrument) {
		if !slices.ContainsFunc(created, func(name rewrite.RelationName) bool { return o.means(name, rel.RelationName) }) {
			continue // another client has created it: it may be in another database, and in use
		}
		for _, sql := range dialect.AddColumns(o.settings.flavor, rel) {
			_, refused, err := o.ownRows(sql)
			if err != nil {
				return err
			}
			if refused != nil {
				o.ps.Log.Warn().Stringer("table", rel.RelationName).Str("error", refused.Message).Msg("table is not instrumented")
				continue
			}
			added = true
		}
	}
	if added {
		o.observer.catalogs.changed()
		if err := o.readCatalog(); err != nil {
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

// means reports whether the client's name, as it wrote it, is that of a table. It ignores case: where case matters to the
// server, at worst it means a table that the client has also just created.
func (o *observation) means(name, table rewrite.RelationName) bool {
	if name.Schema == "" {
		name.Schema = o.settings.env.Database
	}
	return strings.EqualFold(name.Schema, table.Schema) && strings.EqualFold(name.Name, table.Name)
}

// newTables are the tables to be instrumented that were not there before, or were and had the columns.
func newTables(before, now []*rewrite.Relation, how Instrument) []*rewrite.Relation {
	follow := make(map[string]bool)
	old := make(map[rewrite.RelationName]*rewrite.Relation)
	for _, rel := range before {
		follow[rel.Schema] = follow[rel.Schema] || rel.Instrumented
		old[rel.RelationName] = rel
	}
	for _, rel := range now { // before may be old
		follow[rel.Schema] = follow[rel.Schema] || rel.Instrumented
	}
	var add []*rewrite.Relation
	for _, rel := range now {
		was := old[rel.RelationName]
		if _, ok := dialect.Instrumentable(rel); !ok || rel.Instrumented || was != nil && !was.Instrumented {
			continue
		}
		if how == InstrumentAuto || follow[rel.Schema] {
			add = append(add, rel)
		}
	}
	slices.SortFunc(add, func(a, b *rewrite.Relation) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	return add
}

// terminal reports whether a person sits at the client.
func (o *observation) terminal() bool { return o.program == "mysql" || o.program == "mariadb" }

// codeBare is the number of the warning that wirecheck sees nothing of a table; findings have those before it.
const codeBare = 51009

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
	command := "wirecheck instrument add " + url
	if _, known := o.observer.bare.LoadOrStore(*p.Bare, true); !known {
		o.ps.Log.Warn().Str("table", p.Bare.String()).Str("command", command).Msg("TABLE IS NOT INSTRUMENTED: wirecheck sees nothing of it and finds no anomaly in it")
	}
	if o.bare {
		return nil
	}
	o.bare = true
	return []record.Warning{{
		SQLState: "01WC9", Code: codeBare, Message: "wirecheck: table " + p.Bare.String() + " is not instrumented: wirecheck sees nothing of it and finds no anomaly in it",
		Hint: command, Schema: p.Bare.Schema, Table: p.Bare.Name,
	}}
}
