package main

import (
	"errors"
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
	var more []configs.Known
	for i := range r.Findings {
		f := &r.Findings[i]
		holds := false
		for k := range known {
			holds = holds || known[k].Holds(f.ID, []string{string(f.Class), f.Name}, f.Tables, now)
		}
		switch {
		case holds:
			r.Known++
		case b.update:
			r.Known++
			more = append(more, configs.Known{ID: f.ID, Reason: "found on " + now.UTC().Format(time.DateOnly) + ": " + report.Headline(f)})
		default:
			left = append(left, *f)
		}
	}
	r.Findings = left
	if !b.update {
		return nil
	}
	return configs.AddKnown(b.path, more)
}
