package egress_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/psych-systems/psych-go/egress"
	"github.com/psych-systems/psych-go/failure"
)

func TestAModelsAddressIsOpenToTheModelAlone(t *testing.T) {
	var requests, others counter
	server, other := serve(t, requests.ServeHTTP), serve(t, others.ServeHTTP)
	out := open(t, egress.Options{Policy: egress.Policy{AllowHosts: []string{"mcp.example.com"}}})
	model, err := out.ModelClient(server.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, model, server.URL+"/v1/chat/completions?key=hidden"); err != nil {
		t.Fatal(err)
	}
	port := portOf(t, server.URL)
	for _, elsewhere := range []string{
		other.URL, "https://127.0.0.1:" + port, "http://localhost:" + port, "http://127.0.0.2:" + port,
		"http://127.0.0.1/", "http://[::1]:" + port, "https://mcp.example.com/",
	} {
		_, err := get(t, model, elsewhere+"/v1?key=hidden")
		expectDenied(t, err, "is not "+server.URL+", where the model is")
	}
	for _, tenant := range []string{"", "acme"} {
		_, err := get(t, out.Client(tenant), server.URL)
		expectDenied(t, err, "")
		expectDenied(t, out.Judge(tenant, server.URL), "")
	}
	if requests.Load() != 1 || others.Load() != 0 {
		t.Fatalf("%d requests came to the model and %d elsewhere", requests.Load(), others.Load())
	}
}

func TestAModelsHostMayResolveToAPrivateAddress(t *testing.T) {
	var requests counter
	server := serve(t, requests.ServeHTTP)
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	port := portOf(t, server.URL)
	out := open(t, egress.Options{Resolver: names.resolver()})
	model, err := out.ModelClient("http://Model.Example.:" + port + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, model, "http://model.example:"+port+"/v1/models"); err != nil {
		t.Fatal(err)
	}
	_, err = get(t, model, "http://other.example:"+port+"/v1/models")
	expectDenied(t, err, "nothing else is open to the model's client")
}

func TestADenialHoldsForTheModelToo(t *testing.T) {
	names := nameServerOf(t, always(netip.MustParseAddr("127.0.0.1")))
	out := open(t, egress.Options{
		Policy: egress.Policy{DenyHosts: []string{"*.example.com", "127.0.0.1"}}, Resolver: names.resolver(),
	})
	for _, base := range []string{"https://api.Example.com/v1", "http://127.0.0.1:9000/v1", "http://[::ffff:127.0.0.1]:9000/v1"} {
		_, err := out.ModelClient(base)
		expectDenied(t, err, "is closed by egress.deny_hosts")
	}
	model, err := out.ModelClient("http://alias.example.org/v1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = get(t, model, "http://alias.example.org/v1")
	expectDenied(t, err, "the host alias.example.org resolves to 127.0.0.1, an address that egress.deny_hosts closes")
}

func TestABaseURLThatCannotBeUsed(t *testing.T) {
	out := open(t, egress.Options{})
	for _, base := range []string{"", "api.example.com/v1", "ftp://api.example.com", "https://", "https://user:hidden@api.example.com", "https://api.example.com:hidden"} {
		_, err := out.ModelClient(base)
		if _, ok := errors.AsType[*failure.SpecInvalid](err); !ok || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestAModelsKeyStaysOnItsOrigin(t *testing.T) {
	var strayed counter
	foreign := serve(t, strayed.ServeHTTP)
	server := serve(t, redirecting)
	out := open(t, egress.Options{Policy: loopback})
	model, err := out.ModelClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, err = read(model.Do(authorized(t, http.MethodPost, from(server.URL, http.StatusTemporaryRedirect, foreign.URL))))
	expectDenied(t, err, server.URL+" redirects to "+foreign.URL)
	if strayed.Load() != 0 {
		t.Fatal("the key strayed")
	}
}
