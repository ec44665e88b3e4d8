package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Class groups types whose values can be compared with each other.
type Class int

// The classes.
const (
	Integer Class = iota
	Decimal
	Float
	Text
	Binary
	Date
	DateTime
	Time
	Year
	Boolean
	Enum
	JSON
	UUID
	Array
)

// Numeric reports whether the class has numbers.
func (c Class) Numeric() bool { return c == Integer || c == Decimal || c == Float }

// Type is the type of a column.
type Type struct {
	SQL   string // as in CREATE TABLE, without collation
	Class Class
	// Least and Most bound integers.
	Least, Most int64
	// Length is the most characters or bytes of a text or binary value; 0: no limit that matters.
	Length int
	// Collation is the one given to the column; empty: the database's own.
	Collation string
	// Exact: equal values are the same value. A text column whose collation takes different texts as equal is not, nor is one whose
	// collation is not known; then what GROUP BY or MIN shows depends on the plan.
	Exact bool
	// Prefix: an index needs a length (TEXT and BLOB of the MySQL family).
	Prefix bool
	// features of the type itself
	features []string
}

// nationalBinary is the binary collation of the MySQL family's default character set.
const nationalBinary = "utf8mb4_bin"

// weighted is a type with how common it is.
type weighted struct {
	weight int
	Type
}

// enumMembers are the members of every ENUM type.
func enumMembers() []string { return []string{"a", "b", "c"} }

func quoted(texts []string) string { return "'" + strings.Join(texts, "', '") + "'" }

// types are those of the dialect.
func (g *chooser) types() []weighted {
	integer := func(weight int, sql string, bits uint, feature string) weighted {
		return weighted{weight, Type{SQL: sql, Class: Integer, Least: -1 << (bits - 1), Most: 1<<(bits-1) - 1, Exact: true, features: []string{feature}}}
	}
	other := func(weight int, sql string, class Class, length int, feature string) weighted {
		return weighted{weight, Type{SQL: sql, Class: class, Length: length, Exact: class != Text, features: []string{feature}}}
	}
	if g.grammar.embedded {
		return g.typesOfSQLite(integer, other)
	}
	list := []weighted{
		integer(6, "SMALLINT", 16, "type-smallint"), integer(36, "INT", 32, "type-int"), integer(8, "BIGINT", 64, "type-bigint"),
		other(7, "DECIMAL(10,2)", Decimal, 0, "type-decimal"), other(4, "DOUBLE PRECISION", Float, 0, "type-double"),
		other(16, "VARCHAR(20)", Text, 20, "type-varchar"), other(4, "CHAR(5)", Text, 5, "type-char"), other(4, "TEXT", Text, 0, "type-text"),
		other(5, "DATE", Date, 0, "type-date"), other(2, "TIME", Time, 0, "type-time"), other(4, "BOOLEAN", Boolean, 0, "type-boolean"),
	}
	if g.grammar.named {
		list = append(list, other(3, "REAL", Float, 0, "type-float"), other(3, "BYTEA", Binary, 0, "type-binary"),
			other(4, "TIMESTAMP", DateTime, 0, "type-datetime"), other(4, "kind", Enum, 0, "type-enum"), other(4, "JSONB", JSON, 0, "type-json"),
			other(1, "UUID", UUID, 0, "type-uuid"), other(1, "INT[]", Array, 0, "type-array"))
		for i := range list {
			list[i].Exact = true // PostgreSQL's collations are deterministic unless made otherwise (manual, 24.2.2.4)
		}
	} else {
		list = append(list, integer(4, "TINYINT", 8, "type-tinyint"), integer(2, "MEDIUMINT", 24, "type-mediumint"),
			other(3, "FLOAT", Float, 0, "type-float"), other(3, "VARBINARY(20)", Binary, 20, "type-binary"), other(1, "BLOB", Binary, 0, "type-blob"),
			other(4, "DATETIME", DateTime, 0, "type-datetime"), other(1, "YEAR", Year, 0, "type-year"),
			other(4, "ENUM("+quoted(enumMembers())+")", Enum, 0, "type-enum"), other(4, "JSON", JSON, 0, "type-json"),
			other(1, "SET("+quoted(enumMembers())+")", Enum, 0, "type-set"), other(1, "UUID", UUID, 0, "type-uuid"))
		for i := range list {
			list[i].Prefix = list[i].SQL == "TEXT" || list[i].SQL == "BLOB"
		}
	}
	return list
}

