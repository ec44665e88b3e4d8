package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// importBytes imports what a file would hold.
func importBytes(t testing.TB, data []byte, o ImportOptions) ([]*Record, *Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return importFiles(t, []string{path}, o)
}

// importFiles imports files of one format. The records pass through a capture file.
func importFiles(t testing.TB, files []string, o ImportOptions) ([]*Record, *Report) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{})
	if err != nil {
		t.Fatal(err)
	}
	o.Out = w.Write
	reports, err := Import(t.Context(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports", len(reports))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	records, _, err := readRecords(b.Bytes(), ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return records, reports[0]
}

// shown prints records as "wirecheck trace show" does.
func shown(records []*Record) string {
	var b []byte
	for _, r := range records {
		b = AppendText(b, r, TextOptions{Rows: 10})
	}
	return string(b)
}

// statements gives the statements of the sessions with an application name, in their order.
func statements(records []*Record, application string) []*Statement {
	var out []*Statement
	mine := map[uint64]bool{}
	for _, r := range records {
		switch r.Kind {
		case KindSession:
			mine[r.Session] = r.Open.Application == application
		case KindStatement:
			if mine[r.Session] {
				out = append(out, r.Statement)
			}
		}
	}
	return out
}

// reportText prints a report.
func reportText(t testing.TB, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
