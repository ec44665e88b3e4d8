package statement

import "strings"

// Names makes a set of the words of a text.
func Names(words string) map[string]bool {
	set := map[string]bool{}
	for n := range strings.FieldsSeq(words) {
		set[n] = true
	}
	return set
}

// Varying gives the reason why each function varies: words has the functions of each reason.
func Varying(words map[string]string) map[string]string {
	why := map[string]string{}
	for reason, list := range words {
		for n := range strings.FieldsSeq(list) {
			why[n] = reason
		}
	}
	return why
}
