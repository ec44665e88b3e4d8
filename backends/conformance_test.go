package backends_test

import (
	"os"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/backendtest"
)

// enginesVariable names further engines to run the conformance suite on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

func TestConformance(t *testing.T) {
	for _, name := range append([]string{"postgres", "mariadb", "sqlite", "sqlite:wal"}, strings.Fields(os.Getenv(enginesVariable))...) {
		t.Run(name, func(t *testing.T) {
			d, err := backends.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			backendtest.Run(t, d)
		})
	}
}
