package mcptest

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The endpoints of an [AuthorizationServer], for [AuthorizationServer.On] and
// [AuthorizationServer.Requests].
const (
	AuthorizeEndpoint = "/authorize"
	TokenEndpoint     = "/token"
	RegisterEndpoint  = "/register"
	RevokeEndpoint    = "/revoke"
)

// AuthorizationServer is an OAuth 2.1 authorization server on a loopback socket,
// strict where the specifications are: a client authenticates in its one way, a code
// and a rotated refresh token are good once, and a second use revokes what came of
// the first. Its methods are safe for concurrent use.
type AuthorizationServer struct {
	scripted
	address string
	tls     bool
	// running is nil while the server is stopped. Only the test's own goroutine starts
	// and stops it.
	running *process

	// What follows is guarded by mu.
	authority Authority
	// origin is that of the MCP server which the authorization server is a part of; ""
	// for its own.
	origin  string
	clients map[string]Client
	codes   map[string]*authorizationCode
	access  map[string]*accessToken
	refresh map[string]*refreshToken
	// assertions are the ids of those that were used.
	assertions map[string]bool
	// secrets is everything that was given out and is nobody else's business.
	secrets []string
}

// NewAuthorizationServer starts a server and stops it at the end of the test.
func NewAuthorizationServer(tb testing.TB, authority Authority) *AuthorizationServer {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("mcptest: the authorization server cannot listen: %v", err)
	}
	a := &AuthorizationServer{
		address: listener.Addr().String(), tls: authority.TLS, authority: authority, clients: map[string]Client{},
		codes: map[string]*authorizationCode{}, access: map[string]*accessToken{}, refresh: map[string]*refreshToken{},
		assertions: map[string]bool{},
	}
	for _, client := range authority.Clients {
		a.know(client)
	}
	a.prepare(tb)
	a.running = a.serve(listener)
	tb.Cleanup(a.Stop)
	return a
}

// Origin is the server's scheme, host and port.
func (a *AuthorizationServer) Origin() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.origin != "":
		return a.origin
	case a.tls:
		return "https://" + a.address
	default:
		return "http://" + a.address
	}
}

// Issuer is the server's name, as its metadata tells it before a test changes that.
func (a *AuthorizationServer) Issuer() string { return a.Origin() + a.present().Path }

// Change changes what the server is like from the next request on; Path and TLS stay.
// Clients that are added are known.
func (a *AuthorizationServer) Change(change func(*Authority)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path, secured := a.authority.Path, a.authority.TLS
	change(&a.authority)
	a.authority.Path, a.authority.TLS = path, secured
	for _, client := range a.authority.Clients {
		if _, known := a.clients[client.ID]; !known {
			a.know(client)
		}
	}
}

// know adds a client. Caller holds mu.
func (a *AuthorizationServer) know(client Client) {
	a.clients[client.ID] = client
	if client.Secret != "" {
		a.secrets = append(a.secrets, client.Secret)
	}
}

func (a *AuthorizationServer) present() Authority {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.authority
}

func (a *AuthorizationServer) serve(listener net.Listener) *process {
	if a.tls {
		return serve(listener, a, secure())
	}
	return serve(listener, a, nil)
}

// Start starts a server that [AuthorizationServer.Stop] stopped, at its old address
// and with all that it knew.
func (a *AuthorizationServer) Start() {
	a.tb.Helper()
	if a.running != nil {
		return
	}
	listener, err := listen(a.address)
	if err != nil {
		a.tb.Fatalf("mcptest: the authorization server cannot listen: %v", err)
	}
	a.running = a.serve(listener)
}

// Stop closes the socket and every connection, and waits until each request has ended.
func (a *AuthorizationServer) Stop() {
	if a.running != nil {
		a.running.stop()
		a.running = nil
	}
}

// Restart is a Stop and a Start.
func (a *AuthorizationServer) Restart() {
	a.tb.Helper()
	a.Stop()
	a.Start()
}

// ForgetClients forgets every client, as a server that lost its database does; what
// was granted to them stays.
func (a *AuthorizationServer) ForgetClients() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.clients)
}

// Secrets is all that was given out or is known to clients alone: tokens, codes and
// clients' secrets, for tests that look for them where they do not belong.
func (a *AuthorizationServer) Secrets() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.secrets)
}

// ServeHTTP answers one request: by a script, or as an ordinary server.
func (a *AuthorizationServer) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client hung up
	}
	a.play(a.exchange(w, hr, body))
}

// exchange is a request of the server: one that no MCP server has a hand in.
func (a *AuthorizationServer) exchange(w http.ResponseWriter, hr *http.Request, body []byte) *Exchange {
	return &Exchange{Request: NewRequest(hr, body), http: hr, writer: w, server: &Server{}, ordinary: a.answer}
}

// answer makes the ordinary answer to a request.
func (a *AuthorizationServer) answer(x *Exchange) reply {
	path, method := x.Request.path(), x.Request.HTTPMethod
	switch {
	case method == http.MethodGet && slices.Contains(a.Locations(), path):
		return reply{message: a.document()}
	case method == http.MethodGet && path == AuthorizeEndpoint:
		return a.authorize(x)
	case method == http.MethodPost && path == TokenEndpoint:
		return a.token(x)
	case method == http.MethodPost && path == RegisterEndpoint:
		return a.register(x)
	case method == http.MethodPost && path == RevokeEndpoint:
		return a.revoke(x)
	default:
		return reply{status: http.StatusNotFound}
	}
}

// Locations are the paths at which the metadata is, in the order in which clients
// look there (MCP, "Authorization Server Metadata Discovery").
func (a *AuthorizationServer) Locations() []string {
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.TrimSuffix(a.present().Path, "/")
	if path == "" {
		return []string{oauth, openID}
	}
	return []string{oauth + path, openID + path, path + openID}
}

// document is the metadata (RFC 8414 section 2).
func (a *AuthorizationServer) document() string {
	origin, issuer, authority := a.Origin(), a.Issuer(), a.present()
	document := map[string]any{
		"issuer":                                           issuer,
		"authorization_endpoint":                           origin + AuthorizeEndpoint,
		"token_endpoint":                                   origin + TokenEndpoint,
		"registration_endpoint":                            origin + RegisterEndpoint,
		"revocation_endpoint":                              origin + RevokeEndpoint,
		"response_types_supported":                         []string{"code"},
		"grant_types_supported":                            []string{"authorization_code", "refresh_token", "client_credentials"},
		"code_challenge_methods_supported":                 []string{"S256"},
		"token_endpoint_auth_methods_supported":            []string{"client_secret_basic", "client_secret_post", "private_key_jwt", "none"},
		"token_endpoint_auth_signing_alg_values_supported": []string{"ES256", "RS256"},
	}
	if !authority.WithoutIss {
		document["authorization_response_iss_parameter_supported"] = true
	}
	if authority.DocumentClients {
		document["client_id_metadata_document_supported"] = true
	}
	if authority.Metadata != nil {
		authority.Metadata(document)
	}
	return jsonOf(document)
}

func jsonOf(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // a test put into it what JSON does not know
	}
	return string(encoded)
}

// refused is an error answer (RFC 6749 section 5.2).
func refused(status int, code, description string) reply {
	return reply{status: status, message: jsonOf(map[string]string{"error": code, "error_description": description})}
}

// ClientIDs are the ids of all clients that are known, sorted.
func (a *AuthorizationServer) ClientIDs() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.clients))
}