// typesOfSQLite are declared types as applications have them: what they do is to give the column an affinity (sqlite.org/datatype3.html,
// section 3.1). In a STRICT table only few are allowed (sqlite.org/stricttables.html).
func (g *chooser) typesOfSQLite(integer func(int, string, uint, string) weighted, other func(int, string, Class, int, string) weighted) []weighted {
	list := []weighted{
		integer(30, "INT", 32, "type-int"), other(4, "REAL", Float, 0, "type-float"), other(14, "TEXT", Text, 0, "type-text"), other(4, "BLOB", Binary, 0, "type-blob"),
	}
	untyped := integer(4, "", 32, "type-untyped")
	if g.marks["strict"] {
		untyped.SQL = "ANY"
	} else {
		list = append(list, integer(6, "SMALLINT", 16, "type-smallint"), integer(8, "BIGINT", 64, "type-bigint"), other(7, "DECIMAL(10,2)", Decimal, 0, "type-decimal"),
			other(4, "DOUBLE PRECISION", Float, 0, "type-double"), other(14, "VARCHAR(20)", Text, 20, "type-varchar"), other(4, "CHAR(5)", Text, 5, "type-char"),
			other(5, "DATE", Date, 0, "type-date"), other(2, "TIME", Time, 0, "type-time"), other(4, "DATETIME", DateTime, 0, "type-datetime"),
			other(4, "BOOLEAN", Boolean, 0, "type-boolean"), other(4, "JSON", JSON, 0, "type-json"))
	}
	list = append(list, untyped)
	for i := range list {
		list[i].Exact = true // BINARY, unless another collation is asked for
	}
	return list
}

// anyType gives a type at random. Only those that fit can be it; at least one does.
func (g *chooser) anyType(fits func(Type) bool) Type {
	var chosen Type
	var options []option
	for _, w := range g.types() {
		options = append(options, option{w.weight, w.features[0], fits(w.Type), func() string { chosen = w.Type; return "" }})
	}
	if !g.anyOpen(options) {
		return integer() // something must be there, whatever is excluded
	}
	g.choose(options)
	switch {
	case chosen.Class == Integer && g.grammar.mysql && g.use("type-unsigned", fairly):
		chosen.Most = 2*chosen.Most + 1 // BIGINT's would not fit; what is made is far below
		if chosen.SQL == "BIGINT" {
			chosen.Most = 1<<63 - 1
		}
		chosen.SQL, chosen.Least = chosen.SQL+" UNSIGNED", 0
		chosen.features = append(slices.Clone(chosen.features), "type-unsigned")
	case chosen.Class == Text && g.use("collation", fairly):
		chosen.features = append(slices.Clone(chosen.features), "collation")
		chosen.Collation = g.grammar.collations[0]
		if several := g.grammar.collations; len(several) > 1 {
			chosen.Collation = oneOf(g.intn, several)
		}
		chosen.Exact = exact(chosen.Collation)
	case chosen.Class == Text && g.grammar.folds:
		chosen.Exact = false
	}
	return chosen
}

// anyOpen reports whether one of the options can be taken.
func (g *chooser) anyOpen(options []option) bool {
	return slices.ContainsFunc(options, func(o option) bool { return o.can && (o.feature == "" || g.has(o.feature)) })
}

// Value is a constant of a type.
type Value struct {
	SQL  string // a literal, NULL included
	Null bool
	// Key is the same for values that a unique index may take as equal: texts without regard to case.
	Key    string
	Number float64 // of numbers and booleans
	Text   string  // of texts, without quotes
}

