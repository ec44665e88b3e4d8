package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"
)

// Reader reads a history line by line.
type Reader struct {
	name    string
	buf     *bufio.Reader
	block   string // whole lines that were taken from buf, or records that are still in it: it is their memory until it is read again
	ahead   int    // how much of buf there was when block began with all of it (records)
	long    []byte // a line that is not whole in the buffer
	line    int
	header  Header
	warning string
	words   words
	text    text
	binary  bool // see binary.go
	rec     binaryReader
	again   *again // nil: all events are read
}

// maxBlock is how much is taken from the buffer at once.
const maxBlock = 64 << 10

// maxLine is the longest line that is believed to be one.
const maxLine = 256 << 20

// NewReader reads the header. The name is used in errors.
func NewReader(r io.Reader, name string) (*Reader, error) {
	hr := &Reader{name: name, buf: bufio.NewReaderSize(r, 1<<20)}
	hr.rec = binaryReader{words: &hr.words, text: &hr.text}
	line, whole, err := hr.longLine()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: is empty: a history begins with a header line", name)
	}
	if err != nil {
		return nil, err
	}
	if err := hr.readHeader(line); err != nil {
		if begins := min(len(line), len(headerBegins)); !whole && line[:begins] == headerBegins[:begins] {
			return nil, hr.fail("the header line is cut off: nothing was recorded")
		}
		return nil, err
	}
	return hr, nil
}

// Header is the history's first line.
func (r *Reader) Header() Header { return r.header }

// Warning tells, after the end, that the last line was cut off (by a crash of the recorder) and left out; empty if not.
func (r *Reader) Warning() string { return r.warning }

// Lend has Next give strings that are good until the next call, but for those of which there are few: names of tables, say, and texts of statements.
func (r *Reader) Lend() { r.text.lends = true }

// Next reads the next event into e. The slices in e are used again by the next call; the strings stay valid. At the end
// it returns io.EOF.
func (r *Reader) Next(e *Event) error {
	for {
		err := r.nextEvent(e)
		if err != nil || r.again == nil || !r.again.over(e.Kind, e.Txn) {
			return err
		}
	}
}

func (r *Reader) nextEvent(e *Event) error {
	if r.binary {
		return r.nextBinary(e)
	}
	for {
		line, whole, err := r.next()
		if err != nil {
			return err
		}
		if len(line) == 0 || r.again != nil && whole && r.again.overLine(line) {
			continue
		}
		p := parser{s: line, words: &r.words, text: &r.text}
		e.reset()
		err = p.event(e)
		if err == nil {
			return nil
		}
		if !whole {
			r.warning = fmt.Sprintf("%s:%d: the last line is cut off and was left out", r.name, r.line)
			return io.EOF
		}
		return r.fail(err.Error())
	}
}

// reset makes e empty, with the room of its slices for the next event.
func (e *Event) reset() {
	acc, tokens := e.Accesses[:0], e.Tokens[:0]
	*e = Event{}
	e.Accesses, e.Tokens = acc, tokens
}

// Decoder reads events that stand elsewhere than in a history file, each in its JSON form, as AppendEvent writes it.
type Decoder struct{ words words }

// Decode reads an event into e. The slices in e are used again by the next call; the strings stay valid.
func (d *Decoder) Decode(text []byte, e *Event) error {
	p := parser{s: string(text), words: &d.words}
	e.reset()
	return p.event(e)
}

func (r *Reader) fail(what string) error {
	return fmt.Errorf("%s:%d: %s", r.name, r.line, what)
}

// next reads one line without its end, which is good until the next call; whole tells that it had one. What stays of it is copied, see words and text.
func (r *Reader) next() (line string, whole bool, err error) {
	if r.block == "" {
		if _, err := r.buf.Peek(1); err != nil {
			return r.longLine()
		}
		ahead, _ := r.buf.Peek(min(r.buf.Buffered(), maxBlock))
		end := bytes.LastIndexByte(ahead, '\n') + 1
		if end == 0 {
			return r.longLine()
		}
		r.block = view(ahead[:end])
		r.buf.Discard(end) //nolint:errcheck // it is there
	}
	r.line++
	i := strings.IndexByte(r.block, '\n')
	line, r.block = r.block[:i], r.block[i+1:]
	return strings.TrimRight(line, "\r\n"), true, nil
}

// view is a string in the memory of b. It is good until b changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// longLine reads one line that is not whole in the buffer, or too long for a block.
func (r *Reader) longLine() (line string, whole bool, err error) {
	r.long = r.long[:0]
	for {
		part, err := r.buf.ReadSlice('\n')
		r.long = append(r.long, part...)
		switch {
		case err == nil:
			r.line++
			return string(bytes.TrimRight(r.long, "\r\n")), true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(r.long) > maxLine {
				r.line++
				return "", false, r.fail("the line is longer than 256 MiB: this is not a history")
			}
		case errors.Is(err, io.EOF):
			if len(r.long) == 0 {
				return "", false, io.EOF
			}
			r.line++
			return string(r.long), false, nil
		default:
			return "", false, fmt.Errorf("read %s: %w", r.name, err)
		}
	}
}

// headerBegins is how a header line begins.
const headerBegins = `{"wirecheck":`

const notHistory = "this is not a wirecheck history: the first line must be {\"wirecheck\":\"history\",...}; for another format say --input"

