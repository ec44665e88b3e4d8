// Package secret hides passwords in the texts that wirecheck keeps and shows.
package secret

import "regexp"

var urlPassword = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@\'"]*):[^\s/?#@\'"]+@`)

// URLs hides the passwords of the URLs in a text.
func URLs(text string) string { return urlPassword.ReplaceAllString(text, "$1:"+Mark+"@") }

// Mark stands in the place of a secret.
const Mark = "***"
