// Package openai promises that any endpoint that speaks chat completions,
// however loosely, answers through [model.Port] in one strict form, or fails
// with one sentence that says what the endpoint did.
//
// It speaks the streaming form of POST chat/completions. What goes out is exact:
// a tool's schema is sent byte for byte. What comes in is forgiven: endpoints
// differ in how they cut a tool call into pieces, and the assembly here takes
// all of those ways. Faults that pass are tried again with backoff, but never
// once a piece of the answer was shown.
//
// No environment variable has a say: address and key come from [Options] alone.
package openai
