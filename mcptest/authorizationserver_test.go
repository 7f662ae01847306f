package mcptest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/psych-systems/psych-go/mcptest"
)

const back = "http://127.0.0.1:7777/callback"

// config is a client of others: x/oauth2's own.
func config(a *mcptest.AuthorizationServer, client mcptest.Client, style oauth2.AuthStyle) *oauth2.Config {
	return &oauth2.Config{
		ClientID: client.ID, ClientSecret: client.Secret, RedirectURL: back, Scopes: []string{"read"},
		Endpoint: oauth2.Endpoint{AuthURL: a.Origin() + mcptest.AuthorizeEndpoint, TokenURL: a.Origin() + mcptest.TokenEndpoint, AuthStyle: style},
	}
}

// withClient is a context in which x/oauth2 uses a client that keeps no connection.
func withClient(t *testing.T) context.Context {
	return context.WithValue(t.Context(), oauth2.HTTPClient, newClient(t, ""))
}

// consent takes a person through the authorization endpoint.
func consent(t *testing.T, c *oauth2.Config, resource string) (callback url.Values, verifier string) {
	t.Helper()
	verifier = oauth2.GenerateVerifier()
	callback, err := mcptest.Person{Name: "ann"}.Visit(t.Context(),
		c.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", resource)))
	if err != nil {
		t.Fatal(err)
	}
	return callback, verifier
}

func TestAPersonsConsentBecomesATokenThatTheServerTakes(t *testing.T) {
	client := mcptest.Client{ID: "app", Secret: "s", RedirectURIs: []string{"http://127.0.0.1/callback"}}
	as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Clients: []mcptest.Client{client}})
	server := mcptest.NewServer(t, mcptest.Protected(as, mcptest.Protection{Scopes: map[string][]string{mcptest.Any: {"read"}}}))
	c := config(as, client, oauth2.AuthStyleInHeader)
	callback, verifier := consent(t, c, server.URL())
	if callback.Get("state") != "state" || callback.Get("iss") != as.Issuer() {
		t.Fatalf("ann came back with %v", callback)
	}
	token, err := c.Exchange(withClient(t), callback.Get("code"), oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	if session, err := connect(t, server, token.AccessToken, nil); err != nil {
		t.Errorf("the server refuses the token: %v", err)
	} else if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Errorf("the server refuses to list its tools: %v", err)
	}
	owner, known := as.Owner(token.AccessToken)
	want := mcptest.Owner{Client: "app", Subject: "ann", Grant: "authorization_code", Resource: server.URL(), Scopes: []string{"read"}}
	if !known || jsonText(owner) != jsonText(want) {
		t.Errorf("the token is %+v's, and not %+v's", owner, want)
	}
	if _, known := as.Owner("access-of-nobody"); known {
		t.Error("a token that was never issued has an owner")
	}
	if got := server.Tokens(); !slices.Equal(got, []string{token.AccessToken}) {
		t.Errorf("the server saw the tokens %v", got)
	}
	if got := as.Requests(mcptest.TokenEndpoint); len(got) != 1 || got[0].AuthenticationMethod() != "client_secret_basic" || got[0].Form().Get("code_verifier") != verifier {
		t.Errorf("the token endpoint saw %+v", got)
	}
}

func jsonText(value any) string {
	encoded, _ := json.Marshal(value)
	return string(encoded)
}

// post sends a form and returns the status and the answer.
func post(t *testing.T, where string, form url.Values, basic ...string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, where, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(basic) == 2 {
		request.SetBasicAuth(basic[0], basic[1])
	}
	got := send(newClient(t, ""), request)
	if got.err != nil {
		t.Fatal(got.err)
	}
	var answer map[string]any
	_ = json.Unmarshal([]byte(got.body), &answer)
	return got.status, answer
}

