// Package browser drives a headless Chromium in tests. A Chromium that is not installed fails the test; it never skips it.
package browser

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// limit bounds a test with a browser on a busy machine. What a test waits for it awaits.
const limit = 4 * time.Minute

// Page is a page in a browser of its own, with what it did.
type Page struct {
	ctx context.Context
	t   testing.TB

	mu       sync.Mutex
	requests []string
	errors   []string
}

// Open starts a browser and opens a page in it.
func Open(t testing.TB, url string) *Page {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Fatal("there is no Chromium for this test: .ci/install test installs it")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(limit), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars", "no-default-browser-check"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &Page{ctx: ctx, t: t}
	p.Do(chromedp.EmulateViewport(1280, 900)) // starts the browser
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatal(err)
	}
	Call(p, network.Enable, network.EnableParams{})
	p.Do(chromedp.Navigate(url))
	return p
}

// note keeps what the page asks of the network, and what goes wrong in it.
func (p *Page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			p.errors = append(p.errors, fmt.Sprintf("console: %s", arg.Value))
		}
	case *log.EventEntryAdded:
		p.errors = append(p.errors, e.Entry.Text)
	}
}

// Do does something in the browser.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Call runs a command of the DevTools protocol.
func Call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// Eval gives the value of an expression.
func Eval[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Await waits until an expression is true.
func (p *Page) Await(expression string) {
	p.t.Helper()
	// Not chromedp.Poll: it makes a function of a text, which the policy of a page forbids.
	Eval[bool](p, `new Promise(done => {
		const look = () => { let so; try { so = (`+expression+`); } catch { so = false; } so ? done(true) : setTimeout(look, 20); };
		look();
	})`)
}

// Requests are the addresses that the page has asked for.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Errors are what the page has said in the console, and what went wrong in it.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.errors)
}

// Contrast finds texts that are hard to read: their colour's contrast with what is behind them is below 4.5 (WCAG 2.1, 1.4.3).
func (p *Page) Contrast() []string {
	p.t.Helper()
	return Eval[[]string](p, contrast)
}

const contrast = `(() => {
  const rgb = c => (c.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = c => { const [r, g, b] = rgb(c).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, v = rgb(c); if (v.length < 4 || v[3] > .5) return c; } return "rgb(255,255,255)"; };
  const bad = [];
  for (const e of document.querySelectorAll("h1,h2,h3,h4,p,li,a,b,span,code,summary,td,th,label,figcaption,.picture text:not(.pilltext):not(.digits)")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || e.closest(".skip")) continue;
    const s = getComputedStyle(e), a = light(e.ownerSVGElement ? s.fill : s.color), b = light(behind(e.ownerSVGElement?.closest("div,article") ?? e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(ratio.toFixed(2) + ": " + (e.className.baseVal ?? e.className) + " " + e.textContent.trim().slice(0, 40));
  }
  return [...new Set(bad)].slice(0, 20);
})()`
