package logs

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// zones are the abbreviations that log_timezone is printed as, where they mean one thing. IST, BST and CST mean several; what they mean
// most often is taken.
var zones = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
	"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
	"JST": 9, "KST": 9, "HKT": 8, "SGT": 8, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "SAST": 2,
}

// pgClock reads the times of a PostgreSQL log: 2026-11-20 09:31:14.281 UTC. Most lines have the same second as the one before.
type pgClock struct {
	day     string
	midnght int64
	zone    string
	offset  int64
	unknown []string
}

// read gives nanoseconds since 1970.
func (c *pgClock) read(s string) (int64, bool) {
	if len(s) < 19 || s[10] != ' ' && s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	if s[:10] != c.day {
		t, err := time.Parse(time.DateOnly, s[:10])
		if err != nil {
			return 0, false
		}
		c.day, c.midnght = strings.Clone(s[:10]), t.UnixNano()
	}
	h, ok1 := twoDigits(s[11:])
	m, ok2 := twoDigits(s[14:])
	sec, ok3 := twoDigits(s[17:])
	if !ok1 || !ok2 || !ok3 {
		return 0, false
	}
	ns := int64(h*3600+m*60+sec) * 1_000_000_000
	rest := s[19:]
	if strings.HasPrefix(rest, ".") {
		zone := strings.TrimLeft(rest[1:], "0123456789")
		ns += fraction(rest[1 : len(rest)-len(zone)])
		rest = zone
	}
	return c.midnght + ns - c.zoneOffset(strings.TrimSpace(rest)), true
}

func twoDigits(s string) (int, bool) {
	a, b := s[0]-'0', s[1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

// fraction reads decimals of a second as nanoseconds.
func fraction(s string) int64 {
	var v int64
	for i := range 9 {
		v *= 10
		if i < len(s) {
			v += int64(s[i] - '0')
		}
	}
	return v
}

func (c *pgClock) zoneOffset(zone string) int64 {
	if zone == c.zone {
		return c.offset
	}
	c.zone = strings.Clone(zone)
	hours, ok := zones[zone]
	if ok {
		c.offset = int64(hours) * int64(time.Hour)
		return c.offset
	}
	c.offset = 0
	if len(zone) >= 3 && (zone[0] == '+' || zone[0] == '-') { // log_timezone without a name for it: -03, +0530, +05:30
		digits := strings.ReplaceAll(zone[1:], ":", "")
		if v, err := strconv.Atoi((digits + "00")[:4]); err == nil {
			c.offset = int64(v/100)*int64(time.Hour) + int64(v%100)*int64(time.Minute)
			if zone[0] == '-' {
				c.offset = -c.offset
			}
			return c.offset
		}
	}
	if zone != "" && !slices.Contains(c.unknown, zone) && len(c.unknown) < 3 {
		c.unknown = append(c.unknown, c.zone)
	}
	return 0
}

// parseMS reads milliseconds with three decimals as nanoseconds.
func parseMS(s string) (int64, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	ms, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || ms < 0 || ms > 1<<40 || strings.Trim(frac, "0123456789") != "" {
		return 0, false
	}
	return ms*1_000_000 + fraction(frac)/1000, true
}
