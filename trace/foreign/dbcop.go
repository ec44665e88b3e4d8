package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// dbcopAccess is what an event reads or writes.
type dbcopAccess struct {
	Variable json.RawMessage `json:"variable"`
	Version  json.RawMessage `json:"version"`
}

// dbcopEvent is an event in the form of dbcop 0.2 and later, or in that of earlier versions, which have the fields behind Read.
type dbcopEvent struct {
	Write    json.RawMessage `json:"Write,omitempty"`
	Read     *dbcopAccess    `json:"Read,omitempty"`
	OldWrite *bool           `json:"write,omitempty"`
	Variable json.RawMessage `json:"variable,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Success  *bool           `json:"success,omitempty"`
}

// UnmarshalJSON keeps "Write" and "write" apart, which encoding/json takes for one key.
func (e *dbcopEvent) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	e.Write, e.Variable, e.Value = fields["Write"], fields["variable"], fields["value"]
	for key, to := range map[string]any{"Read": &e.Read, "write": &e.OldWrite, "success": &e.Success} {
		if raw := fields[key]; raw != nil {
			if err := json.Unmarshal(raw, to); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

type dbcopTxn struct {
	Events    []dbcopEvent `json:"events"`
	Committed *bool        `json:"committed,omitempty"`
	Success   *bool        `json:"success,omitempty"`
}

// readDBCop reads dbcop's JSON: sessions as an array of arrays, alone or as "data" of an object.
func readDBCop(data []byte) (*observed.History, error) {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	var sessions [][]dbcopTxn
	switch {
	case len(data) == 0:
	case data[0] == '{':
		var file struct {
			Data *[][]dbcopTxn `json:"data"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, err
		}
		if file.Data == nil {
			return nil, errors.New("has no \"data\"")
		}
		sessions = *file.Data
	default:
		if err := json.Unmarshal(data, &sessions); err != nil {
			return nil, err
		}
	}
	h := &observed.History{KnownInitial: true}
	for s, list := range sessions {
		for i := range list {
			if err := addDBCop(h, uint64(s+1), &list[i]); err != nil {
				return nil, fmt.Errorf("session %d, transaction %d: %w", s+1, i+1, err)
			}
		}
	}
	zeroInitial(h)
	return h, nil
}

// zeroInitial takes reads of version 0 for reads of the initial version where no transaction that may have committed wrote 0, as dbcop does.
func zeroInitial(h *observed.History) {
	written := map[string]bool{}
	for i := range h.Transactions {
		for _, op := range h.Transactions[i].Ops {
			if op.Kind == observed.Write && op.Value == "0" && h.Transactions[i].Outcome != history.OutcomeAborted {
				written[op.Key] = true
			}
		}
	}
	for i := range h.Transactions {
		for k := range h.Transactions[i].Ops {
			if op := &h.Transactions[i].Ops[k]; op.Kind == observed.Read && op.Value == "0" && !written[op.Key] {
				op.Value, op.Initial = "", true
			}
		}
	}
}

func addDBCop(h *observed.History, session uint64, in *dbcopTxn) error {
	t := observed.Transaction{ID: uint64(len(h.Transactions)), Session: session, Outcome: history.OutcomeCommitted}
	if in.Committed != nil && !*in.Committed || in.Committed == nil && in.Success != nil && !*in.Success {
		t.Outcome = history.OutcomeAborted
	} else if in.Committed == nil && in.Success == nil {
		t.Outcome = history.OutcomeUnknown
		h.Omit("transaction that does not say whether it committed")
	}
	for i := range in.Events {
		op, ok, err := in.Events[i].op()
		if err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		if !ok {
			continue
		}
		if op.Kind == observed.Read && t.Outcome != history.OutcomeCommitted {
			op = observed.Op{Key: op.Key, Unknown: true}
		}
		t.Ops = append(t.Ops, op)
	}
	h.Transactions = append(h.Transactions, t)
	return nil
}

var errEvent = errors.New("is neither a read nor a write")

// op is the event as an operation; ok is false for one that failed.
func (e *dbcopEvent) op() (op observed.Op, ok bool, err error) {
	a := dbcopAccess{e.Variable, e.Value}
	switch {
	case e.Write != nil:
		op.Kind = observed.Write
		a = dbcopAccess{}
		if err := json.Unmarshal(e.Write, &a); err != nil {
			return op, false, err
		}
	case e.Read != nil:
		a = *e.Read
	case e.OldWrite != nil && *e.OldWrite:
		op.Kind = observed.Write
	case e.OldWrite == nil:
		return op, false, errEvent
	}
	if e.Success != nil && !*e.Success {
		return op, false, nil
	}
	if len(a.Variable) == 0 || string(a.Variable) == "null" {
		return op, false, errors.New("has no variable")
	}
	op.Key = compactJSON(a.Variable)
	switch none := len(a.Version) == 0 || string(a.Version) == "null"; {
	case none && op.Kind == observed.Write:
		return op, false, errors.New("writes no version")
	case none:
		op.Initial = true
	default:
		op.Value = compactJSON(a.Version)
	}
	return op, true, nil
}

// writeDBCop writes the JSON form of dbcop 0.2, in the object that a file of its own has.
func writeDBCop(h *observed.History) ([]byte, error) {
	if h.Lists() {
		return nil, errLists
	}
	type access struct {
		Variable int  `json:"variable"`
		Version  *int `json:"version"`
	}
	type txn struct {
		Events    []map[string]access `json:"events"`
		Committed bool                `json:"committed"`
	}
	n := newNumbers()
	sessions := make([][]txn, sessionsOf(h))
	most, events := 0, 0
	for i := range h.Transactions {
		t := &h.Transactions[i]
		if t.Outcome == history.OutcomeUnknown {
			return nil, errUnknown
		}
		out := txn{Events: []map[string]access{}, Committed: t.Outcome == history.OutcomeCommitted}
		for k := range t.Ops {
			op := &t.Ops[k]
			if op.Unknown {
				continue
			}
			a := access{Variable: n.key(op.Key)}
			if !op.Initial {
				v := n.value(op.Key, op.Value)
				a.Version = &v
			}
			out.Events = append(out.Events, map[string]access{[]string{"Read", "Write"}[op.Kind]: a})
		}
		s := t.Session
		if s == 0 {
			sessions = append(sessions, nil)
			s = uint64(len(sessions))
		}
		sessions[s-1] = append(sessions[s-1], out)
		most, events = max(most, len(sessions[s-1])), max(events, len(out.Events))
	}
	file := map[string]any{
		"params": map[string]int{"id": 0, "n_node": len(sessions), "n_variable": len(n.keys), "n_transaction": most, "n_event": events},
		"info":   "converted by wirecheck", "start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:00:00Z", "data": sessions,
	}
	out, err := json.Marshal(file)
	return append(out, '\n'), err
}
