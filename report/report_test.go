package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

var update = flag.Bool("update", false, "write the golden files anew")

// result judges testdata/shop.txt.
func result(t *testing.T) Result {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "shop.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events, err := history.ParseText(f)
	if err != nil {
		t.Fatal(err)
	}
	c := isolation.New(isolation.Options{})
	for i := range events {
		e := &events[i]
		if e.Kind == history.EventSession {
			e.User, e.Client, e.Backend, e.Database = "ann", "shop", 7000+e.Session, "shop"
		}
		if e.Kind == history.EventEnd {
			e.At = 1_700_000_000_123_000_000
		}
		c.Add(e)
	}
	return Result{Source: "shop.jsonl", Findings: c.Summary(), Coverage: c.Coverage()}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; go test ./report -update writes it anew):\n%s", name, d)
	}
}

func TestGolden(t *testing.T) {
	r := result(t)
	for _, format := range Formats {
		var b bytes.Buffer
		if err := Write(&b, r, format); err != nil {
			t.Fatal(err)
		}
		golden(t, "shop."+format, b.Bytes())
		switch format {
		case "json", "sarif":
			if !json.Valid(b.Bytes()) {
				t.Errorf("%s is not JSON", format)
			}
		case "junit":
			var s JUnitSuite
			if err := xml.Unmarshal(b.Bytes(), &s); err != nil || s.Failures != len(r.Findings) || len(s.Cases) != s.Tests {
				t.Errorf("JUnit: %v, %d failures, %d cases of %d", err, s.Failures, len(s.Cases), s.Tests)
			}
		}
	}
	if err := Write(&bytes.Buffer{}, r, "html"); err == nil {
		t.Error("an unknown format was accepted")
	}
}

func TestNothingFound(t *testing.T) {
	for format, want := range map[string]string{
		"text": "nothing found\n", "json": `"findings": []`, "junit": `tests="1" failures="0"`, "sarif": `"results": []`,
	} {
		var b bytes.Buffer
		if err := Write(&b, Result{}, format); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: %s does not contain %s", format, b.String(), want)
		}
	}
}

// TestBetween: a proxy whose sessions have anomalies with those of other proxies does not say that nothing was found; one that heard of none does.
// TestPossible: where something is possible, no form says that nothing was found. The text says what it would be.
func TestPossible(t *testing.T) {
	seen := isolation.Coverage{Exact: 9, Possible: 3, Possibly: map[string]int{"lost update between requests of coupon": 2, "write skew between requests of doctor": 1}}
	for _, format := range []string{"text", "markdown", "junit"} {
		var b bytes.Buffer
		if err := Write(&b, Result{Coverage: seen}, format); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, "nothing certain found, but 3 possible findings") || strings.Contains(got, "nothing found") ||
			format == "text" && !strings.Contains(got, "which --possible shows:\n    2 lost update between requests of coupon\n    1 write skew") {
			t.Errorf("%s: %s", format, got)
		}
	}
	if since := seen.Since(isolation.Coverage{Exact: 9, Possible: 2, Possibly: map[string]int{"lost update between requests of coupon": 2}}); since.Exact != 0 || since.Possible != 1 || len(since.Possibly) != 1 {
		t.Errorf("since: %+v", since)
	}
}

func TestBetween(t *testing.T) {
	for _, between := range [][]string{nil, {"WC-000001", "WC-000002"}} {
		var text, data strings.Builder
		r := Result{Between: between}
		if err := errors.Join(Summary(&text, r), JSON(&data, r)); err != nil {
			t.Fatal(err)
		}
		heard := len(between) > 0
		if strings.HasPrefix(text.String(), "nothing found\n") == heard || strings.Contains(text.String(), "wirecheck collect found 2: WC-000001, WC-000002") != heard ||
			strings.Contains(data.String(), "between") != heard {
			t.Errorf("%v: %s%s", between, text.String(), data.String())
		}
	}
}

func TestWarnings(t *testing.T) {
	var b bytes.Buffer
	for _, f := range result(t).Findings {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(Warning(f, Reader{Session: f.Session, Engine: f.Transactions[0].Engine, User: "ann"})); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "shop.warnings", b.Bytes())
}

func TestDigit(t *testing.T) {
	for _, tt := range []struct {
		class oracle.Class
		name  string
		want  int
	}{
		{anomaly.G0, anomaly.DirtyWrite, 0}, {anomaly.G1a, anomaly.AbortedRead, 1}, {anomaly.G1b, anomaly.IntermediateRead, 1},
		{anomaly.G1c, anomaly.CircularFlow, 1}, {anomaly.GSingle, anomaly.LostUpdate, 2}, {anomaly.GSingle, anomaly.ReadSkew, 3},
		{anomaly.GSingle, anomaly.NonRepeatableRead, 3}, {anomaly.GSingle, anomaly.Vanishes, 3}, {anomaly.GSingle, anomaly.ReadWriteSkew, 8},
		{anomaly.GSingle, "", 8}, {anomaly.G2Item, anomaly.WriteSkew, 4}, {anomaly.G2Item, "", 4}, {anomaly.GNonadjacent, anomaly.LongFork, 8},
		{anomaly.GSingle + anomaly.SuffixRealtime, "", 8},
	} {
		if got := Digit(&oracle.Finding{Class: tt.class, Name: tt.name}); got != tt.want {
			t.Errorf("Digit(%s, %s) = %d, want %d", tt.class, tt.name, got, tt.want)
		}
	}
}

func TestColor(t *testing.T) {
	var plain, color bytes.Buffer
	r := result(t)
	if err := Text(&plain, r.Findings); err != nil {
		t.Fatal(err)
	}
	if err := (Look{Color: true}).Text(&color, r.Findings); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(plain.Bytes(), 0x1b) || !bytes.ContainsRune(color.Bytes(), 0x1b) {
		t.Error("colour where none was asked for, or none where it was")
	}
	strip := strings.NewReplacer("\x1b[1;31m", "", "\x1b[1;33m", "", "\x1b[0m", "")
	if d := cmp.Diff(plain.String(), strip.Replace(color.String())); d != "" {
		t.Errorf("(-plain +color):\n%s", d)
	}
}

// TestDropped: the summary says what is missing of the outputs, and nothing if nothing is.
func TestDropped(t *testing.T) {
	for _, tt := range []struct {
		d          Dropped
		text, json string
	}{
		{Dropped{}, "nothing found\n", "{\n  \"findings\": []\n}\n"},
		{Dropped{Log: 3, Trace: 40}, "nothing found\ndropped, because an output stalled: 3 lines of the log, 40 bytes of sessions in the trace\n",
			"{\n  \"findings\": [],\n  \"dropped\": {\n    \"log\": 3,\n    \"trace\": 40\n  }\n}\n"},
	} {
		for format, want := range map[string]string{"text": tt.text, "json": tt.json} {
			var out strings.Builder
			if err := Write(&out, Result{Dropped: tt.d}, format); err != nil || out.String() != want {
				t.Errorf("%s: %v\ngot  %q\nwant %q", format, err, out.String(), want)
			}
		}
	}
}
