// Package run promises that one actor drives one Run to its one end, and that
// each call that the model asks for ends in exactly one recorded outcome.
//
// The actor is event-sourced. What it decides, it first appends to the journal;
// what it does, it does because a record says so; so a Run that is restarted
// reads its journal and goes on.
//
// # States
//
//	loading    reads the journal: a new Run is admitted, a known one continued
//	resolving  asks every server of the Spec for its catalogue, in parallel
//	thinking   waits for the model
//	acting     runs the calls of the answer, in parallel
//	finishing  has decided its end, settles what is open
//	finished   the end is recorded; the actor stops
//
// # Messages in
//
// [Cancel] from outside; messages.Catalogue and messages.CallDone as answers of
// the pool; the results of its own work and timers.
//
// # Messages out
//
// messages.GetCatalogue, messages.CallTool and messages.CancelCall to the pool. The
// supervisor sends messages.ReleaseSession for the Run's own sessions once its actor
// has ended.
//
// # What is lost on restart
//
// A model call in flight is asked again. A tool call that had started is
// settled as unknown, because it may have run. Nothing that was recorded is
// lost, and nothing recorded happens twice.
package run
