package statement

// Touch says what one statement of a text does to tables and to its session, as far as the text tells. What is not known for
// certain is TouchOpaque or TouchUnknown.
type Touch struct {
	Kind TouchKind
	// Reads and Writes are the names of tables, as the product compares them. A locking read writes. TouchDefine: Writes
	// are the tables of which is known from now on that more belongs to their rows than a statement that names them
	// shows (triggers, rules, foreign keys, ...), and Plain those that are made and have nothing of that kind.
	Reads, Writes, Plain []string
	Partial              bool   // TouchEnd: it ends a part of the transaction only (ROLLBACK TO SAVEPOINT)
	Snapshot             bool   // TouchBegin: it takes the snapshot
	Level                string // the isolation level that the statement asks for, as history.Event.Level; empty: none
}

// TouchKind is a kind of statement, by what the order of statements can matter for.
type TouchKind int

// The kinds. The zero value is the safe one.
const (
	TouchOpaque  TouchKind = iota // may do anything: change what names mean, how the session behaves, call what is not known
	TouchUnknown                  // touches tables that are not known, but defines nothing
	TouchDefine                   // makes or changes a table or what belongs to it
	TouchLocal                    // touches only its own session
	TouchBegin                    // begins a transaction
	TouchEnd                      // ends one
	TouchRead                     // reads without locks
	TouchWrite                    // writes or locks rows, and perhaps reads
)

// Harmless reports whether a built-in function of that name, in lower case, reads and changes nothing but its arguments, in
// PostgreSQL and in the MySQL family. A function of the user's that hides it takes a statement that is TouchOpaque.
func Harmless(function string) bool { return harmless[function] }

var harmless = map[string]bool{
	"abs": true, "array_agg": true, "avg": true, "bit_and": true, "bit_or": true, "bool_and": true, "bool_or": true, "ceil": true, "ceiling": true,
	"char_length": true, "coalesce": true, "concat": true, "concat_ws": true, "count": true, "every": true, "floor": true, "format": true,
	"generate_series": true, "greatest": true, "group_concat": true, "if": true, "ifnull": true, "isnull": true, "least": true, "left": true,
	"length": true, "lower": true, "lpad": true, "ltrim": true, "max": true, "md5": true, "min": true, "mod": true, "nullif": true, "pg_sleep": true,
	"power": true, "repeat": true, "replace": true, "right": true, "round": true, "row_number": true, "rpad": true, "rtrim": true, "sign": true,
	"sleep": true, "string_agg": true, "substr": true, "substring": true, "sum": true, "trim": true, "btrim": true, "trunc": true, "upper": true,
}
