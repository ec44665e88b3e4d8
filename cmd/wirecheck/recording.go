package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/configs"
	"wirecheck/lab/replay"
	"wirecheck/offline"
	"wirecheck/proxy"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/recorder"
)

// isTraceFile reports whether a file to record to is a trace file by its name; any other is a history.
func isTraceFile(path string) bool { return strings.HasSuffix(path, configs.TraceSuffix) }

// newRecording makes the recorder of a trace file.
func newRecording(config configs.Config, run string, redact *trace.Redactor, now time.Time, log zerolog.Logger) (*recorder.Recorder, error) {
	o := recorder.Options{
		Path: config.Record, Started: now, Run: run, Observed: observes(config), Rows: config.Recording.Rows,
		PartSize: int64(config.Recording.PartSize), PartAge: config.Recording.PartAge, Redact: redact,
		Source: trace.Source{Name: listenerNames(config), Format: recorder.Format, Missing: []string{"isolation levels that sessions did not ask for by name"}},
		Stopped: func(err error) {
			log.Error().Err(err).Msg("recording has stopped; the traffic goes on")
		},
		Noted: func(session uint64, text string) {
			log.Warn().Uint64("in_session", session).Str("note", text).Msg("the trace has a hole")
		},
	}
	o.Rows = cmp.Or(o.Rows, -1) // none
	r, err := recorder.New(o)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w (a trace is never written over: choose a new name)", err)
	}
	return r, err
}

// redactor makes a function that makes redactors: each is for one goroutine, and all give a value the same token. They are nil
// if nothing is to be redacted.
func redactor(config configs.Config) func() *trace.Redactor {
	if !config.Recording.Redact {
		return func() *trace.Redactor { return nil }
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand, since Go 1.24)
	return func() *trace.Redactor { return trace.NewRedactor(key) }
}

// listenerNames says where a trace comes from.
func listenerNames(config configs.Config) string {
	var names []string
	for _, l := range config.Listeners {
		names = append(names, fmt.Sprintf("%s in front of %s (%s)", l.Listen, l.Upstream, l.Mode))
	}
	return strings.Join(names, ", ")
}

// taps gives the taps of the sessions of a listener.
func taps(r *recorder.Recorder) func(*proxy.Session) proxy.Tap {
	if r == nil {
		return nil
	}
	return func(s *proxy.Session) proxy.Tap {
		protocol := wire.Postgres
		if s.Config.Protocol == proxy.MySQL {
			protocol = wire.MySQL
		}
		return r.Begin(s.ID, protocol, s.Client.RemoteAddr().String(), time.Now())
	}
}

// tellRecording says what was recorded, and what was not.
func tellRecording(log zerolog.Logger, path string, t recorder.Tally) {
	log.Info().Str("file", path).Int("parts", t.Parts).Uint64("sessions", t.Sessions).Uint64("statements", t.Statements).Uint64("events", t.Events).
		Dur("clients_held_back", t.Held).Msg("trace written")
	if t.Encrypted > 0 {
		log.Warn().Int("sessions", t.Encrypted).Msg("sessions were encrypted through to the server, or compressed: their statements are not in the trace")
	}
	if t.Copies > 0 {
		log.Warn().Int("statements", t.Copies).Msg("the data of COPY and LOAD DATA LOCAL is not in the trace")
	}
	if t.Gaps > 0 || t.DroppedEvents > 0 {
		log.Warn().Uint64("bytes", t.Dropped).Uint64("places", t.Gaps).Uint64("history_events", t.DroppedEvents).Msg("the recorder could not keep up: the trace has holes, and notes where")
	}
}

// errNotObserved says what to do with a trace that cannot be judged.
func errNotObserved(e *offline.NotObserved) error {
	from := "it was imported from a log, which tells statements but not which row versions they read and wrote"
	snapshot := "a dump of the database before the trace's first statement"
	if v, err := replay.Look(func() (*trace.Reader, error) { return trace.Open(e.Path, trace.ReadOptions{}) }); err == nil {
		if v.First != 0 {
			snapshot += time.Unix(0, v.First).UTC().Format(", 2006-01-02 15:04:05 UTC")
		}
		snapshot += ": " + v.DumpCommand(v.MainDatabase(func(name string) bool { return name == "" }))
	}
	redo := fmt.Sprintf("replay it, which sees that:\n  wirecheck replay %s --snapshot snapshot.sql\nsnapshot.sql is %s", shellWord(e.Path), snapshot)
	for _, s := range e.Header.Sources {
		if s.Format == recorder.Format {
			from = "it was recorded in mode pass, or is a part that was cut out of another one"
			redo = "record in mode observe (wirecheck proxy --mode observe --record FILE.wct), or " + redo
		}
	}
	return fmt.Errorf("%w: %s; %s", e, from, redo)
}
