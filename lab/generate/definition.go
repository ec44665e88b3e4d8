package generate

import (
	"fmt"
	"regexp"
	"slices"
)

// ddl may make a statement that changes the definition of the table, what the optimizer knows of it, or how its rows are kept.
func (g *Generator) ddl(db *Database, t *Table) (st Statement, made bool) {
	c := change{g, db, t}
	for _, way := range []struct {
		feature string
		make    func() string // empty: nothing can be made
	}{
		{"ddl-index", c.createIndex}, {"ddl-drop-index", c.dropIndex}, {"ddl-rename-index", c.renameIndex}, {"ddl-add-column", c.addColumn},
		{"ddl-drop-column", c.dropColumn}, {"ddl-modify-column", c.modifyColumn}, {"ddl-rename", c.renameTable}, {"ddl-rebuild", c.rebuild},
		{"admin-analyze", c.analyze}, {"admin-flush", c.flush}, {"ddl-truncate", c.truncate},
		{"ddl-partition", c.partition},
	} {
		g.begin(KindSchema)
		if g.use(way.feature, seldom) {
			sql := way.make()
			return g.end(sql, []string{t.Name}), sql != ""
		}
	}
	return Statement{}, false
}

// change makes a statement about a table that is there.
type change struct {
	*Generator
	db *Database
	t  *Table
}

func (g change) createIndex() string {
	columns := g.indexable(g.t)
	if len(columns) == 0 {
		return ""
	}
	g.t.indexes++
	return fmt.Sprintf("CREATE INDEX %s_i%d ON %s (%s)", g.t.Name, g.t.indexes, g.t.Name, oneOf(g.intn, columns).Name)
}

func (g change) dropIndex() string {
	names := g.db.indexesOf(g.t)
	if len(names) == 0 {
		return ""
	}
	sql := "DROP INDEX " + oneOf(g.intn, names)
	if g.grammar.mysql {
		sql += " ON " + g.t.Name
	}
	return sql
}

// renameIndex gives an index of the setup another name. No other statement names it, but one that drops it.
func (g change) renameIndex() string {
	names := g.db.indexesOf(g.t)
	if len(names) == 0 {
		return ""
	}
	name := oneOf(g.intn, names)
	if g.grammar.mysql {
		return fmt.Sprintf("ALTER TABLE %s RENAME INDEX %s TO %s_r", g.t.Name, name, name)
	}
	return fmt.Sprintf("ALTER INDEX %s RENAME TO %s_r", name, name)
}

func (g change) addColumn() string {
	g.t.added++
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN d%d INT DEFAULT 1", g.t.Name, g.t.added)
}

// dropColumn takes away a column that nothing else is defined by. Statements that name it are refused from then on.
func (g change) dropColumn() string {
	columns := g.loose()
	if len(columns) == 0 || len(g.t.Columns) < 2 {
		return ""
	}
	return fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", g.t.Name, oneOf(g.intn, columns).Name)
}

// modifyColumn widens a column that nothing else is defined by, or gives it a default.
func (g change) modifyColumn() string {
	columns := g.loose()
	if len(columns) == 0 {
		return ""
	}
	c := oneOf(g.intn, columns)
	wider := map[string]string{"SMALLINT": "BIGINT", "INT": "BIGINT", "VARCHAR(20)": "VARCHAR(30)"}[c.SQL]
	if wider == "" || c.Collation != "" {
		return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT NULL", g.t.Name, c.Name)
	}
	if g.grammar.mysql {
		return fmt.Sprintf("ALTER TABLE %s MODIFY COLUMN %s %s", g.t.Name, c.Name, wider)
	}
	return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s", g.t.Name, c.Name, wider)
}

// loose are the columns of a table by which nothing else is defined: no key, index, constraint, generated column, partition or view.
func (g change) loose() []*Column {
	if g.t.Partitioned || slices.ContainsFunc(g.db.Views, func(v *View) bool { return v.Table == g.t }) {
		return nil
	}
	var texts []string // that may name a column
	for _, c := range g.t.Columns {
		texts = append(texts, c.Generated)
	}
	for _, st := range g.db.Setup {
		if m := indexName.FindStringSubmatch(st.SQL); m != nil && m[2] == g.t.Name {
			texts = append(texts, st.SQL)
		}
	}
	return slices.DeleteFunc(slices.Clone(g.t.Columns), func(c *Column) bool {
		named := regexp.MustCompile(`\b` + c.Name + `\b`)
		return c.NotNull || c.Default != nil || c.Generated != "" || c.Parent != nil || c.auto || g.t.inKey(c) || slices.ContainsFunc(texts, named.MatchString) ||
			slices.ContainsFunc(g.t.checks, func(k check) bool { return slices.Contains(k.columns, c) })
	})
}

// renameTable gives a table another name and its own again, at once.
func (g change) renameTable() string {
	return fmt.Sprintf("RENAME TABLE %s TO %s_x, %s_x TO %s", g.t.Name, g.t.Name, g.t.Name, g.t.Name)
}

// rebuild makes a table, or its indexes, once more.
func (g change) rebuild() string {
	if !g.grammar.mysql {
		return oneOf(g.intn, []string{"REINDEX TABLE ", "VACUUM FULL "}) + g.t.Name
	}
	if g.t.Partitioned {
		return fmt.Sprintf("ALTER TABLE %s REBUILD PARTITION ALL", g.t.Name)
	}
	return fmt.Sprintf(oneOf(g.intn, []string{"ALTER TABLE %s FORCE", "OPTIMIZE TABLE %s"}), g.t.Name)
}

// partition changes how a table is partitioned.
func (g change) partition() string {
	ways := []string{"ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 1", "REMOVE PARTITIONING"}
	switch g.t.partitioned {
	case "":
		return ""
	case "partition-range":
		ways = []string{"TRUNCATE PARTITION p1", "REMOVE PARTITIONING"}
	case "partition-list":
		ways = []string{"TRUNCATE PARTITION p1"}
	}
	return fmt.Sprintf("ALTER TABLE %s %s", g.t.Name, oneOf(g.intn, ways))
}

func (g change) analyze() string {
	if g.grammar.mysql {
		return "ANALYZE TABLE " + g.t.Name
	}
	return "ANALYZE " + g.t.Name
}

func (g change) flush() string { return "FLUSH TABLES " + g.t.Name }

func (g change) truncate() string {
	if g.t.Referenced {
		return ""
	}
	return "TRUNCATE TABLE " + g.t.Name
}
