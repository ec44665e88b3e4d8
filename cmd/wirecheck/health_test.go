package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestHealth: a page that is not ready, that nobody serves, that hangs or sends its reader elsewhere is no success. TestProxyHTTP has a proxy that
// is ready.
func TestHealth(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			http.Error(w, "\x1b[31mjudging has ended", http.StatusServiceUnavailable)
		case "/healthz":
			_, _ = w.Write([]byte("ok\n"))
		case "/moved":
			http.Redirect(w, r, "/healthz", http.StatusFound)
		}
	}))
	t.Cleanup(page.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // its clients wait in its queue
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	address := strings.TrimPrefix(page.URL, "http://")
	for _, tt := range []struct {
		args   []string
		status exitStatus
		want   string
	}{
		{[]string{address}, exitFound, "not ready: 503"},
		{[]string{page.URL + "/readyz"}, exitFound, "judging has ended"},
		{[]string{page.URL + "/healthz"}, exitClean, "ok\n"},
		{[]string{page.URL + "/moved"}, exitFound, "not ready: 302"},
		{[]string{gone.Addr().String()}, exitFound, "nobody answers"},
		{[]string{silent.Addr().String(), "--limit", "50ms"}, exitFound, "nobody answers"},
		{[]string{"nowhere"}, exitFailed, "expected HOST:PORT"},
		{[]string{"https://127.0.0.1:1"}, exitFailed, "this is no address"},
		{[]string{"http://user:secret@127.0.0.1:1"}, exitFailed, "this is no address"},
		{[]string{address, "--limit", "0s"}, exitFailed, "expected more than 0"},
	} {
		out, said, status := command(t, append([]string{"health"}, tt.args...)...)
		if all := out + said; status != tt.status || !strings.Contains(all, tt.want) || strings.ContainsAny(all, "\x1b") || strings.Contains(all, "secret") {
			t.Errorf("health %q: exit status %d, want %d and %q: %q", tt.args, status, tt.status, tt.want, all)
		}
	}
}

// TestImage: the image's health check is one that the program understands, at the address where the image's proxy serves its page.
func TestImage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	list := func(of string) (words []string) {
		m := regexp.MustCompile(`(?m)^` + of + `(\[.*\])$`).FindSubmatch(text)
		if m == nil || json.Unmarshal(m[1], &words) != nil {
			t.Fatalf("there is no %s in\n%s", of, text)
		}
		return words
	}
	check, run, entry := list(`HEALTHCHECK .* CMD `), list("CMD "), list("ENTRYPOINT ")
	if check[0] != entry[0] || check[len(check)-1] != run[len(run)-1] {
		t.Errorf("checks %q, runs %q %q", check, entry, run)
	}
	if _, said, status := command(t, check[1:]...); status == exitFailed {
		t.Errorf("%q: %s", check, said)
	}
	if !strings.Contains(string(text), ":nonroot\n") {
		t.Error("the image runs as root")
	}
}
