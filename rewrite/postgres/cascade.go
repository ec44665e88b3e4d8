package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// What ON DELETE CASCADE deletes with a row is looked for in RETURNING, before the server does it: the rows of the referring tables, and of those that refer
// to these. The server then looks for them in a later snapshot (ri_PerformCheck, src/backend/utils/adt/ri_triggers.c), so what was found is certain only if
// no other transaction has ended meanwhile, which the session's next snapshot shows: see rewrite.Cascaded. ON DELETE SET NULL and SET DEFAULT
// change rows; they are seen if there are none.
//
//	CASE WHEN <READ COMMITTED> THEN concat_ws(' ', <position>, <transaction>, <snapshot>, json_build_array((SELECT json_agg(<version>) FROM child WHERE child.fk = parent.key), ...)) END
//
// At SERIALIZABLE the search could leave other locks than the server's own, so there it does not take place. It names tables that the client's text does not.
// Where the server must not refuse it (see firm.go), a query locks them before, as the search does: what is there then stays there until the transaction ends.

// cascade is a table whose rows change with those of another one.
type cascade struct {
	how   part
	clear bool // they are not deleted
}

// Limits of what is looked for with each row that is deleted.
const (
	maxCascades    = 16   // tables
	maxCascadeRows = 1000 // rows of each
)

// cascades gives the hidden column that tells what foreign keys delete with the rows of target; none if that cannot be certain.
func cascades(x *planner, w write, target source) []string {
	if w.op != history.OpDelete || !target.rel.CascadesDelete || target.rel.HasTriggers || !x.native || x.catalog.Standby || x.inWith || len(x.inside) > 0 || target.rel.Kind != "table" || target.rel.Root != nil {
		return nil
	}
	s := search{x: x, seen: []string{target.rel.String()}, oids: []uint32{target.rel.OID}}
	if !s.below(target.rel, pgsyntax.Quote(target.ref), "", "") {
		return nil
	}
	if firm(x.scene) && !x.session.Held {
		x.plan.Hold = fmt.Sprintf("SELECT %s FROM %s.%s %s WHERE false", strings.Join(s.lists, ", "), pgsyntax.Quote(target.rel.Schema), pgsyntax.Quote(target.rel.Name), pgsyntax.Quote(target.ref))
		return nil
	}
	guard := append([]string{"pg_catalog.current_setting('transaction_isolation') = 'read committed'", "pg_catalog.current_setting('session_replication_role') <> 'replica'", s.unaltered()}, s.guards...)
	expr := fmt.Sprintf("CASE WHEN %s THEN pg_catalog.concat_ws(' ', %s, pg_catalog.pg_current_xact_id_if_assigned(), pg_catalog.pg_current_snapshot(), pg_catalog.json_build_array(%s)) END",
		strings.Join(guard, " AND "), position, strings.Join(s.lists, ", "))
	x.plan.Cascades = cascadeDecoder(s.tables)
	return []string{x.hidden(part{apart: true}, expr)}
}

// search collects the tables that refer to one, and those that refer to them.
type search struct {
	x      *planner
	seen   []string
	oids   []uint32 // of these tables
	acts   []uint32 // what changes their rows, as triggers
	tables []cascade
	lists  []string // a JSON array of versions for each table
	guards []string // conditions that say that it is cheap
}

// below adds the tables that refer to rel, whose row the text above knows as ref. from and where lead from there to the row that is deleted.
func (s *search) below(rel *rewrite.Relation, ref, from, where string) bool {
	for _, f := range rel.Referrers {
		child := in(s.x.catalog.Named(f.Name), f.Schema)
		if child == nil || len(s.tables) == maxCascades || !f.Plain || slices.Contains(s.seen, child.String()) || !seesDeletes(child) {
			return false
		}
		s.seen, s.oids, s.acts = append(s.seen, child.String()), append(s.oids, child.OID), append(s.acts, f.Trigger)
		src := source{rel: child, ref: fmt.Sprintf("%scascade %d", s.x.hiddenPrefix(), len(s.tables)+1)}
		name := pgsyntax.Quote(src.ref)
		on, ok := matches(child, rel, f, name, ref)
		if !ok {
			return false
		}
		if !leads(child, child.Number(f.Columns[0]).Name) {
			s.guards = append(s.guards, small([]source{{rel: child}}, maxGroupBytes))
		}
		how := part{rel: child, table: topName(child), op: history.OpDelete, horizon: s.x.catalog.Horizon}
		version := "pg_catalog.concat_ws(' ', " + s.x.version(src, &how) + ") AS v"
		tables := pgsyntax.Quote(child.Schema) + "." + pgsyntax.Quote(child.Name) + " " + name + from
		conditions := on + where
		s.tables = append(s.tables, cascade{how, !f.Deletes})
		s.lists = append(s.lists, fmt.Sprintf("(SELECT coalesce(pg_catalog.json_agg(wirecheck.v), '[]') FROM (SELECT %s FROM %s WHERE %s LIMIT %d) wirecheck)", version, tables, conditions, maxCascadeRows+1))
		if f.Deletes && !s.below(child, name, ", "+tables, " AND "+conditions) {
			return false
		}
	}
	return true
}

