package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/fleet/stream"
)

// TestCollectRoom: where NATS may use little of its disk, a stream keeps less than by default. Where there is no room at all, or not for what was asked for, that is
// said, and what to do.
func TestCollectRoom(t *testing.T) {
	t.Parallel()
	limited := func(size string) (*natsProcess, *fleetOf) {
		file := filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(file, []byte("jetstream { max_file_store: "+size+" }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := startNATS(t, "-c", file)
		return n, fleetAt(t, n.url())
	}
	collect := func(f *fleetOf, more ...string) (string, exitStatus) {
		_, said, status := command(t, append([]string{"collect", "--from", f.where, "--until-end"}, more...)...)
		return said, status
	}
	const advice = "free space on the disk with its store"
	_, f := limited("300MB")
	if said, status := collect(f, "--keep-size", "400MiB"); status != exitFailed || !strings.Contains(said, advice) || !strings.Contains(said, "400 MiB") {
		t.Errorf("more than there is was asked for: exit status %d, %s", status, said)
	}
	if said, status := collect(f); status != exitUnknown {
		t.Errorf("exit status %d, %s", status, said)
	}
	s, err := f.bus.JetStream().Stream(t.Context(), "wirecheck-"+f.name)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config.MaxBytes; got != stream.DefaultBytes/4 {
		t.Errorf("the stream keeps %d bytes, want a quarter of the default", got)
	}
	n, f := limited("20MB")
	if said, status := collect(f); status != exitFailed || !strings.Contains(said, advice) {
		t.Errorf("no room: exit status %d, %s", status, said)
	}
	w := newWorld(t, "mariadb")
	p, _ := publishingProxy(t, w, n.url())
	p.until(t, "the proxy says it", func() bool { return strings.Contains(p.stderr.String(), advice) })
}
