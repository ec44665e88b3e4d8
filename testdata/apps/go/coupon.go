// Package coupon is an example application: coupons of a shop, with database/sql on MariaDB.
package coupon

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
)

// ErrUsedUp says that a coupon has no uses left.
var ErrUsedUp = errors.New("the coupon is used up")

// Redeem takes one use of a coupon away. Two customers who redeem it at the same time may pay with one use: the new value comes from an old one.
func Redeem(ctx context.Context, db *sql.DB, code string) error {
	return inTransaction(ctx, db, func(tx *sql.Tx) error {
		var left int
		if err := tx.QueryRowContext(ctx, tagged("SELECT uses_left FROM coupon WHERE code = ?"), code).Scan(&left); err != nil {
			return err
		}
		if left == 0 {
			return ErrUsedUp
		}
		_, err := tx.ExecContext(ctx, tagged("UPDATE coupon SET uses_left = ? WHERE code = ?"), left-1, code)
		return err
	})
}

// RedeemSafely takes one use of a coupon away, whoever else redeems it.
func RedeemSafely(ctx context.Context, db *sql.DB, code string) error {
	return inTransaction(ctx, db, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, tagged("UPDATE coupon SET uses_left = uses_left - 1 WHERE code = ? AND uses_left > 0"), code)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrUsedUp, err)
		}
		return nil
	})
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// tagged says in a comment which line of the application sends a statement (sqlcommenter).
func tagged(sql string) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s /*code.filepath='%s',code.lineno='%d'*/", sql, url.QueryEscape(file), line)
}
