package mysqlwire

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// gateText is how much of a statement's text a gate is told, in bytes.
const gateText = 1 << 10

// inTurn relays one command when its turn has come, see proxy.Gate.
func (s *session) inTurn(ctx context.Context, f frame) (quit bool, err error) {
	gate := s.ps.Config.Gate
	if gate == nil || !executes(f.first) {
		return s.command(f)
	}
	text, err := s.gateText(f)
	if err != nil {
		return false, s.badClient(err, "command")
	}
	if err := gate.Enter(ctx, s.ps, text); err != nil {
		return false, s.fail(1, errorShutdown(), fmt.Errorf("wait for the statement's turn: %w", err))
	}
	s.victim = false
	quit, err = s.command(f)
	// The client may think about the answer as soon as it has it.
	if err == nil {
		err = s.flushBoth()
	}
	gate.Done(s.ps, s.victim)
	return quit, err
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

// gateText is what a command says, for people.
func (s *session) gateText(f frame) (string, error) {
	b, err := s.client.prefix(f, gateText)
	if err != nil {
		return "", err
	}
	switch f.first {
	case mysql.COM_QUERY:
		return strings.ToValidUTF8(string(b[1:]), "?"), nil
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		if len(b) >= 5 {
			if p := s.lookup(binary.LittleEndian.Uint32(b[1:])); p != nil {
				return p.sql[:min(len(p.sql), gateText)], nil
			}
		}
		return "execute", nil
	}
	return fmt.Sprintf("command %#x", f.first), nil
}
