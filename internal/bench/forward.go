package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
)

// forward is the bare TCP forwarder: what any proxy costs at the least.
func forward(listen, upstream string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr())
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				fmt.Fprintln(os.Stderr, "forward:", err)
				client.Close()
				return
			}
			go pump(server, client)
			pump(client, server)
		}()
	}
}

// pump copies one direction through a plain buffer: io.Copy between TCP connections would use splice(2), which a proxy
// that looks at anything cannot.
func pump(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer)
	if err != nil && err != io.EOF {
		from.Close()
	}
	to.Close()
}

// startForwarder runs this program as a forwarder in a process of its own.
func startForwarder(upstream string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startProcess(exec.Command(self, "forward", fmt.Sprintf("127.0.0.1:%d", port), upstream), port)
}
