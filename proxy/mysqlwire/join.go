package mysqlwire

import (
	"errors"
	"io"
	"net"

	"golang.org/x/sync/errgroup"
)

// join copies both ways until both sides have ended. fromClient and fromServer were read before. When one side ends, join
// ends the same direction towards the other one, as the kernel does on a direct connection: a client may still read its
// last answer.
func join(client, up net.Conn, fromClient, fromServer []byte) error {
	if _, err := up.Write(fromClient); err != nil {
		return unlessClosed(err)
	}
	if _, err := client.Write(fromServer); err != nil {
		return unlessClosed(err)
	}
	var g errgroup.Group
	g.Go(func() error { return pump(up, client) })
	err := pump(client, up)
	// The server has ended, or the client takes nothing any more: nothing is left to wait for.
	client.Close()
	up.Close()
	return errors.Join(unlessClosed(err), unlessClosed(g.Wait()))
}

// pump copies one way. The kernel splices TCP connections.
func pump(dst, src net.Conn) error {
	_, err := io.Copy(dst, src)
	if w, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		return w.CloseWrite()
	}
	if err == nil {
		return dst.Close()
	}
	dst.Close()
	src.Close()
	return err
}

// unlessClosed turns the errors that mean no more than that a peer closed its connection into nil.
func unlessClosed(err error) error {
	var ne *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &ne):
		return nil
	}
	return err
}
