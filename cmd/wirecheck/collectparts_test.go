package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"wirecheck/oracle"
)

// parted is what so many parts and the collector behind them find in what was published, and what they say.
func (f *fleetOf) parted(t *testing.T, parts int) (found []oracle.Finding, said string) {
	t.Helper()
	for i := range parts {
		_, text, status := command(t, "collect", "--from", f.where, "--fleet", f.name, "--part", fmt.Sprintf("%d/%d", i+1, parts), "--until-end")
		if said += text; status != exitClean {
			t.Errorf("part %d ends with %d\n%s", i+1, status, text)
		}
	}
	out, text, status := command(t, "collect", "--from", f.where, "--fleet", f.name, "--parts", fmt.Sprint(parts), "--until-end", "--format", "json")
	var got struct{ Findings []oracle.Finding }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	want := exitClean // and not exitUnknown: something was seen
	if len(got.Findings) > 0 {
		want = exitFound
	}
	if status != want {
		t.Errorf("exit status %d, want %d\n%s", status, want, text)
	}
	return got.Findings, said + text
}

// TestCollectParts: two parts and the collector behind them report of three proxies what one proxy reports. TestCollectAnomalies has the other levels.
func TestCollectParts(t *testing.T) {
	t.Parallel()
	levels := []string{"READ COMMITTED"}
	spreadOut(t, map[string][]string{"postgres": levels, "mariadb": levels}, func(t *testing.T, f *fleetOf) ([]oracle.Finding, string) { return f.parted(t, 2) })
}

// TestCollectPartsKilled: a part and the collector behind the parts are killed, again and again, and a part is started twice. Each finding is in the list
// once, and is counted as often as it happened.
func TestCollectPartsKilled(t *testing.T) {
	t.Parallel()
	w, f, lost := lostUpdates(t, "parts")
	start := func(args ...string) *program {
		p := startProgram(t, append([]string{"collect", "--from", f.where, "--fleet", f.name}, args...)...)
		p.until(t, "it collects", func() bool { return strings.Contains(p.stderr.String(), "collecting") })
		return p
	}
	kill := func(p *program) {
		if err := p.cmd.Process.Kill(); err != nil && !(errors.Is(err, os.ErrProcessDone) && strings.Contains(p.stderr.String(), "another process has this part")) {
			t.Fatal(err)
		}
		<-p.ended
	}
	for want := 1; want <= 3; want++ {
		one, two, center := start("--part", "1/2"), start("--part", "2/2"), start("--parts", "2")
		if want == 2 {
			second := start("--part", "1/2") // takes the part over
			defer func() { <-second.ended }()
			defer kill(second)
		}
		lost.spread(t, w, "REPEATABLE READ", 2)
		f.published(t)
		switch want {
		case 1:
			center.until(t, "it has the finding", func() bool { return strings.Contains(center.stderr.String(), "anomaly found") })
		case 2:
			kill(two)
			two = start("--part", "2/2")
		}
		kill(one)
		kill(two)
		kill(center)
		got, said := f.parted(t, 2)
		if len(got) != 1 || got[0].Seen != want {
			t.Fatalf("%v, want one finding, seen %d times\n%s", got, want, said)
		}
	}
}

// TestCollectPartsMissing: where one part is not at work, nothing is judged, and that is said; when it has been, all is.
func TestCollectPartsMissing(t *testing.T) {
	t.Parallel()
	w, f, lost := lostUpdates(t, "missing")
	lost.spread(t, w, "REPEATABLE READ", 2)
	f.published(t)
	run := func(args ...string) (said string, status exitStatus) {
		_, said, status = command(t, append([]string{"collect", "--from", f.where, "--fleet", f.name, "--until-end"}, args...)...)
		return said, status
	}
	if said, status := run("--part", "2/2"); status != exitClean {
		t.Fatal(said)
	}
	if said, status := run("--parts", "2"); status == exitFound || !strings.Contains(said, "1/2") || !strings.Contains(said, "not at work") {
		t.Errorf("status %d\n%s", status, said)
	}
	if said, status := run("--part", "1/2"); status != exitClean {
		t.Fatal(said)
	}
	if said, status := run("--parts", "2"); status != exitFound || strings.Contains(said, "not at work") {
		t.Errorf("status %d\n%s", status, said)
	}
	for _, args := range [][]string{{"--part", "3/2"}, {"--part", "1/2", "--parts", "2"}, {"--parts", "2", "--explain-coverage"}, {"--parts", "-1"}} {
		if said, status := run(args...); status != exitFailed {
			t.Errorf("%v: status %d\n%s", args, status, said)
		}
	}
}
