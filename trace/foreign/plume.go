package foreign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"wirecheck/history"
	"wirecheck/history/observed"
)

var (
	// plumeLine is r(key,value,session,txn) or w(...): Plume, PolySI, IsoVista, AWDIT.
	plumeLine = regexp.MustCompile(`^([rw])\(\s*(-?\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*\)$`)
	// testLine is AWDIT's test form: "w 0 1", a line of dashes between transactions, of equals signs between sessions.
	testLine = regexp.MustCompile(`^(?:([rw])\s+(-?\d+)\s+(-?\d+)|(-{2,})|(={2,}))$`)
)

const (
	plumeInitial = "0" // the value that every key has before it is written
	plumeAborted = "-1"
)

// readPlume reads operations a line: in Plume's form, or in AWDIT's test form.
func readPlume(data []byte) (*observed.History, error) {
	p := plume{h: &observed.History{}, sessions: map[string]uint64{}, at: map[[2]string]int{}, last: map[uint64]string{}}
	sc := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	session, txn, test := 1, 1, false
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "//") {
			continue
		}
		if m := plumeLine.FindStringSubmatch(line); m != nil && !test {
			p.h.KnownInitial = true
			p.add(m[1], m[2], m[3], m[4], m[5], true)
			continue
		}
		m := testLine.FindStringSubmatch(line)
		if m == nil || len(p.h.Transactions) > 0 && !test {
			return nil, fmt.Errorf("line %d: %q is not r(key,value,session,txn) or w(...)", n, cut(line))
		}
		switch test = true; {
		case m[4] != "":
			txn++
		case m[5] != "":
			session++
			txn++
		default:
			p.add(m[1], m[2], m[3], fmt.Sprint(session), fmt.Sprint(txn), false)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	return p.h, nil
}

func cut(line string) string {
	if len(line) > 60 {
		return line[:60] + "..."
	}
	return line
}

type plume struct {
	h        *observed.History
	sessions map[string]uint64
	at       map[[2]string]int // transaction by session and number
	last     map[uint64]string // number of a session's last transaction
}

// add adds an operation. A number of a transaction that comes back after another one of its session stands for the same transaction, and its
// place in the session's order is then not known.
func (p *plume) add(kind, key, value, session, txn string, initial bool) {
	s := p.sessions[session]
	if s == 0 {
		s = uint64(len(p.sessions) + 1)
		p.sessions[session] = s
	}
	place := [2]string{session, txn}
	i, known := p.at[place]
	if !known {
		i = len(p.h.Transactions)
		p.at[place] = i
		t := observed.Transaction{ID: uint64(i), Session: s, Outcome: history.OutcomeCommitted}
		if txn == plumeAborted {
			t.Outcome = history.OutcomeAborted
		}
		p.h.Transactions = append(p.h.Transactions, t)
	} else if p.last[s] != txn && txn != plumeAborted {
		p.h.Omit("transaction whose operations do not stand together")
		p.h.Transactions[i].Session = 0
	}
	if txn != plumeAborted {
		p.last[s] = txn
	}
	t := &p.h.Transactions[i]
	op := observed.Op{Key: key, Value: value}
	switch {
	case kind == "w" && initial && value == plumeInitial:
		return // the same as the value before any write
	case kind == "w":
		op.Kind = observed.Write
	case txn == plumeAborted:
		op.Unknown, op.Value = true, ""
	case initial && value == plumeInitial:
		op.Initial = true
	}
	t.Ops = append(t.Ops, op)
}

var errLists = errors.New("the form has no lists")

// writePlume writes Plume's form. Keys and values become numbers.
func writePlume(h *observed.History) ([]byte, error) {
	if h.Lists() {
		return nil, errLists
	}
	n := newNumbers()
	var b bytes.Buffer
	free := sessionsOf(h)
	for i := range h.Transactions {
		t := &h.Transactions[i]
		session, txn := t.Session, fmt.Sprint(i+1)
		if session == 0 {
			free++
			session = free
		}
		switch t.Outcome {
		case history.OutcomeAborted:
			txn = plumeAborted
		case history.OutcomeUnknown:
			return nil, errUnknown
		}
		for k := range t.Ops {
			op := &t.Ops[k]
			if op.Unknown {
				continue
			}
			value := 0
			if !op.Initial {
				value = n.value(op.Key, op.Value)
			}
			fmt.Fprintf(&b, "%s(%d,%d,%d,%s)\n", []string{"r", "w"}[op.Kind], n.key(op.Key), value, session, txn)
		}
	}
	return b.Bytes(), nil
}

var errUnknown = errors.New("the form has no transactions of unknown outcome")

// sessionsOf is the largest number of a session.
func sessionsOf(h *observed.History) (most uint64) {
	for i := range h.Transactions {
		most = max(most, h.Transactions[i].Session)
	}
	return most
}

// numbers gives keys and values numbers, for formats that have nothing else: keys from 0, values of the whole history from 1.
type numbers struct {
	keys   map[string]int
	values map[[2]string]int
}

func newNumbers() *numbers {
	return &numbers{map[string]int{}, map[[2]string]int{}}
}

func (n *numbers) key(s string) int {
	i, ok := n.keys[s]
	if !ok {
		i = len(n.keys)
		n.keys[s] = i
	}
	return i
}

func (n *numbers) value(key, s string) int {
	k := [2]string{key, s}
	if n.values[k] == 0 {
		n.values[k] = len(n.values) + 1
	}
	return n.values[k]
}
