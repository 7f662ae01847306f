// Package conformance promises that the runtime passes every client scenario
// which the official suite requires for a revision of the protocol, except those
// that it names with a reason.
//
// The suite plays the server and judges each message against the schema of the
// revision; the client under test is this package's own test binary, started by
// the suite, which runs a whole Run: through the pool, the connection actor and
// the wire, as a deployment would. Which scenarios there are is read from the
// suite, so that none can be forgotten.
package conformance
