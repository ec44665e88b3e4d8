package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wirecheck/internal/certificate"
	"wirecheck/internal/shop"
)

// TestSignals: SIGHUP ends nothing. It opens the files again that logrotate has moved away, and takes over certificates, warn and log_level; a bad
// configuration or certificate changes nothing. SIGUSR1 prints what was found so far.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) string {
		text, _ := os.ReadFile(file(name))
		return string(text)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue := func(name string) {
		t.Helper()
		authority, err := certificate.NewAuthority("test")
		if err != nil {
			t.Fatal(err)
		}
		pair, err := authority.Issue(name, "localhost")
		if err != nil {
			t.Fatal(err)
		}
		write("cert.pem", string(pair.CertPEM))
		write("key.pem", string(pair.KeyPEM))
	}
	w := newWorld(t, "postgres", shop.Setup...)
	configure := func(warn, more string) {
		write("wirecheck.yaml", fmt.Sprintf("listeners:\n- {listen: 'postgres://%s', upstream: 'postgres://127.0.0.1:%d', warn: %s, tls: {client: {cert: '%s', key: '%s'}}}\n"+
			"log: '%s'\nreport: '%s'\nrecord: '%s'\n%s", anyPort, w.direct.Port, warn, file("cert.pem"), file("key.pem"), file("log"), file("report"), file("h.jsonl"), more))
	}
	issue("first")
	configure("on", "")
	p := startProgram(t, "proxy", "--config", file("wirecheck.yaml"))
	port := p.port(t, "postgres", func() string { return read("log") })
	play := func() (heard string) {
		t.Helper()
		target := w.direct
		target.Port = port
		said, err := shop.Play(t.Context(), target, shop.Scenes("postgres")[1], &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(said["customer B"], "\n")
	}
	shown := func() string {
		t.Helper()
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil { // SSLRequest
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := conn.Read(b[:]); err != nil || b[0] != 'S' {
			t.Fatalf("%q %v", b, err)
		}
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	hup := func() {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if heard := play(); !strings.Contains(heard, "lost update") || shown() != "first" {
		t.Errorf("at first: %q, certificate %s", heard, shown())
	}
	p.until(t, "the first finding in the report", func() bool { return strings.Contains(read("report"), "LOST UPDATE") })
	// Every session has ended, so that none still writes to the new log at the old level, and the log is whole up to there.
	sessions := func(log string, n int) bool {
		return strings.HasSuffix(log, "\n") && strings.Count(log, "session opened") == n && strings.Count(log, "session closed") == n
	}
	p.until(t, "the end of the three sessions", func() bool { return sessions(read("log"), 3) })
	for line := range strings.Lines(read("log")) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || strings.Count(line, `"level":`) != 1 {
			t.Errorf("a line of the log has two levels: %v %s", err, line)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	p.until(t, "what was found so far", func() bool { return strings.Contains(p.stdout.String(), "\nfound: 1 (") })

	// logrotate
	for _, name := range []string{"log", "report"} {
		if err := os.Rename(file(name), file(name+".1")); err != nil {
			t.Fatal(err)
		}
	}
	issue("second")
	configure("off", "strict: true\nlog_level: warn\n")
	hup()
	p.until(t, "the log after SIGHUP", func() bool { return strings.Contains(read("log"), "need a new start") })
	if got := read("log"); !strings.Contains(got, `"keys":["strict"]`) || strings.Contains(read("log"), `"level":"info"`) {
		t.Errorf("the log after SIGHUP:\n%s", got)
	}
	if heard := play(); strings.Contains(heard, "lost update") || shown() != "second" || strings.Contains(read("log"), `"level":"info"`) {
		t.Errorf("after SIGHUP: %q, certificate %s, the log:\n%s", heard, shown(), read("log"))
	}

	// What is not good changes nothing.
	issue("third")
	write("key.pem", "rubbish")
	configure("on", "")
	hup()
	p.until(t, "the refusal of a key", func() bool { return strings.Count(read("log"), "NOT RELOADED") == 1 })
	issue("fourth")
	configure("on", "nonsense: 1\n")
	hup()
	p.until(t, "the refusal of a configuration", func() bool { return strings.Count(read("log"), "NOT RELOADED") == 2 })
	if heard := play(); strings.Contains(heard, "lost update") || shown() != "second" || !strings.Contains(read("log"), "nonsense") || !strings.Contains(read("log"), "client TLS") {
		t.Errorf("after bad ones: %q, certificate %s\n%s", heard, shown(), read("log"))
	}
	if status := p.end(t); status != int(exitFound) {
		t.Errorf("exit status %d, %s", status, p.stdout.String())
	}
	if out := p.stdout.String(); strings.Count(out, "\nfound: 1 (") != 2 {
		t.Errorf("stdout has the findings once while it ran and once at the end:\n%s", out)
	}
	if again, _ := judgeFile(t, file("h.jsonl")); len(again) != 1 {
		t.Errorf("the history has %d findings", len(again))
	}
}
