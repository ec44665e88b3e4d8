package bus_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
)

func open(t *testing.T, where string, o bus.Options) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), where, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// put stores a message, as often as it takes while there is no server.
func put(t *testing.T, b *bus.Bus, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := b.JetStream().Publish(ctx, "a", []byte(text), jetstream.WithMsgID(text))
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// TestEmbedded: several processes name one folder; when the one with the server ends, another one has it, with all that was stored.
func TestEmbedded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	first := open(t, bus.Embedded+dir, bus.Options{})
	lost := make(chan error, 100)
	second := open(t, bus.Embedded+dir, bus.Options{Changed: func(err error) { lost <- err }})
	if err := <-lost; err != nil {
		t.Fatalf("the first thing is a connection, not %v", err)
	}
	if first.URL() != second.URL() {
		t.Errorf("%s and %s", first.URL(), second.URL())
	}
	if _, err := first.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	put(t, first, "one")
	put(t, second, "two")
	first.Close()
	if err := <-lost; err == nil {
		t.Error("the end of the server is a loss")
	}
	put(t, second, "three")
	s, err := second.JetStream().Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
	told := make(chan error, 100)
	third := open(t, bus.Embedded+dir, bus.Options{Changed: func(err error) { told <- err }})
	put(t, third, "three") // the same once more
	if info, err := s.Info(t.Context()); err != nil || info.State.Msgs != 3 {
		t.Errorf("%v messages, want 3: %v", info, err)
	}
	if err := <-told; err != nil {
		t.Errorf("the first thing is a connection, not %v", err)
	}
	third.Close()
	if len(told) > 0 {
		t.Errorf("the end that its owner wants was told as a loss: %v", <-told)
	}
}

// TestSecret: the token stands in a file that only the user can read, and in no text.
func TestSecret(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	b := open(t, bus.Embedded+dir, bus.Options{})
	for name := range map[string]bool{"address": true, "": true} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	at := strings.LastIndex(b.URL(), "@")
	token := strings.TrimPrefix(b.URL()[:at], "nats://")
	if len(token) < 16 {
		t.Fatalf("token %q", token)
	}
	for _, where := range []string{b.URL(), "nats://user:" + token + "@localhost:1,tls://" + token + "@other:2"} {
		if text := bus.Redacted(where); strings.Contains(text, token) {
			t.Errorf("%s", text)
		}
	}
	wrong := "nats://guess@" + b.URL()[at+1:]
	if other, err := bus.Open(t.Context(), wrong, bus.Options{}); err == nil {
		other.Close()
		t.Error("connected with a wrong token")
	} else if strings.Contains(err.Error(), "guess") {
		t.Error(err)
	}
}

// TestPatient: without a server there is a bus, which says that there is none; and an error for who is not patient.
func TestPatient(t *testing.T) {
	const nobody = "nats://127.0.0.1:1"
	if b, err := bus.Open(t.Context(), nobody, bus.Options{}); err == nil {
		b.Close()
		t.Error("connected to nobody")
	}
	b := open(t, nobody, bus.Options{Patient: true})
	if _, err := b.JetStream().Publish(t.Context(), "a", nil); err == nil {
		t.Error("published to nobody")
	}
}

func TestCheck(t *testing.T) {
	for where, want := range map[string]string{
		"nats://127.0.0.1:4222":                    "",
		"nats://a:1,nats://b:2":                    "",
		"tls://h:1?ca=ca.pem&cert=c.pem&key=k.pem": "",
		"embedded:found":                           "",
		"embedded:":                                "needs a folder",
		"localhost:4222":                           "no address of NATS",
		"http://h:1":                               "no address of NATS",
		"nats://h:1?cert=c.pem":                    "go together",
		"nats://secret@h:1?token=x":                "unknown option",
		"nats://h:1?" + "ca=%zz":                   "invalid URL escape",
	} {
		err := bus.Check(where)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
}
