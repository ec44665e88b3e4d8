package live_test

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestHiddenGroupsBetween plays the forms of HAVING between two requests in autocommit. On MariaDB the session's log tells the groups with its next statement.
func TestHiddenGroupsBetween(t *testing.T) {
	newStand(t, 2, roomHours...).groupsBetween("")
}

// TestHiddenGroupsBetweenFamily plays them on MariaDB, or another product of the family.
func TestHiddenGroupsBetweenFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, roomHours...)
	not := "a count that HAVING hides; a count that HAVING hides, far below; a count of groups; a count of groups, of which none is new"
	if testserver.IsTiDB() || testserver.IsMySQL() {
		for _, f := range groupForms {
			not += "; " + f.name
		}
	}
	s.groupsBetween(not)
}

func (s *stand) groupsBetween(not string) {
	for _, f := range groupForms {
		s.fillRooms()
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared(true)
		for i, q := range []string{f.query, f.query, f.first, f.second, "SELECT n FROM mark WHERE id = 7", "SELECT n FROM mark WHERE id = 7"} {
			if _, err := ask(s.sessions[i%2], fmt.Sprintf("/*request_id='%d'*/ %s", i%2, q)); err != nil {
				s.t.Fatal(err)
			}
		}
		r := s.proxy.Checker.Result()
		found := len(r.Findings) > 0
		for what := range r.Coverage.Possibly {
			found = found || strings.HasPrefix(what, "write skew")
		}
		if want := f.all && !unjudged(f.name, not); found != want {
			s.t.Errorf("%s: found %t, want %t: %s; %s", f.name, found, want, names(r), r.Coverage)
		}
		if why := r.Coverage.Unread["HAVING hides groups"]; why > 0 && !unjudged(f.name, not) {
			s.t.Errorf("%s: not judged: %s", f.name, r.Coverage)
		}
	}
}