func TestTheTokenEndpointIsStrict(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Clients: []mcptest.Client{
		{ID: "basic", Secret: "s"}, {ID: "post", Secret: "s", Method: "client_secret_post"}, {ID: "public"}, {ID: "key", Key: key.Public()},
	}})
	assertion := func(audience, id string) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: "key", Subject: "key", Audience: jwt.Audience{audience}, ID: id, Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	form := func(pairs ...string) url.Values {
		values := url.Values{"grant_type": {"client_credentials"}, "resource": {"r"}}
		for i := 0; i < len(pairs); i += 2 {
			values.Add(pairs[i], pairs[i+1])
		}
		return values
	}
	good := assertion(as.Issuer(), "1")
	const kind = "client_assertion_type"
	for _, test := range []struct {
		name   string
		form   url.Values
		basic  []string
		status int
		code   string
	}{
		{"basic", form(), []string{"basic", "s"}, 200, ""},
		{"post", form("client_id", "post", "client_secret", "s"), nil, 200, ""},
		{"a key", form("client_id", "key", "client_assertion", good, kind, "jwt"), nil, 200, ""},
		{"an assertion that was used", form("client_id", "key", "client_assertion", good, kind, "jwt"), nil, 401, "invalid_client"},
		{"an assertion for another", form("client_id", "key", "client_assertion", assertion("x", "2"), kind, "jwt"), nil, 401, "invalid_client"},
		{"a wrong secret", form(), []string{"basic", "t"}, 401, "invalid_client"},
		{"the other method", form(), []string{"post", "s"}, 401, "invalid_client"},
		{"two methods", form("client_id", "basic", "client_secret", "s"), []string{"basic", "s"}, 400, "invalid_request"},
		{"another id beside", form("client_id", "post"), []string{"basic", "s"}, 401, "invalid_client"},
		{"a public client with an empty password", form(), []string{"public", ""}, 401, "invalid_client"},
		{"a public client", form("client_id", "public"), nil, 400, "unauthorized_client"},
		{"nobody", form(), nil, 401, "invalid_client"},
		{"two resources", form("resource", "q"), []string{"basic", "s"}, 400, "invalid_target"},
		{"no resource", url.Values{"grant_type": {"client_credentials"}}, []string{"basic", "s"}, 400, "invalid_target"},
		{"two grants", form("grant_type", "password"), []string{"basic", "s"}, 400, "invalid_request"},
		{"another grant", url.Values{"grant_type": {"password"}}, []string{"basic", "s"}, 400, "unsupported_grant_type"},
		{"an unknown code", url.Values{"grant_type": {"authorization_code"}}, []string{"basic", "s"}, 400, "invalid_grant"},
		{"an unknown refresh token", url.Values{"grant_type": {"refresh_token"}}, []string{"basic", "s"}, 400, "invalid_grant"},
	} {
		status, answer := post(t, as.Origin()+mcptest.TokenEndpoint, test.form, test.basic...)
		code, _ := answer["error"].(string)
		if status != test.status || code != test.code {
			t.Errorf("%s: got %d and %v, want %d and %q", test.name, status, answer, test.status, test.code)
		}
	}
}

// grantedTo is a public client with a grant.
func grantedTo(t *testing.T, authority mcptest.Authority) (as *mcptest.AuthorizationServer, exchange url.Values, token map[string]any) {
	t.Helper()
	authority.Clients = []mcptest.Client{{ID: "app", RedirectURIs: []string{back}}}
	as = mcptest.NewAuthorizationServer(t, authority)
	callback, verifier := consent(t, config(as, authority.Clients[0], oauth2.AuthStyleInParams), "r")
	exchange = url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"app"}, "code": {callback.Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {back}, "resource": {"r"},
	}
	status, token := post(t, as.Origin()+mcptest.TokenEndpoint, exchange)
	if status != http.StatusOK {
		t.Fatalf("the code was exchanged for %v", token)
	}
	return as, exchange, token
}

