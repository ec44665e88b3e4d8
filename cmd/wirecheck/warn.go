package main

import (
	"encoding/json"
	"time"

	"wirecheck/fleet/stream"
	"wirecheck/live"
	"wirecheck/oracle"
)

// warnPatience is how long a collector at its end waits until the proxies have taken its warnings.
const warnPatience = 2 * time.Second

// warn sends a finding to the proxies whose sessions take part. One between sessions of one proxy alone that proxy tells itself.
func (k *collecting) warn(f oracle.Finding) error {
	of := map[string]map[uint64]uint64{}
	runs, ended := map[string]bool{}, 0
	for _, session := range f.Parties() {
		if run, own, open := k.owner(session); !open {
			ended++
		} else if of[run] == nil {
			of[run] = map[uint64]uint64{session: own}
		} else {
			of[run][session] = own
		}
	}
	for i := range f.Transactions {
		runs[f.Transactions[i].Proxy] = true
	}
	if len(runs) < 2 {
		return nil
	}
	k.warner.Ended(ended)
	f.Seen = k.ledger.Seen(f.ID)
	for run, sessions := range of {
		text, err := json.Marshal(live.Notice{Finding: f, Sessions: sessions})
		if err != nil {
			return err
		}
		k.warner.Send(run, len(sessions), text)
	}
	return nil
}

// warned closes the warner and tells the log what became of the warnings.
func (k *collecting) warned() {
	if s := k.warner.Close(warnPatience); s != (stream.Warned{}) {
		k.log.Info().Uint64("told", s.Told).Uint64("ended", s.Ended).Uint64("gone", s.Gone).
			Msg("sessions were warned of anomalies between proxies; those that had ended, or whose proxy was gone, were not")
	}
}

// hear has the proxy's sessions warned of what wirecheck collect finds between them and others.
func (p *publishing) hear(l *live.Checker, fleet string) error {
	if p == nil {
		return nil
	}
	return stream.Hear(p.bus, fleet, p.run, l.Hear)
}
