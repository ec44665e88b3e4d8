package main

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"sync/atomic"
	"syscall"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"wirecheck/configs"
	"wirecheck/live"
	"wirecheck/live/web"
	"wirecheck/proxy"
	"wirecheck/report"
)

// housekeeping is a running proxy with what its signals change or print.
type housekeeping struct {
	*common
	config  configs.Config
	load    func() (configs.Config, error)
	signals chan os.Signal
	proxy   *proxy.Proxy
	checker *live.Checker
	out     *outputs
	web     *web.Server    // nil: there is none
	quiet   []*atomic.Bool // of the listeners
	// allTables: all tables that clients make get the hidden columns.
	allTables bool
}

// signal does what a signal asks for.
func (h *housekeeping) signal(s os.Signal) {
	if s == syscall.SIGUSR1 {
		h.print()
		return
	}
	if err := h.out.reopen(); err != nil { // logrotate's signal: whatever else is wrong
		h.log.Error().Err(err).Msg("a file cannot be opened again: the old one stays")
	}
	h.reload()
}

// reload takes over what a changed configuration may change while the proxy runs. Of one that is not good it takes nothing.
func (h *housekeeping) reload() {
	next, err := h.load()
	if err == nil {
		err = h.proxy.Reload()
	}
	if err != nil {
		h.log.Error().Err(err).Msg("NOT RELOADED: the old configuration and certificates stay")
		return
	}
	zerolog.SetGlobalLevel(levelOf(next.LogLevel))
	rest := next
	rest.LogLevel = h.config.LogLevel
	if len(next.Listeners) == len(h.config.Listeners) {
		rest.Listeners = append([]configs.Listener(nil), next.Listeners...)
		for i := range rest.Listeners {
			h.quiet[i].Store(!bool(next.Listeners[i].Warn))
			rest.Listeners[i].Warn = h.config.Listeners[i].Warn
		}
	}
	var left []string
	was, is := reflect.ValueOf(h.config), reflect.ValueOf(rest)
	for i := range was.NumField() {
		if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			left = append(left, was.Type().Field(i).Tag.Get("yaml"))
		}
	}
	if left != nil {
		h.log.Warn().Strs("keys", left).Msg("the configuration has changes that need a new start")
	}
	h.log.Info().Msg("reloaded: certificates, warn, log_level")
}

// print prints what was found so far.
func (h *housekeeping) print() {
	found := h.checker.Result()
	found.Coverage.LeftOut = h.proxy.LeftOut()
	printSoFar(h.common, h.out, judged(found.Findings, found.Coverage, h.config.Unit, h.config.MinCoverage, ""))
}

// printSoFar prints what was found so far, as text.
func printSoFar(c *common, out *outputs, r report.Result) {
	if c.format == "text" {
		if err := out.summary(r, "text"); err != nil {
			c.log.Error().Err(err).Msg("the findings so far cannot be printed")
		}
		return
	}
	var text bytes.Buffer
	if err := report.Write(&text, r, "text"); err == nil {
		_, _ = unfailing{out.log}.Write(text.Bytes())
	}
}

// hungUp reports whether the terminal that the program was started at is gone: then SIGHUP asks it to end, as it does any program.
func hungUp() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if _, err := term.GetState(int(f.Fd())); errors.Is(err, syscall.EIO) {
			return true
		}
	}
	return false
}
