package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
)

func newRecorder(t testing.TB, o Options) *Recorder {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "live.wct")
	}
	if o.Started.IsZero() {
		o.Started = time.Unix(1_700_000_000, 0)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readParts reads a trace file, and the parts behind it.
func readParts(t testing.TB, path string) (records []*trace.Record, warning string) {
	t.Helper()
	r, err := trace.Open(path, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		rec := &trace.Record{}
		if err := r.Next(rec); errors.Is(err, io.EOF) {
			return records, r.Warning()
		} else if err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
}

// pgServer begins a session, up to its first ReadyForQuery.
func pgLogin(c *Session, user string) {
	body := "\x00\x03\x00\x00user\x00" + user + "\x00application_name\x00shop\x00\x00"
	c.FromClient(append([]byte{0, 0, 0, byte(len(body) + 4)}, body...), time.Unix(1_700_000_000, 0))
	c.FromServer(time.Unix(1_700_000_000, 1))
	c.ToClient([]byte("R\x00\x00\x00\x08\x00\x00\x00\x00S\x00\x00\x00\x18server_version\x0015.1\x00Z\x00\x00\x00\x05I"), time.Unix(1_700_000_000, 2))
}

// pgAsk is a simple query with its answer.
func pgAsk(c *Session, sql string, at time.Time) {
	n := len(sql) + 5
	c.FromClient(append([]byte{'Q', byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, sql+"\x00"...), at)
	c.FromServer(at.Add(time.Millisecond))
	c.ToClient([]byte("C\x00\x00\x00\x0dSELECT 0\x00Z\x00\x00\x00\x05I"), at.Add(2*time.Millisecond))
}

func sqls(records []*trace.Record) (list []string) {
	for _, r := range records {
		if r.Kind == trace.KindStatement {
			list = append(list, r.Statement.SQL)
		}
	}
	return list
}

func noteTexts(records []*trace.Record) (list []string) {
	for _, r := range records {
		if r.Kind == trace.KindNote {
			list = append(list, r.Note.Text)
		}
	}
	return list
}

// TestRecorderFile: only the owner may read it, it is never written over, and each answer has the time at which it arrived.
func TestRecorderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	r := newRecorder(t, Options{Path: path, Source: trace.Source{Name: "here", Format: "proxy"}})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v, want 0600", err, info.Mode())
	}
	if _, err := New(Options{Path: path}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	c := r.Begin(7, wire.Postgres, "10.0.0.9:1", time.Unix(1_700_000_000, 0))
	pgLogin(c, "ann")
	at := time.Unix(1_700_000_001, 0)
	pgAsk(c, "SELECT 1", at)
	c.FromClient([]byte("X\x00\x00\x00\x04"), at)
	c.Closed(at.Add(time.Second))
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	records, warning := readParts(t, path)
	if warning != "" || len(records) != 3 {
		t.Fatalf("%q, records:\n%s", warning, shown(records))
	}
	if s := records[0].Open; s.User != "ann" || s.Application != "shop" || s.Version != "15.1" || s.Client != "10.0.0.9:1" || records[0].Session != 7 {
		t.Errorf("session: %+v", s)
	}
	st := records[1].Statement
	if st.Start != at.UnixNano() || st.End != at.Add(time.Millisecond).UnixNano() || st.From == 0 || st.To <= st.From || st.After != answer.Idle {
		t.Errorf("statement: %+v", st)
	}
	if records[2].End.Reason != "quit" {
		t.Errorf("end: %+v", records[2].End)
	}
}

// TestRecorderOrder: places are those of the arrival of answers, also if what the client is told comes later.
func TestRecorderOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	r := newRecorder(t, Options{Path: path})
	at := time.Unix(1_700_000_001, 0)
	a, b := r.Begin(1, wire.Postgres, "a", at), r.Begin(2, wire.Postgres, "b", at)
	pgLogin(a, "a")
	pgLogin(b, "b")
	ask := func(c *Session) { c.FromClient([]byte("Q\x00\x00\x00\x0bCOMMIT\x00"), at) }
	done := []byte("C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I")
	ask(a)
	ask(b)
	a.FromServer(at)
	b.FromServer(at)
	b.ToClient(done, at)
	a.ToClient(done, at)
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	records, _ := readParts(t, path)
	to := map[uint64]uint64{}
	for _, rec := range records {
		if rec.Kind == trace.KindStatement {
			to[rec.Session] = rec.Statement.To
		}
	}
	if to[1] == 0 || to[1] >= to[2] {
		t.Errorf("session 1 was answered at %d, session 2 at %d: want 1 first", to[1], to[2])
	}
}

// TestRecorderParts: several files read as one, wherever the sessions began; one that is missing is missed, and one of another recording
// refused.
func TestRecorderParts(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, o Options) (string, []string) {
		o.Path, o.Run = filepath.Join(dir, name), name
		r := newRecorder(t, o)
		at := time.Unix(1_700_000_000, 0)
		c := r.Begin(1, wire.Postgres, "a", at)
		pgLogin(c, "ann")
		var want []string
		for i := range 60 {
			want = append(want, fmt.Sprintf("SELECT %d, '%s'", i, strings.Repeat(fmt.Sprint(i*i*i), 50)))
			pgAsk(c, want[i], at.Add(time.Duration(i)*time.Second))
			if i%10 == 9 {
				r.Flush(at.Add(time.Duration(i) * time.Second))
				for r.Tally().Statements < uint64(i) { // what the goroutine has done shows here only
					time.Sleep(time.Millisecond)
				}
			}
		}
		if err := r.Close(at); err != nil {
			t.Fatal(err)
		}
		return o.Path, want
	}
	for _, test := range []struct {
		name string
		o    Options
		many bool
	}{
		{"size.wct", Options{PartSize: 600}, true},
		{"age.wct", Options{PartAge: 10 * time.Second}, true},
		{"one.wct", Options{}, false},
	} {
		path, want := write(test.name, test.o)
		records, warning := readParts(t, path)
		if d := cmp.Diff(want, sqls(records)); d != "" || warning != "" {
			t.Errorf("%s: %q, -said +read:\n%s", test.name, warning, d)
		}
		sessions := 0
		for _, r := range records {
			if r.Kind == trace.KindSession {
				sessions++
			}
		}
		if sessions != 1 {
			t.Errorf("%s: the session is told %d times", test.name, sessions)
		}
		second := PartPath(path, 2)
		if _, err := os.Stat(second); (err == nil) != test.many {
			t.Fatalf("%s: %v", second, err)
		}
		if !test.many {
			continue
		}
		if info, err := os.Stat(second); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v", second, err, info.Mode())
		}
		// By itself, a later part knows its sessions.
		records, _ = readParts(t, second)
		if records[0].Kind != trace.KindSession || !records[0].Open.Joined || records[0].Open.User != "ann" {
			t.Errorf("%s begins with\n%s", second, shown(records[:1]))
		}
	}
	missing, _ := write("missing.wct", Options{PartSize: 600})
	if err := os.Remove(PartPath(missing, 2)); err != nil {
		t.Fatal(err)
	}
	if _, warning := readParts(t, missing); !strings.Contains(warning, "goes on in "+PartPath(missing, 2)+", which is not there") {
		t.Errorf("missing part: %q", warning)
	}
	mixed, _ := write("mixed.wct", Options{PartSize: 600})
	if err := os.Rename(PartPath(filepath.Join(dir, "size.wct"), 2), PartPath(mixed, 2)); err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open(mixed, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for err == nil {
		err = r.Next(&trace.Record{})
	}
	if !strings.Contains(err.Error(), `it is part 2 of recording "size.wct"`) {
		t.Errorf("part of another recording: %v", err)
	}
}

