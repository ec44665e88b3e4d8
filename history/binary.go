package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// The binary form has the header line of the JSON-lines form, with "form":"binary", and then records: a uvarint with the record's length, and the
// record. A record begins with a byte for the kind of event. Then come uvarints: which fields follow (the bits below), and the fields. A word, of
// which there are few different ones, is a number of the table of words, or 0 and a new word. What the bits cannot say is a record of kind
// recordJSON, with the event's JSON form. docs/reference/history-format.md describes it.

// formBinary is the header's form.
const formBinary = "binary"

const recordJSON = 0

// The kinds, operations, outcomes and coverages by their number in a record.
var (
	binaryKinds     = []EventKind{"", EventSession, EventBegin, EventStmt, EventEnd, EventClose}
	binaryOps       = []Op{OpRead, OpLock, OpMatch, OpInsert, OpUpdate, OpDelete}
	binaryOutcomes  = []Outcome{"", OutcomeCommitted, OutcomeAborted, OutcomeUnknown}
	binaryCoverages = []Coverage{CoverageNone, CoverageExact, CoverageApproximate, CoverageOpaque}
)

func number[T comparable](list []T, v T) (int, bool) {
	for i := range list {
		if list[i] == v {
			return i, true
		}
	}
	return 0, false
}

// The fields of an event, in their order in a record.
const (
	hasTxn = 1 << iota
	hasFrom
	hasTo
	hasAt
	hasLevel
	hasImplicit
	hasN
	hasSQL
	hasVerb
	hasAccesses
	hasCoverage
	hasCurrentRead
	hasPredicate
	hasTokens
	hasOutcome
	hasSent
	hasPending
	hasParams
	hasRequest
	hasUndoes
	hasReads
	hasUnread
	hasWhy
	hasTags
	hasRest // in the JSON form, with kind and session: what few events have
	noField // and above
)

// The fields of an access. The lowest bits are the operation.
const (
	opBits     = 7
	accVersion = 8 << iota
	accWriter
	accPrev
	accPrevWriter
	accOrder
	accPrevOrder
	accAsOf
	accApprox
	accKeyText // the key is no number
	accName
	accImage
	accWas
	accValues
	noAccess // and above
)

// The fields of a predicate read.
const (
	readWhole = 1 << iota
	readCurrent
	readMet
	readWithin
	readSnapshot // which follows
	readSome
	readCounted
	readLast   // which follows
	readGroups // which follow
	noRead     // and above
)

// BinaryWriter writes the binary form. It is not safe for concurrent use.
type BinaryWriter struct {
	buf   *bufio.Writer
	rec   []byte
	words vocabulary
	// fields are those of the event at hand, which stand behind the mask that says which ones they are.
	fields []byte
	mask   uint64
}

// NewBinaryWriter writes the header to w and returns a writer for the events.
func NewBinaryWriter(w io.Writer, h Header) (*BinaryWriter, error) {
	b := &BinaryWriter{buf: bufio.NewWriterSize(w, 64<<10)}
	if _, err := b.buf.Write(appendHeader(nil, h, formBinary)); err != nil {
		return nil, fmt.Errorf("write history header: %w", err)
	}
	return b, nil
}

