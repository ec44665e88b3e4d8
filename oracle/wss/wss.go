// Package wss is the oracle WriteCheck (Cui et al., "Simple Testing Can Expose Most Critical Transaction Bugs", PVLDB 18(8), 2025):
// write-specific serializability. The final state of a concurrent schedule, and the success of each write in it, must be those of
// the serial schedule of the same transactions in the order of their ends.
//
// A difference is judged by a model (model.go): the rules that the product documents for writes at each level. Where they give exactly
// what was observed, the difference is permitted, and the rule is its cause; else it is a violation.
package wss

import (
	"cmp"
	"context"
	"fmt"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Name is the oracle's.
const Name = "wss"

// Oracle describes it.
func Oracle() oracle.Oracle {
	return oracle.Oracle{Name: Name, Doc: `final states and writes that differ from the serial schedule in the order of commits
It executes the transactions one after the other (tx-WSS), and their statements in autocommit (stmt-WSS), on the same initial database and
compares tables and the success of each write; at SERIALIZABLE of engines that lock what they read, also what was read.
After Cui et al., PVLDB 18(8), 2025 (WriteCheck).`}
}

// Options of Check.
type Options struct {
	// Generated are the columns whose values the server takes from a counter, by table: AUTO_INCREMENT, serial, identity. Nil: they are
	// read from the setup's text.
	Generated map[string][]string
	// Evaluations bounds how many statements the model may evaluate for one schedule; 0: a default.
	Evaluations int
}

// Check compares a schedule with its serial schedules. The stage must be of the same product and level. An error says that the stage
// cannot go on.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, o Options) (schedule.Verdict, error) {
	if s.Crashed || s.Trouble != "" {
		return schedule.Verdict{Unknown: "the schedule did not come to its end: " + cmp.Or(s.Trouble, "the server or a connection ended")}, nil
	}
	c := &check{s: s, dbms: s.DBMS(), stage: stage, options: o, transactions: s.Transactions()}
	c.generated = o.Generated
	if c.generated == nil {
		c.generated = generatedColumns(s.Setup)
	}
	if why := c.undecidable(); why != "" {
		return schedule.Verdict{Unknown: why}, nil
	}
	if err := stage.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
		return schedule.Verdict{}, fmt.Errorf("wss: %w", err)
	}
	err := c.run(ctx)
	return c.verdict, err
}

// check is one call of Check.
type check struct {
	s            *schedule.Schedule
	dbms         *product.Product
	stage        schedule.Stage
	options      Options
	transactions []schedule.Transaction // First Commit/Rollback First Scheduled (WriteCheck, section 3.3)
	generated    map[string][]string
	fresh        bool // the stage is as Prepare left it
	verdict      schedule.Verdict
}

// run executes both serial schedules and compares.
func (c *check) run(ctx context.Context) error {
	c.fresh = true
	tx, err := c.execute(ctx, c.txPlan(c.transactions))
	if err != nil {
		return err
	}
	found := c.compare(oracle.WSSTx, tx)
	if plan, why := c.stmtPlan(); why != "" {
		c.verdict.Note("stmt-WSS was not checked: %s", why)
	} else if plan != nil {
		stmt, err := c.execute(ctx, plan)
		if err != nil {
			return err
		}
		found = append(found, c.compare(oracle.WSSStmt, stmt)...)
	}
	if len(found) == 0 {
		return nil
	}
	return c.judge(ctx, found)
}

// undecidable says why nothing can be concluded from the schedule at all; empty: something can.
func (c *check) undecidable() string {
	if why := c.s.Holds(); why != "" {
		return why
	}
	if m := c.s.Varies(); m != "" {
		return "the setup makes another database each time: " + m
	}
	if why := c.s.Calls(); why != "" {
		return why
	}
	for i := range c.transactions {
		t := &c.transactions[i]
		if t.Outcome == history.OutcomeUnknown {
			return fmt.Sprintf("whether transaction %d of session %s was committed is not known: its connection ended", t.N, c.s.Sessions[t.Session].Name)
		}
		if t.Outcome != history.OutcomeCommitted {
			continue
		}
		for _, n := range t.Steps {
			st := &c.s.Steps[n].Statement
			switch {
			case schedule.Upkeep(c.s.Setup, st):
			case isRead(st) && !st.Variables:
				// What it returned is not compared (compareReads looks at Volatile, too).
			case st.Control.Verb != statement.ControlNone:
			case st.Variables:
				return fmt.Sprintf("%s depends on what its session did before (WriteCheck, section 2.2, footnote 3): writes must be independent of earlier reads", c.s.Steps[n].Name)
			case schedule.Skips(st):
				return c.s.Steps[n].Name + " writes what SKIP LOCKED did not leave out, which depends on who runs at the same time"
			case st.Volatile != "":
				return fmt.Sprintf("%s may do something else each time: %s", c.s.Steps[n].Name, st.Volatile)
			}
		}
	}
	return c.s.Untransacted()
}

// isRead reports whether a statement only reads. A SELECT that locks reads too: its locks end with its transaction.
func isRead(st *statement.Statement) bool {
	return st.Verb == "select" && !st.Unparsed && len(st.Targets()) == 0
}

// isWrite reports whether a statement is a data manipulation statement (WriteCheck, section 2.2: write operation).
func isWrite(st *statement.Statement) bool {
	switch st.Verb {
	case "insert", "replace", "update", "delete", "merge":
		return true
	}
	return len(st.Targets()) > 0 && !st.DDL
}
