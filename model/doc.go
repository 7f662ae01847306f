// Package model promises one way to ask any language model: a [Port] streams
// one answer for one [Request], and what was not reported is absent, never 0.
//
// The adapters live underneath: openai speaks to any endpoint that is compatible
// with chat completions, anthropic to Anthropic's messages, both over endpoint;
// scripted plays answers from a file or from code. Tool schemas pass through as
// the raw bytes that came from their server.
package model
