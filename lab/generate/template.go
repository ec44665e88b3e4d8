package generate

import (
	"fmt"
	"slices"
	"strings"
)

// template is the pattern of a known anomaly, to be put on any schema (IsoRel, ISSTA'25, 6.2). Its program lists the steps in the order
// in which they are submitted: the transaction's number, then what it does to x and y, two rows of one table:
//
//	rx  read x by its key        wx  give a column of x another value
//	rP  read by a condition      cx  compute a column of x from itself
//	iP  insert a row             dP  delete by a condition
//	sx  give x the value that it has       uP  compute a column of all rows
//	mAB where a column is as in x, make it as in y; mBA the other way round
//	a   roll back                c   commit
//
// BEGIN comes before a transaction's first step.
type template struct {
	name, what, program string
}

// templates are the anomalies of Hermitage and IsoRel 6.2, and the shapes of WriteCheck's listings 5 and 6.
func templates() []template {
	return []template{
		{"lost-update", "lost update (P4)", "1rx 2rx 1wx 2wx 1c 2c"},
		{"lost-update-locked", "lost update against a computing update", "1rx 2cx 1wx 2c 1c"},
		{"write-skew", "write skew (G2-item)", "1rx 1ry 2rx 2ry 1wx 2wy 1c 2c"},
		{"write-skew-predicate", "write skew over conditions (G2)", "1rP 2rP 1iP 2iP 1c 2c"},
		{"read-skew", "read skew (G-single)", "1rx 2rx 2ry 2wx 2wy 2c 1ry 1c"},
		{"dirty-write", "write cycle (G0)", "1wx 2wx 1wy 1c 2wy 2c"},
		{"aborted-read", "aborted read (G1a)", "1wx 2rx 1a 2rx 2c"},
		{"intermediate-read", "intermediate read (G1b)", "1wx 2rx 1wx 1c 2rx 2c"},
		{"circular-flow", "circular information flow (G1c)", "1wx 2wy 1ry 2rx 1c 2c"},
		{"vanishing", "observed transaction vanishes (OTV)", "1wx 1wy 2wx 1c 3rx 2wy 3ry 2c 3rx 3ry 3c"},
		{"phantom", "predicate many preceders (PMP)", "1rP 2iP 2c 1rP 1c"},
		{"phantom-write", "predicate many preceders with a write", "1uP 2dP 1c 2rP 2c"},
		{"semi-consistent", "semi-consistent read (WriteCheck, listing 5)", "1mAB 2mBA 1c 2c"},
		{"missing-gap-lock", "no gap locks (WriteCheck, listing 6)", "1dP 2iP 2c 1uP 1c"},
		{"same-value", "a write of the value that is there (WriteCheck, figure 1)", "2iP 2sx 1dP 2c 1c"},
	}
}

// size counts the template's transactions, and the most statements that access data in one of them.
func (t template) size() (transactions, statements int) {
	count := map[byte]int{}
	for step := range strings.FieldsSeq(t.program) {
		transactions = max(transactions, int(step[0]-'0'))
		if len(step) > 2 { // all but the ends
			count[step[0]]++
			statements = max(statements, count[step[0]])
		}
	}
	return transactions, statements
}

func (g *Generator) favoredTemplate() bool {
	return slices.ContainsFunc(templates(), func(t template) bool { return g.favored["template-"+t.name] })
}

// stage is where a template plays: two rows of a table with a primary key, and a column that may change.
type stage struct {
	*writer
	t      *Table
	x, y   []Value
	column *Column
	used   map[string]bool // values that the column had or was given
}

// fromTemplate makes transactions after a template, and the order of their steps as indexes of transactions. It makes none if no table
// fits.
func (g *Generator) fromTemplate(db *Database) (made []*Transaction, order []int) {
	var open []template
	for _, t := range templates() {
		ends := g.has("commit") && (g.has("rollback") || !strings.Contains(t.program, "a"))
		transactions, statements := t.size()
		fits := transactions <= g.limits.Transactions && statements <= g.limits.Statements
		if g.has("template-"+t.name) && ends && fits {
			open = append(open, t)
		}
	}
	if favored := slices.DeleteFunc(slices.Clone(open), func(t template) bool { return !g.favored["template-"+t.name] }); len(favored) > 0 {
		open = favored
	}
	var stages []stage
	for _, t := range db.Tables {
		if s, ok := g.stage(db, t); ok {
			stages = append(stages, s)
		}
	}
	if len(open) == 0 || len(stages) == 0 || !g.has("select") || !g.has("insert") || !g.has("update") || !g.has("delete") {
		return nil, nil
	}
	s, t := oneOf(g.intn, stages), oneOf(g.intn, open)
	feature := "template-" + t.name
	put := func(n int, st Statement) {
		st.Features = withFeature(st.Features, feature)
		made[n].Statements = append(made[n].Statements, st)
		order = append(order, n)
	}
	for step := range strings.FieldsSeq(t.program) {
		n := int(step[0] - '1')
		for len(made) <= n {
			made = append(made, &Transaction{Explicit: true, Template: t.name})
		}
		if len(made[n].Statements) == 0 {
			begin := g.statement(KindBegin, nil, func() string {
				if g.has("begin-optimistic") && g.chance(fairly) {
					g.mark("begin-optimistic")
					return "BEGIN OPTIMISTIC"
				}
				if !g.has("begin") {
					g.mark("start-transaction")
					return g.grammar.begin
				}
				g.mark("begin")
				return "BEGIN"
			})
			put(n, begin)
		}
		put(n, s.step(step[1:]))
	}
	return made, order
}