func (r *Reader) readHeader(line string) error {
	p := parser{s: line, words: &r.words}
	kind, version := "", uint64(0)
	err := p.object(func(key string) (err error) {
		switch key {
		case "wirecheck":
			kind, err = p.str()
		case "version":
			version, err = p.uint()
			if err == nil && version != FormatVersion {
				// What else the header holds is that version's business.
				return errVersion
			}
		case "engine":
			r.header.Engine, err = p.str()
		case "started":
			r.header.Started, err = p.int()
		case "run":
			r.header.Run, err = p.str()
		case "closes":
			r.header.Closes, err = p.bool()
		case "form":
			var form string
			if form, err = p.str(); err == nil && form != formBinary {
				err = fmt.Errorf("unknown form %q", form)
			}
			r.binary = true
		default:
			return unknownKey(key)
		}
		return err
	})
	switch {
	case errors.Is(err, errVersion):
		return r.fail(fmt.Sprintf("the history has version %d and this program reads version %d: use the wirecheck that wrote it", version, FormatVersion))
	case kind != "history":
		return r.fail(notHistory)
	case err != nil:
		return r.fail(err.Error())
	case version == 0:
		return r.fail("the header has no version: it was written by hand? Version 1 is the only one")
	}
	if err := p.rest(); err != nil {
		return r.fail(err.Error())
	}
	return nil
}

var errVersion = errors.New("other version")

func unknownKey(key string) error {
	return fmt.Errorf("unknown key %s: it was written by a newer wirecheck, or by hand (docs/reference/history-format.md lists the keys)", strconv.Quote(key))
}

// parser reads one line of JSON.
type parser struct {
	s     string
	i     int
	words *words
	text  *text // nil: strings share the line's memory
}

func (p *parser) event(e *Event) error {
	err := p.object(func(key string) (err error) {
		switch key {
		case "e":
			e.Kind, err = word[EventKind](p)
		case "s":
			e.Session, err = p.uint()
		case "t":
			if e.Txn != 0 {
				return errors.New("the event has two transactions (key t)")
			}
			e.Txn, err = p.uint()
		case "from":
			e.From, err = p.uint()
		case "to":
			e.To, err = p.uint()
		case "at":
			e.At, err = p.int()
		case "engine":
			e.Engine, err = word[string](p)
		case "server":
			e.Server, err = word[string](p)
		case "db":
			e.Database, err = word[string](p)
		case "user":
			e.User, err = word[string](p)
		case "client":
			e.Client, err = word[string](p)
		case "backend":
			e.Backend, err = p.uint()
		case "level":
			e.Level, err = word[string](p)
		case "implicit":
			e.Implicit, err = p.bool()
		case "n":
			e.N, err = p.small()
		case "sql":
			e.SQL, err = word[string](p)
		case "verb":
			e.Verb, err = word[string](p)
		case "acc":
			err = p.array(func() error {
				if len(e.Accesses) < cap(e.Accesses) {
					e.Accesses = e.Accesses[:len(e.Accesses)+1]
					e.Accesses[len(e.Accesses)-1] = Access{}
				} else {
					e.Accesses = append(e.Accesses, Access{})
				}
				return p.access(&e.Accesses[len(e.Accesses)-1])
			})
		case "coverage":
			e.Coverage, err = word[Coverage](p)
		case "why":
			e.Why, err = word[string](p)
		case "current_read":
			e.CurrentRead, err = p.bool()
		case "predicate":
			e.Predicate, err = p.bool()
		case "undoes_from":
			e.UndoesFrom, err = p.small()
		case "tokens":
			err = p.list(&e.Tokens)
		case "error":
			e.Error = &ServerError{}
			err = p.serverError(e.Error)
		case "reads":
			err = p.array(func() error {
				e.Reads = append(e.Reads, PredicateRead{})
				return p.read(&e.Reads[len(e.Reads)-1])
			})
		case "unread":
			e.Unread, err = word[string](p)
		case "outcome":
			e.Outcome, err = word[Outcome](p)
		case "sent":
			e.Sent, err = p.uint()
		case "pending":
			e.Pending, err = p.bool()
		default:
			return p.request(e, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := p.rest(); err != nil {
		return err
	}
	return e.Check()
}

func (p *parser) serverError(to *ServerError) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "code":
			to.Code, err = word[string](p)
		case "message":
			to.Message, err = word[string](p)
		default:
			return unknownKey("error." + key)
		}
		return err
	})
}

// Check says what no reader of the event could make sense of, as an error.
func (e *Event) Check() error {
	switch e.Kind {
	case EventSession, EventClose, EventStmt, EventBegin, EventEnd, "":
	default:
		return fmt.Errorf("unknown kind of event %q", string(e.Kind))
	}
	if err := e.checkNumbers(); err != nil {
		return err
	}
	switch e.Outcome {
	case "", OutcomeCommitted, OutcomeAborted, OutcomeUnknown:
	default:
		return fmt.Errorf("unknown outcome %q", string(e.Outcome))
	}
	switch e.Coverage {
	case CoverageNone, CoverageExact, CoverageApproximate, CoverageOpaque:
	default:
		return fmt.Errorf("unknown coverage %q", string(e.Coverage))
	}
	for i := range e.Accesses {
		switch a := &e.Accesses[i]; a.Op {
		case OpRead, OpLock, OpMatch, OpInsert, OpUpdate, OpDelete:
		default:
			return fmt.Errorf("unknown operation %q", string(a.Op))
		}
	}
	return nil
}

// checkNumbers is Check of an event whose words are known ones.
func (e *Event) checkNumbers() error {
	switch {
	case e.Kind == "":
		return errors.New("the event has no kind (key e)")
	case e.Txn == 0 && (e.Kind == EventBegin || e.Kind == EventEnd):
		return fmt.Errorf("a %s event needs t, the transaction's number", e.Kind)
	case e.Session == 0:
		return fmt.Errorf("a %s event needs s, the session's number", e.Kind)
	}
	return nil
}