func TestACodeIsGoodOnceAndARefreshTokenTooAndThenTheWholeGrantEnds(t *testing.T) {
	for name, again := range map[string]func(as *mcptest.AuthorizationServer, exchange, refresh url.Values) url.Values{
		"the code":          func(_ *mcptest.AuthorizationServer, exchange, _ url.Values) url.Values { return exchange },
		"the refresh token": func(_ *mcptest.AuthorizationServer, _, refresh url.Values) url.Values { return refresh },
	} {
		as, exchange, token := grantedTo(t, mcptest.Authority{})
		refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {token["refresh_token"].(string)}, "resource": {"r"}}
		for _, wrong := range []url.Values{{"resource": {"q"}}, {"resource": nil}, {"scope": {"read write"}}} {
			form := url.Values{}
			for key, values := range refresh {
				form[key] = values
			}
			for key, values := range wrong {
				form[key] = values
			}
			if status, answer := post(t, as.Origin()+mcptest.TokenEndpoint, form); status != http.StatusBadRequest {
				t.Errorf("%s: a refresh with %v is answered %v", name, wrong, answer)
			}
		}
		status, second := post(t, as.Origin()+mcptest.TokenEndpoint, refresh)
		if status != http.StatusOK || second["refresh_token"] == token["refresh_token"] {
			t.Fatalf("%s: the refresh is answered %v", name, second)
		}
		if status, answer := post(t, as.Origin()+mcptest.TokenEndpoint, again(as, exchange, refresh)); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("%s is good twice: %v", name, answer)
		}
		refresh.Set("refresh_token", second["refresh_token"].(string))
		if status, answer := post(t, as.Origin()+mcptest.TokenEndpoint, refresh); status != http.StatusBadRequest || answer["error"] != "invalid_grant" {
			t.Errorf("after %s was used twice the grant lives on: %v", name, answer)
		}
	}
}

func TestWhatATestTakesAwayIsGone(t *testing.T) {
	as, _, token := grantedTo(t, mcptest.Authority{WithoutRotation: true})
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {token["refresh_token"].(string)}, "resource": {"r"}}
	code := func() string {
		_, answer := post(t, as.Origin()+mcptest.TokenEndpoint, refresh)
		text, _ := answer["error"].(string)
		return text
	}
	if got := code() + code(); got != "" {
		t.Errorf("a refresh token that is not rotated is good once: %s", got)
	}
	as.Restart()
	if got := code(); got != "" {
		t.Errorf("a restart lost the grant: %s", got)
	}
	as.ForgetClients()
	if got := code(); got != "invalid_client" {
		t.Errorf("a forgotten client is told %q", got)
	}
	as.Change(func(a *mcptest.Authority) { a.Clients = []mcptest.Client{{ID: "app"}} })
	as.On("refresh_token", mcptest.Status(503, "text/html", "<p>").Once())
	if status, _ := post(t, as.Origin()+mcptest.TokenEndpoint, refresh); status != http.StatusServiceUnavailable {
		t.Errorf("the script for refreshes is not played: %d", status)
	}
	as.RevokeGrants()
	if got := code(); got != "invalid_grant" {
		t.Errorf("a revoked grant is told %q", got)
	}
	if status, _ := post(t, as.Origin()+mcptest.RevokeEndpoint, url.Values{"client_id": {"app"}, "token": {"unknown"}}); status != http.StatusOK {
		t.Errorf("revoking what is not known is answered %d", status)
	}
}

