package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/journal"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/narrow"
	"github.com/psych-systems/psych-go/offer"
	"github.com/psych-systems/psych-go/spec"
)

// becomeActing routes every call of the answer that has not been routed: some
// are refused or answered at once, the others set out together.
func (m *machine) becomeActing() []effect {
	if m.state == Acting {
		return nil
	}
	m.state = Acting
	var effects []effect
	for _, call := range m.log.Calls {
		if call.Started == nil && call.Finished == nil {
			effects = append(effects, m.dispatch(call)...)
		}
	}
	return effects
}

// dispatch narrows, gates and sets out one call.
func (m *machine) dispatch(call journal.Call) []effect {
	route, err := m.offer.Route(call.Name, call.Arguments, m.rules.tenant)
	if err != nil {
		return m.refuse(call.CallID, cmp.Or(route.Tool.Public, call.Name), err)
	}
	if route.BuiltIn {
		started := journal.ToolCallStarted{CallID: call.CallID, Name: route.Tool.Public, Arguments: route.Arguments}
		return m.write(started, journal.ToolCallFinished{
			CallID: call.CallID, Name: route.Tool.Public, Outcome: journal.OutcomeOK, Result: route.Answer,
		})
	}
	if held, because := m.rules.approvals.Hold(route.Tool.Public, route.Tool.Class); held {
		return m.refuse(call.CallID, route.Tool.Public, heldBack(route.Tool, because))
	}
	m.calls[call.CallID] = &plan{id: call.CallID, route: route}
	prepare := prepareCall{purpose: forCall(call.CallID), tool: route.Tool, arguments: route.Arguments}
	if definition := m.server(route.Tool.Server); definition != nil {
		prepare.server = definition
	}
	return []effect{prepare}
}

// onPrepared writes the start of a call whose arguments fit and whose target is
// known; the call leaves once that is in the journal.
func (m *machine) onPrepared(callID string, target *messages.Target, err error) []effect {
	call, open := m.calls[callID]
	if !open {
		return nil
	}
	tool := call.route.Tool
	if call.sent() {
		return m.onRekeyed(call, target, err)
	}
	if err != nil {
		delete(m.calls, callID)
		return m.refuse(callID, tool.Public, err)
	}
	call.target = target
	started := journal.ToolCallStarted{
		CallID: callID, Name: tool.Public, Server: tool.Server, Arguments: call.route.Arguments,
	}
	if tool.Server != "" {
		started.Tool = tool.Name
	}
	return m.write(started)
}

// onCallRecorded sends a call whose start is in the journal.
func (m *machine) onCallRecorded(entry journal.ToolCallStarted, at time.Time) []effect {
	call, open := m.calls[entry.CallID]
	switch {
	case !open && m.state == Finishing && !m.answering(entry.CallID):
		return m.finish(entry.CallID, entry.Name, time.Time{}, at, journal.ToolCallFinished{
			Outcome: journal.OutcomeError, Result: "The call was not sent, because the run ended.", Error: m.ending.Error,
		})
	case !open:
		return nil
	}
	call.started = at
	return []effect{m.send(call)}
}

// answering reports whether a call's outcome is on its way to the journal.
func (m *machine) answering(callID string) bool {
	return slices.ContainsFunc(slices.Concat(m.writing, m.queued), func(entry journal.Entry) bool {
		finished, ok := entry.(journal.ToolCallFinished)
		return ok && finished.CallID == callID
	})
}

func (m *machine) send(call *plan) effect {
	tool := call.route.Tool
	if call.target == nil {
		return runHostTool{callID: call.id, name: tool.Name, arguments: call.route.Arguments}
	}
	return sendCall{
		callID: call.id, target: call.target, tool: tool.Name, arguments: call.route.Arguments,
		repeatable: m.rules.trustAnnotations && (tool.Class == narrow.ReadOnly || tool.Idempotent),
	}
}

// onCallDone takes the one answer of a server's call.
func (m *machine) onCallDone(done *messages.CallDone, now time.Time) []effect {
	call, open := m.calls[done.GetCallId()]
	if !open || !call.sent() {
		return nil
	}
	if done.GetStaleKey() && !call.rekeyed {
		call.rekeyed = true
		return []effect{findTarget{purpose: forCall(call.id), server: *m.server(call.route.Tool.Server)}}
	}
	return m.settleCall(call, now, outcomeOf(done))
}

