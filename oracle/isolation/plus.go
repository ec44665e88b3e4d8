package isolation

import (
	"cmp"
	"maps"
	"reflect"
)

// Plus is what was counted here and elsewhere. Lost is not joined.
func (v Coverage) Plus(other Coverage) Coverage { return v.plus(other, 1) }

// plus adds what was counted elsewhere so many times.
func (v Coverage) plus(other Coverage, times int) Coverage {
	to, from := reflect.ValueOf(&v).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		switch field := to.Field(i); value := field.Interface().(type) {
		case int:
			field.SetInt(int64(value) + int64(times)*from.Field(i).Int())
		case string:
			field.SetString(cmp.Or(value, from.Field(i).String()))
		case map[string]int:
			sum := map[string]int{}
			maps.Copy(sum, value)
			for what, n := range from.Field(i).Interface().(map[string]int) {
				if sum[what] += times * n; sum[what] == 0 {
					delete(sum, what)
				}
			}
			if len(sum) == 0 {
				sum = nil
			}
			field.Set(reflect.ValueOf(sum))
		}
	}
	return v
}
