package mcptest

import (
	"net/http"
	"strconv"
)

// ModelCall is a tool call in an answer or in a message.
type ModelCall struct {
	// ID is the call's id; "" sends none.
	ID   string
	Name string
	// Arguments is the text that is sent, JSON or not.
	Arguments string
}

// ModelUsage is what an answer says it cost, in tokens.
type ModelUsage struct {
	// Prompt counts all tokens of the prompt, from a cache or not. Anthropic's messages
	// count apart what came from a cache and what went into one, and are told so.
	Prompt, Completion int
	// Cached are the prompt tokens that came from a cache, Stored those that were put
	// into one, Reasoning the completion tokens that were thought and not said; nil is
	// not reported.
	Cached, Stored, Reasoning *int
}

// ModelAnswer is one answer of a [Model]. Make one with [Say], [Ask] or a failure,
// and change it with its methods, each of which returns the changed answer.
type ModelAnswer struct {
	text     string
	refusal  string
	calls    []ModelCall
	whole    bool // each call in one chunk
	usage    *ModelUsage
	finish   string
	status   int // 0 is 200
	header   map[string]string
	raw      *string // in place of everything above
	failed   *string // the message of a failure, in place of an answer
	breaking breaking
	after    int // chunks before the break
	extra    string
	released <-chan struct{}
}

// breaking is how a stream goes wrong after some chunks.
type breaking int

const (
	breaksNot   breaking = iota
	breaksCut            // the connection closes
	breaksEnd            // the stream ends in good order, without a finish reason
	breaksIdle           // nothing more comes
	breaksError          // an error event comes
)

// Say answers with a text. Streamed, it comes in pieces of at most 8 characters.
func Say(text string) ModelAnswer { return ModelAnswer{text: text} }

// Ask answers with tool calls. Streamed, each call comes in three chunks: its id and
// name, and two halves of its arguments.
func Ask(calls ...ModelCall) ModelAnswer { return ModelAnswer{calls: calls} }

// Refuse answers with a refusal in place of a text. Over Anthropic's messages it is
// a text that ends with the reason "refusal".
func Refuse(text string) ModelAnswer { return ModelAnswer{refusal: text} }

// ModelFailure answers with an HTTP status and an error object in the form of the
// API that was spoken to.
func ModelFailure(status int, message string) ModelAnswer {
	return ModelAnswer{status: status, failed: &message, header: map[string]string{}}
}

// ModelPage answers with an HTTP status and a raw body.
func ModelPage(status int, contentType, body string) ModelAnswer {
	return ModelAnswer{status: status, raw: &body, header: map[string]string{"Content-Type": contentType}}
}

// ModelBusy answers 429 and asks to wait for some seconds.
func ModelBusy(retryAfter int) ModelAnswer {
	busy := ModelFailure(http.StatusTooManyRequests, "Rate limit reached")
	busy.header["Retry-After"] = strconv.Itoa(retryAfter)
	return busy
}

// ModelEvents answers with raw event-stream bytes.
func ModelEvents(raw string) ModelAnswer { return ModelPage(http.StatusOK, "text/event-stream", raw) }

// And adds tool calls after the text.
func (a ModelAnswer) And(calls ...ModelCall) ModelAnswer {
	a.calls = append(append([]ModelCall(nil), a.calls...), calls...)
	return a
}

// Whole streams each call in a single chunk.
func (a ModelAnswer) Whole() ModelAnswer {
	a.whole = true
	return a
}

// Costs reports a usage.
func (a ModelAnswer) Costs(usage ModelUsage) ModelAnswer {
	a.usage = &usage
	return a
}

// Finishes gives the finish reason, such as "length" or "content_filter"; without it
// an answer says "stop", or "tool_calls" where it asks for some. Over Anthropic's
// messages these four are "max_tokens", "refusal", "end_turn" and "tool_use", and any
// other is sent as it is.
func (a ModelAnswer) Finishes(reason string) ModelAnswer {
	a.finish = reason
	return a
}

// Held waits until a channel is closed before it answers.
func (a ModelAnswer) Held(released <-chan struct{}) ModelAnswer {
	a.released = released
	return a
}

// CutAfter closes the connection after some chunks; the first one carries only the
// role. A body that is not streamed is cut in half.
func (a ModelAnswer) CutAfter(chunks int) ModelAnswer { return a.breaks(breaksCut, chunks) }

// EndsAfter ends the stream in good order after some chunks, without a finish
// reason.
func (a ModelAnswer) EndsAfter(chunks int) ModelAnswer { return a.breaks(breaksEnd, chunks) }

// IdlesAfter sends nothing more after some chunks. A body that is not streamed stops
// halfway.
func (a ModelAnswer) IdlesAfter(chunks int) ModelAnswer { return a.breaks(breaksIdle, chunks) }

// FailsAfter sends an error event with that raw JSON after some chunks, and ends the
// stream.
func (a ModelAnswer) FailsAfter(chunks int, event string) ModelAnswer {
	a.extra = event
	return a.breaks(breaksError, chunks)
}

func (a ModelAnswer) breaks(how breaking, after int) ModelAnswer {
	a.breaking, a.after = how, after
	return a
}

func (a ModelAnswer) finishReason() string {
	switch {
	case a.finish != "":
		return a.finish
	case len(a.calls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}
