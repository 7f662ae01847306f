// Package pool promises one connection for one pool key, made when it is first
// needed and ended when it is no longer, and that no message is lost in between.
//
// All messages to connections go through the pool, so nobody keeps the address
// of a connection, and the pool knows what each has been sent.
//
// # States of an entry
//
//	running   messages are routed to it
//	stopping  it is being stopped; messages wait for its successor
//
// # Messages in
//
// messages.GetCatalogue, messages.CallTool, messages.CancelCall and
// messages.ReleaseSession for connections; messages.ListConnections and
// messages.Disconnect for the pool itself; messages.ConnectionStatus and
// messages.ConnectionIdle from connections.
//
// # Messages out
//
// What was routed, with its asker; messages.Connections, messages.Disconnected.
//
// # Bounds
//
// The pool holds a limited number of connections. Beyond it, a connection that is
// unused is stopped: one of the same tenant where there is one, and the one that
// has been unused for longest. When none is unused, the asker gets failure.Busy. A
// connection counts as unused that has no calls, is not connecting, and was routed
// nothing in the last second. What waits for a successor is bounded too.
//
// A connection that its supervisor gave up is removed; its status stays visible, as
// closed with its last error, until the key is used again.
//
// # What is lost on restart
//
// All connections: their calls in flight are settled by them as they stop.
package pool
