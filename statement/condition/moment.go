package condition

import (
	"slices"
	"strconv"
)

// Moment is the value of Open that the answer tells under a number: that of now(), say.
func Moment(n int) Value {
	v := "!" + strconv.Itoa(n)
	return &v
}

func isMoment(v Value) bool { return v != nil && (*v)[0] == '!' }

// At gives the condition with the values of Moment; nil stands for one that is not known.
func (c Condition) At(moments []Value) Condition {
	if len(c.Args) > 0 {
		args := make([]Condition, len(c.Args))
		for i := range c.Args {
			args[i] = c.Args[i].At(moments)
		}
		c.Args = args
	}
	if c.Op != "parameters" || !slices.ContainsFunc(c.Values, isMoment) {
		return c
	}
	c.Values = slices.Clone(c.Values)
	for i, v := range c.Values {
		if !isMoment(v) {
			continue
		}
		n, err := strconv.Atoi((*v)[1:])
		if err != nil || n >= len(moments) || moments[n] == nil {
			return Unknown("the answer does not tell the time of the server")
		}
		text := "=" + *moments[n]
		c.Values[i] = &text
	}
	return c.Bind(func(int) (Value, bool) { return nil, false })
}
