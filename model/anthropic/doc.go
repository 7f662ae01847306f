// Package anthropic promises that Anthropic's Messages API, and any endpoint that
// speaks it, answers through [model.Port] in one strict form, or fails with one
// sentence that says what the endpoint did.
//
// It speaks the streaming form of POST v1/messages. What goes out is what the API
// takes: a tool's schema byte for byte, all results of a turn in one user message
// and in the order of their calls, no empty block, and marks where the provider's
// cache may end. What comes in is forgiven: events and blocks that are not known
// are passed over, and a tool call's input is handed on as the text that came, JSON
// or not. Thinking is not asked for; a thought that comes is neither shown nor sent
// back.
//
// No environment variable has a say: address and key come from [Options] alone.
package anthropic
