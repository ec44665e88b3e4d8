package mysql

import (
	"context"
	"database/sql/driver"
	"errors"

	mysql "github.com/go-sql-driver/mysql"
)

// logins is how often a login is tried when the driver calls an answer malformed.
const logins = 4

// Connector connects with go-sql-driver/mysql. It logs in again where the driver refuses a right answer: the driver takes a last zero byte off
// MariaDB's nonce for ed25519 (packets.go, readAuthResult), so every 256th login ends in ErrMalformPkt.
func Connector(cfg *mysql.Config) (driver.Connector, error) {
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return patient{c}, nil
}

type patient struct{ driver.Connector }

func (p patient) Connect(ctx context.Context) (c driver.Conn, err error) {
	for range logins {
		if c, err = p.Connector.Connect(ctx); !errors.Is(err, mysql.ErrMalformPkt) {
			break
		}
	}
	return c, err
}
