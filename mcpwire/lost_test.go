package mcpwire_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/mcpwire"
)

// oldServer is a real server with sessions, and a session with it.
func oldServer(t *testing.T, tools ...mcptest.Tool) (*mcptest.Server, *mcpwire.Session) {
	t.Helper()
	server := mcptest.NewServer(t, mcptest.Legacy(legacy), mcptest.Tools(append(tools, mcptest.Tool{Name: "echo"})...))
	s, err := mcpwire.Connect(t.Context(), options(t, server.URL()), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return server, s
}

// A session that is lost while many calls are in flight, and many more come, is
// opened again once; whose answer was on its way gets it.
func TestASessionIsLostUnderManyCalls(t *testing.T) {
	const many = 64
	release := make(chan struct{})
	server, s := oldServer(t, mcptest.Tool{Name: "slow", Call: func(ctx context.Context, _ mcptest.Call) mcptest.Result {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return mcptest.Text("slow")
	}})
	var calls sync.WaitGroup
	making := func(tool, want string) {
		for range many {
			calls.Go(func() {
				if text, err := call(t.Context(), s, tool); err != nil || text != want {
					t.Errorf("%s: %q, %v", tool, text, err)
				}
			})
		}
	}
	making("slow", "slow")
	server.WaitFor(mcptest.CallOf("slow"), many)
	server.On("initialize", mcptest.Delay(20*time.Millisecond))
	server.DropSessions()
	making("echo", "ok")
	server.WaitFor("initialize", 2)
	close(release)
	calls.Wait()
	if n := len(server.Requests("initialize")); n != 2 {
		t.Errorf("%d sessions were opened", n)
	}
	if n := len(server.Requests(mcptest.CallOf("slow"))); n != many {
		t.Errorf("%d calls that were in flight were sent %d times", many, n)
	}
}

// A session that is lost again and again costs a new one each time and no call; a
// server that loses each one at once is asked for one a call, and no more.
func TestASessionIsLostInARow(t *testing.T) {
	server, s := oldServer(t)
	for n := range 5 {
		server.DropSessions()
		if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
			t.Fatalf("loss %d: %q, %v", n+1, text, err)
		}
		if opened := len(server.Requests("initialize")); opened != n+2 {
			t.Errorf("after %d losses, %d sessions were opened", n+1, opened)
		}
	}
	server.On(mcptest.CallOf("echo"), mcptest.Do("lost at once", func(x *mcptest.Exchange) {
		server.DropSessions()
		x.Writer().WriteHeader(http.StatusNotFound)
	}))
	before := len(server.Requests("initialize"))
	for n := 1; n <= 4; n++ {
		if _, err := call(t.Context(), s, "echo"); failure.KindOf(err) != failure.KindMcpServerUnreachable || maybeRan(err) {
			t.Errorf("a call of a server without memory: %v", err)
		}
		if opened := len(server.Requests("initialize")) - before; opened > n {
			t.Errorf("%d calls asked for %d sessions", n, opened)
		}
	}
}

// What is no proof of a lost session is looked into: one that answers is kept,
// with whatever the server remembers in it.
func TestASessionThatIsOnlyDoubtedIsKept(t *testing.T) {
	for _, odd := range []mcptest.Behaviour{
		mcptest.Status(500, "text/plain", "Session not found"), mcptest.Status(503, "", ""), mcptest.Status(400, "", ""),
		mcptest.Status(404, "", ""), mcptest.Status(409, "", ""), mcptest.TextError("Session not found"),
		mcptest.Events("data: {\"error\":\"Session not found\"}\n\n").Named("an event that is no JSON-RPC"),
	} {
		t.Run(odd.String(), func(t *testing.T) {
			t.Parallel()
			server, s := oldServer(t, mcptest.Tool{Name: "odd"})
			server.On(mcptest.CallOf("odd"), odd)
			_, _ = call(t.Context(), s, "odd")
			before := len(server.Requests("initialize"))
			for range 6 {
				if _, err := call(t.Context(), s, "odd"); err == nil {
					t.Fatal("no error")
				}
			}
			if opened := len(server.Requests("initialize")); opened != before || opened > 2 {
				t.Errorf("%d sessions were opened, %d of them for the first call", opened, before)
			}
			server.DropSessions()
			if text, err := call(t.Context(), s, "echo"); err != nil || text != "ok" {
				t.Errorf("after the session was lost: %q, %v", text, err)
			}
		})
	}
}

