package inferred

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle"
)

// finding is an anomaly on its way to an oracle.Finding.
type finding struct {
	class oracle.Class
	txns  []int
	stmts [][]int // operations of each transaction
	key   string
	value string
	text  string
	edge  bool // there is a wr edge from the first to the second transaction
}

// mostOf bounds the findings of one class that are kept; further ones are counted with the last.
const mostOf = 20

// table stands for the keys in a finding's rows.
const table = "key"

func (c *checker) report(f finding) {
	out := oracle.Finding{Oracle: Descriptor.Name, Class: f.class, Kind: oracle.KindAnomaly, Tables: []string{table}, Seen: 1, Remedies: []oracle.Remedy{}}
	switch f.class {
	case g1a:
		out.Name = anomaly.AbortedRead
	case g1b:
		out.Name = anomaly.IntermediateRead
	case LostUpdate:
		out.Name = anomaly.LostUpdate
	}
	for i, t := range f.txns {
		out.Transactions = append(out.Transactions, c.public(i, t, f.stmts[i]))
	}
	out.Session = out.Transactions[len(out.Transactions)-1].Session
	e := oracle.Edge{From: 0, To: len(f.txns) - 1, Kind: oracle.EdgeWR, Row: history.Row{Table: table, Key: f.key}, FromVersion: f.value, ToVersion: f.value, Text: f.text,
		FromStatement: f.stmts[0][0] + 1, ToStatement: last(f.stmts[len(f.stmts)-1]) + 1}
	if !f.edge {
		e.FromVersion, e.ToVersion = "", ""
	}
	out.Edges = []oracle.Edge{e}
	if f.class == LostUpdate { // each overwrote what the other one had read
		e.Kind, e.FromStatement, e.ToStatement = oracle.EdgeRW, f.stmts[0][0]+1, f.stmts[1][1]+1
		back := e
		back.From, back.To, back.FromStatement, back.ToStatement = 1, 0, f.stmts[1][0]+1, f.stmts[0][1]+1
		out.Edges = []oracle.Edge{e, back}
	}
	c.publish(out, f.key)
}

func last(list []int) int { return list[len(list)-1] }

