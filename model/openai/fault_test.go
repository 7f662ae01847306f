package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/secret"
)

// Faults that do not pass are told at once, in the endpoint's own words.
func TestFaultsThatStay(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"400":                     {refuses(400, `{"error":{"message":"no such\n model:","code":"x"}}`), []string{"400 Bad Request", ": no such model"}},
		"404 as text":             {refuses(404, `{"error":"unknown"}`), []string{"404 Not Found", ": unknown"}},
		"422 with a detail":       {refuses(422, `{"detail":"bad body"}`), []string{"bad body"}},
		"no JSON":                 {refuses(404, `<html>nope`), []string{"404 Not Found"}},
		"401":                     {refuses(401, `{"error":{"message":"bad key sk-secret"}}`), []string{"refused its credential (401 Unauthorized)"}},
		"403":                     {refuses(403, `{"error":{"message":"sk-secret may not"}}`), []string{"refused its credential (403 Forbidden)", "[redacted] may not"}},
		"429 for long":            {refuses(429, ``, "Retry-After", "3600"), []string{"429 Too Many Requests", "1h0m0s"}},
		"error event with 400":    {streams(`{"error":{"message":"too long","code":400}}`), []string{"reported an error inside its answer: too long"}},
		"a page instead":          {refuses(200, "<html>", "Content-Type", "text/html"), []string{"something else than a stream"}},
		"a JSON error as success": {refuses(200, `{"error":{"message":"quota","code":402}}`, "Content-Type", "application/json"), []string{"quota"}},
		"a long message":          {refuses(400, `{"message":"`+strings.Repeat("é", 5000)+`"}`), []string{"ééé", "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, test.answer)
			_, err := e.model(t, withKey("sk-secret")).Generate(t.Context(), question, nil)
			wantFailure(t, err, failure.KindModelError, append(test.words, "the model endpoint 127.0.0.1:")...)
			if e.asked() != 1 {
				t.Errorf("asked %d times", e.asked())
			}
			if strings.Contains(err.Error(), "sk-secret") || strings.HasSuffix(err.Error(), ":") || len(err.Error()) > 1000 {
				t.Errorf("the sentence %q is not fit to be shown", err)
			}
		})
	}
}

func TestUnreachableEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := serve(t, says("x"))
	m := e.model(t, func(o *Options) { o.BaseURL = "http://" + listener.Addr().String() })
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "refused the connection at each of 4 attempts")
}

func TestUntrustedCertificateIsNotTriedAgain(t *testing.T) {
	asked := 0
	server := httptest.NewUnstartedServer(says("x"))
	server.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			asked++
		}
	}
	server.StartTLS()
	m := (&peer{Server: server}).model(t)
	_, err := m.Generate(t.Context(), question, nil)
	server.Close()
	wantFailure(t, err, failure.KindModelError, "certificate")
	if asked != 1 {
		t.Errorf("connected %d times", asked)
	}
}

// roundTrip is a way out that refuses or breaks in its own way.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

type brokenBody struct{ err error }

func (b brokenBody) Read([]byte) (int, error) { return 0, b.err }
func (brokenBody) Close() error               { return nil }

func TestFailuresOfTheWayOut(t *testing.T) {
	refusing := func(kind failure.Kind) roundTrip {
		return func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("dial: %w", failure.New(kind, "the way is closed", nil))
		}
	}
	tooLarge := roundTrip(func(r *http.Request) (*http.Response, error) {
		begun := strings.NewReader("data: " + text("a") + "\n\n")
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
			Body: io.NopCloser(io.MultiReader(begun, brokenBody{failure.New(failure.KindMcpResponseTooLarge, "big", nil)}))}, nil
	})
	for name, test := range map[string]struct {
		way   roundTrip
		kind  failure.Kind
		words string
	}{
		"denied":    {refusing(failure.KindEgressDenied), failure.KindEgressDenied, "the way is closed"},
		"closed":    {refusing(failure.KindCancelled), failure.KindCancelled, "the way is closed"},
		"other":     {refusing(failure.KindMcpProtocolError), failure.KindModelError, "cannot be used: the way is closed"},
		"too large": {tooLarge, failure.KindModelError, "more bytes than the response ceiling allows"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			m, err := New(Options{BaseURL: "https://models.example/v1", Client: &http.Client{
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) { asked++; return test.way(r) })}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(t.Context(), question, nil)
			wantFailure(t, err, test.kind, test.words)
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// The end of the caller's context is the caller's, wherever it falls.
func TestContextEnds(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"before an answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the stream":    hangs(text("half")),
		"in a pause":       refuses(429, "", "Retry-After", "30"),
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, answer)
			m := e.model(t)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := m.Generate(ctx, question, nil)
			wantFailure(t, err, failure.KindDeadlineExceeded)

			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, stop)
			_, err = m.Generate(ctx, question, nil)
			wantFailure(t, err, failure.KindCancelled)
		})
	}
}

// The key is asked for each request, so that a new one counts at once.
func TestKeyIsAskedForEachRequest(t *testing.T) {
	e := serve(t, refuses(500, ""), says("ok"))
	n := 0
	m := e.model(t, func(o *Options) {
		o.Key = func(context.Context) (secret.Text, error) {
			n++
			return secret.NewText(fmt.Sprintf("sk-%d", n)), nil
		}
	})
	if _, err := m.Generate(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	for i, request := range e.requests {
		if got, want := request.Header.Get("Authorization"), fmt.Sprintf("Bearer sk-%d", i+1); got != want {
			t.Errorf("request %d came with %q", i, got)
		}
	}
}

func TestKeyThatCannotBeHad(t *testing.T) {
	e := serve(t, says("ok"))
	for name, test := range map[string]struct {
		err   error
		words string
	}{
		"failure": {failure.New(failure.KindCredentialNotFound, "there is no secret MODEL_KEY", nil), ": there is no secret MODEL_KEY"},
		"other":   {errors.New("secret path"), "its key could not be had"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.model(t, func(o *Options) {
				o.Key = func(context.Context) (secret.Text, error) { return secret.Text{}, test.err }
			}).Generate(t.Context(), question, nil)
			wantFailure(t, err, failure.KindModelError, test.words)
			if !errors.Is(err, test.err) || strings.Contains(err.Error(), "secret path") || e.asked() != 0 {
				t.Errorf("got %v after %d requests", err, e.asked())
			}
		})
	}
}

// What is logged tells of the attempts and of no content.
func TestLogTellsNoSecret(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	e := serve(t, refuses(500, `{"message":"private words"}`), says("ok"))
	m := e.model(t, withKey("sk-secret"), func(o *Options) { o.Logger = zap.New(core) })
	if _, err := m.Generate(t.Context(), question, nil); err != nil {
		t.Fatal(err)
	}
	if logs.Len() != 1 {
		t.Fatalf("logged %d times", logs.Len())
	}
	line := fmt.Sprint(logs.All()[0].Message, logs.All()[0].ContextMap())
	if !strings.Contains(line, "500") || strings.Contains(line, "sk-secret") || strings.Contains(line, "private") {
		t.Errorf("logged %s", line)
	}
}

// A line of the stream that never ends is refused before memory is.
func TestEndlessLine(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: "))
		filler := bytes.Repeat([]byte("x"), 1<<20)
		for {
			if _, err := w.Write(filler); err != nil {
				return
			}
		}
	})
	_, err := e.model(t).Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "an event that is too large")
	if e.asked() != 1 {
		t.Errorf("asked %d times", e.asked())
	}
}
