// Command casespec converts known cases, a JSON file each, to scenario files:
//
//	go run ./internal/casespec DIR OUT
//
// The JSON says what was submitted and which results would be wrong; on which engines and levels they were seen is in the
// table below. The specs under testdata/cases were made with it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: casespec DIR OUT: reads DIR/*.json, writes OUT/*.spec")
		os.Exit(2)
	}
	if err := convertAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "casespec:", err)
		os.Exit(2)
	}
}

func convertAll(dir, out string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no *.json in %s", dir)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := convert(src)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json") + ".spec"
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
