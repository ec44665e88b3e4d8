package imports

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoMethodsByName: nothing in the program looks up a method by a name that the linker cannot see. Where something does, the linker keeps every
// method of every type, and the program has 9 MB more (73 in place of 64, stripped). Templates do it, those of cobra too, if any is set.
func TestNoMethodsByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wirecheck")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "wirecheck/cmd/wirecheck").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	linked := func(function string) bool { return bytes.Contains(program, []byte(function)) }
	if !linked("text/template.HTMLEscapeString") {
		t.Fatal("the program lacks the name of a function that it has: this test cannot see what is linked")
	}
	if linked("text/template.(*state).evalField") {
		t.Error("text/template is linked, which looks up methods by name")
	}
}
