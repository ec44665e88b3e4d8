package source_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wirecheck/trace"
	"wirecheck/trace/source"
)

var update = flag.Bool("update", false, "rewrite testdata/*.out")

// TestLogs imports the logs in testdata, each with its format's name as its ending. What is shown of it, and the report, stand in .out.
func TestLogs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range files {
		if strings.HasSuffix(path, ".out") {
			continue
		}
		tried++
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			records, report := importFiles(t, []string{path}, source.Options{})
			if want := strings.TrimPrefix(filepath.Ext(path), "."); report.Format != want {
				t.Errorf("recognised as %s", report.Format)
			}
			report.Files = nil
			got := shown(records) + "\n" + reportText(t, report)
			out := path + ".out"
			if *update {
				if err := os.WriteFile(out, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
			garbleEverywhere(t, data, report.Format, samplePrefixes[filepath.Base(path)])
		})
	}
	if tried < 10 {
		t.Errorf("only %d logs", tried)
	}
}

// garbleEverywhere changes bytes at many places: nothing panics, and nothing is an error.
func garbleEverywhere(t *testing.T, data []byte, format, prefix string) {
	t.Helper()
	for n := 1; n < len(data); n += max(1, len(data)/200) {
		garbled := bytes.Clone(data)
		garbled[n] ^= 0x15
		if _, err := streamBytes(t, garbled, format, source.Options{Prefix: prefix, Out: func(*trace.Record) error { return nil }}); err != nil {
			t.Fatalf("byte %d: %v", n, err)
		}
	}
}

// streamBytes imports without files.
func streamBytes(t testing.TB, data []byte, name string, o source.Options) (*source.Report, error) {
	t.Helper()
	return source.ImportStream(t.Context(), formatNamed(t, name), bytes.NewReader(data), o)
}

func formatNamed(t testing.TB, name string) source.Format {
	t.Helper()
	for _, f := range formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return source.Format{}
}

const csvForm = `2026-11-20 09:31:14.%s UTC,"app","shop",77,"127.0.0.1:5000",6b00.4d,1,"idle",2026-11-20 09:31:13 UTC,4/2,0,LOG,00000,"statement: %s",,,,,,,,,"a","client backend",,0` + "\n"

func csvStatement(ms, sql string) string {
	return strings.Replace(strings.Replace(csvForm, "%s", ms, 1), "%s", sql, 1)
}

