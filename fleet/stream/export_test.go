package stream

import "time"

// SetSilence says after which time a run that says nothing is taken for gone.
func (c *Collector) SetSilence(d time.Duration) { c.seq.silence = d }
