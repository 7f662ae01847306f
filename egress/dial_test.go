package egress_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

// onceOnly makes a request whose connection is not kept.
func onceOnly(t *testing.T, client *http.Client, target string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	return read(client.Do(request))
}

func TestNamesAreJudgedByTheirAddresses(t *testing.T) {
	for address, class := range closedAddresses {
		parsed := netip.MustParseAddr(address)
		if parsed.Zone() != "" || parsed.Is4In6() {
			continue // no answer of a name server has these forms
		}
		t.Run(address, func(t *testing.T) {
			names := nameServerOf(t, always(parsed))
			out := open(t, egress.Options{Policy: egress.Policy{AllowHTTP: true}, Resolver: names.resolver()})
			_, err := get(t, out.Client(""), "http://inside.example/?key=hidden")
			expectDenied(t, err, "the host inside.example resolves to "+parsed.String()+", "+class+", which egress.allow_cidrs does not open")
			if denial := failure.KindOf(err); denial != failure.KindEgressDenied {
				t.Fatal(denial)
			}
		})
	}
}

func TestOddFormsOfLoopbackAreJudgedAsWhatTheyResolveTo(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	out := open(t, egress.Options{Policy: egress.Policy{AllowHTTP: true}, Resolver: names.resolver()})
	port := portOf(t, server.URL)
	for _, host := range []string{
		"2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "127.0.0.01", "localhost",
		"１２７.0.0.1", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "localtest.example",
	} {
		if body, err := get(t, out.Client(""), "http://"+host+":"+port+"/"); err == nil {
			t.Errorf("%s was reached: %s", host, body)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Fatalf("%d requests came through", n)
	}
}

// A name that is open the first time and closed the second is dialled the first
// time only; and each dial asks once, so that nothing can change between the
// judgement and the dial.
func TestANameThatChangesItsAddress(t *testing.T) {
	var inside, outside counter
	opened := listenOn(t, "127.0.0.2:0", outside.ServeHTTP)
	port := portOf(t, opened.URL)
	listenOn(t, "127.0.0.1:"+port, inside.ServeHTTP)
	names := nameServerOf(t, func(_ string, count int) []netip.Addr {
		if count == 0 {
			return addresses("127.0.0.2")
		}
		return addresses("127.0.0.1")
	})
	out := open(t, egress.Options{
		Policy:   egress.Policy{AllowHTTP: true, AllowCIDRs: prefixes("127.0.0.2/32")},
		Resolver: names.resolver(),
	})
	target := "http://rebinding.example:" + port + "/"
	if _, err := onceOnly(t, out.Client(""), target); err != nil {
		t.Fatal(err)
	}
	if n := names.questions("rebinding.example"); n != 1 {
		t.Fatalf("one dial asked %d times", n)
	}
	_, err := onceOnly(t, out.Client(""), target)
	expectDenied(t, err, "the host rebinding.example resolves to 127.0.0.1, a loopback address")
	if inside.Load() != 0 || outside.Load() != 1 {
		t.Fatalf("%d requests came inside and %d outside", inside.Load(), outside.Load())
	}
}

func TestANameWithOneOpenAddressGoesThere(t *testing.T) {
	var inside, outside counter
	opened := listenOn(t, "127.0.0.2:0", outside.ServeHTTP)
	port := portOf(t, opened.URL)
	listenOn(t, "127.0.0.1:"+port, inside.ServeHTTP)
	names := nameServerOf(t, always(addresses("127.0.0.1", "127.0.0.2")...))
	out := open(t, egress.Options{
		Policy:   egress.Policy{AllowHTTP: true, AllowCIDRs: prefixes("127.0.0.2/32")},
		Resolver: names.resolver(),
	})
	for range 4 {
		if _, err := onceOnly(t, out.Client(""), "http://both.example:"+port+"/"); err != nil {
			t.Fatal(err)
		}
	}
	if inside.Load() != 0 || outside.Load() != 4 {
		t.Fatalf("%d requests came inside and %d outside", inside.Load(), outside.Load())
	}
}

func TestADeniedAddressIsClosedToNamesToo(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	policy := loopback
	policy.DenyHosts = []string{"127.0.0.1"}
	out := open(t, egress.Options{Policy: policy, Resolver: names.resolver()})
	_, err := get(t, out.Client(""), "http://alias.example:"+portOf(t, server.URL)+"/")
	expectDenied(t, err, "the host alias.example resolves to 127.0.0.1, an address that egress.deny_hosts closes")
	if requests.Load() != 0 {
		t.Fatal("the request came through")
	}
}

func TestAHostOutsideASCIIIsAskedForAsItWasJudged(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	policy := loopback
	policy.AllowHosts = []string{"xn--bcher-kva.example"}
	out := open(t, egress.Options{Policy: policy, Resolver: names.resolver()})
	port := portOf(t, server.URL)
	body, err := get(t, out.Client(""), "http://Bücher.example:"+port+"/")
	if err != nil || body != "hello from xn--bcher-kva.example:"+port {
		t.Fatal(body, err)
	}
	if n := names.questions("xn--bcher-kva.example"); n != 1 {
		t.Fatalf("asked %d times", n)
	}
}

// The environment can name a proxy, which would then dial what it likes.
func TestProxyVariablesAreIgnored(t *testing.T) {
	var proxied, direct counter
	proxy := serve(t, proxied.ServeHTTP)
	server := serve(t, direct.ServeHTTP)
	for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(variable, proxy.URL)
	}
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	out := open(t, egress.Options{Policy: loopback, Resolver: names.resolver()})
	if _, err := get(t, out.Client(""), "http://server.example:"+portOf(t, server.URL)+"/"); err != nil {
		t.Fatal(err)
	}
	if proxied.Load() != 0 || direct.Load() != 1 {
		t.Fatalf("%d requests came to the proxy and %d to the server", proxied.Load(), direct.Load())
	}
}

