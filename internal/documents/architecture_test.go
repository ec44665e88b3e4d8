package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNames: the packages and names of docs/explain/architecture.md are in the code.
func TestArchitectureNames(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/explain/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{} // the last word of a package's path -> its folder
	for _, m := range regexp.MustCompile("`([a-z]+(?:/[a-z]+)*)`").FindAllStringSubmatch(string(text), -1) {
		if found, err := os.Stat(filepath.Join(root, m[1])); err == nil && found.IsDir() {
			folders[filepath.Base(m[1])] = m[1]
		} else if strings.Contains(m[1], "/") {
			t.Errorf("there is no package %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(?:[a-z]+/)*([a-z]+)\\.([A-Za-z]+(?:\\.[A-Za-z]+)*)`").FindAllStringSubmatch(string(text), -1) {
		folder, ok := folders[m[1]]
		if m[1] == "isolation" || m[1] == "postgres" {
			folder, ok = map[string]string{"isolation": "oracle/isolation", "postgres": "rewrite/postgres"}[m[1]], true
		}
		if !ok {
			continue // a.To and the like
		}
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, f := range files {
			source, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(source)
		}
		for _, name := range strings.Split(m[2], ".") {
			if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |\t)` + name + `\b`).MatchString(code.String()) {
				t.Errorf("%s has no %s (%s)", folder, name, m[0])
			}
		}
	}
}
