package journal

import (
	"fmt"
	"iter"
	"time"

	"github.com/psych-systems/psych-go/model"
)

// State is what a Run's records add up to. Its zero value is a Run without
// records.
type State struct {
	RunID string
	// Seq is the last record's number.
	Seq     int64
	Started *RunStarted
	// StartedAt is when the Run began.
	StartedAt time.Time
	// Turn is the current turn, counted from 1; 0 before the first.
	Turn int
	// Answered says that the current turn's model call is finished.
	Answered bool
	// Cut is why that call's answer ended early; "" for a whole answer.
	Cut string
	// Conversation is what the model has been told so far. The calls of the
	// current answer are appended once all of them have finished, in the order in
	// which the model asked, so that no history has an unanswered call.
	Conversation []model.Message
	// Calls is the current answer's calls, in the order in which the model asked.
	Calls []Call
	// Nested is the open calls that programs made, by call id.
	Nested map[string]Call
	// UndispatchableTurns counts the latest turns in a row whose calls were all
	// refused before they started.
	UndispatchableTurns int
	Finished            *RunFinished
}

// Call is one call and how far it has come.
type Call struct {
	CallID    string
	Name      string
	Arguments string
	Started   *ToolCallStarted
	Finished  *ToolCallFinished
}

// Contradiction is a log that cannot have been written by a Run. It is told,
// never repaired.
type Contradiction struct {
	RunID string
	// Seq is the record that contradicts those before it.
	Seq int64
	Why string
}

func (c *Contradiction) Error() string {
	return fmt.Sprintf("record %d of run %s contradicts the records before it: %s", c.Seq, c.RunID, c.Why)
}

