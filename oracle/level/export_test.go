package level

// Model is a small history for brute force.
type Model struct {
	Txns  []Txn
	Reads func(t int, read func(row, from int), write func(row int)) // tells what a transaction did, in order; from -1: the initial version
	Rows  [][]int                                                    // by row: the transactions in the order of their versions
}

// Brute says which levels a history satisfies, by their definitions.
func Brute(x Model) map[string]bool {
	m := &model{txns: x.Txns, rows: x.Rows, ops: make([][]op, len(x.Txns))}
	for t := range x.Txns {
		x.Reads(t, func(row, from int) { m.ops[t] = append(m.ops[t], op{row: row, from: from}) }, func(row int) { m.ops[t] = append(m.ops[t], op{write: true, row: row}) })
	}
	return brute(m)
}
