package mcptest

import (
	"context"
	"net/http"
	"strings"
	"sync"
)

// Exchange is one request while it is answered, for behaviours made with [Do].
type Exchange struct {
	Request Request

	http   *http.Request
	writer http.ResponseWriter
	server *Server
	// ordinary makes the ordinary answer.
	ordinary func(*Exchange) reply
	// reply is the ordinary answer, once it has been made: a tool runs once a request.
	reply    *reply
	answered bool // something was written, or the client is to get nothing
	over     bool // nothing more can be done: the connection is gone

	mu        sync.Mutex // guards writer while a tool notifies
	streaming bool       // an event stream has begun
}

// reply is the answer of an ordinary server.
type reply struct {
	status  int // 0 is 200
	header  map[string]string
	message string // a JSON-RPC message; "" for an empty body
	// open is the stream that the answer is; nil for most.
	open *stream
	// last says that the open stream ends after its greeting.
	last bool
}

// Context ends when the client hangs up or the server stops.
func (x *Exchange) Context() context.Context { return x.http.Context() }

// Writer is the response. Who takes it answers the request.
func (x *Exchange) Writer() http.ResponseWriter {
	x.answered = true
	return x.writer
}

// Reply is the JSON-RPC message that an ordinary server would answer with; "" where
// it answers with none. The first call runs the tool.
func (x *Exchange) Reply() string { return x.execute().message }

func (x *Exchange) execute() *reply {
	if x.reply == nil {
		made := x.ordinary(x)
		x.reply = &made
	}
	return x.reply
}

// Ordinary answers as an ordinary server does.
func (x *Exchange) Ordinary() {
	x.answered = true
	if st := x.replyStream(); st != nil {
		x.writer.WriteHeader(http.StatusAccepted)
		background(x.Context(), func() { x.answerOn(st) })
		return
	}
	r := x.execute()
	for name, value := range r.header {
		x.writer.Header().Set(name, value)
	}
	switch {
	case r.open != nil:
		x.server.watch(x, r.open, r.last)
	case r.message != "" && r.status == 0 && (x.server.eventStream || x.isStreaming()):
		x.Event(r.message)
	default:
		if r.message != "" {
			x.writer.Header().Set("Content-Type", "application/json")
		}
		x.writer.WriteHeader(max(r.status, http.StatusOK))
		_, _ = x.writer.Write([]byte(r.message))
	}
}

// Send sends one JSON-RPC message in place of the reply, the way the server
// replies: as a body, as an event, or on the stream of an [HTTPSSE] session.
func (x *Exchange) Send(message string) {
	x.answered = true
	x.reply = &reply{message: message}
	x.Ordinary()
}

// Event writes an event with that data to the response, or to the stream of an
// HTTPSSE session, and flushes it.
func (x *Exchange) Event(data string) { x.Events("event: message\ndata: " + data + "\n\n") }

// Events writes raw event-stream bytes where [Exchange.Event] would.
func (x *Exchange) Events(raw string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = true
	if st := x.sessionStream(); st != nil {
		st.write(raw)
		return
	}
	if !x.streaming {
		x.streaming = true
		beginEvents(x.writer)
	}
	writeFlushed(x.writer, raw)
}

func (x *Exchange) isStreaming() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.streaming
}

// fill replaces $ID by the request's id and $REPLY by the ordinary reply in a text.
func (x *Exchange) fill(text string) string {
	if strings.Contains(text, "$REPLY") {
		text = strings.ReplaceAll(text, "$REPLY", x.Reply())
	}
	id := string(x.Request.ID)
	if id == "" {
		id = "null"
	}
	return strings.ReplaceAll(text, "$ID", id)
}

func beginEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

func writeFlushed(w http.ResponseWriter, text string) {
	_, _ = w.Write([]byte(text))
	_ = http.NewResponseController(w).Flush()
}
