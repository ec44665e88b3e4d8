package source_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

// sampleLogs gives the logs in testdata by their names.
func sampleLogs(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, path := range files {
		if strings.HasSuffix(path, ".out") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = data
	}
	return all
}

func formatByName(name string) string { return strings.TrimPrefix(filepath.Ext(name), ".") }

// samplePrefixes are those of the stderr logs, also for what is left of one.
var samplePrefixes = map[string]string{"debian.stderr": "%m [%p] %q%u@%d ", "pgreplay.stderr": "%m|%u|%d|%c|"}

// imported reads a log as a format and gives its statements.
func imported(t testing.TB, data []byte, format string, o source.Options) ([]*trace.Statement, *source.Report) {
	t.Helper()
	var out []*trace.Statement
	o.Out = func(r *trace.Record) error {
		if r.Kind == trace.KindStatement {
			st := *r.Statement
			out = append(out, &st)
		}
		return nil
	}
	report, err := streamBytes(t, data, format, o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return out, report
}

func texts(sts []*trace.Statement) []string {
	out := []string{}
	for _, st := range sts {
		out = append(out, st.SQL)
	}
	return out
}

// TestCutAtEveryByte cuts each log off at every byte (long ones at every few). No statement may be told that the whole log does not tell, unless it is said that its
// text may not be whole (a cut between two lines of a text cannot be seen, so the last one may lack lines); and of those that the whole log tells only the last ones, which are still open, may be missing.
func TestCutAtEveryByte(t *testing.T) {
	for name, data := range sampleLogs(t) {
		t.Run(name, func(t *testing.T) {
			o := source.Options{Prefix: samplePrefixes[name]}
			all, _ := imported(t, data, formatByName(name), o)
			stride := 1 + len(data)/1000
			most := 0
			for n := 1; n < len(data); n += stride {
				got, _ := imported(t, data[:n], formatByName(name), o)
				i, whole := 0, 0
				for k, st := range got {
					if st.Lost || k == len(got)-1 && data[n-1] == '\n' && slices.ContainsFunc(all, func(whole *trace.Statement) bool { return strings.HasPrefix(whole.SQL, st.SQL+"\n") }) {
						continue
					}
					for i < len(all) && all[i].SQL != st.SQL {
						i++
					}
					if i == len(all) {
						t.Fatalf("cut at byte %d: %q is none of the log's statements, or not in its place:\n%s", n, st.SQL, data[:n])
					}
					i, whole = i+1, whole+1
				}
				most = max(most, whole)
			}
			if len(all) > 3 && most < len(all)-3 {
				t.Errorf("cut behind its last byte but a few it tells %d of %d statements", most, len(all))
			}
		})
	}
}

// TestJunk gives each reader files that hold anything but a log: they are refused, or all of their lines are unknown.
func TestJunk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	junk := make([]byte, 20000)
	for i := range junk {
		junk[i] = byte(random.Uint32())
	}
	for name, data := range map[string][]byte{
		"random bytes": junk, "zero bytes": make([]byte, 5000), "one line": []byte("hello"), "line ends": []byte("\n\r\n\n"), "invalid UTF-8": []byte("\xfd\xff\xfe\n\xc3\x28\n"),
		"quotes": []byte(strings.Repeat(`"'`+"`\n", 1000)), "open quote": []byte(`"` + strings.Repeat("x\n", 1000)), "braces": []byte(strings.Repeat("{", 100000)),
	} {
		for _, f := range formats() {
			for _, how := range []string{"plain", "gzip", "zstd"} {
				file := packed(t, data, how)
				report, err := streamBytes(t, file, f.Name, source.Options{Prefix: "%m [%p] ", Out: func(r *trace.Record) error {
					return fmt.Errorf("a record was made of junk: %+v", r)
				}})
				if err != nil {
					if f.Name != "pcap" || !strings.Contains(err.Error(), "the packet capture's header") {
						t.Errorf("%s, %s as %s: %v", name, how, f.Name, err)
					}
				} else if report.Unknown == 0 && name != "line ends" {
					t.Errorf("%s, %s as %s: nothing is unknown", name, how, f.Name)
				}
			}
		}
		path := filepath.Join(t.TempDir(), "junk")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Import(t.Context(), formats(), []string{path}, source.Options{Out: func(*trace.Record) error { return nil }}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is recognised as something: %v", name, err)
		}
	}
}

