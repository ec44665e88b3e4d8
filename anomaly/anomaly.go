// Package anomaly is the one list of anomalies: what they are called, by which formula they are recognised, which promise they
// break, what an application can do against them, and the codes of the warnings that clients get. Oracles, levels, reports
// and documents read it. Adding an anomaly is a row here and its recognition in an oracle.
package anomaly

import "strings"

// Class is the formal name of an anomaly (Adya 1999; G-nonadjacent after Cerone and Gotsman 2016). Cycles that need
// session order or real time carry the suffixes SuffixProcess and SuffixRealtime, as in Elle.
type Class string

// The classes, most severe first.
const (
	G0 Class = "G0"
	// Internal is a transaction that does not see its own write (Cerone, Bernardi and Gotsman 2015: axiom INT).
	Internal Class = "internal"
	// FutureRead is a read of a version that its writer had not sent yet.
	FutureRead Class = "future-read"
	// DirtyUpdate is a committed write that replaced a version which was rolled back.
	DirtyUpdate Class = "dirty-update"
	G1a         Class = "G1a"
	G1b         Class = "G1b"
	G1c         Class = "G1c"
	GSingle     Class = "G-single"
	// GSingleRequest is a G-single whose nodes are requests of the application, not transactions.
	GSingleRequest Class = "G-single-request"
	GNonadjacent   Class = "G-nonadjacent"
	G2Item         Class = "G2-item"
	G2             Class = "G2"
	// G2Request is a G2 whose nodes are requests of the application, not transactions.
	G2Request Class = "G2-request"
)

// The classes that only histories of keys and values show, in which versions are not named. The names are Elle's, but for GarbageRead.
const (
	DuplicateElements Class = "duplicate-elements" // a list has an element twice
	IncompatibleOrder Class = "incompatible-order" // two lists, neither of which is the beginning of the other one
	CyclicVersions    Class = "cyclic-versions"    // each version comes before the other one
	BothUpdate        Class = "lost-update"        // two transactions read one version and both write the key
	GarbageRead       Class = "garbage-read"       // a value that nobody wrote
	NotSerializable   Class = "PL-3-cycle-exists"  // no serial order gives the results
	NotStrict         Class = "PL-SS-cycle-exists" // no serial order that keeps real time gives the results
)

// The suffixes of classes whose cycle needs a session-order or a real-time edge.
const (
	SuffixProcess  = "-process"
	SuffixRealtime = "-realtime"
)

// The everyday names.
const (
	DirtyWrite        = "dirty write"
	OwnUnseen         = "own write not seen"
	ReadBefore        = "read before it was written"
	NeverWritten      = "garbage read"
	OverAborted       = "update of an aborted version"
	AbortedRead       = "aborted read"
	IntermediateRead  = "intermediate read"
	CircularFlow      = "circular information flow"
	LostUpdate        = "lost update"
	LostBetween       = "lost update between requests"
	NonRepeatableRead = "non-repeatable read"
	Vanishes          = "observed transaction vanishes"
	ReadSkew          = "read skew"
	ReadWriteSkew     = "read-write skew"
	WriteSkew         = "write skew"
	SkewBetween       = "write skew between requests"
	LongFork          = "long fork"
	Phantom           = "phantom"
	Fractured         = "fractured read"
	CausalViolation   = "causal violation"
	ReadOnly          = "read-only anomaly"
	ReadYourWrites    = "read your writes"
	MonotonicReads    = "monotonic reads"
	MonotonicWrites   = "monotonic writes"
	WritesFollowReads = "writes follow reads"
	StaleRead         = "stale read"
	NoOrder           = "no order of the versions fits"
)

// Phenomenon is what an isolation level promises to prevent: a column of the Hermitage table (github.com/ept/hermitage). It is
// finer than Class where products differ within one class: lost update and OTV are both G-single.
type Phenomenon string

// The phenomena.
const (
	PG0           Phenomenon = "G0"
	PInternal     Phenomenon = "internal"
	PFuture       Phenomenon = "future read"
	PDirtyUpdate  Phenomenon = "dirty update"
	PG1a          Phenomenon = "G1a"
	PG1b          Phenomenon = "G1b"
	PG1c          Phenomenon = "G1c"
	POTV          Phenomenon = "OTV"                 // observed transaction vanishes
	P4            Phenomenon = "P4"                  // lost update
	PRequest      Phenomenon = "P4 between requests" // no level speaks of several transactions
	PGSingle      Phenomenon = "G-single"
	PGNonadjacent Phenomenon = "G-nonadjacent"
	PG2Item       Phenomenon = "G2-item"
	PPMP          Phenomenon = "PMP" // predicate-many-preceders
	PG2           Phenomenon = "G2"
	PG2Request    Phenomenon = "G2 between requests" // as PRequest
)

