package egress

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/psych-systems/psych-go/failure"
)

// modelStreamFactor is how many times the ceiling a model's event stream may
// hold: an event of some hundred bytes carries a token of some four.
const modelStreamFactor = 8

// unlimited is the ceiling of an answer that its reader bounds by itself.
const unlimited = -1

// bounded returns the body of an answer under the ceiling that holds now.
func (g *guard) bounded(response *http.Response, from origin) io.ReadCloser {
	body := &countedBody{body: response.Body, from: from, allowed: g.ceilingOf(response)}
	body.left = body.allowed
	// What net/http decompresses has lost this field. Another coding was not asked
	// for, and whoever undid it would read past the ceiling.
	coding := strings.Join(response.Header["Content-Encoding"], ", ")
	switch {
	case response.Request.Method == http.MethodHead:
		return response.Body
	case coding != "" && !strings.EqualFold(coding, "identity") && response.ContentLength != 0:
		body.refuse(failure.New(failure.KindMcpProtocolError,
			fmt.Sprintf("%s answers in the coding %q, which was not asked for", from, coding), nil))
	case body.allowed == unlimited:
		return response.Body
	case response.ContentLength > body.allowed:
		body.refuse(body.tooLarge())
	}
	return body
}

// ceilingOf is how many bytes an answer may hold. The event streams of a model
// may hold more, and those that a tenant's request asked for are left to whoever
// asked (see the package's documentation).
func (g *guard) ceilingOf(response *http.Response) int64 {
	ceiling := g.egress.MaxResponseBytes()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case kind != eventStream || response.StatusCode < 200 || response.StatusCode > 299:
		return ceiling
	case g.model:
		return modelStreamFactor * ceiling
	case strings.Contains(strings.Join(response.Request.Header["Accept"], ","), eventStream):
		return unlimited
	}
	return ceiling
}

const eventStream = "text/event-stream"

// countedBody reads what is allowed of a body and then fails.
type countedBody struct {
	body io.ReadCloser
	from origin
	// allowed is the ceiling and left what remains of it, in bytes.
	allowed, left int64
	// err, once it is set, is all that is read; the body is closed then.
	err error
}

// Read implements io.Reader. It fails with [failure.McpResponseTooLarge] where
// more comes than is allowed.
func (b *countedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// One byte more than what is left tells an end from more.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		n = int(b.left)
		b.refuse(b.tooLarge())
		err = b.err
	}
	b.left -= int64(n)
	return n, err
}

// Close implements io.Closer. What was not read is not: the connection, or with
// HTTP/2 the stream, is given up.
func (b *countedBody) Close() error { return b.body.Close() }

func (b *countedBody) refuse(err error) {
	b.err = err
	_ = b.body.Close()
}

func (b *countedBody) tooLarge() error {
	return failure.New(failure.KindMcpResponseTooLarge,
		fmt.Sprintf("%s answers with more than the %d bytes allowed; catalogue.max_response_bytes sets how many", b.from, b.allowed), nil)
}
