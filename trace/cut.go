package trace

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Cut says which part of a trace is wanted. A zero field asks for nothing in particular.
type Cut struct {
	From, To int64           // of Record.At, To excluded
	Sessions map[uint64]bool // these
	Tables   []string        // statements that use tables of these names: patterns, with or without schema
	// Touches gives the tables that a statement's text names, and whether that is known, for statements of which the trace does not show it.
	Touches func(product, sql string) (tables []string, known bool)
}

// Cutter hands on the wanted part. It is given the records in their order, twice if tables are asked for: first all to Look.
type Cutter struct {
	c       Cut
	live    map[uint64]*cutSession
	wanted  map[uint64]bool // sessions with a statement on the tables
	Kept    int             // statements
	Unknown int             // statements that were kept because what they touch is not known
	Midway  int             // sessions that begin in the middle of a transaction
	Events  int             // of the history, which were left out: a part of one cannot be judged
}

type cutSession struct {
	info   Session
	handed bool
	any    bool
	dirty  bool
}

// NewCutter makes a Cutter.
func NewCutter(c Cut) *Cutter {
	return &Cutter{c: c, live: map[uint64]*cutSession{}, wanted: map[uint64]bool{}}
}

// Look is the first pass: which sessions use the tables at all.
func (k *Cutter) Look(r *Record) {
	s := k.session(r)
	if r.Kind == KindStatement && k.inside(r) {
		if uses, plain, _ := k.uses(s.info.Product, r.Statement); uses && !plain {
			k.wanted[r.Session] = true
		}
	}
}

// Rewind begins the second pass.
func (k *Cutter) Rewind() { clear(k.live) }

// Keep is the second pass: it hands on what is wanted.
func (k *Cutter) Keep(r *Record, out func(*Record) error) error {
	switch r.Kind {
	case KindHistory:
		k.Events++
		return nil
	case KindNote:
		return out(r)
	}
	s := k.session(r)
	if !k.inside(r) || len(k.c.Tables) > 0 && !k.wanted[r.Session] {
		return nil
	}
	switch r.Kind {
	case KindSession:
		s.handed, s.dirty = true, false
		return out(r)
	case KindStatement:
		if len(k.c.Tables) > 0 {
			uses, _, known := k.uses(s.info.Product, r.Statement)
			if !uses {
				return nil
			}
			if !known {
				k.Unknown++
			}
		}
		k.Kept++
		if !s.any && r.Statement.Before.InTransaction() {
			k.Midway++
		}
		s.any = true
	}
	if !s.handed || s.dirty { // it began before the part
		s.handed, s.dirty = true, false
		info := s.info
		info.Joined, info.At = true, r.At()
		if err := out(&Record{Kind: KindSession, Session: r.Session, Open: &info}); err != nil {
			return err
		}
	}
	return out(r)
}

func (k *Cutter) session(r *Record) *cutSession {
	s := k.live[r.Session]
	if s == nil {
		s = &cutSession{}
		k.live[r.Session] = s
	}
	if r.Kind == KindSession {
		s.info, s.dirty = *r.Open, true
	}
	return s
}

// inside tells whether a record is within the times and sessions asked for.
func (k *Cutter) inside(r *Record) bool {
	at := r.At()
	return (k.c.From == 0 || at >= k.c.From) && (k.c.To == 0 || at < k.c.To) && (len(k.c.Sessions) == 0 || k.c.Sessions[r.Session])
}

// uses tells whether a statement is wanted for its tables. plain says that it names none, as COMMIT.
func (k *Cutter) uses(product string, st *Statement) (uses, plain, known bool) {
	var names []string
	if len(st.Tables) > 0 {
		for _, t := range st.Tables {
			names = append(names, t.Name)
		}
	} else {
		sql := cmp.Or(st.Prepared, st.SQL)
		if names, known = k.c.Touches(product, sql); !known {
			return true, true, false
		}
	}
	if len(names) == 0 {
		return true, true, true
	}
	return slices.ContainsFunc(names, func(n string) bool { return matchesTable(k.c.Tables, n) }), false, true
}

// matchesTable compares a name with patterns. One without a schema stands for the table in any.
func matchesTable(patterns []string, name string) bool {
	name = strings.ToLower(strings.NewReplacer(`"`, "", "`", "").Replace(name))
	bare := name[strings.LastIndexByte(name, '.')+1:]
	for _, p := range patterns {
		p = strings.ToLower(p)
		against := bare
		if strings.Contains(p, ".") {
			against = name
		}
		if ok, err := path.Match(p, against); err == nil && ok {
			return true
		}
	}
	return false
}
