package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// idleSessions gives how many sessions benchIdle opens: 10,000 if the system allows so many descriptors. Both this process and
// the proxy hold two of each session.
func idleSessions() int {
	const want = 10_000
	limit := syscall.Rlimit{Cur: 2*want + 500, Max: 2*want + 500}
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) == nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return want
	}
	return min(want, int(limit.Cur)/2-250)
}

// benchIdle opens sessions that do nothing, in front of a server that only lets clients log in, and prints the process's
// largest resident set.
func benchIdle(ctx context.Context, o options) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			go welcome(c)
		}
	}()
	sessions := idleSessions()
	for _, mode := range []string{"pass", "observe"} {
		if err := idle(ctx, o, l.Addr().String(), mode, sessions); err != nil {
			return fmt.Errorf("idle sessions, %s: %w", mode, err)
		}
	}
	return nil
}

func idle(ctx context.Context, o options, upstream, mode string, sessions int) (err error) {
	p, err := startProxy(o, "postgres", upstream, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	began := time.Now()
	startup := []byte("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00")
	startup[3] = byte(len(startup))
	for range sessions {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write(startup); err != nil {
			return err
		}
		in := bufio.NewReaderSize(c, 64)
		for kind := byte(0); kind != 'Z'; {
			if kind, err = message(in); err != nil {
				return err
			}
		}
	}
	peak, err := p.peak()
	if err == nil {
		fmt.Printf("postgres, %s: %d idle sessions, opened in %.1f s, largest resident set %.0f MiB\n", mode, sessions, time.Since(began).Seconds(), peak)
	}
	return err
}

// welcome lets anyone log in and refuses all that is asked.
func welcome(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 64)
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return
	}
	if _, err := in.Discard(int(binary.BigEndian.Uint32(size[:])) - 4); err != nil {
		return
	}
	answer := "R\x00\x00\x00\x08\x00\x00\x00\x00S\x00\x00\x00\x19client_encoding\x00UTF8\x00K\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x02Z\x00\x00\x00\x05I"
	for {
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
		answer = "E\x00\x00\x00\x17SERROR\x00C42501\x00Mno\x00\x00Z\x00\x00\x00\x05I"
		for kind := byte(0); kind != 'S' && kind != 'Q'; {
			var err error
			if kind, err = message(in); err != nil {
				return
			}
		}
	}
}

// message reads a message and gives its kind.
func message(in *bufio.Reader) (byte, error) {
	var h [5]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return 0, err
	}
	_, err := in.Discard(int(binary.BigEndian.Uint32(h[1:])) - 4)
	return h[0], err
}
