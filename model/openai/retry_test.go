package openai

import (
	"net/http"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
)

// breaks hangs up on the client in the middle of a stream.
func breaks(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(events...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// hangs sends what it has and then nothing more.
func hangs(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(events...)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func impatient(o *Options) { o.Idle = 50 * time.Millisecond }

// Faults that pass are tried again, and the answer is as if nothing had happened.
func TestFaultsThatPass(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"408":                     refuses(408, ""),
		"429":                     refuses(429, `{"error":{"message":"slow down"}}`, "Retry-After", "0"),
		"500":                     refuses(500, "oops"),
		"503":                     refuses(503, `<html>`, "Content-Type", "text/html"),
		"no answer":               func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"idle before any byte":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"idle in the stream":      hangs(`{"choices":[{"delta":{"role":"assistant"}}]}`),
		"broken stream":           breaks(`{"choices":[{"delta":{"role":"assistant"}}]}`),
		"cut without a finish":    streams(calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`)),
		"[DONE] without a finish": streams("[DONE]"),
		"nothing at all":          streams(),
		"error event":             streams(`{"error":{"message":"overloaded","type":"server_error"}}`),
		"error event with 503":    streams(`{"error":{"message":"overloaded","code":503}}`),
		"finished by an error":    streams(finish("error")),
		"garbled piece":           streams("{not json"),
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, fault, says("fine"))
			var shown pieces
			answer, err := e.model(t, impatient).Generate(t.Context(), question, shown.show)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Text != "fine" || len(shown) != 1 || e.asked() != 2 {
				t.Errorf("got %q, shown %q, after %d requests", answer.Text, shown, e.asked())
			}
			if e.bodies[0] != e.bodies[1] {
				t.Error("the second attempt asked something else")
			}
		})
	}
}

func TestAttemptsEnd(t *testing.T) {
	e := serve(t, refuses(503, `{"error":{"message":"overloaded"}}`))
	_, err := e.model(t).Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "503 Service Unavailable at each of 4 attempts: overloaded")
	if e.asked() != 4 {
		t.Errorf("asked %d times", e.asked())
	}
	single := serve(t, refuses(503, ""))
	if _, err := single.model(t, func(o *Options) { o.Attempts = 1 }).Generate(t.Context(), question, nil); err == nil {
		t.Error("no failure")
	}
	if single.asked() != 1 {
		t.Errorf("asked %d times", single.asked())
	}
}

// Once text was shown, no attempt is repeated: the pieces of two attempts would mix.
func TestShownTextIsNotRepeated(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"broken":       breaks(text("half")),
		"cut":          streams(text("half")),
		"silent":       hangs(text("half")),
		"error inside": streams(text("half"), `{"error":{"message":"gone"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, fault, says("whole"))
			var shown pieces
			_, err := e.model(t, impatient).Generate(t.Context(), question, shown.show)
			wantFailure(t, err, failure.KindModelError, "after part of its answer was shown")
			if e.asked() != 1 || len(shown) != 1 {
				t.Errorf("asked %d times, shown %q", e.asked(), shown)
			}
		})
		t.Run(name+" and unseen", func(t *testing.T) {
			e := serve(t, fault, says("whole"))
			answer, err := e.model(t, impatient).Generate(t.Context(), question, nil)
			if err != nil || answer.Text != "whole" {
				t.Errorf("got %q, %v", answer.Text, err)
			}
		})
	}
}

// A reader that takes its time over a piece is not the endpoint's silence.
func TestSlowReaderIsNotSilence(t *testing.T) {
	e := serve(t, says("fine"))
	answer, err := e.model(t, impatient).Generate(t.Context(), question, func(string) { time.Sleep(120 * time.Millisecond) })
	if err != nil || answer.Text != "fine" {
		t.Errorf("got %q, %v", answer.Text, err)
	}
}

// An answer that is whole does not wait for an endpoint that never hangs up.
func TestWholeAnswerDoesNotWait(t *testing.T) {
	e := serve(t, hangs(text("fine"), finish("stop"), "[DONE]"))
	answer, err := e.model(t).Generate(t.Context(), question, nil)
	if err != nil || answer.Text != "fine" {
		t.Errorf("got %q, %v", answer.Text, err)
	}
}
