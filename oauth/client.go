package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
)

const (
	// defaultTimeout bounds a request where the client does not say.
	defaultTimeout = 15 * time.Second
	// maxBody bounds, in bytes, what is read of any answer.
	maxBody = 1 << 20
	// maxRedirects is how many redirects in a row a metadata request follows.
	maxRedirects = 5
	// longestRetryAfter bounds what a server may ask for.
	longestRetryAfter = time.Hour
)

// Client sends the requests of an authorization. It holds no state and may be used
// from several goroutines.
type Client struct {
	// HTTP is the tenant's way out; every hop goes through it. Never nil. Its rule
	// for redirects and its cookies are not used.
	HTTP *http.Client
	// Resource is the canonical URL of the MCP server, which everything is for.
	Resource string
	// Timeout bounds each request with its answer; 0 means 15 s.
	Timeout time.Duration
	// Logger is told of each answer; nil means silence.
	Logger *zap.Logger
	// Override is what an operator has decided for this server.
	Override Override
}

// Override is what an operator has decided for one server that does not keep to
// the specification. The zero value changes nothing.
type Override struct {
	// AssumeS256 uses PKCE with S256 although the metadata does not name
	// code_challenge_methods_supported.
	AssumeS256 bool
	// Resource replaces the value of the resource parameter (RFC 8707), byte for
	// byte. nil: the metadata's value is sent; "": none is.
	Resource *string
	// Issuer is taken to be the issuer of any metadata document, whatever that says;
	// "" leaves the check as it is. It is for issuers that are templates.
	Issuer string
}

// resource is the value of the resource parameter; "" for none.
func (c *Client) resource(told string) string {
	if c.Override.Resource != nil {
		return *c.Override.Resource
	}
	return told
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// gone says that there is nothing at the address.
func (a answer) gone() bool { return a.status == http.StatusNotFound || a.status == http.StatusGone }

// busy says that the status is about the server's own state and not about what
// was asked.
func (a answer) busy() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return a.status >= 500
}

// isPage reports whether a person was meant to read the answer: what stands before
// a server answers so, the endpoint itself does not.
func (a answer) isPage() bool {
	start := strings.ToLower(strings.TrimSpace(string(a.body[:min(len(a.body), 64)])))
	return strings.Contains(strings.ToLower(a.header.Get("Content-Type")), "html") ||
		strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
}

// retryAfter is the delay that the server asks for; 0 where it names none.
func (a answer) retryAfter() time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(a.header.Get("Retry-After")), 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestRetryAfter)
}

// get fetches a metadata document. Redirects are followed on the same origin.
func (c *Client) get(ctx context.Context, what, where string, header http.Header) (answer, error) {
	return c.send(ctx, http.MethodGet, what, where, nil, header, func(next *http.Request, via []*http.Request) error {
		first := via[0].URL
		switch {
		case !sameOrigin(first, next.URL):
			return unusable("%s was redirected from %s to %s; only its own origin is followed", what, bare(first), originOf(next.URL))
		case len(via) > maxRedirects:
			return unusable("%s at %s was redirected more than %d times", what, bare(first), maxRedirects)
		}
		return nil
	})
}

// post sends what must not go anywhere else: it follows no redirect.
func (c *Client) post(ctx context.Context, what, where string, body io.Reader, header http.Header) (answer, error) {
	got, err := c.send(ctx, http.MethodPost, what, where, body, header, func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	})
	if err == nil && got.status >= 300 && got.status < 400 {
		return answer{}, unusable("%s at %s answered %d and sent the request elsewhere; such a request follows no redirect",
			what, shown(where), got.status)
	}
	return got, err
}

func (c *Client) send(
	ctx context.Context, method, what, where string, body io.Reader, header http.Header,
	redirected func(*http.Request, []*http.Request) error,
) (answer, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, where, body)
	if err != nil {
		return answer{}, unusable("%s at %s is no address of a server", what, shown(where))
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: c.HTTP.Transport, CheckRedirect: redirected}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, c.unanswered(ctx, what, request.URL, timeout, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written to it
	read, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return answer{}, c.unanswered(ctx, what, request.URL, timeout, err)
	case len(read) > maxBody:
		return answer{}, &Unusable{detail{what + " at " + bare(request.URL) + " answered more than 1 MiB",
			failure.KindMcpResponseTooLarge, nil}}
	}
	c.log().Debug(what+" answered", zap.String("url", bare(request.URL)), zap.Int("status", response.StatusCode))
	return answer{response.StatusCode, response.Header, read}, nil
}

// unanswered is a request that got no whole answer. What has a kind already, from
// the egress or from a redirect, passes as it is. The text of what net/http wraps
// around a cause holds the whole URL and is left behind.
func (c *Client) unanswered(ctx context.Context, what string, where *url.URL, timeout time.Duration, err error) error {
	if known, ok := errors.AsType[failure.Failure](err); ok {
		return known
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return temporary(ctx.Err(), "%s at %s was not waited for", what, bare(where))
	case ctx.Err() != nil:
		return temporary(ctx.Err(), "%s at %s did not answer within %s", what, bare(where), timeout)
	}
	return temporary(err, "%s at %s could not be reached", what, bare(where))
}

func (c *Client) log() *zap.Logger {
	if c.Logger == nil {
		return zap.NewNop()
	}
	return c.Logger
}
