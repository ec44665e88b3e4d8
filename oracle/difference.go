package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/trace/lex"
)

// The classes of what the re-executing oracles find: which comparison failed. Finding.Name says what differed.
const (
	WSSTx   Class = "wss-tx"   // transaction-level write-specific serializability (WriteCheck, definition 1)
	WSSStmt Class = "wss-stmt" // statement-level (WriteCheck, definition 2)
	Troc    Class = "troc"     // the statement's own database view (Troc, section III-E)
	// Overblocking is a wait that no documented lock explains.
	Overblocking Class = "overblocking"

	TxCheck Class = "txcheck" // a topological order of the statement-dependency graph (TxCheck, section 3)
	Radar   Class = "radar"   // the raw database (Radar, section 3.4)
	TLP     Class = "tlp"     // ternary logic partitioning (Rigger and Su, OOPSLA 2020)
	NoREC   Class = "norec"   // non-optimizing reference engine construction (Rigger and Su, ESEC/FSE 2020)
	DQE     Class = "dqe"     // differential query execution (Song et al., ICSE 2023)
	Serial  Class = "serial"  // serializability of whole sessions by values (package serial)
	Crash   Class = "crash"   // the server or a connection ended, or an internal error
)

// What differed.
const (
	NameFinalState = "different final state"
	NameResult     = "different result"
	NameWrite      = "different success of a write" // done on one side, refused on the other for a reason that is no error of one side only
	NameError      = "error on one side only"       // a result on one side and an error on the other, or two different errors
	NameBlocking   = "a statement did not wait"
	// NameOverblocking is the opposite.
	NameOverblocking = "a statement waited that need not"
	NameDeadlock     = "a deadlock that no locks explain"
	NameSerial       = "not serializable"
	NameCrash        = "crash"
	NameInternal     = "internal error"
	NameHang         = "hang" // a statement, or the server, that does not answer and waits for nobody
)

// Difference is the evidence of a finding that compares two executions: what was expected by which rule, and what was seen.
type Difference struct {
	// Rule says in one sentence what was expected and by which rule of which paper or manual.
	Rule string `json:"rule"`
	// Step is the scenario's step that differs, Session its session and SQL its text; all empty where only the final state differs.
	Step    string `json:"step,omitempty"`
	Session string `json:"session,omitempty"`
	SQL     string `json:"sql,omitempty"`
	// Table is the table that differs in the final state.
	Table    string `json:"table,omitempty"`
	Expected Side   `json:"expected"`
	Observed Side   `json:"observed"`
	// Reference is the execution that gave what was expected, a statement a line, each with its session's name in front:
	// "T1: UPDATE t SET ...".
	Reference []string `json:"reference,omitempty"`
	// Parts are the statements whose answers the rule compares, each with its own; nil where the rule compares executions. Opinion says who
	// tells which of them is wrong; empty: nobody could. SQL is the first wrong one.
	Parts   []Part `json:"parts,omitempty"`
	Opinion string `json:"opinion,omitempty"`
	// Origin is the innermost call of a function that has another type in each of two databases, and Types says which ones; empty: there is none.
	Origin string `json:"origin,omitempty"`
	Types  string `json:"types,omitempty"`
	// Reason is why the product does so, and for KindPermitted why its vendor permits it (Finding.Source has the vendor's own
	// words' place). Cause is its short name, by which such findings are counted: "semi-consistent read".
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"`
	// Reproduced and Attempts say how often the finding was there when the case was executed again. Flaky is
	// true if that was not every time.
	Reproduced int  `json:"reproduced"`
	Attempts   int  `json:"attempts"`
	Flaky      bool `json:"flaky,omitempty"`
}

// Function is that of Origin, in lower case; empty: none is known.
func (d *Difference) Function() string {
	name, _, _ := strings.Cut(d.Origin, "(")
	return strings.ToLower(name)
}

// Part is one of the statements whose answers a rule compares.
type Part struct {
	SQL      string `json:"sql"`
	Database string `json:"database,omitempty"` // RawDatabase; empty: the case's
	Answer   Side   `json:"answer"`
	Wrong    bool   `json:"wrong,omitempty"` // by a third opinion
}

// RawDatabase is the database without optional metadata (Radar, section 3.4).
const RawDatabase = "raw"

// Wrong gives the places of the parts that a third opinion calls wrong.
func (d *Difference) Wrong() (list []int) {
	for i := range d.Parts {
		if d.Parts[i].Wrong {
			list = append(list, i)
		}
	}
	return list
}

// Side is one of the two results that are compared.
type Side struct {
	Text    string      `json:"text,omitempty"` // in words, where it is no set of rows: "waits for T2", "error 1213: ..."
	Columns []string    `json:"columns,omitempty"`
	Rows    [][]*string `json:"rows,omitempty"` // nil is NULL
	// Omitted counts rows that are left out here since both sides have them.
	Omitted int `json:"omitted,omitempty"`
}

// fingerprint is that of a finding with a Difference: the same oracle, rule, cause and statement gives the same one, whatever the values.
func (f *Finding) fingerprint() string {
	d := f.Difference
	sum := sha256.Sum256([]byte(strings.Join([]string{string(f.Class), f.Name, d.Cause, d.Table, statement.Shape(d.SQL, lex.PostgreSQL)}, "\x02")))
	return "WC-" + hex.EncodeToString(sum[:3])
}

// Because gives a finding that has a difference a cause that is known of the product.
func (f *Finding) Because(c *product.Cause) {
	f.Difference.Cause, f.Difference.Reason, f.Source = string(c.ID), c.Reason, c.Source
}
