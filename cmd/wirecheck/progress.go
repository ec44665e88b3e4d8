package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"wirecheck/history/prose"
)

// progress reports whether progress may be shown: on a terminal that can move its cursor.
func (c *common) progress() bool {
	return !c.noProgress && terminal(c.stderr) && os.Getenv("TERM") != "dumb"
}

// progressf says how far a command has come whose end is not known.
func (c *common) progressf(format string, args ...any) { c.progressOf(0, 0, format, args...) }

// progressOf shows on one line of a terminal how much of a command's work is done, with the time that it took and that it will take. total 0:
// nobody knows how much there is. An empty text takes the line away.
func (c *common) progressOf(done, total int64, format string, args ...any) {
	if c.progress() {
		c.line.show(done, total, fmt.Sprintf(format, args...))
	}
}

// clearProgress takes the progress line away.
func (c *common) clearProgress() { c.progressf("") }

// progressLine is a line at the end of a terminal. What else is written there goes above it.
type progressLine struct {
	to io.Writer

	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil: no line is shown
	total int64
	shown time.Time // when it changed last
}

// progressEvery is how often the line changes at most.
const progressEvery = 100 * time.Millisecond

// progressRoom is what the bar, the share and the times take of the line; the text has the rest.
const progressRoom = 44

func (l *progressLine) show(done, total int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar != nil && (text == "" || total != l.total) {
		_ = l.bar.Clear() // a terminal that is gone is no reason to end the work
		l.bar = nil
	}
	if text == "" || l.bar != nil && time.Since(l.shown) < progressEvery {
		return
	}
	if l.bar == nil {
		l.bar, l.total = newBar(l.to, total), total
	}
	l.shown = time.Now()
	l.bar.Describe(cut(text, terminalWidth(l.to)-progressRoom))
	if total > 0 {
		_ = l.bar.Set64(min(done, total-1)) // a full bar would count as finished: the command says when it is
	}
}

func newBar(to io.Writer, total int64) *progressbar.ProgressBar {
	o := []progressbar.Option{
		progressbar.OptionSetWriter(to), progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(total > 0), progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetWidth(10), progressbar.OptionSpinnerType(9), progressbar.OptionSetSpinnerChangeInterval(0),
	}
	if total <= 0 {
		total = -1
	}
	return progressbar.NewOptions64(total, o...)
}

// Write writes what is no progress, above the line.
func (l *progressLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bar != nil {
		_ = l.bar.Clear()
	}
	return l.to.Write(p)
}

// people writes a report. Where it is text for a terminal, its prose breaks at the terminal's width.
func (c *common) people(write func(io.Writer) error) error {
	width := terminalWidth(c.stdout)
	if c.format != "text" || width == 0 {
		return write(c.stdout)
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(c.stdout, prose.Fit(text.String(), width))
	return err
}

// terminalWidth is the width of a terminal; 0 if w is none.
func terminalWidth(w io.Writer) int {
	if !terminal(w) {
		return 0
	}
	if width, _, err := term.GetSize(int(w.(*os.File).Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

// colorful reports whether a terminal gets colours (https://no-color.org).
func colorful() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// cut shortens a text to some characters.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > width {
		return string(r[:max(width-1, 0)]) + "…"
	}
	return text
}
