package record

import (
	"strings"
	"testing"
)

// TestLanes: while a long text is planned, a few wait for it, others are not planned, and short ones and those that must be are.
func TestLanes(t *testing.T) {
	l := &Lanes{room: make(chan struct{}, 1)}
	long := strings.Repeat("x", longText+1)
	const texts = 50
	planned, refused, stop := make(chan int, texts), make(chan int, texts), make(chan struct{})
	for i := range texts {
		go func() {
			if !l.Plan(long, false, func() {
				planned <- i
				<-stop
			}) {
				refused <- i
			}
		}()
	}
	<-planned
	for range texts - 1 - WaitLanes {
		<-refused
	}
	if l.Plan(long, false, func() {}) {
		t.Error("one more was planned")
	}
	short := false
	if !l.Plan(long[:longText], false, func() { short = true }) || !short {
		t.Error("a short text was not planned")
	}
	must := make(chan bool)
	go func() { must <- l.Plan(long, true, func() {}) }()
	close(stop)
	for range WaitLanes {
		<-planned
	}
	if !<-must {
		t.Error("a text that must be planned was not")
	}
	if !l.Plan(long, false, func() {}) || len(refused) > 0 {
		t.Error("a text was not planned behind the others")
	}
}
