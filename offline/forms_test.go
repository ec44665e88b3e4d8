package offline

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// forms are histories that show each class of cycles in each of its forms, and near misses.
var forms = []struct {
	class       anomaly.Class
	shows, miss string
}{
	{anomaly.G0, "s1 t1; s2 t2; t1 w x 0>1; t2 w x 1>2; t2 w y 0>1; t1 w y 1>2; commit t1; commit t2",
		"s1 t1; s2 t2; t1 w x 0>1; t2 w x 1>2; t1 w y 0>1; t2 w y 1>2; commit t1; commit t2"},
	{anomaly.G0 + "-process", "s1 t1; t1 w x 1>2; commit t1; s1 t2; t2 w x 0>1; commit t2",
		"s1 t1; s2 t2; t1 w x 1>2; t2 w x 0>1; commit t1; commit t2"},
	{anomaly.G0 + "-realtime", "s1 t1; t1 w x 1>2; commit t1; s2 t2; t2 w x 0>1; commit t2",
		"s2 t2; s1 t1; t1 w x 1>2; commit t1; t2 w x 0>1; commit t2"},
	{anomaly.G1c, "s1 t1; s2 t2; t1 w x 0>1; t2 w y 0>1; t1 r y@1; t2 r x@1; commit t1; commit t2",
		"s1 t1; s2 t2; t1 w x 0>1; t2 r x@1; t1 w y 0>1; t2 r y@1; commit t1; commit t2"},
	{anomaly.G1c + "-process", "s1 t1; s2 t2; t1 w x 0>1; t1 w y 1>2; t2 r x@1; commit t2; s2 t3; t3 w y 0>1; commit t3; commit t1",
		"s1 t1; s2 t2; s3 t3; t1 w x 0>1; t1 w y 1>2; t2 r x@1; commit t2; t3 w y 0>1; commit t3; commit t1"},
	{anomaly.G1c + "-realtime", "s1 t1; s2 t2; t1 w x 0>1; t1 w y 1>2; t2 r x@1; commit t2; s3 t3; t3 w y 0>1; commit t3; commit t1",
		"s1 t1; s2 t2; s3 t3; t1 w x 0>1; t1 w y 1>2; t2 r x@1; commit t2; t3 w y 0>1; commit t3; commit t1"},
	{anomaly.GSingle, "s1 t1; s2 t2; t1 w x 0>1; t1 w y 0>1; commit t1; t2 r x@1; t2 r y@0; commit t2",
		"s1 t1; s2 t2; t1 w x 0>1; t1 w y 0>1; commit t1; t2 r x@1; t2 r y@1; commit t2"},
	{anomaly.GSingle + "-process", "s1 t1; t1 w x 0>1; commit t1; s1 t2; t2 r x@0; commit t2",
		"s1 t1; t1 w x 0>1; commit t1; s1 t2; t2 r x@1; commit t2"},
	{anomaly.GSingle + "-realtime", "s1 t1; t1 w x 0>1; commit t1; s2 t2; t2 r x@0; commit t2",
		"s2 t2; s1 t1; t1 w x 0>1; commit t1; t2 r x@0; commit t2"},
	{anomaly.GNonadjacent, "s1 t1; s2 t2; s3 t3; s4 t4; t1 w x 0>1; t2 w y 0>1; commit t1; commit t2; t3 r x@1; t3 r y@0; t4 r y@1; t4 r x@0; commit t3; commit t4",
		"s1 t1; s2 t2; s3 t3; s4 t4; t1 w x 0>1; t2 w y 0>1; commit t1; commit t2; t3 r x@1; t3 r y@0; t4 r y@0; t4 r x@1; commit t3; commit t4"},
	{anomaly.GNonadjacent + "-process", "s1 t1; s2 t2; s3 t3; t2 w y 0>1; commit t2; s2 t4; t4 r x@0; t1 w x 0>1; commit t1; t3 r x@1; t3 r y@0; commit t3; commit t4",
		"s1 t1; s2 t2; s3 t3; s4 t4; t2 w y 0>1; commit t2; t4 r x@0; t1 w x 0>1; commit t1; t3 r x@1; t3 r y@0; commit t3; commit t4"},
	{anomaly.GNonadjacent + "-realtime", "s1 t1; s2 t2; s3 t3; t2 w y 0>1; commit t2; s4 t4; t4 r x@0; t1 w x 0>1; commit t1; t3 r x@1; t3 r y@0; commit t3; commit t4",
		"s1 t1; s2 t2; s3 t3; s4 t4; t2 w y 0>1; commit t2; t4 r x@0; t1 w x 0>1; commit t1; t3 r x@1; t3 r y@0; commit t3; commit t4"},
	{anomaly.G2Item, "s1 t1; s2 t2; t1 r y@0; t2 r x@0; t1 w x 0>1; t2 w y 0>1; commit t1; commit t2",
		"s1 t1; s2 t2; t1 r y@0; t1 w x 0>1; commit t1; t2 r x@1; t2 w y 0>1; commit t2"},
	{anomaly.G2Item + "-process", "s2 t2; t2 r z@0; s1 t1; t1 w z 0>1; commit t1; s1 t3; t3 r y@0; commit t3; t2 w y 0>1; commit t2",
		"s2 t2; t2 r z@0; s1 t1; s3 t3; t1 w z 0>1; commit t1; t3 r y@0; commit t3; t2 w y 0>1; commit t2"},
	{anomaly.G2Item + "-realtime", "s2 t2; t2 r z@0; s1 t1; t1 w z 0>1; commit t1; s3 t3; t3 r y@0; commit t3; t2 w y 0>1; commit t2",
		"s2 t2; t2 r z@0; s1 t1; s3 t3; t1 w z 0>1; commit t1; t3 r y@0; commit t3; t2 w y 0>1; commit t2"},
	{anomaly.G2, "s1 t1; s2 t2; t1 " + room1 + "; t2 " + room2 + "; t1 i b.b >1 image \"room 2\"; t2 i b.a >1 image \"room 1\"; commit t1; commit t2",
		"s1 t1; s2 t2; t1 " + room1 + "; t2 " + room2 + "; t1 i b.b >1 image \"room 3\"; t2 i b.a >1 image \"room 1\"; commit t1; commit t2"},
	{anomaly.G2 + "-process", "s2 t2; t2 r z@0; s1 t1; t1 w z 0>1; commit t1; s1 t3; t3 " + room1 + "; commit t3; t2 i b.a >1 image \"room 1\"; commit t2",
		"s2 t2; t2 r z@0; s1 t1; t1 w z 0>1; commit t1; s1 t3; t3 " + room2 + "; commit t3; t2 i b.a >1 image \"room 1\"; commit t2"},
	{anomaly.G2 + "-realtime", "s2 t2; t2 r z@0; s1 t1; t1 w z 0>1; commit t1; s3 t3; t3 " + room1 + "; commit t3; t2 i b.a >1 image \"room 1\"; commit t2",
		"s2 t2; t2 r z@0; s1 t1; s3 t3; t1 w z 0>1; commit t1; t3 " + room1 + "; commit t3; t2 i b.a >1 image \"room 1\"; commit t2"},
}

