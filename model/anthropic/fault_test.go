package anthropic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/model/anthropic"
)

func reports(kind string) string {
	return `{"type":"error","error":{"type":"` + kind + `","message":"Told so."}}`
}

func impatient(o *anthropic.Options) { o.Idle = 50 * time.Millisecond }

// Faults that pass are tried again, and the answer is as if nothing had happened.
func TestFaultsThatPass(t *testing.T) {
	for name, fault := range map[string]mcptest.ModelAnswer{
		"429":                      mcptest.ModelBusy(0),
		"500":                      mcptest.ModelFailure(500, "Internal server error"),
		"529":                      mcptest.ModelFailure(529, "Overloaded"),
		"503 from a proxy":         mcptest.ModelPage(503, "text/html", "<p>down</p>"),
		"overloaded in the stream": streams(begun, reports("overloaded_error")),
		"api_error in the stream":  streams(begun, reports("api_error")),
		"an error of another kind": streams(begun, reports("sunspots")),
		"an error event":           mcptest.Say("").FailsAfter(1, reports("rate_limit_error")),
		"cut before any byte":      mcptest.Say("hidden").CutAfter(0),
		"cut after the start":      mcptest.Say("hidden").CutAfter(1),
		"silent":                   mcptest.Say("hidden").IdlesAfter(1),
		"ended without a reason":   mcptest.Ask(mcptest.ModelCall{ID: "a", Name: "f", Arguments: "{}"}).EndsAfter(3),
		"stopped without a reason": streams(begun, stopped),
		"nothing at all":           mcptest.ModelEvents(""),
		"garbled":                  streams(begun, "{no"),
		"a garbled delta":          streams(begun, `{"type":"content_block_delta","delta":7}`),
	} {
		t.Run(name, func(t *testing.T) {
			played := mcptest.NewModel(t, fault, mcptest.Say("fine"))
			shown := ""
			got, err := port(t, played, impatient).Generate(t.Context(), question, func(piece string) { shown += piece })
			if err != nil {
				t.Fatal(err)
			}
			asked := played.Requests()
			if got.Text != "fine" || shown != "fine" || len(asked) != 2 || string(asked[0].Body) != string(asked[1].Body) {
				t.Errorf("got %+v, shown %q, after %d requests", got, shown, len(asked))
			}
		})
	}
}

// Faults that do not pass are told at once, in the endpoint's own words.
func TestFaultsThatStay(t *testing.T) {
	const key = "sk-secret"
	for name, test := range map[string]struct {
		answer mcptest.ModelAnswer
		words  string
	}{
		"400":                     {mcptest.ModelFailure(400, "max_tokens: too\n many."), "400 Bad Request: max_tokens: too many"},
		"401":                     {mcptest.ModelFailure(401, "invalid x-api-key "+key), "refused its credential (401 Unauthorized)"},
		"403":                     {mcptest.ModelFailure(403, key+" may not"), "refused its credential (403 Forbidden): [redacted] may not"},
		"404":                     {mcptest.ModelFailure(404, "model: m-1"), "404 Not Found: model: m-1"},
		"413":                     {mcptest.ModelFailure(413, "Request exceeds the maximum size"), "413 Request Entity Too Large: Request exceeds"},
		"429 for long":            {mcptest.ModelBusy(3600), "429 Too Many Requests and asked for a pause of 1h0m0s"},
		"invalid in the stream":   {streams(begun, reports("invalid_request_error")), "reported an error inside its answer: Told so"},
		"a denied key inside":     {streams(begun, reports("authentication_error")), "inside its answer: Told so"},
		"too large inside":        {streams(begun, reports("request_too_large")), "inside its answer: Told so"},
		"a page instead":          {mcptest.ModelPage(200, "text/html", "<html>"), "something else than a stream"},
		"a JSON error as success": {mcptest.ModelPage(200, "application/json", reports("billing_error")), "inside its answer: Told so"},
		"an error without a type": {mcptest.ModelPage(200, "application/json", `{"error":{"type":"not_found_error","message":"no such path"}}`), "no such path"},
	} {
		t.Run(name, func(t *testing.T) {
			played := mcptest.NewModel(t, test.answer)
			_, err := port(t, played, withKey(key)).Generate(t.Context(), question, nil)
			wantFailure(t, err, failure.KindModelError, "the model endpoint 127.0.0.1:", test.words)
			if asked := len(played.Requests()); asked != 1 || strings.Contains(err.Error(), key) {
				t.Errorf("asked %d times: %v", asked, err)
			}
		})
	}
}

// Once text was shown, no attempt is repeated: the pieces of two attempts would mix.
func TestShownTextIsNotRepeated(t *testing.T) {
	for name, fault := range map[string]mcptest.ModelAnswer{
		"cut":        mcptest.Say("half of it").CutAfter(2),
		"ended":      mcptest.Say("half of it").EndsAfter(2),
		"silent":     mcptest.Say("half of it").IdlesAfter(2),
		"overloaded": mcptest.Say("half of it").FailsAfter(2, reports("overloaded_error")),
	} {
		t.Run(name, func(t *testing.T) {
			played := mcptest.NewModel(t, fault, mcptest.Say("whole"))
			shown := ""
			_, err := port(t, played, impatient).Generate(t.Context(), question, func(piece string) { shown += piece })
			wantFailure(t, err, failure.KindModelError, "after part of its answer was shown")
			if len(played.Requests()) != 1 || shown != "half of " {
				t.Errorf("asked %d times, shown %q", len(played.Requests()), shown)
			}
		})
	}
}

// The attempts are the adapter's own: the library adds none.
func TestAttemptsEnd(t *testing.T) {
	played := mcptest.NewModel(t)
	played.AnswerWith(func(mcptest.ModelRequest) mcptest.ModelAnswer { return mcptest.ModelFailure(529, "Overloaded") })
	_, err := port(t, played).Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "answered 529 at each of 4 attempts: Overloaded")
	if asked := len(played.Requests()); asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}

// An endpoint that redirects would take the conversation and the key elsewhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	host := mcptest.NewHost(t, nil)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	redirecting := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "models.example" {
			return transport.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: http.Header{"Location": {host.URL()}}, Request: r, Body: http.NoBody}, nil
	})
	m, err := anthropic.New(anthropic.Options{BaseURL: "https://models.example", Client: &http.Client{Transport: redirecting}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), question, nil)
	wantFailure(t, err, failure.KindModelError, "307")
	if len(host.Requests()) != 0 {
		t.Error("the redirect was followed")
	}
}

// roundTrip is a way out of the test's own making.
type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