// disk is a file that can be full, or hang.
type disk struct {
	*os.File
	mu   sync.Mutex
	left int           // bytes that there is room for
	more int           // bytes that become free with what is cut off, as space goes by whole sectors
	hang chan struct{} // not nil: writing waits for it
	null bool          // nothing is kept
}

func (d *disk) Write(b []byte) (int, error) {
	if d.null {
		return len(b), nil
	}
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	n := min(len(b), d.left)
	n, err := d.File.Write(b[:n])
	d.left -= n
	if err == nil && n < len(b) {
		err = &os.PathError{Op: "write", Path: d.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

func (d *disk) Close() error {
	if d.null {
		return nil
	}
	return d.File.Close()
}

func (d *disk) Truncate(size int64) error {
	info, err := d.Stat()
	if err == nil {
		d.left += int(info.Size()-size) + d.more
		err = d.File.Truncate(size)
	}
	return err
}

// TestRecorderDiskFull: the clients go on, the file says where the recording stopped and why, and what stood before is there. Where there is
// no room to say why, it says where.
func TestRecorderDiskFull(t *testing.T) {
	for more, want := range map[int][]string{
		600: {"the recording stopped here, before what it recorded did", "no space left on device"},
		0:   {"was not closed: what is there ends after"},
	} {
		diskFull(t, more, want)
	}
}

func diskFull(t *testing.T, more int, want []string) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	stopped := make(chan error, 1)
	r := newRecorder(t, Options{Path: path, Stopped: func(err error) { stopped <- err }, create: func(path string) (partFile, error) {
		f, err := createPart(path)
		if err != nil {
			return nil, err
		}
		return &disk{File: f.(*os.File), left: 900, more: more}, nil
	}})
	at := time.Unix(1_700_000_000, 0)
	c := r.Begin(1, wire.Postgres, "a", at)
	pgLogin(c, "ann")
	var why error
	said := 0
	for ; why == nil; said++ {
		pgAsk(c, fmt.Sprintf("SELECT %d /* %x */", said, said*said*7919), at)
		r.Flush(at)
		select {
		case why = <-stopped:
		case <-time.After(time.Millisecond): // the goroutine may have it
		}
	}
	for range 1000 { // nobody waits, nothing is kept
		pgAsk(c, "SELECT 'after'", at)
	}
	c.Closed(at)
	if err := r.Close(at); err == nil || !strings.Contains(err.Error(), "no space left on device") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
	if !strings.Contains(why.Error(), "the recording ended before the traffic did") {
		t.Errorf("stopped: %v", why)
	}
	records, warning := readParts(t, path)
	if n := len(sqls(records)); n == 0 || n > said {
		t.Errorf("%d statements of %d are in the trace", n, said)
	}
	for _, part := range want {
		if !strings.Contains(warning, part) {
			t.Errorf("warning: %q, want %q", warning, part)
		}
	}
}

// TestRecorderHangs: a disk that hangs holds the clients up for the patience and not longer; what is missing then is counted and noted, and
// the conversation is followed again from the next request on. A disk that is slow only holds them up.
func TestRecorderHangs(t *testing.T) {
	for _, test := range []struct {
		name     string
		patience time.Duration
		missed   bool
	}{{"hangs", 10 * time.Millisecond, true}, {"is slow", time.Minute, false}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { recordOnHangingDisk(t, test.patience, test.missed) })
		})
	}
}

