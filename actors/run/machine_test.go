package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/approval"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// world plays everything around a machine: the journal, the servers, the model,
// and an owner that is lost now and then. What it does next is drawn.
type world struct {
	t          *rapid.T
	definition spec.Spec
	machine    *machine
	journal    []journal.Record
	// pending is the effects that have not come back.
	pending []effect
	// sent counts how often each call left, over all incarnations.
	sent map[string]int
	ends int
	now  time.Time
}

var theTool = &messages.Tool{Name: "find", Class: string(narrow.ReadOnly), InputSchema: []byte(`{"type":"object"}`)}

func newWorld(t *rapid.T) *world {
	version, err := spec.New(spec.Spec{
		Name: "s", Model: spec.Model{Model: "m"}, Tools: []string{"host"}, Limits: spec.Limits{MaxTurns: 4},
		MCPServers: []spec.Server{
			{Name: "a", URL: "https://a.example.com/"},
			{Name: "b", URL: "https://b.example.com/", Optional: true, Session: spec.SessionRun},
			{Name: "c", URL: "https://c.example.com/", Optional: true, Preload: new(false)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, definition: version.Spec(), sent: map[string]int{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// incarnate begins with what the journal holds, as a restarted actor does.
func (w *world) incarnate() {
	w.machine = newMachine("run_1", w.definition, journal.RunStarted{Spec: "s", Input: "go"}, rules{
		tenant:    func(string) narrow.Grant { return narrow.All() },
		describe:  func(string) string { return "" },
		approvals: approval.Rules{Selectors: []string{"@destructive"}},
		hosts:     []offer.HostTool{{Name: "host", Class: narrow.ReadOnly}},
		budget:    1000,
	})
	w.pending = nil
	w.take(w.machine.onLoaded(slices.Clone(w.journal)))
}

func (w *world) take(effects []effect) {
	for _, one := range effects {
		switch e := one.(type) {
		case published, armDeadline:
		case stop:
			w.ends++
		case giveUp:
			w.t.Fatalf("the machine gave up: %v", e.err)
		case stopWork:
			w.pending = slices.DeleteFunc(w.pending, func(one effect) bool {
				switch one.(type) {
				case askModel, findTarget, prepareCall, runHostTool:
					return rapid.Bool().Draw(w.t, "the work ends in silence")
				}
				return false
			})
		case sendCall:
			w.mayLeave(e.callID)
			w.pending = append(w.pending, one)
		case runHostTool:
			w.mayLeave(e.callID)
			w.pending = append(w.pending, one)
		default:
			w.pending = append(w.pending, one)
		}
	}
}

// mayLeave checks what must be so when a call leaves.
func (w *world) mayLeave(id string) {
	w.sent[id]++
	started := slices.ContainsFunc(w.journal, func(r journal.Record) bool {
		entry, ok := r.Entry.(journal.ToolCallStarted)
		return ok && entry.CallID == id
	})
	if !started {
		w.t.Fatalf("call %s left before its start was in the journal", id)
	}
	if w.sent[id] > 1 {
		w.t.Fatalf("call %s left %d times", id, w.sent[id])
	}
}

// step brings one pending effect back, or lets something happen by itself.
func (w *world) step() {
	switch chance := rapid.IntRange(0, 60).Draw(w.t, "chance"); {
	case chance == 41:
		w.crash()
	case chance == 42:
		w.take(w.machine.onDeadline())
	case chance == 43:
		w.take(w.machine.onCancel())
	case chance == 44:
		w.take(w.machine.onCallDone(&messages.CallDone{CallId: "late", Result: &messages.ToolResult{}}, w.now))
	case len(w.pending) > 0:
		i := rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "which")
		one := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		w.take(w.bringBack(one))
	}
}

// crash loses the owner. An append in flight may have been written.
func (w *world) crash() {
	for _, one := range w.pending {
		if e, ok := one.(appendEntries); ok && rapid.Bool().Draw(w.t, "written") {
			w.write(e)
		}
	}
	lost := w.pending
	w.incarnate()
	for _, one := range lost {
		if e, ok := one.(sendCall); ok {
			w.take(w.machine.onCallDone(&messages.CallDone{CallId: e.callID, Result: &messages.ToolResult{Text: "late"}}, w.now))
		}
	}
}

func (w *world) write(e appendEntries) []journal.Record {
	if e.expected != int64(len(w.journal)) {
		w.t.Fatalf("an append at %d to a journal of %d", e.expected, len(w.journal))
	}
	var written []journal.Record
	for _, entry := range e.entries {
		written = append(written, journal.Record{RunID: "run_1", Seq: int64(len(w.journal)+len(written)) + 1, At: w.now, Entry: entry})
	}
	w.journal = append(w.journal, written...)
	return written
}

var errAway = failure.New(failure.KindMcpServerUnreachable, "away", nil)

func (w *world) bringBack(one effect) []effect {
	target := &messages.Target{Key: &messages.Key{Tenant: "t"}}
	switch e := one.(type) {
	case appendEntries:
		return w.machine.onAppended(w.write(e))
	case findTarget:
		if e.purpose.callID != "" {
			return w.machine.onPrepared(e.purpose.callID, target, nil)
		}
		return w.machine.onCatalogueTarget(e.purpose.turn, e.purpose.index, target, nil)
	case getCatalogue:
		if rapid.IntRange(0, 9).Draw(w.t, "away") == 0 {
			return w.machine.onCatalogue(e.requestID, nil, errAway)
		}
		return w.machine.onCatalogue(e.requestID, &messages.Snapshot{Etag: "e", Tools: []*messages.Tool{theTool}}, nil)
	case askModel:
		return w.machine.onModelDone(e.asked, w.answer(e.request), nil, time.Second)
	case prepareCall:
		if rapid.IntRange(0, 4).Draw(w.t, "unfit") == 0 {
			return w.machine.onPrepared(e.purpose.callID, nil, failure.New(failure.KindInvalidArguments, "unfit", nil))
		}
		if e.server == nil {
			target = nil
		}
		return w.machine.onPrepared(e.purpose.callID, target, nil)
	case sendCall:
		return w.machine.onCallDone(w.callDone(e.callID), w.now)
	case runHostTool:
		var err error
		if rapid.Bool().Draw(w.t, "host fails") {
			err = errors.New("no")
		}
		return w.machine.onHostToolDone(e.callID, HostResult{Text: "yes"}, err, w.now)
	case cancelCall:
		return w.machine.onCallDone(w.callDone(e.callID), w.now)
	default:
		w.t.Fatalf("the effect %T is unknown", one)
		return nil
	}
}

func (w *world) callDone(id string) *messages.CallDone {
	switch rapid.IntRange(0, 2).Draw(w.t, "outcome") {
	case 0:
		return &messages.CallDone{CallId: id, Sent: true, Failure: &messages.Failure{Kind: string(failure.KindOutcomeUnknown), Message: "lost"}}
	case 1:
		return &messages.CallDone{CallId: id, Failure: &messages.Failure{Kind: string(failure.KindBusy), Message: "busy"}}
	default:
		return &messages.CallDone{CallId: id, Sent: true, Result: &messages.ToolResult{Text: "found"}}
	}
}

// answer checks the history that the model reads, and asks for a few calls.
func (w *world) answer(request model.Request) model.Response {
	open := map[string]bool{}
	for _, message := range request.Messages {
		for _, call := range message.ToolCalls {
			open[call.ID] = true
		}
		delete(open, message.CallID)
	}
	if len(open) > 0 {
		w.t.Fatalf("the model reads a history in which %v have no result", open)
	}
	var response model.Response
	for range rapid.IntRange(0, 3).Draw(w.t, "calls") {
		response.ToolCalls = append(response.ToolCalls, model.ToolCall{
			ID:        rapid.SampledFrom([]string{"", "x", "y"}).Draw(w.t, "id"),
			Name:      rapid.SampledFrom([]string{"a__find", "b__find", "host", "none", "list_tools", "call_tool"}).Draw(w.t, "name"),
			Arguments: rapid.SampledFrom([]string{"", "{}", "{", `{"server":"c","tool":"find"}`}).Draw(w.t, "arguments"),
		})
	}
	return response
}

func TestWhateverHappensARunEndsOnceAndEachCallHasOneOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.incarnate()
		for range rapid.IntRange(0, 150).Draw(t, "steps") {
			if w.machine.state == Finished {
				break
			}
			w.step()
		}
		for w.machine.state != Finished {
			if len(w.pending) == 0 {
				t.Fatalf("the run hangs %s", w.machine.state)
			}
			one := w.pending[0]
			w.pending = w.pending[1:]
			w.take(w.bringBack(one))
		}
		state, err := journal.Fold(slices.Values(w.journal))
		if err != nil || state.Finished == nil || w.ends != 1 {
			t.Fatalf("the run ended %d times, its journal says %+v (%v)", w.ends, state, err)
		}
		for id, times := range w.sent {
			if times > 1 {
				t.Fatalf("call %s left %d times", id, times)
			}
		}
	})
}

func TestAnAnswerThatIsKnownWhenTheRunEndsIsRecordedWithItsStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.incarnate()
		asked := false
		for w.machine.state != Finished {
			if len(w.pending) == 0 {
				t.Fatal("the run hangs")
			}
			one := w.pending[0]
			w.pending = w.pending[1:]
			switch e := one.(type) {
			case askModel:
				asked = true
				w.take(w.machine.onModelDone(e.asked, model.Response{ToolCalls: []model.ToolCall{
					{ID: "refused", Name: "none"}, {ID: "answered", Name: "list_tools"}, {ID: "sent", Name: "a__find"},
				}}, nil, 0))
			case getCatalogue:
				w.take(w.machine.onCatalogue(e.requestID, &messages.Snapshot{Etag: "e", Tools: []*messages.Tool{theTool}}, nil))
			case appendEntries:
				if asked && w.machine.state == Acting {
					w.take(w.machine.onCancel())
				}
				w.take(w.bringBack(one))
			default:
				w.take(w.bringBack(one))
			}
		}
		got := map[string]journal.Outcome{}
		for _, record := range w.journal {
			if finished, ok := record.Entry.(journal.ToolCallFinished); ok {
				got[finished.CallID] = finished.Outcome
			}
		}
		if got["refused"] != journal.OutcomeRefused || got["answered"] != journal.OutcomeOK || got["sent"] != journal.OutcomeRefused {
			t.Fatalf("the calls ended %v", got)
		}
	})
}

