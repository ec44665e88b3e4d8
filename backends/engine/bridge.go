package engine

import "wirecheck/answer"

// The types of package answer, under the names that they had here.
type (
	Answer      = answer.Answer
	Transaction = answer.State
	Result      = answer.Result
	Value       = answer.Value
	Column      = answer.Column
	ServerError = answer.Error
	Notice      = answer.Notice
	Outcome     = answer.Outcome
	Effect      = answer.Effect
	Reason      = answer.Reason
)

// The states, effects and reasons of package answer.
const (
	Idle                = answer.Idle
	Open                = answer.Open
	Failed              = answer.Failed
	EffectNone          = answer.EffectNone
	EffectStatement     = answer.EffectStatement
	EffectFailed        = answer.EffectFailed
	EffectRolledBack    = answer.EffectRolledBack
	EffectCommitted     = answer.EffectCommitted
	EffectGone          = answer.EffectGone
	ReasonDeadlock      = answer.ReasonDeadlock
	ReasonSerialization = answer.ReasonSerialization
	ReasonLockTimeout   = answer.ReasonLockTimeout
	ReasonNoWait        = answer.ReasonNoWait
	ReasonFailed        = answer.ReasonFailed
	ReasonCancelled     = answer.ReasonCancelled
	ReasonKilled        = answer.ReasonKilled
	ReasonServer        = answer.ReasonServer
	ReasonInternal      = answer.ReasonInternal
	ReasonOther         = answer.ReasonOther
)
