package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// TestPictureDocument: docs/images/finding.svg is the picture of what a real run finds.
func TestPictureDocument(t *testing.T) {
	t.Parallel()
	const story = "../../testdata/documents/picture.md"
	r := newDocReader(t, story)
	r.follow(readBlocks(t, story))
	text, err := os.ReadFile(filepath.Join(r.dir, "finding.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Findings []oracle.Finding }
	if err := json.Unmarshal(text, &result); err != nil || len(result.Findings) != 1 {
		t.Fatalf("%d findings: %v", len(result.Findings), err)
	}
	madeFromProgram(t, "../../docs/images/finding.svg", picture(&result.Findings[0]))
}

const (
	pictureWidth = 1060
	boxWidth     = 445
	rowHeight    = 52
	firstRow     = 120
)

const pictureStyle = `<style>
  .page { fill: #ffffff; stroke: #d0d7de }  .text { fill: #1f2328 }  .soft { fill: #59636e }
  .one { stroke: #0969da }  .two { stroke: #bf3989 }  .onetext { fill: #0969da }  .twotext { fill: #bf3989 }
  .box { fill: #f6f8fa }  .edge { stroke: #cf222e; fill: none; stroke-width: 2 }  .tip { fill: #cf222e }  .note { fill: #fff8c5; stroke: #d4a72c }
  text { font: 13px sans-serif }  .title { font: bold 18px sans-serif }  .bold { font-weight: bold }  .code { font: 12px monospace }  .label { font: bold 12px sans-serif; text-anchor: middle }  .middle { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d }  .text { fill: #f0f6fc }  .soft { fill: #9198a1 }
    .one { stroke: #4493f8 }  .two { stroke: #db61a2 }  .onetext { fill: #4493f8 }  .twotext { fill: #db61a2 }
    .box { fill: #151b23 }  .edge { stroke: #f85149 }  .tip { fill: #f85149 }  .note { fill: #2b2617; stroke: #9e6a03 }
  }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path class="tip" d="M0,0 L8,4 L0,8 z"/></marker></defs>
`

// picture draws a finding of two transactions: time runs down, an arrow leads from what must have come first.
func picture(f *oracle.Finding) string {
	type event struct {
		transaction, statement int // statement 0: the commit
		tick                   uint64
		text                   string
	}
	var events []event
	for i, tx := range f.Transactions {
		for _, s := range tx.Statements {
			events = append(events, event{i, s.N, s.From, s.SQL})
		}
		events = append(events, event{i, 0, tx.To, "COMMIT"})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.tick, b.tick) })

	var b strings.Builder
	height := firstRow + len(events)*rowHeight + 60 + 20*len(f.Remedies)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", pictureWidth, height, f.Name)
	b.WriteString(pictureStyle)
	fmt.Fprintf(&b, `<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", pictureWidth-1, height-1)
	write := func(x, y int, class, format string, args ...any) {
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(fmt.Sprintf(format, args...)))
	}
	write(20, 34, "title text", "%s", strings.ToUpper(f.Name[:1])+f.Name[1:])
	write(175, 34, "soft", "%s · %s · %s", strings.Join(f.Tables, ", "), f.Class, f.ID)
	write(20, 58, "text", "Ran at %s, which allows it. %s prevents it.", strings.ToUpper(f.Level), strings.ToUpper(f.PreventedBy))
	left := [2]int{20, pictureWidth - 20 - boxWidth}
	class := [2]string{"one", "two"}
	bottom := firstRow + len(events)*rowHeight
	for i, tx := range f.Transactions {
		write(left[i], 90, "bold "+class[i]+"text", "%s · %s", tx.Label, tx.Client)
		end := slices.IndexFunc(events, func(e event) bool { return e.transaction == i && e.statement == 0 })
		fmt.Fprintf(&b, `<path class="%s" opacity="0.4" stroke-width="3" d="M%d,%d V%d"/>`+"\n", class[i], left[i]+boxWidth/2, firstRow-16, firstRow+end*rowHeight)
	}
	middle := map[[2]int]int{} // of a transaction's statement: the height of its box
	for row, e := range events {
		y := firstRow + row*rowHeight
		x, width := left[e.transaction], boxWidth
		if e.statement == 0 {
			x, width = x+boxWidth/2-50, 100
		}
		middle[[2]int{e.transaction, e.statement}] = y + 10
		fmt.Fprintf(&b, `<rect class="box %s" x="%d" y="%d" width="%d" height="28" rx="6"/>`+"\n", class[e.transaction], x, y-4, width)
		if e.statement == 0 {
			write(x+width/2, y+14, "code middle text", "%s", e.text)
		} else {
			write(x+10, y+14, "code text", "%s", e.text)
		}
	}
	for i, edge := range f.Edges {
		from, to := middle[[2]int{edge.From, edge.FromStatement}], middle[[2]int{edge.To, edge.ToStatement}]
		x1, x2 := left[edge.From]+boxWidth, left[edge.To]
		if edge.From == 1 {
			x1, x2 = left[1], left[0]+boxWidth
		}
		fmt.Fprintf(&b, `<path class="edge" marker-end="url(#tip)" d="M%d,%d C%d,%d %d,%d %d,%d"/>`+"\n", x1, from, (x1+x2)/2, from, (x1+x2)/2, to, x2, to)
		y := (from+to)/2 - 11
		fmt.Fprintf(&b, `<rect class="note" x="%d" y="%d" width="116" height="22" rx="4"/>`+"\n", pictureWidth/2-58, y)
		write(pictureWidth/2, y+15, "label text", "%d   %s before %s", i+1, f.Transactions[edge.From].Label, f.Transactions[edge.To].Label)
	}
	write(20, bottom+6, "soft", "Time runs down. Arrow 1 says that %s came first, arrow 2 that %s did: no order of the two explains what happened.",
		f.Transactions[f.Edges[0].From].Label, f.Transactions[f.Edges[1].From].Label)
	write(20, bottom+34, "bold text", "Fix (any one)")
	for i, remedy := range f.Remedies {
		write(20, bottom+56+20*i, "text", "%d. %s", i+1, remedy.Text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
