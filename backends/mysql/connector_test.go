package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	mysql "github.com/go-sql-driver/mysql"
)

// scripted answers each login with the next of the errors, and then with a connection.
type scripted struct {
	driver.Connector
	errs  []error
	tried int
}

type connected struct{ driver.Conn }

func (s *scripted) Connect(context.Context) (driver.Conn, error) {
	s.tried++
	if s.tried <= len(s.errs) {
		return nil, s.errs[s.tried-1]
	}
	return connected{}, nil
}

func TestConnector(t *testing.T) {
	malformed, refused := mysql.ErrMalformPkt, &mysql.MySQLError{Number: 1045}
	for name, test := range map[string]struct {
		errs  []error
		tried int
		want  error
	}{
		"at once":               {nil, 1, nil},
		"a zero byte":           {[]error{malformed}, 2, nil},
		"then a wrong password": {[]error{malformed, refused}, 2, refused},
		"a wrong password":      {[]error{refused}, 1, refused},
		"another error":         {[]error{io.ErrUnexpectedEOF}, 1, io.ErrUnexpectedEOF},
		"always malformed":      {[]error{malformed, malformed, malformed, malformed, malformed}, logins, malformed},
	} {
		s := &scripted{errs: test.errs}
		c, err := patient{s}.Connect(t.Context())
		if !errors.Is(err, test.want) || s.tried != test.tried || (c == nil) != (test.want != nil) {
			t.Errorf("%s: %v, error %v after %d logins; want error %v after %d", name, c, err, s.tried, test.want, test.tried)
		}
	}
}
