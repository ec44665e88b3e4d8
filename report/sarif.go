package report

import (
	"io"
	"net/url"
	"path/filepath"
	"sort"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// The part of SARIF 2.1.0 (OASIS standard, 2020) that we use.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Results     []sarifResult     `json:"results"`
		Invocations []sarifInvocation `json:"invocations,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   string    `json:"id"`
		Text sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Occurrences  int               `json:"occurrenceCount,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
)

// ruleID is a rule's name: the everyday name with dashes, or the class.
func ruleID(f *oracle.Finding) string { return strings.ReplaceAll(f.Title(), " ", "-") }

// SARIF writes a static analysis log: a violation is an error, an anomaly a warning. A result is a group of findings.
func SARIF(w io.Writer, r Result) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "wirecheck", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	rules := map[string]string{}
	list := groups(r.Findings)
	for i := range list {
		f := &list[i].f
		id := ruleID(f)
		rules[id] = f.Title() + " (" + string(f.Class) + ")"
		level := "warning"
		if f.Kind == oracle.KindViolation {
			level = "error"
		}
		var text strings.Builder
		list[i].text(&text, Look{Again: r.Again})
		res := sarifResult{RuleID: id, Level: level, Message: sarifText{text.String()}, Occurrences: list[i].Seen,
			Fingerprints: map[string]string{"wirecheck/v1": f.ID}}
		res.Locations = locations(&list[i], r.Source)
		run.Results = append(run.Results, res)
	}
	for id, text := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{id, sarifText{text}})
	}
	sort.Slice(run.Tool.Driver.Rules, func(i, j int) bool { return run.Tool.Driver.Rules[i].ID < run.Tool.Driver.Rules[j].ID })
	var notes []sarifNotification
	if r.Undecided != "" {
		notes = append(notes, sarifNotification{"error", sarifText{"undecided: " + prose.Printable(r.Undecided)}})
	}
	for _, line := range r.seen() {
		notes = append(notes, sarifNotification{"note", sarifText{strings.TrimSpace(line)}})
	}
	if notes != nil {
		run.Invocations = []sarifInvocation{{r.Undecided == "", notes}}
	}
	return Indented(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// locations are the places in the application's code that the tags of its statements name, each once; where they name none, the source that was
// judged. The tables are with the first one.
func locations(g *group, source string) (list []sarifLocation) {
	add := func(uri string, line int) {
		p := &sarifPhysical{}
		p.Artifact.URI = (&url.URL{Path: filepath.ToSlash(uri)}).EscapedPath()
		if line > 0 {
			p.Region = &sarifRegion{line}
		}
		list = append(list, sarifLocation{Physical: p})
	}
	type place struct {
		file string
		line int
	}
	seen := map[place]bool{}
	f := &g.f
	for i := range f.Transactions {
		for k := range f.Transactions[i].Statements {
			file, line := f.Transactions[i].Statements[k].Code()
			if at := (place{file, line}); file != "" && !seen[at] {
				seen[at] = true
				add(file, line)
			}
		}
	}
	if list == nil && source != "" {
		add(source, 0)
	}
	for _, t := range g.Tables {
		if list == nil {
			list = append(list, sarifLocation{})
		}
		list[0].Logical = append(list[0].Logical, sarifLogical{t, "table"})
	}
	return list
}
