package connection

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	begin  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errCut = failure.New(failure.KindMcpServerUnreachable, "cut off", nil)
)

func asked(id string) supervision.Asked { return supervision.Asked{Asker: "run", ID: id} }

func ready(t testing.TB) *machine {
	t.Helper()
	m := newMachine(limits{calls: 2, waiting: 3, callTime: time.Minute})
	m.onGetCatalogue(asked("c"), &messages.GetCatalogue{Target: &messages.Target{Server: "crm"}}, begin)
	m.onDialed("", m.slots[""].epoch, nil, begin)
	if m.state() != Ready {
		t.Fatalf("the slot is %s", m.state())
	}
	return m
}

// answers returns the answers among effects, by call.
func answers(effects []effect) map[string]*messages.CallDone {
	found := map[string]*messages.CallDone{}
	for _, one := range effects {
		if e, ok := one.(answerCall); ok {
			found[e.asked.ID] = e.done
		}
	}
	return found
}

func TestWhatBecomesOfACallThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		err        error
		sent       bool
		repeatable bool
		kind       failure.Kind
		stale      bool
		repeats    bool
	}{
		"cut off after it was sent":                  {errCut, true, false, failure.KindOutcomeUnknown, false, false},
		"cut off, and repeating it is harmless":      {errCut, true, true, "", false, true},
		"not sent":                                   {errCut, false, true, failure.KindMcpServerUnreachable, false, false},
		"late after it was sent":                     {failure.New(failure.KindDeadlineExceeded, "late", nil), true, false, failure.KindOutcomeUnknown, false, false},
		"refused by the server":                      {failure.New(failure.KindMcpProtocolError, "no", nil), false, false, failure.KindMcpProtocolError, false, false},
		"answered with what makes no sense":          {failure.New(failure.KindMcpProtocolError, "odd", nil), true, false, failure.KindOutcomeUnknown, false, false},
		"answered too largely":                       {failure.New(failure.KindMcpResponseTooLarge, "big", nil), true, true, failure.KindMcpResponseTooLarge, false, false},
		"not sent, because its secret was rotated":   {fmt.Errorf("wrapped: %w", messages.ErrStaleKey), false, true, "", true, false},
		"not sent, because its secret is gone":       {failure.New(failure.KindCredentialNotFound, "none", nil), false, true, failure.KindCredentialNotFound, false, false},
		"panicked in the session, having maybe sent": {failure.New(failure.KindInternal, "oh", nil), true, false, failure.KindOutcomeUnknown, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := ready(t)
			m.onCallTool(asked("1"), &messages.CallTool{CallId: "1", Tool: "x", Target: &messages.Target{Server: "crm"}, Repeatable: test.repeatable}, begin)
			effects := m.onCallFinished(asked("1"), 1, nil, test.err, test.sent, begin)
			if test.repeats {
				if _, again := effects[0].(startCall); !again {
					t.Fatalf("it was not issued again: %v", effects)
				}
				effects = m.onCallFinished(asked("1"), 2, nil, test.err, test.sent, begin)
				test.kind = failure.KindOutcomeUnknown
			}
			done := answers(effects)["1"]
			if done.GetFailure().GetKind() != string(test.kind) || done.GetStaleKey() != test.stale {
				t.Errorf("it is answered %v", done)
			}
			if late := m.onCallFinished(asked("1"), 1, &messages.ToolResult{}, nil, true, begin); len(answers(late)) != 0 {
				t.Errorf("a second answer: %v", late)
			}
		})
	}
}

func TestASecretThatWasRotatedIsNoReasonToWait(t *testing.T) {
	m := newMachine(limits{calls: 1, waiting: 1, callTime: time.Minute})
	m.onGetCatalogue(asked("c"), &messages.GetCatalogue{Target: &messages.Target{}}, begin)
	m.onDialed("", m.slots[""].epoch, messages.ErrStaleKey, begin)
	if m.state() != Idle {
		t.Errorf("the slot is %s", m.state())
	}
}

// TestTheBooksBalance does anything in any order, and checks the machine's books
// after each step and that every call is answered once.
func TestTheBooksBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(limits{calls: 2, waiting: 3, callTime: time.Minute})
		now, made := begin, 0
		answered := map[string]int{}
		running := map[supervision.Asked]int{}
		take := func(effects []effect) {
			for _, one := range effects {
				switch e := one.(type) {
				case answerCall:
					answered[e.asked.ID]++
				case startCall:
					running[e.asked] = e.attempt
				}
			}
		}
		sessions := []string{"", "run1"}
		step := func() {
			slot := rapid.SampledFrom(sessions).Draw(t, "slot")
			target := &messages.Target{Server: "crm", Session: slot}
			epoch := uint64(0)
			if s, known := m.slots[slot]; known {
				epoch = s.epoch
			}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				made++
				id := fmt.Sprint(made)
				take(m.onCallTool(asked(id), &messages.CallTool{CallId: id, Target: target, Repeatable: rapid.Bool().Draw(t, "repeatable")}, now))
			case 3:
				var err error
				if rapid.IntRange(0, 2).Draw(t, "fails") == 0 {
					err = errCut
				}
				take(m.onDialed(slot, epoch, err, now))
			case 4, 5:
				for call, attempt := range running {
					delete(running, call)
					err := rapid.SampledFrom([]error{nil, errCut, messages.ErrStaleKey, errors.New("odd")}).Draw(t, "err")
					take(m.onCallFinished(call, attempt, &messages.ToolResult{}, err, err == errCut, now))
					break
				}
			case 6:
				take(m.onCancel(asked(fmt.Sprint(rapid.IntRange(1, made+1).Draw(t, "which")))))
			case 7:
				take(m.onSessionLost(slot, epoch))
				m.onRetry(slot, epoch)
			case 8:
				take(m.onRelease(slot))
			case 9:
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
				take(m.onOverdue(asked(fmt.Sprint(rapid.IntRange(1, made+1).Draw(t, "which")))))
			}
			atWork := 0
			for _, open := range m.calls {
				if open.running {
					atWork++
				}
			}
			if atWork != m.running || len(m.calls)-atWork != m.waiting || m.running > 2 || m.waiting > 3 {
				t.Fatalf("of %d calls %d run; the books say %d and %d", len(m.calls), atWork, m.running, m.waiting)
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			step()
		}
		for i := 1; i <= made; i++ {
			id := fmt.Sprint(i)
			_, open := m.calls[asked(id)]
			if want := map[bool]int{true: 0, false: 1}[open]; answered[id] != want {
				t.Fatalf("call %s has %d answers; it is open: %v", id, answered[id], open)
			}
		}
	})
}
