// Package offer promises that what a model is shown in a turn, what it may then
// call, and what an operator is told about both come from one computation.
//
// [Resolve] narrows the servers' tools for one turn, names them, decides which
// servers are disclosed whole and which on demand, and writes the lines that
// tell the model about its servers. [Offer.Route] takes the call that a model
// asked for and narrows again: what the model was shown is no control, because
// the model chooses the name that it sends. [Explain] tells for each tool which
// plane took it away.
//
// The package is pure: no actors, no I/O, no clock.
package offer
