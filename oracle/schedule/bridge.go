package schedule

import "wirecheck/answer"

// The types of package answer, under the names that they had here.
type (
	State           = answer.State
	Answer          = answer.Result
	Error           = answer.Error
	Value           = answer.Value
	Column          = answer.Column
	Table           = answer.Table
	Difference      = answer.Difference
	TableDifference = answer.TableDifference
)

// The states.
const (
	Idle   = answer.Idle
	Open   = answer.Open
	Failed = answer.Failed
)

// DiffRows is answer.DiffRows.
func DiffRows(want, got [][]Value) Difference { return answer.DiffRows(want, got) }

// DiffTables is answer.DiffTables.
func DiffTables(want, got []Table) []TableDifference { return answer.DiffTables(want, got) }