// recordOnHangingDisk records while the disk hangs: for longer than the patience if something is to be missed, else until the session waits.
func recordOnHangingDisk(t *testing.T, patience time.Duration, missed bool) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	var d *disk
	r := newRecorder(t, Options{Path: path, Observed: true, patience: patience, most: 4096, create: func(path string) (partFile, error) {
		f, err := createPart(path)
		d = &disk{File: f.(*os.File), left: 1 << 30}
		return d, err
	}})
	at := time.Unix(1_700_000_000, 0)
	c := r.Begin(1, wire.Postgres, "a", at)
	pgLogin(c, "ann")
	pgAsk(c, "SELECT 'before'", at)
	hang := make(chan struct{})
	d.mu.Lock()
	d.hang = hang
	d.mu.Unlock()
	r.Flush(at)
	if !missed {
		time.AfterFunc(50*time.Millisecond, func() { close(hang) })
	}
	long := strings.Repeat("x", 1000)
	for i := range 50 {
		pgAsk(c, fmt.Sprintf("SELECT %d, '%s'", i, long), at)
		r.Event(&history.Event{Kind: history.EventBegin, Session: 1, Txn: uint64(i + 1)})
	}
	if missed {
		close(hang)
	}
	for !r.fits(3500) { // it gets room when the disk works again
		r.wake()
		time.Sleep(time.Millisecond)
	}
	pgAsk(c, "SELECT 'after'", at)
	c.Closed(at)
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	tally := r.Tally()
	records, warning := readParts(t, path)
	got := sqls(records)
	if warning != "" || got[0] != "SELECT 'before'" || got[len(got)-1] != "SELECT 'after'" {
		t.Errorf("%q\n%s", warning, shown(records))
	}
	for _, sql := range got[1 : len(got)-1] {
		if !strings.HasSuffix(sql, long+"'") {
			t.Errorf("a statement that nobody said: %s", sql)
		}
	}
	notes := noteTexts(records)
	if !missed {
		if len(got) != 52 || len(notes) > 0 || tally.Dropped+tally.Gaps+tally.DroppedEvents > 0 || tally.Held == 0 {
			t.Errorf("%d statements, notes %q, %+v", len(got), notes, tally)
		}
		return
	}
	if len(got) >= 52 || tally.Dropped == 0 || tally.Gaps == 0 || tally.DroppedEvents == 0 {
		t.Errorf("%d statements, %+v", len(got), tally)
	}
	if len(notes) != 2 || !strings.Contains(strings.Join(notes, "\n"), "bytes of this session are missing") || !strings.Contains(strings.Join(notes, "\n"), "not recorded from here on") {
		t.Errorf("notes: %q", notes)
	}
	events := 0
	for i, rec := range records {
		if rec.Kind == trace.KindHistory {
			events++
			continue
		}
		if rec.Kind == trace.KindNote && rec.Note.HistoryEnds {
			for _, later := range records[i:] {
				if later.Kind == trace.KindHistory {
					t.Error("the history goes on behind its hole")
				}
			}
		}
	}
	if events+int(tally.DroppedEvents) != 50 {
		t.Errorf("%d events recorded, %d counted as dropped, want 50 together", events, tally.DroppedEvents)
	}
}

