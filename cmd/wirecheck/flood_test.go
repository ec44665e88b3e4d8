package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/internal/shop"
)

// TestFlood: clients that connect and do not log in, silent ones and ones that begin, disturb neither those who are at work
// nor those who come. They cost the server few connections, and nothing of them stays.
func TestFlood(t *testing.T) {
	const silent, busy, newcomers = 150, 20, 1
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, engine, "CREATE TABLE flood (id INT PRIMARY KEY, n INT)", "INSERT INTO flood VALUES (1, 0)")
			th := w.observe(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			before := descriptors(t)
			working, stop := context.WithCancel(ctx)
			var g errgroup.Group
			ready := make(chan struct{}, busy)
			for range busy {
				g.Go(func() error {
					c, err := th.target.Connect(ctx, shop.Driver)
					ready <- struct{}{}
					if err != nil {
						return err
					}
					for working.Err() == nil {
						if _, err := c.Do(ctx, "SELECT n FROM flood WHERE id = 1"); err != nil {
							return fmt.Errorf("a session at work: %w", err)
						}
					}
					return c.Close()
				})
			}
			for range busy {
				<-ready
			}
			var conns []net.Conn
			for i := range silent {
				conn, err := net.Dial("tcp", net.JoinHostPort(th.target.Host, strconv.Itoa(th.target.Port)))
				if err != nil {
					t.Fatal(err)
				}
				if i%2 == 1 { // begins a login and stops
					if _, err := conn.Write([]byte("\x00\x00\x00")); err != nil {
						t.Fatal(err)
					}
				}
				conns = append(conns, conn)
			}
			for range newcomers {
				c, err := th.target.Connect(ctx, shop.Driver)
				if err != nil {
					t.Fatalf("a client that logs in beside the flood: %v", err)
				}
				if _, err := c.Do(ctx, "SELECT 1"); err != nil {
					t.Fatal(err)
				}
				c.Close()
			}
			stop()
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			for _, conn := range conns {
				conn.Close()
			}
			for n := descriptors(t); n > before+10; n = descriptors(t) {
				if ctx.Err() != nil {
					t.Fatalf("%d descriptors before, %d after", before, n)
				}
				runtime.Gosched()
				time.Sleep(10 * time.Millisecond) // between two looks: nothing tells when a descriptor is closed
			}
			th.end()
		})
	}
}

// TestSlowLogin: the near miss. A client that takes its time logs in, if nobody waits for its place.
func TestSlowLogin(t *testing.T) {
	w := newWorld(t, "postgres")
	th := w.observe(t)
	conn, err := net.Dial("tcp", net.JoinHostPort(th.target.Host, strconv.Itoa(th.target.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	message := "\x00\x03\x00\x00user\x00" + th.target.User + "\x00database\x00" + th.target.Database + "\x00\x00"
	message = string([]byte{0, 0, 0, byte(len(message) + 4)}) + message
	for _, b := range []byte(message) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil || first[0] != 'R' {
		t.Errorf("%q, %v: want a request to authenticate", first, err)
	}
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
