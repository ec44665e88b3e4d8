package isolation

import (
	"cmp"
	"maps"
	"reflect"
)

// Plus is what was counted here and elsewhere. Lost is not joined.
func (v Coverage) Plus(other Coverage) Coverage {
	to, from := reflect.ValueOf(&v).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		switch field := to.Field(i); value := field.Interface().(type) {
		case int:
			field.SetInt(int64(value) + from.Field(i).Int())
		case string:
			field.SetString(cmp.Or(value, from.Field(i).String()))
		case map[string]int:
			sum := map[string]int{}
			maps.Copy(sum, value)
			for what, n := range from.Field(i).Interface().(map[string]int) {
				sum[what] += n
			}
			if len(sum) > 0 {
				field.Set(reflect.ValueOf(sum))
			}
		}
	}
	return v
}
