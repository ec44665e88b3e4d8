package engine

import (
	"context"

	"wirecheck/answer"
)

// Expecter is a Conn that can be told what comes next. It sends that ahead of its turn, so that the server does not wait for us between two
// queries.
type Expecter interface {
	// Expect says which queries Do is given next, each in a message of its own. Their answers are those that they would have otherwise. They neither begin nor end
	// a transaction, and no other session waits for what they do: some may be executed although Do is given something else. What was expected before
	// is not any more: when Expect comes back without an error, none of it is under way.
	Expect(ctx context.Context, queries []string) error
}

// Window is how many bytes of statements are under way at most: the sockets' buffers have room for them, so that writing never waits for a server that
// waits for us to read.
const Window = 16 << 10

// Ahead knows which statements an Expecter sends ahead.
type Ahead struct {
	due  []string // are to be sent
	sent []early
	size int // of what was sent
}

// early is a statement that was sent ahead, with its answer if that was read ahead, too.
type early struct {
	sql    string
	answer *answer.Answer
}

// Expect notes what comes next. Nothing may be under way.
func (h *Ahead) Expect(queries []string) { h.due = queries }

// Turn takes the statement whose turn it is, and reports whether it was sent ahead, and its answer if that was read. If another one was expected, nothing
// is any more, and drop reads the answers that are under way.
func (h *Ahead) Turn(sql string, drop func() error) (sent bool, _ *answer.Answer, err error) {
	if len(h.sent) > 0 && h.sent[0].sql == sql {
		first := h.sent[0]
		h.sent, h.size = h.sent[1:], h.size-len(sql)
		return true, first.answer, nil
	}
	if err := h.Drop(drop); err != nil {
		return false, nil, err
	}
	if len(h.due) > 0 && h.due[0] == sql {
		h.due = h.due[1:]
	} else {
		h.due = nil
	}
	return false, nil, nil
}

// Drop reads what is under way.
func (h *Ahead) Drop(drop func() error) error {
	for _, e := range h.sent {
		if e.answer == nil {
			if err := drop(); err != nil {
				return err
			}
		}
	}
	if len(h.sent) > 0 {
		h.due, h.sent, h.size = nil, nil, 0
	}
	return nil
}

// Next gives what is to be sent ahead now, when half of what was sent has been answered.
func (h *Ahead) Next() (list []string) {
	for h.size <= Window/2 || len(list) > 0 {
		if len(h.due) == 0 || h.size+len(h.due[0]) > Window {
			break
		}
		sql := h.due[0]
		list, h.due = append(list, sql), h.due[1:]
		h.sent, h.size = append(h.sent, early{sql: sql}), h.size+len(sql)
	}
	return list
}

// Read reads all answers that are under way, for the turns of their statements.
func (h *Ahead) Read(read func() (answer.Answer, error)) error {
	for i := range h.sent {
		if e := &h.sent[i]; e.answer == nil {
			a, err := read()
			if err != nil {
				return err
			}
			e.answer = &a
		}
	}
	return nil
}
