package stream

import "time"

// SetSilence says after which time a run that says nothing is taken for gone.
func (c *Collector) SetSilence(d time.Duration) { c.seq.silence = d }

// Wait is how long a batch waits still that got its first event so long ago, where the batch before it was whole so long ago.
func Wait(began, sealed time.Duration) time.Duration {
	now := time.Unix(1e9, 0)
	p := &Publisher{began: now.Add(-began), sealed: now.Add(-sealed)}
	return p.wait(now)
}