// onRekeyed sends a call once more whose credential was rotated before it left.
func (m *machine) onRekeyed(call *plan, target *messages.Target, err error) []effect {
	if err != nil {
		return m.settleCall(call, call.started, failed(err))
	}
	call.target = target
	return []effect{m.send(call)}
}

// onHostToolDone takes the result of a host tool.
func (m *machine) onHostToolDone(callID string, result HostResult, err error, now time.Time) []effect {
	call, open := m.calls[callID]
	if !open || !call.sent() {
		return nil
	}
	if err != nil {
		return m.settleCall(call, now, failed(err))
	}
	return m.settleCall(call, now, journal.ToolCallFinished{
		Outcome: journal.OutcomeOK, Result: result.Text, Structured: result.Structured,
	})
}

func (m *machine) settleCall(call *plan, now time.Time, finished journal.ToolCallFinished) []effect {
	delete(m.calls, call.id)
	return m.finish(call.id, call.route.Tool.Public, call.started, now, finished)
}

func (m *machine) refuse(callID, name string, err error) []effect {
	finished := failed(err)
	finished.Outcome = journal.OutcomeRefused
	return m.finish(callID, name, time.Time{}, time.Time{}, finished)
}

// finish writes a call's one outcome.
func (m *machine) finish(callID, name string, started, now time.Time, finished journal.ToolCallFinished) []effect {
	finished.CallID, finished.Name = callID, name
	if !started.IsZero() {
		finished.DurationMS = now.Sub(started).Milliseconds()
	}
	return m.write(finished)
}

// outcomeOf is what an answer of a connection means for the call.
func outcomeOf(done *messages.CallDone) journal.ToolCallFinished {
	if err := done.GetFailure().Err(); err != nil {
		finished := failed(err)
		if failure.KindOf(err) == failure.KindOutcomeUnknown {
			finished.Outcome = journal.OutcomeUnknown
		}
		return finished
	}
	if done.GetStaleKey() {
		return failed(failure.New(failure.KindMcpServerUnreachable,
			"the credential was rotated again and again while the call was on its way", nil))
	}
	result := done.GetResult()
	finished := journal.ToolCallFinished{
		Outcome: journal.OutcomeOK, Result: result.GetText(), Structured: json.RawMessage(result.GetStructured()),
	}
	if result.GetIsError() {
		finished.Outcome = journal.OutcomeError
		finished.Error = &journal.Error{Kind: failure.KindMcpToolError, Message: result.GetText()}
	}
	return finished
}

// failed is the outcome of a call that failed: the model reads why.
func failed(err error) journal.ToolCallFinished {
	shown := recorded(err)
	return journal.ToolCallFinished{Outcome: journal.OutcomeError, Result: shown.Message, Error: shown}
}

func heldBack(tool offer.Tool, because string) error {
	return failure.New(failure.KindApprovalDenied, fmt.Sprintf(
		"%s is %s and %s holds it for an approval, which nobody can give here; approvals.selectors: [] in the configuration allows it",
		tool.Public, tool.Class, because), nil)
}

// requestedCalls gives each call of an answer an id that the Run has not seen.
func (m *machine) requestedCalls(asked []model.ToolCall) []journal.RequestedCall {
	used := m.seen.upTo(m.log.Conversation)
	calls := make([]journal.RequestedCall, len(asked))
	for i, call := range asked {
		id := call.ID
		for n := 2; id == "" || used[id]; n++ {
			id = fmt.Sprintf("%s.%d.%d.%d", call.ID, m.log.Turn, i+1, n)
		}
		used[id] = true
		calls[i] = journal.RequestedCall{CallID: id, Name: call.Name, Arguments: call.Arguments}
	}
	return calls
}

// server returns the Spec's server of an alias, nil for none.
func (m *machine) server(alias string) *spec.Server {
	for i := range m.spec.MCPServers {
		if m.spec.MCPServers[i].Name == alias {
			return &m.spec.MCPServers[i]
		}
	}
	return nil
}

// seenIDs is the ids of the calls in a conversation, which only grows.
type seenIDs struct {
	ids  map[string]bool
	read int // messages of the conversation
}

// upTo returns the ids of the whole conversation, to which more may be added.
func (s *seenIDs) upTo(conversation []model.Message) map[string]bool {
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	for ; s.read < len(conversation); s.read++ {
		for _, call := range conversation[s.read].ToolCalls {
			s.ids[call.ID] = true
		}
	}
	return s.ids
}
