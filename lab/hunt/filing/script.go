package filing

import (
	"fmt"
	"strings"

	"wirecheck/lab"
	"wirecheck/product"
)

// The databases that scripts make. Radar compares with the raw one.
const (
	Database = "wirecheck_case"
	rawBase  = "wirecheck_raw"
)

// Script is plain SQL for the product's own client. A line "-- terminal 2" says where what follows is typed; without such lines, one terminal
// does, and the client can execute the file.
func (c *Case) Script() string {
	acts := c.acts()
	sessions := c.sessions(acts)
	w := &script{c: c, terminal: -1, several: len(sessions) > 1, number: map[int]int{}, set: map[int]bool{}}
	for i, session := range sessions {
		w.number[session] = i + 1
	}
	fmt.Fprintf(&w.b, "-- %s %s\n", c.Engine.Title, c.Schedule.Version)
	if w.several {
		fmt.Fprintf(&w.b, "-- Open %d terminals with %s, and type each statement in the terminal that is named above it.\n", len(sessions), c.Engine.Client)
		names := make([]string, len(sessions))
		for i, session := range sessions {
			names[i] = fmt.Sprintf("%s is terminal %d", c.Schedule.Sessions[session].Name, i+1)
		}
		fmt.Fprintf(&w.b, "-- Session %s.\n", strings.Join(names, ", "))
	}
	if raw := c.raw(); raw != nil {
		w.in(sessions[0])
		w.database(rawBase, raw)
	}
	for i, session := range sessions {
		w.in(session)
		if i == 0 {
			w.database(Database, c.Schedule.Setup)
		} else {
			w.use(Database)
		}
		for _, sql := range c.settings(session) {
			w.line(ended(sql))
		}
	}
	for _, a := range acts {
		w.in(a.session)
		if a.raw {
			w.use(rawBase)
		}
		if !a.resumed {
			w.statement(a.sql)
			if how := lab.Ending(a.sql); how != "" {
				w.line("-- " + how)
			}
		}
		switch {
		case a.waits:
			w.line("-- " + waitNote(a, func(n int) string { return fmt.Sprintf("terminal %d", w.number[n]) }))
		case a.resumed && a.note == "":
			w.line("-- goes on")
		case a.resumed:
			w.line("-- goes on: " + a.note)
		case a.note != "":
			w.line("-- " + a.note)
		}
	}
	return w.b.String()
}

// script is a script while it is written.
type script struct {
	c        *Case
	b        strings.Builder
	several  bool
	terminal int // the session's whose terminal was named last
	number   map[int]int
	set      map[int]bool // terminals that have the settings of every session
}

func (w *script) line(text string) { fmt.Fprintln(&w.b, text) }

// in says in which terminal what follows is typed.
func (w *script) in(session int) {
	if w.several && session != w.terminal {
		fmt.Fprintf(&w.b, "\n-- terminal %d\n", w.number[session])
	}
	w.terminal = session
}

// database makes a database and what is in it.
func (w *script) database(name string, setup []string) {
	for _, sql := range w.c.Settings.create(name) {
		w.line(sql + ";")
	}
	w.use(name)
	for _, sql := range setup {
		w.statement(sql)
	}
}

// use makes a database the terminal's.
func (w *script) use(name string) {
	switch w.c.Engine.Dialect {
	case product.DialectPostgres:
		w.line(`\connect ` + name)
	case product.DialectMySQL:
		w.line("USE " + name + ";")
	}
	if !w.set[w.terminal] {
		for _, sql := range w.c.Settings.session() {
			w.line(sql + ";")
		}
	}
	w.set[w.terminal] = true
}

// statement writes a statement so that the client sends it as one.
func (w *script) statement(sql string) {
	if w.c.Engine.Dialect == product.DialectMySQL && compound(sql) {
		w.line("DELIMITER //\n" + strings.TrimRight(sql, "; \t\r\n") + "//\nDELIMITER ;")
		return
	}
	w.line(ended(sql))
}

// compound reports whether a statement has statements in it.
func compound(sql string) bool {
	head := strings.ToUpper(sql)
	return strings.HasPrefix(head, "CREATE") && strings.Contains(strings.TrimRight(sql, "; \t\r\n"), ";") &&
		(strings.Contains(head, "TRIGGER") || strings.Contains(head, "PROCEDURE") || strings.Contains(head, "FUNCTION"))
}