func null() Value { return Value{SQL: "NULL", Null: true, Key: "NULL"} }

// pool holds the few constants that a database, its conditions and its writes share, so that they meet (Troc III-C calls it value
// cache).
type pool struct {
	numbers []int
	texts   []string
}

// stock draws the constants of a database.
func (g *chooser) stock() pool {
	return pool{
		numbers: append([]int{0, 1, 2}, some(g.intn, []int{-1, 3, 4, 5, 7, 10, 11, 20, 42, 100}, 3)...),
		texts:   append([]string{"", "a", "b"}, some(g.intn, []string{"A", "B", "ab", "aB", "b1", "1", "10", "x y", "it''s", "abcde"}, 3)...),
	}
}

// value draws a constant of the type, mostly from the pool; never NULL.
func (g *chooser) value(p pool, t Type) Value {
	n := oneOf(g.intn, p.numbers)
	if g.chance(rarely) {
		n = g.between(-10, 50)
	}
	switch t.Class {
	case Integer:
		if t.Least == 0 && n < 0 {
			n = -n
		}
		return number(fmt.Sprint(n), float64(n))
	case Decimal:
		cents := oneOf(g.intn, []int{0, 0, 50, 25})
		if n < 0 {
			cents = 0
		}
		return number(fmt.Sprintf("%d.%02d", n, cents), float64(n)+float64(cents)/100)
	case Float: // halves are exact in binary
		if g.chance(300) {
			return number(fmt.Sprintf("%d.5", max(n, 0)), float64(max(n, 0))+0.5)
		}
		return number(fmt.Sprint(n), float64(n))
	case Text:
		text := oneOf(g.intn, p.texts)
		if g.chance(rarely) {
			text = oneOf(g.intn, []string{"c", "C", "zz", "0"})
		}
		return Value{SQL: "'" + text + "'", Key: strings.ToLower(text), Text: text}
	case Binary:
		hex := fmt.Sprintf("%02X", max(n, 0)+48)
		return Value{SQL: fmt.Sprintf(g.grammar.binary, hex), Key: hex}
	case Boolean:
		if n%2 == 0 {
			return number("FALSE", 0)
		}
		return number("TRUE", 1)
	case Enum:
		member := enumMembers()[max(n, 0)%3]
		return Value{SQL: "'" + member + "'", Key: member}
	case UUID:
		sql := fmt.Sprintf("'00000000-0000-4000-8000-%012d'", max(n, 0))
		return Value{SQL: sql, Key: sql}
	case Array: // without braces, which a scenario cannot hold
		sql := fmt.Sprintf("ARRAY[%d, %d]", n, oneOf(g.intn, p.numbers))
		return Value{SQL: sql, Key: sql}
	case JSON:
		sql := fmt.Sprintf("'[%d, %d]'", n, oneOf(g.intn, p.numbers))
		return Value{SQL: sql, Key: sql}
	}
	return g.moment(t.Class, max(n, 0)%28+1)
}

func number(sql string, n float64) Value { return Value{SQL: sql, Key: fmt.Sprint(n), Number: n} }

// moment draws a date or time for a number from 1 to 28.
func (g *chooser) moment(class Class, n int) Value {
	sql := ""
	switch class {
	case Date:
		sql = fmt.Sprintf("DATE '2024-01-%02d'", n)
	case DateTime:
		sql = fmt.Sprintf("TIMESTAMP '2024-01-%02d %02d:30:00'", n, n%24)
	case Time:
		sql = fmt.Sprintf("TIME '%02d:15:00'", n%24)
	case Year:
		return number(fmt.Sprint(2000+n), float64(2000+n))
	}
	if g.grammar.embedded { // moments are texts
		_, sql, _ = strings.Cut(sql, " ")
	}
	return Value{SQL: sql, Key: sql}
}
