package source_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// writeCSVLog writes a csvlog of about size bytes: eight sessions, each with transactions of a read, a write with parameters and a
// COMMIT, start and end lines.
func writeCSVLog(t testing.TB, path string, size int) {
	t.Helper()
	var b bytes.Buffer
	line := make([]int, 8)
	entry := func(at int64, s int, tag, vxid, message, detail string) {
		line[s]++
		sec, ms := at/1000, at%1000
		fmt.Fprintf(&b, "2026-11-20 %02d:%02d:%02d.%03d UTC,\"app\",\"shop\",%d,\"10.0.0.%d:5%04d\",6b0012ef.%x,%d,\"%s\",2026-11-20 00:00:00 UTC,%s,0,LOG,00000,\"%s\",%s,,,,,,,,\"shop\",\"client backend\",,-1234567890123456789\n",
			sec/3600%24, sec/60%60, sec%60, ms, 1000+s, s, s, 1000+s, line[s], tag, vxid, message, detail)
	}
	var at int64
	for n := 0; b.Len() < size; n++ {
		s := n % 8
		at += 2
		vxid := fmt.Sprintf("%d/%d", s+3, n)
		entry(at, s, "idle", vxid, "statement: BEGIN", "")
		entry(at, s, "BEGIN", vxid, "duration: 0.034 ms", "")
		entry(at, s, "SELECT", vxid, "execute stmtcache_1: SELECT id, name, price FROM product WHERE category = $1 AND price < $2 ORDER BY price LIMIT 20", fmt.Sprintf("\"parameters: $1 = 'c%d', $2 = '99.50'\"", n%100))
		entry(at, s, "SELECT", vxid, "duration: 0.234 ms", "")
		entry(at+1, s, "UPDATE", vxid, "execute stmtcache_2: UPDATE stock SET n = n - $1 WHERE product = $2 /*action='buy',traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'*/", fmt.Sprintf("\"parameters: $1 = '1', $2 = '%d'\"", n))
		entry(at+1, s, "UPDATE", vxid, "duration: 0.634 ms", "")
		entry(at+2, s, "idle in transaction", vxid, "statement: COMMIT", "")
		entry(at+2, s, "COMMIT", fmt.Sprintf("%d/0", s+3), "duration: 0.534 ms", "")
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkImport reads a log of each format and writes the trace file, on one core. csvlog is promised to come to 50 MB/s; the others are for
// information.
func BenchmarkImport(b *testing.B) {
	const size = 16 << 20
	repeat := func(entry func(n int) string) []byte {
		var log bytes.Buffer
		for n := 0; log.Len() < size; n++ {
			log.WriteString(entry(n))
		}
		return log.Bytes()
	}
	second := func(n int) string { return fmt.Sprintf("%02d:%02d:%02d", n/3600000%24, n/60000%60, n/1000%60) }
	const sql = "UPDATE stock SET n = n - 1 WHERE product = %d /*action='buy',traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01'*/"
	csv := filepath.Join(b.TempDir(), "log.csv")
	writeCSVLog(b, csv, size)
	csvLog, err := os.ReadFile(csv)
	if err != nil {
		b.Fatal(err)
	}
	var said []string
	for n := range 20000 {
		said = append(said, ">"+pgMsg('Q', fmt.Sprintf(sql, n)+"\x00"), "<"+pgMsg('C', "UPDATE 1\x00")+pgMsg('Z', "I"))
	}
	for _, l := range []struct {
		format string
		data   []byte
	}{
		{"csvlog", csvLog},
		{"jsonlog", repeat(func(n int) string { return jsonStatement(fmt.Sprintf(sql, n)) })},
		{"stderr", repeat(func(n int) string {
			return fmt.Sprintf("2026-11-20 %s.%03d UTC [%d] app@shop LOG:  duration: 0.634 ms  statement: "+sql+"\n", second(n), n%1000, 1000+n%8, n)
		})},
		{"general", repeat(func(n int) string {
			return fmt.Sprintf("2026-11-20T%s.%03d000Z\t   %d Query\t"+sql+"\n", second(n), n%1000, n%8, n)
		})},
		{"slow", repeat(func(n int) string { return slowStatement(fmt.Sprintf(sql, n)) })},
		{"audit", repeat(func(n int) string {
			return fmt.Sprintf("20261120 %s,vm,app,localhost,%d,%d,QUERY,shop,'"+strings.ReplaceAll(sql, "'", `\'`)+"',0\n", second(n), n%8, n+1, n)
		})},
		{"pcap", talkPackets(b, layers.LinkTypeEthernet, false, said...)},
	} {
		b.Run(l.format, func(b *testing.B) {
			b.SetBytes(int64(len(l.data)))
			before := cpuTime(b)
			for b.Loop() {
				w, err := trace.NewWriter(io.Discard, trace.Header{})
				if err != nil {
					b.Fatal(err)
				}
				report, err := streamBytes(b, l.data, l.format, source.Options{Prefix: "%m [%p] %q%u@%d ", Out: w.Write})
				if err != nil || report.Unknown != 0 || report.Statements < 1000 {
					b.Fatal(err, report)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			// Other work on the machine does not count in this one.
			b.ReportMetric(float64(len(l.data))*float64(b.N)/1e6/(cpuTime(b)-before).Seconds(), "MB/cpu-s")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
