package main

import (
	"fmt"
	"time"
)

// progress reports whether progress may be shown on stderr.
func (c *common) progress() bool { return !c.noProgress && terminal(c.stderr) }

// progressDue reports whether the progress line is shown at all and has not changed for a while: for what changes often.
func (c *common) progressDue(every time.Duration) bool {
	return c.progress() && time.Since(c.progressed) >= every
}

// progressf says on one line of a terminal how far the command has come, in place of what stood there.
func (c *common) progressf(format string, args ...any) {
	if c.progress() {
		c.progressed = time.Now()
		fmt.Fprintf(c.stderr, "\r\x1b[K"+format, args...)
	}
}

// clearProgress takes the progress line away.
func (c *common) clearProgress() { c.progressf("") }
