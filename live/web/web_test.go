package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/internal/browser"
	"wirecheck/live"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/report/page"
)

const lostUpdate = `s1 session postgres "15.4"
s2 session postgres "15.4"
s1 t1 begin "read committed"
s2 t2 begin "read committed"
t1 r public.stock.1@0 -- SELECT n FROM stock WHERE id = 1
t2 r public.stock.1@0 -- SELECT n FROM stock WHERE id = 1
t1 w public.stock.1 0>1 -- UPDATE stock SET n = 8 WHERE id = 1
t1 commit
t2 w public.stock.1 1>2 -- UPDATE stock SET n = '</script><b>' WHERE id = 1
t2 commit
s1 t3 begin "read committed"
t3 r public.stock.1@2 -- SELECT 'still open'
`

// watched is a server over a checker whose events the test gives.
type watched struct {
	*Server
	url, log string
	end      context.CancelFunc // begins the end of the proxy

	mu      sync.Mutex
	checker *isolation.Checker
	events  []history.Event
	asked   int
}

func watch(t *testing.T, address string) *watched {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(lostUpdate))
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{checker: isolation.New(isolation.Options{}), events: events}
	var log bytes.Buffer
	begin := time.Unix(1_700_000_000, 0)
	w.Server, err = Listen(t.Context(), Options{
		Address: address, Status: w.status, Log: zerolog.New(&log),
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked++
			return begin.Add(time.Duration(w.asked) * fresh)
		}, // each look is a new one
		Document: func(s live.Status) page.Document {
			return page.Of(report.Result{Findings: s.Findings, Coverage: s.Coverage}, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.url, w.log = "http://"+w.Addr().String(), log.String()
	draining, end := context.WithCancel(context.Background())
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(serving, draining.Done()) }()
	w.end = end
	t.Cleanup(func() {
		end()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w
}

// happen gives the checker the next events.
func (w *watched) happen(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.events[:n] {
		w.checker.Add(&w.events[i])
	}
	w.events = w.events[n:]
}

func (w *watched) status() live.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return live.Status{Findings: w.checker.Summary(), Now: isolation.Look(w.checker, 10), Pace: live.Pace{Events: 4, Judged: 8 * time.Millisecond}}
}

func (w *watched) get(t *testing.T, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestLivePage: a page that is open shows a finding when it comes, and what a reader has opened or typed stays.
func TestLivePage(t *testing.T) {
	t.Parallel()
	w := watch(t, "127.0.0.1:0")
	w.happen(6)
	p := browser.Open(t, w.url+"/")
	p.Await("document.getElementById('live').textContent.includes('SELECT n FROM stock')")
	if n := browser.Eval[int](p, "document.querySelectorAll('article').length"); n != 0 {
		t.Errorf("%d findings before anything was found", n)
	}
	browser.Eval[bool](p, "(document.getElementById('live-coverage').open = true) && (document.getElementById('filter').value = 'lost') !== ''")
	w.happen(len(w.events))
	p.Await("document.querySelectorAll('article').length === 1 && !document.getElementById('nothing')")
	p.Await("document.getElementById('news').textContent.includes('Lost update on public.stock')")
	p.Await("document.getElementById('live-open').textContent.includes('still open')")
	p.Await("document.querySelectorAll('#index li').length === 1")
	for what, so := range map[string]string{
		"what was opened is closed":         "document.getElementById('live-coverage').open",
		"what was typed is gone":            "document.getElementById('filter').value === 'lost'",
		"a table's versions are not shown":  "document.getElementById('live-coverage').textContent.includes('public.stock')",
		"a statement's text became a tag":   "!document.querySelector('article b:not(li b)')",
		"the new picture is not one stop":   "document.querySelectorAll('article .picture a[tabindex=\"0\"]').length === 1",
		"the average of judging is missing": "document.getElementById('live').textContent.includes('2ms on average')",
	} {
		if !browser.Eval[bool](p, so) {
			t.Error(what)
		}
	}
	p.Await(fmt.Sprintf("performance.getEntriesByType('resource').length > %d", browser.Eval[int](p, "performance.getEntriesByType('resource').length"))) // it has asked again
	if n := browser.Eval[int](p, "document.querySelectorAll('article').length"); n != 1 {
		t.Errorf("%d times the same finding", n)
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, w.url) {
			t.Errorf("the page asked for %s", r)
		}
	}
	for _, e := range p.Errors() {
		if !strings.Contains(e, "favicon") {
			t.Errorf("the console says: %s", e)
		}
	}
}

// TestServer: metrics, whether it lives and is ready, and who may ask.
func TestServer(t *testing.T) {
	t.Parallel()
	w := watch(t, "127.0.0.1:0")
	w.happen(len(w.events))
	if strings.Contains(w.log, "other machines") {
		t.Errorf("the log of a loopback address: %s", w.log)
	}
	_, metrics := w.get(t, "/metrics", "")
	for _, want := range []string{
		`wirecheck_findings_total{class="G-single",kind="anomaly",level="read committed",name="lost update",table="public.stock"} 1`,
		`wirecheck_statements_total{coverage="exact"} 5`, `wirecheck_transactions_total{outcome="committed"} 2`, "wirecheck_transactions_open 1", "wirecheck_judging_seconds_count 4",
		`wirecheck_judging_seconds_bucket{le="1e-05"} 0`, "wirecheck_judging_seconds_sum 0.008", `wirecheck_row_versions_total{coverage="exact",table="public.stock"} 5`, "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	for _, tt := range []struct {
		path, host string
		status     int
		text       string
	}{
		{"/healthz", "", 200, "ok"}, {"/readyz", "", 200, "ready"}, {"/readyz", "localhost:9090", 200, "ready"}, {"/readyz", "[::1]:9090", 200, "ready"},
		{"/", "evil.example", 403, "this machine alone"}, {"/state?have=0", "127.0.0.1.evil.example", 403, "this machine alone"}, {"/metrics", "192.0.2.1", 403, ""},
		{"/state?have=0", "", 200, `"names":["Lost update on public.stock"]`}, {"/state?have=1", "", 200, `"new":null`}, {"/state?have=900", "", 200, `"have":1`}, {"/state?have=-1", "", 400, ""},
		{"/state", "", 400, ""}, {"/debug/pprof/cmdline", "", 200, "web.test"}, {"/nothing", "", 404, ""},
	} {
		if status, text := w.get(t, tt.path, tt.host); status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%s at %q: %d %.200s", tt.path, tt.host, status, text)
		}
	}
	w.end()
	if status, _ := w.get(t, "/readyz", ""); status != 503 {
		t.Errorf("while the proxy ends it is ready: %d", status)
	}
	if status, _ := w.get(t, "/healthz", ""); status != 200 {
		t.Errorf("while the proxy ends it is not alive: %d", status)
	}
}

// TestOpenAddress: an address that other machines reach is said at the start; profiles stay with this machine.
func TestOpenAddress(t *testing.T) {
	t.Parallel()
	w := watch(t, "0.0.0.0:0")
	if !strings.Contains(w.log, "other machines can reach the page") {
		t.Errorf("the log: %s", w.log)
	}
	if status, _ := w.get(t, "/healthz", "proxy.internal"); status != 200 {
		t.Errorf("by its own name: %d", status)
	}
	for from, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "192.0.2.1:1": false, "nonsense": false} {
		if got := fromHere(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%s is this machine: %v", from, got)
		}
	}
}