func TestARegisteredClientIsWhatTheAnswerSays(t *testing.T) {
	for name, test := range map[string]struct {
		asked  string
		change func(asked, answer map[string]any)
		method string
	}{
		"by default":  {`{"redirect_uris":["` + back + `"]}`, nil, "client_secret_basic"},
		"as it asked": {`{"redirect_uris":["` + back + `"],"token_endpoint_auth_method":"none"}`, nil, "none"},
		"to its surprise": {`{"redirect_uris":["` + back + `"],"token_endpoint_auth_method":"none"}`, func(_, answer map[string]any) {
			answer["token_endpoint_auth_method"] = "client_secret_post"
			answer["client_secret"] = "s"
		}, "client_secret_post"},
		"with an id alone": {`{"redirect_uris":["` + back + `"]}`, func(_, answer map[string]any) { id := answer["client_id"]; clear(answer); answer["client_id"] = id }, "none"},
	} {
		as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Registration: test.change})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, as.Origin()+mcptest.RegisterEndpoint, strings.NewReader(test.asked))
		if err != nil {
			t.Fatal(err)
		}
		got := send(newClient(t, ""), request)
		var answer map[string]any
		_ = json.Unmarshal([]byte(got.body), &answer)
		if got.status != http.StatusCreated {
			t.Errorf("%s: got %d and %s", name, got.status, got.body)
			continue
		}
		id, _ := answer["client_id"].(string)
		password, _ := answer["client_secret"].(string)
		form, basic := url.Values{"grant_type": {"client_credentials"}, "resource": {"r"}}, []string(nil)
		switch test.method {
		case "client_secret_basic":
			basic = []string{id, password}
		case "client_secret_post":
			form.Set("client_secret", password)
			fallthrough
		default:
			form.Set("client_id", id)
		}
		status, told := post(t, as.Origin()+mcptest.TokenEndpoint, form, basic...)
		if test.method == "none" && told["error"] != "unauthorized_client" || test.method != "none" && status != http.StatusOK {
			t.Errorf("%s: the client is answered %d and %v", name, status, told)
		}
	}
}

func TestAPersonIsSentBackOrNowhere(t *testing.T) {
	as := mcptest.NewAuthorizationServer(t, mcptest.Authority{TLS: true, Clients: []mcptest.Client{{ID: "app", RedirectURIs: []string{back}}}})
	page := func(changes ...string) string {
		query := url.Values{
			"client_id": {"app"}, "redirect_uri": {back}, "response_type": {"code"}, "state": {"s"}, "resource": {"r"},
			"code_challenge": {"c"}, "code_challenge_method": {"S256"},
		}
		for i := 0; i < len(changes); i += 2 {
			query.Set(changes[i], changes[i+1])
		}
		return as.Origin() + mcptest.AuthorizeEndpoint + "?" + query.Encode()
	}
	for name, test := range map[string]struct {
		page string
		code string // of the error; "-" where nobody is sent back
	}{
		"all is well":               {page(), ""},
		"another port":              {page("redirect_uri", "http://127.0.0.1:1/callback"), ""},
		"another client":            {page("client_id", "x"), "-"},
		"another place":             {page("redirect_uri", "https://evil.example/callback"), "-"},
		"another path":              {page("redirect_uri", "http://127.0.0.1:7777/"), "-"},
		"another response":          {page("response_type", "token"), "unsupported_response_type"},
		"a plain challenge":         {page("code_challenge_method", "plain"), "invalid_request"},
		"no resource":               {page("resource", ""), "invalid_target"},
		"a parameter that is twice": {page() + "&state=t", "-"},
	} {
		callback, err := mcptest.Person{}.Visit(t.Context(), test.page)
		switch {
		case test.code == "-":
			if !errors.Is(err, mcptest.ErrNotSentBack) {
				t.Errorf("%s: came back with %v (%v)", name, callback, err)
			}
		case err != nil || callback.Get("error") != test.code || callback.Has("code") != (test.code == ""):
			t.Errorf("%s: came back with %v (%v)", name, callback, err)
		}
	}
	as.Change(func(a *mcptest.Authority) { a.Callback = mcptest.Deny("access_denied", "No.") })
	if callback, err := (mcptest.Person{}).Visit(t.Context(), page()); err != nil || callback.Get("error") != "access_denied" || callback.Has("code") || !callback.Has("iss") {
		t.Errorf("who is denied comes back with %v (%v)", callback, err)
	}
}

