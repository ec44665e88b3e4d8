package coupon

import (
	"os"
	"sync"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
)

// TestTwoCustomers redeems a coupon twice at the same time.
func TestTwoCustomers(t *testing.T) {
	redeem := Redeem
	if os.Getenv("APP_FIXED") != "" {
		redeem = RedeemSafely
	}
	db, err := gorm.Open(mysql.Open(os.Getenv("DSN")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("APP_MEET") != "" {
		meet(t, db)
	}
	for _, err := range []error{
		db.Migrator().DropTable(&Coupon{}), db.Migrator().CreateTable(&Coupon{}), db.Create(&Coupon{Code: "WELCOME10", UsesLeft: 5}).Error,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var customers sync.WaitGroup
	for range 2 {
		customers.Go(func() {
			if err := redeem(db, "WELCOME10"); err != nil {
				t.Error(err)
			}
		})
	}
	customers.Wait()
	var coupon Coupon
	if err := db.Take(&coupon).Error; err != nil || coupon.UsesLeft != 3 {
		t.Errorf("%d uses are left, want 3: %v", coupon.UsesLeft, err)
	}
}

// meet holds each customer back, before it writes, until the other one writes too. So their transactions overlap, however busy the machine is.
func meet(t *testing.T, db *gorm.DB) {
	var writing sync.WaitGroup
	writing.Add(2)
	if err := db.Callback().Update().Before("gorm:update").Register("meet", func(*gorm.DB) {
		writing.Done()
		writing.Wait()
	}); err != nil {
		t.Fatal(err)
	}
}
