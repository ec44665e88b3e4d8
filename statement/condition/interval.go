package condition

import "math"

// Interval is where the values of a column of integers lie in all rows for which a condition is not certainly false.
type Interval struct {
	Column   string
	From, To int64
}

// Interval gives such an interval; ok is false if the condition tells none. It holds as well where other parts of the condition are unknown.
func (c *Condition) Interval() (i Interval, ok bool) {
	if c.Op == "and" {
		for k := range c.Args {
			j, found := c.Args[k].Interval()
			switch {
			case found && !ok:
				i, ok = j, true
			case found && j.Column == i.Column:
				i.From, i.To = max(i.From, j.From), min(i.To, j.To)
			}
		}
		return i, ok
	}
	if c.Kind != Number || len(c.Values) == 0 || c.Term != nil {
		return i, false
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for _, v := range c.Values {
		n, small := Integer(v)
		if !small { // NULL, too: what is compared with it is not certainly false
			return i, false
		}
		least, most = min(least, n), max(most, n)
	}
	i = Interval{c.Column, math.MinInt64, math.MaxInt64}
	switch c.Op {
	case "=", "in":
		i.From, i.To = least, most
	case "<", "<=":
		i.To = most
	case ">", ">=":
		i.From = least
	default:
		return i, false
	}
	return i, true
}

// Integer is the number that a value is, if it is a whole one of at most 18 digits.
func Integer(v Value) (n int64, ok bool) {
	if v == nil {
		return 0, false
	}
	digits := *v
	negative := digits != "" && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if digits == "" || len(digits) > 18 {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = 10*n + int64(digits[i]-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
