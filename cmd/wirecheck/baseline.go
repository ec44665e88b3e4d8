package main

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"wirecheck/configs"
	"wirecheck/oracle"
	"wirecheck/report"
)

// baseline is what is known already, and so does not decide the exit status.
type baseline struct {
	path   string
	update bool
}

func (b *baseline) flags(flags *pflag.FlagSet) {
	flags.StringVar(&b.path, "baseline", "", "file of known findings (docs/reference/configuration.md), which are counted but not reported")
	flags.BoolVar(&b.update, "update-baseline", false, "add what is found to the --baseline")
}

// check reads the file once, so that what is wrong with it is said before a run.
func (b *baseline) check() error {
	if b.path == "" {
		if b.update {
			return errors.New("--update-baseline needs --baseline FILE")
		}
		return nil
	}
	_, err := configs.LoadKnown(b.path, b.update)
	return err
}

// apply takes what is known out of a result.
func (b *baseline) apply(r *report.Result, now time.Time) error {
	if b.path == "" {
		return nil
	}
	known, err := configs.LoadKnown(b.path, b.update)
	if err != nil {
		return err
	}
	var left []oracle.Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		if slices.ContainsFunc(known, func(k configs.Known) bool {
			return k.Holds(f.ID, []string{string(f.Class), f.Name}, f.Tables, f.Shapes(), now)
		}) {
			r.Known++
			continue
		}
		left = append(left, *f)
	}
	if b.update {
		r.Known += len(left)
		if err := configs.AddKnown(b.path, newlyKnown(left, now)); err != nil {
			return err
		}
		left = nil
	}
	r.Findings = left
	return nil
}

// newlyKnown are the entries for findings: a finding by its id, and several variants by the statements that they are made of.
func newlyKnown(findings []oracle.Finding, now time.Time) (more []configs.Known) {
	for _, g := range oracle.Groups(findings) {
		f := g.First()
		k := configs.Known{ID: f.ID, Reason: "found on " + now.UTC().Format(time.DateOnly) + ": " + report.Headline(f)}
		if len(g.Findings) > 1 {
			k.ID, k.Class = "", f.Title()
			for _, v := range g.Findings {
				k.Statements = append(k.Statements, v.Shapes()...)
			}
			slices.Sort(k.Statements)
			k.Statements = slices.Compact(k.Statements)
		}
		more = append(more, k)
	}
	return more
}
