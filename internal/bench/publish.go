package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"wirecheck/internal/natsserver"
)

// benchPublish measures what publishing costs: with the NATS server in the proxy, with one in a process of its own, and with a collector that reads
// meanwhile. The processor time of a server of its own and of the collector is not in the figures; where there are few cores, their use is in the throughput.
func benchPublish(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	publish := func(to, how string) error {
		return benchPair(ctx, o, pair{without: "observe", with: "published " + how, flags: [2][]string{nil, {"--publish", to}}})
	}
	if err := publish("embedded:"+filepath.Join(dir, "embedded"), "embedded"); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd, err := natsserver.Command(port, filepath.Join(dir, "nats"))
	if err != nil {
		return err
	}
	server, err := startProcess(cmd, port)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	to := fmt.Sprintf("nats://127.0.0.1:%d", port)
	if err := publish(to, "to a server"); err != nil {
		return err
	}
	page, err := freePort()
	if err != nil {
		return err
	}
	collector, err := startProcess(exec.Command(o.wirecheck, "collect", "--from", to, "--log-level", "warn", "--http", fmt.Sprintf("127.0.0.1:%d", page)), page)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()
	return publish(to, "and collected")
}