// TestRecorderRedacts: no value reaches the file; names do.
func TestRecorderRedacts(t *testing.T) {
	for _, redact := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "shop.wct")
		o := Options{Path: path, Observed: true}
		if redact {
			o.Redact = trace.NewRedactor([]byte("key"))
		}
		r := newRecorder(t, o)
		at := time.Unix(1_700_000_000, 0)
		c := r.Begin(1, wire.Postgres, "10.1.2.3:4", at)
		pgLogin(c, "ann")
		pgAsk(c, "SELECT n FROM coupon WHERE code = 'SECRET1' -- SECRET2", at)
		r.Event(&history.Event{
			Kind: history.EventStmt, Session: 1, Txn: 1, N: 1, SQL: "SELECT n FROM coupon WHERE code = 'SECRET1'", Verb: "select",
			Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "public.coupon", Key: "SECRET1"}, Name: "code='SECRET1'", Version: "(0,1)/7"}},
			Error:    &history.ServerError{Code: "1", Message: "SECRET3"},
		})
		if err := r.Close(at); err != nil {
			t.Fatal(err)
		}
		records, _ := readParts(t, path)
		var text strings.Builder
		for _, rec := range records {
			fmt.Fprintf(&text, "%s", trace.AppendText(nil, rec, trace.TextOptions{Rows: 9}))
		}
		if found := strings.Contains(text.String(), "SECRET") || strings.Contains(text.String(), "10.1.2.3"); found == redact {
			t.Errorf("redact %v: %s", redact, text.String())
		}
		if !strings.Contains(text.String(), "public.coupon") || !strings.Contains(text.String(), "(0,1)/7") {
			t.Errorf("redact %v: %s", redact, text.String())
		}
	}
}

