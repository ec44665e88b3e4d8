package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/product"
	"wirecheck/trace"
)

// axis is what the order of a trace's statements is taken from.
type axis uint8

const (
	axisTime  axis = iota // the clock
	axisTicks             // the source's own order of beginnings and ends
	axisFrom              // its order of beginnings; ends are not known
	axisTo                // its order of ends, with durations
)

// Survey is what a first look at a trace tells.
type Survey struct {
	Statements int
	Sessions   int
	// First and Last are clock times.
	First, Last int64
	// Creates: a statement creates a table.
	Creates bool
	// Errors: the trace tells which statements failed.
	Errors bool
	// Products, Databases and Users are those of its sessions, sorted; Levels the isolation levels that it tells of sessions.
	Products, Databases, Users, Levels []string
	Warning                            string // of the file: its end is missing

	axis      axis
	databases map[string]int // statements of each
}

// MainDatabase is the database with the most statements that own does not say is the product's own; empty if there is none.
func (v *Survey) MainDatabase(own func(name string) bool) string {
	best := ""
	for _, name := range v.Databases {
		if !own(name) && (best == "" || v.databases[name] > v.databases[best]) {
			best = name
		}
	}
	return best
}

var createTable = regexp.MustCompile(`(?is)^\s*create\s+table\b`)

// Open opens a trace from its beginning.
type Open func() (*trace.Reader, error)

// Look reads a trace once.
func Look(open Open) (_ *Survey, err error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	v := &Survey{Errors: true}
	from, to, both, times, failures, late := 0, 0, 0, 0, 0, 0
	sessions := map[uint64]bool{}
	of := map[uint64]string{}
	v.databases = map[string]int{}
	guessed := map[string]bool{}
	products, databases, users, levels := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	var rec trace.Record
	for {
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		sessions[rec.Session] = true
		if at := rec.At(); at != 0 {
			if v.First == 0 || at < v.First {
				v.First = at
			}
			v.Last = max(v.Last, at)
		}
		switch rec.Kind {
		case trace.KindSession:
			of[rec.Session] = rec.Open.Database
			if rec.Open.Joined && rec.Open.Version == "" { // its protocol is all that is known
				guessed[rec.Open.Product] = true
			} else {
				products[rec.Open.Product] = true
			}
			databases[rec.Open.Database], users[rec.Open.User] = true, true
			levels[rec.Open.Level] = true
		case trace.KindStatement:
			st := rec.Statement
			v.Statements++
			v.databases[of[rec.Session]]++
			v.Creates = v.Creates || createTable.MatchString(st.SQL)
			switch {
			case st.Late:
				late++
			case st.To != 0 && (st.From != 0 || st.ID != 0): // a bound of 0 is none, and the number tells the order
				both++
			case st.From != 0:
				from++
			case st.To != 0:
				to++
			}
			if st.Start != 0 && st.End != 0 {
				times++
			}
			if st.Error != nil {
				failures++
			}
		}
	}
	v.Warning = r.Warning()
	sources := r.Header().Sources
	if t := r.Totals(); t != nil && len(t.Sources) > 0 {
		sources = t.Sources
	}
	for _, s := range sources {
		if (s.Format == "general" || s.Format == "slow") && failures == 0 {
			v.Errors = false
		}
	}
	v.axis = chooseAxis(v.Statements-late, from, to, both, len(sources), len(sessions))
	if v.axis == axisTime && times == 0 && v.Statements > 0 {
		return nil, errors.New("nothing in this trace tells in which order its statements ran: neither times nor places of lines")
	}
	v.Sessions = len(sessions)
	if delete(products, ""); len(products) == 0 {
		products = guessed
	}
	v.Products, v.Databases, v.Users, v.Levels = names(products), names(databases), names(users), names(levels)
	return v, nil
}

// Of sets the product of a trace; empty: the one that its sessions name, which must be one.
func (v *Survey) Of(name string) error {
	if name != "" {
		v.Products = []string{name}
	}
	if len(v.Products) > 1 {
		return fmt.Errorf("the trace is of several products (%s): name one with --product, or cut it into one for each (wirecheck trace cut)", strings.Join(v.Products, ", "))
	}
	return nil
}

// DumpCommand is a command that makes a snapshot of a database of the trace's product.
func (v *Survey) DumpCommand(database string) string {
	name := "mariadb" // where the trace names no product
	if len(v.Products) > 0 {
		name = v.Products[0]
	}
	return product.Of(name).Dump + " " + cmp.Or(database, "DATABASE") + " > snapshot.sql"
}

// chooseAxis takes the source's own order where all statements have it. Places of several sources cannot be compared. Where ends are told,
// each session may have one statement without: its client left before the answer.
func chooseAxis(all, from, to, both, sources, sessions int) axis {
	switch {
	case sources > 1:
		return axisTime
	case both == all, both > 0 && both+from == all && from <= sessions:
		return axisTicks
	case both+from == all:
		return axisFrom
	case both+to == all:
		return axisTo
	}
	return axisTime
}

// names are those of a set but the empty one, sorted.
func names(set map[string]bool) []string {
	delete(set, "")
	return slices.Sorted(maps.Keys(set))
}
