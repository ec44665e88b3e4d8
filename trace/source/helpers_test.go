package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/trace"
	"wirecheck/trace/logs"
	"wirecheck/trace/packets"
	"wirecheck/trace/source"
)

// formats are all that can be imported.
func formats() []source.Format { return append([]source.Format{packets.Format()}, logs.Formats()...) }

// importBytes imports what a file would hold.
func importBytes(t testing.TB, data []byte, o source.Options) ([]*trace.Record, *source.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return importFiles(t, []string{path}, o)
}

// importFiles imports files of one format. The records pass through a trace file.
func importFiles(t testing.TB, files []string, o source.Options) ([]*trace.Record, *source.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imported.wct")
	w, err := trace.Create(path, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	o.Out = w.Write
	reports, err := source.Import(t.Context(), formats(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports", len(reports))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return readTrace(t, path), reports[0]
}

// shown prints records as "wirecheck trace show" does.
func shown(records []*trace.Record) string {
	var b []byte
	for _, r := range records {
		b = trace.AppendText(b, r, trace.TextOptions{Rows: 10})
	}
	return string(b)
}

// statements gives the statements of the sessions with an application name, in their order.
func statements(records []*trace.Record, application string) []*trace.Statement {
	var out []*trace.Statement
	mine := map[uint64]bool{}
	for _, r := range records {
		switch r.Kind {
		case trace.KindSession:
			mine[r.Session] = r.Open.Application == application
		case trace.KindStatement:
			if mine[r.Session] {
				out = append(out, r.Statement)
			}
		}
	}
	return out
}

// reportText prints a report.
func reportText(t testing.TB, r *source.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
