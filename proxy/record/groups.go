package record

import (
	"wirecheck/history"
	"wirecheck/statement/condition"
)

// loggedGroups is a predicate read of which the log tells the groups (rewrite.ListOfLog).
type loggedGroups struct {
	read   int // its number among those of the event
	groups *condition.Groups
}

// complete puts what the log tells of the groups into the event. The images of rows that were read are there for this alone.
func (l *loggedGroups) complete(ev *history.Event, list []history.Access) {
	var rows []condition.Image
	certain := l != nil && ev.Coverage == history.CoverageExact
	for i := range list {
		if a := &list[i]; a.Op == history.OpRead && a.Image != "" {
			image, err := condition.ParseImage(a.Image)
			certain = certain && err == nil
			rows = append(rows, image)
			a.Image = ""
		} else {
			certain = false
		}
	}
	if !certain {
		return
	}
	read := &ev.Reads[l.read]
	where, err := condition.Parse(read.Where)
	known, ok := l.groups.Computed(rows)
	if err != nil || !ok {
		return
	}
	where, _ = where.Groups()
	read.Where, read.Groups = where.String(), known.Text()
}
