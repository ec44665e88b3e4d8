// Package recordtest has what tests of both protocols need to take up what all sessions of a recorder share.
package recordtest

import (
	"strings"
	"sync"

	"wirecheck/proxy/record"
)

// Occupy has as many long texts planned as may be, and as many wait as may, until end is called.
func Occupy(lanes *record.Lanes) (end func()) {
	const texts = 100 // more than that
	stop, known := make(chan struct{}), make(chan struct{}, texts)
	var g sync.WaitGroup
	for range texts {
		g.Go(func() {
			if !lanes.Plan(strings.Repeat("x", 1<<16), false, func() {
				known <- struct{}{}
				<-stop
			}) {
				known <- struct{}{}
			}
		})
	}
	for range texts - record.WaitLanes {
		<-known
	}
	return func() {
		close(stop)
		g.Wait()
	}
}

// Fill holds as many long messages as all sessions may, until end is called.
func Fill(r *record.Recorder) (end func()) {
	var others []record.Share
	for range 100 {
		s := r.Messages()
		for s.Takes(1 << 18) {
			s.Add(1 << 18)
		}
		others = append(others, s)
	}
	return func() {
		for i := range others {
			others[i].Forget()
		}
	}
}
