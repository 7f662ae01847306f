package mcptest

import (
	"net"
	"net/http"
	"strconv"
)

// reset ends the connection with a TCP reset.
func (x *Exchange) reset() {
	x.answered, x.over = true, true
	connection, _, err := http.NewResponseController(x.writer).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: a stream is reset, not its connection
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// hang holds the request until the client hangs up or the server stops.
func (x *Exchange) hang() {
	x.answered, x.over = true, true
	<-x.Context().Done()
}

// Hang never answers, not even with a status line.
func Hang() Behaviour { return Do("no answer", (*Exchange).hang) }

// Headers sends a status line and headers, and nothing more by itself; an empty
// contentType sends none.
func Headers(status int, contentType string) Behaviour {
	return Status(status, contentType, "").Named("headers")
}

// Write adds to the body of the answer, and flushes.
func Write(text string) Behaviour {
	return Do("bytes", func(x *Exchange) { writeFlushed(x.Writer(), x.fill(text)) })
}

// HangAfterHeaders sends the headers of a good answer and never its body.
func HangAfterHeaders(contentType string) Behaviour {
	return Headers(http.StatusOK, contentType).Then(Hang()).Named("headers, then nothing")
}

// HangHalfway sends half of a good JSON answer, without its length, and then
// nothing.
func HangHalfway() Behaviour {
	return Do("half a body, then nothing", func(x *Exchange) {
		text := x.Reply()
		x.Writer().Header().Set("Content-Type", "application/json")
		writeFlushed(x.Writer(), text[:len(text)/2])
		x.hang()
	})
}

// Reset ends the connection with a TCP reset, wherever the answer stands.
func Reset() Behaviour { return Do("reset", (*Exchange).reset) }

// Close ends the connection in good order for TCP, wherever the answer stands: a
// body is short of its end, and a request without an answer has none.
func Close() Behaviour {
	return Do("close", func(x *Exchange) {
		x.answered, x.over = true, true
		panic(http.ErrAbortHandler)
	})
}

// End ends the answer in good order where it stands; one that has not begun is an
// empty 200.
func End() Behaviour {
	return Do("end", func(x *Exchange) { x.answered, x.over = true, true })
}

// CutHalfway sends half of a good JSON answer under its full Content-Length, and
// closes the connection.
func CutHalfway() Behaviour {
	return Do("half a body", func(x *Exchange) {
		text := x.Reply()
		x.Writer().Header().Set("Content-Type", "application/json")
		x.Writer().Header().Set("Content-Length", strconv.Itoa(len(text)))
		writeFlushed(x.Writer(), text[:len(text)/2])
	}).Then(Close()).Named("half a body, then close")
}

// ResetHalfway sends half of a good JSON answer and resets the connection.
func ResetHalfway() Behaviour {
	return Do("half a body", func(x *Exchange) {
		text := x.Reply()
		x.Writer().Header().Set("Content-Type", "application/json")
		writeFlushed(x.Writer(), text[:len(text)/2])
	}).Then(Reset()).Named("half a body, then reset")
}
