package inferred

import (
	"slices"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/product"
)

// forbidden are the classes that a level forbids in addition to the ones before it in levels (Adya 1999, chapter 4; elle.consistency-model).
var forbidden = []struct {
	level   string
	classes []oracle.Class
}{
	{product.ReadUncommitted, []oracle.Class{anomaly.G0, DuplicateElements, CyclicVersions}},
	{product.ReadCommitted, []oracle.Class{anomaly.G1a, anomaly.G1b, anomaly.G1c, IncompatibleOrder, anomaly.DirtyUpdate, anomaly.FutureRead, GarbageRead}},
	{product.Snapshot, []oracle.Class{anomaly.Internal, anomaly.GSingle, anomaly.GNonadjacent, LostUpdate}},
	{product.RepeatableRead, []oracle.Class{anomaly.Internal, anomaly.GSingle, anomaly.GNonadjacent, anomaly.G2Item, LostUpdate}},
	{product.Serializable, []oracle.Class{anomaly.Internal, anomaly.GSingle, anomaly.GNonadjacent, anomaly.G2Item, LostUpdate, NotSerializable}},
}

// Forbids reports whether a level forbids a class. An empty level forbids all classes, those that need session order or real time included: it
// stands for strict serializability.
func Forbids(level string, class oracle.Class) bool {
	if level == "" {
		return true
	}
	for _, row := range forbidden {
		cumulative := row.level == product.ReadUncommitted || row.level == product.ReadCommitted
		if (cumulative && level != product.ReadUncommitted || row.level == level) && slices.Contains(row.classes, class) {
			return true
		}
	}
	return false
}

// At judges the findings by a level: what it forbids is a violation.
func At(level string, findings []oracle.Finding) {
	for i := range findings {
		f := &findings[i]
		f.Level = level
		if f.Promised = Forbids(level, f.Class); f.Promised {
			f.Kind = oracle.KindViolation
		}
	}
}
