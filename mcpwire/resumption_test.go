package mcpwire_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

const primed = "id: e1\nretry: 30\ndata\n\n"

// A stream that breaks off after an event id is taken up again where it broke, by
// servers that can; else the call's outcome is unknown, and only that call's.
func TestAnAnswersStreamIsTakenUpAgain(t *testing.T) {
	reply := func(p *peer) string {
		return `{"jsonrpc":"2.0","id":` + id(p.seen("broken")[0]) + `,"result":` + okResult + `}`
	}
	cases := []struct {
		name string
		gets func(p *peer, n int) behaviour // the n-th GET, from 0
		text string
		most int // GETs
	}{
		{"the rest comes", func(p *peer, _ int) behaviour { return events("id: e2\ndata: " + reply(p) + "\n\n") }, "ok", 1},
		{"it is replayed from its beginning", func(p *peer, _ int) behaviour {
			return events(primed + "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\nid: e3\ndata: " + reply(p) + "\n\n")
		}, "ok", 1},
		{"it breaks off twice", func(p *peer, n int) behaviour {
			if n == 0 {
				return events("id: e2\ndata\n\n")
			}
			return events("data: " + reply(p) + "\n\n")
		}, "ok", 2},
		{"503 once", func(p *peer, n int) behaviour {
			if n == 0 {
				return raw(503, "-", "")
			}
			return events("data: " + reply(p) + "\n\n")
		}, "ok", 2},
		{"a reset once", func(p *peer, n int) behaviour {
			if n == 0 {
				return func(w http.ResponseWriter, _ *request) { cut(w, "") }
			}
			return events("data: " + reply(p) + "\n\n")
		}, "ok", 2},
		{"405", func(*peer, int) behaviour { return raw(405, "-", "") }, "", 1},
		{"404", func(*peer, int) behaviour { return raw(404, "-", "") }, "", 1},
		{"400", func(*peer, int) behaviour { return raw(400, "-", "") }, "", 1},
		{"a page", func(*peer, int) behaviour { return raw(200, "text/html", "<html>") }, "", 1},
		{"nothing new, for ever", func(*peer, int) behaviour { return events(primed) }, "", 7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, legacy)
			p.does("broken", events(primed))
			p.does(http.MethodGet, func(w http.ResponseWriter, r *request) {
				c.gets(p, len(p.seen(http.MethodGet))-1)(w, r)
			})
			s := connect(t, p)
			settle := neighbours(t, p, s)
			begun := time.Now()
			text, err := call(t.Context(), s, "broken")
			judge(t, fault{text: c.text, kind: map[bool]failure.Kind{true: failure.KindMcpServerUnreachable}[c.text == ""], ran: true}, text, err)
			if waited := time.Since(begun); waited < 30*time.Millisecond {
				t.Errorf("it did not wait as the server asked, but %s", waited)
			}
			gets := p.seen(http.MethodGet)
			if len(gets) == 0 || len(gets) > c.most {
				t.Fatalf("asked %d times for the rest", len(gets))
			}
			if got := gets[0].Header.Get("Last-Event-ID"); got != "e1" {
				t.Errorf("resumed behind %q", got)
			}
			if gets[0].Header.Get("Mcp-Session-Id") != "s1" {
				t.Error("resumed outside its session")
			}
			settle()
			if len(p.seen("broken")) != 1 || len(p.seen("initialize")) != 1 {
				t.Error("the call was repeated, or the session given up")
			}
		})
	}
}

// Revision 2026-07-28 has no resumption: the outcome is unknown at once.
func TestAModernStreamIsNotTakenUpAgain(t *testing.T) {
	p := newPeer(t, modern)
	p.does("broken", events(primed))
	s := connect(t, p)
	if _, err := call(t.Context(), s, "broken"); failure.KindOf(err) != failure.KindMcpServerUnreachable || !maybeRan(err) {
		t.Error(err)
	}
	if len(p.seen(http.MethodGet)) != 0 || len(p.seen("broken")) != 1 {
		t.Error("it was taken up again or repeated")
	}
}
