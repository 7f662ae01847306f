// Package supervision promises that an actor which fails is restarted with
// patience, is given up in the end, and leaves no asker without an answer.
//
// [Restarts] is embedded by actors that have children: it restarts a failed
// child after an exponential backoff with full jitter, and after too many
// failures in a minute stops it and says so. [Answering] makes the props of an
// actor that is asked: every question that reaches it, or only its mailbox, is
// entered into its [Ledger] and struck out by its one answer, so that what is
// left can be answered when the actor panics or stops. [NewSystem] makes an
// actor system that logs no message.
package supervision
