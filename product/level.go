package product

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/anomaly"
)

// The levels, as in history.Event.Level.
const (
	ReadUncommitted = "read uncommitted"
	ReadCommitted   = "read committed"
	RepeatableRead  = "repeatable read"
	Snapshot        = "snapshot" // repeatable read with the setting that makes it snapshot isolation: Level.Setting
	Serializable    = "serializable"
)

// LevelNames lists the levels, weakest first.
var LevelNames = []string{ReadUncommitted, ReadCommitted, RepeatableRead, Snapshot, Serializable}

// Level is one isolation level of a product.
type Level struct {
	// SQL is what SET TRANSACTION ISOLATION LEVEL takes: "REPEATABLE READ". A level that needs a setting besides has a name of ours,
	// "SNAPSHOT", which the backend's SetLevel understands.
	SQL     string
	History string // as history.Event.Level has it: "repeatable read"
	Title   string // for people; empty: History in capitals
	Gives   Guarantee
	// Source is where the product promises it, or who measured it. A cell that neither the manual nor a measurement covers is no
	// promise: then it is never called a violation.
	Source string
	// Setting makes this level of those in Under. Nil: the level has its own name in SQL.
	Setting *Setting
	Under   []string
	// Optimistic says that explicit transactions take no locks and look for conflicts at COMMIT.
	Optimistic bool
}

// Setting is a session variable.
type Setting struct {
	Name string
	On   []string // the values that turn it on, in small letters
}

// Guarantee is what a level prevents, by its name in the literature.
type Guarantee struct {
	Name     string
	prevents []anomaly.Phenomenon
}

// Prevents reports whether the guarantee excludes a phenomenon.
func (g Guarantee) Prevents(ph anomaly.Phenomenon) bool { return slices.Contains(g.prevents, ph) }

// with is a stronger guarantee.
func (g Guarantee) with(name string, more ...anomaly.Phenomenon) Guarantee {
	return Guarantee{name, append(slices.Clip(g.prevents), more...)}
}

// The guarantees (Adya 1999, chapter 4; Bailis et al. 2013 for monotonic atomic view; Cerone and Gotsman 2016 for snapshot isolation).
var (
	pl1  = Guarantee{"PL-1", []anomaly.Phenomenon{anomaly.PG0}}
	pl2  = pl1.with("PL-2", anomaly.PInternal, anomaly.PFuture, anomaly.PDirtyUpdate, anomaly.PG1a, anomaly.PG1b, anomaly.PG1c)
	mav  = pl2.with("monotonic atomic view", anomaly.POTV)
	si   = mav.with("snapshot isolation", anomaly.P4, anomaly.PGSingle, anomaly.PGNonadjacent, anomaly.PPMP)
	full = si.with("serializability", anomaly.PG2Item, anomaly.PG2)
)

// Real is the level that a product gives under a name, in a session that has its stricter setting on or off: MariaDB's REPEATABLE
// READ with innodb_snapshot_isolation, and TiDB's with optimistic transactions, are Snapshot.
func (p *Product) Real(level string, on bool) string {
	for _, l := range p.Levels {
		if on && l.Setting != nil && slices.Contains(l.Under, level) {
			return l.History
		}
	}
	return level
}

// Stricter is the setting that Real asks about; nil if the product has none.
func (p *Product) Stricter() *Setting {
	for _, l := range p.Levels {
		if l.Setting != nil {
			return l.Setting
		}
	}
	return nil
}

// Assigned reports whether a value turns the setting on.
func (s *Setting) Assigned(value string) bool { return slices.Contains(s.On, strings.ToLower(value)) }

// Optimistic reports whether a transaction takes no locks and looks for conflicts at its COMMIT. A statement in autocommit is
// executed again when it meets a conflict, so it is not called optimistic.
func (p *Product) Optimistic(level string, explicit bool) bool {
	l := p.Level(level)
	return l != nil && l.Optimistic && explicit
}

// Relaxed reports whether a level's statements see what others commit while its transaction runs, and so whether nothing keeps
// others from rows that a statement read: READ COMMITTED and weaker.
func Relaxed(level string) bool { return level == ReadUncommitted || level == ReadCommitted }

// ParseLevel reads a level as people write it: "Repeatable-Read", "read_committed". An empty text is no level, and no error.
func ParseLevel(text string) (string, error) {
	name := strings.ToLower(strings.NewReplacer("-", " ", "_", " ").Replace(text))
	if name != "" && !slices.Contains(LevelNames, name) {
		return "", fmt.Errorf("unknown level %q: use one of %s", text, strings.Join(LevelNames, ", "))
	}
	return name, nil
}
