package wire

import (
	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/source"
)

// maxRowBytes of rows are kept of a statement's results together.
const maxRowBytes = 1 << 20

// collector collects a result within bounds.
type collector struct {
	most   int  // rows
	bytes  *int // of rows that were kept of the statement's results
	digest trace.Digest
	result trace.Result
	blind  bool // a row could not be seen whole, so there is no digest
}

// newCollector begins a result of a statement. bytes counts what is kept of all its results.
func newCollector(o *source.Options, bytes *int) *collector {
	most := o.Rows
	if most == 0 {
		most = source.DefaultRows
	}
	return &collector{most: most, bytes: bytes, result: trace.Result{Affected: trace.Unknown, Count: trace.Unknown}}
}

// maxResults are kept of one statement.
const maxResults = 1 << 14

// addResult adds a result to a statement's. Where some are left out the last one that is there is marked as not whole.
func addResult(st *trace.Statement, r trace.Result) {
	if len(st.Results) == maxResults {
		st.Results[maxResults-1].Partial = true
		return
	}
	st.Results = append(st.Results, r)
}

func (k *collector) columns(c []answer.Column) { k.result.Columns, k.result.Count = c, 0 }

// row takes a row, which may be kept; nil stands for one that was too large to look at.
func (k *collector) row(row []trace.Value) {
	k.result.Count = max(k.result.Count, 0) + 1
	if row == nil {
		k.blind, k.result.Partial = true, true
		return
	}
	k.digest.Add(row)
	size := 0
	for _, v := range row {
		size += len(v.Text) + 24
	}
	if k.room(size) {
		k.result.Rows = append(k.result.Rows, row)
	}
}

// text takes a row in text form, nil being NULL; it keeps nothing of it but a copy.
func (k *collector) text(row [][]byte) {
	k.result.Count = max(k.result.Count, 0) + 1
	k.digest.AddText(row)
	size := 24 * len(row)
	for _, v := range row {
		size += len(v)
	}
	if !k.room(size) {
		return
	}
	k.result.Rows = append(k.result.Rows, trace.Values(row))
}

// room tells whether a row is to be kept, and makes room for it.
func (k *collector) room(size int) bool {
	if k.result.Partial || len(k.result.Rows) >= k.most || *k.bytes+size > maxRowBytes {
		k.result.Partial = true
		return false
	}
	*k.bytes += size
	return true
}

// done gives the result.
func (k *collector) done() trace.Result {
	if k.result.Count != trace.Unknown && !k.blind {
		k.result.Digest = k.digest.String()
	}
	return k.result
}
