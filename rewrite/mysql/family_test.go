package mysql

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// The tests with a server run against MariaDB, or against MySQL if the environment asks for it (make test-engines).

func flavor() Flavor {
	switch {
	case testserver.IsMySQL():
		return MySQL
	case testserver.IsTiDB():
		return TiDB
	}
	return MariaDB
}

// sequence is a table of the numbers 1 to n in the column seq.
func sequence(n int) string {
	if flavor() == MariaDB {
		return fmt.Sprintf("seq_1_to_%d", n)
	}
	digits := "(SELECT 0 d"
	for i := 1; i < 10; i++ {
		digits += fmt.Sprintf(" UNION ALL SELECT %d", i)
	}
	digits += ")"
	return fmt.Sprintf("(SELECT 1+a.d+10*b.d+100*c.d+1000*e.d seq FROM %[1]s a,%[1]s b,%[1]s c,%[1]s e HAVING seq<=%[2]d ORDER BY seq) s", digits, n)
}

// fetchLog fetches the log as the proxy does.
func (s *side) fetchLog(t testing.TB) string {
	t.Helper()
	if flavor() != MySQL {
		return s.texts(t, FetchLog())[0][0]
	}
	q := FetchLogQuietly("")
	s.exec(t, q[0])
	return s.texts(t, q[1])[0][0]
}

// send executes what the rewriter made of a text, as the proxy does.
func (w *wire) send(t testing.TB, script *rewrite.Script) reply {
	t.Helper()
	if script.Plans[0].ParsedApart > 0 {
		return w.execute(t, script.SQL, nil)
	}
	return w.query(t, script.SQL)
}

// expected is the coverage that a form has on the server under test. MySQL has no quiet place for what a SELECT without hidden
// columns read.
func (f *form) expected(plan *rewrite.Plan) history.Coverage {
	if flavor() == MySQL {
		for _, foreign := range []string{"WAIT 5", "WAIT 2", "MODE NOWAIT", "RETURNING", "EXCEPT ALL"} {
			if strings.Contains(f.sql, foreign) {
				f.n = -1 // the server's error
			}
		}
		if plan.Why == "what subqueries read is not seen" {
			f.n = -1
		}
	}
	if flavor() == MySQL && plan.Verb == "select" && (plan.Why == "what subqueries read is not seen" || strings.Contains(plan.Why, "on this server") || strings.Contains(plan.Why, "an index that covers") || strings.Contains(plan.Why, "cannot be listed here")) {
		return plan.Coverage
	}
	if flavor() != MariaDB && f.coverage == opaque && strings.HasPrefix(f.sql, "INSERT INTO bare VALUES") {
		return plan.Coverage // MariaDB alone goes on behind the first error of a row
	}
	if flavor() == MySQL && plan.Verb == "delete" && strings.Contains(f.sql, " DIV ") {
		return opaque // the constant is computed earlier
	}
	if flavor() == MySQL && strings.Contains(f.sql, "VALUE (account_id)") {
		f.n = 0
		return opaque // VALUE() is MariaDB's alone
	}
	if flavor() == MySQL && f.coverage == opaque && strings.Contains(f.sql, "GROUP BY qty DIV 0") {
		f.n = -1
		return exact // a second scan tells it, which does not group
	}
	if flavor() == MySQL && strings.Contains(f.sql, "SET_VAR(") {
		return opaque // a comment elsewhere
	}
	if plan.Why == "a view or a derived table, which the server would not merge" {
		f.n = 0
		return opaque // MySQL's check of views is another one where it prepares
	}
	if flavor() == MySQL && plan.Verb == "delete" && f.coverage == approx && strings.Contains(f.sql, "SELECT") {
		return opaque // subqueries may become joins there
	}
	if flavor() == MySQL && plan.Same > 0 && strings.Contains(f.sql, " UNION ") && f.coverage == opaque {
		f.n = -1
		return exact // MariaDB may answer it from an index
	}
	if flavor() == MySQL && plan.Same > 0 && plan.Verb == "select" {
		if strings.Contains(f.sql, "LEFT JOIN") {
			f.n = -1 // a row of one table may have several of the other, and is told once
		}
		if plan.WithRows == f.coverage {
			return plan.Coverage
		}
	}
	return f.coverage
}

// cachingPassword answers caching_sha2_password without TLS (MySQL manual, "Caching SHA-2 Pluggable Authentication"): the
// scramble, and if the server wants it the password encrypted with its public key.
func (w *wire) cachingPassword(t testing.TB, password string, salt []byte) {
	t.Helper()
	p := w.read(t)
	if p[0] == 1 && p[1] == 4 { // full authentication
		w.write(t, []byte{2})
		p = w.read(t)
		block, _ := pem.Decode(p[1:])
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		plain := append([]byte(password), 0)
		for i := range plain {
			plain[i] ^= salt[i%len(salt)]
		}
		sealed, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key.(*rsa.PublicKey), plain, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, sealed)
		p = w.read(t)
	} else if p[0] == 1 && p[1] == 3 {
		p = w.read(t)
	}
	if p[0] != 0 {
		t.Fatalf("log in: %q", p)
	}
}

func cachingScramble(password string, salt []byte) []byte {
	h1 := sha256.Sum256([]byte(password))
	h2 := sha256.Sum256(h1[:])
	h3 := sha256.Sum256(append(h2[:], salt...))
	for i := range h1 {
		h1[i] ^= h3[i]
	}
	return h1[:]
}

// keyOf is SQL text for the name of a row of a table that has no other name in the statement.
func keyOf(rel *rewrite.Relation) string {
	return rowKey(flavor(), &source{rel: rel, ref: mysqlsyntax.Quote(rel.Name)})
}
