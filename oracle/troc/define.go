package troc

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// simple are definitions of one thing that say what becomes of the rows: they are gone, or a column more, less, wider, or with another default.
var simple = regexp.MustCompile("(?is)^\\s*(?:(truncate)(?:\\s+table)?\\s+(\\S+)|alter\\s+table\\s+(\\S+)\\s+(?:add\\s+column\\s+\\w+\\s+\\w+(?:\\s+default\\s+\\S+)?|drop\\s+column\\s+\\S+|" +
	"modify\\s+column\\s+\\S+\\s+\\S+|alter\\s+column\\s+\\S+\\s+(?:type|set\\s+default)\\s+\\S+))\\s*$")

// followed reports whether a definition can be followed: it is simple, a transaction of its own, and nobody waited or began at the same time, so that it
// is certain what came before it. Who began while it waited, and did not wait behind it, may have run before it or after it.
func (c *frame) followed(i int) bool {
	def := &c.s.Steps[i]
	return simple.MatchString(def.Statement.Text) && !def.Before.InTransaction() && !def.After.InTransaction() &&
		!slices.ContainsFunc(c.s.Steps, func(st schedule.Step) bool {
			return st.Done != def.Done && def.Waited && st.Waited && st.Done > def.Sent && st.Sent < def.Done
		}) &&
		!slices.ContainsFunc(c.txs, func(t schedule.Transaction) bool { return def.Waited && t.Begin > def.Sent && t.Begin < def.Done })
}

// redefinition is what a definition makes of a table.
type redefinition struct {
	table  string
	empty  bool
	from   []int          // by column: its place before; -1: it is new
	filled []answer.Value // by column: what a new one holds
	known  []bool         // by column: whether that is known, since all rows of the setup have the same
	why    string         // why nothing can be followed any more
}

// redefine takes a world through a definition: all versions of the table's rows are as it makes them. The stage is made anew once.
func redefine(ctx context.Context, c *check, w *world, i int) (why string, err error) {
	d := c.defined[i]
	if d == nil {
		if d, err = c.t.define(ctx, c.s.Steps[i].Statement.Text); err != nil {
			return "", err
		}
		c.defined[i] = d
		c.features = featuresOf(c.t.s.Setup, c.t.names)
		c.features.late = c.s.Postpones()
	}
	if d.why != "" {
		return c.s.Steps[i].Name + ": " + d.why, nil
	}
	rows := []row{}
	for _, r := range w.tables[d.table] {
		next := row{id: r.id}
		for _, v := range r.versions {
			if !v.deleted && !d.empty {
				if v.values, why = d.values(v.values); why != "" {
					return c.s.Steps[i].Name + ": " + why, nil
				}
			}
			next.versions = append(next.versions, v)
		}
		if !d.empty {
			rows = append(rows, next)
		}
	}
	w.tables[d.table] = rows
	c.since[d.table] = c.place
	return "", nil
}

// values are those of a row behind a definition.
func (d *redefinition) values(before []answer.Value) (list []answer.Value, why string) {
	for n, from := range d.from {
		switch {
		case from >= 0:
			list = append(list, before[from])
		case d.known[n]:
			list = append(list, d.filled[n])
		default:
			return nil, "what its column holds is not known"
		}
	}
	return list, ""
}

// define makes the stage anew, with a definition behind the setup.
func (t *theater) define(ctx context.Context, sql string) (*redefinition, error) {
	m := simple.FindStringSubmatch(sql)
	d := &redefinition{table: strings.NewReplacer("`", "", `"`, "").Replace(m[2] + m[3]), empty: m[1] != ""}
	before, known := t.columns[d.table]
	if !known {
		d.why = "it defines " + d.table
		return d, nil
	}
	s := *t.s
	s.Setup = append(slices.Clip(s.Setup), sql)
	var tables []answer.Table
	for _, name := range t.names {
		tables = append(tables, answer.Table{Name: name})
	}
	if err := t.stage.Prepare(ctx, staged(&s, tables), len(s.Sessions)); ctx.Err() != nil {
		return nil, err
	} else if err != nil {
		d.why = fmt.Sprintf("the stage does not take it: %v", err)
		return d, nil
	}
	t.s = &s
	clear(t.loaded)
	clear(t.applied)
	clear(t.memo)
	read, err := t.stage.Tables(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the stage: %w", err)
	}
	now := &read[slices.IndexFunc(read, func(a answer.Table) bool { return a.Name == d.table })]
	t.columns[d.table] = slices.DeleteFunc(slices.Clone(now.Columns), func(c answer.Column) bool { return c.Name == rowID })
	for n, c := range t.columns[d.table] {
		from := slices.IndexFunc(before, func(b answer.Column) bool { return b.Name == c.Name })
		if from >= 0 && family(before[from].Type) != family(c.Type) {
			d.why = "a column has values of another type"
		}
		d.from, d.filled, d.known = append(d.from, from), append(d.filled, nil), append(d.known, len(now.Rows) > 0)
		for _, r := range now.Rows {
			d.filled[n] = r[n]
			d.known[n] = d.known[n] && answer.SameRow(r[n:n+1], now.Rows[0][n:n+1])
		}
	}
	return d, nil
}

// family is what types have in common whose values are written alike.
func family(kind string) string {
	for _, word := range []string{"int", "char"} {
		if strings.Contains(strings.ToLower(kind), word) {
			return word
		}
	}
	return strings.ToLower(kind)
}

// older names a table that was defined otherwise since the snapshot of a step's transaction may have been taken: what it sees of that is not
// documented, or nothing (PostgreSQL manual, 13.6; MySQL manual, 17.7.2.3). Empty: there is none.
func older(c *check, w *world, x int, cand *candidate) string {
	if plain, _ := c.p.View(c.txs[x].Level, product.Select); plain.Read != product.V4 {
		return ""
	}
	for name, place := range c.since {
		if _, sees := cand.views[name]; sees && slices.ContainsFunc(w.txs[x].snapshots, func(at int) bool { return at < place }) {
			return name
		}
	}
	return ""
}
