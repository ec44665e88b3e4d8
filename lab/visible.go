package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Visible reads all tables as a session sees them now, its own uncommitted writes included, without loss. It fails in a transaction
// that has failed. A session that shows dates otherwise than servers do by default reads them so.
func (s *Stage) Visible(ctx context.Context, session int) ([]answer.Table, error) {
	if s.lab.contents == nil {
		return nil, errors.New("read a stage: it was not prepared")
	}
	m, b := s.lab.members[session], s.lab.config.Backend
	if m.lost {
		return nil, fmt.Errorf("session %d's connection is gone", session+1)
	}
	tables := slices.Clone(s.lab.contents.Tables)
	side := s.lab.side
	if b.NeverWaits { // the session may keep all others out
		side = m.conn
	}
	if changed, err := s.lab.changedFor(ctx, side); err != nil {
		return nil, err
	} else if changed {
		if tables, err = b.Lab.ReadTables(ctx, side); err != nil {
			return nil, err
		}
	}
	if len(tables) == 0 {
		return nil, nil
	}
	if b.Protocol == engine.ProtocolMySQL { // what is loaded is read in this time zone
		m.dirty = true
		if err := engine.Exec(ctx, m.conn, "SET @wirecheck_zone = @@time_zone, time_zone = '+00:00'"); err != nil {
			return nil, fmt.Errorf("read a stage: %w", err)
		}
	}
	err := b.Lab.ReadRows(ctx, m.conn, tables)
	if b.Protocol == engine.ProtocolMySQL {
		err = errors.Join(err, engine.Exec(ctx, m.conn, "SET time_zone = @wirecheck_zone"))
	}
	if err != nil {
		return nil, err
	}
	return plainTables(tables), nil
}
