package explore

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/replay"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/trace"
)

// described are the tables of docs/reference/result-formats.md, by the type of which they name the keys.
var described = map[reflect.Type]string{
	reflect.TypeFor[Report](): "a replay", reflect.TypeFor[replay.Result](): "a recorded order", reflect.TypeFor[replay.Divergence](): "a divergence",
	reflect.TypeFor[replay.Diverged](): "a different answer", reflect.TypeFor[replay.Deviation](): "a deviation", reflect.TypeFor[replay.Deadlock](): "a deadlock",
	reflect.TypeFor[replay.Party](): "a party", reflect.TypeFor[trace.Tag](): "a tag", reflect.TypeFor[Lacking](): "what is lacking", reflect.TypeFor[Lack](): "a lack",
	reflect.TypeFor[Table](): "a table", reflect.TypeFor[Explored](): "other orders", reflect.TypeFor[WrongRun](): "an interleaving",
	reflect.TypeFor[isolation.Coverage](): "a coverage", reflect.TypeFor[isolation.Lost](): "a lost shape", reflect.TypeFor[Comparison](): "a comparison", reflect.TypeFor[Alternative](): "a run",
	reflect.TypeFor[RefusedShape](): "a shape's refusals", reflect.TypeFor[ComparedKind](): "a kind", reflect.TypeFor[Different](): "a difference to the replay as it was",
	reflect.TypeFor[Anomaly](): "an anomaly", reflect.TypeFor[Advice](): "an advice", reflect.TypeFor[ShapeAdvice](): "a shape", reflect.TypeFor[Pair](): "a pair",
	reflect.TypeFor[Outcome](): "an outcome", reflect.TypeFor[Proof](): "a remedy", reflect.TypeFor[Cycle](): "a deadlock cycle", reflect.TypeFor[Breach](): "a broken invariant",
	reflect.TypeFor[replay.Latency](): "a latency", reflect.TypeFor[replay.Times](): "times",
}

// fields gives the keys of a type's JSON, and the structures in them. What it embeds and is described by itself is left out.
func fields(of reflect.Type) (keys []string, in []reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		within := f.Type
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, within.Kind()) {
			within = within.Elem()
		}
		if f.Type == reflect.TypeOf(Report{}.Coverage) || f.Name == "Coverage" {
			within = reflect.TypeFor[isolation.Coverage]()
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && described[within] == "":
			more, deeper := fields(within)
			keys, in = append(keys, more...), append(in, deeper...)
			continue
		case f.Anonymous:
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
			fallthrough
		default:
			keys = append(keys, name)
		}
		if within.Kind() == reflect.Struct {
			in = append(in, within)
		}
	}
	return keys, in
}

// TestResultFormats: each key that replay, replay --what-if and advise can print is in the reference, and no other.
func TestResultFormats(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/result-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Results of `wirecheck replay`\n") // `run` has keys of a run, too
	name := regexp.MustCompile("`([^`]+)`")
	tables := map[string][]string{}
	table := ""
	for line := range strings.Lines(section) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		switch of, heads := strings.CutPrefix(first, "key of "); {
		case !strings.HasPrefix(line, "|"):
			table = ""
		case heads:
			table = of
		case table != "":
			for _, m := range name.FindAllStringSubmatch(first, -1) {
				tables[table] = append(tables[table], m[1])
			}
		}
	}
	seen := map[reflect.Type]bool{reflect.TypeFor[oracle.Finding](): true} // which check prints, too
	next := []reflect.Type{reflect.TypeFor[Report](), reflect.TypeFor[Comparison](), reflect.TypeFor[Advice]()}
	for len(next) > 0 {
		of := next[0]
		next = next[1:]
		if seen[of] {
			continue
		}
		seen[of] = true
		keys, in := fields(of)
		next = append(next, in...)
		have := tables[described[of]]
		for _, key := range keys {
			if !slices.Contains(have, key) {
				t.Errorf("%s: %q is not described among the keys of %s", of, key, described[of])
			}
		}
		for _, key := range have {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %q is described among the keys of %s, and does not exist", of, key, described[of])
			}
		}
	}
	for _, of := range slices.Collect(maps.Keys(described)) {
		if !seen[of] {
			t.Errorf("%s is printed nowhere", of)
		}
	}
}
