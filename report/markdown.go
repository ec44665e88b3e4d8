package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"wirecheck/history/prose"
)

// Markdown writes a summary for the page of a CI job: a line for each finding, each with its whole text folded away.
func Markdown(out io.Writer, r Result) error {
	w := bufio.NewWriter(out)
	title := r.nothing()
	list := groups(r.Findings)
	if n := len(list); n > 0 {
		title = fmt.Sprintf("%d found", n)
	} else if r.Undecided != "" {
		title = "not decided"
	}
	fmt.Fprintf(w, "## wirecheck: %s\n\n", title)
	for i := range list {
		f := &list[i].f
		var text strings.Builder
		list[i].text(&text, Look{Again: r.Again})
		// HTML, since Markdown has no text that cannot break out of a fence.
		fmt.Fprintf(w, "<details><summary><b>%s</b> %s</summary>\n<pre>%s</pre>\n</details>\n\n", html.EscapeString(f.ID), html.EscapeString(string(f.Kind)+": "+Headline(f)+list[i].count()),
			strings.ReplaceAll(html.EscapeString(strings.TrimRight(text.String(), "\n")), "\n", "&#10;"))
	}
	if r.Undecided != "" {
		fmt.Fprintf(w, "<p>undecided: %s</p>\n\n", html.EscapeString(prose.Printable(r.Undecided)))
	}
	lines := r.seen()
	if r.Levels != nil {
		lines = append(lines, strings.Split(r.Levels.text(r.Undecided), "\n")...)
	}
	for _, line := range lines {
		fmt.Fprintf(w, "<p>%s</p>\n", html.EscapeString(strings.TrimSpace(line)))
	}
	return w.Flush()
}
