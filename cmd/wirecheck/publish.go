package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"wirecheck/configs"
	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history/prose"
)

// publishPatience is how long a proxy at its end waits for NATS to take what waits.
const publishPatience = 5 * time.Second

// fleetFlag adds the flag that names a fleet.
func fleetFlag(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "fleet", stream.DefaultFleet, "name of the fleet, where several share a NATS server")
}

// publishing is a proxy's part in a fleet.
type publishing struct {
	bus       *bus.Bus
	publisher *stream.Publisher
	where     string
	run       string
	log       zerolog.Logger
}

// publish begins to publish, if the configuration says so; nil if it does not. NATS may be away.
func publish(ctx context.Context, config configs.Config, run string, log zerolog.Logger) (*publishing, error) {
	to := config.Publish
	if to.To == "" {
		return nil, nil
	}
	b, err := bus.Open(ctx, to.To, bus.Options{Name: "proxy " + run, Patient: true, Changed: tellConnection(log, "publishing")})
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	p, err := stream.NewPublisher(b, stream.Options{Fleet: to.Fleet, Run: run, Buffer: int(to.Buffer), Trouble: func(err error) {
		if err != nil {
			log.Warn().Err(err).Msg("NATS does not take what is published: it is tried again")
			return
		}
		log.Info().Msg("NATS takes what is published again")
	}, Lost: func(events uint64) {
		if events == 0 {
			log.Warn().Msg("EVENTS ARE LOST: the buffer of --publish-buffer is full. The traffic goes on")
			return
		}
		log.Warn().Uint64("events", events).Msg("no more events are lost: wirecheck collect infers nothing across the gap")
	}})
	if err != nil {
		b.Close()
		return nil, err
	}
	log.Info().Str("to", b.Where()).Str("fleet", to.Fleet).Str("run", run).Msg("publishing for wirecheck collect")
	return &publishing{b, p, b.Where(), run, log}, nil
}

// tellConnection tells the log of a connection that is lost, and that it is there again, once each.
func tellConnection(log zerolog.Logger, what string) func(error) {
	away := false
	return func(err error) {
		switch {
		case err != nil && !away:
			log.Warn().Err(err).Msg("NATS is away: " + what + " goes on when it is there again")
		case err == nil && away:
			log.Info().Msg("NATS is there again")
		}
		away = err != nil
	}
}

// of is the publisher; nil if nothing is published.
func (p *publishing) of() *stream.Publisher {
	if p == nil {
		return nil
	}
	return p.publisher
}

// close publishes what waits. What NATS did not take in time is an error, since the fleet's findings may lack something.
func (p *publishing) close() error {
	if p == nil {
		return nil
	}
	defer p.bus.Close()
	if s := p.publisher.State(); s.Waiting > 0 {
		p.log.Info().Uint64("events", s.Waiting).Stringer("for", publishPatience).Msg("waiting for NATS to take what is not published")
	}
	unpublished := p.publisher.Close(publishPatience)
	if s := p.publisher.State(); s.Lost > 0 {
		p.log.Warn().Uint64("events", s.Lost).Msg("events were lost, since NATS did not take them: wirecheck collect infers nothing across the gap")
	}
	p.log.Info().Str("to", p.where).Msg("what is found here is between this proxy's sessions; wirecheck collect judges those of all proxies")
	if unpublished > 0 {
		return fmt.Errorf("publish to %s: %s could not be published", p.where, prose.Count(int(unpublished), "event"))
	}
	return nil
}

// checkPublish refuses a fleet or an address that cannot be.
func checkPublish(where, fleet string) error {
	return errors.Join(bus.Check(where), stream.CheckFleet(fleet))
}
