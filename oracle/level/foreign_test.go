package level_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/inferred"
	"wirecheck/oracle/level"
	"wirecheck/trace/foreign"
)

// harm does to a history what happens to those of other checkers: an invocation or a completion is missing, or says less.
func (h *sHistory) harm(rng *rand.Rand) {
	for t := range h.txns {
		x := &h.txns[t]
		switch rng.IntN(12) {
		case 0:
			x.begin = 0
		case 1:
			if x.outcome == history.OutcomeCommitted {
				x.outcome, x.session = history.OutcomeUnknown, 50+t
			}
		}
	}
}

// jepsen writes a history as Jepsen does, in EDN or JSON, in one of the ways that the formats allow.
func (h *sHistory) jepsen(rng *rand.Rand, edn bool) string {
	type line struct {
		at, kind int // of kinds: 0 invoke
		t        int
	}
	kinds := []string{"invoke", "ok", "fail", "info"}
	var lines []line
	for t := range h.txns {
		x := &h.txns[t]
		kind := map[history.Outcome]int{history.OutcomeCommitted: 1, history.OutcomeAborted: 2, history.OutcomeUnknown: 3}[x.outcome]
		if x.begin > 0 {
			lines = append(lines, line{2 * x.begin, 0, t})
		}
		if kind < 3 || x.begin == 0 {
			lines = append(lines, line{2*x.end + 1, kind, t})
		} else if rng.IntN(2) == 0 {
			lines = append(lines, line{2*x.end + 1 + rng.IntN(40), kind, t})
		}
	}
	rng.Shuffle(len(lines), func(a, b int) { lines[a], lines[b] = lines[b], lines[a] })
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	key := func(k int) any { return []any{k, fmt.Sprint("k", k), []int{k, 7}}[len(lines)%3] }
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	if edn {
		plain := text
		text = func(v any) string { return strings.NewReplacer(",", " ", "null", "nil").Replace(plain(v)) }
	}
	index, indexed, brackets := 0, rng.IntN(3) > 0, rng.IntN(2) == 0
	empty := rng.IntN(2) == 0
	var out []string
	for _, l := range lines {
		x := &h.txns[l.t]
		var ops []string
		for _, o := range x.ops {
			var value any
			switch {
			case !o.read:
				value = o.value
			case l.kind != 1:
			case h.lists && (len(o.list) > 0 || empty):
				value = append([]int{}, o.list...)
			case !h.lists && o.value != 0:
				value = o.value
			}
			name := map[bool]string{true: "r", false: map[bool]string{true: "append", false: "w"}[h.lists]}[o.read]
			if edn {
				ops = append(ops, fmt.Sprintf("[:%s %s %s]", name, text(key(o.key)), text(value)))
			} else {
				ops = append(ops, fmt.Sprintf("[%q, %s, %s]", []string{"", ":"}[len(lines)%2]+name, text(key(o.key)), text(value)))
			}
		}
		value := strings.Join(ops, map[bool]string{true: " ", false: ","}[edn])
		if value = "[" + value + "]"; l.kind > 1 && x.begin > 0 && rng.IntN(2) == 0 {
			value = text(nil)
		}
		index += 1 + rng.IntN(3)
		var s string
		if edn {
			s = fmt.Sprintf("{:type :%s, :f :txn, :process %d, :value %s, :time %d", kinds[l.kind], x.session, value, 1000*index)
			if indexed {
				s += fmt.Sprintf(", :index %d", index)
			}
		} else {
			s = fmt.Sprintf(`{"type":%q,"f":"txn","process":%d,"value":%s,"time":%d`, kinds[l.kind], x.session, value, 1000*index)
			if indexed {
				s += fmt.Sprintf(`,"index":%d`, index)
			}
		}
		out = append(out, s+"}")
		if index += 2; rng.IntN(8) == 0 {
			if edn {
				out = append(out, fmt.Sprintf("{:type :info, :f :kill, :process :nemesis, :value nil, :index %d}", index))
			} else {
				out = append(out, fmt.Sprintf(`{"type":"info","f":"kill","process":"nemesis","value":null,"index":%d}`, index))
			}
		}
	}
	if indexed && rng.IntN(2) == 0 { // the indexes are the order
		rng.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
	}
	if brackets {
		return "[" + strings.Join(out, map[bool]string{true: "\n", false: ",\n"}[edn]) + "]"
	}
	return strings.Join(out, "\n") + "\n"
}

