package condition

import (
	"slices"
	"strconv"
)

// Moment is the value of Open that the answer tells under a number: that of now() or of a subquery, say.
func Moment(n int) Value {
	v := "!" + strconv.Itoa(n)
	return &v
}

func isMoment(v Value) bool { return v != nil && (*v)[0] == '!' }

// At gives the condition with the values of Moment; nil stands for NULL. What the answer does not tell is not known.
func (c Condition) At(moments []Value) Condition {
	return c.opened(func(c Condition) bool { return slices.ContainsFunc(c.Values, isMoment) }, func(c Condition) Condition { return c.at(moments) })
}

func (c Condition) at(moments []Value) Condition {
	c.Values = slices.Clone(c.Values)
	for i, v := range c.Values {
		if !isMoment(v) {
			continue
		}
		n, err := strconv.Atoi((*v)[1:])
		if err != nil || n >= len(moments) {
			return Unknown("the answer does not tell a value that the server computed")
		}
		if moments[n] == nil {
			c.Values[i] = nil
			continue
		}
		text := "=" + *moments[n]
		c.Values[i] = &text
	}
	return c.Bind(func(int) (Value, bool) { return nil, false })
}
