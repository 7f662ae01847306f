package mcptest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/psych-systems/psych-go/mcptest"
)

// callEcho calls the tool "echo" through the SDK.
func callEcho(ctx context.Context, session *mcp.ClientSession) (string, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}})
	if err != nil {
		return "", err
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

func TestAForgottenSessionIsLost(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20251125), mcptest.Tools(echo))
	session, err := connect(t, s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := callEcho(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	s.WaitStreams(1)
	s.DropSessions()
	if _, err := callEcho(t.Context(), session); !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("got %v", err)
	}
	lost := s.WaitFor(mcptest.LostSession, 1)
	if lost[0].Method != "tools/call" || lost[0].Session() != "session-1" {
		t.Errorf("the log holds %+v", lost[0])
	}
}

func TestALostSessionIsToldInTheWayOfTheScript(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20251125), mcptest.Tools(echo))
	s.On(mcptest.LostSession, mcptest.Status(400, "text/plain", "no valid session id"))
	session, err := connect(t, s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.DropSessions()
	if _, err := callEcho(t.Context(), session); err == nil || !strings.Contains(err.Error(), "Bad Request") {
		t.Errorf("got %v", err)
	}
}

func TestACutStreamIsResumedWhereItWasCut(t *testing.T) {
	for name, test := range map[string]struct {
		resume []mcptest.Behaviour
		fails  bool
	}{
		"as it should be":      {nil, false},
		"with all of it again": {[]mcptest.Behaviour{mcptest.ReplyAfter("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n")}, false},
		"not at all":           {[]mcptest.Behaviour{mcptest.Status(405, "", "")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20251125), mcptest.Tools(echo))
			s.On("tools/call", mcptest.Prime(time.Millisecond))
			s.On(mcptest.Resume, test.resume...)
			session, err := connect(t, s, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := callEcho(t.Context(), session)
			if test.fails != (err != nil) || !test.fails && text != "hi" {
				t.Errorf("got %q (%v)", text, err)
			}
			if got := s.Requests(mcptest.Resume); len(got) == 0 || got[0].Header.Get("Last-Event-ID") == "" {
				t.Errorf("%d requests resume", len(got))
			}
		})
	}
}

func TestEachTokenOpensItsOwnTools(t *testing.T) {
	for name, options := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewServer(t, append(options, mcptest.Authenticate(func(token string) ([]mcptest.Tool, bool) {
				return []mcptest.Tool{{Name: "tool-of-" + token}}, token == "ann" || token == "bob"
			}))...)
			var together sync.WaitGroup
			for _, token := range []string{"ann", "bob"} {
				together.Go(func() {
					session, err := connect(t, s, token, nil)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := session.ListTools(t.Context(), nil)
					if err != nil || len(got.Tools) != 1 || got.Tools[0].Name != "tool-of-"+token {
						t.Errorf("%s got %+v (%v)", token, got, err)
					}
				})
			}
			together.Wait()
			if _, err := connect(t, s, "eve", nil); err == nil {
				t.Error("a stranger came in")
			}
			for _, r := range s.Requests("tools/list") {
				if token := r.Token(); token != "ann" && token != "bob" {
					t.Errorf("the log holds %q", token)
				}
			}
		})
	}
}

func TestARestartKeepsTheAddressAndNothingElse(t *testing.T) {
	for name, options := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewServer(t, append(options, mcptest.Tools(echo))...)
			before := s.URL()
			if _, err := connect(t, s, "", func() {}); err != nil {
				t.Fatal(err)
			}
			s.Stop()
			if s.Streams() != 0 {
				t.Error("a stream outlived the server")
			}
			if _, err := newClient(t, "").Get(s.URL()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("a stopped server answers: %v", err)
			}
			s.Restart()
			session, err := connect(t, s, "", nil)
			if err != nil || s.URL() != before {
				t.Fatalf("at %s: %v", s.URL(), err)
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil { // the SDK learns the headers here
				t.Fatal(err)
			}
			if text, err := callEcho(t.Context(), session); err != nil || text != "hi" {
				t.Errorf("got %q (%v)", text, err)
			}
		})
	}
}

func TestABrokenStreamIsReset(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.HTTPSSE())
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
	r.Header.Set("Accept", "text/event-stream")
	response, err := newClient(t, "").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	s.WaitStreams(1)
	s.BreakStreams()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
	s.WaitStreams(0)
}

// On an HTTP+SSE server, what is said about a message goes to the stream, and what
// is done to a request is done to the POST.
func TestAnSSEServerMisbehavesOnBothSides(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.HTTPSSE(), mcptest.Tools(echo))
	session, err := connect(t, s, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.On("tools/call", mcptest.Error(-32042, "odd", "").Once(), mcptest.ReplyAfter(": hi\n\n").Then(mcptest.Accepted()).Once())
	if _, err := callEcho(t.Context(), session); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("got %v", err)
	}
	if text, err := callEcho(t.Context(), session); err != nil || text != "hi" {
		t.Errorf("got %q (%v)", text, err)
	}
	s.On("tools/call", mcptest.Status(500, "text/plain", "down").Once())
	if _, err := callEcho(t.Context(), session); err == nil {
		t.Error("a refused POST was a call")
	}
}

func TestTheServerAsksItsClient(t *testing.T) {
	s := mcptest.NewServer(t, mcptest.Legacy(mcptest.Version20250326))
	if _, err := connect(t, s, "", nil); err != nil {
		t.Fatal(err)
	}
	s.WaitStreams(1)
	s.WriteStreams("data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n")
	if got := s.WaitFor(mcptest.Response, 1); !strings.Contains(string(got[0].Body), `"result":{}`) {
		t.Errorf("the client answers %s", got[0].Body)
	}
}

func TestAHostRecordsWhoFollows(t *testing.T) {
	host := mcptest.NewHost(t, nil)
	s := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "run"}))
	s.On("tools/call", mcptest.Redirect(307, host.URL()+"/elsewhere"))
	if got := send(newClient(t, "secret"), callRequest(t, s, "run")); got.body != "{}" {
		t.Errorf("got %+v", got)
	}
	got := host.Requests()
	if len(got) != 1 || got[0].Path != "/elsewhere" || got[0].Token() != "secret" || got[0].Tool != "run" {
		t.Errorf("the host saw %+v", got)
	}
}

func TestAHostServesAHandlerOverSeveralLives(t *testing.T) {
	released := make(chan struct{})
	host := mcptest.NewHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			released <- struct{}{}
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	url := host.URL()
	for life := 1; life <= 2; life++ {
		stream, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Post(url, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "hello" {
			t.Errorf("it answers %q (%v)", body, err)
		}
		_ = answer.Body.Close()
		host.CutStreams()
		<-released
		if _, err := io.ReadAll(stream.Body); err == nil {
			t.Error("the stream was not cut")
		}
		_ = stream.Body.Close()
		host.Stop()
		if response, err := http.Get(url); err == nil {
			_ = response.Body.Close()
			t.Error("it answers when it is stopped")
		}
		host.Start()
	}
	if host.URL() != url || len(host.Requests()) != 4 {
		t.Errorf("it is at %s, with %d requests", host.URL(), len(host.Requests()))
	}
}
