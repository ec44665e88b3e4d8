package rewrite

import "wirecheck/statement/condition"

// BehindComparison is why it is not known what a change in the table of a subquery means, with whose value a condition compares a column.
const BehindComparison = "a comparison with a subquery may come out the same behind a change"

// ReadMoments reads the values of the hidden columns that Plan.Moments counts, up to the first one that is not told.
func ReadMoments(cells [][]byte) (values []condition.Value) {
	for _, list := range ReadLists(cells) {
		if list == nil {
			break
		}
		values = append(values, list...)
	}
	return values
}
