package mcptest

import (
	"encoding/json"
	"net/http"
)

// object is JSON under construction; its members are sorted when it is encoded.
type object map[string]any

// write sends an answer.
func (a ModelAnswer) write(w http.ResponseWriter, request ModelRequest, hr *http.Request) {
	if a.released != nil {
		select {
		case <-a.released:
		case <-hr.Context().Done():
			return
		}
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	if a.raw != nil {
		w.WriteHeader(max(a.status, http.StatusOK))
		writeFlushed(w, *a.raw)
		return
	}
	if request.Stream {
		beginEvents(w)
		a.writeChunks(w, request, hr)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	body := encode(a.completion(request))
	if a.breaking != breaksNot {
		body = body[:len(body)/2]
	}
	writeFlushed(w, body)
	a.stop(w, hr)
}

// writeChunks sends an answer as a stream.
func (a ModelAnswer) writeChunks(w http.ResponseWriter, request ModelRequest, hr *http.Request) {
	for i, delta := range a.deltas() {
		if a.breaking != breaksNot && i == a.after {
			a.stop(w, hr)
			return
		}
		writeFlushed(w, "data: "+encode(chunk(request, []object{{"index": 0, "delta": delta, "finish_reason": nil}}))+"\n\n")
	}
	if a.breaking != breaksNot {
		a.stop(w, hr)
		return
	}
	last := chunk(request, []object{{"index": 0, "delta": object{}, "finish_reason": a.finishReason()}})
	writeFlushed(w, "data: "+encode(last)+"\n\n")
	if request.IncludeUsage && a.usage != nil {
		usage := chunk(request, []object{})
		usage["usage"] = a.usage.object()
		writeFlushed(w, "data: "+encode(usage)+"\n\n")
	}
	writeFlushed(w, "data: [DONE]\n\n")
}

// stop is how a broken answer ends.
func (a ModelAnswer) stop(w http.ResponseWriter, hr *http.Request) {
	switch a.breaking {
	case breaksNot, breaksEnd:
	case breaksCut:
		panic(http.ErrAbortHandler)
	case breaksIdle:
		<-hr.Context().Done()
	case breaksError:
		writeFlushed(w, "data: "+a.extra+"\n\n")
	}
}

// deltas are the pieces of a streamed answer, before its finish reason.
func (a ModelAnswer) deltas() []object {
	deltas := []object{{"role": "assistant", "content": ""}}
	for _, piece := range pieces(a.text) {
		deltas = append(deltas, object{"content": piece})
	}
	for _, piece := range pieces(a.refusal) {
		deltas = append(deltas, object{"refusal": piece})
	}
	for i, c := range a.calls {
		call := func(members object) { deltas = append(deltas, object{"tool_calls": []object{members}}) }
		first := object{"index": i, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		if c.ID != "" {
			first["id"] = c.ID
		}
		if a.whole {
			first["function"] = object{"name": c.Name, "arguments": c.Arguments}
			call(first)
			continue
		}
		call(first)
		half := len(c.Arguments) / 2
		for half > 0 && c.Arguments[half]>>6 == 0b10 { // inside a character
			half--
		}
		for _, part := range []string{c.Arguments[:half], c.Arguments[half:]} {
			call(object{"index": i, "function": object{"arguments": part}})
		}
	}
	return deltas
}

// pieces splits a text into pieces of at most 8 characters.
func pieces(text string) (split []string) {
	characters := []rune(text)
	for len(characters) > 0 {
		n := min(8, len(characters))
		split = append(split, string(characters[:n]))
		characters = characters[n:]
	}
	return split
}

func chunk(request ModelRequest, choices []object) object {
	return object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": request.At.Unix(),
		"model": request.Model, "choices": choices,
	}
}

// completion is an answer as one body.
func (a ModelAnswer) completion(request ModelRequest) object {
	message := object{"role": "assistant", "content": a.text, "refusal": nil}
	if a.refusal != "" {
		message["content"], message["refusal"] = nil, a.refusal
	}
	var calls []object
	for _, c := range a.calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	whole := chunk(request, []object{{"index": 0, "message": message, "finish_reason": a.finishReason()}})
	whole["object"] = "chat.completion"
	if a.usage != nil {
		whole["usage"] = a.usage.object()
	}
	return whole
}

func (u ModelUsage) object() object {
	members := object{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
	}
	details := func(of, name string, tokens *int) {
		if tokens == nil {
			return
		}
		if members[of] == nil {
			members[of] = object{}
		}
		members[of].(object)[name] = *tokens
	}
	details("prompt_tokens_details", "cached_tokens", u.Cached)
	details("prompt_tokens_details", "cache_write_tokens", u.Stored)
	details("completion_tokens_details", "reasoning_tokens", u.Reasoning)
	return members
}

func encode(value object) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // it holds nothing that JSON does not know
	}
	return string(encoded)
}
