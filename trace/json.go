package trace

import "fmt"

// The names of the enumerations, in JSON and in messages.
var (
	kindNames     = map[Kind]string{KindSession: "session", KindStatement: "statement", KindWait: "wait", KindEnd: "end", KindHistory: "history", KindNote: "note"}
	protocolNames = map[Protocol]string{
		ProtocolUnknown: "", ProtocolSimple: "simple", ProtocolPrepared: "prepared", ProtocolExecute: "execute", ProtocolFetch: "fetch",
	}
	waitNames = map[WaitState]string{WaitBegan: "began", WaitEnded: "ended", WaitDeadlock: "deadlock", WaitGaveUp: "gave up"}
)

func nameOf[K ~uint8](names map[K]string, k K) ([]byte, error) {
	if name, ok := names[k]; ok {
		return []byte(name), nil
	}
	return fmt.Appendf(nil, "%d", uint8(k)), nil
}

// MarshalText gives the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return nameOf(kindNames, k) }

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// MarshalText gives the protocol's name.
func (p Protocol) MarshalText() ([]byte, error) { return nameOf(protocolNames, p) }

// MarshalText gives the state's name.
func (w WaitState) MarshalText() ([]byte, error) { return nameOf(waitNames, w) }
