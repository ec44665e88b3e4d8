package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wirecheck/history/observed"
)

// jsonOp is what matters of an operation in JSON.
type jsonOp struct {
	Index   json.RawMessage `json:"index"`
	Type    json.RawMessage `json:"type"`
	Process json.RawMessage `json:"process"`
	Value   json.RawMessage `json:"value"`
}

// readJepsenJSON reads the JSON form of a Jepsen history: an array of objects, or one object after the other.
func readJepsenJSON(data []byte) (*observed.History, error) {
	var events []event
	err := eachJSON(data, func(raw json.RawMessage) error {
		var op jsonOp
		if err := json.Unmarshal(raw, &op); err != nil {
			return err
		}
		events = append(events, op.event())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return jepsenHistory(events), nil
}

// eachJSON calls f with each element of an array, or with each value of those that follow one another.
func eachJSON(data []byte, f func(json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	array := false
	if t := bytes.TrimLeft(data, "\ufeff \t\r\n"); len(t) > 0 && t[0] == '[' {
		if _, err := d.Token(); err != nil {
			return err
		}
		array = true
	}
	for n := 1; !array || d.More(); n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) && !array {
			return nil
		} else if err != nil {
			return fmt.Errorf("element %d: %w", n, err)
		}
		if err := f(raw); err != nil {
			return fmt.Errorf("element %d: %w", n, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("the end of the array: %w", err)
	}
	return nil
}

// word is a string without its quotes, and any other value as it stands.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		return s
	}
	return string(raw)
}

func (op *jsonOp) event() event {
	e := event{kind: nameJSON(op.Type)}
	if n, err := strconv.ParseInt(word(op.Index), 10, 64); err == nil {
		e.index, e.indexed = n, true
	}
	process := word(op.Process)
	_, bad := strconv.ParseInt(process, 10, 64)
	if process != "null" {
		e.session = process
	}
	e.client = process == "" || process == "null" || bad == nil
	if len(op.Value) == 0 || string(op.Value) == "null" {
		e.none = true
		return e
	}
	e.ops, e.mops = jsonNotation.mops(op.Value)
	return e
}

var jsonNotation = notation[json.RawMessage]{none: "null", lists: "[", unmarshal: json.Unmarshal, compact: compactJSON, name: nameJSON}

// nameJSON is a keyword without its colon.
func nameJSON(raw json.RawMessage) string {
	s := word(raw)
	if len(s) > 1 {
		return strings.TrimPrefix(s, ":")
	}
	return s
}

func compactJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// jsonWord writes a text that is one JSON value as it is, and any other one as a string.
func jsonWord(s string) json.RawMessage {
	if json.Valid([]byte(s)) && s != "null" {
		return json.RawMessage(s)
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string fails
	}
	return quoted
}

func jsonValue(op *observed.Op, completed bool) any {
	switch {
	case op.Kind != observed.Read:
		return jsonWord(op.Value)
	case !completed || op.Unknown || op.Initial && !op.IsList:
		return nil
	case op.IsList:
		items := make([]json.RawMessage, len(op.List))
		for i, s := range op.List {
			items[i] = jsonWord(s)
		}
		return items
	}
	return jsonWord(op.Value)
}

// writeJepsenJSON writes an array with one object a line.
func writeJepsenJSON(h *observed.History) ([]byte, error) {
	b := []byte("[")
	for i, e := range operations(h) {
		value := make([][3]any, len(e.t.Ops))
		for k := range e.t.Ops {
			op := &e.t.Ops[k]
			value[k] = [3]any{[]string{"r", "w", "append"}[op.Kind], jsonWord(op.Key), jsonValue(op, e.kind == "ok")}
		}
		line, err := json.Marshal(struct {
			Index   int      `json:"index"`
			Type    string   `json:"type"`
			Process uint64   `json:"process"`
			F       string   `json:"f"`
			Value   [][3]any `json:"value"`
		}{e.index, e.kind, e.process, "txn", value})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, '\n'), line...)
	}
	return append(b, "\n]\n"...), nil
}
