package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"wirecheck/fleet/stream"
	"wirecheck/oracle"
	"wirecheck/proxy"
	"wirecheck/report"
)

// Notice is a finding between sessions of several proxies, for one of them. Who judges the proxies together sends it.
type Notice struct {
	Finding oracle.Finding `json:"finding"`
	// Sessions are the numbers that the receiver gave to its sessions, by those that the finding gives them.
	Sessions map[uint64]uint64 `json:"sessions"`
}

// The bounds of what a notice may have, and of the notices that are kept for questions about them.
const (
	noticeBytes    = 1 << 20
	noticeParts    = 200 // transactions, edges, sessions
	noticeLines    = 100 // statements of a transaction
	noticesAtMost  = 1000
	noticesInBytes = 16 << 20
)

var findingID = regexp.MustCompile(`^WC-[0-9a-f]{6,16}$`)

// parseNotice reads a notice. Anybody may have sent it: one that cannot be told is an error.
func parseNotice(data []byte) (*Notice, error) {
	var n Notice
	if len(data) > noticeBytes {
		return nil, fmt.Errorf("it has %d bytes", len(data))
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, err
	}
	f := &n.Finding
	switch {
	case !findingID.MatchString(f.ID):
		return nil, fmt.Errorf("%.20q is no id of a finding", f.ID)
	case len(f.Edges) == 0 || len(f.Transactions) > noticeParts || len(f.Edges) > noticeParts || len(n.Sessions) > noticeParts || f.Difference != nil:
		return nil, errors.New("it has no cycle of transactions")
	}
	for i := range f.Edges {
		if e := &f.Edges[i]; min(e.From, e.To) < 0 || max(e.From, e.To) >= len(f.Transactions) {
			return nil, fmt.Errorf("dependency %d has no transaction", i+1)
		}
	}
	for i := range f.Transactions {
		if len(f.Transactions[i].Statements) > noticeLines+len(f.Edges) {
			return nil, fmt.Errorf("transaction %d has too many statements", i+1)
		}
	}
	for as := range n.Sessions {
		if as == 0 || !slices.Contains(f.Parties(), as) {
			return nil, fmt.Errorf("session %d takes no part", as)
		}
	}
	return &n, proxy.Catch(func() error { // what a finding of the oracle cannot have
		for _, r := range []report.Reader{{}, {Others: true}, {Session: f.Transactions[0].Session}} {
			report.Warning(*f, r)
			report.Explain(*f, r)
		}
		return nil
	})
}

// notices are those that were taken, each finding once, the oldest first.
type notices struct {
	list  []notice
	bytes int
	heard stream.Heard
	wrong uint64 // messages that were left out
}

type notice struct {
	*Notice
	size int
}

// Hear takes the message of a Notice, and warns the sessions at their next answers. A message that is none is an error; it changes nothing.
func (l *Checker) Hear(data []byte) (stream.Heard, error) {
	n, err := parseNotice(data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return stream.Heard{}, l.leaveOut(err)
	}
	var heard stream.Heard
	err = proxy.Catch(func() error {
		for _, as := range slices.Sorted(maps.Keys(n.Sessions)) {
			if l.audience.tell(n.Finding, n.Sessions[as], as) {
				heard.Told++
			} else {
				heard.Ended++
			}
		}
		return nil
	})
	if err != nil {
		return stream.Heard{}, l.leaveOut(err)
	}
	l.notices.heard.Told += heard.Told
	l.notices.heard.Ended += heard.Ended
	if l.notices.keep(n, len(data)) {
		l.log.Info().Str("finding", n.Finding.ID).Str("name", n.Finding.Title()).
			Msg("wirecheck collect found an anomaly between sessions of this proxy and of another one")
	}
	return heard, nil
}

// leaveOut counts a message that is no warning. The log says the first one.
func (l *Checker) leaveOut(err error) error {
	if l.notices.wrong++; l.notices.wrong == 1 {
		l.log.Warn().Err(err).Msg("a message for this proxy is no warning of wirecheck collect: such messages are left out")
	}
	return err
}

// keep keeps a notice for questions. It reports whether its finding is a new one.
func (k *notices) keep(n *Notice, size int) bool {
	for i := range k.list {
		if old := &k.list[i].Finding; old.ID == n.Finding.ID {
			old.Seen = max(old.Seen, n.Finding.Seen)
			return false
		}
	}
	for len(k.list) > 0 && (len(k.list) >= noticesAtMost || k.bytes+size > noticesInBytes) {
		k.bytes -= k.list[0].size
		k.list = k.list[1:]
	}
	k.list = append(k.list, notice{n, size})
	k.bytes += size
	return true
}

// ids are those of the findings.
func (k *notices) ids() (list []string) {
	for _, n := range k.list {
		list = append(list, n.Finding.ID)
	}
	return list
}

// as is the number that the finding gives to a session; 0: the session takes no part.
func (n *Notice) as(session uint64) uint64 {
	for as, own := range n.Sessions {
		if own == session {
			return as
		}
	}
	return 0
}
