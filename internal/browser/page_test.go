package browser_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"wirecheck/history"
	"wirecheck/internal/browser"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/report/page"
)

// findings judges the history that the forms of a report are tested with.
func findings(t *testing.T) report.Result {
	t.Helper()
	text, err := os.ReadFile("../../report/testdata/shop.txt")
	if err != nil {
		t.Fatal(err)
	}
	events, err := history.ParseText(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := isolation.New(isolation.Options{})
	for i := range events {
		c.Add(&events[i])
	}
	return report.Result{Source: "shop.jsonl", Findings: c.Summary(), Coverage: c.Coverage()}
}

// open writes a page and opens it from disk.
func open(t *testing.T, d page.Document) (*browser.Page, string) {
	t.Helper()
	url := write(t, d)
	return browser.Open(t, url), url
}

// write writes a page, and gives where it is.
func write(t *testing.T, d page.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// quiet fails the test if the page said something in the console, or asked for anything but itself.
func quiet(t *testing.T, p *browser.Page, url string) {
	t.Helper()
	for _, r := range p.Requests() {
		if r != url {
			t.Errorf("the page asked for %s", r)
		}
	}
	for _, e := range p.Errors() {
		t.Errorf("the console says: %s", e)
	}
}

// TestChoose: who clicks an arrow is shown its reason, who hovers over a statement its text, and the keyboard reaches both.
func TestChoose(t *testing.T) {
	t.Parallel()
	r := findings(t)
	p, url := open(t, page.Of(r, nil))
	id, edge := r.Findings[0].ID, r.Findings[0].Edges[0].Text
	look := fmt.Sprintf("document.getElementById(%q).textContent", id+"-look")
	p.Await(look + ".includes('Choose a statement')")
	arrow := "#" + id + "-e1-arrow"
	p.Do(chromedp.Click(chromedp.CSS(arrow + " .number")))
	p.Await(fmt.Sprintf("%s.includes(%q)", look, edge))
	if n := browser.Eval[int](p, "document.querySelectorAll('.statement.lit').length"); n != 2 {
		t.Errorf("the arrow's ends: %d statements are marked", n)
	}
	p.Do(chromedp.KeyEvent(kb.Escape))
	p.Await("!document.querySelector('.pinned')")
	at := browser.Eval[struct{ X, Y float64 }](p, fmt.Sprintf("(r => ({X: r.x + 20, Y: r.y + 10}))(document.querySelector('#%s .statement .shape').getBoundingClientRect())", id))
	browser.Call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at.X, Y: at.Y})
	p.Await(look + ".includes('SELECT n FROM stock')")

	// The tabulator key: the skip link, the index, each finding's link and picture once.
	p.Do(chromedp.Navigate(url))
	var stops []string
	for range 60 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		stops = append(stops, browser.Eval[string](p, `(e => (e.closest(".picture") ? "picture " + e.closest("article").id : e.className || e.textContent.trim()))(document.activeElement)`))
		if stops[len(stops)-1] == "picture "+id {
			break
		}
	}
	if stops[0] != "skip" || stops[len(stops)-1] != "picture "+id {
		t.Fatalf("the tabulator key leads along %q", stops)
	}
	statement := browser.Eval[string](p, "document.activeElement.id")
	p.Await(look + ".includes('SELECT n FROM stock')")
	p.Do(chromedp.KeyEvent(kb.End))
	p.Await(fmt.Sprintf("document.activeElement.id === %q && %s.includes(%q)", id+"-e2-arrow", look, r.Findings[0].Edges[1].Text))
	p.Do(chromedp.KeyEvent(kb.ArrowUp))
	p.Await(fmt.Sprintf("document.activeElement.id === %q", id+"-e1-arrow"))
	p.Do(chromedp.KeyEvent(kb.Home))
	p.Await(fmt.Sprintf("document.activeElement.id === %q", statement))
	p.Do(chromedp.KeyEvent(kb.Enter))
	p.Await(fmt.Sprintf("document.getElementById(%q).classList.contains('pinned')", statement))
	p.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	if browser.Eval[bool](p, fmt.Sprintf("!!document.activeElement.closest('#%s .picture')", id)) {
		t.Error("a picture is more than one stop")
	}
	if names := nameless(t, p); names != nil {
		t.Errorf("what a screen reader cannot name: %q", names)
	}
	quiet(t, p, url)

	// What the policy forbids: scripts and requests of others.
	p.Do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.createElement("script"); s.textContent = "window.foreign = 1"; document.body.append(s); const i = new Image(); i.src = "http://127.0.0.1:9/x"; document.body.append(i); })()`))
	if browser.Eval[bool](p, "'foreign' in window") {
		t.Error("a script that the page does not have ran")
	}
	p.Await("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
}

// nameless lists the links, buttons and regions without a name for those who cannot see them.
func nameless(t *testing.T, p *browser.Page) (roles []string) {
	t.Helper()
	nodes := browser.Call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	if len(nodes) < 100 {
		t.Errorf("%d things on the page for a screen reader", len(nodes))
	}
	for _, n := range nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		if slices.Contains([]string{"link", "button", "region", "heading", "searchbox"}, role) && (n.Name == nil || string(n.Name.Value) == `""`) {
			roles = append(roles, role)
		}
	}
	return roles
}

// TestScreens: a page can be read light and dark, on a phone and on paper, with two transactions and with 40.
func TestScreens(t *testing.T) {
	t.Parallel()
	d := page.Of(findings(t), func(*oracle.Finding) []string { return []string{"wirecheck explain " + strings.Repeat("x", 200)} })
	d.Items = append(d.Items, page.Item{Finding: ring(40)})
	p, url := open(t, d)
	var bright []bool
	for _, scheme := range []string{"light", "dark"} {
		browser.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		p.Await(fmt.Sprintf("matchMedia('(prefers-color-scheme: %s)').matches", scheme))
		bright = append(bright, browser.Eval[bool](p, "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 128"))
		for _, bad := range p.Contrast() {
			t.Errorf("%s: hard to read: %s", scheme, bad)
		}
	}
	if !slices.Equal(bright, []bool{true, false}) {
		t.Errorf("bright in light and dark: %v", bright)
	}
	for _, width := range []int64{1280, 390} {
		p.Do(chromedp.EmulateViewport(width, 800))
		p.Await(fmt.Sprintf("innerWidth === %d", width))
		if over := browser.Eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
			t.Errorf("%d pixels wide: %d pixels of the page are out of sight", width, over)
		}
	}
	if paper := browser.Call(p, cdp.PrintToPDF, cdp.PrintToPDFParams{}).Data; !bytes.HasPrefix(paper, []byte("%PDF")) {
		t.Errorf("printing gave %.10q", paper)
	}
	p.Do(chromedp.Evaluate[chromedp.Void]("dispatchEvent(new Event('beforeprint'))"))
	if browser.Eval[bool](p, "!!document.querySelector('details:not([open])')") {
		t.Error("on paper, something is folded away")
	}
	quiet(t, p, url)
}

// TestMany: 500 findings are on one page, which costs the browser's main thread less than two seconds (of its own time, so that a loaded machine
// makes no difference), and the filter finds one of them.
func TestMany(t *testing.T) {
	t.Parallel()
	var d page.Document
	for i := range 500 {
		f := ring(2 + i%3)
		f.ID = fmt.Sprintf("WC-%06x", i)
		d.Items = append(d.Items, page.Item{Finding: f})
	}
	p, url := openWithin(t, d)
	p.Do(chromedp.SendKeys(chromedp.CSS("#filter"), "WC-0001f3"))
	p.Await("document.querySelectorAll('article:not([hidden])').length === 1")
	if id := browser.Eval[string](p, "document.querySelector('article:not([hidden])').id"); id != "WC-0001f3" {
		t.Errorf("the filter found %s", id)
	}
	quiet(t, p, url)
}

// openWithin writes a page and opens it from disk, and fails if the browser's main thread spends two seconds of its own time on that.
func openWithin(t *testing.T, d page.Document) (*browser.Page, string) {
	t.Helper()
	url := write(t, d)
	p := browser.Open(t, "about:blank")
	browser.Call(p, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	spent := func() (all float64) {
		for _, m := range browser.Call(p, performance.GetMetrics, protocol.Empty{}).Metrics {
			if m.Name == "TaskDuration" {
				all = m.Value
			}
		}
		return all
	}
	before := spent()
	p.Do(chromedp.Navigate(url))
	p.Await("document.readyState === 'complete'")
	browser.Eval[int](p, "document.body.getBoundingClientRect().height|0") // all of it is laid out
	took := time.Duration((spent() - before) * float64(time.Second))
	t.Logf("ready after %d ms, of which the main thread took %v", browser.Eval[int](p, "Math.round(performance.getEntriesByType('navigation')[0].loadEventEnd)"), took)
	if took > 2*time.Second {
		t.Errorf("the page cost %v", took)
	}
	return p, url
}

// TestLong: a finding of 40 transactions with statements of 100 kB fits the window's width, and has what shows it again.
func TestLong(t *testing.T) {
	t.Parallel()
	f := ring(40)
	long := "SELECT a FROM t WHERE b = '" + strings.Repeat("long ", 20_000) + "'"
	for i := range f.Transactions {
		f.Transactions[i].Statements[0].SQL = long
	}
	p, url := openWithin(t, page.Document{Items: []page.Item{{Finding: f, Again: []string{"wirecheck run long.spec --permutation 3"}, Scenario: "session one\nstep a { SELECT 1 }"}}})
	if wide := browser.Eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
		t.Errorf("the page is %d pixels wider than the window", wide)
	}
	if n := browser.Eval[int](p, "document.querySelectorAll('.statement').length"); n != 80 {
		t.Errorf("%d statements in the picture", n)
	}
	for _, want := range []string{"wirecheck run long.spec --permutation 3", "step a { SELECT 1 }", "characters left out"} {
		if !browser.Eval[bool](p, fmt.Sprintf("document.querySelector('article').textContent.includes(%q)", want)) {
			t.Errorf("%q is not on the page", want)
		}
	}
	quiet(t, p, url)
}

// ring is a finding of n transactions, each of which read what the next one wrote.
func ring(n int) oracle.Finding {
	f := oracle.Finding{ID: "WC-00cafe", Kind: oracle.KindAnomaly, Class: "G2-item", Tables: []string{"public.t"}, Level: "read committed", PreventedBy: "serializable"}
	for i := range n {
		at := uint64(10 * i)
		f.Transactions = append(f.Transactions, oracle.Transaction{
			Label: fmt.Sprintf("T%d", i+1), Session: uint64(i + 1), Engine: "postgres", Level: "read committed", Outcome: history.OutcomeCommitted, From: at + 1, To: at + 2000,
			Statements: []oracle.Statement{{N: 1, SQL: "SELECT a FROM t", From: at + 2, To: at + 3}, {N: 2, SQL: "UPDATE t SET a = 1 WHERE id = 1", From: at + 1000, To: at + 1025}},
		})
		f.Edges = append(f.Edges, oracle.Edge{From: i, To: (i + 1) % n, Kind: oracle.EdgeRW, Row: history.Row{Table: "public.t", Key: fmt.Sprint(i)}, FromStatement: 1, ToStatement: 2, Text: "because"})
	}
	return f
}
