package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text form is for tests. It reads like the theory: one event per line,
//
//	s1 session postgres "15.4"          a client connects
//	s1 t1 begin "read committed"        also: begin "serializable" implicit
//	t1 r x@0 y@0                        reads version 0 of the rows x and y of table t
//	t1 lock x@1                         locking read
//	t1 match x@1                        an UPDATE that found x and changed nothing in it
//	t1 w x 0>1                          replaces version 0 by 1; "x >1" where the engine does not tell the old one
//	t1 inc x 1>2                        the same, computed from the current row (CurrentRead)
//	t1 i z >1                           inserts
//	t1 d x 2>3                          deletes; 3 is the place of the dead version
//	t1 r x@0, w y 0>1                   one statement that does both
//	t1 undo 2                           ROLLBACK TO a savepoint before statement 2
//	t1 stmt                             a statement that tells nothing
//	t1 commit                           or: abort, unknown; "commit pending": some writes follow
//	t1 late 2 w x 0>1                   what statement 2 wrote, told later
//	s1 close
//	# a comment
//
// A row is key or table.key, cut at the last dot; the table is t unless named; the key _ stands for none (rows known by their versions). A
// version that is a number n has the place n+1, so 0 is initial; any other version has no place unless "#place"
// follows. After a version may follow, in this order: "#7" its place, "<9" the bound AsOf, "!tok" the writer's token, "?" approximate.
// After a statement's accesses may follow words: opaque, approximate, predicate, error CODE, undoes N, tokens a,b, image "..." and was
// "..." of the access before them, where TABLE "CONDITION" for a predicate read (all: of TABLE "CONDITION", which names every row; now: which saw what was current; some: whose answer only tells that there are some), unread WHY; of requests, request NAME,
// set col=value (and computed, unknown, equal, range, checked: the roles of operands) and derived col:row@version:txn.n:kind:constant:read;
// and last "-- SQL". Ticks are the line's number, statements are numbered in order, and without "-- SQL" a statement's text is the line's
// own.

// ParseText reads events in text form.
func ParseText(r io.Reader) ([]Event, error) {
	p := textParser{session: map[uint64]uint64{}, stmts: map[uint64]int{}}
	sc := bufio.NewScanner(r)
	var out []Event
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		e, err := p.parse(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", line, text, err)
		}
		e.To = 2 * uint64(line)
		if e.Kind == EventBegin || e.Kind == EventStmt {
			e.From = e.To - 1
		}
		for i := range e.Reads {
			e.Reads[i].From, e.Reads[i].To = e.From, e.To
		}
		if e.Kind == EventEnd {
			e.Sent = e.To - 1
		}
		out = append(out, *e)
	}
	return out, sc.Err()
}

type textParser struct {
	session map[uint64]uint64 // of each transaction
	stmts   map[uint64]int    // how many statements each transaction has had
}

func (p *textParser) parse(text string) (*Event, error) {
	body, sql, hasSQL := strings.Cut(text, " -- ")
	f, err := fields(body)
	if err != nil {
		return nil, err
	}
	e := &Event{SQL: strings.TrimSpace(sql)}
	if n, ok := numbered(f[0], 's'); ok {
		e.Session, f = n, f[1:]
	}
	if len(f) > 0 {
		if n, ok := numbered(f[0], 't'); ok {
			e.Txn, f = n, f[1:]
		}
	}
	if len(f) == 0 {
		return nil, errors.New("no verb")
	}
	if e.Session == 0 {
		e.Session = p.session[e.Txn]
	}
	if e.Session == 0 {
		return nil, errors.New("of which session? a transaction begins with s<number> t<number> begin")
	}
	verb, args := f[0], f[1:]
	switch verb {
	case "session":
		e.Kind = EventSession
		for i, to := range []*string{&e.Engine, &e.Server} {
			if i < len(args) {
				*to = args[i]
			}
		}
		return e, nil
	case "close":
		e.Kind = EventClose
		if len(args) > 0 {
			e.Why = args[0]
		}
		return e, nil
	case "begin":
		e.Kind = EventBegin
		p.session[e.Txn] = e.Session
		for i := 0; i < len(args); i++ {
			switch {
			case args[i] == "implicit":
				e.Implicit = true
			case args[i] == "tokens" && i+1 < len(args):
				i++
				e.Tokens = strings.Split(args[i], ",")
			default:
				e.Level = args[i]
			}
		}
		return e, nil
	case "commit", "abort", "unknown":
		e.Kind = EventEnd
		e.Outcome = map[string]Outcome{"commit": OutcomeCommitted, "abort": OutcomeAborted, "unknown": OutcomeUnknown}[verb]
		e.Pending = len(args) > 0 && args[0] == "pending"
		return e, nil
	}
	e.Kind, e.Coverage = EventStmt, CoverageExact
	if verb == "late" && len(args) > 1 {
		e.N, err = strconv.Atoi(args[0])
		f = args[1:]
	} else {
		p.stmts[e.Txn]++
		e.N = p.stmts[e.Txn]
	}
	if err != nil {
		return nil, err
	}
	if !hasSQL {
		e.SQL = strings.Join(f, " ")
	}
	return e, statementText(e, f)
}

// ofRead reads PredicateRead.Last, or Groups.
func ofRead(e *Event, groups bool, next func() (string, error)) error {
	text, err := next()
	switch {
	case err != nil:
	case len(e.Reads) == 0:
		err = errors.New("the last value, and groups, belong to a condition")
	case groups:
		e.Reads[len(e.Reads)-1].Groups = text
	default:
		e.Reads[len(e.Reads)-1].Last = text
	}
	return err
}

