package mcptest_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/mcptest"
)

// A secure server speaks what its client offers, and ends connections and requests
// in the ways that HTTP/2 has for it: what was not processed a client may send
// again, and what was it may not.
func TestASecureServerEndsRequestsAsHTTP2Does(t *testing.T) {
	plainly := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}
	for _, test := range []struct {
		behaviour mcptest.Behaviour
		http2     bool
		requests  int // that reach the server
		answered  bool
	}{
		{mcptest.Ordinary(), true, 1, true},
		{mcptest.Ordinary(), false, 1, true},
		{mcptest.GoAway(true), true, 1, true},
		{mcptest.GoAway(true).Then(mcptest.Reset()), true, 1, false},
		{mcptest.GoAway(false), true, 2, true},
		{mcptest.GoAway(false), false, 1, false},
		{mcptest.RefuseStream(), true, 2, true},
		{mcptest.RefuseStream(), false, 1, false},
		{mcptest.BreakConnection(), true, 1, false},
		{mcptest.BreakConnection(), false, 1, false},
		{mcptest.Reset(), true, 1, false},
		{mcptest.CutHalfway(), true, 1, false},
	} {
		t.Run(test.behaviour.String()+" "+plainly[test.http2], func(t *testing.T) {
			t.Parallel()
			s := mcptest.NewServer(t, mcptest.TLS(), mcptest.Tools(mcptest.Tool{Name: "run"}))
			transport := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: mcptest.RootCAs(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: test.http2,
			}
			t.Cleanup(transport.CloseIdleConnections)
			client := &http.Client{Transport: transport}
			if got := send(client, callRequest(t, s, "run")); got.status != 200 {
				t.Fatalf("an ordinary call ended %+v", got)
			}
			s.On("tools/call", test.behaviour.Once())
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			got := send(client, callRequest(t, s, "run").WithContext(ctx))
			if (got.err == nil) != test.answered || ctx.Err() != nil {
				t.Errorf("the client saw %+v", got)
			}
			if test.answered && !strings.Contains(got.body, `"ok"`) {
				t.Errorf("the client was answered %s", got.body)
			}
			requests := s.Requests("tools/call")
			if len(requests) != 1+test.requests {
				t.Errorf("%d requests came", len(requests)-1)
			}
			for _, one := range requests {
				if one.Proto != plainly[test.http2] {
					t.Errorf("a request came over %s", one.Proto)
				}
			}
		})
	}
}
