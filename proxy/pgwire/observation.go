package pgwire

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/history"
	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// observation is a session in observe mode. Two goroutines run it: one runs the client half, which reads the client and writes to the server, the
// other the server half, which reads the server and writes to the client. What both need stands in the pipeline and in the environment, each behind a mutex.
type observation struct {
	*session
	pipeline *pipeline
	requests *clientHalf
	answers  *serverHalf
}

// observe is the life of an observed session after authentication.
func (s *session) observe() error {
	o := s.observation()
	var fromClient, fromServer error
	if fromServer = o.introduce(); fromServer == nil {
		fromClient, fromServer = o.both()
	}
	leaving := o.pipeline.close()
	return o.finish(leaving, fromClient, fromServer)
}

// observation makes the parts of an observed session.
func (s *session) observation() *observation {
	v := &environment{
		database: s.observer.at(databaseKey{s.Config.Upstream.String(), s.startup.database()}),
		hides:    s.observer.rewriter.Hides(),
	}
	for _, name := range []string{"client_encoding", "standard_conforming_strings", "TimeZone"} {
		v.reported(name, s.parameters[name])
	}
	s.Backend = uint64(s.backend)
	s.User, s.Program = s.startup.params["user"], s.parameters["application_name"]
	events := recording{log: s.Log}
	events.open(s.observer, history.Event{
		Engine: "postgres", Server: s.parameters["server_version"], Database: s.startup.database(), User: s.startup.params["user"],
		Superuser: s.parameters["is_superuser"] == "on", Client: s.parameters["application_name"], Backend: uint64(s.backend), At: time.Now().UnixNano(), Session: s.Number(),
	})
	p := newPipeline(s.Log, events, turn{gate: s.Config.Gate, session: s.Session}, func() {
		_ = s.Client.SetReadDeadline(past)
		_ = s.server.SetReadDeadline(past)
	}, func() bool { return relay.HungUp(s.Client) })
	p.names.texts, p.queue.share = s.observer.recorder.Texts(), s.observer.recorder.Messages()
	o := &observation{
		session: s, pipeline: p,
		requests: &clientHalf{session: s, in: s.fromClient, out: s.toServer, pipeline: p, environment: v, batch: &batch{}},
		answers:  &serverHalf{in: s.fromServer, out: s.toClient, pipeline: p, environment: v, log: s.Log, limits: s.Config.Limits, share: s.observer.recorder.Messages(), silent: func() bool { return s.observer.silent || s.Quiet() }},
	}
	o.answers.requests = o.requests
	s.fromClient.before = s.toServer.flush
	return o
}

// introduce learns what must be known before the client's first statement. The client waits for its first
// ReadyForQuery; nothing else runs.
func (o *observation) introduce() error {
	ask := func(sql ...string) (*own, error) {
		q := &own{}
		if err := o.requests.put(q, sql...); err != nil {
			return nil, err
		}
		for !q.done {
			if err := o.answers.answer(); err != nil {
				return nil, err
			}
			if _, lost := o.pipeline.head(); lost {
				return nil, errNoAnswer
			}
		}
		return q, nil
	}
	if err := o.requests.learn(func(sql ...string) (*own, error) { return tidy(sql, ask) }); err != nil {
		return err
	}
	return o.answers.welcome()
}

// errNoAnswer says that the server's answers to our own questions make no sense.
var errNoAnswer = errors.New("the server's answer could not be understood")

// both runs the two halves until the session ends.
func (o *observation) both() (fromClient, fromServer error) {
	var g errgroup.Group
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	g.Go(func() error {
		fromClient = proxy.Catch(func() error { return o.requests.run(ctx) })
		left := fromClient
		if gone(left) {
			left = nil
		}
		_ = o.clientEnded(left) // the error is judged in finish
		return nil
	})
	g.Go(func() error {
		defer close(ended)
		fromServer = proxy.Catch(o.answers.run)
		o.pipeline.end()
		cancel()
		_ = o.serverEnded(fromServer)
		o.answers.share.Forget()
		return nil
	})
	g.Go(func() error {
		select {
		case <-ended:
		case <-o.Draining:
			o.pipeline.drain()
		}
		return nil
	})
	_ = g.Wait() // the functions return nothing
	return fromClient, fromServer
}

// gone reports whether the client closed its connection between two messages.
func gone(err error) bool {
	var e *sideError
	return errors.As(err, &e) && e.side == client && e.err == io.EOF
}

// finish sends the client the reason why the session ended, if there is one of ours and a place to put it (see passing.finish). leaving says that it ended because the
// process does.
func (o *observation) finish(leaving bool, fromClient, fromServer error) error {
	var e *sideError
	var defect *proxy.PanicError
	switch {
	case o.answers.inside:
		return firstOf(quietEnd(fromClient), quietEnd(fromServer))
	case errors.As(errors.Join(fromClient, fromServer), &defect):
		o.fatal(brokenHere(defect))
		return defect
	case leaving, o.ctx.Err() != nil:
		o.fatal(shuttingDown())
		return nil
	case errors.Is(fromClient, errLength):
		return fromClient
	case errors.As(fromClient, &e) && e.side == client && !errors.Is(e, os.ErrDeadlineExceeded):
		return nil // it is gone, however
	case o.requests.terminated:
		return nil
	case errors.As(fromServer, &e) && e.side == server:
		if !o.answers.explained {
			return fromServer
		}
		return nil
	case errors.As(fromServer, &e):
		return nil
	}
	return firstOf(fromClient, fromServer)
}

// quietEnd drops the errors by which connections end.
func quietEnd(err error) error {
	if quiet(err) == nil {
		return nil
	}
	var e *sideError
	if errors.As(err, &e) && e.side == client {
		return nil
	}
	return err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
