// Package endpoint promises that every model behind an HTTP API is asked in one
// way: a request is sent with patience and read within bounds, faults that pass
// are tried again, and a failure is one sentence that says what the endpoint did.
//
// The adapters (openai, anthropic) stand on it. Each of them knows its API: how
// a request is written and how an answer is put together from its events.
// Everything that can go wrong between the two is here, once: silence, broken
// streams, refusals, pauses that the endpoint asks for, and keys that cannot be
// had. An attempt is never repeated once a piece of its answer was shown.
package endpoint
