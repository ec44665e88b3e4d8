package panel

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wirecheck/backends"
	"wirecheck/lab"
)

// TestAheadEnds: a server that stands still while a case is executed keeps nobody waiting who resets an oracle's database at the same time: neither
// when the case passes its limit, nor when it ends before that, nor does an oracle wait for it that judges behind the case. A server that goes on then judges the next case; beside these stands one that never stood still.
func TestAheadEnds(t *testing.T) {
	list, err := Select("troc,crash")
	if err != nil {
		t.Fatal(err)
	}
	spec := parse(t, "setup { CREATE TABLE t (id INT PRIMARY KEY, n INT) }\nsetup { INSERT INTO t VALUES (1, 0) }\n"+
		"session s1\nstep a { UPDATE t SET n = 1 }\nsession s2\nstep b { SELECT n FROM t }\npermutation a b")
	refused := errors.New("not executed")
	for name, c := range map[string]struct {
		stop, execute, behind bool
		limit                 time.Duration
	}{
		"the case passes its limit": {true, true, false, 3 * time.Second},
		"the case ends at once":     {true, false, false, time.Minute},
		"behind the case":           {true, true, true, 2 * time.Second},
		"the server goes on":        {false, false, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := backends.Open(t.Context(), "mariadb")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			level, err := FindLevel(s.Engine, s.Engine.Default)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level, Case: c.limit}, list, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close(context.Background()) })
			signal := func(sig syscall.Signal) {
				err := syscall.Kill(s.Server.PID(), sig)
				if err == nil && sig == syscall.SIGSTOP { // until all its threads stand still it may answer
					err = unix.Waitid(unix.P_PID, s.Server.PID(), nil, unix.WSTOPPED|unix.WNOWAIT, nil)
				}
				if c.stop && err != nil {
					t.Error(err)
				}
			}
			judged := func() {
				t.Helper()
				d, err := b.Run(t.Context(), spec, spec.Permutations[0])
				if err != nil || d.Trouble != nil || d.Rulings[0].Unknown != "" {
					t.Fatalf("%+v, %v", d, err)
				}
			}
			judged()
			b.Around = func(execute func() error) error {
				if c.behind {
					defer signal(syscall.SIGSTOP)
				} else if c.stop {
					signal(syscall.SIGSTOP)
				}
				if c.execute {
					return execute()
				}
				return refused
			}
			t.Cleanup(func() { signal(syscall.SIGCONT) })
			done := make(chan error, 1)
			go func() {
				_, err := b.Run(t.Context(), spec, spec.Permutations[0])
				done <- err
			}()
			select {
			case err = <-done:
			case <-time.After(30 * time.Second): // ten times the first limit, half of the others
				signal(syscall.SIGCONT)
				<-done
				t.Fatal("it waits until the server goes on")
			}
			if err == nil || errors.Is(err, refused) == c.execute {
				t.Errorf("error %v", err)
			}
			signal(syscall.SIGCONT)
			if b.Around = nil; !c.execute { // else the panel's own connections were cut off, too
				judged()
				judged()
			}
		})
	}
}

// TestWatchedCrash: crash reports a server that ends in the midst of a statement also where the isolation oracle's proxy saw that first. Beside it a statement
// that harms nobody.
func TestWatchedCrash(t *testing.T) {
	t.Parallel()
	list, err := Select("isolation,crash")
	if err != nil {
		t.Fatal(err)
	}
	s, err := backends.Open(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	level, err := FindLevel(s.Engine, s.Engine.Default)
	if err != nil {
		t.Fatal(err)
	}
	for want, program := range []string{"true", "kill -9 $PPID"} {
		b, err := Open(t.Context(), s, lab.Config{Level: level}, list, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close(context.Background()) })
		spec := parse(t, "setup { CREATE TABLE t (id INT) }\nsession s1\nstep a { COPY t TO PROGRAM '"+program+"' }\npermutation a")
		d, err := b.Run(t.Context(), spec, spec.Permutations[0])
		if err != nil || len(d.Rulings) != 1 || len(d.Rulings[0].Findings) != want {
			t.Errorf("%s: %+v, %v", program, d.Rulings, err)
		}
	}
}
