package mcptest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// flood is a body of n bytes that is a good reply in the end: blanks in front,
// which JSON allows.
func (x *Exchange) flood(n int64) {
	blanks := bytes.Repeat([]byte{' '}, 64<<10)
	for ; n > 0 && x.Context().Err() == nil; n -= int64(len(blanks)) {
		if _, err := x.writer.Write(blanks[:min(n, int64(len(blanks)))]); err != nil {
			return
		}
	}
}

// Huge answers with n bytes of blanks and then the ordinary reply, as JSON without
// a Content-Length.
func Huge(n int64) Behaviour {
	return Headers(http.StatusOK, "application/json").Then(
		Do("", func(x *Exchange) { x.flood(n) }),
		Write("$REPLY"),
	).Named(fmt.Sprintf("%d bytes of JSON", n))
}

// HugeStatus answers with an HTTP error and n bytes of blanks.
func HugeStatus(status int, n int64) Behaviour {
	return Headers(status, "text/plain").Then(
		Do("", func(x *Exchange) { x.flood(n) }),
	).Named(fmt.Sprintf("status %d and %d bytes", status, n))
}

// HugeEvent answers with one event of n bytes that ends in the ordinary reply.
func HugeEvent(n int64) Behaviour {
	return Headers(http.StatusOK, "text/event-stream").Then(
		Write("data: "),
		Do("", func(x *Exchange) { x.flood(n) }),
		Write("$REPLY\n\n"),
	).Named(fmt.Sprintf("an event of %d bytes", n))
}

// GzipBomb answers with a small gzip body that unpacks to n bytes and the ordinary
// reply, whether or not the client accepts gzip.
func GzipBomb(n int64) Behaviour { return Bomb(n, "gzip").Named(fmt.Sprintf("gzip of %d bytes", n)) }

// Bomb answers with n bytes and the ordinary reply, packed in content codings, the
// first one innermost, whether or not the client accepts them. Codings other than
// gzip and deflate are only said to be there.
func Bomb(n int64, codings ...string) Behaviour {
	named := strings.Join(codings, ", ")
	return Do(fmt.Sprintf("%s of %d bytes", named, n), func(x *Exchange) {
		reply := x.Reply()
		x.Writer().Header().Set("Content-Type", "application/json")
		x.Writer().Header().Set("Content-Encoding", named)
		packed := io.Writer(x.Writer())
		for _, coding := range slices.Backward(codings) {
			var packer io.WriteCloser
			switch coding {
			case "gzip":
				packer = gzip.NewWriter(packed)
			case "deflate":
				packer = zlib.NewWriter(packed)
			default:
				continue
			}
			defer packer.Close()
			packed = packer
		}
		blanks := bytes.Repeat([]byte{' '}, 64<<10)
		for ; n > 0 && x.Context().Err() == nil; n -= int64(len(blanks)) {
			if _, err := packed.Write(blanks[:min(n, int64(len(blanks)))]); err != nil {
				return
			}
		}
		_, _ = io.WriteString(packed, reply)
	})
}

// HugeHeader answers ordinarily under a header of n bytes.
func HugeHeader(n int) Behaviour {
	return Header("X-Padding", strings.Repeat("x", n)).Then(Ordinary()).Named(fmt.Sprintf("a reply under a header of %d bytes", n))
}

// Drip answers with headers and then one blank after each pause, for ever.
func Drip(contentType string, pause time.Duration) Behaviour {
	return Headers(http.StatusOK, contentType).Then(Do("", func(x *Exchange) {
		x.over = true
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				writeFlushed(x.writer, " ")
			case <-x.Context().Done():
				return
			}
		}
	})).Named("a drip")
}

// Endless answers with headers and then blanks as fast as they go, for ever.
func Endless(contentType string) Behaviour {
	return Headers(http.StatusOK, contentType).Then(Do("", func(x *Exchange) {
		x.over = true
		x.flood(1 << 62)
	})).Named("an endless body")
}
