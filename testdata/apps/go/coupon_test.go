package coupon

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"sync"
	"testing"
)

// TestTwoCustomers redeems coupons twice at the same time.
func TestTwoCustomers(t *testing.T) {
	redeem, rounds := Redeem, 1
	if os.Getenv("APP_FIXED") != "" {
		redeem = RedeemSafely
	}
	if n, err := strconv.Atoi(os.Getenv("APP_ROUNDS")); err == nil {
		rounds = n
	}
	db, err := sql.Open("mysql", os.Getenv("DSN"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, stmt := range []string{"DROP TABLE IF EXISTS coupon", "CREATE TABLE coupon (code varchar(20) PRIMARY KEY, uses_left int)"} {
		if _, err := db.Exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		code := "WELCOME" + strconv.Itoa(round)
		if _, err := db.Exec("INSERT INTO coupon VALUES (?, 5)", code); err != nil {
			t.Fatal(err)
		}
		var customers sync.WaitGroup
		for range 2 {
			customers.Go(func() {
				if err := redeem(context.Background(), db, code); err != nil {
					t.Error(err)
				}
			})
		}
		customers.Wait()
		var left int
		if err := db.QueryRow("SELECT uses_left FROM coupon WHERE code = ?", code).Scan(&left); err != nil || left != 3 {
			t.Errorf("%d uses are left, want 3: %v", left, err)
		}
	}
}