// Anomaly is one kind of anomaly.
type Anomaly struct {
	Class      Class
	Name       string // everyday name; empty: the class has a case that no name fits
	Phenomenon Phenomenon
	Formula    string // what shows it in a dependency graph
	Source     string // where the formula is defined
	// Implies are the phenomena that a history with this anomaly shows besides Phenomenon.
	Implies []Phenomenon
	// Remedies are what an application can do at its level, cheapest first. Refuses says that a level which prevents the anomaly does
	// so by refusing transactions, which the application has to retry.
	Remedies []Remedy
	Refuses  bool
	// Digit is the last digit of the warning's SQLSTATE (01WC_) and of its MySQL code (5100_).
	Digit int
}

// Remedy is a way out for the application.
type Remedy string

// The remedies. Package oracle words them for a product and a statement.
const (
	RemedyReport     Remedy = "report"     // to the vendor
	RemedyAtomic     Remedy = "atomic"     // one UPDATE computes the new value
	RemedyLock       Remedy = "lock"       // the reads lock the rows that the decision rests on
	RemedyCheck      Remedy = "check"      // the write checks that what was read still holds
	RemedyOneTxn     Remedy = "one-txn"    // read with a lock and write in one transaction
	RemedyOneRead    Remedy = "one-read"   // read what belongs together in one statement
	RemedyConstraint Remedy = "constraint" // a constraint refuses the row that must not be there
	RemedyParent     Remedy = "parent"     // lock a row that stands for what a condition chooses
	RemedyLevel      Remedy = "level"      // a stronger isolation level
)

