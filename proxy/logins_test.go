package proxy

import (
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// crowd lets clients enter one after the other.
type crowd struct {
	t *testing.T
	l *logins
}

// client is one that tries to log in.
type client struct {
	entered chan *login
	ended   chan struct{}
	left    atomic.Bool
}

func (c *crowd) come() *client {
	one := &client{entered: make(chan *login, 1), ended: make(chan struct{})}
	c.l.enter(one.login())
	return one
}

// login is the client as the logins know it. It enters with nil if it has to go.
func (c *client) login() *login {
	one := &login{drop: func(bool) { c.entered <- nil }, end: sync.OnceFunc(func() { close(c.ended) }), left: c.left.Load}
	one.begin = func() { c.entered <- one }
	return one
}

func (c *crowd) waiting() int {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return len(c.l.waiting)
}

// TestLogins: who answers gets in, whoever else is silent; the last one that came is the first; nobody has to go as long as
// there are places, or while the server is what all wait for.
func TestLogins(t *testing.T) {
	c := crowd{t, &logins{most: 2, patience: time.Hour, limit: time.Hour}}
	silent, slow := c.come(), c.come()
	a, b := <-silent.entered, <-slow.entered
	c.l.awaits(a, true)
	third, fourth := c.come(), c.come()
	if len(third.entered)+len(fourth.entered) != 0 || c.waiting() != 2 {
		t.Fatal("more than two have a place")
	}
	c.l.leave(b) // it has logged in
	d := <-fourth.entered
	if d == nil || c.waiting() != 1 {
		t.Fatal("the last one that came is not the next one")
	}
	c.l.mu.Lock()
	a.owes = a.owes.Add(-2 * time.Hour)
	c.l.serve()
	c.l.mu.Unlock()
	<-silent.ended
	if e := <-third.entered; e == nil || !c.l.leave(a) || c.l.leave(d) {
		t.Error("the silent one has to go, and nobody else")
	}
	// one that has answered before has more time
	c.l.mu.Lock()
	c.l.places[0].owes, c.l.places[0].spoke = time.Now().Add(-2*time.Hour), true
	stays := c.l.places[0]
	c.l.mu.Unlock()
	// a client that sends a byte now and then is done for after a time
	fifth, sixth := c.come(), c.come()
	f := <-fifth.entered
	c.l.mu.Lock()
	f.began = f.began.Add(-slowFactor * time.Hour)
	c.l.serve()
	c.l.mu.Unlock()
	<-fifth.ended
	if <-sixth.entered == nil || stays.gone {
		t.Error("nobody took the place of the slow one, or another one had to go")
	}
}

// TestLoginsBounded: of too many that wait, the first ones go.
func TestLoginsBounded(t *testing.T) {
	c := crowd{t, &logins{most: 1, patience: time.Hour, limit: time.Hour}}
	<-c.come().entered
	first := c.come()
	for range waitingFactor - 1 {
		c.come()
	}
	c.come()
	if one := <-first.entered; one != nil || c.waiting() != waitingFactor {
		t.Errorf("got %v, %d wait", one, c.waiting())
	}
}

// TestLoginsSwept: while each place is taken, clients that come and go do not pile up, and nobody who waits has to go for them.
func TestLoginsSwept(t *testing.T) {
	const most = 4
	l := &logins{most: most, patience: time.Hour, limit: time.Hour}
	c := crowd{t, l}
	for range most {
		<-c.come().entered
	}
	var stay []*client
	for range most {
		stay = append(stay, c.come())
	}
	var gone []*client
	for range 2 * most * waitingFactor {
		one := c.come()
		if len(gone) > 0 {
			gone[len(gone)-1].left.Store(true) // it goes when another one has come
		}
		gone = append(gone, one)
		if n := c.waiting(); n > 3*most {
			t.Fatalf("%d wait, and %d of them are there", n, most+1)
		}
	}
	gone[len(gone)-1].left.Store(true)
	for i, one := range stay {
		if len(one.entered) > 0 {
			t.Errorf("client %d had to go for clients that are gone", i)
		}
	}
	l.mu.Lock()
	l.sweep()
	l.mu.Unlock()
	for _, one := range gone {
		if <-one.entered != nil {
			t.Fatal("a client that is gone got a place")
		}
	}
	if n := c.waiting(); n != most {
		t.Errorf("%d wait, and %d of them are there", n, most)
	}
}

// TestLoginsLimit: a client that has waited for too long has to go, and one that came later stays; at the end of the listener all go.
func TestLoginsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Minute
		c := crowd{t, &logins{most: 1, patience: time.Hour, limit: limit}}
		has := <-c.come().entered
		first := c.come()
		time.Sleep(limit / 2)
		second := c.come()
		time.Sleep(limit/2 - 1)
		synctest.Wait()
		if len(first.entered) > 0 {
			t.Fatal("it had to go too early")
		}
		time.Sleep(1)
		synctest.Wait()
		if len(first.entered) != 1 || <-first.entered != nil || len(second.entered) > 0 || c.waiting() != 1 {
			t.Fatal("the first one stays, or the second one goes")
		}
		c.l.close()
		late := c.come()
		if <-second.entered != nil || <-late.entered != nil || c.l.leave(has) {
			t.Error("one that waits, or comes, when all is over does not go, or one that is there does")
		}
	})
}

