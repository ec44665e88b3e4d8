package mysqlwire

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/proxy/relay"
)

// gateText is how many bytes of a statement's text a gate gets.
const gateText = 1 << 10

// inTurn relays one command when its turn has come, see proxy.Gate.
func (o *observation) inTurn(ctx context.Context, f frame) (quit bool, err error) {
	gate := o.ps.Config.Gate
	if gate == nil || !executes(f.first) {
		return o.command(f)
	}
	text, err := o.gateText(f)
	if err != nil {
		return false, o.badClient(err, "command")
	}
	entering, stop := o.untilHangUp(ctx)
	err = gate.Enter(entering, o.ps, text)
	left := entering.Err() != nil && ctx.Err() == nil
	stop()
	switch {
	case left && relay.HungUp(o.server.raw):
		return true, o.unasked() // the server may have said why
	case left:
		return true, nil
	case err != nil:
		return false, o.fail(1, errorShutdown(), fmt.Errorf("wait for the statement's turn: %w", err))
	}
	o.victim = false
	quit, err = o.command(f)
	// The client may think about the answer as soon as it has it.
	if err == nil {
		err = o.flush()
	}
	gate.Done(o.ps, o.victim)
	return quit, err
}

// untilHangUp gives a context that ends also when the client or the server has ended its side of the connection.
func (o *observation) untilHangUp(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	for _, c := range []*conn{o.client, o.server} {
		if c.until(time.Time{}) != nil {
			continue // it is on its way out
		}
		watchers.Go(func() {
			if awaitHangUp(relay.RawOf(c.raw), relay.Ended) == io.EOF {
				cancel()
			}
		})
	}
	return ctx, func() {
		o.client.wake()
		o.server.wake()
		watchers.Wait()
		cancel()
	}
}

// executes reports whether a command may take locks or wait for them.
func executes(command byte) bool {
	switch command {
	case mysql.COM_QUERY, mysql.COM_STMT_EXECUTE, mysql.COM_STMT_FETCH, comBulkExecute, mysql.COM_CHANGE_USER, comResetConnection,
		mysql.COM_CREATE_DB, mysql.COM_DROP_DB, mysql.COM_FIELD_LIST:
		return true
	}
	return false
}

// gateText describes a command, for people.
func (o *observation) gateText(f frame) (string, error) {
	b, err := o.client.prefix(f, gateText)
	if err != nil {
		return "", err
	}
	switch f.first {
	case mysql.COM_QUERY:
		return strings.ToValidUTF8(string(b[1:]), "?"), nil
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		if len(b) >= 5 {
			if p := o.prepared.lookup(binary.LittleEndian.Uint32(b[1:])); p != nil {
				return p.sql[:min(len(p.sql), gateText)], nil
			}
		}
		return "execute", nil
	}
	return fmt.Sprintf("command %#x", f.first), nil
}