func TestTheMetadataIsWhereTheSpecificationsSay(t *testing.T) {
	for path, want := range map[string][]string{
		"":    {"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		"/":   {"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"},
		"/t":  {"/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"},
		"/t/": {"/.well-known/oauth-authorization-server/t", "/.well-known/openid-configuration/t", "/t/.well-known/openid-configuration"},
	} {
		as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Path: path})
		if got := as.Locations(); !slices.Equal(got, want) {
			t.Errorf("an issuer with the path %q is told of at %v", path, got)
		}
		for _, location := range as.Locations() {
			told, err := oauthex.GetAuthServerMeta(t.Context(), as.Origin()+location, as.Issuer(), newClient(t, ""))
			if err != nil || told == nil || told.Issuer != as.Origin()+path {
				t.Errorf("%s tells of %+v (%v)", location, told, err)
			}
		}
	}
}

func TestAProtectedServerSaysWhatItWants(t *testing.T) {
	as := mcptest.NewAuthorizationServer(t, mcptest.Authority{Clients: []mcptest.Client{{ID: "app", Secret: "s"}}})
	server := mcptest.NewServer(t, mcptest.Tools(mcptest.Tool{Name: "run"}), mcptest.Protected(as, mcptest.Protection{
		Scopes: map[string][]string{"tools/call": {"read", "write"}, mcptest.Any: {"read"}}, Open: []string{"server/discover"},
	}))
	issue := func(resource, scope string) string {
		_, answer := post(t, as.Origin()+mcptest.TokenEndpoint, url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {scope}}, "app", "s")
		return answer["access_token"].(string)
	}
	where := `resource_metadata="` + server.MetadataURL() + `"`
	for name, test := range map[string]struct {
		token, method string
		status        int
		challenge     string
	}{
		"a good token":              {issue(server.URL(), "read"), "tools/list", 200, ""},
		"no token where it is open": {"", "server/discover", 200, ""},
		"no token":                  {"", "tools/list", 401, `Bearer ` + where + `, scope="read"`},
		"a token of nobody":         {"x", "tools/list", 401, `Bearer error="invalid_token", ` + where + `, scope="read"`},
		"a token for another":       {issue(server.URL()+"/", "read"), "tools/list", 401, `Bearer error="invalid_token", ` + where + `, scope="read"`},
		"a token without the scope": {issue(server.URL(), "read"), "tools/call", 403, `Bearer error="insufficient_scope", ` + where + `, scope="write"`},
		"a token with both":         {issue(server.URL(), "read write"), "tools/call", 200, ""},
	} {
		r := request(t, server, test.method, "")
		if test.method == "tools/call" {
			r = callRequest(t, server, "run")
		}
		got := send(newClient(t, test.token), r)
		if got.status != test.status || got.header.Get("WWW-Authenticate") != test.challenge {
			t.Errorf("%s: got %d and %q", name, got.status, got.header.Get("WWW-Authenticate"))
		}
	}
	told, err := oauthex.GetProtectedResourceMetadata(t.Context(), server.MetadataURL(), server.URL(), newClient(t, ""))
	if err != nil || !slices.Equal(told.AuthorizationServers, []string{as.Issuer()}) || !slices.Equal(told.ScopesSupported, []string{"read", "write"}) {
		t.Errorf("the server says of itself %+v (%v)", told, err)
	}
	live := issue(server.URL(), "read")
	as.RevokeTokens()
	if got := send(newClient(t, live), request(t, server, "tools/list", "")); got.status != http.StatusUnauthorized {
		t.Errorf("a revoked token is answered %d", got.status)
	}
	if all := strings.Join(as.Secrets(), " "); !strings.Contains(all, live) || !strings.Contains(all, "s") {
		t.Errorf("the secrets are %s", all)
	}
}
