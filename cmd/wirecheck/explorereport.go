package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/report"
	"wirecheck/scheduler/search"
	"wirecheck/trace/secret"
)

// write prints what explore found, as text or JSON.
func (e *explored) write(c *common) error {
	if c.format == "json" {
		return e.json(c.stdout, c.args)
	}
	var out bytes.Buffer
	e.text(&out, c)
	if e.failed != nil {
		if err := writeResult(&out, e.failed.result, "text", "", terminalWidth(c.stdout)); err != nil {
			return err
		}
	} else if e.failed == nil && e.nothing == "" {
		if err := writeResult(&out, e.least.result, "text", "", terminalWidth(c.stdout)); err != nil {
			return err
		}
		if e.runs > 1 {
			fmt.Fprintln(&out, "this is the coverage of the run of which wirecheck saw least")
		}
	}
	fmt.Fprintf(&out, "explored: %s\n", e.tally())
	if e.nothing != "" {
		fmt.Fprintf(&out, "nothing explored: %s\n", e.nothing)
	}
	if e.file != "" {
		fmt.Fprintf(&out, "run it again: %s\n", repeatCommand(c.args, e.file))
	}
	_, err := c.stdout.Write(out.Bytes())
	return err
}

// tally says how many schedules were run.
func (e *explored) tally() string {
	text := fmt.Sprintf("%s, %s (%s", prose.Count(e.runs, "run"), prose.Count(e.schedules, "different schedule"), e.strategy)
	if e.seed != 0 {
		text += fmt.Sprintf(", seed %d", e.seed)
	}
	text += ")"
	switch {
	case e.exhausted && e.runs == e.schedules:
		text += "; there are no others"
	case e.exhausted: // All gives none twice
		text += "; the command did not do the same in each run, so there may be others"
	}
	return text
}

// text prints the run that failed and its schedule.
func (e *explored) text(out io.Writer, c *common) {
	o := e.failed
	if o == nil {
		if e.nothing != "" && e.last.said != "" {
			fmt.Fprintf(out, "the command wrote:\n%s", indented(e.last.said))
		}
		return
	}
	what := "the command " + o.why
	switch {
	case o.exit != 0:
	case len(o.result.Findings) == 0:
		what = "it breaks an invariant"
	default:
		what = "wirecheck found something"
	}
	fmt.Fprintf(out, "run %d: %s\n", e.number, what)
	for _, why := range o.broken {
		fmt.Fprintf(out, "invariant broken: %s\n", why)
	}
	if o.exit != 0 && o.said != "" {
		fmt.Fprintf(out, "the command wrote:\n%s", indented(o.said))
	}
	if len(o.run.Decisions) == 0 {
		return
	}
	fmt.Fprintf(out, "its schedule (switches of session: %d", search.Switches(o.run.Order()))
	if e.smaller > 0 {
		fmt.Fprintf(out, "; at first %d, and %s looked for a smaller one", e.from, prose.Count(e.smaller, "run"))
	}
	fmt.Fprintf(out, "):\n%s", indented(o.schedule))
	switch {
	case o.run.Choices() == 0:
		fmt.Fprintln(out, "no other order was possible: the test fails in any")
	case !e.again:
		fmt.Fprintln(out, "the same schedule did not fail again: the test does something else in each run")
	}
	fmt.Fprintln(out)
}

// indented is a text with two spaces before each line, and safe for a terminal.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n") + "\n") {
		b.WriteString("  " + prose.Printable(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// repeatCommand is the command line that runs a schedule again.
func repeatCommand(args []string, file string) string {
	words := []string{"wirecheck", "explore", "--schedule", file}
	rest := args[slices.Index(args, "explore")+1:]
	for _, word := range rest {
		words = append(words, secret.URLs(word))
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shellWord writes a word so that a shell reads it as one.
func shellWord(w string) string {
	if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;<>()*?[]{}~#!`") {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

// json prints all of it as one object.
func (e *explored) json(w io.Writer, args []string) error {
	type failure struct {
		Run      int      `json:"run"`
		Exit     int      `json:"exit"`
		Why      string   `json:"why,omitempty"`
		Said     string   `json:"said,omitempty"`
		Broken   []string `json:"broken,omitempty"`
		Switches int      `json:"switches"`
		From     int      `json:"switches_at_first"`
		Smaller  int      `json:"runs_for_smaller"`
		Again    bool     `json:"failed_again"`
		Schedule []string `json:"schedule"`
		File     string   `json:"file,omitempty"`
		Command  string   `json:"run_it_again,omitempty"`
	}
	v := struct {
		Strategy  string          `json:"strategy"`
		Seed      uint64          `json:"seed,omitempty"`
		Runs      int             `json:"runs"`
		Schedules int             `json:"schedules"`
		Exhausted bool            `json:"exhausted"`
		Nothing   string          `json:"nothing_explored,omitempty"`
		Failed    *failure        `json:"failed"`
		Result    json.RawMessage `json:"result"`
	}{Strategy: e.strategy, Seed: e.seed, Runs: e.runs, Schedules: e.schedules, Exhausted: e.exhausted && e.runs == e.schedules, Nothing: e.nothing}
	shown := e.least
	if o := e.failed; o != nil {
		shown = o
		v.Failed = &failure{e.number, o.exit, o.why, o.said, o.broken, search.Switches(o.run.Order()), e.from, e.smaller, e.again,
			strings.Split(strings.TrimSpace(o.schedule), "\n"), e.file, ""}
		if e.file != "" {
			v.Failed.Command = repeatCommand(args, e.file)
		}
	}
	var result bytes.Buffer
	if err := report.JSON(&result, shown.result); err != nil {
		return err
	}
	v.Result = result.Bytes()
	return report.Indented(w, v)
}
