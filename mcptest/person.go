package mcptest

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
)

// personCookie names who is logged in.
const personCookie = "person"

// Person is somebody with a browser, who is logged in at every [AuthorizationServer]
// and consents to whatever is shown.
type Person struct {
	// Name is the subject of the tokens that come of it; "" is "somebody".
	Name string
}

// ErrNotSentBack is an authorization page that sends nobody anywhere.
var ErrNotSentBack = errors.New("mcptest: the authorization page sent nobody back")

// Visit opens an authorization URL and returns the query of the address to which the
// person is sent back. It does not go there. It fails with [ErrNotSentBack] where the
// page stays.
func (p Person) Visit(ctx context.Context, authorizationURL string) (callback url.Values, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil)
	if err != nil {
		return nil, err
	}
	request.AddCookie(&http.Cookie{Name: personCookie, Value: url.QueryEscape(p.Name)})
	response, err := browser().RoundTrip(request)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	back, err := response.Location()
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 {
		return nil, ErrNotSentBack
	}
	return back.Query(), nil
}

// browser keeps no connection, so that none outlives a test.
func browser() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: RootCAs(), MinVersion: tls.VersionTLS12},
	}
}

func (x *Exchange) personName() string {
	cookie, err := x.http.Cookie(personCookie)
	if err != nil || cookie.Value == "" {
		return "somebody"
	}
	name, _ := url.QueryUnescape(cookie.Value)
	return name
}
