package openai

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer plays one answer a request, the last one again and again, and keeps
// what it was sent.
type peer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func serve(t *testing.T, answers ...http.HandlerFunc) *peer {
	t.Helper()
	e := &peer{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.requests = append(e.requests, r)
		e.bodies = append(e.bodies, string(body))
		answer := answers[min(len(e.requests), len(answers))-1]
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *peer) asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.requests)
}

// model returns a model that asks the endpoint, with pauses too short to notice.
func (e *peer) model(t *testing.T, change ...func(*Options)) *Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	options := Options{BaseURL: e.URL + "/v1", Client: &http.Client{Transport: transport}, Backoff: time.Millisecond}
	for _, each := range change {
		each(&options)
	}
	m, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func withKey(value string) func(*Options) {
	return func(o *Options) {
		o.Key = func(context.Context) (secret.Text, error) { return secret.NewText(value), nil }
	}
}

// streams answers with one event for each text.
func streams(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
			w.(http.Flusher).Flush()
		}
	}
}

// refuses answers with a status, a body and headers given as pairs.
func refuses(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func text(piece string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, piece)
}

func finish(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

// says is a whole short answer.
func says(what string) http.HandlerFunc { return streams(text(what), finish("stop"), "[DONE]") }

var question = model.Request{Model: "m-1", Messages: []model.Message{{Role: model.RoleUser, Text: "hello"}}}

// pieces collects what was shown.
type pieces []string

func (p *pieces) show(piece string) { *p = append(*p, piece) }

func wantFailure(t *testing.T, err error, kind failure.Kind, words ...string) {
	t.Helper()
	if err == nil || failure.KindOf(err) != kind {
		t.Fatalf("got %v (%s), want %s", err, failure.KindOf(err), kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the sentence %q lacks %q", err, word)
		}
	}
}
