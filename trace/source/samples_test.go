package source_test

import (
	"os"
	"testing"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// samplesVariable names a folder of logs of one's own. TestSamples imports each and demands that no line is unknown.
const samplesVariable = "WIRECHECK_TRACE_SAMPLES"

func TestSamples(t *testing.T) {
	dir := os.Getenv(samplesVariable)
	if dir == "" {
		t.Skipf("%s names no folder with logs", samplesVariable)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var text []byte
		reports, err := source.Import(t.Context(), formats(), []string{dir + "/" + f.Name()}, source.Options{Out: func(r *trace.Record) error {
			text = trace.AppendText(text, r, trace.TextOptions{Rows: 5})
			return nil
		}})
		if err != nil {
			t.Logf("not a log: %v", err)
			continue
		}
		t.Logf("%s\n%s", f.Name(), text)
		for _, r := range reports {
			if err := r.Text(t.Output()); err != nil {
				t.Error(err)
			}
			if r.Unknown > 0 {
				t.Errorf("%s: %d unknown lines", f.Name(), r.Unknown)
			}
		}
	}
}