// TestRecorderProgress: MariaDB's reports of progress are no errors, and errors are.
func TestRecorderProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	r := newRecorder(t, Options{Path: path})
	at := time.Unix(1_700_000_000, 0)
	packet := func(seq byte, body string) []byte { return append([]byte{byte(len(body)), 0, 0, seq}, body...) }
	probe := r.Begin(9, wire.MySQL, "probe", at) // leaves before the greeting
	probe.Closed(at)
	c := r.Begin(1, wire.MySQL, "a", at)
	told := func(seq byte, body string) { c.FromServer(at); c.ToClient(packet(seq, body), at) }
	told(0, "\x0a10.11.1-MariaDB\x00\x07\x00\x00\x0012345678\x00\xff\xf7\x08\x02\x00\xff\x81\x15"+strings.Repeat("\x00", 10)+"123456789012\x00mysql_native_password\x00")
	c.FromClient(packet(1, "\x85\xa2\x0a\x00\x00\x00\x00\x01\x08"+strings.Repeat("\x00", 23)+"ann\x00\x00mysql_native_password\x00"), at)
	told(2, "\x00\x00\x00\x02\x00\x00\x00")
	for _, answer := range []string{"\x00\x05\x00\x02\x00\x00\x00", "\xff\x7a\x04#42S02no such table"} {
		c.FromClient(packet(0, "\x03ALTER TABLE t ENGINE = InnoDB"), at)
		told(1, "\xff\xff\xff\x01\x01\x02\x10\x00\x00\x0dcopy to table")
		told(2, answer)
	}
	c.Closed(at)
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	records, _ := readParts(t, path)
	var got []string
	for _, rec := range records {
		switch {
		case rec.Kind == trace.KindSession:
			got = append(got, rec.Open.Product)
		case rec.Kind == trace.KindStatement && rec.Statement.Error != nil:
			got = append(got, rec.Statement.Error.Code)
		case rec.Kind == trace.KindStatement:
			got = append(got, fmt.Sprint(rec.Statement.Results[0].Affected))
		}
	}
	if d := cmp.Diff([]string{"", "mariadb", "5", "1146"}, got); d != "" {
		t.Errorf("-want +got:\n%s\n%s", d, shown(records))
	}
}

// TestRecorderSessionsAtTheEnd: a statement without an answer is there, and what its session is.
func TestRecorderSessionsAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	r := newRecorder(t, Options{Path: path})
	at := time.Unix(1_700_000_000, 0)
	c := r.Begin(1, wire.Postgres, "a", at)
	pgLogin(c, "ann")
	c.FromClient([]byte("Q\x00\x00\x00\x0dSELECT 1\x00"), at)
	r.Begin(2, wire.Postgres, "b", at) // has not said anything
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	records, warning := readParts(t, path)
	if got := sqls(records); warning != "" || len(got) != 1 || got[0] != "SELECT 1" || records[0].Open.User != "ann" {
		t.Errorf("%q, %s", warning, shown(records))
	}
	if err := r.Close(at); err == nil {
		t.Error("closed twice")
	}
}

// BenchmarkRecorder records transactions of one query in the extended protocol, with what it read, from one session.
func BenchmarkRecorder(b *testing.B) {
	r := newRecorder(b, Options{Observed: true, create: func(string) (partFile, error) { return &disk{File: os.NewFile(0, "null"), null: true}, nil }})
	at := time.Unix(1_700_000_000, 0)
	c := r.Begin(1, wire.Postgres, "a", at)
	pgLogin(c, "ann")
	message := func(kind byte, body string) string {
		n := len(body) + 4
		return string([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + body
	}
	c.FromClient([]byte(message('P', "P0_1\x00SELECT abalance FROM t WHERE aid = $1\x00\x00\x00")), at)
	ask := []byte(message('B', "\x00P0_1\x00\x00\x00\x00\x01\x00\x00\x00\x0512345\x00\x00") + message('D', "P\x00") + message('E', "\x00\x00\x00\x00\x00") + message('S', ""))
	told := []byte(message('2', "") + message('T', "\x00\x01abalance\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00") +
		message('D', "\x00\x01\x00\x00\x00\x010") + message('C', "SELECT 1\x00") + message('Z', "I"))
	c.ToClient([]byte(message('1', "")), at)
	begin := history.Event{Kind: history.EventBegin, Session: 1, Txn: 1, From: 12345, Level: "read committed", Implicit: true}
	stmt := history.Event{
		Kind: history.EventStmt, Session: 1, Txn: 1, N: 1, From: 12345, To: 12346, SQL: "SELECT abalance FROM t WHERE aid = $1", Verb: "select", Coverage: history.CoverageExact,
		Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "public.t", Key: "12345"}, Name: "aid=12345", Version: "(1234,5)/7654", Writer: "x7654", AsOf: 123456}},
	}
	end := history.Event{Kind: history.EventEnd, Session: 1, Txn: 1, From: 12345, To: 12347, Outcome: history.OutcomeCommitted}
	b.ReportAllocs()
	for b.Loop() {
		c.FromClient(ask, at)
		c.FromServer(at)
		r.Event(&begin)
		r.Event(&stmt)
		r.Event(&end)
		c.ToClient(told, at)
	}
	if err := r.Close(at); err != nil {
		b.Fatal(err)
	}
	if n := r.Tally().Statements; n < uint64(b.N) {
		b.Fatalf("%d statements of %d", n, b.N)
	}
}

