// Package narrow promises that access only ever narrows: what a server offers
// contains what the tenant permits, which contains what the Spec grants, which
// contains what may be called now.
//
// [Callable] is the one function that computes this intersection; checking,
// resolution and the call itself all ask it. The package also names tools for
// the model ([PublicName], [Table]), decides how a server is disclosed
// ([Defer]) and grades tools ([ClassOf]).
//
// The package is pure and imports nothing of this module.
package narrow