// List has all anomalies, most severe first. The unnamed row of a class stands behind its named ones.
var List = []Anomaly{
	{Class: G0, Name: DirtyWrite, Phenomenon: PG0, Formula: "a cycle of ww", Source: "Adya 1999, 4.2.1"},
	{Class: Internal, Name: OwnUnseen, Phenomenon: PInternal, Formula: "a transaction wrote a row and then read an older version of it", Source: "Cerone, Bernardi and Gotsman 2015, INT", Digit: 1},
	{Class: FutureRead, Name: ReadBefore, Phenomenon: PFuture, Formula: "a read was answered before the statement that wrote the version was sent", Source: "Liu et al. 2024 (Plume), FutureRead", Digit: 1},
	{Class: GarbageRead, Name: NeverWritten, Phenomenon: PG1a, Formula: "a transaction read a version that nobody wrote", Source: "Liu et al. 2024 (Plume), ThinAirRead", Digit: 1},
	{Class: DirtyUpdate, Name: OverAborted, Phenomenon: PDirtyUpdate, Formula: "a committed transaction replaced a version of an aborted one", Source: "Elle, dirty-update", Digit: 0},
	{Class: G1a, Name: AbortedRead, Phenomenon: PG1a, Formula: "a committed transaction read a version of an aborted one", Source: "Adya 1999, 4.2.2", Digit: 1},
	{Class: G1b, Name: IntermediateRead, Phenomenon: PG1b, Formula: "a transaction read a version that its writer then overwrote itself", Source: "Adya 1999, 4.2.2", Digit: 1},
	{Class: G1c, Name: CircularFlow, Phenomenon: PG1c, Formula: "a cycle of ww and wr with at least one wr", Source: "Adya 1999, 4.2.2", Digit: 1},
	{
		Class: GSingle, Name: LostUpdate, Phenomenon: P4, Implies: []Phenomenon{PGSingle}, Refuses: true, Digit: 2,
		Formula: "rw and ww over one row: T1 read it, T2 wrote it, T1 wrote it", Source: "Berenson et al. 1995, P4; Adya 1999, G-cursor",
		Remedies: []Remedy{RemedyAtomic, RemedyLock, RemedyCheck},
	},
	{
		Class: GSingleRequest, Name: LostBetween, Phenomenon: PRequest, Refuses: true, Digit: 7,
		Formula: "rw and ww over one row, between requests: R1 read it in one transaction, R2 wrote it, R1 wrote what it had read in a later one", Source: "Warszawski and Bailis 2017 (ACIDRain), 3.1",
		Remedies: []Remedy{RemedyAtomic, RemedyOneTxn, RemedyCheck},
	},
	{
		Class: GSingle, Name: Vanishes, Phenomenon: POTV, Implies: []Phenomenon{PGSingle}, Remedies: []Remedy{RemedyOneRead, RemedyLock}, Digit: 3,
		Formula: "T1 read a version of T2, and then one from before T2", Source: "Bailis et al. 2013, definition 11",
	},
	{
		Class: GSingle, Name: ReadSkew, Phenomenon: PGSingle, Remedies: []Remedy{RemedyOneRead, RemedyLock}, Refuses: true, Digit: 3,
		Formula: "exactly one rw, and wr over other rows", Source: "Berenson et al. 1995, A5A",
	},
	{
		Class: GSingle, Name: NonRepeatableRead, Phenomenon: PGSingle, Remedies: []Remedy{RemedyOneRead, RemedyLock}, Refuses: true, Digit: 3,
		Formula: "exactly one rw, and wr over the same row", Source: "Berenson et al. 1995, P2",
	},
	{
		Class: GSingle, Name: ReadWriteSkew, Phenomenon: PGSingle, Remedies: []Remedy{RemedyLock}, Refuses: true, Digit: 8,
		Formula: "rw over one row and ww over another one", Source: "IsoRel, section 2.4",
	},
	{
		Class: GSingle, Name: Phantom, Phenomenon: PPMP, Remedies: []Remedy{RemedyOneRead, RemedyConstraint, RemedyParent}, Refuses: true, Digit: 5,
		Formula: "exactly one rw, over what a condition chose", Source: "Berenson et al. 1995, A3; Hermitage, PMP",
	},
	{
		Class: GSingle, Phenomenon: PGSingle, Remedies: []Remedy{RemedyLock}, Refuses: true, Digit: 8,
		Formula: "a cycle with exactly one rw", Source: "Adya 1999, 4.3.3",
	},
	{
		Class: GNonadjacent, Name: LongFork, Phenomenon: PGNonadjacent, Remedies: []Remedy{RemedyOneRead, RemedyLock}, Refuses: true, Digit: 8,
		Formula: "two rw and two wr in turn", Source: "Sovran et al. 2011",
	},
	{
		Class: GNonadjacent, Phenomenon: PGNonadjacent, Remedies: []Remedy{RemedyLock}, Refuses: true, Digit: 8,
		Formula: "a cycle with two or more rw, no two of them adjacent", Source: "Cerone and Gotsman 2016",
	},
	{
		Class: G2Item, Name: WriteSkew, Phenomenon: PG2Item, Refuses: true, Digit: 4,
		Formula: "two adjacent rw over different rows, or columns of one row", Source: "Berenson et al. 1995, A5B",
		Remedies: []Remedy{RemedyLock, RemedyParent},
	},
	{
		Class: G2Item, Phenomenon: PG2Item, Remedies: []Remedy{RemedyLock}, Refuses: true, Digit: 4,
		Formula: "a cycle with at least one rw", Source: "Adya 1999, 4.2.3",
	},
	{
		Class: G2, Name: WriteSkew, Phenomenon: PG2, Refuses: true, Digit: 4,
		Formula: "two adjacent rw, at least one of them over what a condition chose", Source: "Berenson et al. 1995, A5B; Adya 1999, 4.2.3",
		Remedies: []Remedy{RemedyConstraint, RemedyParent},
	},
	{
		Class: G2Request, Name: SkewBetween, Phenomenon: PG2Request, Refuses: true, Digit: 9,
		Formula: "two adjacent rw between requests: R1 and R2 each read, and then, in a later transaction, changed what the other one had read", Source: "Warszawski and Bailis 2017 (ACIDRain), 3.1",
		Remedies: []Remedy{RemedyConstraint, RemedyParent},
	},
	{
		Class: G2, Phenomenon: PG2, Remedies: []Remedy{RemedyConstraint, RemedyParent}, Refuses: true, Digit: 4,
		Formula: "a cycle with at least one rw over what a condition chose", Source: "Adya 1999, 4.2.3",
	},
}