// plume writes sessions side by side: lines of different sessions in any order.
func (h *sHistory) plume(rng *rand.Rand) string {
	lines := map[int][]string{}
	for t := range h.txns {
		x := &h.txns[t]
		n := t + 10
		if x.outcome == history.OutcomeAborted {
			n = -1
		}
		for _, o := range x.ops {
			if !o.read || n > 0 || rng.IntN(2) == 0 {
				lines[x.session] = append(lines[x.session], fmt.Sprintf("%s(%d,%d,%d,%d)", map[bool]string{true: "r", false: "w"}[o.read], o.key, max(o.value, 0), x.session, n))
			}
		}
	}
	var out []string
	for sessions := slices.Sorted(maps.Keys(lines)); len(sessions) > 0; {
		i := rng.IntN(len(sessions))
		s := sessions[i]
		out, lines[s] = append(out, lines[s][0]), lines[s][1:]
		if len(lines[s]) == 0 {
			sessions = slices.Delete(sessions, i, i+1)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

func (h *sHistory) dbcop(rng *rand.Rand) string {
	old := rng.IntN(3) == 0
	sessions := map[int][]string{}
	for t := range h.txns {
		x := &h.txns[t]
		var ops []string
		for _, o := range x.ops {
			switch value := fmt.Sprint(o.value); {
			case old:
				ops = append(ops, fmt.Sprintf(`{"write":%v,"variable":%d,"value":%d,"success":true}`, !o.read, o.key, o.value))
			default:
				if o.value == 0 {
					value = "null"
				}
				ops = append(ops, fmt.Sprintf(`{%q:{"variable":%d,"version":%s}}`, map[bool]string{true: "Read", false: "Write"}[o.read], o.key, value))
			}
		}
		sessions[x.session] = append(sessions[x.session], fmt.Sprintf(`{"events":[%s],%q:%v}`, strings.Join(ops, ","), map[bool]string{true: "success", false: "committed"}[old], x.outcome == history.OutcomeCommitted))
	}
	var list []string
	for _, s := range slices.Sorted(maps.Keys(sessions)) {
		list = append(list, "["+strings.Join(sessions[s], ",")+"]")
	}
	text := "[" + strings.Join(list, ",") + "]"
	if rng.IntN(2) == 0 {
		text = `{"params":{"id":0},"info":"x","data":` + text + "}"
	}
	return text
}

func (h *sHistory) timeKiller(rng *rand.Rand) string {
	var list []string
	for t := range h.txns {
		x := &h.txns[t]
		var ops []string
		for _, o := range x.ops {
			kind, value := map[bool]string{true: "r", false: map[bool]string{true: "a", false: "w"}[h.lists]}[o.read], any(o.value)
			if o.read && h.lists {
				value = append([]int{}, o.list...)
			} else if o.read && o.value == 0 {
				value = nil
			}
			b, _ := json.Marshal(value)
			ops = append(ops, fmt.Sprintf(`{"t":%q,"k":%d,"v":%s}`, kind, o.key, b))
		}
		begin := fmt.Sprintf(`"sts":{"p":%d,"l":%d},`, x.begin/3, x.begin%3)
		if x.begin == 0 {
			begin = ""
		}
		list = append(list, fmt.Sprintf(`{"tid":%d,"sid":%d,%s"cts":{"p":%d,"l":%d},"ops":[%s]}`, 1000-t, x.session, begin, x.end/3, x.end%3, strings.Join(ops, ",")))
	}
	rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	return "[" + strings.Join(list, ",\n") + "]"
}

// TestStrangerForeign compares the verdicts of histories in the formats of other checkers with the definitions.
func TestStrangerForeign(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(*strangers) / 3 {
		for _, format := range foreign.Formats {
			for _, lists := range []bool{false, true} {
				if lists && (format == foreign.Plume || format == foreign.DBCop) {
					continue
				}
				rng := rand.New(rand.NewPCG(seed, 15))
				h := strange(rng, lists, false)
				h.harm(rng)
				timeless, text := false, ""
				for i := range h.txns {
					x := &h.txns[i]
					switch format {
					case foreign.TimeKiller:
						x.outcome = history.OutcomeCommitted
					case foreign.Plume, foreign.DBCop:
						if x.outcome == history.OutcomeUnknown {
							x.outcome = history.OutcomeAborted
						}
					}
				}
				switch format {
				case foreign.Elle, foreign.JepsenJSON:
					text = h.jepsen(rng, format == foreign.Elle)
				case foreign.Plume:
					text, timeless = h.plume(rng), true
				case foreign.DBCop:
					text, timeless = h.dbcop(rng), true
				case foreign.TimeKiller:
					text = h.timeKiller(rng)
				}
				if text == "\n" { // nothing but reads of what was rolled back
					continue
				}
				name := fmt.Sprintf("seed %d, %s, lists %v", seed, format, lists)
				if got := foreign.Detect([]byte(text)); got != format {
					t.Errorf("%s: detected %q\n%s", name, got, text)
				}
				in, err := foreign.Read(strings.NewReader(text), format, "h")
				if err != nil {
					t.Errorf("%s: %v\n%s", name, err, text)
					continue
				}
				for i := range h.txns {
					if timeless {
						h.txns[i].begin = 0
					}
				}
				h.include()
				is, ok := h.truth()
				if !ok {
					count["contradictory lists, or too many orders"]++
					continue
				}
				for k, bad := range h.wrong(in, is, count) {
					if count["bad"]++; count["bad"] < 10 {
						t.Errorf("%s: %s: %s\n%s%s", name, k, bad, h, text)
					}
				}
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(count)) {
		t.Log(k, count[k])
	}
}

// wrong compares a history that was read with the levels that hold.
func (h *sHistory) wrong(in *observed.History, is map[string]bool, count map[string]int) map[string]string {
	bad := map[string]string{}
	for _, strict := range []bool{false, true} {
		r := inferred.Check(in, inferred.Options{Levels: true, Order: strict})
		for _, v := range r.Levels {
			what := "right"
			switch {
			case v.State == level.Broken && is[v.Level] && (v.Level != "PL-1" || h.lists || is["PL-2"]):
				what = "WRONGLY BROKEN"
			case v.State == level.Satisfied && r.Unsure == "" && !is[v.Level]:
				what = "WRONGLY SATISFIED"
			case v.State == level.Unknown || v.State == level.Satisfied && r.Unsure != "":
				if what = "unknown"; !strings.Contains(r.Undecided, "no dependency") {
					what = "UNKNOWN WITHOUT NEED"
				}
			}
			if count[what]++; what == strings.ToUpper(what) {
				bad[fmt.Sprint(v.Level, " strict ", strict)] = fmt.Sprintf("%s %s, unsure %q, undecided %q", v.State, what, r.Unsure, r.Undecided)
			}
		}
		name := map[bool]string{false: "PL-3", true: "strict serializable"}[strict]
		if len(r.Findings) > 0 == is[name] && (is[name] || r.Undecided == "" && r.Unsure == "") {
			bad[fmt.Sprint("findings strict ", strict)] = fmt.Sprintf("%d, undecided %q, %s %v", len(r.Findings), r.Undecided, name, is[name])
		}
	}
	return bad
}

// TestStrangerTwice: histories in which a value is written twice, or lists contradict each other, are compared with what an execution gives.
func TestStrangerTwice(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(*strangers) {
		for _, lists := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(seed, 16))
			h := strange(rng, lists, seed%4 == 0)
			for i := range h.txns {
				if h.txns[i].outcome == history.OutcomeUnknown {
					h.txns[i].outcome = history.OutcomeCommitted
				}
			}
			for range rng.IntN(3) {
				x, y := &h.txns[rng.IntN(len(h.txns))], &h.txns[rng.IntN(len(h.txns))]
				a, b := &x.ops[rng.IntN(len(x.ops))], &y.ops[rng.IntN(len(y.ops))]
				if !a.read && !b.read && a.key == b.key {
					a.value = b.value
				}
			}
			for i := range h.txns {
				h.txns[i].in = h.txns[i].outcome == history.OutcomeCommitted
			}
			is := h.executed()
			for _, strict := range []bool{false, true} {
				in := h.observed()
				in.KnownInitial = seed%2 == 0
				r := inferred.Check(in, inferred.Options{Levels: true, Order: strict})
				for _, v := range r.Levels {
					holds, known := is[v.Level]
					if !known || lists && !strings.Contains(v.Level, "serializable") && v.Level != "PL-3" {
						continue
					}
					count[fmt.Sprint(lists, v.State, holds)]++
					if v.State == level.Broken && holds || v.State == level.Satisfied && !holds && r.Unsure == "" {
						if count["bad"]++; count["bad"] < 12 {
							t.Errorf("seed %d, lists %v, strict %v: %s is %s, by execution %v %v\n%s", seed, lists, strict, v.Level, v.State, holds, v.Witness, h)
						}
					}
				}
				name := map[bool]string{false: "PL-3", true: "strict serializable"}[strict]
				if len(r.Findings) > 0 == is[name] && (is[name] || r.Undecided == "" && r.Unsure == "") {
					if count["bad"]++; count["bad"] < 12 {
						t.Errorf("seed %d, lists %v, strict %v: findings %v undecided %q: %s by execution %v\n%s", seed, lists, strict, r.Findings, r.Undecided, name, is[name], h)
					}
				}
			}
		}
	}
	t.Log(count)
}
