package scheduler

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the scripts give into testdata")

// TestScripts plays testdata/*.txt. A script is a list of paragraphs: commands, a line of dashes, what they print. Sessions
// count from 1, as in the names of steps.
//
//	new listed NAME...        a fresh core with that strategy; also: new recorded SESSION..., new random SEED,
//	                          new pct DEPTH STEPS SEED
//	join N                    N sessions join
//	offer SESSION [NAME]      and withdraw, finish SESSION [victim], idle, leave
//	wait SESSION[:SESSION,...]...   every step that is with the server waits, for those after the colon
//	next                      prints the decision
//	schedule                  prints the whole schedule
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playScript(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// playScript gives the script with what it printed in the place of what it was expected to print.
func playScript(text string) string {
	var out strings.Builder
	var p player
	for i, paragraph := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, expects := strings.Cut(paragraph+"\n", "----\n")
		out.WriteString(commands)
		for line := range strings.Lines(commands) {
			p.command(strings.TrimSpace(line))
		}
		if printed := p.out.String(); expects || printed != "" {
			out.WriteString("----\n" + printed)
		}
		p.out.Reset()
	}
	return out.String()
}

// player carries out commands.
type player struct {
	core *Core
	out  bytes.Buffer
}

func (p *player) command(line string) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(&p.out, "panic: %v\n", r)
		}
	}()
	verb, args := words[0], words[1:]
	switch verb {
	case "new":
		p.core = NewCore(strategyNamed(args))
	case "join":
		for range number(args[0]) {
			p.core.Join()
		}
	case "next":
		fmt.Fprintln(&p.out, decisionText(p.core.Next()))
	case "schedule":
		p.out.WriteString(scheduleText(p.core.Schedule()))
	case "wait":
		p.core.Wait(waitsOf(args))
	default:
		p.session(verb, Session(number(args[0])-1), args[1:])
	}
}

func (p *player) session(verb string, s Session, args []string) {
	switch verb {
	case "offer":
		p.core.Offer(s, strings.Join(args, " "))
	case "withdraw":
		p.core.Withdraw(s)
	case "finish":
		p.core.Finish(s, len(args) > 0 && args[0] == "victim")
	case "idle":
		p.core.Idle(s)
	case "leave":
		p.core.Leave(s)
	default:
		fmt.Fprintf(&p.out, "no verb %q\n", verb)
	}
}

func strategyNamed(words []string) Strategy {
	args := words[1:]
	switch words[0] {
	case "listed":
		return Listed(args)
	case "recorded":
		var order []Session
		for _, word := range args {
			order = append(order, Session(number(word)-1))
		}
		return Recorded(order)
	case "random":
		return Random(seeded(number(args[0])))
	case "pct":
		return PCT(number(args[0]), number(args[1]), seeded(number(args[2])))
	}
	panic("no strategy " + words[0])
}

func seeded(seed int) func(n int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

// waitsOf reads "2:1 3:1,2".
func waitsOf(words []string) map[Session][]Session {
	waits := map[Session][]Session{}
	for _, word := range words {
		who, others, _ := strings.Cut(word, ":")
		var whom []Session
		for _, other := range strings.FieldsFunc(others, func(r rune) bool { return r == ',' }) {
			whom = append(whom, Session(number(other)-1))
		}
		waits[Session(number(who)-1)] = whom
	}
	return waits
}

func decisionText(d Decision) string {
	switch d.Verdict {
	case Go:
		return "go " + d.Step.Name
	case Stuck:
		return "stuck" + listText(" idle", d.Idle)
	case Quiet:
		return "quiet"
	}
	return "unsettled" + listText(" think", d.Think) + listText(" ask", d.Ask)
}

func listText(title string, sessions []Session) string {
	if len(sessions) == 0 {
		return ""
	}
	words := make([]string, len(sessions))
	for i, s := range sessions {
		words[i] = strconv.Itoa(int(s) + 1)
	}
	return title + " " + strings.Join(words, ",")
}

func scheduleText(schedule []Event) string {
	var b strings.Builder
	for _, e := range schedule {
		name := e.Step.Name
		if e.Kind == EventLeave {
			name = strings.TrimSpace(fmt.Sprintf("%d %s", e.Step.Session+1, name))
		}
		fmt.Fprintf(&b, "%v %s%s\n", e.Kind, name, listText(" for", e.For))
	}
	return b.String()
}