// Cycles are the classes of cycles. Each has three forms: with dependencies alone, with session order (SuffixProcess) and with real time (SuffixRealtime).
var Cycles = []Class{G0, G1c, GSingle, GNonadjacent, G2Item, G2}

// Inferred has what only histories of keys and values show.
var Inferred = []Anomaly{
	{Class: DuplicateElements, Formula: "a list has an element twice", Source: "Kingsbury and Alvaro 2020 (Elle)"},
	{Class: IncompatibleOrder, Formula: "two lists of a key, neither of which is the beginning of the other one", Source: "Kingsbury and Alvaro 2020 (Elle)"},
	{Class: CyclicVersions, Formula: "two versions of a key, each of which comes before the other one", Source: "Kingsbury and Alvaro 2020 (Elle)"},
	{Class: BothUpdate, Name: LostUpdate, Formula: "two transactions read one version of a key, and both wrote the key", Source: "Elle, lost-update"},
	{Class: NotSerializable, Formula: "no serial order gives every read its value", Source: "Elle, PL-3-cycle-exists"},
	{Class: NotStrict, Formula: "no serial order that keeps session order and real time gives every read its value", Source: "Elle, PL-SS-cycle-exists"},
}

// Shape is a name that the witness of a level may have besides those of List, or the cycle by which one of these is recognised.
type Shape struct {
	Name    string
	Edges   string // of the cycle, from the one on with which the text is the smallest; empty: the level knows what shows it
	Class   Class
	Formula string // empty: List has it
	Source  string
}

// Shapes has all shapes.
var Shapes = []Shape{
	{Name: ReadYourWrites, Edges: "rw so", Class: GSingle + SuffixProcess, Formula: "T1 wrote a row, and a later transaction of its session read it as it was before", Source: "Terry et al. 1994"},
	{Name: MonotonicReads, Edges: "rw wr so", Class: GSingle + SuffixProcess, Formula: "T1 read a version, and a later transaction of its session an older one", Source: "Terry et al. 1994"},
	{Name: MonotonicWrites, Edges: "so ww", Class: G0 + SuffixProcess, Formula: "a later transaction of the session of T1 wrote a row, and T1 replaced its version", Source: "Terry et al. 1994"},
	{Name: WritesFollowReads, Edges: "so ww wr", Class: G1c + SuffixProcess, Formula: "T1 read a version of T2, and T2 replaced one of a later transaction of its session", Source: "Terry et al. 1994"},
	{Name: StaleRead, Edges: "rt rw", Class: GSingle + SuffixRealtime, Formula: "T1 ended, and then T2 began and read a row as it was before T1 wrote it", Source: "Kingsbury and Alvaro 2020 (Elle)"},
	{Name: Fractured, Class: GSingle, Formula: "T1 read a version of T2, and before it, in another row, one from before T2", Source: "Bailis et al. 2014"},
	{Name: CausalViolation, Class: GSingle, Formula: "T1 read a version from before one of a transaction that precedes T1 by so and wr", Source: "Biswas and Enea 2019, CC"},
	{Name: ReadOnly, Class: G2Item, Formula: "a cycle of three, two rw behind one another, with one transaction that only reads", Source: "Fekete et al. 2004"},
	{Name: LongFork, Edges: "rw wr rw wr", Class: GNonadjacent}, {Name: WriteSkew, Edges: "rw rw", Class: G2Item},
}

// Of finds the row of a class, with or without suffix, and an everyday name. A name that the class does not have gives its
// unnamed row; ok is false for a class that is not in the list.
func Of(class Class, name string) (a Anomaly, ok bool) {
	plain, _ := class.Plain()
	for _, row := range List {
		if row.Class == plain {
			a, ok = row, true
			if row.Name == name {
				break
			}
		}
	}
	return a, ok
}

// Plain is the class without its suffix; ordered says that it had one: the cycle needs session order or real time.
func (c Class) Plain() (plain Class, ordered bool) {
	s := strings.TrimSuffix(strings.TrimSuffix(string(c), SuffixRealtime), SuffixProcess)
	return Class(s), s != string(c)
}

// Broken is the phenomenon whose promise a finding breaks. Classes that need session order or real time have none: no product
// here promises strict serializability.
func Broken(class Class, name string) (p Phenomenon, ok bool) {
	if _, ordered := class.Plain(); ordered {
		return "", false
	}
	a, ok := Of(class, name)
	return a.Phenomenon, ok
}
