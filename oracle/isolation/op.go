package isolation

import "wirecheck/history"

// op is a history.Op in a byte.
type op uint8

const (
	opNone op = iota
	opRead
	opLock
	opMatch
	opInsert // from here on they write
	opUpdate
	opDelete
)

func (o op) writes() bool { return o >= opInsert }

func opOf(o history.Op) op {
	switch o {
	case history.OpRead:
		return opRead
	case history.OpLock:
		return opLock
	case history.OpMatch:
		return opMatch
	case history.OpInsert:
		return opInsert
	case history.OpUpdate:
		return opUpdate
	case history.OpDelete:
		return opDelete
	}
	return opNone
}
