// Package oracle holds what all oracles share: the descriptor of an oracle, the form of a finding, the names of the
// anomalies, and, as data, what each product promises at each isolation level. It is pure: no clock, no input or output.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/statement/condition"
)

// Oracle describes one oracle for lists and help texts.
type Oracle struct {
	Name string // as in --oracle and the package's name
	Doc  string // first line: what it finds; then what it needs and where it comes from
}

// Kind says what a finding means for its reader.
type Kind string

// The kinds (DESIGN section 2).
const (
	KindViolation Kind = "violation" // the product broke what it promises at that level
	KindAnomaly   Kind = "anomaly"   // the level allows it, but no serial execution could have produced it
	KindPermitted Kind = "permitted" // looks like a violation, and the vendor documents why it is none
	KindUnknown   Kind = "unknown"   // could not be decided
)

// Class is an anomaly's formal name, or the comparison of a re-executing oracle that failed.
type Class = anomaly.Class

// EdgeKind is the kind of a dependency between two transactions.
type EdgeKind string

// The kinds of edges (notation of Adya 1999, section 3.2; so and rt as in Elle).
const (
	EdgeWW EdgeKind = "ww" // From's version precedes To's version of the row
	EdgeWR EdgeKind = "wr" // To read From's version
	EdgeRW EdgeKind = "rw" // From read a version that precedes To's version
	EdgeSO EdgeKind = "so" // same session, From ended before To began
	EdgeRT EdgeKind = "rt" // From was answered before To was sent
	// EdgeRequest: From and To belong to one request of the application, so no other request comes between them.
	EdgeRequest EdgeKind = "request"
)

// Statement is a statement that takes part in a finding.
type Statement struct {
	N    int    `json:"n"`
	SQL  string `json:"sql,omitempty"`
	Verb string `json:"verb,omitempty"`
	From uint64 `json:"from,omitempty"` // ticks, see history.Event
	To   uint64 `json:"to,omitempty"`
	At   int64  `json:"at,omitempty"` // wall clock, nanoseconds since 1970; 0: not known
	// Tags are what the application said of it ("route=/buy"), where that was captured.
	Tags []string `json:"tags,omitempty"`
	// Params are the values of its parameters, as they would be written in SQL, where that was captured: "$1 = 4".
	Params []string `json:"params,omitempty"`
}

// codeTags are the tags that name a place in the application's code: OpenTelemetry's attributes, older sqlcommenter libraries, Rails.
var codeTags = struct{ file, line []string }{
	[]string{"code.filepath", "code.file.path", "code_filepath", "file", "source_location"}, []string{"code.lineno", "code.line.number", "code_lineno", "line"},
}

// Code is the place in the application's code that sent the statement, as its tags name it; the file is empty where they do not, and line is 0.
func (s *Statement) Code() (file string, line int) {
	value := func(keys []string) string {
		for _, key := range keys {
			for _, tag := range s.Tags {
				if k, v, _ := strings.Cut(tag, "="); strings.EqualFold(k, key) && v != "" {
					return v
				}
			}
		}
		return ""
	}
	number := func(text string) int {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return 0
		}
		return int(n)
	}
	file = value(codeTags.file)
	if line = number(value(codeTags.line)); line == 0 {
		if i := strings.LastIndexByte(file, ':'); i > 0 && number(file[i+1:]) > 0 {
			file, line = file[:i], number(file[i+1:])
		}
	}
	return file, line
}

// Transaction is a transaction that takes part in a finding.
type Transaction struct {
	Label string `json:"label"` // "T1", "T2", ... in the finding's texts
	ID    uint64 `json:"txn"`   // number in the history
	// Proxy and Number say whose history it is from, and its number there, where the histories of several proxies were judged as one.
	Proxy    string          `json:"proxy,omitempty"`
	Number   uint64          `json:"number,omitempty"`
	Session  uint64          `json:"session"`
	Engine   string          `json:"engine,omitempty"`
	Server   string          `json:"server,omitempty"`
	Database string          `json:"database,omitempty"`
	User     string          `json:"user,omitempty"`
	Client   string          `json:"client,omitempty"`
	Backend  uint64          `json:"backend,omitempty"`
	Level    string          `json:"level,omitempty"` // empty: not known
	Implicit bool            `json:"implicit,omitempty"`
	Outcome  history.Outcome `json:"outcome"`
	From     uint64          `json:"from,omitempty"`
	To       uint64          `json:"to,omitempty"`
	EndedAt  int64           `json:"ended_at,omitempty"`
	// Tags are what the application said of it ("route=/buy"), where that was captured.
	Tags []string `json:"tags,omitempty"`
	// Request is the one that it is part of, where requests were judged.
	Request string `json:"request,omitempty"`
	// Statements are those that carry an edge, in order.
	Statements []Statement `json:"statements,omitempty"`
}

