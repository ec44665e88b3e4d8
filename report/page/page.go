// Package page turns findings into a page for a browser: one file that holds all that it needs, and asks no network for anything. It is pure:
// the same findings give the same bytes. It also draws the picture of one finding.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
)

//go:embed colors.css picture.css page.css page.js live.js
var files embed.FS

func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return string(text)
}

// Document is all that a page shows.
type Document struct {
	Title string // what was judged: "shop.jsonl"
	// Notes say how much was seen, and what the reader should know besides. The first one is the verdict.
	Notes []string
	Items []Item
	// Known gives what a file of known findings says of a finding, so that it fails no build; nil: such a file does not help here.
	Known func(*oracle.Finding) string
	// Text is what stands below the findings as it is.
	Text string

	coverage *isolation.Coverage
}

// Item is a finding with what its page says besides.
type Item struct {
	Finding oracle.Finding
	Where   []string // where it was found, if there are several places
	// Again are the commands that show it again, and Scenario is the scenario that does; both may be empty.
	Again    []string
	Scenario string
}

// Of makes the document of a result. again gives the commands that show a finding again.
func Of(r report.Result, again func(*oracle.Finding) []string) Document {
	d := Document{Title: r.Source}
	var text strings.Builder
	if err := report.Summary(&text, r); err == nil { // a strings.Builder gives no error
		summary, _, _ := strings.Cut(text.String(), "\n\n")
		d.Notes = strings.Split(strings.TrimSpace(summary), "\n")
	}
	d.Text = r.Explained
	for i := range r.Findings {
		item := Item{Finding: r.Findings[i]}
		if again != nil {
			item.Again = again(&r.Findings[i])
		}
		d.Items = append(d.Items, item)
	}
	if c, ok := r.Coverage.(isolation.Coverage); ok {
		d.coverage = &c
	}
	return d
}

// Write writes the page.
func Write(w io.Writer, d Document) error {
	v := d.view(0)
	v.frame = frameOf("page.js")
	return render(w, v.html())
}

// frame is what a page needs around it: its style and its scripts, which its policy names by their digests.
type frame struct {
	Style  string
	Script string
	Policy string
}

// frameOf makes the frame of a page with scripts. The policy lets nothing else run, and lets nothing be loaded from anywhere.
func frameOf(scripts ...string) frame {
	style, script := "\n"+file("colors.css")+file("picture.css")+file("page.css"), "\n"
	for _, s := range scripts {
		script += file(s)
	}
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return frame{
		style, script,
		"default-src 'none'; style-src " + digest(style) + "; script-src " + digest(script) + "; base-uri 'none'; form-action 'none'",
	}
}

// pageView is what a page shows.
type pageView struct {
	frame
	Title    string
	Verdict  string
	Notes    []string
	Findings []findingView
	Groups   []group
	Bar      *bar
	Text     string
	Live     *Live
}

// group is a list of findings of one kind, for the index.
type group struct {
	Title    string
	Findings []*findingView
}

// bar shows which share of the statements was seen how.
type bar struct {
	Exact, Approximate, Opaque    int
	ExactTo, ApproximateTo, Total float64 // ends of the parts, of 100
}

// view makes what the page shows. Of the first findings, which a page has already, it has what the index needs alone.
func (d *Document) view(had int) *pageView {
	v := &pageView{Title: prose.Printable(d.Title), Text: prose.Lines(d.Text)}
	for i, n := range d.Notes {
		if n = prose.Printable(n); i == 0 {
			v.Verdict = n
		} else {
			v.Notes = append(v.Notes, n)
		}
	}
	v.Findings = d.findings(had)
	for i := range v.Findings {
		f := &v.Findings[i]
		k := 0
		for k < len(v.Groups) && v.Groups[k].Title != f.Blame.Title {
			k++
		}
		if k == len(v.Groups) {
			v.Groups = append(v.Groups, group{Title: f.Blame.Title})
		}
		v.Groups[k].Findings = append(v.Groups[k].Findings, f)
	}
	if c := d.coverage; c != nil && c.Statements() > 0 {
		n := float64(c.Statements())
		v.Bar = &bar{c.Exact, c.Approximate, c.Opaque, 100 * float64(c.Exact) / n, 100 * float64(c.Exact+c.Approximate) / n, 100}
	}
	return v
}
