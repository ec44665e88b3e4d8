package logs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/trace"
)

func TestParameters(t *testing.T) {
	for s, want := range map[string][]trace.Param{
		"$1 = 'a'":                        {{Value: "a"}},
		"$1 = 'it''s, $2 = ''x', $2 = ''": {{Value: "it's, $2 = 'x"}, {}},
		"$1 = NULL, $2 = 'NULL'":          {{Null: true}, {Value: "NULL"}},
		"$1 = 'a\nb'":                     {{Value: "a\nb"}},
		"$1 = 'a":                         nil,
		"$1 = 'a' $2 = 'b'":               nil,
		"$2 = 'a'":                        nil,
		"$1 = a":                          nil,
		"$1 = ":                           nil,
		"$1 = 'a', ":                      nil,
		"$1 = '":                          nil,
	} {
		got, ok := parseParameters(s)
		if ok != (want != nil) || ok && !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", s, got, ok)
		}
	}
}

func TestTimes(t *testing.T) {
	for s, want := range map[string]string{
		"2026-11-20 09:31:14.281 UTC":    "2026-11-20T09:31:14.281Z",
		"2026-11-20 09:31:14.281 CET":    "2026-11-20T08:31:14.281Z",
		"2026-11-20 09:31:14 -03":        "2026-11-20T12:31:14Z",
		"2026-11-20 09:31:14.5 +0530":    "2026-11-20T04:01:14.5Z",
		"2026-11-20 09:31:14.281 NOWHER": "2026-11-20T09:31:14.281Z",
		"2026-13-20 09:31:14.281 UTC":    "",
		"2026-11-20 09:31":               "",
		"":                               "",
	} {
		var c pgClock
		at, ok := c.read(s)
		got := ""
		if ok {
			got = time.Unix(0, at).UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
		if strings.Contains(s, "NOWHER") && len(c.unknown) != 1 {
			t.Errorf("the unknown zone is not told")
		}
	}
	for s, want := range map[string]string{
		"261120  9:31:15": "2026-11-20T09:31:15Z", "261120 19:31:15": "2026-11-20T19:31:15Z", "2026-11-20T09:31:15.123456Z": "2026-11-20T09:31:15.123456Z",
		"2026-11-20T09:31:15.123456+01:00": "2026-11-20T08:31:15.123456Z", "261320  9:31:15": "", "2026": "",
	} {
		at, ok := parseMyTime(s)
		got := ""
		if ok {
			got = time.Unix(0, at).UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}
