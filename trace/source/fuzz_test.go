package source_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// fuzzFormat gives the reader of a format anything. What it hands on must be records that a trace file can hold, and it must account for the
// file: what is no record and no part of one is counted.
func fuzzFormat(f *testing.F, name, prefix string, seeds ...[]byte) {
	f.Helper()
	for file, data := range sampleLogs(f) {
		if formatByName(file) == name {
			f.Add(data)
		}
	}
	for _, data := range seeds {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records := 0
		var file bytes.Buffer
		w, err := trace.NewWriter(&file, trace.Header{})
		if err != nil {
			t.Fatal(err)
		}
		report, err := streamBytes(t, data, name, source.Options{MaxLine: 1 << 16, Prefix: prefix, Out: func(r *trace.Record) error {
			records++
			return w.Write(r)
		}})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if again := rewritten(t, file.Bytes()); !bytes.Equal(again, file.Bytes()) {
			t.Errorf("records that cannot be written:\n%q\n%q", file.Bytes(), again)
		}
		if err != nil || len(report.Format) == 0 {
			return
		}
		if text := strings.TrimSpace(strings.TrimPrefix(string(data), "\xef\xbb\xbf")); records == 0 && report.Unknown == 0 && len(report.Other) == 0 && text != "" && name != "pcap" {
			t.Errorf("nothing is said of %q", data)
		}
	})
}

// rewritten reads a trace file and writes it again.
func rewritten(t testing.TB, file []byte) []byte {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), "file", trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var again bytes.Buffer
	w, err := trace.NewWriter(&again, r.Header())
	if err != nil {
		t.Fatal(err)
	}
	for {
		var rec trace.Record
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return again.Bytes()
}

func FuzzCSVLog(f *testing.F)      { fuzzFormat(f, "csvlog", "") }
func FuzzJSONLog(f *testing.F)     { fuzzFormat(f, "jsonlog", "") }
func FuzzGeneralLog(f *testing.F)  { fuzzFormat(f, "general", "") }
func FuzzSlowLog(f *testing.F)     { fuzzFormat(f, "slow", "") }
func FuzzServerAudit(f *testing.F) { fuzzFormat(f, "audit", "") }

func FuzzStderrLog(f *testing.F) {
	fuzzFormat(f, "stderr", "%m [%p] %q%u@%d ", []byte("2026-11-20 09:31:14.001 UTC [77] app@shop LOG:  statement: SELECT 1\n\t+ 1\n2026-11-20 09:31:14.001 UTC [77] ERROR:  22012: x\n"))
}

func FuzzPcap(f *testing.F) {
	said := []string{">" + pgBindExecute, "<" + pgRowAnswer, ">" + pgMsg('Q', "COMMIT\x00"), "<" + pgMsg('C', "COMMIT\x00") + pgMsg('Z', "I")}
	fuzzFormat(f, "pcap", "", talkPackets(f, layers.LinkTypeEthernet, false, said...), talkPackets(f, layers.LinkTypeRaw, true, said...), []byte("\x0a\x0d\x0d\x0a"))
}