// stage gives the place for a template in a table, if it has one.
func (g *Generator) stage(db *Database, t *Table) (stage, bool) {
	if len(t.Primary) == 0 || len(t.Rows) < 2 {
		return stage{}, false
	}
	s := stage{writer: writerOf(&g.definer, db, t), t: t, x: t.Rows[0], y: t.Rows[1]}
	for _, c := range s.assignable(false) {
		if c.Parent == nil && c.Class != JSON && !t.constrained(c) && (s.column == nil || c.Class == Integer) {
			s.column = c
		}
	}
	if s.column == nil {
		return stage{}, false
	}
	at := t.index(s.column)
	s.used = map[string]bool{s.x[at].Key: true, s.y[at].Key: true}
	return s, true
}

// another draws a value that the column has not had, as long as there is one: a write that changes nothing shows little.
func (s stage) another() string {
	v := s.value(s.db.pool, s.column.Type)
	for range 5 {
		if !s.used[v.Key] {
			break
		}
		v = s.value(s.db.pool, s.column.Type)
	}
	s.used[v.Key] = true
	return v.SQL
}

// step makes one step of a program.
func (s stage) step(word string) Statement {
	kinds := map[byte]Kind{'r': KindSelect, 'w': KindUpdate, 'c': KindUpdate, 'm': KindUpdate, 'u': KindUpdate, 's': KindUpdate, 'i': KindInsert, 'd': KindDelete}
	switch word {
	case "a":
		return s.statement(KindRollback, nil, func() string { s.mark("rollback"); return "ROLLBACK" })
	case "c":
		return s.statement(KindCommit, nil, func() string { s.mark("commit"); return "COMMIT" })
	}
	return s.statement(kinds[word[0]], []string{s.t.Name}, func() string {
		s.mark(string(kinds[word[0]]))
		return s.text(word)
	})
}

func (s stage) text(word string) string {
	row, column := s.x, s.column.Name
	if word[1:] == "y" {
		row = s.y
	}
	condition := func() string { return s.compare(s.db, ref{s.column, column}) }
	computed := func() string {
		if s.column.Class == Integer || s.column.Class == Decimal {
			return column + " + 1"
		}
		return s.another()
	}
	switch word {
	case "rx", "ry":
		return fmt.Sprintf("SELECT * FROM %s WHERE %s", s.t.Name, s.t.where(row))
	case "rP":
		return fmt.Sprintf("SELECT * FROM %s WHERE %s", s.t.Name, condition())
	case "wx", "wy":
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", s.t.Name, column, s.another(), s.t.where(row))
	case "sx": // as it is, or was
		value := row[s.t.index(s.column)].SQL
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", s.t.Name, column, value, s.t.where(row))
	case "cx":
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", s.t.Name, column, computed(), s.t.where(row))
	case "iP":
		columns := s.t.writable()
		values := s.newRow(s.t)
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", s.t.Name, list(namesOf(columns)), rowText(s.t, values))
	case "dP":
		return fmt.Sprintf("DELETE FROM %s WHERE %s", s.t.Name, condition())
	case "uP":
		return fmt.Sprintf("UPDATE %s SET %s = %s", s.t.Name, column, computed())
	case "mAB", "mBA":
		a, b := s.x[s.t.index(s.column)], s.y[s.t.index(s.column)]
		if word == "mBA" {
			a, b = b, a
		}
		where := column + " = " + a.SQL
		if a.Null {
			where = column + " IS NULL"
		}
		return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", s.t.Name, column, b.SQL, where)
	}
	panic("generate: no template step " + word)
}
