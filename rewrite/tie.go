package rewrite

// Tie is a condition of an inner join that the columns of two tables are equal. Tables are named by their numbers.
type Tie struct {
	Table  [2]int
	Column [2]string
}

// Mirrored is the same condition with its sides exchanged.
func (t Tie) Mirrored() Tie {
	return Tie{[2]int{t.Table[1], t.Table[0]}, [2]string{t.Column[1], t.Column[0]}}
}

// Part is what the other tables of a join fall into without one of them. Tie is the only one between the two, the one table at its first side; nil if there
// are several, or none.
type Part struct {
	Members []int
	Tie     *Tie
}

// Parts gives the parts of a join of n tables without table i.
func Parts(n, i int, ties []Tie) (parts []Part) {
	first := make([]int, n) // the first table of its part
	for k := range first {
		first[k] = k
	}
	for range first {
		for _, t := range ties {
			if a, b := t.Table[0], t.Table[1]; a != i && b != i {
				first[a] = min(first[a], first[b])
				first[b] = first[a]
			}
		}
	}
	for p := range first {
		if p == i || first[p] != p {
			continue
		}
		var part Part
		for k := range first {
			if k != i && first[k] == p {
				part.Members = append(part.Members, k)
			}
		}
		count := 0
		for _, t := range ties {
			if t.Table[1] == i {
				t = t.Mirrored()
			}
			if t.Table[0] == i && first[t.Table[1]] == p {
				part.Tie, count = &t, count+1
			}
		}
		if count > 1 {
			part.Tie = nil
		}
		parts = append(parts, part)
	}
	return parts
}
