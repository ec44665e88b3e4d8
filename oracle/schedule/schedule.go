// Package schedule holds what the re-executing oracles (wss, troc, txcheck) share: one execution of several sessions as it
// really happened, statement by statement, and the small interface through which an oracle executes something itself.
//
// It is pure. Statements are described by statement.Statement, which the dialects make (rewrite/mysql, rewrite/postgres).
package schedule

import (
	"iter"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/statement"
)

// Schedule is one execution: the actual concurrent schedule (WriteCheck, section 5.3), which differs from the submitted order
// where statements waited or transactions were aborted.
type Schedule struct {
	Product string // as history.Event.Engine: "mariadb"
	Version string // as the server tells it: "10.11.19"
	// Level is the level that every session begins at, as history.Event.Level. What a transaction really ran at is
	// Transaction.Level.
	Level string
	// Setup are the statements that made the database, in order. No statement of Steps is among them.
	Setup []string
	// Raw are the statements that the scenario gives for radar's raw database (#wirecheck: raw:); nil: radar makes it of Setup.
	Raw      []string
	Sessions []Session
	// Steps are all statements that were executed, in the order in which they finished: one that waited stands where it was
	// resumed. A step of the scenario that holds several statements is several here.
	Steps []Step
	Final []answer.Table // all tables at the end, when every transaction had ended
	// Trouble says why the execution did not come to its end; nothing can be concluded then. Crashed says that the server
	// ended, or ended a connection that nobody asked it to end.
	Trouble string
	Crashed bool
	// Hung says that the server gave no answer for long to what waits for nobody; Crashed is false then.
	Hung bool
	// Silent is the step that has no answer, where Hung; nil: it is not known.
	Silent *Step
	// Marks say why another execution of the same may go differently.
	Marks []string
}

func readsPast(text string) bool {
	lower := strings.ToLower(text) // to look for words takes a tenth of the time
	return (strings.Contains(lower, "timestamp") || strings.Contains(lower, "tidb_") || strings.Contains(lower, "_asof")) && past.MatchString(text)
}

// DBMS is what is known of the product.
func (s *Schedule) DBMS() *product.Product { return product.Of(s.Product) }

// past lets a session read what was committed some time ago (TiDB documentation, Stale Read; MariaDB, System-Versioned Tables).
var past = regexp.MustCompile(`(?i)\btransaction\b[^;]*\bas\s+of\s+timestamp\b|\b(?:tidb_snapshot|tidb_read_staleness|tidb_(?:enable_)?external_ts\w*|system_versioning_asof)\b`)

// Incomplete says why nothing can be concluded from the execution; empty: it came to its end, and what it saw does not depend on the clock.
func (s *Schedule) Incomplete() string {
	switch {
	case s.Trouble == "" && s.Crashed:
		return "the server ended"
	case s.Trouble == "" && s.says(readsPast):
		return "a session reads what was committed some time ago, which another execution does not find"
	}
	return s.Trouble
}

// Session is one client connection.
type Session struct {
	Name string
	// Setup are the statements executed in the session before the first step of any session. They are the session's settings; a
	// transaction that they leave open is in Steps, as if its statements had been steps.
	Setup []statement.Statement
}

// Step is a statement as it was executed.
type Step struct {
	Session   int    // index in Schedule.Sessions
	Name      string // of the scenario's step; several statements may share it
	Statement statement.Statement
	// Sent and Done are moments: they count what was sent and what finished, of all sessions, from 1. Everything that was done
	// before a step was sent has a smaller Done than its Sent.
	Sent, Done int
	// Waited says that it waited for a lock, For the sessions that it waited for as far as the server tells.
	Waited bool
	For    []int
	Answer answer.Result
	// Before and After are the states of the session's transaction.
	Before, After answer.State
	// Effect is what became of the transaction, and Reason why the statement failed.
	Effect answer.Effect
	Reason answer.Reason
}

// Failed reports whether the statement was refused.
func (s *Step) Failed() bool { return s.Answer.Err != nil || s.Effect == answer.EffectGone }

// Order is a step to be executed: in which session, called what.
type Order struct {
	Session int
	Name    string
	SQL     string
}

// Permutations gives a list in all orders, its own first, in the order of their places.
func Permutations[T any](list []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var walk func(done []T, left []T) bool
		walk = func(done, left []T) bool {
			if len(left) == 0 {
				return yield(slices.Clone(done))
			}
			for i, x := range left {
				if !walk(append(done, x), slices.Delete(slices.Clone(left), i, i+1)) {
					return false
				}
			}
			return true
		}
		walk(make([]T, 0, len(list)), list)
	}
}

// Items cuts what is behind an opening parenthesis at its commas, up to the closing one.
func Items(text string) (out []string) {
	depth, start := 0, 0
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return append(out, text[start:i])
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out, start = append(out, text[start:i]), i+1
		}
	}
	return append(out, text[start:])
}
