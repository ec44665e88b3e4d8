package testserver

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"wirecheck/backends/mysql"
)

// exec executes statements on one connection.
func (d Database) exec(ctx context.Context, stmts ...string) (err error) {
	one, closeOne, err := d.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", d.Address(), err)
	}
	defer func() { err = errors.Join(err, closeOne()) }()
	for _, stmt := range stmts {
		if err := one(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", stmt, err)
		}
	}
	return nil
}

// connect gives a function that executes one statement, and one that ends the connection.
func (d Database) connect(ctx context.Context) (exec func(context.Context, string) error, end func() error, err error) {
	if d.Server.Engine == "postgres" {
		conn, err := pgx.Connect(ctx, d.URL())
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, stmt string) error {
			_, err := conn.Exec(ctx, stmt)
			return err
		}, func() error { return conn.Close(context.WithoutCancel(ctx)) }, nil
	}
	db, err := d.pool()
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1) // so that SET and the like hold for what follows
	return func(ctx context.Context, stmt string) error {
		_, err := db.ExecContext(ctx, stmt)
		return err
	}, db.Close, nil
}

// pool gives a pool of connections to MariaDB.
func (d Database) pool() (*sql.DB, error) {
	connector, err := mysql.Connector(d.MySQLConfig())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// tlsConfig trusts the server's authority alone.
func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{RootCAs: s.Authority.Pool(), ServerName: "localhost"}
}
