package egress_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/egress"
)

// redirecting answers /from with a redirect to where the request says, and
// tells at /to what came.
func redirecting(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/from":
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(status)
	case "/again":
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if n == 0 {
			return
		}
		http.Redirect(w, r, "/again?n="+strconv.Itoa(n-1), http.StatusTemporaryRedirect)
	default:
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
	}
}

func authorized(t *testing.T, method, target string) *http.Request {
	t.Helper()
	var body io.Reader
	if method == http.MethodPost {
		body = bytes.NewReader([]byte("arguments"))
	}
	request, err := http.NewRequestWithContext(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer secret")
	request.Header.Set("X-Api-Key", "secret")
	request.Header.Set("Mcp-Session-Id", "secret")
	return request
}

func from(origin string, status int, to string) string {
	return origin + "/from?status=" + strconv.Itoa(status) + "&to=" + to
}

func TestARedirectOnItsOriginIsFollowed(t *testing.T) {
	server := serve(t, redirecting)
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"/to", server.URL + "/to"} {
			body, err := read(client.Do(authorized(t, http.MethodGet, from(server.URL, status, to))))
			if err != nil || body != "GET Bearer secret " {
				t.Errorf("GET, %d to %s: %q, %v", status, to, body, err)
			}
		}
	}
	unnamed := authorized(t, http.MethodGet, from(server.URL, http.StatusFound, "/to"))
	unnamed.Method = "" // which is a GET
	if body, err := read(client.Do(unnamed)); err != nil || body != "GET Bearer secret " {
		t.Errorf("without a method: %q, %v", body, err)
	}
	for _, status := range []int{307, 308} {
		body, err := read(client.Do(authorized(t, http.MethodPost, from(server.URL, status, "/to"))))
		if err != nil || body != "POST Bearer secret arguments" {
			t.Errorf("POST, %d: %q, %v", status, body, err)
		}
	}
}

func TestAPostDoesNotBecomeAGet(t *testing.T) {
	server := serve(t, redirecting)
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	for _, status := range []int{301, 302, 303} {
		_, err := read(client.Do(authorized(t, http.MethodPost, from(server.URL, status, "/to"))))
		expectDenied(t, err, "answers POST with a redirect of status "+strconv.Itoa(status)+", which would make it a GET")
	}
}

func TestNothingFollowsARedirectToAnotherOrigin(t *testing.T) {
	var strayed counter
	foreign := serve(t, strayed.ServeHTTP)
	server := serve(t, redirecting)
	port, foreignPort := portOf(t, server.URL), portOf(t, foreign.URL)
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	out := open(t, egress.Options{Policy: loopback, Resolver: names.resolver()})
	home := "http://mcp.example:" + port
	// A client of somebody's own making is held to the same.
	careless := out.Client("acme")
	careless.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	for name, to := range map[string]string{
		"another port":          "http://mcp.example:" + foreignPort + "/to?key=hidden",
		"another host":          "http://other.example:" + port + "/to?key=hidden",
		"a sub-domain":          "http://api.mcp.example:" + port + "/to?key=hidden",
		"a parent":              "http://example:" + port + "/to?key=hidden",
		"another scheme":        "https://mcp.example:" + port + "/to?key=hidden",
		"the address itself":    "http://127.0.0.1:" + port + "/to?key=hidden",
		"without a scheme":      "//other.example:" + foreignPort + "/to?key=hidden",
		"a metadata address":    "http://169.254.169.254/latest?key=hidden",
		"its port in its place": "http://mcp.example/to?key=hidden",
	} {
		t.Run(name, func(t *testing.T) {
			for _, status := range []int{301, 302, 303, 307, 308} {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					for _, client := range []*http.Client{out.Client("acme"), careless} {
						_, err := read(client.Do(authorized(t, method, from(home, status, to))))
						expectDenied(t, err, home+" redirects to ")
					}
				}
			}
		})
	}
	if strayed.Load() != 0 {
		t.Fatalf("%d requests strayed", strayed.Load())
	}
}

func TestARedirectToWhatIsNoOriginIsRefused(t *testing.T) {
	server := serve(t, redirecting)
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	for to, sentence := range map[string]string{
		"javascript:alert(1)":         `the scheme "javascript"`,
		"file:///etc/passwd":          `the scheme "file"`,
		"http://user:hidden@else/":    "a user name or a password",
		"http:opaque":                 "no host",
		strings.Repeat("ftp://a/", 2): `the scheme "ftp"`,
	} {
		_, err := read(client.Do(authorized(t, http.MethodGet, from(server.URL, http.StatusFound, to))))
		expectDenied(t, err, sentence)
	}
}

func TestASentenceAboutARedirectHoldsNoQuery(t *testing.T) {
	foreign := serve(t, redirecting)
	server := serve(t, redirecting)
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	_, err := read(client.Do(authorized(t, http.MethodPost, from(server.URL, http.StatusFound, foreign.URL+"/to?key=hidden"))))
	expectDenied(t, err, server.URL+" redirects to "+foreign.URL+", another origin, and redirects are followed on their own origin only")
}

func TestHTTPSDoesNotFallBackToHTTP(t *testing.T) {
	var cleartext counter
	plain := serve(t, cleartext.ServeHTTP)
	secure := httptest.NewTLSServer(http.HandlerFunc(redirecting))
	t.Cleanup(secure.Close)
	out := open(t, egress.Options{Policy: loopback, RootCAs: authorityOf(secure)})
	_, err := read(out.Client("acme").Do(authorized(t, http.MethodPost, from(secure.URL, http.StatusTemporaryRedirect, plain.URL))))
	expectDenied(t, err, secure.URL+" redirects to "+plain.URL)
	if cleartext.Load() != 0 {
		t.Fatal("the request went out in the clear")
	}
}

func TestRedirectsEnd(t *testing.T) {
	server := serve(t, redirecting)
	client := open(t, egress.Options{Policy: loopback}).Client("acme")
	if _, err := read(client.Do(authorized(t, http.MethodPost, server.URL+"/again?n=5"))); err != nil {
		t.Fatal(err)
	}
	_, err := read(client.Do(authorized(t, http.MethodPost, server.URL+"/again?n=6")))
	expectDenied(t, err, "redirects more than 5 times in a row")
}

// Each hop of a redirect is judged anew: what was closed meanwhile stays closed.
func TestEachHopIsJudged(t *testing.T) {
	var out *egress.Egress
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := out.SetTenants(map[string]egress.Policy{"acme": {DenyHosts: []string{"127.0.0.1"}}}); err != nil {
			t.Error(err)
		}
		http.Redirect(w, r, "/next", http.StatusTemporaryRedirect)
	})
	out = open(t, egress.Options{Policy: loopback})
	_, err := read(out.Client("acme").Do(authorized(t, http.MethodGet, server.URL)))
	expectDenied(t, err, "the host 127.0.0.1 is closed by egress.deny_hosts")
}