const room1, room2 = `all b "(= number room 1)"`, `all b "(= number room 2)"`

// formOf makes a history's file of its text.
func formOf(t *testing.T, text string) []byte {
	var lines []string
	for s := range 4 {
		lines = append(lines, "s"+string(rune('1'+s))+" session postgres")
	}
	for _, part := range strings.Split(text, "; ") {
		if txn, ends := strings.CutPrefix(part, "commit "); ends {
			part = txn + " commit"
		} else if part[0] == 's' {
			part += " begin read committed"
		}
		lines = append(lines, part)
	}
	events, err := history.ParseText(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if e := &events[i]; len(e.Reads) > 0 {
			e.Reads[0].From, e.Reads[0].To = e.From, e.To
		}
	}
	return written(t, events, "lines")
}

// TestForms: each class of cycles is found in each of its forms, and not in a near miss; without Strict only the plain form is.
func TestForms(t *testing.T) {
	done := map[anomaly.Class]bool{}
	for _, f := range forms {
		done[f.class] = true
		_, ordered := f.class.Plain()
		for _, strict := range []bool{false, true} {
			for name, text := range map[string]string{"history": f.shows, "near miss": f.miss} {
				data := formOf(t, text)
				for i, in := range []io.Reader{bytes.NewReader(data), io.MultiReader(bytes.NewReader(data))} {
					j, err := Judge([]Input{{in, "h", "h"}}, isolation.Options{Strict: strict, Levels: true}, false, func(string) {}, nil)
					if err != nil {
						t.Fatal(err)
					}
					var got []anomaly.Class
					for _, x := range j.Checker.Summary() {
						got = append(got, x.Class)
					}
					if want := name == "history" && (strict || !ordered); want != slices.Contains(got, f.class) || !want && name == "history" && len(got) > 0 {
						t.Errorf("%s, strict %v, %s, way %d: found %q\n%s", f.class, strict, name, i, got, text)
					}
				}
			}
		}
	}
	for _, class := range anomaly.Cycles {
		for _, suffix := range []anomaly.Class{"", anomaly.SuffixProcess, anomaly.SuffixRealtime} {
			if !done[class+suffix] {
				t.Errorf("%s has no history", class+suffix)
			}
		}
	}
}
