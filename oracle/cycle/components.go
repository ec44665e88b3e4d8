package cycle

import "iter"

// All are the nodes from 0 to n-1.
func All(n int) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for v := range int32(n) {
			if !yield(v) {
				return
			}
		}
	}
}

// Components calls each with the nodes of every strongly connected component of a digraph with n nodes, as far as roots lead to them (Tarjan 1972, without
// recursion), those first to which others lead. The list is good until each returns. next gives the node to which arc k of node v leads, or one below
// 0 if the arc does not count; it reports false behind the last arc.
func Components(n int, roots iter.Seq[int32], next func(v, k int32) (to int32, ok bool), each func(nodes []int32)) {
	index, low, on := make([]int32, n), make([]int32, n), make([]bool, n)
	type frame struct{ node, arc int32 }
	var stack []int32
	var work []frame
	count := int32(0)
	enter := func(v int32) {
		count++
		index[v], low[v], on[v] = count, count, true
		stack = append(stack, v)
		work = append(work, frame{v, 0})
	}
	for root := range roots {
		if index[root] != 0 {
			continue
		}
		for enter(root); len(work) > 0; {
			f := &work[len(work)-1]
			v := f.node
			if to, ok := next(v, f.arc); ok {
				f.arc++
				switch {
				case to < 0:
				case index[to] == 0:
					enter(to)
				case on[to]:
					low[v] = min(low[v], index[to])
				}
				continue
			}
			if work = work[:len(work)-1]; len(work) > 0 {
				p := work[len(work)-1].node
				low[p] = min(low[p], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			i := len(stack) - 1
			for stack[i] != v {
				i--
			}
			for _, w := range stack[i:] {
				on[w] = false
			}
			each(stack[i:])
			stack = stack[:i]
		}
	}
}
