package panel

import (
	"testing"

	"wirecheck/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }
