package mysql

import (
	"fmt"
	"strconv"
	"strings"

	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// writersSize is the length of wc_writers: a count, three stamps, separators.
const writersSize = 20 + 1 + 3*stampLimit + 3

// Instrumentable reports whether the hidden columns can be added to a table, and if not why.
func Instrumentable(rel *rewrite.Relation) (why string, ok bool) {
	switch {
	case rel.Kind != "table" && rel.Kind != "partitioned":
		return "a " + rel.Kind, false
	case !strings.EqualFold(rel.Engine, "InnoDB"):
		return "storage engine " + rel.Engine, false
	}
	return "", true
}

// AddColumns are the statements that give a table the hidden columns. They may be executed again. An ALTER TABLE is
// atomic, so a crash leaves a table with both columns or with none.
//
// The row id is the server's UUID_SHORT(): MariaDB evaluates the default for each existing row while it copies the table,
// which fires neither triggers nor ON UPDATE CURRENT_TIMESTAMP, and for each new one, so that a primary key that is
// inserted again gets another id. wc_writers cannot fill itself by DEFAULT (@wc_t): MariaDB 10.11.19 accepts
// that, ignores the value in sessions other than the first, and crashes with several of them (measured).
//
// MySQL: see rowkey.go, TiDB: tidb.go. wc_writers comes last, so that a table that has it has all.
func AddColumns(flavor Flavor, rel *rewrite.Relation) []string {
	switch flavor {
	case MySQL:
		return addQuietly(rel)
	case TiDB:
		return addVisibly(rel)
	}
	ifNot := ""
	if flavor == MariaDB {
		ifNot = "IF NOT EXISTS "
	}
	const invisible = " INVISIBLE"
	var adds []string
	if flavor == MariaDB || !has(rel, columnRowID) {
		adds = append(adds, fmt.Sprintf("ADD COLUMN %s%s BIGINT UNSIGNED NOT NULL DEFAULT (UUID_SHORT())%s", ifNot, columnRowID, invisible))
	}
	if flavor == MariaDB || !has(rel, columnWriters) {
		adds = append(adds, addWriters(ifNot, invisible))
	}
	if len(adds) == 0 {
		return nil
	}
	return []string{"ALTER TABLE " + mysqlsyntax.Quote(rel.Schema) + "." + mysqlsyntax.Quote(rel.Name) + " " + strings.Join(adds, ", ")}
}

// AddedRows is what a CatalogQuery tells of the columns that AddColumns has added, so that the server need not be asked again; nil where that is not certain.
func AddedRows(flavor Flavor, rel *rewrite.Relation) [][]string {
	if flavor != MariaDB || has(rel, columnRowID) || has(rel, columnWriters) {
		return nil
	}
	place := len(rel.Columns)
	return [][]string{
		{"C", rel.Schema, rel.Name, columnRowID, "bigint(20) unsigned", "INVISIBLE|NO||=uuid_short()", strconv.Itoa(place + 1)},
		{"C", rel.Schema, rel.Name, columnWriters, fmt.Sprintf("varchar(%d)", writersSize), "INVISIBLE|NO|ascii_bin|='0:'", strconv.Itoa(place + 2)},
	}
}

func addWriters(ifNot, invisible string) string {
	return fmt.Sprintf("ADD COLUMN %s%s VARCHAR(%d) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '0:'%s", ifNot, columnWriters, writersSize, invisible)
}

// addQuietly is AddColumns for MySQL: changes of the table that the server carries out at once (ALGORITHM=INSTANT), and an
// UPDATE that gives each row its id. ON UPDATE CURRENT_TIMESTAMP is kept from doing its work by assigning the column. A table
// with triggers is not filled, since they would run; its rows are not seen anyway.
func addQuietly(rel *rewrite.Relation) []string {
	if has(rel, columnWriters) && has(rel, columnRowID) {
		return nil
	}
	alter := "ALTER TABLE " + mysqlsyntax.Quote(rel.Schema) + "." + mysqlsyntax.Quote(rel.Name) + " "
	var list []string
	if !has(rel, columnRowID) {
		list = append(list, alter+"ADD COLUMN "+columnRowID+" BIGINT UNSIGNED NULL DEFAULT 0 INVISIBLE")
	}
	list = append(list, alter+"ALTER COLUMN "+columnRowID+" SET DEFAULT (UUID_SHORT())")
	if !rel.HasTriggers {
		fill := "UPDATE " + mysqlsyntax.Quote(rel.Schema) + "." + mysqlsyntax.Quote(rel.Name) + " SET " + columnRowID + "=UUID_SHORT()"
		for _, c := range rel.Columns {
			if c.Touched {
				fill += "," + mysqlsyntax.Quote(c.Name) + "=" + mysqlsyntax.Quote(c.Name)
			}
		}
		list = append(list, fill+" WHERE "+columnRowID+"=0")
	}
	if !has(rel, columnWriters) {
		list = append(list, alter+addWriters("", " INVISIBLE"))
	}
	return list
}

// RemoveColumns are the statements that take the hidden columns away. They may be executed again.
func RemoveColumns(flavor Flavor, rel *rewrite.Relation) []string {
	ifExists := ""
	if flavor == MariaDB {
		ifExists = "IF EXISTS "
	}
	var drops []string
	for _, c := range []string{columnRowID, columnWriters} {
		if flavor == MariaDB || has(rel, c) {
			drops = append(drops, "DROP COLUMN "+ifExists+c)
		}
	}
	if len(drops) == 0 {
		return nil
	}
	return []string{"ALTER TABLE " + mysqlsyntax.Quote(rel.Schema) + "." + mysqlsyntax.Quote(rel.Name) + " " + strings.Join(drops, ", ")}
}

func has(rel *rewrite.Relation, column string) bool {
	for _, c := range rel.Columns {
		if strings.EqualFold(c.Name, column) {
			return true
		}
	}
	return false
}