// The end of a session has a limit, whatever the server does about it.
func TestTheEndOfASessionEnds(t *testing.T) {
	for _, odd := range []mcptest.Behaviour{
		mcptest.Ordinary(), mcptest.Status(404, "", ""), mcptest.Status(405, "", ""), mcptest.Status(500, "", ""),
		mcptest.Hang(), mcptest.Reset(), mcptest.Endless("text/plain"), mcptest.Drip("text/plain", time.Millisecond),
		mcptest.Redirect(307, "http://127.0.0.1:1/"),
	} {
		t.Run(odd.String(), func(t *testing.T) {
			t.Parallel()
			server := mcptest.NewServer(t, mcptest.Legacy(legacy), mcptest.Tools(mcptest.Tool{Name: "echo"}))
			server.On(mcptest.Delete, odd)
			o := options(t, server.URL())
			o.CourtesyTimeout = 100 * time.Millisecond
			s, err := mcpwire.Connect(t.Context(), o, "")
			if err != nil {
				t.Fatal(err)
			}
			closed := make(chan struct{})
			go func() { defer close(closed); s.Close() }()
			soon(t, "the session is closed", closed)
			if n := len(server.Requests(mcptest.Delete)); n != 1 {
				t.Errorf("the server was told %d times", n)
			}
		})
	}
}

// A session that ends while another is being opened for it ends all the same, and
// whatever waited is told.
func TestASessionEndsWhileItIsOpenedAgain(t *testing.T) {
	for _, before := range []mcptest.Behaviour{mcptest.Ordinary(), mcptest.Hang()} {
		server, s := oldServer(t)
		server.On("initialize", mcptest.Delay(50*time.Millisecond).Then(before))
		server.DropSessions()
		ended := make(chan error)
		go func() { _, err := call(t.Context(), s, "echo"); ended <- err }()
		server.WaitFor("initialize", 2)
		closed := make(chan struct{})
		go func() { defer close(closed); s.Close() }()
		if err := <-ended; err == nil || maybeRan(err) {
			t.Errorf("the call ended %v", err)
		}
		soon(t, "the session is closed", closed)
	}
}

// A resumption has its ends: the caller's patience, however long the server asks
// to wait, and a word of the server that there is nothing to resume.
func TestAResumptionEnds(t *testing.T) {
	for _, c := range []struct {
		resumed mcptest.Behaviour
		retry   time.Duration
		kind    failure.Kind
		gets    int
	}{
		{mcptest.Ordinary(), 24 * time.Hour, failure.KindDeadlineExceeded, 0},
		{mcptest.Hang(), time.Millisecond, failure.KindDeadlineExceeded, 1},
		{mcptest.HangAfterHeaders("text/event-stream"), time.Millisecond, failure.KindDeadlineExceeded, 1},
		{mcptest.Status(410, "", ""), time.Millisecond, failure.KindMcpServerUnreachable, 1},
		{mcptest.Status(500, "text/html", "<p>"), time.Millisecond, failure.KindMcpServerUnreachable, 1},
		{mcptest.Accepted(), time.Millisecond, failure.KindMcpServerUnreachable, 1},
		{mcptest.JSON("$REPLY"), time.Millisecond, failure.KindMcpServerUnreachable, 1},
		{mcptest.Redirect(302, "http://127.0.0.1:1/"), time.Millisecond, failure.KindMcpServerUnreachable, 1},
		{mcptest.TooMany("").Once(), time.Millisecond, "", 2},
		{mcptest.Status(502, "text/event-stream", "data: x\n\n").Times(2), time.Millisecond, "", 3},
		{mcptest.Reset().Once(), time.Millisecond, "", 2},
	} {
		t.Run(fmt.Sprint(c.resumed, " ", c.retry), func(t *testing.T) {
			t.Parallel()
			server, s := oldServer(t, mcptest.Tool{Name: "cut"})
			server.On(mcptest.CallOf("cut"), mcptest.Prime(c.retry))
			server.On(mcptest.Resume, c.resumed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			text, err := call(ctx, s, "cut")
			if failure.KindOf(err) != c.kind || err == nil && text != "ok" || err != nil && !maybeRan(err) {
				t.Errorf("%q, %v", text, err)
			}
			if gets := len(server.Requests(mcptest.Resume)); gets != c.gets {
				t.Errorf("asked %d times for the rest", gets)
			}
			if again, err := call(t.Context(), s, "echo"); err != nil || again != "ok" {
				t.Errorf("the next call: %q, %v", again, err)
			}
			if n := len(server.Requests(mcptest.CallOf("cut"))); n != 1 {
				t.Errorf("the call was sent %d times", n)
			}
		})
	}
}
