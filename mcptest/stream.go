package mcptest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// stream is a response that stays open: a subscription of 2026-07-28, the GET
// stream of an older session, or the stream of an HTTP+SSE session.
type stream struct {
	session      string // "" for a subscription
	subscription string // the raw id of subscriptions/listen; "" for older streams
	tools        bool   // it carries list_changed for tools
	greeting     string // written first
	farewell     string // written last when the server ends the stream in good order

	ctx    context.Context // of the request that opened it
	ending chan bool       // told how to end: true breaks the connection

	mu sync.Mutex // guards w, which is nil once the request has ended
	w  http.ResponseWriter
}

// write writes raw bytes, unless the stream has ended.
func (st *stream) write(raw string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.w != nil {
		writeFlushed(st.w, raw)
	}
}

// end asks the stream to end; only the first word counts.
func (st *stream) end(broken bool) {
	select {
	case st.ending <- broken:
	default:
	}
}

// watch holds a stream open until somebody ends it. A last stream is over after
// its greeting.
func (s *Server) watch(x *Exchange, st *stream, last bool) {
	beginEvents(x.writer)
	if last {
		writeFlushed(x.writer, st.greeting)
		return
	}
	st.ctx, st.ending, st.w = x.Context(), make(chan bool, 1), x.writer
	s.begin(st)
	broken := false
	select {
	case broken = <-st.ending:
	case <-st.ctx.Done():
	}
	s.mu.Lock()
	s.streams = slices.DeleteFunc(s.streams, func(other *stream) bool { return other == st })
	if s.sse {
		delete(s.sessions, st.session)
	}
	s.wake()
	s.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.w = nil
	if broken {
		x.reset()
	} else if st.ctx.Err() == nil {
		writeFlushed(x.writer, st.farewell)
	}
}

// begin makes a stream known and then greets: who reads the greeting may rely on
// the stream at once, and nothing is written before the greeting.
func (s *Server) begin(st *stream) {
	st.mu.Lock()
	defer st.mu.Unlock()
	s.mu.Lock()
	s.streams = append(s.streams, st)
	s.wake()
	s.mu.Unlock()
	writeFlushed(st.w, st.greeting)
}

// Streams is how many streams are open for notifications.
func (s *Server) Streams() int { return len(s.open()) }

func (s *Server) open() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.streams)
}

// NotifyToolsChanged sends notifications/tools/list_changed on the newest stream
// of each session and on each subscription that asked for it, and returns how
// many that were.
func (s *Server) NotifyToolsChanged() int {
	return s.notify("notifications/tools/list_changed", func(st *stream) bool { return st.tools })
}

// Notify sends a notification without params on every stream, wanted or not.
func (s *Server) Notify(method string) int {
	return s.notify(method, func(*stream) bool { return true })
}

func (s *Server) notify(method string, wants func(*stream) bool) (told int) {
	seen := make(map[string]bool)
	for _, st := range slices.Backward(s.open()) {
		if !wants(st) || st.session != "" && seen[st.session] {
			continue
		}
		seen[st.session] = true
		params := "{}"
		if st.subscription != "" {
			params = fmt.Sprintf(`{"_meta":{%q:%s}}`, metaSubscription, st.subscription)
		}
		st.write(event(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)))
		told++
	}
	return told
}

// WriteStreams writes raw event-stream bytes to every open stream: a request of
// the server to its client, a comment, or nonsense.
func (s *Server) WriteStreams(raw string) {
	for _, st := range s.open() {
		st.write(raw)
	}
}

// CloseStreams ends every open stream in good order; a subscription is answered
// with its result first.
func (s *Server) CloseStreams() { s.endStreams(false) }

// BreakStreams resets the connection of every open stream.
func (s *Server) BreakStreams() { s.endStreams(true) }

func (s *Server) endStreams(broken bool) {
	for _, st := range s.open() {
		st.end(broken)
	}
}

func event(data string) string { return "event: message\ndata: " + data + "\n\n" }
