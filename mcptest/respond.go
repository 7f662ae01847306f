package mcptest

import (
	"fmt"
	"net/http"
	"time"
)

// In every text below, $ID stands for the request's id, and $REPLY for the
// JSON-RPC message that an ordinary server would answer with, on one line; the tool
// runs for it. On an HTTPSSE server these behaviours answer the POST itself, unless
// they say that they write events.

// Status answers with an HTTP status and a body; an empty contentType sends none.
func Status(status int, contentType, body string) Behaviour {
	return Do(fmt.Sprintf("status %d", status), func(x *Exchange) {
		w := x.Writer()
		w.Header()["Content-Type"] = nil // no guessing
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		text := x.fill(body)
		w.WriteHeader(status)
		writeFlushed(w, text)
	})
}

// Body answers 200 with a body of that content type; "" sends none.
func Body(contentType, body string) Behaviour {
	return Status(http.StatusOK, contentType, body).Named(fmt.Sprintf("a body of type %q", contentType))
}

// JSON answers 200 with a JSON body.
func JSON(body string) Behaviour { return Body("application/json", body).Named("a JSON body") }

// Accepted answers 202 with nothing, as if the request were a notification.
func Accepted() Behaviour { return Status(http.StatusAccepted, "", "").Named("202 without a body") }

// Unauthorized answers 401 with a WWW-Authenticate header; "" sends none.
func Unauthorized(challenge string) Behaviour {
	return Header("WWW-Authenticate", challenge).Then(Status(http.StatusUnauthorized, "", "")).Named("401")
}

// Forbidden answers 403 with a WWW-Authenticate header; "" sends none.
func Forbidden(challenge string) Behaviour {
	return Header("WWW-Authenticate", challenge).Then(Status(http.StatusForbidden, "", "")).Named("403")
}

// TooMany answers 429 and asks to wait; "" asks for nothing.
func TooMany(retryAfter string) Behaviour {
	return Header("Retry-After", retryAfter).Then(Status(http.StatusTooManyRequests, "", "")).Named("429")
}

// Redirect answers with a redirecting status (301, 302, 303, 307, 308) to a URL.
func Redirect(status int, url string) Behaviour {
	return Header("Location", url).Then(Status(status, "", "")).Named(fmt.Sprintf("redirect %d", status))
}

// Header sets a header of the answer that follows; an empty value sets none. It
// answers nothing.
func Header(name, value string) Behaviour {
	return Do("header "+name, func(x *Exchange) {
		if value != "" {
			x.writer.Header().Set(name, value)
		}
	})
}

// Delay waits before it goes on. It answers nothing.
func Delay(d time.Duration) Behaviour {
	return Do(fmt.Sprintf("after %v", d), func(x *Exchange) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-x.Context().Done():
		}
	})
}

// Until waits until a channel is closed, or the client hangs up. It answers nothing.
func Until(released <-chan struct{}) Behaviour {
	return Do("when released", func(x *Exchange) {
		select {
		case <-released:
		case <-x.Context().Done():
		}
	})
}

// Tell sends on a channel when a request has come this far. It answers nothing.
func Tell(reached chan<- struct{}) Behaviour {
	return Do("telling", func(x *Exchange) {
		select {
		case reached <- struct{}{}:
		case <-x.Context().Done():
		}
	})
}

// Execute makes the ordinary reply, which runs the tool, and keeps it back. It
// answers nothing: what follows may lose the reply, or hold it while the world moves
// on, as in Execute().Then(Tell(made), Until(released)).
func Execute() Behaviour {
	return Do("executed", func(x *Exchange) { x.Reply() })
}

// Ordinary answers as an ordinary server.
func Ordinary() Behaviour { return Do("ordinary", (*Exchange).Ordinary) }
