package scheduler

import "testing"

// BenchmarkStep is what Core takes for one step of one of that many sessions: Offer, Next, Finish, and Next that finds it
// unsettled. The schedule grows all the time.
func BenchmarkStep(b *testing.B) {
	for _, sessions := range []int{1, 2, 8} {
		b.Run(map[int]string{1: "1session", 2: "2sessions", 8: "8sessions"}[sessions], func(b *testing.B) {
			c := NewCore(Random(seeded(1)))
			for s := range sessions {
				c.Join()
				c.Offer(Session(s), "step")
			}
			b.ReportAllocs()
			for b.Loop() {
				d := c.Next()
				if d.Verdict != Go {
					b.Fatalf("got %+v", d)
				}
				c.Next()
				c.Finish(d.Step.Session, false)
				c.Offer(d.Step.Session, "step")
			}
		})
	}
}

// BenchmarkWait is a step that waits and is resumed, with what goes on around it.
func BenchmarkWait(b *testing.B) {
	c := NewCore(Recorded(nil))
	c.Join()
	c.Join()
	c.Offer(0, "wait")
	c.Offer(1, "run")
	b.ReportAllocs()
	for b.Loop() {
		c.Next()
		c.Wait(map[Session][]Session{0: {1}})
		if d := c.Next(); d.Step.Session != 1 {
			b.Fatalf("got %+v", d)
		}
		c.Finish(1, false)
		c.Finish(0, false)
		c.Offer(1, "run")
		c.Offer(0, "wait")
	}
}
