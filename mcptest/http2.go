package mcptest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// lastStream is the highest stream id there is: a GOAWAY that names it calls every
// request processed.
const lastStream = 1<<31 - 1

// GoAway sends HTTP/2's GOAWAY, by which a server tells that a connection is to
// end. With processed it counts this request among those that are answered still,
// and answers nothing by itself. Without, it says that this request, and any that
// came later, was not processed, closes the connection, and gives no answer.
// Without [TLS], and to clients without HTTP/2, it is [Close].
func GoAway(processed bool) Behaviour {
	name := map[bool]string{true: "GOAWAY that answers still", false: "GOAWAY without this request"}[processed]
	return Do(name, func(x *Exchange) {
		c, ok := x.http.Context().Value(framedKey{}).(*framed)
		switch {
		case !ok:
			x.answered, x.over = true, true
			panic(http.ErrAbortHandler)
		case processed:
			c.frame(x, func(f *http2.Framer) error { return f.WriteGoAway(lastStream, http2.ErrCodeNo, nil) })
		default:
			x.answered, x.over = true, true
			stream := c.newest.Load()
			c.frame(x, func(f *http2.Framer) error { return f.WriteGoAway(stream-1, http2.ErrCodeNo, nil) })
			_ = c.Close()
		}
	})
}

// RefuseStream ends the request with HTTP/2's REFUSED_STREAM, which says that
// nothing of it was processed. It means the newest request of its connection.
// Without HTTP/2 it is [Close].
func RefuseStream() Behaviour {
	return Do("a refused stream", func(x *Exchange) {
		x.answered, x.over = true, true
		c, ok := x.http.Context().Value(framedKey{}).(*framed)
		if !ok {
			panic(http.ErrAbortHandler)
		}
		stream := c.newest.Load()
		c.frame(x, func(f *http2.Framer) error { return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) })
		<-x.Context().Done() // what the server says of this stream would come late
	})
}

// BreakConnection closes the connection that the request came on, and with HTTP/2
// every other request on it.
func BreakConnection() Behaviour {
	return Do("a broken connection", func(x *Exchange) {
		c, ok := x.http.Context().Value(framedKey{}).(*framed)
		if !ok {
			x.reset()
			return
		}
		x.answered, x.over = true, true
		_ = c.Close()
	})
}

// framed is an HTTP/2 connection on which frames can be written besides those of
// its server. It knows the newest stream that its client has opened.
type framed struct {
	*tls.Conn
	newest atomic.Uint32
	// head collects a frame's header, and left counts what is left of the payload
	// and, before the first frame, of the client's preface.
	head []byte
	left int
	// began is closed when the server has written: its settings come first.
	began     chan struct{}
	beginning sync.Once
}

type framedKey struct{}

// serveHTTP2 is an http.Server's TLSNextProto function.
func serveHTTP2(server *http.Server, connection *tls.Conn, handler http.Handler) {
	c := &framed{Conn: connection, left: len(http2.ClientPreface), began: make(chan struct{})}
	base := server.BaseContext(nil)
	//nolint:staticcheck // the standard server takes no connection on which others write frames too
	(&http2.Server{}).ServeConn(c, &http2.ServeConnOpts{
		Context: context.WithValue(base, framedKey{}, c), BaseConfig: server, Handler: handler,
	})
}

// frame writes one frame between the server's own.
func (c *framed) frame(x *Exchange, write func(*http2.Framer) error) {
	select {
	case <-c.began:
	case <-x.Context().Done():
		return
	}
	_ = write(http2.NewFramer(c.Conn, nil)) // a client that is gone needs none
}

func (c *framed) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.beginning.Do(func() { close(c.began) })
	return n, err
}

func (c *framed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.follow(p[:n])
	return n, err
}

// follow watches the client's frames go by.
func (c *framed) follow(data []byte) {
	const headerLength, typeHeaders = 9, byte(http2.FrameHeaders)
	for len(data) > 0 {
		if c.left > 0 {
			skipped := min(c.left, len(data))
			c.left -= skipped
			data = data[skipped:]
			continue
		}
		taken := min(headerLength-len(c.head), len(data))
		c.head = append(c.head, data[:taken]...)
		data = data[taken:]
		if len(c.head) < headerLength {
			return
		}
		c.left = int(c.head[0])<<16 | int(c.head[1])<<8 | int(c.head[2])
		if c.head[3] == typeHeaders {
			c.newest.Store(binary.BigEndian.Uint32(c.head[5:]) & lastStream)
		}
		c.head = c.head[:0]
	}
}
