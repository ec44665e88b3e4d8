package observed

import "wirecheck/history"

// order is what a history of registers shows of the order of each key's versions. A version comes behind the one that its writer had read or written before, and
// any other one behind the initial one. Where no two come behind the same one, that is the order of all.
type order struct {
	place  map[[2]string]uint64 // of the versions of keys whose order is known
	behind map[[2]string]string // of a version, or of the initial one (the empty text): the first one that comes behind it
	open   map[string]bool      // the keys whose order is not known
	// nowhere: a value was read that cannot have been there before the history. Nobody wrote it, and another one was there.
	nowhere bool
}

func orderOf(h *History) *order {
	o := &order{place: map[[2]string]uint64{}, behind: map[[2]string]string{}, open: map[string]bool{}}
	writes := map[string]int{}
	written, read := map[[2]string]bool{}, map[[2]string]bool{} // written: false if it was rolled back
	before, initial := map[string]int{}, map[string]bool{}      // values of a key that were read and that nobody wrote; keys that were read as they were
	for i := range h.Transactions {
		t := &h.Transactions[i]
		has := map[string]string{} // the version that it has of each key
		for k := range t.Ops {
			op := &t.Ops[k]
			switch {
			case op.Kind == Read && !op.Unknown && t.Outcome == history.OutcomeCommitted:
				if has[op.Key] = op.Value; op.Initial {
					has[op.Key], initial[op.Key] = "", true
				} else {
					read[[2]string{op.Key, op.Value}] = true
				}
			case op.Kind == Write && t.Outcome == history.OutcomeAborted:
				at := [2]string{op.Key, op.Value}
				if _, had := written[at]; !had {
					written[at] = false
				}
			case op.Kind == Write:
				before, at := [2]string{op.Key, has[op.Key]}, [2]string{op.Key, op.Value}
				_, two := o.behind[before]
				if two || written[at] || t.Outcome != history.OutcomeCommitted {
					o.open[op.Key] = true
				}
				if !two && before != at {
					o.behind[before] = op.Value
				}
				has[op.Key], written[at] = op.Value, true
				writes[op.Key]++
			}
		}
	}
	for at := range read {
		if _, some := written[at]; some {
			continue
		}
		before[at[0]]++ // it was there before, or came from nowhere
		o.nowhere = o.nowhere || h.KnownInitial || initial[at[0]] || before[at[0]] > 1
		if writes[at[0]] > 0 {
			o.open[at[0]] = true
		}
	}
	for key, n := range writes {
		var list []string
		for v, ok := o.behind[[2]string{key, ""}]; ok && len(list) < n; v, ok = o.behind[[2]string{key, v}] {
			list = append(list, v)
		}
		if len(list) < n {
			o.open[key] = true
		}
		for i, v := range list {
			if !o.open[key] {
				o.place[[2]string{key, v}] = history.OrderInitial + 1 + uint64(i)
			}
		}
	}
	return o
}

// Unordered is how many keys of a history of registers have versions in an order that it does not show.
func (h *History) Unordered() int { return len(orderOf(h).open) }