// publish keeps a finding unless there are enough of its class.
func (c *checker) publish(f oracle.Finding, what string) {
	n := c.seen[string(f.Class)]
	c.seen[string(f.Class)]++
	if n >= mostOf {
		for i := range slices.Backward(c.found) {
			if c.found[i].Class == f.Class {
				c.found[i].Seen++
				return
			}
		}
	}
	var ids []byte
	for _, t := range f.Transactions {
		ids = fmt.Appendf(ids, "%d ", t.ID)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x02%s\x02%s", f.Class, what, ids))
	f.ID = "WC-" + hex.EncodeToString(sum[:3])
	c.found = append(c.found, f)
}

// public is a transaction's part in a finding.
func (c *checker) public(i, t int, ops []int) oracle.Transaction {
	x := &c.h.Transactions[t]
	out := oracle.Transaction{Label: fmt.Sprintf("T%d", i+1), ID: x.ID, Session: x.Session, Outcome: x.Outcome, From: x.Begin, To: x.End}
	ops = slices.Compact(slices.Sorted(slices.Values(ops)))
	for _, n := range ops {
		if n < 0 || n >= len(x.Ops) {
			continue
		}
		op := &x.Ops[n]
		out.Statements = append(out.Statements, oracle.Statement{N: n + 1, Verb: []string{"select", "update", "insert"}[op.Kind], SQL: opText(op)})
	}
	return out
}

// opText is an operation as people read it.
func opText(op *observed.Op) string {
	switch op.Kind {
	case observed.Write:
		return "w " + op.Key + " " + op.Value
	case observed.Append:
		return "append " + op.Key + " " + op.Value
	}
	return "r " + op.Key + " " + resultText(op)
}

// reportCycle makes a finding of a cycle.
func (c *checker) reportCycle(g *graph, cycle []hop, sh shape, suffix oracle.Class) {
	edges := make([]edge, len(cycle))
	for i, h := range cycle {
		edges[i] = *g.evidence(h, sh)
	}
	f := circular(c, sh.class+suffix, edges)
	if suffix == "" {
		f.Name = nameOf(&f)
	}
	c.publish(f, "")
}

// circular is a finding of edges that make a cycle.
func circular(c *checker, class oracle.Class, edges []edge) oracle.Finding {
	// T1 is the transaction that comes first in the history.
	first := 0
	for i := range edges {
		if edges[i].from < edges[first].from {
			first = i
		}
	}
	edges = slices.Concat(edges[first:], edges[:first])
	f := oracle.Finding{Oracle: Descriptor.Name, Class: class, Kind: oracle.KindAnomaly, Tables: []string{table}, Seen: 1, Remedies: []oracle.Remedy{}}
	ops := make([][]int, len(edges))
	for i, e := range edges {
		ops[i] = append(ops[i], int(e.fromOp))
		ops[(i+1)%len(edges)] = append(ops[(i+1)%len(edges)], int(e.toOp))
	}
	for i, e := range edges {
		f.Transactions = append(f.Transactions, c.public(i, int(e.from), ops[i]))
	}
	for i := range edges {
		f.Edges = append(f.Edges, c.publicEdge(&edges[i], i, (i+1)%len(edges)))
	}
	if i := f.Stale(); i >= 0 {
		f.Edges = slices.Concat(f.Edges[i:], f.Edges[:i])
	}
	f.Session = f.Transactions[len(f.Transactions)-1].Session
	return f
}

// nameOf is the everyday name of a cycle.
func nameOf(f *oracle.Finding) string {
	count := map[oracle.EdgeKind]int{}
	rows := map[string]bool{}
	for i := range f.Edges {
		count[f.Edges[i].Kind]++
		rows[f.Edges[i].Row.Key] = true
	}
	n := len(f.Edges)
	switch {
	case f.Class == anomaly.G0:
		return anomaly.DirtyWrite
	case f.Class == anomaly.G1c:
		return anomaly.CircularFlow
	case f.Class == anomaly.GSingle && n == 2 && count[oracle.EdgeWW] == 1 && len(rows) == 1:
		return anomaly.LostUpdate
	case f.Class == anomaly.GSingle && n == 2 && count[oracle.EdgeWR] == 1 && len(rows) == 1:
		return anomaly.NonRepeatableRead
	case f.Class == anomaly.GSingle && count[oracle.EdgeWR] == n-1:
		return anomaly.ReadSkew
	case f.Class == anomaly.GNonadjacent && n == 4 && count[oracle.EdgeRW] == 2 && count[oracle.EdgeWR] == 2:
		return anomaly.LongFork
	case f.Class == anomaly.G2Item && n == 2 && len(rows) == 2:
		return anomaly.WriteSkew
	}
	return ""
}

func (c *checker) publicEdge(e *edge, from, to int) oracle.Edge {
	out := oracle.Edge{From: from, To: to}
	a, b := fmt.Sprintf("T%d", from+1), fmt.Sprintf("T%d", to+1)
	switch e.kind {
	case so:
		out.Kind, out.Text = oracle.EdgeSO, fmt.Sprintf("%s ended before %s began in the same session", a, b)
		return out
	case rt:
		out.Kind, out.Text = oracle.EdgeRT, fmt.Sprintf("%s ended before %s began", a, b)
		return out
	}
	x, y := c.op(access{e.from, e.fromOp}), c.op(access{e.to, e.toOp})
	out.FromStatement, out.ToStatement = int(e.fromOp)+1, int(e.toOp)+1
	out.Row, out.FromVersion, out.ToVersion = history.Row{Table: table, Key: y.Key}, resultText(x), resultText(y)
	switch e.kind {
	case ww:
		out.Kind, out.Text = oracle.EdgeWW, fmt.Sprintf("%s wrote %s to %s and %s then wrote %s", a, x.Value, x.Key, b, y.Value)
	case wr:
		out.Kind, out.Text = oracle.EdgeWR, fmt.Sprintf("%s wrote %s to %s, which %s read", a, x.Value, x.Key, b)
		out.ToVersion = x.Value
	default:
		out.Kind, out.Text = oracle.EdgeRW, fmt.Sprintf("%s read %s of %s, without %s, which %s wrote", a, resultText(x), x.Key, y.Value, b)
	}
	if e.forced {
		out.Text += "; in the other order, a read of " + x.Key + " does not give its value"
	}
	return out
}
