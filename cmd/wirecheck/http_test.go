package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"wirecheck/internal/shop"
)

// TestProxyHTTP: a proxy with --http counts for Prometheus what its clients do, shows its findings, and is ready until it ends. One without serves
// nothing, and an address that is none is refused.
func TestProxyHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres", shop.Setup...)
	p := startProgram(t, "proxy", "--listen", "postgres://"+anyPort, "--upstream", fmt.Sprintf("postgres://127.0.0.1:%d", w.direct.Port), "--http", anyPort)
	target := w.direct
	target.Port = p.port(t, "postgres", nil)
	var url string
	p.until(t, "the address of the page", func() bool {
		for line := range strings.Lines(p.stderr.String()) {
			var entry struct{ Page string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Page != "" {
				url = entry.Page
			}
		}
		return url != ""
	})
	get := func(path string) string {
		answer, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := get("readyz") + get("healthz"); got != "ready\nok\n" {
		t.Errorf("ready and alive: %q", got)
	}
	if out, said, status := command(t, "health", strings.Trim(strings.TrimPrefix(url, "http://"), "/")); out != "ready\n" || status != exitClean {
		t.Errorf("health: exit status %d: %s%s", status, out, said)
	}
	if _, err := shop.Play(t.Context(), target, shop.Scenes("postgres")[1], &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	p.until(t, "the finding among the metrics", func() bool {
		return strings.Contains(get("metrics"), `wirecheck_findings_total{class="G-single",kind="anomaly",level="read committed",name="lost update"`)
	})
	if metrics := get("metrics"); strings.Contains(metrics, "wirecheck_judging_seconds_count 0\n") || !strings.Contains(metrics, "wirecheck_judging_seconds_count") {
		t.Error("the time that judging adds is not counted")
	}
	if page := get(""); !strings.Contains(page, "Lost update") || !strings.Contains(page, "connect-src") {
		t.Errorf("the page: %.300s", page)
	}
	if status := p.end(t); status != int(exitFound) {
		t.Errorf("exit status %d", status)
	}
	if _, said, status := command(t, "proxy", "--listen", "postgres://"+anyPort, "--upstream", fmt.Sprintf("postgres://127.0.0.1:%d", w.direct.Port), "--http", "nonsense"); status != exitFailed || !strings.Contains(said, "HOST:PORT") {
		t.Errorf("an address that is none: status %d, %s", status, said)
	}
}