func packed(t testing.TB, data []byte, how string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch how {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	default:
		return data
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressedCutOff cuts a compressed log off: what can be unpacked is read, and that there was more is told.
func TestCompressedCutOff(t *testing.T) {
	var log strings.Builder
	for i := range 20000 {
		log.WriteString(csvStatement(fmt.Sprintf("%03d", i/100), fmt.Sprintf("SELECT %d", rand.New(rand.NewPCG(uint64(i), 1)).Uint64())))
	}
	for _, how := range []string{"gzip", "zstd"} {
		file := packed(t, []byte(log.String()), how)
		whole, report := imported(t, file, "csvlog", source.Options{})
		if len(whole) != 20000 || report.Unknown != 0 {
			t.Errorf("%s: %d statements, %d unknown", how, len(whole), report.Unknown)
		}
		got, report := imported(t, file[:len(file)/2], "csvlog", source.Options{})
		if len(got) < 3000 || len(got) >= 20000 || !strings.Contains(reportText(t, report), "damaged or cut off behind this line") {
			t.Errorf("%s, cut off: %d statements\n%s", how, len(got), reportText(t, report))
		}
		flipped := bytes.Clone(file)
		flipped[len(file)/2] ^= 0x10
		if got, report := imported(t, flipped, "csvlog", source.Options{}); report.Unknown == 0 {
			t.Errorf("%s, with a wrong byte: %d statements and nothing unknown", how, len(got))
		}
		if _, err := streamBytes(t, file[:6], "csvlog", source.Options{}); err == nil {
			t.Errorf("%s, cut off at its beginning: no error", how)
		}
	}
}

// TestLineEndsAndMarks reads each log with a byte order mark, and with the line ends of another system: nothing changes.
func TestLineEndsAndMarks(t *testing.T) {
	for name, data := range sampleLogs(t) {
		o := source.Options{Prefix: samplePrefixes[name]}
		want, wantReport := imported(t, data, formatByName(name), o)
		for what, changed := range map[string][]byte{
			"a byte order mark": append([]byte("\xef\xbb\xbf"), data...), "CRLF": bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")),
		} {
			got, report := imported(t, changed, formatByName(name), o)
			a, b := texts(want), texts(got)
			for i := range b {
				b[i] = strings.ReplaceAll(b[i], "\r\n", "\n")
			}
			if d := cmp.Diff(a, b); d != "" || report.Unknown != wantReport.Unknown || report.Errors != wantReport.Errors || report.Waits != wantReport.Waits {
				t.Errorf("%s with %s: %s\n%s", name, what, d, reportText(t, report))
			}
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if reports, err := source.Import(t.Context(), formats(), []string{path}, source.Options{Out: func(*trace.Record) error { return nil }}); err != nil || reports[0].Format != formatByName(name) {
				t.Errorf("%s with %s is not recognised: %v", name, what, err)
			}
		}
	}
}

// endless is a file of one line without end between two others, of any size and no memory.
type endless struct {
	head, tail string
	fill       []byte // as much as is ever asked for
	left       int64
	peak       *uint64
	reads      int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != "" {
		n := copy(p, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	if e.left > 0 {
		n := int(min(int64(len(p)), e.left))
		copy(p, e.fill[:n])
		e.left -= int64(n)
		if e.reads++; e.reads%64 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*e.peak = max(*e.peak, m.HeapAlloc)
		}
		return n, nil
	}
	if e.tail == "" {
		return 0, io.EOF
	}
	n := copy(p, e.tail)
	e.tail = e.tail[n:]
	return n, nil
}

// TestEndlessLine reads a line of 2 GiB, which is generated as it is read, in bounded memory, and goes on behind it.
func TestEndlessLine(t *testing.T) {
	lines := map[string][2]string{
		"csvlog": {csvStatement("001", "SELECT 1"), csvStatement("002", "SELECT 2")},
		"slow":   {slowStatement("SELECT 1"), slowStatement("SELECT 2")},
	}
	const size = int64(2 << 30)
	const room = 300 << 20 // for lines of 64 MiB
	for format, l := range lines {
		for _, fill := range []byte{'x', '\''} {
			size := size
			if fill != 'x' {
				size = 256 << 20
			}
			var peak uint64
			var got []string
			o := source.Options{Out: func(r *trace.Record) error {
				if r.Kind == trace.KindStatement {
					got = append(got, r.Statement.SQL)
				}
				return nil
			}}
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			log := &endless{head: l[0], tail: "\n" + l[1], fill: bytes.Repeat([]byte{fill}, 1<<20), left: size, peak: &peak}
			report, err := source.ImportStream(t.Context(), formatNamed(t, format), log, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 || got[len(got)-1] != "SELECT 2" || report.Unknown != 1 {
				t.Errorf("%s: %q, %d unknown", format, got, report.Unknown)
			}
			if peak > before.HeapAlloc+room {
				t.Errorf("%s: %d MB of memory were in use", format, (peak-before.HeapAlloc)>>20)
			}
		}
	}
}

// TestNoQuadraticTime reads statements of very many lines. Each line once more than it takes by itself would be hours.
func TestNoQuadraticTime(t *testing.T) {
	const n = 400_000
	many := strings.Repeat("x\n", n)
	tabbed := strings.Repeat("\tx\n", n)
	headers := strings.Repeat("\n261120  9:31:14\t    99 Query\tSELECT 0", n/8)
	users := strings.Repeat("\n# User@Host: a[a] @ b []", n/8)
	for _, tt := range []struct{ name, format, log string }{
		{"csvlog", "csvlog", csvStatement("001", many)},
		{"csvlog of lines like records", "csvlog", csvStatement("001", strings.ReplaceAll(strings.Repeat(csvStatement("000", "SELECT 0"), n/8), `"`, `""`))},
		{"stderr", "stderr", "2026-11-20 09:31:14.001 UTC [77] app@shop LOG:  statement: SELECT 1\n" + tabbed},
		{"general", "general", "261120  9:31:15\t     7 Query\tSELECT '" + many + "'\n"},
		{"general with lines like entries", "general", "261120  9:31:15\t     7 Query\tSELECT '" + headers + "'\n"},
		{"slow", "slow", slowStatement("SELECT '" + many + "'")},
		{"slow with lines like entries", "slow", slowStatement("SELECT '" + users + "'")},
	} {
		sts, report := imported(t, []byte(tt.log), tt.format, source.Options{Prefix: "%m [%p] %q%u@%d "})
		if len(sts) != 1 || len(sts[0].SQL) < n || report.Unknown != 0 {
			t.Errorf("%s: %d statements, %d unknown", tt.name, len(sts), report.Unknown)
		}
	}
}

// TestEntriesWithinTexts has texts with lines that look like entries, and beside them statements with a forgotten quote, behind which the next
// entry is one.
func TestEntriesWithinTexts(t *testing.T) {
	const g1, g2 = "2026-11-20T09:31:15.123456Z\t    7 Query\t", "2026-11-20T09:31:16.000000Z\t    7 Query\t"
	const old = "2026-11-19T01:00:00.000000Z\t    5 Query\tSELECT 'x"
	const m1, m2 = "261120  9:31:15\t     7 Query\t", "261120  9:31:16\t     7 Query\t"
	slow := func(time, sql string) string {
		return "# Time: " + time + "\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1795167075;\n" + sql + ";\n"
	}
	const s1, s2, s0 = "2026-11-20T09:31:15.123456Z", "2026-11-20T09:31:16.123456Z", "2026-11-19T09:31:15.123456Z"
	for _, tt := range []struct {
		name, format, log string
		want              []string
	}{
		{"an older entry within quotes", "general", g1 + "INSERT INTO l VALUES ('\n" + old + "\n')\n" + g2 + "SELECT 2\n", []string{"INSERT INTO l VALUES ('\n" + old + "\n')", "SELECT 2"}},
		{"within a comment", "general", g1 + "SELECT 1 /*\n" + old + "\n*/\n" + g2 + "SELECT 2\n", []string{"SELECT 1 /*\n" + old + "\n*/", "SELECT 2"}},
		{"a forgotten quote", "general", g1 + "SELECT 'O'Brien'\n" + g2 + "SELECT 'O'Brien'\n" + g2 + "SELECT 'x'\n", []string{"SELECT 'O'Brien'", "SELECT 'O'Brien'", "SELECT 'x'"}},
		{"a quote in a comment", "general", g1 + "SELECT 1 -- it's\n" + g2 + "SELECT 2 # it's\n" + g2 + "SELECT 3\n", []string{"SELECT 1 -- it's", "SELECT 2 # it's", "SELECT 3"}},
		{"an escaped quote", "general", g1 + "SELECT 'it\\'s'\n" + g2 + "SELECT 2\n", []string{"SELECT 'it\\'s'", "SELECT 2"}},
		{"MariaDB, the same second", "general", m1 + "INSERT INTO l VALUES ('\n" + m1 + "SELECT 0\n\t\t    99 Query\tSELECT 0')\n\t\t     7 Query\tSELECT 2\n" + m2 + "SELECT 3\n",
			[]string{"INSERT INTO l VALUES ('\n" + m1 + "SELECT 0\n\t\t    99 Query\tSELECT 0')", "SELECT 2", "SELECT 3"}},
		{"MariaDB, a forgotten quote", "general", m1 + "SELECT 'O'Brien'\n\t\t     7 Query\tSELECT 2\n" + m2 + "SELECT 3\n", []string{"SELECT 'O'Brien'", "SELECT 2", "SELECT 3"}},
		{"not a command", "general", g1 + "SELECT 1\n\t\t    7 Hello\tx\n" + g2 + "SELECT 2\n", []string{"SELECT 1\n\t\t    7 Hello\tx", "SELECT 2"}},

		{"an older entry within quotes", "slow", slow(s1, "INSERT INTO l VALUES ('\n"+slow(s0, "SELECT 0")+"')") + slow(s2, "SELECT 2"),
			[]string{"INSERT INTO l VALUES ('\n" + slow(s0, "SELECT 0") + "')", "SELECT 2"}},
		{"comments that begin with #", "slow", slow(s1, "SELECT 1 # one\n# two\n# Time: never\n+ 1") + slow(s2, "SELECT 2"), []string{"SELECT 1 # one\n# two\n# Time: never\n+ 1", "SELECT 2"}},
		{"a forgotten quote", "slow", slow(s1, "SELECT 'O'Brien'") + slow(s2, "SELECT 'O'Brien'") + slow(s2, "SELECT 2"), []string{"SELECT 'O'Brien'", "SELECT 'O'Brien'", "SELECT 2"}},
		{"several statements", "slow", slow(s1, "SELECT 1;\nSELECT 2") + slow(s2, "SELECT 3"), []string{"SELECT 1;\nSELECT 2", "SELECT 3"}},
	} {
		sts, report := imported(t, []byte(tt.log), tt.format, source.Options{})
		if d := cmp.Diff(tt.want, texts(sts)); d != "" || report.Unknown != 0 {
			t.Errorf("%s, %s: %d unknown\n%s", tt.format, tt.name, report.Unknown, d)
		}
	}
}

// TestCSVVersions reads the columns of each version of PostgreSQL: 22 in 8.4, 23 up to 12, 24 in 13, 26 since 14, and more in some later one.
func TestCSVVersions(t *testing.T) {
	const line = `2026-11-20 09:31:14.001 UTC,"app","shop",77,"127.0.0.1:5000",6b00.4d,1,"idle",2026-11-20 09:31:13 UTC,4/2,0,LOG,00000,"statement: SELECT 1",,,,,,,,`
	for columns, more := range map[int]string{22: "", 23: `,"a"`, 24: `,"a","client backend"`, 26: `,"a","client backend",,0`, 28: `,"a","client backend",,0,x,"y"`} {
		sts, report := imported(t, []byte(line+more+"\n"), "csvlog", source.Options{})
		if fields, err := csv.NewReader(strings.NewReader(line + more)).Read(); err != nil || len(fields) != columns {
			t.Errorf("the test's line has %d columns, not %d: %v", len(fields), columns, err)
		}
		if len(sts) != 1 || sts[0].SQL != "SELECT 1" || report.Unknown != 0 {
			t.Errorf("%d columns: %v, %d unknown", columns, texts(sts), report.Unknown)
		}
	}
	sts, report := imported(t, []byte(line[:len(line)-1]+"\n"), "csvlog", source.Options{})
	if len(sts) != 0 || report.Unknown != 1 {
		t.Errorf("21 columns: %v, %d unknown", texts(sts), report.Unknown)
	}
	// Versions one behind the other in one file, as after an upgrade; and a worker's line, which belongs to no session of a client.
	worker := strings.Replace(line, "statement: SELECT 1", "statement: SELECT 2", 1) + `,"a","parallel worker",78,0`
	sts, report = imported(t, []byte(line+`,"a"`+"\n"+worker+"\n"+strings.ReplaceAll(line, "SELECT 1", "SELECT 3")+`,"a","client backend",,0`+"\n"), "csvlog", source.Options{})
	if !cmp.Equal(texts(sts), []string{"SELECT 1", "SELECT 3"}) || report.Unknown != 0 {
		t.Errorf("mixed versions: %v, %d unknown", texts(sts), report.Unknown)
	}
}

// TestJSONLines has objects that differ from what PostgreSQL 15 writes.
func TestJSONLines(t *testing.T) {
	with := func(more string) string { return strings.Replace(jsonStatement("SELECT 1"), `"pid"`, more+`,"pid"`, 1) }
	for _, tt := range []struct {
		name, line string
		sql        string
		lost       bool
	}{
		{"keys of a later version", with(`"io":{"a":[1,{}]},"x":null,"y":1e999`), "SELECT 1", false},
		{"escapes", jsonStatement(`SELECT '\u00e9\n\"\u0001'`), "SELECT 'é\n\"\x01'", false},
		{"bytes of another encoding", jsonStatement("SELECT '\xe9'"), "SELECT '\ufffd'", true},
		{"a pid that is a text", strings.Replace(jsonStatement("SELECT 1"), "7831", `"7831"`, 1), "", false},
		{"an array", "[1]\n", "", false},
		{"cut off", jsonStatement("SELECT 1")[:100], "", false},
		{"no time", strings.Replace(jsonStatement("SELECT 1"), "09:31", "late", 1), "", false},
	} {
		sts, report := imported(t, []byte(tt.line), "jsonlog", source.Options{})
		switch {
		case tt.sql == "":
			if len(sts) != 0 || report.Unknown != 1 {
				t.Errorf("%s: %v, %d unknown", tt.name, texts(sts), report.Unknown)
			}
		case len(sts) != 1 || sts[0].SQL != tt.sql || sts[0].Lost != tt.lost || report.Unknown != 0:
			t.Errorf("%s: %v, %d unknown", tt.name, texts(sts), report.Unknown)
		}
	}
}