// BenchmarkRecorderRows records queries of 100 rows in the text protocol of the MySQL family, with what they read.
func BenchmarkRecorderRows(b *testing.B) {
	r := newRecorder(b, Options{Observed: true, create: func(string) (partFile, error) { return &disk{File: os.NewFile(0, "null"), null: true}, nil }})
	at := time.Unix(1_700_000_000, 0)
	packet := func(seq byte, body string) string {
		return string([]byte{byte(len(body)), byte(len(body) >> 8), 0, seq}) + body
	}
	c := r.Begin(1, wire.MySQL, "a", at)
	c.decoder.Resume() // as if it had logged in
	text := "SELECT c FROM sbtest1 WHERE id BETWEEN 421 AND 520"
	ask := []byte(packet(0, "\x03"+text))
	told := packet(1, "\x01") + packet(2, "\x03def\x02sb\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x21\x00\x68\x01\x00\x00\xfe\x00\x00\x00\x00\x00") + packet(3, "\xfe\x00\x00\x22\x00")
	stmt := history.Event{Kind: history.EventStmt, Session: 1, Txn: 1, N: 1, From: 12345, To: 12346, SQL: text, Verb: "select", Coverage: history.CoverageExact, Predicate: true}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		row := make([]byte, 119)
		for k := range row {
			row[k] = '0' + byte(rng.IntN(10))
		}
		told += packet(byte(4+i), "\x77"+string(row))
		stmt.Accesses = append(stmt.Accesses, history.Access{
			Op: history.OpRead, Row: history.Row{Table: "sb.sbtest1", Key: fmt.Sprint(102366584742707200 + i*7)}, Name: fmt.Sprintf("id=%d", i+421),
			Version: fmt.Sprintf("T%d.3.k3f9x2", rng.IntN(5000)), Writer: "T4711.k3f9x2", Order: uint64(rng.IntN(20)),
		})
	}
	told += packet(104, "\xfe\x00\x00\x22\x00")
	b.SetBytes(int64(len(told)))
	b.ReportAllocs()
	for b.Loop() {
		c.FromClient(ask, at)
		c.FromServer(at)
		r.Event(&stmt)
		c.ToClient([]byte(told), at)
	}
	if err := r.Close(at); err != nil {
		b.Fatal(err)
	}
	if n := r.Tally().Statements; n < uint64(b.N) {
		b.Fatalf("%d statements of %d", n, b.N)
	}
}

// shown prints records as "wirecheck trace show" does.
func shown(records []*trace.Record) string {
	var b []byte
	for _, r := range records {
		b = trace.AppendText(b, r, trace.TextOptions{Rows: 10})
	}
	return string(b)
}

// panicking is a decoder with a defect: it ends with a panic where the client says a certain word.
type panicking struct{ wire.Decoder }

func (d panicking) FromClient(b []byte, at int64) error {
	if bytes.Contains(b, []byte("boom")) {
		panic("made for the test")
	}
	return d.Decoder.FromClient(b, at)
}

// TestRecorderDefect: a panic in one session's decoder ends the recording of that session, with a note, and of no other one.
func TestRecorderDefect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.wct")
	r := newRecorder(t, Options{Path: path})
	at := time.Unix(1_700_000_001, 0)
	a, b := r.Begin(1, wire.Postgres, "10.0.0.9:1", at), r.Begin(2, wire.Postgres, "10.0.0.9:2", at)
	a.decoder = panicking{a.decoder}
	pgLogin(a, "ann")
	pgLogin(b, "bob")
	pgAsk(a, "SELECT 'before'", at)
	pgAsk(a, "SELECT 'boom'", at)
	pgAsk(a, "SELECT 'after'", at)
	pgAsk(b, "SELECT 'beside'", at)
	a.Closed(at)
	if err := r.Close(at); err != nil {
		t.Fatal(err)
	}
	records, _ := readParts(t, path)
	if diff := cmp.Diff([]string{"SELECT 'before'", "SELECT 'beside'"}, sqls(records)); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	if notes := noteTexts(records); len(notes) != 1 || !strings.Contains(notes[0], "a defect of wirecheck (made for the test)") {
		t.Errorf("notes %q", notes)
	}
}
