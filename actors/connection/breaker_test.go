package connection

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// exchange is what became of a request: a failure, and whether it was sent.
type exchange struct {
	failure.Failure
	sent bool
}

func (e exchange) Sent() bool { return e.sent }

func TestWhatOpensTheBreaker(t *testing.T) {
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		err   error
		opens bool
	}{
		"nobody listens":                     {exchange{failure.New(failure.KindMcpServerUnreachable, "away", refused), false}, true},
		"the answer broke off":               {exchange{failure.New(failure.KindMcpServerUnreachable, "cut", refused), true}, true},
		"the gateway says that it is away":   {exchange{failure.New(failure.KindMcpServerUnreachable, "503", nil), true}, true},
		"the server refuses the credential":  {exchange{failure.New(failure.KindMcpServerUnreachable, "401", nil), false}, false},
		"the server answers with an error":   {exchange{failure.New(failure.KindMcpProtocolError, "no", nil), false}, false},
		"the answer is too large":            {exchange{failure.New(failure.KindMcpResponseTooLarge, "big", refused), true}, false},
		"the caller stopped waiting":         {exchange{failure.New(failure.KindDeadlineExceeded, "late", refused), true}, false},
		"the caller cancelled":               {exchange{failure.New(failure.KindCancelled, "stop", refused), true}, false},
		"the credential is not there":        {failure.New(failure.KindCredentialNotFound, "none", nil), false},
		"the credential was rotated":         {messages.ErrStaleKey, false},
		"the egress policy closes the way":   {failure.New(failure.KindEgressDenied, "no", refused), false},
		"the arguments are no object":        {exchange{failure.New(failure.KindInvalidArguments, "no", nil), false}, false},
		"the request panicked":               {failure.New(failure.KindInternal, "oh", refused), false},
		"nothing is wrong":                   {nil, false},
		"the tool needs input that is asked": {failure.New(failure.KindMcpInputRequiredError, "who", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker()
			for range 20 * tripAfter {
				report, err := b.allow()
				if err != nil {
					if !test.opens {
						t.Fatalf("the breaker opened: %v", err)
					}
					return
				}
				report(test.err)
			}
			if test.opens {
				t.Error("the breaker stayed closed")
			}
		})
	}
}

func TestAnOpenBreakerSaysWhyAndLetsOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		dead := exchange{failure.New(failure.KindMcpServerUnreachable, "the connection was refused", errors.New("refused")), false}
		for range tripAfter {
			report, err := b.allow()
			if err != nil {
				t.Fatal(err)
			}
			report(dead)
		}
		if _, err := b.allow(); failure.KindOf(err) != failure.KindMcpServerUnreachable ||
			err.Error() != "the server is not asked for now: the connection was refused" {
			t.Errorf("the open breaker says %v", err)
		}
		time.Sleep(openFor + time.Millisecond)
		probe, err := b.allow()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.allow(); err == nil {
			t.Error("two may probe")
		}
		probe(failure.New(failure.KindCancelled, "stop", nil)) // says nothing: another may probe
		if probe, err = b.allow(); err != nil {
			t.Fatal(err)
		}
		probe(nil)
		if b.state() != "closed" {
			t.Errorf("after a good probe the breaker is %s", b.state())
		}
	})
}
