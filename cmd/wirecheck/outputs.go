package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/configs"
	"wirecheck/internal/spool"
	"wirecheck/oracle"
	"wirecheck/report"
	"wirecheck/trace/recorder"
)

// flushPatience is how long the end waits for a pipe or a file that takes nothing.
const flushPatience = 2 * time.Second

// What waits for stdout, for the history's file, and how long sessions wait for the latter.
const (
	maxStdout       = 64 << 20
	maxHistory      = 64 << 20
	historyPatience = time.Second
)

// outputs are where a run of the proxy writes. None of them can make a session wait but the history's file, which must be
// whole, and that one only for a moment.
type outputs struct {
	record             io.WriteCloser // closed by the history's writer; nil: there is none
	stdout, log        *spool.Writer
	report, streamFile *spool.Writer // nil: there is none
	stream             io.Writer     // streamFile or stdout
	found              func(oracle.Finding)
	reportErr          error
	files              []*reopened // what logrotate may move away
	width              int         // of stdout's terminal; 0: it is none
	recorded           string      // the history or the trace, if there is one
}

// openOutputs opens the files, and puts queues in front of them and of c's stdout and log. Recorded data may be
// confidential, so only the owner may read it. A history is never written over.
func openOutputs(c *common, config configs.Config) (*outputs, error) {
	o := &outputs{width: terminalWidth(c.stdout), recorded: config.Record}
	var err error
	if config.Report != "" {
		if o.report, err = o.open(c, config.Report, "report"); err != nil {
			return nil, fmt.Errorf("open the report: %w", err)
		}
		o.found = o.addToReport
	}
	if config.Stream != "" && config.Stream != "-" {
		if o.streamFile, err = o.open(c, config.Stream, "stream of findings"); err != nil {
			return nil, errors.Join(fmt.Errorf("open the stream of findings: %w", err), o.closeFindings())
		}
		o.stream = o.streamFile
	}
	if config.Record != "" && !isTraceFile(config.Record) {
		f, err := os.OpenFile(config.Record, os.O_EXCL|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the history: %w (it is never written over: choose a new name)", err), o.closeFindings())
		}
		o.record = whole{spool.To(f, spool.Options{Most: maxHistory, Whole: true, Patience: historyPatience})}
	}
	if config.Log == "" {
		o.log = spool.To(c.stderr, spool.Options{Moved: func(n int) { tellDropped(c.log, "log", n) }})
		c.log = c.log.Output(c.logLines(unfailing{o.log}))
	} else if o.log, err = o.open(c, config.Log, "log"); err != nil {
		return nil, errors.Join(fmt.Errorf("open the log: %w", err), o.closeFindings())
	} else {
		c.log = c.log.Output(unfailing{o.log})
	}
	o.stdout = spool.To(c.stdout, spool.Options{Most: maxStdout, Moved: func(n int) { tellDropped(c.log, "stdout", n) }})
	c.stdout = o.stdout
	if config.Stream == "-" {
		o.stream = o.stdout
	}
	return o, nil
}

// open opens a file of findings. A named pipe is opened when it has a reader.
func (o *outputs) open(c *common, path, what string) (*spool.Writer, error) {
	options := spool.Options{Moved: func(n int) { tellDropped(c.log, what, n) }}
	if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return spool.New(func() (io.Writer, error) { return os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600) }, options), nil
	}
	f := &reopened{path: path}
	if err := f.reopen(); err != nil {
		return nil, err
	}
	o.files = append(o.files, f)
	return spool.To(f, options), nil
}

// reopen opens the files of the log and of findings again by their names: they may have been moved away.
func (o *outputs) reopen() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.reopen())
	}
	return errors.Join(errs...)
}

// reopened is a file that can be opened again by its name.
type reopened struct {
	path string
	file atomic.Pointer[os.File]
}

func (r *reopened) reopen() error {
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if old := r.file.Swap(f); old != nil {
		return old.Close()
	}
	return nil
}

// Write implements io.Writer.
func (r *reopened) Write(b []byte) (int, error) {
	for {
		f := r.file.Load()
		if n, err := f.Write(b); !errors.Is(err, os.ErrClosed) || r.file.Load() == f {
			return n, err
		}
	}
}

// Close implements io.Closer.
func (r *reopened) Close() error { return r.file.Load().Close() }

func tellDropped(log zerolog.Logger, what string, n int) {
	log.Warn().Str("to", what).Int("dropped", n).Msg("an output stalled: what it had no room for was dropped")
}

// addToReport writes a finding to the report.
func (o *outputs) addToReport(f oracle.Finding) {
	var text bytes.Buffer
	err := report.Text(&text, []oracle.Finding{f})
	if err == nil {
		_, err = o.report.Write(text.Bytes())
	}
	if err != nil && o.reportErr == nil {
		o.reportErr = err
	}
}

// closeFindings ends the files of findings, both at the same time.
func (o *outputs) closeFindings() error {
	end := func(w *spool.Writer, what string, before error) func() error {
		return func() error {
			if w == nil {
				return nil
			}
			if err := errors.Join(before, w.Close(flushPatience)); err != nil {
				return fmt.Errorf("write the %s: %w", what, err)
			}
			return nil
		}
	}
	return together(end(o.report, "report", o.reportErr), end(o.streamFile, "stream of findings", nil))
}

// together calls functions at the same time and joins their errors.
func together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var all sync.WaitGroup
	for i, f := range functions {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// dropped counts what the outputs had no room for, and says it in the log. events are those of the history, recorded is what
// the trace has.
func (o *outputs) dropped(log zerolog.Logger, events int, recorded recorder.Tally) report.Dropped {
	count := func(w *spool.Writer) int {
		if w == nil {
			return 0
		}
		return w.Dropped()
	}
	d := report.Dropped{Log: count(o.log), Report: count(o.report), Stream: count(o.streamFile),
		History: events + int(recorded.DroppedEvents), Trace: int(recorded.Dropped)}
	if o.stream == o.stdout {
		d.Stream = count(o.stdout)
	}
	if d != (report.Dropped{}) {
		log.Warn().Stringer("dropped", d).Msg("outputs stalled: what they had no room for was dropped")
	}
	return d
}

// summary writes the result of the run to stdout, behind what the log has said: a terminal shows both.
func (o *outputs) summary(r report.Result, format string) error {
	o.log.Flush(flushPatience)
	var text bytes.Buffer
	err := writeResult(&text, r, format, o.recorded, o.width)
	if err == nil {
		_, err = o.stdout.Write(text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// close ends stdout and the log. A log that cannot be written is no error: it could not be told.
func (o *outputs) close() error {
	return together(func() error {
		if err := o.stdout.Close(flushPatience); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		return nil
	}, func() error {
		_ = o.log.Close(flushPatience)
		return nil
	})
}

// whole is a file that has an end of its own.
type whole struct{ *spool.Writer }

// Close implements io.Closer.
func (w whole) Close() error { return w.Writer.Close(5 * flushPatience) }

// unfailing hides errors from the logger, which would print them where the log cannot be printed.
type unfailing struct{ w *spool.Writer }

func (u unfailing) Write(b []byte) (int, error) {
	_, _ = u.w.Write(b)
	return len(b), nil
}
