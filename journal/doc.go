// Package journal promises that what a Run did is written once, in order,
// without a gap, and that its state is a pure fold over those records.
//
// A [Store] appends [Record]s at an expected sequence number and refuses
// anything else. [Fold] rebuilds a Run's [State] from its records; a log that
// contradicts itself is refused with an error that names the record, never
// repaired.
package journal
