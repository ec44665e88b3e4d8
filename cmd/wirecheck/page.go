package main

import (
	"context"
	"io"
	"slices"
	"time"

	"wirecheck/configs"
	"wirecheck/live"
	"wirecheck/live/web"
	"wirecheck/oracle"
	"wirecheck/report"
	"wirecheck/report/page"
)

const (
	formatHTML = "html"
	formatSVG  = "svg" // of one finding
	// formatScenario is a scenario that shows one finding.
	formatScenario = "scenario"
)

// findingFormats are the formats of a list of findings.
var findingFormats = append(slices.Clone(report.Formats), formatHTML)

// forms are how a report can be written.
type forms interface {
	Text(w io.Writer) error
	JSON(w io.Writer) error
	HTML(w io.Writer) error
}

// form is how a report is written in the format that the user chose: text, JSON or HTML.
func (c *common) form(r forms) func(io.Writer) error {
	switch c.format {
	case "json":
		return r.JSON
	case formatHTML:
		return r.HTML
	}
	return r.Text
}

// writeFindings writes a result in one of findingFormats. recorded is the file of which the findings can be judged again; empty: there is none.
func writeFindings(w io.Writer, r report.Result, format, recorded string) error {
	r.Again = again(recorded)
	if format != formatHTML {
		return report.Write(w, r, format)
	}
	return page.Write(w, document(r, recorded))
}

// again gives the commands that show a finding again. before.sql stands for a dump that only the reader has.
func again(recorded string) func(f *oracle.Finding) []string {
	if recorded == "" || recorded == "-" {
		return nil
	}
	return func(f *oracle.Finding) []string {
		command := "wirecheck explain " + f.ID + " " + recorded
		if isTraceFile(recorded) && len(f.Transactions) > 0 {
			command += " --snapshot before.sql --format " + formatScenario
		}
		return []string{command}
	}
}

// document is a result as a page shows it.
func document(r report.Result, recorded string) page.Document {
	d := page.Of(r, again(recorded))
	d.Known = func(f *oracle.Finding) string {
		return configs.KnownText([]configs.Known{{ID: f.ID, Reason: "why it may stay: " + report.Headline(f), Until: time.Unix(0, f.FirstAt).UTC().AddDate(0, 3, 0).Format(time.DateOnly)}})
	}
	return d
}

// openWeb opens the address of --http.
func (h *housekeeping) openWeb(ctx context.Context) (*web.Server, error) {
	address, err := configs.HTTPAddress(h.config.HTTP)
	if err != nil {
		return nil, err
	}
	title := "proxy"
	for _, a := range h.proxy.Addrs() {
		title += " " + a.String()
	}
	return web.Listen(ctx, web.Options{
		Address: address, Status: h.checker.Status, Explained: h.config.ExplainCoverage, Log: h.log, Now: time.Now,
		Document: func(s live.Status) page.Document {
			s.Coverage.LeftOut = h.proxy.LeftOut()
			d := document(judged(s.Findings, s.Coverage, h.config.Unit, h.config.MinCoverage, ""), h.config.Record)
			d.Title = title
			return d
		},
	})
}
