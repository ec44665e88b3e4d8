package pgwire

import (
	"testing"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/proxy/record/recordtest"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// TestConditionsTakeRoom: what a long condition takes counts, while the statement is unanswered and while it has a name.
func TestConditionsTakeRoom(t *testing.T) {
	plan := &rewrite.Plan{Asks: []rewrite.Ask{{Where: condition.Condition{Op: "or", Args: make([]condition.Condition, 1000)}}}}
	script := &rewrite.Script{Plans: []*rewrite.Plan{plan}}
	for _, e := range []*entry{{request: simpleQuery, script: script}, {request: parse, script: script}, {request: bind, plan: plan}} {
		var q queue
		for range 20 {
			one := *e
			q.push(&one)
		}
		if !q.full() {
			t.Errorf("request %d: 20 conditions of 1000 parts leave room", e.request)
		}
		for !q.empty() {
			q.pop()
		}
		if q.size != 0 {
			t.Errorf("request %d: answered, %d bytes are left", e.request, q.size)
		}
	}
	var short queue
	for range 20 {
		short.push(&entry{request: simpleQuery, client: "SELECT 1", script: &rewrite.Script{SQL: "SELECT 1", Plans: []*rewrite.Plan{{}}}})
	}
	if short.full() {
		t.Error("20 short statements leave no room")
	}

	n := newNames()
	n.set("a", &prepared{client: "x", script: script})
	n.set("b", &prepared{client: "x", script: &rewrite.Script{}})
	if a, b := n.statements["a"].size, n.statements["b"].size; a < 100_000 || b > 1000 {
		t.Errorf("a statement with a condition of 1000 parts counts as %d bytes, one without as %d", a, b)
	}
	n.statements["a"].script = &rewrite.Script{} // whatever becomes of it
	n.set("a", nil)
	n.set("b", nil)
	if own := n.texts.Own(); own != 0 {
		t.Errorf("without names, %d bytes are left", own)
	}
}

// TestEmptyQueueHasRoom: who holds a long message and awaits no answer does not wait for what other sessions keep: nobody would wake it.
func TestEmptyQueueHasRoom(t *testing.T) {
	r := record.NewRecorder("test", func(*history.Event) []record.Warning { return nil })
	defer recordtest.Fill(r)()
	q := queue{share: r.Messages()}
	q.share.Add(1 << 20) // the message
	if q.full() || !q.hasRoom() {
		t.Error("an empty queue is full")
	}
	q.push(&entry{request: simpleQuery})
	if !q.full() || q.hasRoom() {
		t.Error("others keep all there is, and a queue that will be answered has room")
	}
	q.pop()
	q.items = append(q.items, &entry{request: copyEnd})
	if q.full() || !q.hasRoom() {
		t.Error("an end of copied data is not answered, and a queue of it is full")
	}
}
