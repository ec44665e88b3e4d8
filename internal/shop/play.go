package shop

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Play acts out a scene at t and writes what every client sent and received to out. It gives the warnings that the
// clients received, by person.
func Play(ctx context.Context, t Target, s Scene, out io.Writer) (map[string][]string, error) {
	clients := map[string]Client{}
	defer func() {
		for _, c := range clients {
			c.Close() // the scene is over: a server that hangs up first is no matter
		}
	}()
	heard := map[string][]string{}
	width := 0
	for who := range s.Who {
		width = max(width, len(who))
	}
	for _, step := range s.Steps {
		c := clients[step.Who]
		if c == nil {
			var err error
			if c, err = t.Connect(ctx, s.Who[step.Who]); err != nil {
				return nil, err
			}
			clients[step.Who] = c
			if _, err := c.Do(ctx, t.level(s.Level)); err != nil {
				return nil, fmt.Errorf("%s sets the level: %w", step.Who, err)
			}
			fmt.Fprintf(out, "  %-*s  -- connects with %s, %s\n", width, step.Who, c.Name(), s.Level)
		}
		answer, err := c.Do(ctx, step.SQL)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", step.Who, step.SQL, err)
		}
		fmt.Fprintf(out, "  %-*s  %s", width, step.Who, step.SQL)
		if answer != "" {
			fmt.Fprintf(out, "  -> %s", answer)
		}
		fmt.Fprintln(out)
		warnings, err := c.Heard(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s asks for warnings: %w", step.Who, err)
		}
		for _, w := range warnings {
			heard[step.Who] = append(heard[step.Who], w)
			for _, line := range strings.Split(w, "\n") {
				for _, piece := range fold(line) {
					fmt.Fprintf(out, "  %*s  | %s\n", width, "", piece)
				}
			}
		}
	}
	return heard, nil
}

func (t Target) level(level string) string {
	if t.Engine == "postgres" {
		return "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + level
	}
	return "SET SESSION TRANSACTION ISOLATION LEVEL " + level
}

// pageWidth is how many characters of a warning are shown on one line.
const pageWidth = 120

// fold breaks a line between words.
func fold(line string) []string {
	var out []string
	current := ""
	for _, word := range strings.SplitAfter(line, " ") {
		if len(current)+len(word) > pageWidth && current != "" {
			out = append(out, current)
			current = "  "
		}
		current += word
	}
	return append(out, current)
}
