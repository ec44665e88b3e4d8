package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// screenOf gives what a program writes to a terminal of 80 columns.
func screenOf(t *testing.T, write func(c *common)) string {
	t.Helper()
	master, slave, err := openPTY()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	read := make(chan error)
	go func() {
		_, err := io.Copy(&screen, master)
		read <- err
	}()
	c := newCommon(io.Discard, slave)
	root := c.rootCommand()
	if err := c.setUp(root); err != nil {
		t.Fatal(err)
	}
	write(c)
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil && !errors.Is(err, syscall.EIO) { // EIO: nobody writes any more (pty(7))
		t.Fatal(err)
	}
	return screen.String()
}

// TestProgress: the line fits the terminal, is gone before anything else is written, and shows times.
func TestProgress(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	screen := screenOf(t, func(c *common) {
		c.progressOf(1, 4, "instrument: table %d of %d, %s", 2, 4, strings.Repeat("long_name", 40))
		c.log.Warn().Msg("a warning")
		c.clearProgress()
		c.progressf("%s", strings.Repeat("€", 200))
		c.clearProgress()
	})
	for _, want := range []string{"25% [=>", "instrument: table 2 of 4", "\x1b[2K\r\x1b[", "a warning", "€…"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the terminal gets %q, which lacks %q", screen, want)
		}
	}
	for _, line := range strings.FieldsFunc(screen, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if text := ansi.Replace(line); utf8.RuneCountInString(text) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(text), line)
		}
	}
	if !strings.HasSuffix(screen, "\x1b[2K\r") {
		t.Errorf("a line is left: %q", screen)
	}
}

var ansi = strings.NewReplacer("\x1b[2K", "", "\x1b[0K", "")

// TestNoProgress: neither a dumb terminal nor --no-progress shows the line, and NO_COLOR (https://no-color.org) leaves the colours out.
func TestNoProgress(t *testing.T) {
	show := func(c *common) {
		c.progressOf(1, 4, "half")
		c.log.Warn().Msg("a warning")
	}
	t.Setenv("TERM", "dumb")
	t.Setenv("NO_COLOR", "")
	if screen := screenOf(t, show); strings.Contains(screen, "half") || strings.Contains(screen, "\x1b") {
		t.Errorf("a dumb terminal gets %q", screen)
	}
	t.Setenv("TERM", "xterm")
	if screen := screenOf(t, func(c *common) { c.noProgress = true; show(c) }); strings.Contains(screen, "half") || !strings.Contains(screen, "\x1b[3") {
		t.Errorf("with --no-progress the terminal gets %q", screen)
	}
	t.Setenv("NO_COLOR", "1")
	if screen := screenOf(t, show); !strings.Contains(screen, "half") || strings.Contains(screen, "\x1b[3") {
		t.Errorf("with NO_COLOR the terminal gets %q", screen)
	}
	var pipe bytes.Buffer
	c := newCommon(io.Discard, &pipe)
	c.progressOf(1, 4, "half")
	if pipe.Len() > 0 {
		t.Errorf("a pipe gets %q", &pipe)
	}
}
