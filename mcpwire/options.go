package mcpwire

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/secret"
)

// Options says which server a session is with and what it may cost. URL and Client
// are required; the zero value of every other field has the meaning given there.
type Options struct {
	// URL is the server's MCP endpoint, or with HTTP+SSE the address of its stream.
	URL string
	// Transport is how the server is spoken to; "" is messages.TransportHTTP.
	Transport messages.Transport
	// Client sends the requests. Its redirects are followed on the server's own
	// origin only, whatever it allows itself.
	Client *http.Client
	// Server is the name by which sentences call the server; "" is "the server".
	Server string
	// Authorize returns the token for the named credential, freshly for each HTTP
	// request. nil, or a zero Token, sends none.
	Authorize func(ctx context.Context, credential string) (Token, error)
	// Accepted is told of each answer to a request with a grant's token that is not
	// 401; it must not wait. nil is nobody.
	Accepted func(version uint64)
	// MaxResponseBytes is the most bytes that one answer may hold, after
	// decompression, asked for at each answer. nil, or 0 or less, is 16 MiB.
	MaxResponseBytes func() int64
	// Lists has the session's tool list share its memory with equal ones, where the
	// server says that it is public; nil keeps it apart.
	Lists *ToolLists
	// Logger is told what was odd about an answer and survived; nil is silence.
	Logger *zap.Logger

	// KnownVersion is the revision that the server negotiated last time. One
	// before 2026-07-28 makes Connect ask in that era first, and in the newer one
	// when that fails. "" asks in the newest.
	KnownVersion string

	// ConnectTimeout bounds Connect, besides its context; 0 is 30 s.
	ConnectTimeout time.Duration
	// ProbeTimeout bounds the question whether the server speaks 2026-07-28; it is
	// never more than a quarter of what Connect has left. 0 is 5 s.
	ProbeTimeout time.Duration
	// RequestTimeout bounds a request whose context has no deadline; 0 is 10 min.
	RequestTimeout time.Duration
	// IdleTimeout is how long an answer that has begun may bring nothing; 0 is 5 min.
	IdleTimeout time.Duration
	// WatchHeaderTimeout is how long the server may take to open the stream that
	// tells of changes; 0 is 30 s.
	WatchHeaderTimeout time.Duration
	// CourtesyTimeout bounds what is sent for the server's sake alone: cancellation
	// notices, answers to its own requests, the end of a session. 0 is 3 s.
	CourtesyTimeout time.Duration
}

// Token is what a request carries as its credential; the zero Token is nothing.
type Token struct {
	Value secret.Text
	// Version tells the tokens of one grant apart; 0 for what is no grant's.
	Version uint64
}

const defaultMaxResponseBytes = 16 << 20

func (o Options) withDefaults() (Options, *url.URL, error) {
	target, err := url.Parse(o.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return o, nil, failure.New(failure.KindSpecInvalid,
			fmt.Sprintf("%s has a URL that is not absolute http or https", o.subject()), nil)
	}
	target.Fragment = ""
	switch o.Transport {
	case "":
		o.Transport = messages.TransportHTTP
	case messages.TransportHTTP, messages.TransportSSE:
	default:
		return o, nil, failure.New(failure.KindSpecInvalid,
			fmt.Sprintf("%s has the transport %q, which is neither http nor sse", o.subject(), string(o.Transport)), nil)
	}
	if o.Client == nil {
		return o, nil, failure.New(failure.KindInternal, o.subject()+" cannot be asked without an HTTP client", nil)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	for field, standard := range map[*time.Duration]time.Duration{
		&o.ConnectTimeout:     30 * time.Second,
		&o.ProbeTimeout:       5 * time.Second,
		&o.RequestTimeout:     10 * time.Minute,
		&o.IdleTimeout:        5 * time.Minute,
		&o.WatchHeaderTimeout: 30 * time.Second,
		&o.CourtesyTimeout:    3 * time.Second,
	} {
		if *field <= 0 {
			*field = standard
		}
	}
	return o, target, nil
}

// ceiling is the response ceiling that holds now.
func (o *Options) ceiling() int64 {
	if o.MaxResponseBytes != nil {
		if limit := o.MaxResponseBytes(); limit > 0 {
			return limit
		}
	}
	return defaultMaxResponseBytes
}

// subject begins every sentence about the server.
func (o *Options) subject() string {
	if o.Server == "" {
		return "the server"
	}
	return fmt.Sprintf("the server %q", o.Server)
}
