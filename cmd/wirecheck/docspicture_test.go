package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"wirecheck/oracle"
	"wirecheck/report/page"
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
	f := result.Findings[0]
	for i := range f.Transactions { // what differs from run to run
		f.Transactions[i].Session, f.Transactions[i].User = uint64(i+1), ""
	}
	for i := range f.Edges {
		f.Edges[i].FromVersion, f.Edges[i].ToVersion = "", ""
	}
	var b bytes.Buffer
	if err := page.Picture(&b, f); err != nil {
		t.Fatal(err)
	}
	madeFromProgram(t, "../../docs/images/finding.svg", b.String())
}
