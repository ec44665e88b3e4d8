package pgwire

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// TestPanicOfDecoder lets what reads the hidden columns panic: the session is not observed any more, and the history says so.
func TestPanicOfDecoder(t *testing.T) {
	var got []history.Event
	o := NewObserver(ObserverConfig{Recorder: record.NewRecorder("test", func(e *history.Event) []record.Warning {
		got = append(got, *e)
		return nil
	})})
	events := recording{log: zerolog.Nop()}
	events.open(o, history.Event{Engine: "postgres"})
	p := newPipeline(zerolog.Nop(), events, turn{}, func() {}, nil)
	plan := &rewrite.Plan{Verb: "select", Coverage: history.CoverageExact, Hidden: 1, Decode: func([]history.Access, [][]byte) ([]history.Access, error) {
		panic("cannot read this")
	}}
	e := &entry{request: execute, name: "portal"}
	p.names.portals["portal"] = &portal{stmt: &prepared{script: &rewrite.Script{Plans: []*rewrite.Plan{plan}}}, plan: plan}
	p.send(e)
	a := &serverHalf{pipeline: p, log: zerolog.Nop()}
	for range 2 {
		a.decode([]byte("\x00\x00\x00\x01x"), plan, p.begin(e))
	}
	if ws, _ := p.finish(e, "SELECT 1", 'C'); ws != nil || p.observed() {
		t.Errorf("warnings %v, observed %v; want none, and not observed", ws, p.observed())
	}
	if last := got[len(got)-1]; last.Kind != history.EventClose || last.Why != "a defect of wirecheck: panic: cannot read this" {
		t.Errorf("last event %+v; want a close with the reason", last)
	}
}

// TestFit checks that psql shows a warning's sentences in 80 columns, and that statements stay as they are.
func TestFit(t *testing.T) {
	sentence, sql := strings.TrimSpace(strings.Repeat("word ", 40)), "   SELECT "+strings.Repeat("x, ", 40)+"y"
	for i, line := range strings.Split("DETAIL:  "+fit("DETAIL:  ", sentence+"\n"+sql+"\n"+sentence), "\n") {
		if line != sql && len(line) > 80 {
			t.Errorf("line %d has %d characters: %s", i, len(line), line)
		}
	}
	if got := fit("HINT:  ", "short\n"+sql); got != "short\n"+sql {
		t.Errorf("got %q", got)
	}
}

// TestParameter reads parameters by the type that the client declared and the one that the statement compares with.
func TestParameter(t *testing.T) {
	const half = "\x00\x02\x00\x00\x00\x00\x00\x01\x00\x01\x13\x88" // 1.5
	for _, tt := range []struct {
		column string
		oid    uint32
		value  string
		binary bool
		want   string // empty: it is not known
	}{
		{"int4", 0, "5", false, "5"}, {"int4", 705, "5", false, "5"}, {"int4", 23, "\x00\x00\x00\x05", true, "5"}, {"int4", 20, "5", false, "5"}, {"int4", 25, "5", false, ""},
		{"numeric", 1700, "1.5", false, "1.5"}, {"numeric", 1700, half, true, "1.5"}, {"numeric", 23, "2", false, "2"},
		{"int4", 1700, "1.5", false, ""}, {"int4", 1700, half, true, ""}, {"int4", 1700, "15e-1", false, ""}, {"int4", 1700, "2", false, "2"},
		{"int8[]", 1231, "{1.5}", false, ""}, {"int8[]", 1231, "{2}", false, "{2}"}, {"int8[]", 1007, "{2}", false, "{2}"}, {"int8", 1016, "{2}", false, ""}, {"numeric[]", 0, "{1.5}", false, "{1.5}"},
		{"numeric", 20, "1", false, "1"}, {"timestamp", 1184, "2026-01-01 09:00+01", false, ""}, {"text", 25, "\xff", false, ""}, {"text", 1043, "a.e", false, "a.e"},
	} {
		got := ""
		if v, ok := parameter(tt.column, tt.oid, []byte(tt.value), tt.binary); ok {
			got = *v
		}
		if got != tt.want {
			t.Errorf("%s, declared %d, %q: %q, want %q", tt.column, tt.oid, tt.value, got, tt.want)
		}
	}
}