// Write appends one event. It is buffered, see Flush.
func (w *BinaryWriter) Write(e *Event) error {
	w.rec = w.append(w.rec[:0], e)
	var size [binary.MaxVarintLen64]byte
	if _, err := w.buf.Write(size[:binary.PutUvarint(size[:], uint64(len(w.rec)))]); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	if _, err := w.buf.Write(w.rec); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Flush hands everything written so far to the underlying writer.
func (w *BinaryWriter) Flush() error { return w.buf.Flush() }

// plain reports whether the bits, with the rest that stands behind them, can say all of an event.
func plain(e *Event) bool {
	if e.Engine != "" || e.Server != "" || e.Database != "" || e.User != "" || e.Client != "" || e.Backend != 0 || e.N < 0 || e.UndoesFrom < 0 {
		return false
	}
	for i := range e.Accesses {
		if _, ok := number(binaryOps, e.Accesses[i].Op); !ok {
			return false
		}
	}
	return true
}

func (w *BinaryWriter) append(b []byte, e *Event) []byte {
	kind, known := number(binaryKinds, e.Kind)
	outcome, ok1 := number(binaryOutcomes, e.Outcome)
	coverage, ok2 := number(binaryCoverages, e.Coverage)
	if !known || kind == recordJSON || !ok1 || !ok2 || !plain(e) {
		return AppendEvent(append(b, recordJSON), e)
	}
	w.mask, w.fields = 0, w.fields[:0]
	w.event(e, outcome, coverage)
	b = binary.AppendUvarint(append(b, byte(kind)), e.Session)
	b = append(binary.AppendUvarint(b, w.mask), w.fields...)
	if cap(w.fields) > maxKeptLine {
		w.fields = nil
	}
	return b
}

// num, flag, word and text add a field that the event has.
func (w *BinaryWriter) num(bit, v uint64) {
	if v != 0 {
		w.mask |= bit
		w.fields = binary.AppendUvarint(w.fields, v)
	}
}

func (w *BinaryWriter) flag(bit uint64, set bool) {
	if set {
		w.mask |= bit
	}
}

func (w *BinaryWriter) word(bit uint64, s string) {
	if s != "" {
		w.mask |= bit
		w.fields = w.words.append(w.fields, s)
	}
}

func (w *BinaryWriter) text(bit uint64, s string) {
	if s != "" {
		w.mask |= bit
		w.fields = appendBytes(w.fields, s)
	}
}

func (w *BinaryWriter) event(e *Event, outcome, coverage int) {
	w.num(hasTxn, e.Txn)
	w.num(hasFrom, e.From)
	w.num(hasTo, e.To)
	w.num(hasAt, uint64(e.At))
	w.word(hasLevel, e.Level)
	w.flag(hasImplicit, e.Implicit)
	w.num(hasN, uint64(e.N))
	if e.SQL != "" {
		w.mask |= hasSQL
		w.fields = w.words.appendText(w.fields, e.SQL)
	}
	w.word(hasVerb, e.Verb)
	w.num(hasAccesses, uint64(len(e.Accesses)))
	for i := range e.Accesses {
		w.fields = w.access(w.fields, &e.Accesses[i])
	}
	w.num(hasCoverage, uint64(coverage))
	w.flag(hasCurrentRead, e.CurrentRead)
	w.flag(hasPredicate, e.Predicate)
	w.num(hasTokens, uint64(len(e.Tokens)))
	for _, t := range e.Tokens {
		w.fields = appendBytes(w.fields, t)
	}
	w.num(hasOutcome, uint64(outcome))
	w.num(hasSent, e.Sent)
	w.flag(hasPending, e.Pending)
	w.text(hasParams, e.Params)
	w.text(hasRequest, e.Request)
	w.num(hasUndoes, uint64(e.UndoesFrom))
	w.num(hasReads, uint64(len(e.Reads)))
	for i := range e.Reads {
		w.fields = w.read(w.fields, &e.Reads[i])
	}
	w.word(hasUnread, e.Unread)
	w.word(hasWhy, e.Why)
	w.num(hasTags, uint64(len(e.Tags)))
	for _, t := range e.Tags {
		w.fields = w.words.append(w.fields, t)
	}
	if e.Error != nil || len(e.Operands) > 0 || len(e.Derived) > 0 {
		rest := Event{Kind: e.Kind, Session: e.Session, Txn: e.Txn, Error: e.Error, Operands: e.Operands, Derived: e.Derived}
		w.mask |= hasRest
		w.fields = appendBytes(w.fields, AppendEvent(nil, &rest))
	}
}

func (w *BinaryWriter) access(b []byte, a *Access) []byte {
	op, _ := number(binaryOps, a.Op)
	mask := uint64(op)
	bit := func(bit uint64, set bool) {
		if set {
			mask |= bit
		}
	}
	bit(accVersion, a.Version != "")
	bit(accWriter, a.Writer != "")
	bit(accPrev, a.Prev != "")
	bit(accPrevWriter, a.PrevWriter != "")
	bit(accOrder, a.Order != 0)
	bit(accPrevOrder, a.PrevOrder != 0)
	bit(accAsOf, a.AsOf != 0)
	bit(accApprox, a.Approx)
	bit(accName, a.Name != "")
	bit(accImage, a.Image != "")
	bit(accWas, a.Was != "")
	bit(accValues, a.Values != "")
	key, asNumber := decimal(a.Row.Key)
	bit(accKeyText, !asNumber)
	b = w.words.append(binary.AppendUvarint(b, mask), a.Row.Table)
	if asNumber {
		b = binary.AppendUvarint(b, key)
	} else {
		b = appendBytes(b, a.Row.Key)
	}
	for _, s := range [...]string{a.Version, a.Writer, a.Prev, a.PrevWriter} {
		if s != "" {
			b = appendBytes(b, s)
		}
	}
	for _, n := range [...]uint64{a.Order, a.PrevOrder, a.AsOf} {
		if n != 0 {
			b = binary.AppendUvarint(b, n)
		}
	}
	for _, s := range [...]string{a.Name, a.Image, a.Was, a.Values} {
		if s != "" {
			b = appendBytes(b, s)
		}
	}
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// binaryReader reads the fields of one record after the other.
type binaryReader struct {
	s    string
	i    int
	bad  bool
	list []string // the words so far
	all  bool     // these are all
	// words and text keep strings of the record.
	words *words
	text  *text
}

func (r *binaryReader) uint() uint64 {
	if r.i < len(r.s) && r.s[r.i] < 0x80 { // as most are
		r.i++
		return uint64(r.s[r.i-1])
	}
	return r.longer()
}

// longer reads a number of more than one byte.
func (r *binaryReader) longer() uint64 {
	n := uint64(0)
	for shift := uint(0); r.i < len(r.s) && shift < 64; shift += 7 {
		c := r.s[r.i]
		r.i++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
	r.bad = true
	return 0
}

// str reads a string that stays valid.
func (r *binaryReader) str() string { return r.text.keep(r.raw()) }

// raw reads a string that shares the record's memory.
func (r *binaryReader) raw() string {
	n := r.uint()
	if n > uint64(len(r.s)-r.i) {
		r.bad = true
		return ""
	}
	s := r.s[r.i : r.i+int(n)]
	r.i += int(n)
	return s
}

func (r *binaryReader) word() string {
	n := r.uint()
	if n == 0 {
		s := strings.Clone(r.raw())
		if !r.all && len(r.list) < maxWords {
			r.list = append(r.list, s)
		}
		return s
	}
	if n > uint64(len(r.list)) {
		r.bad = true
		return ""
	}
	return r.list[n-1]
}

func pick[T any](r *binaryReader, list []T, n uint64) (v T) {
	if n >= uint64(len(list)) {
		r.bad = true
		return v
	}
	return list[n]
}

// nextBinary reads the next record into e.
func (r *Reader) nextBinary(e *Event) error {
	s, err := r.record()
	for err == nil && r.again != nil && r.again.overRecord(s) {
		s, err = r.record()
	}
	if err != nil {
		return err
	}
	e.reset()
	if err := r.rec.readRecord(s, e); err != nil {
		return r.fail(err.Error())
	}
	return nil
}

// record reads one record, which is good until the next call.
func (r *Reader) record() (string, error) {
	s, rest, ok := cutRecord(r.block)
	if !ok {
		r.buf.Discard(r.ahead - len(r.block)) //nolint:errcheck // it is there
		r.block, r.ahead = "", 0
		if _, err := r.buf.Peek(1); err == nil {
			ahead, _ := r.buf.Peek(r.buf.Buffered())
			if s, rest, ok = cutRecord(view(ahead)); ok {
				r.ahead = len(ahead)
			}
		}
	}
	if ok {
		r.line++
		r.block = rest
		return s, nil
	}
	size, err := binary.ReadUvarint(r.buf)
	if errors.Is(err, io.EOF) {
		return "", io.EOF
	}
	r.line++
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "", r.cutOff()
	case err != nil || size > maxLine:
		return "", r.fail("the record's length is damaged: copy the file once more from where it was written")
	}
	if r.long, err = readFull(r.buf, r.long[:0], int(size)); errors.Is(err, io.ErrUnexpectedEOF) {
		return "", r.cutOff()
	} else if err != nil {
		return "", fmt.Errorf("read %s: %w", r.name, err)
	}
	return string(r.long), nil
}

// cutRecord takes one record from what is there; false: there is no whole one.
func cutRecord(block string) (record, rest string, ok bool) {
	b := binaryReader{s: block}
	size := b.uint()
	if b.bad || size > uint64(len(block)-b.i) {
		return "", block, false
	}
	end := b.i + int(size)
	return block[b.i:end], block[end:], true
}

// readFull reads n bytes, of which the file may have less: memory grows with what is there.
func readFull(r io.Reader, b []byte, n int) ([]byte, error) {
	const step = 64 << 10
	for len(b) < n {
		part := min(n-len(b), step)
		at := len(b)
		if cap(b) < at+part {
			b = append(b, make([]byte, part)...)
		}
		b = b[:at+part]
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return b[:at], err
		}
	}
	return b, nil
}

func (r *Reader) cutOff() error {
	r.warning = fmt.Sprintf("%s:%d: the last record is cut off and was left out", r.name, r.line)
	return io.EOF
}

func (r *binaryReader) event(e *Event) {
	e.Kind = pick(r, binaryKinds, r.uint())
	e.Session = r.uint()
	mask := r.uint()
	num := func(bit uint64) uint64 {
		if mask&bit == 0 {
			return 0
		}
		return r.uint()
	}
	word := func(bit uint64) string {
		if mask&bit == 0 {
			return ""
		}
		return r.word()
	}
	e.Txn, e.From, e.To, e.At = num(hasTxn), num(hasFrom), num(hasTo), int64(num(hasAt))
	e.Level, e.Implicit = word(hasLevel), mask&hasImplicit != 0
	e.N = number32(r, num(hasN))
	e.SQL, e.Verb = word(hasSQL), word(hasVerb)
	for range num(hasAccesses) {
		if r.bad {
			return
		}
		if len(e.Accesses) < cap(e.Accesses) {
			e.Accesses = e.Accesses[:len(e.Accesses)+1]
			e.Accesses[len(e.Accesses)-1] = Access{}
		} else {
			e.Accesses = append(e.Accesses, Access{})
		}
		r.access(&e.Accesses[len(e.Accesses)-1])
	}
	e.Coverage = pick(r, binaryCoverages, num(hasCoverage))
	e.CurrentRead, e.Predicate = mask&hasCurrentRead != 0, mask&hasPredicate != 0
	for range num(hasTokens) {
		if r.bad {
			return
		}
		e.Tokens = append(e.Tokens, r.str())
	}
	e.Outcome = pick(r, binaryOutcomes, num(hasOutcome))
	e.Sent, e.Pending = num(hasSent), mask&hasPending != 0
	if mask&hasParams != 0 {
		e.Params = r.str()
	}
	if mask&hasRequest != 0 {
		e.Request = r.str()
	}
	e.UndoesFrom = number32(r, num(hasUndoes))
	for range num(hasReads) {
		if r.bad {
			return
		}
		e.Reads = append(e.Reads, r.read())
	}
	e.Unread, e.Why = word(hasUnread), word(hasWhy)
	for range num(hasTags) {
		if r.bad {
			return
		}
		e.Tags = append(e.Tags, r.word())
	}
	r.bad = r.bad || mask >= noField
	if mask&hasRest != 0 && !r.bad {
		r.rest(e)
	}
}

// rest reads what is written in the JSON form into e.
func (r *binaryReader) rest(e *Event) {
	rest := Event{}
	p := parser{s: r.raw(), words: r.words, text: r.text}
	r.bad = r.bad || p.event(&rest) != nil
	e.Error, e.Operands, e.Derived = rest.Error, rest.Operands, rest.Derived
}

// number32 is a number that fits an int everywhere.
func number32(r *binaryReader, n uint64) int {
	r.bad = r.bad || n > math.MaxInt32
	return int(n)
}

func (r *binaryReader) access(a *Access) {
	mask := r.uint()
	a.Op = pick(r, binaryOps, mask&opBits)
	a.Row.Table = r.word()
	if mask&accKeyText != 0 {
		a.Row.Key = r.str()
	} else {
		a.Row.Key = r.text.number(r.uint())
	}
	str := func(bit uint64) string {
		if mask&bit == 0 {
			return ""
		}
		return r.str()
	}
	num := func(bit uint64) uint64 {
		if mask&bit == 0 {
			return 0
		}
		return r.uint()
	}
	a.Version, a.Writer, a.Prev, a.PrevWriter = str(accVersion), str(accWriter), str(accPrev), str(accPrevWriter)
	a.Order, a.PrevOrder, a.AsOf = num(accOrder), num(accPrevOrder), num(accAsOf)
	if mask&(accName|accImage|accWas|accValues) != 0 {
		a.Name, a.Image, a.Was, a.Values = str(accName), str(accImage), str(accWas), str(accValues)
	}
	a.Approx = mask&accApprox != 0
	r.bad = r.bad || mask >= noAccess
}
