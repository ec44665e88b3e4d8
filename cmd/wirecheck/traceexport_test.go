package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
	"wirecheck/report/columnar"
	"wirecheck/trace"
)

// exported is what the tests read of the files.
type exported struct {
	events []struct {
		Event int64  `parquet:"event"`
		Input int32  `parquet:"input"`
		Kind  string `parquet:"kind"`
		Txn   int64  `parquet:"txn,optional"`
		SQL   string `parquet:"sql,optional"`
	}
	accesses []struct {
		Txn     int64  `parquet:"txn,optional"`
		Op      string `parquet:"op"`
		Key     string `parquet:"row_key,optional"`
		Version string `parquet:"version,optional"`
		Values  string `parquet:"values_read,optional"`
		Image   string `parquet:"image,optional"`
	}
	edges []string
}

// export exports histories and reads the files.
func export(t *testing.T, args ...string) (e exported) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "columns")
	out, said, status := command(t, append([]string{"trace", "export", "--out", dir}, args...)...)
	if status != exitClean || said != "" {
		t.Fatalf("exit status %d, said %q, printed %q", status, said, out)
	}
	readColumns(t, filepath.Join(dir, columnar.EventsFile), &e.events)
	readColumns(t, filepath.Join(dir, columnar.AccessesFile), &e.accesses)
	var edges []struct {
		From          int64  `parquet:"from_txn"`
		To            int64  `parquet:"to_txn"`
		Kind          string `parquet:"kind"`
		Table         string `parquet:"table_name,optional"`
		Key           string `parquet:"row_key,optional"`
		FromVersion   string `parquet:"from_version,optional"`
		ToVersion     string `parquet:"to_version,optional"`
		FromStatement int32  `parquet:"from_statement,optional"`
		ToStatement   int32  `parquet:"to_statement,optional"`
	}
	readColumns(t, filepath.Join(dir, columnar.EdgesFile), &edges)
	for _, d := range edges {
		e.edges = append(e.edges, strings.TrimSpace(fmt.Sprintf("%d.%d %s %d.%d %s %s %s>%s", d.From, d.FromStatement, d.Kind, d.To, d.ToStatement, d.Table, d.Key, d.FromVersion, d.ToVersion)))
	}
	if want := fmt.Sprintf("%s: %d events, %d accesses, %d edges\n", dir, len(e.events), len(e.accesses), len(e.edges)); out != want {
		t.Errorf("printed %q, want %q", out, want)
	}
	return e
}

func readColumns[T any](t *testing.T, path string, into *[]T) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v", path, info.Mode())
	}
	if *into, err = parquet.ReadFile[T](path); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// observedTrace writes a trace file that has the events of a history.