func TestARotatedCredentialIsFollowedOnceForACall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.incarnate()
		var sent []sendCall
		stale := &messages.CallDone{StaleKey: true}
		for w.machine.state != Finished {
			if len(w.pending) == 0 {
				t.Fatal("the run hangs")
			}
			one := w.pending[0]
			w.pending = w.pending[1:]
			switch e := one.(type) {
			case askModel:
				response := model.Response{Text: "done"}
				if e.asked == 1 {
					response.ToolCalls = []model.ToolCall{{ID: "c", Name: "a__find"}}
				}
				w.take(w.machine.onModelDone(e.asked, response, nil, 0))
			case sendCall:
				sent = append(sent, e)
				w.sent = map[string]int{}
				stale.CallId = e.callID
				w.take(w.machine.onCallDone(stale, w.now))
			case getCatalogue:
				w.take(w.machine.onCatalogue(e.requestID, &messages.Snapshot{Etag: "e", Tools: []*messages.Tool{theTool}}, nil))
			case prepareCall:
				w.take(w.machine.onPrepared(e.purpose.callID, &messages.Target{}, nil))
			default:
				w.take(w.bringBack(one))
			}
		}
		if len(sent) != 2 {
			t.Fatalf("the call was sent %d times", len(sent))
		}
		call := w.machine.log.Conversation[2]
		if call.Role != model.RoleTool || call.Text != "the credential was rotated again and again while the call was on its way" {
			t.Fatalf("the model reads %+v", call)
		}
	})
}

func TestResultsThatAreTooLongKeepHeadAndTailOnRuneBorders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 400, -1).Draw(t, "text")
		limit := rapid.IntRange(8, 300).Draw(t, "limit")
		cut := cutMiddle(text, limit)
		switch {
		case len(text) <= limit && cut != text:
			t.Fatal("a short text was cut")
		case len(text) > limit && len(cut) > limit+60:
			t.Fatalf("%d bytes are left of %d", len(cut), limit)
		}
		for i, r := range cut {
			if r == '\uFFFD' && !slices.Contains([]rune(text), r) {
				t.Fatalf("a rune is broken at %d of %q", i, cut)
			}
		}
	})
}

func TestEveryStateAndPurposeHasAName(t *testing.T) {
	for state := Loading; state <= Finished; state++ {
		if state.String() == "" {
			t.Errorf("state %d has no name", state)
		}
	}
	if got := fmt.Sprint(forCall("c"), ", ", forCatalogue(1, 2)); got != "call c, turn 1 server 2" {
		t.Error(got)
	}
}
