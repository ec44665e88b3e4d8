package shop

import (
	"context"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"
)

// Crowd lets clients transfer money among the crowd's accounts at the same time, each transfer one correct
// transaction: atomic updates, rows taken in the order of their keys. Nothing of it is an anomaly at any level.
func Crowd(ctx context.Context, t Target, clients, transfers int, seed uint64) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		g.Go(func() error {
			c, err := t.Connect(ctx, Driver)
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range transfers {
				if err := transfer(ctx, c, rng); err != nil {
					c.Close()
					return err
				}
			}
			return c.Close()
		})
	}
	return g.Wait()
}

func transfer(ctx context.Context, c Client, rng *rand.Rand) error {
	from, to := 11+rng.IntN(4), 11+rng.IntN(4)
	amount := 1 + rng.IntN(9)
	if from > to {
		from, to, amount = to, from, -amount
	}
	for _, sql := range []string{
		"BEGIN",
		fmt.Sprintf("UPDATE account SET balance = balance - %d WHERE id = %d", amount, from),
		fmt.Sprintf("UPDATE account SET balance = balance + %d WHERE id = %d", amount, to),
		"COMMIT",
	} {
		if _, err := c.Do(ctx, sql); err != nil {
			return fmt.Errorf("the crowd: %s: %w", sql, err)
		}
	}
	return nil
}