// TestLoginsTurns: those that come later, in whatever number, do not keep one from a place that came before, nor it the last one.
func TestLoginsTurns(t *testing.T) {
	c := crowd{t, &logins{most: 1, patience: time.Hour, limit: time.Hour}}
	one := <-c.come().entered
	first := c.come()
	for turn := range 2 {
		last := c.come()
		c.come()
		next := c.come()
		want := []*client{first, next}[turn]
		c.l.leave(one)
		if one = <-want.entered; one == nil {
			t.Fatalf("turn %d: the wrong one got the place", turn)
		}
		if len(last.entered) > 0 {
			t.Errorf("turn %d: one between the first and the last got a place", turn)
		}
	}
}

// TestLoginsLeft: a client that is gone gets no place, and costs nobody his; one that has ended after it said something is heard.
func TestLoginsLeft(t *testing.T) {
	c := crowd{t, &logins{most: 1, patience: time.Hour, limit: time.Hour}}
	slow := c.come()
	a := <-slow.entered
	stays, goes := c.come(), c.come()
	goes.left.Store(true)
	c.l.awaits(a, true)
	c.l.mu.Lock()
	a.owes = a.owes.Add(-2 * time.Hour)
	c.l.serve()
	c.l.mu.Unlock()
	<-slow.ended
	if one := <-goes.entered; one != nil {
		t.Error("a client that is gone got a place")
	}
	b := <-stays.entered
	if b == nil || c.waiting() != 0 {
		t.Fatal("the one that waits got no place")
	}
	// nobody has to go for one that is gone
	c.l.awaits(b, true)
	c.l.mu.Lock()
	b.owes = b.owes.Add(-2 * time.Hour)
	c.l.mu.Unlock()
	late := &client{entered: make(chan *login, 1), ended: make(chan struct{})}
	late.left.Store(true)
	c.l.enter(late.login())
	if <-late.entered != nil || c.l.leave(b) {
		t.Error("a client had to go for one that is gone, or that one got a place")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for text, want := range map[string]bool{"": true, "x": false} {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if left(conn) {
			t.Error("a client that is there is gone")
		}
		if _, err := io.WriteString(client, text); err != nil {
			t.Fatal(err)
		}
		client.Close()
		for n := 0; left(conn) != want && n < 1_000_000; n++ { // until the system has delivered the end
			runtime.Gosched()
		}
		if left(conn) != want {
			t.Errorf("a client that ends after %q: gone is %v", text, !want)
		}
	}
}
