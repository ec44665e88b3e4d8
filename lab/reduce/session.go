package reduce

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/lab/scenario"
)

// split makes each statement of the setup a block of its own and then each statement of a step a step of its own, if that is still it:
// then each of them can be removed.
func (r *reduction) split() error {
	if r.o.Split == nil {
		return nil
	}
	d := r.best.clone()
	d.setup = nil
	for _, sql := range r.best.setup {
		d.setup = append(d.setup, r.o.Split(sql)...)
	}
	if len(d.setup) > len(r.best.setup) {
		if _, err := r.try(d); err != nil {
			return err
		}
	}
	d = r.best.clone()
	d.steps = nil
	for _, st := range r.best.steps {
		parts := r.o.Split(st.sql)
		if len(parts) < 2 {
			d.steps = append(d.steps, st)
			continue
		}
		for i, sql := range parts {
			d.steps = append(d.steps, step{st.session, fmt.Sprintf("%s_%d", st.name, i+1), sql})
		}
	}
	if len(d.steps) > len(r.best.steps) {
		if _, err := r.try(d); err != nil {
			return err
		}
	}
	return nil
}

// settings removes what sessions execute before their steps, and what is executed at the end: the databases in which cases are executed are
// emptied anyway.
func (r *reduction) settings() error {
	if d := r.best.clone(); d.teardown != nil {
		d.teardown = nil
		if _, err := r.try(d); err != nil {
			return err
		}
	}
	for i := range r.best.sessions {
		s := r.best.sessions[i]
		if s.setup == nil {
			continue
		}
		parts := []string{s.setup.SQL}
		if r.o.Split != nil {
			parts = r.o.Split(s.setup.SQL)
		}
		for n := -1; n < len(parts); n++ { // all of it, then each statement
			d := r.best.clone()
			d.sessions[i].setup = nil
			if n >= 0 && len(parts) > 1 {
				d.sessions[i].setup = &scenario.Block{SQL: strings.Join(slices.Delete(slices.Clone(parts), n, n+1), "; ")}
			}
			if taken, err := r.try(d); err != nil {
				return err
			} else if taken {
				break
			}
		}
	}
	return nil
}

// join lets one session execute what two did, in the same order.
func (r *reduction) join() error {
	for to := 0; to < len(r.best.sessions); to++ {
		for from := len(r.best.sessions) - 1; from > to; from-- {
			if r.best.sessions[from].setup != nil {
				continue
			}
			d := r.best.clone()
			for i := range d.steps {
				if d.steps[i].session == from {
					d.steps[i].session = to
				}
			}
			d.dropSession(from)
			if _, err := r.try(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare makes steps statements of the setup, if they define or write something: what begins a transaction would leave it open in the
// session that executes the setup.
func (r *reduction) prepare() error {
	for n := 0; n < len(r.best.steps) && len(r.best.steps) > 1; {
		taken := false
		if slices.Contains([]string{"INSERT", "REPLACE", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE"}, verb(r.best.steps[n].sql)) {
			d := r.best.clone()
			d.setup = append(d.setup, d.steps[n].sql)
			d.steps = slices.Delete(d.steps, n, n+1)
			var err error
			if taken, err = r.try(d); err != nil {
				return err
			}
		}
		if !taken {
			n++
		}
	}
	return nil
}

// verb is a statement's first word, in upper case.
func verb(sql string) string {
	if list := tokens(sql); len(list) > 0 {
		return strings.ToUpper(sql[list[0].from:list[0].to])
	}
	return ""
}
