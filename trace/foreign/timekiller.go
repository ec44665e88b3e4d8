package foreign

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// stamp is a timestamp of a hybrid logical clock.
type stamp struct {
	P int64 `json:"p"`
	L int64 `json:"l"`
}

type killerTxn struct {
	TID *uint64    `json:"tid,omitempty"`
	SID *int64     `json:"sid,omitempty"`
	STS *stamp     `json:"sts,omitempty"`
	CTS *stamp     `json:"cts,omitempty"`
	Ops []killerOp `json:"ops"`
}

type killerOp struct {
	T string          `json:"t"`
	K json.RawMessage `json:"k"`
	V json.RawMessage `json:"v"`
}

// readTimeKiller reads TimeKiller's JSON: committed transactions with the timestamps of their start and commit.
func readTimeKiller(data []byte) (*observed.History, error) {
	var in []killerTxn
	err := eachJSON(data, func(raw json.RawMessage) error {
		var t killerTxn
		err := json.Unmarshal(raw, &t)
		in = append(in, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	h := &observed.History{Ordered: true}
	slices.SortStableFunc(in, func(a, b killerTxn) int { return compareStamps(a.CTS, b.CTS) })
	place := stampPlaces(in)
	sessions := map[int64]uint64{}
	for i := range in {
		t, err := in[i].transaction(place)
		if err != nil {
			h.Omit(err.Error())
			continue
		}
		if slices.ContainsFunc(t.Ops, func(op observed.Op) bool { return op.Unknown }) {
			h.Omit(noResult)
		}
		if in[i].TID == nil {
			t.ID = uint64(i)
		}
		if in[i].SID != nil {
			if sessions[*in[i].SID] == 0 {
				sessions[*in[i].SID] = uint64(len(sessions) + 1)
			}
			t.Session = sessions[*in[i].SID]
		}
		h.Transactions = append(h.Transactions, t)
	}
	return h, nil
}

// compareStamps orders timestamps; what has none comes last.
func compareStamps(a, b *stamp) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.L, b.L))
}

// stampPlaces numbers the timestamps in their order.
func stampPlaces(in []killerTxn) map[stamp]uint64 {
	var all []stamp
	for i := range in {
		for _, s := range []*stamp{in[i].STS, in[i].CTS} {
			if s != nil {
				all = append(all, *s)
			}
		}
	}
	slices.SortFunc(all, func(a, b stamp) int { return compareStamps(&a, &b) })
	place := make(map[stamp]uint64, len(all))
	for _, s := range all {
		if place[s] == 0 {
			place[s] = uint64(len(place) + 1)
		}
	}
	return place
}

func (k *killerTxn) transaction(place map[stamp]uint64) (t observed.Transaction, err error) {
	t.Outcome = history.OutcomeCommitted
	if k.TID != nil {
		t.ID = *k.TID
	}
	if k.STS != nil {
		t.Begin = place[*k.STS]
	}
	if k.CTS != nil {
		t.End = place[*k.CTS]
	}
	if t.Begin > t.End && t.End > 0 {
		return t, errors.New("transaction that commits before it starts")
	}
	for _, o := range k.Ops {
		value := text{missing: true}
		ok := true
		if len(o.V) > 0 {
			value, ok = jsonNotation.text(o.V)
		}
		op, is := mop(map[string]string{"r": "r", "w": "w", "a": "append"}[o.T], compactJSON(o.K), value)
		if !ok || !is || len(o.K) == 0 {
			return t, errors.New("operation that is neither a read nor a write nor an append")
		}
		t.Ops = append(t.Ops, op)
	}
	return t, nil
}

// stampOf is the timestamp of a place in real time; nil if it is not known.
func stampOf(place uint64) *stamp {
	if place == 0 {
		return nil
	}
	return &stamp{P: int64(place)}
}

// writeTimeKiller writes committed transactions. A place in real time becomes a timestamp.
func writeTimeKiller(h *observed.History) ([]byte, error) {
	if !h.Ordered {
		return nil, errors.New("the form has the times of start and commit, which the history lacks")
	}
	out := []killerTxn{}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		switch {
		case t.Outcome == history.OutcomeAborted:
			continue // the form has none
		case t.Outcome == history.OutcomeUnknown:
			return nil, errUnknown
		}
		k := killerTxn{TID: &t.ID, STS: stampOf(t.Begin), CTS: stampOf(t.End), Ops: []killerOp{}}
		if session := int64(t.Session); session > 0 { // it is known
			k.SID = &session
		}
		for n := range t.Ops {
			op := &t.Ops[n]
			value, err := json.Marshal(jsonValue(op, true))
			if err != nil {
				return nil, err
			}
			k.Ops = append(k.Ops, killerOp{[]string{"r", "w", "a"}[op.Kind], jsonWord(op.Key), value})
		}
		out = append(out, k)
	}
	data, err := json.Marshal(out)
	return append(data, '\n'), err
}