func TestTheHeaderNamesTheJudgedHost(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	out := open(t, egress.Options{Policy: loopback})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "denied.example"
	_, err = read(out.Client("").Do(request))
	expectDenied(t, err, "names another host in its header")
	if requests.Load() != 0 {
		t.Fatal("the request came through")
	}
}

func TestARefusedRequestReleasesItsBody(t *testing.T) {
	out := open(t, egress.Options{})
	body := &released{Reader: strings.NewReader("arguments")}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = read(out.Client("").Transport.RoundTrip(request))
	expectDenied(t, err, "plain http")
	if !body.closed || body.Len() != len("arguments") {
		t.Fatal("the body was read, or left open")
	}
}

type released struct {
	*strings.Reader
	closed bool
}

func (r *released) Close() error {
	r.closed = true
	return nil
}

// Operators are told of a refusal, and not of what a URL may hide.
func TestARefusalIsLogged(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	names := nameServerOf(t, always(netip.MustParseAddr("10.0.0.1")))
	out := open(t, egress.Options{
		Policy: egress.Policy{AllowHTTP: true}, Resolver: names.resolver(), Logger: zap.New(core),
	})
	for _, target := range []string{"http://127.0.0.1/?key=hidden", "http://inside.example/?key=hidden"} {
		_, err := get(t, out.Client("acme"), target)
		expectDenied(t, err, "")
		entries := logged.TakeAll()
		if len(entries) != 1 || entries[0].ContextMap()["tenant"] != "acme" {
			t.Fatal(entries)
		}
		if said := fmt.Sprint(entries[0].ContextMap()); strings.Contains(said, "hidden") || !strings.Contains(said, "allow_cidrs") {
			t.Fatal(said)
		}
	}
}

// What is wrong with a peer is not a denial, and keeps its type.
func TestOtherFailuresStayWhatTheyAre(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake that fails
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	out := open(t, egress.Options{Policy: egress.Policy{AllowCIDRs: prefixes("127.0.0.1/32")}})
	_, err := get(t, out.Client(""), stranger.URL)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Fatalf("an unknown authority: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	_, err = get(t, out.Client(""), "https://"+listener.Addr().String())
	if _, ok := errors.AsType[*net.OpError](err); !ok || failure.KindOf(err) == failure.KindEgressDenied {
		t.Fatalf("a closed port: %v", err)
	}
}

func portOf(t *testing.T, target string) string {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Port()
}
