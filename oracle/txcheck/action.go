package txcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// The rows that the action of a foreign key changes keep their version key: no statement of the case assigns them one. But an action
// follows a change of a row of the table that is referred to, in the same transaction and at once, also where the constraint is checked later
// (PostgreSQL manual, CREATE TABLE: referential actions cannot be deferred; MySQL manual, 15.1.20.5). So the version sets of a statement that
// reads what actions may have changed hold the tables from which these come, too: where it saw a row there before or after a write, it saw what
// that write set off before or after. Writes keep their order in any case (Node.Constraint).

// ask reads the foreign keys from the catalog, and adds to each statement the tables from which actions lead to those that it reads. why says
// that the keys are not known. Where what the actions write is the server's choice, that is the plan's doubt.
func (c *plan) ask(ctx context.Context, s *schedule.Schedule, o *Options) (why string, err error) {
	const uncertain = "the database has foreign keys by which statements write more than their text tells, and "
	if err := o.Plain.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
		return "", fmt.Errorf("prepare the database: %w", err)
	}
	setup := strings.Join(s.Setup, ";\n")
	list, known, err := schedule.References(ctx, o.Plain, c.dbms.Product)
	switch {
	case err != nil:
		return "", err
	case !known:
		return uncertain + "its catalog cannot be read", nil
	}
	for _, r := range list {
		for _, name := range []string{r.Child, r.Parent} {
			if r.Acts && (r.Parts || c.table(statement.TableUse{Name: name}) == nil) {
				return uncertain + name + " is no plain table of the case", nil
			}
		}
	}
	var keys map[string][][]string
	transactions := s.Transactions()
	for _, x := range c.statements {
		if x.target != nil && awakens(setup, x) {
			if c.dbms.SubqueryEither && c.beside(list, setup, transactions, x) {
				c.doubt = uncertain + "which versions these see is not documented"
			}
			if keys == nil && o.Keys != nil {
				if keys, err = o.Keys(ctx); err != nil {
					return "", err
				}
			}
			if why := c.meet(list, x.target.name, schedule.Single(keys, &x.step.Statement, s.Final)); why != "" {
				c.doubt = uncertain + why
			}
		}
	}
	for i := range c.tables {
		if slices.ContainsFunc(list, func(r schedule.Reference) bool { return r.Acts && r.Child == c.tables[i].name }) {
			c.acted = append(c.acted, &c.tables[i])
		}
	}
	for _, x := range c.statements {
		for _, t := range slices.Clone(x.tables) {
			for _, name := range schedule.Acting(list, t.name, true) {
				source := c.table(statement.TableUse{Name: name})
				if !slices.Contains(x.sources, source) {
					x.sources = append(x.sources, source)
				}
				if !slices.Contains(x.tables, source) {
					x.tables = append(x.tables, source)
				}
			}
		}
	}
	return "", nil
}

// beside reports whether another transaction that ran at some time since the statement's began writes, also by an action, a table whose rows the actions of
// the statement choose: these are others in an older version.
func (c *plan) beside(list []schedule.Reference, setup string, transactions []schedule.Transaction, x *plannedStatement) bool {
	chosen := schedule.Acting(list, x.target.name, false)
	return slices.ContainsFunc(c.statements, func(y *plannedStatement) bool {
		if y.target == nil || x.tx < 0 || y.tx < 0 {
			return y.target != nil && y != x
		}
		mine, its := &transactions[x.tx], &transactions[y.tx]
		if mine.Session == its.Session || its.End < mine.Begin || its.Begin > x.step.Done {
			return false
		}
		written := []string{y.target.name}
		if awakens(setup, y) {
			written = append(written, schedule.Acting(list, y.target.name, false)...)
		}
		return slices.ContainsFunc(written, func(name string) bool { return slices.Contains(chosen, name) })
	})
}

// meet says why what actions from a table write may depend on the order in which rows are come to: two foreign keys lead to one of their
// tables, or, where actions are executed row by row (InnoDB), they lead back to the table, and the statement may come to a row that they have changed. One
// that addresses a single row of its table comes to no other one, and each row that the actions reach refers to one row.
func (c *plan) meet(list []schedule.Reference, table string, single bool) string {
	reached := schedule.Acting(list, table, false)
	if c.dbms.family && !single && slices.Contains(reached, table) {
		return "those of " + table + " lead back to it"
	}
	for _, t := range reached {
		keys := 0
		for _, r := range list {
			if r.Child == t && (r.Parent == table || slices.Contains(reached, r.Parent)) {
				keys++
			}
		}
		if keys > 1 {
			return "several lead to " + t
		}
	}
	return ""
}

// visible reports whether a statement can have seen what a write did: it is of the same transaction, or of one that was committed before, unless what is
// not committed can be seen, too.
func (r *reader) visible(w, f *fact) bool {
	return w.done < f.done && (w.txn == f.txn || f.level == product.ReadUncommitted && r.plan.dbms.dirty || !w.out && r.transactions[w.txn].End < f.step.Sent)
}

// newest reports whether a statement sees what is newest and no older snapshot.
func (c *plan) newest(f *fact) bool {
	return c.current(f.plannedStatement) || f.level == product.ReadCommitted || f.level == product.ReadUncommitted
}