// TestCSVGarbled loses a closing quote: one record is lost, not all that follow. A statement whose text looks like a log is left whole.
func TestCSVGarbled(t *testing.T) {
	embedded := strings.ReplaceAll("INSERT INTO log VALUES ('\n"+csvStatement("000", "SELECT 0")+"')", `"`, `""`)
	for _, tt := range []struct {
		name, log string
		want      []string
		unknown   int
	}{
		{"a lost quote", csvStatement("001", "SELECT 1") + strings.Replace(csvStatement("002", "SELECT 2"), `2",`, `2,`, 1) + csvStatement("003", "SELECT 3") + csvStatement("004", "SELECT 4"),
			[]string{"SELECT 1", "SELECT 3", "SELECT 4"}, 1},
		{"a quote too many", csvStatement("001", "SELECT 1") + strings.Replace(csvStatement("002", "SELECT 2"), `"app"`, `"ap"p"`, 1) + csvStatement("003", "SELECT 3"),
			[]string{"SELECT 1", "SELECT 3"}, 1},
		{"a log within a text", csvStatement("001", embedded) + csvStatement("003", "SELECT 3"),
			[]string{strings.ReplaceAll(embedded, `""`, `"`), "SELECT 3"}, 0},
		{"a multi-line statement behind a lost quote", strings.Replace(csvStatement("002", "SELECT 2"), `2",`, `2,`, 1) + csvStatement("003", "SELECT\n3") + csvStatement("004", "SELECT 4"),
			[]string{"SELECT\n3", "SELECT 4"}, 1},
		{"cut off", csvStatement("001", "SELECT 1") + csvStatement("002", "SELECT 2")[:150], []string{"SELECT 1"}, 1},
		{"too few columns", csvStatement("001", "SELECT 1") + "2026-11-20 09:31:14.001 UTC,a,b\n" + csvStatement("002", "SELECT 2"), []string{"SELECT 1", "SELECT 2"}, 1},
		{"something else between", "hello, \"world\"\n" + csvStatement("001", "SELECT 1") + "\n\x00\xff\n" + csvStatement("002", "SELECT 2"), []string{"SELECT 1", "SELECT 2"}, 2},
	} {
		records, report := importBytes(t, []byte(tt.log), source.Options{Format: "csvlog"})
		var got []string
		for _, r := range records {
			if r.Kind == trace.KindStatement {
				got = append(got, r.Statement.SQL)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" || report.Unknown != tt.unknown {
			t.Errorf("%s: unknown lines %d, want %d; -want +got:\n%s", tt.name, report.Unknown, tt.unknown, d)
		}
	}
}

// TestLongLine reads a line that is much longer than what is kept: it is counted and left out, in bounded memory.
func TestLongLine(t *testing.T) {
	for format, lines := range map[string][2]string{
		"csvlog":  {csvStatement("001", "SELECT 1"), csvStatement("002", "SELECT 2")},
		"jsonlog": {jsonStatement("SELECT 1"), jsonStatement("SELECT 2")},
		"general": {"2026-11-20T09:31:15.123456Z\t    7 Query\tSELECT 1\n", "2026-11-20T09:31:16.123456Z\t    7 Query\tSELECT 2\n"},
		"audit":   {"20261120 09:31:15,vm,app,localhost,7,1,QUERY,shop,'SELECT 1',0\n", "20261120 09:31:15,vm,app,localhost,7,2,QUERY,shop,'SELECT 2',0\n"},
		"stderr":  {"2026-11-20 09:31:14.001 UTC [77] app@shop LOG:  statement: SELECT 1\n", "2026-11-20 09:31:14.002 UTC [77] app@shop LOG:  statement: SELECT 2\n"},
		"slow":    {slowStatement("SELECT 1"), slowStatement("SELECT 2")},
	} {
		var got []string
		o := source.Options{Format: format, MaxLine: 1 << 20, Prefix: "%m [%p] %q%u@%d ", Out: func(r *trace.Record) error {
			if r.Kind == trace.KindStatement {
				got = append(got, r.Statement.SQL)
			}
			return nil
		}}
		path := filepath.Join(t.TempDir(), "log")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(lines[0]); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(64 << 20); err != nil { // zeros, without a line end
			t.Fatal(err)
		}
		if _, err := f.Seek(0, 2); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("\n" + lines[1]); err != nil {
			t.Fatal(err)
		}
		f.Close()
		reports, err := source.Import(t.Context(), formats(), []string{path}, o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"SELECT 1", "SELECT 2"}
		if format == "general" || format == "slow" { // it may have been a line of the first statement's text, so that one is not to be had
			want = want[1:]
		}
		if !cmp.Equal(got, want) || reports[0].Unknown != 1 {
			t.Errorf("%s: %q, unknown lines %d", format, got, reports[0].Unknown)
		}
	}
}

// TestManySessions reads logs of more sessions than are followed at a time, of which none ends: no statement is lost.
func TestManySessions(t *testing.T) {
	const n = 1000
	for _, format := range []string{"csvlog", "general", "audit", "slow"} {
		var b strings.Builder
		for i := range n {
			switch format {
			case "csvlog":
				b.WriteString(strings.Replace(strings.Replace(csvStatement("001", fmt.Sprint("SELECT ", i)), ",77,", fmt.Sprintf(",%d,", i), 1), "6b00.4d", fmt.Sprintf("6b00.%x", i), 1))
			case "general":
				fmt.Fprintf(&b, "2026-11-20T09:31:15.%06dZ\t    %d Query\tSELECT %d\n", i, i, i)
			case "audit":
				fmt.Fprintf(&b, "20261120 09:31:15,vm,app,localhost,%d,%d,QUERY,shop,'SELECT %d',0\n", i, i+1, i)
			case "slow":
				b.WriteString(strings.Replace(slowStatement(fmt.Sprint("SELECT ", i)), "Id:     7", fmt.Sprintf("Id: %d", i), 1))
			}
		}
		seen := map[string]bool{}
		o := source.Options{Out: func(r *trace.Record) error {
			if r.Kind == trace.KindStatement {
				seen[r.Statement.SQL] = true
			}
			return nil
		}}
		o.FollowSessions(10)
		report, err := streamBytes(t, []byte(b.String()), format, o)
		if err != nil || report.Sessions != n || len(seen) != n || report.Unknown != 0 {
			t.Errorf("%s: %v, %d statements, %+v", format, err, len(seen), report)
		}
	}
}

func jsonStatement(sql string) string {
	return `{"timestamp":"2026-11-20 09:31:14.281 UTC","user":"app","dbname":"shop","pid":7831,"session_id":"6b00.1e97","ps":"idle","vxid":"3/44","txid":0,"error_severity":"LOG","message":"statement: ` + sql + `","backend_type":"client backend"}` + "\n"
}

func slowStatement(sql string) string {
	return "# Time: 2026-11-20T09:31:15.123456Z\n# User@Host: app[app] @ localhost []  Id:     7\n# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\nSET timestamp=1795167075;\n" + sql + ";\n"
}

func TestImportRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		path, want string
		o          source.Options
	}{
		{filepath.Join(dir, "none"), "no such file", source.Options{}},
		{file("empty", ""), "is empty", source.Options{}},
		{file("prose", "hello world\n"), "none of the formats", source.Options{}},
		{file("a", "x\n"), `unknown format "elk"`, source.Options{Format: "elk"}},
		{file("b", "x\n"), "none of the usual prefixes", source.Options{Format: "stderr"}},
		{file("c", "x\n"), "unknown escape %y", source.Options{Format: "stderr", Prefix: "%m %y"}},
		{file("d", "x\n"), "tells no time", source.Options{Format: "stderr", Prefix: "%u "}},
		{file("e", "\xd4\xc3\xb2\xa1"), "", source.Options{}},
		{file("f", "\x1f\x8bnonsense"), "gzip", source.Options{}},
	} {
		tt.o.Out = func(*trace.Record) error { return nil }
		if _, err := source.Import(t.Context(), formats(), []string{tt.path}, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", filepath.Base(tt.path), err, tt.want)
		}
	}
}

// TestCompressed imports logs that were compressed, and several files as one log: a statement that begins in one may end in the next.
func TestCompressed(t *testing.T) {
	dir := t.TempDir()
	end := strings.Replace(strings.Replace(csvStatement("009", "x"), "statement: x", "duration: 8.000 ms", 1), `"idle"`, `"SELECT"`, 1)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(csvStatement("001", "SELECT 1")))
	z.Close()
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, data := range [][]byte{zipped.Bytes(), e.EncodeAll([]byte(end), nil)} {
		files = append(files, filepath.Join(dir, fmt.Sprint(i)))
		if err := os.WriteFile(files[i], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	records, report := importFiles(t, files, source.Options{})
	if len(records) != 2 || records[1].Statement.Took != 8e6 || report.Lines != 2 || len(report.Files) != 2 {
		t.Errorf("%s\n%s", shown(records), reportText(t, report))
	}
}