// Fold adds records up. It fails with [*Contradiction].
func Fold(records iter.Seq[Record]) (*State, error) {
	state := &State{}
	for record := range records {
		if err := state.Apply(record); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// Apply adds one record. It fails with [*Contradiction] and then leaves the
// state as it was.
func (s *State) Apply(record Record) error {
	if why := s.apply(record); why != "" {
		return &Contradiction{RunID: record.RunID, Seq: record.Seq, Why: why}
	}
	s.Seq = record.Seq
	return nil
}

// apply returns why the record contradicts the state, or "" once it is added.
func (s *State) apply(record Record) string {
	switch {
	case record.Seq != s.Seq+1:
		return fmt.Sprintf("it should be record %d", s.Seq+1)
	case s.Seq > 0 && record.RunID != s.RunID:
		return "it belongs to another run"
	case s.Finished != nil:
		return "the run has finished"
	}
	if started, ok := record.Entry.(RunStarted); ok {
		return s.start(record, started)
	}
	if s.Started == nil {
		return "the run has not started"
	}
	switch entry := record.Entry.(type) {
	case TurnStarted:
		return s.startTurn(entry)
	case ModelCallFinished:
		return s.answer(entry)
	case ToolCallStarted:
		return s.startCall(entry)
	case ToolCallFinished:
		return s.finishCall(entry)
	case RunFinished:
		return s.finish(entry)
	default:
		return fmt.Sprintf("%T is no entry of a run", record.Entry)
	}
}

func (s *State) start(record Record, entry RunStarted) string {
	if s.Started != nil {
		return "the run has started already"
	}
	s.RunID, s.Started, s.StartedAt = record.RunID, &entry, record.At
	s.Nested = map[string]Call{}
	s.Conversation = []model.Message{{Role: model.RoleUser, Text: entry.Input}}
	return ""
}

func (s *State) startTurn(entry TurnStarted) string {
	switch {
	case entry.Turn != s.Turn+1:
		return fmt.Sprintf("turn %d cannot follow turn %d", entry.Turn, s.Turn)
	case s.Turn > 0 && !s.Answered:
		return "the turn before has no answer"
	case s.Turn > 0 && len(s.Calls) == 0:
		return "the answer before asked for nothing"
	case !s.Settled():
		return "a call of the turn before has not finished"
	}
	s.Turn, s.Answered, s.Calls = entry.Turn, false, nil
	return ""
}

func (s *State) answer(entry ModelCallFinished) string {
	switch {
	case entry.Turn != s.Turn || s.Turn == 0:
		return fmt.Sprintf("it answers turn %d in turn %d", entry.Turn, s.Turn)
	case s.Answered:
		return "the turn has been answered already"
	}
	calls := make([]Call, len(entry.ToolCalls))
	asked := make([]model.ToolCall, len(entry.ToolCalls))
	seen := make(map[string]bool, len(entry.ToolCalls))
	for i, call := range entry.ToolCalls {
		if seen[call.CallID] {
			return fmt.Sprintf("call %s stands in it twice", call.CallID)
		}
		seen[call.CallID] = true
		calls[i] = Call{CallID: call.CallID, Name: call.Name, Arguments: call.Arguments}
		asked[i] = model.ToolCall{ID: call.CallID, Name: call.Name, Arguments: call.Arguments}
	}
	s.Answered, s.Calls, s.Cut = true, calls, entry.Cut
	s.Conversation = append(s.Conversation,
		model.Message{Role: model.RoleAssistant, Text: entry.Text, ToolCalls: asked})
	return ""
}

func (s *State) startCall(entry ToolCallStarted) string {
	if entry.ParentCallID != "" {
		if _, open := s.Nested[entry.CallID]; open {
			return fmt.Sprintf("call %s has started already", entry.CallID)
		}
		s.Nested[entry.CallID] = Call{CallID: entry.CallID, Name: entry.Name, Started: &entry}
		return ""
	}
	call := s.Call(entry.CallID)
	switch {
	case call == nil:
		return fmt.Sprintf("nobody asked for call %s", entry.CallID)
	case call.Started != nil:
		return fmt.Sprintf("call %s has started already", entry.CallID)
	case call.Finished != nil:
		return fmt.Sprintf("call %s has finished already", entry.CallID)
	}
	call.Started = &entry
	return ""
}

func (s *State) finishCall(entry ToolCallFinished) string {
	if entry.ParentCallID != "" {
		_, open := s.Nested[entry.CallID]
		if !open && entry.Outcome != OutcomeRefused {
			return fmt.Sprintf("call %s has not started", entry.CallID)
		}
		delete(s.Nested, entry.CallID)
		return ""
	}
	call := s.Call(entry.CallID)
	switch {
	case call == nil:
		return fmt.Sprintf("nobody asked for call %s", entry.CallID)
	case call.Finished != nil:
		return fmt.Sprintf("call %s has finished already", entry.CallID)
	case call.Started == nil && entry.Outcome != OutcomeRefused:
		return fmt.Sprintf("call %s has not started", entry.CallID)
	}
	call.Finished = &entry
	if s.Settled() {
		s.tellResults()
	}
	return ""
}

// tellResults adds the results of a settled answer to the conversation.
func (s *State) tellResults() {
	dispatched := false
	for _, call := range s.Calls {
		dispatched = dispatched || call.Started != nil
		s.Conversation = append(s.Conversation, model.Message{
			Role: model.RoleTool, CallID: call.CallID, Text: call.Finished.Result, Failed: call.Finished.Outcome != OutcomeOK,
		})
	}
	s.UndispatchableTurns++
	if dispatched {
		s.UndispatchableTurns = 0
	}
}

func (s *State) finish(entry RunFinished) string {
	if !s.Settled() || len(s.Nested) > 0 {
		return "a call has not finished"
	}
	s.Finished = &entry
	return ""
}

// Settled reports whether every call of the current answer has finished.
func (s *State) Settled() bool {
	for i := range s.Calls {
		if s.Calls[i].Finished == nil {
			return false
		}
	}
	return true
}

// Call returns the current answer's call of that id, nil when there is none.
func (s *State) Call(id string) *Call {
	for i := range s.Calls {
		if s.Calls[i].CallID == id {
			return &s.Calls[i]
		}
	}
	return nil
}
