package main

import (
	"context"
	"errors"
	"fmt"

	"wirecheck/lab/explore"
)

// runWhatIf replays a trace as it was and in variants.
func runWhatIf(ctx context.Context, c *common, o explore.Options, path string, texts []string) error {
	var variants []explore.Variant
	for _, text := range texts {
		v, err := explore.ParseVariant(text)
		if err != nil {
			return err
		}
		variants = append(variants, v)
	}
	if o.Tables != "" || o.Compare != "" {
		return errors.New("--tables and --compare are of one replay: leave out --what-if")
	}
	o.Judging = c.judging()
	r, err := explore.WhatIf(ctx, path, o, variants)
	c.clearProgress()
	if r == nil || len(r.Runs) == 0 {
		return err
	}
	if e := c.people(c.form(r)); e != nil {
		return errors.Join(err, fmt.Errorf("write the comparison: %w", e))
	}
	return concluded(err, r.Found(), r.Undecided)
}
