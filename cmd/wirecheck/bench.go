package main

import (
	"context"
	"errors"

	"wirecheck/backends/engine"
	"wirecheck/lab"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/scenario"
)

// bench is a lab with what it needs: a database of its own and, if it is to be judged, a proxy that sees what happens.
type bench struct {
	lab  *lab.Lab
	lens *lens
	labs *engine.Labs
}

// done is a case that was executed.
type done struct {
	*lab.Result
	judged
	judge bool
}

func openBench(ctx context.Context, c *common, s *site, config lab.Config, judge bool) (_ *bench, err error) {
	b := &bench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	if b.labs, err = engine.OpenLabs(ctx, s.engine, s.target); err != nil {
		return nil, err
	}
	for _, name := range b.labs.Swept {
		c.log.Info().Str("database", name).Msg("removed a database that an earlier run had left behind")
	}
	var target engine.Target
	if c.format == "isolationtester" && s.server != nil {
		target, err = b.labs.Make(ctx, "isolation_regression") // some of PostgreSQL's specs name it
	} else {
		target, err = b.labs.Create(ctx)
	}
	if err != nil {
		return nil, err
	}
	config.Backend, config.Target, config.Side = s.engine, target, target
	if judge {
		config.Reset = lab.Setup // what the proxy knows of the rows begins with the setup
		if b.lens, err = openLens(ctx, c, s); err != nil {
			return nil, err
		}
		config.Target, config.Hidden = b.lens.through(target), dialect.HiddenColumn
		if s.engine.Protocol == engine.ProtocolMySQL {
			config.After = "DO 0"
		}
	}
	b.lab, err = lab.Open(ctx, config)
	return b, err
}

// run executes and judges one permutation.
func (b *bench) run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*done, error) {
	prepared := func() {}
	if b.lens != nil {
		b.lens.live.restart()
		prepared = b.lens.live.prepared
	}
	r, err := b.lab.Run(ctx, spec, p, prepared)
	d := &done{Result: r}
	if err != nil {
		return d, err
	}
	if b.lens != nil {
		d.judged, d.judge = b.lens.live.judgement(), true
		d.coverage.UnknownWriters = 0 // what nobody is known to have written is the setup's
	}
	return d, nil
}

func (b *bench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if b.lab != nil {
		errs = append(errs, b.lab.Close())
	}
	if b.lens != nil {
		errs = append(errs, b.lens.stop())
	}
	if b.labs != nil {
		errs = append(errs, b.labs.Close(ctx))
	}
	return errors.Join(errs...)
}
