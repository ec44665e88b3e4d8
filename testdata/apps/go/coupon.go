// Package coupon is an example application: coupons of a shop, with GORM on MariaDB.
package coupon

import (
	"errors"
	"fmt"
	"net/url"
	"runtime"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/hints"
)

// ErrUsedUp says that a coupon has no uses left.
var ErrUsedUp = errors.New("the coupon is used up")

// Coupon is one coupon.
type Coupon struct {
	Code     string `gorm:"primaryKey;size:20"`
	UsesLeft int
}

// Redeem takes one use of a coupon away. Two customers who redeem it at the same time may pay with one use: the new value comes from an old one.
func Redeem(db *gorm.DB, code string) error {
	return db.Transaction(func(tx *gorm.DB) error {
		var coupon Coupon
		if err := tx.Clauses(here("limit")).Take(&coupon, "code = ?", code).Error; err != nil {
			return err
		}
		if coupon.UsesLeft == 0 {
			return ErrUsedUp
		}
		return tx.Clauses(here("where")).Model(&coupon).Update("uses_left", coupon.UsesLeft-1).Error
	})
}

// RedeemSafely takes one use of a coupon away, whoever else redeems it.
func RedeemSafely(db *gorm.DB, code string) error {
	return db.Transaction(func(tx *gorm.DB) error {
		update := tx.Clauses(here("where")).Model(&Coupon{}).Where("code = ? AND uses_left > 0", code).
			Update("uses_left", gorm.Expr("uses_left - 1"))
		if update.Error == nil && update.RowsAffected == 0 {
			return ErrUsedUp
		}
		return update.Error
	})
}

// here says in a comment, after the last clause of a statement, which line of the application sends it (sqlcommenter).
func here(last string) clause.Expression {
	_, file, line, _ := runtime.Caller(1)
	return hints.CommentAfter(last, fmt.Sprintf("code.filepath='%s',code.lineno='%d'", url.QueryEscape(file), line))
}