// unaltered is a condition that no client has changed since what happens to the rows of the tables: it has the triggers that are known, and no others.
func (s *search) unaltered() string {
	slices.Sort(s.acts)
	list := func(oids []uint32) string {
		return "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(oids), " ", ","), "[]") + "}'::pg_catalog.oid[]"
	}
	return fmt.Sprintf("(SELECT pg_catalog.array_agg(oid ORDER BY oid) FROM pg_catalog.pg_trigger WHERE tgrelid = ANY (%s) AND CASE WHEN tgisinternal THEN tgfoid IN (1646, 1650, 1652) AND tgenabled IN ('O', 'A') ELSE tgenabled <> 'D' END) = %s",
		list(s.oids), list(s.acts))
}

// seesDeletes reports whether it is known what happens when foreign keys delete rows of a table, and the versions can be asked for.
func seesDeletes(rel *rewrite.Relation) bool {
	return rel.Kind == "table" && rel.Root == nil && unreturning(rel) == "" && !rel.HasTriggers
}

// matches is the condition of a foreign key: the same columns of the same types, of which the server's equality is that of the values.
func matches(child, parent *rewrite.Relation, f rewrite.Referrer, name, ref string) (on string, ok bool) {
	var list []string
	for i, n := range f.Columns {
		if i >= len(f.Keys) {
			return "", false
		}
		a, b := child.Number(n), parent.Number(f.Keys[i])
		if a == nil || b == nil || a.Type != b.Type || a.Folds || b.Folds || !plainKeys[a.Type] && a.Type != "text" && a.Type != "varchar" {
			return "", false
		}
		list = append(list, fmt.Sprintf("%s.%s OPERATOR(pg_catalog.=) %s.%s", name, pgsyntax.Quote(a.Name), ref, pgsyntax.Quote(b.Name)))
	}
	return strings.Join(list, " AND "), len(list) > 0
}

// leads reports whether an index begins with a column.
func leads(rel *rewrite.Relation, column string) bool {
	return slices.ContainsFunc(slices.Concat(rel.Indexes, rel.Unique), func(ix []string) bool { return len(ix) > 0 && ix[0] == column })
}

// cascadeDecoder reads the column of cascades.
func cascadeDecoder(tables []cascade) func(cell []byte) (rewrite.Cascaded, error) {
	return func(cell []byte) (c rewrite.Cascaded, err error) {
		if cell == nil {
			return c, rewrite.ErrPartial
		}
		place, rest := cut(cell)
		own, rest := cut(rest)
		snapshot, rest := cut(rest)
		lsn, err := parseLSN(place)
		ok := false
		if c.Snapshot, ok = history.ParseSnapshot(string(snapshot)); !ok || err != nil {
			return c, errHidden
		}
		if c.Own, err = strconv.ParseUint(string(own), 10, 64); err != nil {
			return c, errHidden
		}
		var lists [][]string
		if err := json.Unmarshal(rest, &lists); err != nil || len(lists) != len(tables) {
			return c, errHidden
		}
		for i, list := range lists {
			if len(list) > maxCascadeRows || tables[i].clear && len(list) > 0 {
				return c, rewrite.ErrPartial
			}
			for _, version := range list {
				a, ok, err := tables[i].how.access([]byte(version), lsn)
				if err != nil || !ok {
					return c, errHidden
				}
				c.Accesses = append(c.Accesses, a)
			}
		}
		return c, nil
	}
}