// statementText reads the accesses and the words of a statement.
func statementText(e *Event, f []string) error {
	verb := ""
	for i := 0; i < len(f); i++ {
		w := f[i]
		next := func() (string, error) {
			if i++; i >= len(f) {
				return "", fmt.Errorf("%s needs a value", w)
			}
			return f[i], nil
		}
		number := func() (n int, err error) {
			v, err := next()
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(v)
		}
		var err error
		switch w {
		case "r", "lock", "match", "w", "inc", "i", "d":
			verb = w
			e.CurrentRead = e.CurrentRead || w == "inc"
			e.Verb = map[string]string{"r": "select", "lock": "select", "match": "update", "w": "update", "inc": "update", "i": "insert", "d": "delete"}[w]
		case ",":
			verb = ""
		case "stmt":
			e.Coverage = CoverageNone
		case "opaque":
			e.Coverage = CoverageOpaque
		case "approximate":
			e.Coverage = CoverageApproximate
		case "predicate":
			e.Predicate = true
		case "where", "all", "now", "some", "count":
			r := PredicateRead{Whole: w == "all" || w == "count", Current: w == "now", Some: w == "some", Counted: w == "count"}
			if r.Table, err = next(); err == nil {
				r.Where, err = next()
			}
			e.Predicate, e.Reads = true, append(e.Reads, r)
			e.Verb = cmp.Or(e.Verb, "select")
		case "last", "groups":
			err = ofRead(e, w == "groups", next)
		case "unread":
			e.Predicate = true
			e.Unread, err = next()
		case "image", "was", "values":
			var text string
			if text, err = next(); err == nil && len(e.Accesses) == 0 {
				err = errors.New("an image belongs to an access")
			}
			if err == nil {
				a := &e.Accesses[len(e.Accesses)-1]
				*map[string]*string{"image": &a.Image, "was": &a.Was, "values": &a.Values}[w] = text
			}
		case "undo", "undoes":
			if w == "undo" {
				e.Verb, e.Coverage = "rollback to", CoverageNone
			}
			e.UndoesFrom, err = number()
		case "error":
			e.Error = &ServerError{}
			e.Error.Code, err = next()
		case "tokens":
			var list string
			list, err = next()
			e.Tokens = strings.Split(list, ",")
		default:
			if ok, e := requestWord(e, w, next); ok {
				err = e
				break
			}
			var a Access
			switch verb {
			case "r", "lock", "match":
				a, err = readText(w)
				switch verb {
				case "lock":
					a.Op = OpLock
				case "match":
					a.Op = OpMatch
				}
			case "":
				return fmt.Errorf("unknown word %q", w)
			default:
				var v string
				if v, err = next(); err == nil {
					a, err = writeText(verb, w, v)
				}
			}
			e.Accesses = append(e.Accesses, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readText(w string) (Access, error) {
	row, v, ok := strings.Cut(w, "@")
	if !ok {
		return Access{}, fmt.Errorf("%q is no row@version", w)
	}
	a := Access{Op: OpRead, Row: rowText(row)}
	var err error
	a.Version, a.Order, a.AsOf, a.Writer, a.Approx, err = versionText(v)
	return a, err
}

func writeText(verb, row, w string) (Access, error) {
	a := Access{Op: map[string]Op{"w": OpUpdate, "inc": OpUpdate, "i": OpInsert, "d": OpDelete}[verb], Row: rowText(row)}
	prev, v, ok := strings.Cut(w, ">")
	if !ok {
		return a, fmt.Errorf("%q is no old>new", w)
	}
	var err, err2 error
	a.Prev, a.PrevOrder, _, a.PrevWriter, _, err = versionText(prev)
	a.Version, a.Order, _, _, a.Approx, err2 = versionText(v)
	if a.Op == OpDelete {
		a.Version = ""
	}
	return a, errors.Join(err, err2)
}

func rowText(s string) Row {
	r := Row{Table: "t", Key: s}
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		r = Row{Table: s[:i], Key: s[i+1:]}
	}
	if r.Key == "_" {
		r.Key = ""
	}
	return r
}

func versionText(s string) (id string, order, asOf uint64, token string, approx bool, err error) {
	s, approx = strings.CutSuffix(s, "?")
	s, token, _ = strings.Cut(s, "!")
	s, bound, hasBound := strings.Cut(s, "<")
	id, place, hasPlace := strings.Cut(s, "#")
	var errs []error
	num := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		errs = append(errs, err)
		return n
	}
	switch {
	case hasPlace:
		order = num(place)
	case id != "" && strings.Trim(id, "0123456789") == "":
		order = num(id) + 1
	}
	if hasBound {
		asOf = num(bound)
	}
	return id, order, asOf, token, approx, errors.Join(errs...)
}

// numbered reads s12, t7 and the like.
func numbered(w string, letter byte) (uint64, bool) {
	if len(w) < 2 || w[0] != letter {
		return 0, false
	}
	n, err := strconv.ParseUint(w[1:], 10, 64)
	return n, err == nil && n > 0
}

// fields splits at blanks; "..." keeps blanks, and a comma at the end of a word is a word of its own.
func fields(s string) ([]string, error) {
	var out []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			q, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("a quote is not closed: %w", err)
			}
			u, err := strconv.Unquote(q)
			if err != nil {
				return nil, err
			}
			out, s = append(out, u), s[len(q):]
			continue
		}
		w, rest, _ := strings.Cut(s, " ")
		s = rest
		if list := strings.TrimSuffix(w, ","); list != w && list != "" {
			out = append(out, list, ",")
		} else {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("empty")
	}
	return out, nil
}
