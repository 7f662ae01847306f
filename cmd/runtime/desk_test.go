package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheDeskLetsInNobodyItDoesNotKnowAndWritesThemDown(t *testing.T) {
	desk, err := openDesk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer desk.Close()
	for token, want := range map[string]audited{
		"":              {Method: "tools/call", Tool: "find_order", Arguments: `{"order":77}`},
		"token-of-":     {Method: "tools/call", Tool: "find_order", Arguments: `{"order":77}`},
		"token-of-acme": {Tenant: "acme", Method: "tools/call", Tool: "find_order", Arguments: `{"order":77}`},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_order","arguments":{ "order": 77 }}}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, desk.URL(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if refused := answer.StatusCode == http.StatusUnauthorized; refused != (want.Tenant == "") {
			t.Errorf("%q is answered %s", token, answer.Status)
		}
		entries := desk.audit.Entries()
		if got := entries[len(entries)-1]; got != want {
			t.Errorf("the audit has %+v, want %+v", got, want)
		}
	}
}