// Edge is one dependency of a finding and the evidence for it. From and To index Finding.Transactions.
type Edge struct {
	From int         `json:"from"`
	To   int         `json:"to"`
	Kind EdgeKind    `json:"kind"`
	Row  history.Row `json:"row,omitzero"`
	// Name is what people know the row by ("id=1"), where a statement told it.
	Name string `json:"name,omitempty"`
	// FromVersion is the version that From wrote (ww, wr) or read (rw); ToVersion the one that To wrote (ww, rw) or
	// read (wr). A deletion's version is printed as "deleted".
	FromVersion string `json:"from_version,omitempty"`
	ToVersion   string `json:"to_version,omitempty"`
	// FromStatement and ToStatement are numbers within their transactions; 0: that statement was not captured and the
	// write is known by the version's own stamp.
	FromStatement int `json:"from_statement,omitempty"`
	ToStatement   int `json:"to_statement,omitempty"`
	// FromValues and ToValues are column values of the row: what a SELECT gave to the client, or what an UPDATE assigned. Of an assigned column whose
	// value is not certain, the text is empty.
	FromValues []Value `json:"from_values,omitempty"`
	ToValues   []Value `json:"to_values,omitempty"`
	// Columns are those that both assigned (ww); empty if that is not known, or there are none.
	Columns []string `json:"columns,omitempty"`
	// Condition is what the reader asked for, for a dependency over the rows that a condition chose or passed over; "true" if it asked for all rows.
	Condition string `json:"condition,omitempty"`
	// Groups is the group of the row, as a condition, where the reader asked for groups of these rows.
	Groups string `json:"groups,omitempty"`
	// Found is how many rows the reader got for it, where that is known.
	Found *int   `json:"found,omitempty"`
	Text  string `json:"text"` // one sentence that says why From precedes To
}

// Finding is one result of an oracle.
type Finding struct {
	Oracle string `json:"oracle"`
	ID     string `json:"id"` // fingerprint, "WC-2f81c0": equal for the same anomaly of the same statements
	Kind   Kind   `json:"kind"`
	Class  Class  `json:"class"`
	Name   string `json:"name,omitempty"` // everyday name; empty where none fits
	// Session is the session whose event completed the finding.
	Session uint64 `json:"session"`
	// Transactions take part, for a cycle in its order. Edges follow one another around the cycle, from a stale read on if
	// there is one; Edges[0] need not leave Transactions[0].
	Transactions []Transaction `json:"transactions"`
	Edges        []Edge        `json:"edges"`
	Tables       []string      `json:"tables"` // sorted
	// Level is the level that all transactions ran at, or "mixed", or empty if not known.
	Level string `json:"level,omitempty"`
	// Promised says that the product promises to prevent this at the level of every transaction that takes part.
	Promised bool `json:"promised"`
	// Rows says that the transactions depend on each other in a cycle by rows alone: by the columns that they read and changed there is none.
	Rows bool `json:"rows,omitempty"`
	// PreventedBy is the weakest level of the product that prevents it; empty if none does or the product is unknown.
	PreventedBy string   `json:"prevented_by,omitempty"`
	Source      string   `json:"source,omitempty"` // where the promise is written down
	Remedies    []Remedy `json:"remedies"`         // cheapest first
	Seen        int      `json:"seen"`             // how often this fingerprint was found up to now
	FirstAt     int64    `json:"first_at,omitempty"`
	// Difference is the evidence of the re-executing oracles (wss, troc, txcheck); nil for those that find cycles. Then
	// Transactions and Edges are empty.
	Difference *Difference `json:"difference,omitempty"`
}

// Parties are the sessions that take part, and the one that completed it.
func (f *Finding) Parties() []uint64 {
	list := []uint64{f.Session}
	for i := range f.Transactions {
		if s := f.Transactions[i].Session; !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// Title is the everyday name, or the class where there is none.
func (f *Finding) Title() string {
	return cmp.Or(f.Name, string(f.Class))
}

// RowText names the edge's row for people.
func (e *Edge) RowText() string {
	switch {
	case e.Name != "":
		return e.Row.Table + " " + e.Name
	case e.Row.Key != "":
		return e.Row.Table + " " + e.Row.Key
	}
	return "a row of " + e.Row.Table
}

// ByCondition reports whether the dependency is over the rows that a condition chose or passed over: the reader need not have read the edge's row.
func (e *Edge) ByCondition() bool { return e.Condition != "" }

// Asked words what a reader by a condition asked for: it "read all" rows of a table, or "asked for" the rows where something holds, or for groups of them.
func (e *Edge) Asked(rows string) (verb, text string) {
	verb, among := "asked for", ""
	if e.Groups != "" {
		verb, among = "asked for groups of", ", that of "+e.Groups+" among them"
	}
	switch {
	case e.Condition != condition.Always.Words():
		return verb, rows + " where " + e.Condition + among
	case e.Groups != "":
		return verb, rows + among
	}
	return "read all", rows
}

// FoundText says how many rows the reader found, if that is known.
func (e *Edge) FoundText() string {
	switch {
	case e.Found == nil:
		return ""
	case *e.Found == 0:
		return " and found none"
	}
	return fmt.Sprintf(" and found %d", *e.Found)
}
