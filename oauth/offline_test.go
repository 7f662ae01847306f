package oauth

import (
	"net/url"
	"testing"
)

// A provider of OpenID Connect ignores offline_access without prompt=consent.
func TestAPersonWhoIsAskedForOfflineAccessIsAskedToConsent(t *testing.T) {
	client := &Client{Resource: "https://mcp.example/mcp"}
	for _, one := range []struct {
		name, endpoint string
		scopes         []string
		prompt         string
	}{
		{"with the scope", "https://as.example/authorize", []string{"offline_access", "read"}, "consent"},
		{"with the scope, over what the endpoint's own query says", "https://as.example/authorize?prompt=none", []string{"offline_access"}, "consent"},
		{"without it", "https://as.example/authorize", []string{"read"}, ""},
		{"without it, what the endpoint's own query says stays", "https://as.example/authorize?prompt=login", nil, "login"},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := Server{Issuer: "https://as.example", AuthorizationEndpoint: one.endpoint, CodeChallengeMethods: []string{methodS256}}
			page, err := client.AuthorizationURL(server, AuthorizationRequest{
				ClientID: "c", RedirectURI: "http://127.0.0.1/callback", State: NewState(), Verifier: NewVerifier(), Scopes: one.scopes,
			})
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := url.Parse(page)
			if err != nil {
				t.Fatal(err)
			}
			if prompt := parsed.Query().Get("prompt"); prompt != one.prompt {
				t.Errorf("the person is asked with prompt=%s, not %s", prompt, one.prompt)
			}
		})
	}
}
