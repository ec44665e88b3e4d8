package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/shop"
)

// TestProxySample plays a lost update through a proxy that observes none of its sessions.
func TestProxySample(t *testing.T) {
	pg := newWorld(t, "postgres", shop.Setup...)
	p, port := front(t, "postgres", fmt.Sprintf("postgres://127.0.0.1:%d", pg.direct.Port), "--sample", "0.0000001", "--seed", "1")
	target := pg.direct
	target.Port = port
	heard, err := shop.Play(t.Context(), target, shop.Scenes(target.Engine)[1], &bytes.Buffer{})
	if err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	if said := strings.Join(heard["customer B"], "\n"); strings.Contains(said, "lost update") {
		t.Errorf("the terminal printed %q, want no warning", said)
	}
	status := p.end(t)
	if out := p.stdout.String(); status != int(exitUnknown) || !strings.Contains(out,
		"0 exact, 0 approximate, 0 opaque\n  2 sessions left out (--sample): an anomaly between two sessions shows only if both are observed") {
		t.Errorf("exit status %d, want %d, since nothing was seen: %s", status, exitUnknown, out)
	}
}