func observedTrace(t *testing.T, events []history.Event) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "history.wct")
	w, err := trace.Create(file, trace.Header{Observed: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&trace.Record{Kind: trace.KindHistory, Session: events[i].Session, History: &events[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func eventsOf(t *testing.T, text string) []history.Event {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestExport: the three forms of a history give the same columns.
func TestExport(t *testing.T) {
	t.Parallel()
	lines := writeHistory(t, lostUpdate)
	binary := filepath.Join(t.TempDir(), "h.bin")
	if _, said, status := command(t, "convert", "--to", "binary", "--output", binary, lines); status != exitClean {
		t.Fatal(said)
	}
	want := []string{"1.2 ww 2.2 public.stock 1 1>2", "2.1 rw 1.2 public.stock 1 0>1"}
	for _, path := range []string{lines, binary, observedTrace(t, eventsOf(t, lostUpdate))} {
		e := export(t, path)
		if diff := cmp.Diff(want, sorted(e.edges)); diff != "" {
			t.Errorf("%s: edges (-want +got):\n%s", path, diff)
		}
		if len(e.events) != 10 || e.events[4].Kind != "stmt" || e.events[4].SQL != "SELECT n FROM stock WHERE id = 1" || e.events[4].Input != 1 {
			t.Errorf("%s: events %+v", path, e.events)
		}
		if len(e.accesses) != 4 || e.accesses[3].Op != "update" || e.accesses[3].Txn != 2 || e.accesses[3].Key != "1" || e.accesses[3].Version != "2" {
			t.Errorf("%s: accesses %+v", path, e.accesses)
		}
	}
}

// sorted is a list in the order of its texts.
func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// TestExportOrder: session order is always there, real time where it is asked for.
func TestExportOrder(t *testing.T) {
	t.Parallel()
	path := writeHistory(t, `
		s1 session postgres "15.4"
		s2 session postgres "15.4"
		s1 t1 begin "read committed"
		t1 w x 0>1
		t1 commit
		s1 t2 begin "read committed"
		t2 commit
		s2 t3 begin "read committed"
		t3 r y@0
		t3 commit`)
	if diff := cmp.Diff([]string{"1.0 so 2.0   >"}, export(t, path).edges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.0 rt 2.0   >", "1.0 so 2.0   >", "2.0 rt 3.0   >"}, sorted(export(t, "--real-time", path).edges)); diff != "" {
		t.Errorf("with real time (-want +got):\n%s", diff)
	}
}

// TestExportSeveral: the histories of two proxies are joined as check does.
func TestExportSeveral(t *testing.T) {
	t.Parallel()
	one := observedTrace(t, eventsOf(t, "s1 session mariadb \"11.4\"\ns1 t1 begin \"read committed\"\nt1 w x 0>1\nt1 commit\ns1 close"))
	two := observedTrace(t, eventsOf(t, "s1 session mariadb \"11.4\"\ns1 t1 begin \"read committed\"\nt1 r x@1\nt1 commit"))
	e := export(t, one, two)
	if diff := cmp.Diff([]string{"1048577.1 wr 1048578.1 t x 1>1"}, e.edges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inputs := map[int32]int{}
	for _, ev := range e.events {
		inputs[ev.Input]++
	}
	if diff := cmp.Diff(map[int32]int{1: 5, 2: 4}, inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

// TestExportAgain: where a read is older than what the checker keeps, the export begins again, and nothing stands twice.
func TestExportAgain(t *testing.T) {
	t.Parallel()
	text := func(last string) string {
		var b strings.Builder
		b.WriteString("s1 session postgres \"15.4\"\n")
		for i := 1; i <= 3*isolation.DefaultKeep; i++ {
			fmt.Fprintf(&b, "s1 t%d begin \"read committed\"\nt%d w x %d>%d\nt%d commit\n", i, i, i-1, i, i)
		}
		fmt.Fprintf(&b, "s1 t900000 begin \"read committed\"\nt900000 r x@%s\nt900000 commit\n", last)
		return b.String()
	}
	const n = 3 * isolation.DefaultKeep
	for _, last := range []string{"5", fmt.Sprint(n)} { // stale, and the near miss
		e := export(t, writeHistory(t, text(last)))
		rw := 0
		for _, d := range e.edges {
			if strings.Contains(d, " rw ") {
				rw++
			}
		}
		want := 2*n + 1 // ww and session order each n-1; then wr, so, and rw where the read is stale
		if last == "5" {
			want++
		}
		if len(e.events) != 1+3*n+3 || len(e.accesses) != n+1 || len(e.edges) != want-1 || (rw == 1) != (last == "5") {
			t.Errorf("read of %s: %d events, %d accesses, %d edges (want %d), %d of them rw", last, len(e.events), len(e.accesses), len(e.edges), want-1, rw)
		}
	}
}

// TestExportRefuses: what cannot be exported is said, and leaves no folder.
func TestExportRefuses(t *testing.T) {
	good, dir := writeHistory(t, lostUpdate), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := write("damaged.jsonl", string(whole)+"what is this\n{}\n")
	foreign := write("foreign.edn", `{:type :invoke, :process 0, :value [[:append :x 1]], :index 0}`+"\n"+`{:type :ok, :process 0, :value [[:append :x 1]], :index 1}`+"\n")
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("full/mine", "")
	to := filepath.Join(dir, "to")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"format":  {[]string{good, "--out", to, "--format", "csv"}, "export writes no csv: use --format parquet"},
		"nowhere": {[]string{good}, "name it with --out"},
		"full":    {[]string{good, "--out", filepath.Join(dir, "full")}, "is not empty"},
		"a file":  {[]string{good, "--out", damaged}, "damaged.jsonl"},
		"missing": {[]string{filepath.Join(dir, "none"), "--out", to}, "none"},
		"damaged": {[]string{damaged, "--out", to}, "damaged.jsonl"},
		"foreign": {[]string{foreign, "--out", to}, "wirecheck convert --to native"},
	} {
		out, said, status := command(t, append([]string{"trace", "export"}, tt.args...)...)
		if status != exitFailed || !strings.Contains(said, tt.want) || out != "" {
			t.Errorf("%s: exit status %d, said %q, printed %q", name, status, said, out)
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 {
		t.Errorf("left over: %v", list)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, said, status := command(t, "trace", "export", good, "--out", to); status != exitClean {
		t.Errorf("into an empty folder: exit status %d, %s", status, said)
	}
}

// TestExportRedacted: no file has a value that was redacted; without redaction they have.
func TestExportRedacted(t *testing.T) {
	const secret = "tulip4711"
	events := eventsOf(t, lostUpdate)
	for i := range events {
		e := &events[i]
		if e.Kind == history.EventStmt {
			e.SQL = "UPDATE stock SET note = '" + secret + "' WHERE id = 1"
			e.Params, e.Tags = "1 "+secret, []string{"route=" + secret}
			for k := range e.Accesses {
				e.Accesses[k].Image, e.Accesses[k].Values, e.Accesses[k].Name = "note "+secret, "note "+secret, "note='"+secret+"'"
			}
		}
	}
	open := observedTrace(t, events)
	redacted := filepath.Join(t.TempDir(), "redacted.wct")
	if _, said, status := command(t, "trace", "redact", open, "-o", redacted); status != exitClean {
		t.Fatal(said)
	}
	for path, want := range map[string]bool{open: true, redacted: false} {
		dir := filepath.Join(t.TempDir(), "columns")
		if _, said, status := command(t, "trace", "export", path, "--out", dir); status != exitClean {
			t.Fatal(said)
		}
		for _, name := range []string{columnar.EventsFile, columnar.AccessesFile, columnar.EdgesFile} {
			rows, err := parquet.ReadFile[any](filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 || strings.Contains(fmt.Sprint(rows...), secret) != want {
				t.Errorf("%s of %s: the value is there or not: want %v", name, filepath.Base(path), want)
			}
		}
	}
}
