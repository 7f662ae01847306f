package mcptest

import (
	"fmt"
	"strings"
	"time"
)

// Events writes raw event-stream bytes and goes on to the next step, or ends the
// answer in good order.
func Events(raw string) Behaviour {
	return Do("events", func(x *Exchange) { x.Events(x.fill(raw)) })
}

// ReplyAfter writes raw event-stream bytes and then the ordinary reply as an event.
func ReplyAfter(raw string) Behaviour {
	return Events(raw + event("$REPLY")).Named(fmt.Sprintf("a reply after %.30q", raw))
}

// ReplyLines writes the ordinary reply as one event with those line ends ("\n",
// "\r\n" or "\r"), its data split over several lines.
func ReplyLines(end string) Behaviour {
	return Do(fmt.Sprintf("a reply with line ends %q", end), func(x *Exchange) {
		reply := x.Reply()
		colon := strings.IndexByte(reply, ':') + 1
		x.Events("event: message" + end + "data: " + reply[:colon] + end + "data: " + reply[colon:] + end + end)
	})
}

// CutEvent writes the beginning of the event that holds the ordinary reply, and
// ends the stream in good order.
func CutEvent() Behaviour {
	return Do("an event that is cut off", func(x *Exchange) {
		text := event(x.Reply())
		x.Events(text[:len(text)/2])
	})
}

// Prime writes an event with an id and no data, asks for a reconnection after retry
// (0 asks for nothing), ends the stream, and keeps the ordinary reply for the
// [Resume] request that asks for what followed (2025-11-25, Resumability and
// Redelivery). Script Resume to do something else about that request.
func Prime(retry time.Duration) Behaviour {
	return Do("an event id, then the end", func(x *Exchange) {
		text := "id: " + x.server.keep(x.Reply()) + "\n"
		if retry > 0 {
			text += fmt.Sprintf("retry: %d\n", retry.Milliseconds())
		}
		x.Events(text + "data:\n\n")
	}).Then(End())
}

// Progress writes n progress notifications and then the ordinary reply.
func Progress(n int) Behaviour {
	return Do(fmt.Sprintf("%d notifications, then the reply", n), func(x *Exchange) {
		for i := range n {
			x.Event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, i))
			if x.Context().Err() != nil {
				return
			}
		}
		x.Event(x.Reply())
	})
}
