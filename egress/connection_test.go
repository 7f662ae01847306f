package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"testing"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

// reused makes a request and reports whether it went over a kept connection.
func reused(t *testing.T, client *http.Client, target string) bool {
	t.Helper()
	var kept bool
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { kept = got.Reused },
	})
	request, err := http.NewRequestWithContext(trace, http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(client.Do(request)); err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestConnectionsAreSharedUnderEqualPolicyOnly(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	out := open(t, egress.Options{Policy: loopback, Tenants: map[string]egress.Policy{
		"plain":       {},
		"picky":       {AllowHosts: []string{"*.example.com", "127.0.0.1"}},
		"picky too":   {AllowHosts: []string{"127.0.0.1", "A.example.com", "*.EXAMPLE.com."}},
		"strict":      {DenyHosts: []string{"example.com"}},
		"strict too":  {DenyHosts: []string{"example.com", "Example.com."}},
		"strict more": {DenyHosts: []string{"*.example.com"}},
	}})
	for _, step := range []struct {
		tenant string
		reused bool
	}{
		{"", false}, {"", true}, {"plain", true}, {"unknown", true},
		{"picky", false}, {"picky too", true},
		{"strict", false}, {"strict too", true}, {"strict more", false},
		{"plain", true},
	} {
		if got := reused(t, out.Client(step.tenant), server.URL); got != step.reused {
			t.Errorf("tenant %q: the connection was reused: %v, want %v", step.tenant, got, step.reused)
		}
	}
	model, err := out.ModelClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	again, err := out.ModelClient(server.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	if reused(t, model, server.URL) || !reused(t, again, server.URL) {
		t.Error("a model's connections are its own, and all clients of one model share them")
	}
}

// A kept connection is no way around a policy that came later.
func TestANewPolicyHoldsForTheNextRequest(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	out := open(t, egress.Options{Policy: loopback})
	acme, other := out.Client("acme"), out.Client("other")
	if reused(t, acme, server.URL) || !reused(t, other, server.URL) {
		t.Fatal("equal policies share")
	}
	if err := out.SetTenants(map[string]egress.Policy{"acme": {DenyHosts: []string{"127.0.0.1"}}}); err != nil {
		t.Fatal(err)
	}
	_, err := get(t, acme, server.URL)
	expectDenied(t, err, "the host 127.0.0.1 is closed by egress.deny_hosts")
	expectDenied(t, out.Judge("acme", server.URL), "egress.deny_hosts")
	if !reused(t, other, server.URL) {
		t.Fatal("another tenant's connection was not kept")
	}
	err = out.SetTenants(map[string]egress.Policy{"acme": {}, "other": {AllowHTTP: true}})
	if _, ok := errors.AsType[*failure.SpecInvalid](err); !ok {
		t.Fatal(err)
	}
	_, err = get(t, acme, server.URL)
	expectDenied(t, err, "egress.deny_hosts")
	if err := out.SetTenants(nil); err != nil {
		t.Fatal(err)
	}
	if !reused(t, acme, server.URL) {
		t.Fatal("equal policies share again")
	}
	if requests.Load() != 4 {
		t.Fatalf("%d requests came through", requests.Load())
	}
}

// closings returns a server and a channel that tells of each connection that ended.
func closings(t *testing.T) (*httptest.Server, <-chan struct{}) {
	t.Helper()
	ended := make(chan struct{}, 16)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, ended
}

func TestConnectionsEndWithTheirPolicy(t *testing.T) {
	server, ended := closings(t)
	out := open(t, egress.Options{Policy: loopback, Tenants: map[string]egress.Policy{"acme": {DenyHosts: []string{"a.com"}}}})
	reused(t, out.Client("acme"), server.URL)
	reused(t, out.Client(""), server.URL)
	if err := out.SetTenants(map[string]egress.Policy{"acme": {DenyHosts: []string{"b.com"}}}); err != nil {
		t.Fatal(err)
	}
	<-ended
	if !reused(t, out.Client(""), server.URL) {
		t.Fatal("the connection of a policy that stays was not kept")
	}
}

func TestCloseEndsConnectionsAndTakesNoMoreRequests(t *testing.T) {
	server, ended := closings(t)
	out := open(t, egress.Options{Policy: loopback})
	model, err := out.ModelClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := out.Client("acme")
	reused(t, client, server.URL)
	reused(t, model, server.URL)
	out.Close()
	out.Close()
	<-ended
	<-ended
	for _, closed := range []*http.Client{client, model, out.Client("late")} {
		if _, err := get(t, closed, server.URL); failure.KindOf(err) != failure.KindCancelled {
			t.Errorf("a request after the end: %v", err)
		}
	}
	for _, err := range []error{out.Judge("", "https://example.com"), out.SetTenants(nil)} {
		if failure.KindOf(err) != failure.KindCancelled {
			t.Errorf("after the end: %v", err)
		}
	}
}

func TestManyCallersKeepTheirConnections(t *testing.T) {
	const callers = 64
	var arrived sync.WaitGroup
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // no answer before all callers are here: each has a connection
	})
	out := open(t, egress.Options{Policy: loopback})
	client := out.Client("")
	var fresh counter
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			fresh.Add(1)
		}
	}})
	for range 3 {
		arrived.Add(callers)
		var waiting sync.WaitGroup
		for range callers {
			waiting.Go(func() {
				request, err := http.NewRequestWithContext(trace, http.MethodGet, server.URL, nil)
				if err == nil {
					_, err = read(client.Do(request))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
	}
	if n := fresh.Load(); n != callers {
		t.Fatalf("%d connections for %d callers", n, callers)
	}
}

func TestHTTP2IsSpokenWhereItIsOffered(t *testing.T) {
	const callers = 16
	var arrived sync.WaitGroup
	server := secureServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("spoken is %s", r.Proto)
		}
		arrived.Done()
		arrived.Wait()
	})
	out := open(t, egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes("127.0.0.1/32")}, RootCAs: authorityOf(server)})
	arrived.Add(1)
	if reused(t, out.Client("acme"), server.URL) {
		t.Fatal("the first request has no kept connection")
	}
	arrived.Add(callers)
	var waiting sync.WaitGroup
	for range callers {
		waiting.Go(func() {
			if !reused(t, out.Client("acme"), server.URL) {
				t.Error("one connection is enough")
			}
		})
	}
	waiting.Wait()
}

func TestNoCookieComesBack(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Error("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
	})
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	for range 2 {
		reused(t, client, server.URL)
	}
}
