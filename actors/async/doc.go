// Package async promises that an actor's work off its own goroutine is bounded,
// has an end, and comes back as exactly one message.
//
// A [Group] belongs to one incarnation of one actor. [Go] starts work with a
// deadline; its result, or its panic as an error, is sent to the actor inside a
// [Done], which the actor opens with [Group.Take]. An actor that was restarted
// has a new group, and Take drops what an older one still brings. [Group.Close]
// cancels everything and waits for nothing, so Receive never blocks.
//
// # Bounds
//
// A group runs a limited number of works at once. What exceeds it waits, up to a
// second limit; what exceeds that is not begun, and its message brings
// failure.Busy.
package async
