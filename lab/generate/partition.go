package generate

import (
	"fmt"
	"slices"
	"strings"
)

func partitionFeature(features []string) string {
	for _, f := range features {
		if strings.HasPrefix(f, "partition-") {
			return f
		}
	}
	panic("generate: no partitioning")
}

// choosePartition decides whether the table is partitioned, and by which column: an integer, since RANGE, LIST and HASH of the MySQL
// family take nothing else.
func (g *definer) choosePartition(t *Table) {
	for _, c := range t.Columns {
		if c.Class == Integer && c.Generated == "" && !c.auto && t.partition == nil {
			t.partition = c
		}
	}
	t.Partitioned = t.partition != nil && (g.favoredPartition() || g.chance(rarely)) && len(g.partitionings()) > 0
	if !t.Partitioned {
		t.partition = nil
	}
}

func (g *definer) partitionings() []string {
	var out []string
	for _, f := range []string{"partition-hash", "partition-range", "partition-list", "partition-key"} {
		if g.has(f) {
			out = append(out, f)
		}
	}
	return out
}

func (g *definer) favoredPartition() bool {
	return slices.ContainsFunc(g.partitionings(), func(f string) bool { return g.favored[f] })
}

// withPartition adds the column that the table is partitioned by, which every unique key must hold.
func (t *Table) withPartition(columns []*Column) []*Column {
	if t.partition == nil || slices.Contains(columns, t.partition) {
		return columns
	}
	return append(slices.Clone(columns), t.partition)
}

// partitioning writes how the table is partitioned.
func (g *definer) partitioning(db *Database, t *Table) (tail string, partitions []string) {
	ways := g.partitionings()
	if favored := slices.DeleteFunc(slices.Clone(ways), func(f string) bool { return !g.favored[f] }); len(favored) > 0 {
		ways = favored
	}
	way := oneOf(g.intn, ways)
	g.mark(way)
	t.partitioned = way
	column, cut := t.partition.Name, oneOf(g.intn, db.pool.numbers[1:3])
	if g.grammar.partitionOf {
		part := func(n int, bounds string) string {
			return fmt.Sprintf("CREATE TABLE %s_p%d PARTITION OF %s %s", t.Name, n, t.Name, bounds)
		}
		switch way {
		case "partition-hash":
			return " PARTITION BY HASH (" + column + ")", []string{
				part(0, "FOR VALUES WITH (MODULUS 2, REMAINDER 0)"), part(1, "FOR VALUES WITH (MODULUS 2, REMAINDER 1)")}
		case "partition-range":
			return " PARTITION BY RANGE (" + column + ")", []string{
				part(0, fmt.Sprintf("FOR VALUES FROM (MINVALUE) TO (%d)", cut)), part(1, fmt.Sprintf("FOR VALUES FROM (%d) TO (%d)", cut, cut+3)),
				part(2, "DEFAULT")}
		}
		return " PARTITION BY LIST (" + column + ")", []string{part(0, fmt.Sprintf("FOR VALUES IN (0, %d)", cut)), part(1, "DEFAULT")}
	}
	switch way {
	case "partition-hash":
		return fmt.Sprintf(" PARTITION BY HASH (%s) PARTITIONS 2", column), nil
	case "partition-key":
		return fmt.Sprintf(" PARTITION BY KEY (%s) PARTITIONS 2", column), nil
	case "partition-range":
		return fmt.Sprintf(" PARTITION BY RANGE (%s) (PARTITION p0 VALUES LESS THAN (%d), PARTITION p1 VALUES LESS THAN (%d), ", column, cut, cut+3) +
			"PARTITION p2 VALUES LESS THAN MAXVALUE)", nil
	}
	first, others := []string{"0", fmt.Sprint(cut)}, "DEFAULT"
	if !g.grammar.defaultPart { // no DEFAULT partition in MySQL, nor in older versions of TiDB
		var rest []string
		for n := range 101 {
			if n != 0 && n != cut {
				rest = append(rest, fmt.Sprint(n))
			}
		}
		others = "VALUES IN (" + list(rest) + ")"
		t.checks = append(t.checks, check{[]*Column{t.partition}, func(v []Value) bool { return !v[0].Null && v[0].Number >= 0 && v[0].Number <= 100 }})
	}
	return fmt.Sprintf(" PARTITION BY LIST (%s) (PARTITION p0 VALUES IN (%s), PARTITION p1 %s)", column, list(first), others), nil
}
