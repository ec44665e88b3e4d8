package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// phpSuite is the tests of some of PHP's extensions, in folders of its source: Debian's package of PHP, and the source of the same release.
func phpSuite(name, engine string, extensions, folders []string, prepare string, with func(at place) (env []string)) suite {
	return suite{
		name: name, engine: engine,
		get: func(ctx context.Context, folder string) error {
			if err := packages(ctx, folder, "php", "bookworm", "php8.2-cli", "php8.2-common", "php8.2-mysql", "php8.2-pgsql"); err != nil {
				return err
			}
			return debian("bookworm", "php8.2", "sys")(ctx, folder)
		},
		run: func(ctx context.Context, folder string, at place, only []string) (outcomes, error) {
			if err := at.prepare(ctx, prepare); err != nil {
				return nil, err
			}
			php, source := filepath.Join(folder, "php", "usr", "bin", "php8.2"), filepath.Join(folder, "source")
			libraries, _ := filepath.Glob(filepath.Join(folder, "php", "usr", "lib", "php", "*", "mysqlnd.so"))
			if len(libraries) != 1 {
				return nil, fmt.Errorf("no extensions in %s", folder)
			}
			args := []string{"-n", "run-tests.php", "-n", "-q", "--no-color", "-p", php, "--set-timeout", "60", "-d", "extension_dir=" + filepath.Dir(libraries[0])}
			for _, e := range extensions {
				args = append(args, "-d", "extension="+e)
			}
			tests := folders
			if only != nil {
				tests = phpFiles(source, only)
			}
			out, err := at.command(ctx, source, append(with(at), "TEST_PHP_EXECUTABLE="+php), php, append(args, tests...)...)
			if err != nil {
				return nil, err
			}
			all, err := phpOutcomes(out)
			if err != nil {
				return nil, err
			}
			return all, keepOutputs(source, filepath.Join(folder, "output", at.mode), all)
		},
	}
}

var phpLine = regexp.MustCompile(`^(?:TEST \d+/\d+ \[\S+\]\r?)*(PASS|FAIL|SKIP|XFAIL|WARN|LEAK|BORK)\S* .*\[(\S+\.phpt)\]`)

// phpOutcomes reads what run-tests.php prints: "TEST 1/9 [file]PASS title [file]", with more of the first part if it takes long.
func phpOutcomes(out []byte) (outcomes, error) {
	r := outcomes{}
	for line := range bytes.Lines(out) {
		m := phpLine.FindSubmatch(line)
		if m == nil {
			continue
		}
		outcome := failed
		switch string(m[1]) {
		case "PASS", "XFAIL":
			outcome = passed
		case "SKIP":
			outcome = skipped
		}
		r[string(m[2])] = outcome
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("no test ran: %s", tail(out))
	}
	return r, nil
}

// phpFiles are the files that some tests are of. PDO's own tests have none in a driver's folder: the driver's common.phpt runs all of them.
func phpFiles(source string, tests []string) (files []string) {
	for _, t := range tests {
		if _, err := os.Stat(filepath.Join(source, t)); err != nil {
			t = filepath.Join(filepath.Dir(t), "common.phpt")
		}
		files = append(files, t)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// keepOutputs copies what tests that failed have printed: tests for another server say something, too, if they print the same in all modes.
func keepOutputs(source, to string, all outcomes) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for test, outcome := range all {
		if outcome != failed {
			continue
		}
		text, err := os.ReadFile(filepath.Join(source, test[:len(test)-len("phpt")]+"out"))
		if errors.Is(err, fs.ErrNotExist) { // it did not come to run
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, strings.ReplaceAll(test, "/", "_")), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
