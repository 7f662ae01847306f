package egress

import (
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
)

// maxRedirects is how many redirects in a row are followed.
const maxRedirects = 5

// errClosed is a request to an egress that was closed.
var errClosed = failure.New(failure.KindCancelled, "the way out was closed and takes no more requests", nil)

// guard is the transport of a client. It judges a request before anything of it
// is written and bounds what comes back. It holds for any http.Client that is
// made with it, whatever that client's own rule for redirects is.
type guard struct {
	egress *Egress
	logger *zap.Logger
	// route is what holds now; nil when the egress was closed.
	route func() *route
	// model is set for a model's client; see guard.ceilingOf.
	model bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	route := g.route()
	to, err := admit(route, request)
	if err != nil {
		g.refused(err)
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := route.transport.RoundTrip(written(request, to))
	if err != nil {
		if closed, ok := errors.AsType[*closedAddress](err); ok {
			err = denied(err, "the host %s resolves to %s, %s", to.host, closed.address, closed.reason)
			g.refused(err)
		}
		return nil, err
	}
	response.Body = g.bounded(response, to)
	return response, nil
}

// admit judges a request.
func admit(route *route, request *http.Request) (origin, error) {
	if route == nil {
		return origin{}, errClosed
	}
	to, err := originOf(request.URL)
	if err != nil {
		return to, err
	}
	if request.Host != "" && !strings.EqualFold(request.Host, request.URL.Host) {
		return to, denied(nil, "the request for %s names another host in its header", to)
	}
	if err := follow(request, to); err != nil {
		return to, err
	}
	return to, route.judge.open(to)
}

// follow judges a request that a redirect made: it stays on its origin, so that
// no credential of any form leaves it, and does what was asked for, which a POST
// that became a GET does not (RFC 9110 section 15.4).
func follow(request *http.Request, to origin) error {
	hops := 0
	for answer := request.Response; answer != nil && answer.Request != nil; answer = answer.Request.Response {
		hops++
	}
	if hops == 0 {
		return nil
	}
	before := request.Response.Request
	from, err := originOf(before.URL)
	switch {
	case err != nil:
		return err
	case from != to:
		return denied(nil, "%s redirects to %s, another origin, and redirects are followed on their own origin only", from, to)
	case method(before) != method(request):
		return denied(nil, "%s answers %s with a redirect of status %d, which would make it a %s",
			from, method(before), request.Response.StatusCode, method(request))
	case hops > maxRedirects:
		return denied(nil, "%s redirects more than %d times in a row", from, maxRedirects)
	}
	return nil
}

func method(request *http.Request) string {
	if request.Method == "" {
		return http.MethodGet
	}
	return request.Method
}

// written returns the request as it is sent. A host outside ASCII is sent in the
// form in which it was judged: net/http's conversion is its own, and were it to
// differ, another host would be asked than was judged.
func written(request *http.Request, to origin) *http.Request {
	if isASCII(request.URL.Host) {
		return request
	}
	target, sent := *request.URL, *request
	target.Host = to.authority()
	sent.URL, sent.Host = &target, ""
	return &sent
}

func (g *guard) refused(err error) {
	g.logger.Info("egress refused a request", zap.Error(err))
}
