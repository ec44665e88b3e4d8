package mysqlwire_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"wirecheck/internal/certificate"
	"wirecheck/internal/testserver"
)

func portOf(d testserver.Database) string { return strconv.Itoa(d.Port) }

// certFiles makes a certificate for localhost and gives the names of its files.
func certFiles(t *testing.T) (cert, key string) {
	t.Helper()
	authority, err := certificate.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue("localhost", "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for name, text := range map[string][]byte{cert: pair.CertPEM, key: pair.KeyPEM} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
