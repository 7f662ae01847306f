package journal

import (
	"encoding/json"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
)

// Type names what a record says. The names are part of the program's contract.
type Type string

// The record types, each the name of the [Entry] that carries it.
const (
	TypeRunStarted        Type = "run_started"
	TypeTurnStarted       Type = "turn_started"
	TypeModelCallFinished Type = "model_call_finished"
	TypeToolCallStarted   Type = "tool_call_started"
	TypeToolCallFinished  Type = "tool_call_finished"
	TypeRunFinished       Type = "run_finished"
)

// Record is one thing that happened in a Run.
type Record struct {
	RunID string
	// Seq counts 1, 2, 3 … within the Run, without a gap.
	Seq   int64
	At    time.Time
	Entry Entry
}

// Entry is what a record says: one of the struct types below.
type Entry interface {
	Type() Type
}

// RunStarted opens every Run's records.
type RunStarted struct {
	Spec    string         `json:"spec"`
	Version string         `json:"version"`
	Scope   messages.Scope `json:"scope"`
	Input   string         `json:"input"`
}

// TurnStarted tells what one turn's resolution found.
type TurnStarted struct {
	Turn    int             `json:"turn"`
	Tools   []OfferedTool   `json:"tools"`
	Servers []OfferedServer `json:"servers"`
}

// OfferedTool is a tool that the model was shown. Server and Tool are empty for
// host tools and built-ins.
type OfferedTool struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Class  string `json:"class"`
}

// OfferedServer is a server of the Spec as the turn found it.
type OfferedServer struct {
	Name      string `json:"name"`
	Reachable bool   `json:"reachable"`
	// ToolCount counts the tools left after narrowing.
	ToolCount int    `json:"tool_count"`
	Deferred  bool   `json:"deferred"`
	Reason    string `json:"reason"`
}

// ModelCallFinished tells what the model answered.
type ModelCallFinished struct {
	Turn         int             `json:"turn"`
	Text         string          `json:"text"`
	ToolCalls    []RequestedCall `json:"tool_calls"`
	Usage        model.Usage     `json:"usage"`
	RequestBytes int64           `json:"request_bytes"`
	DurationMS   int64           `json:"duration_ms"`
	// Cut says why the endpoint ended the answer early; absent for a whole answer.
	Cut string `json:"cut,omitempty"`
}

// RequestedCall is a call that the model asked for, with the arguments as they
// came: they may be no JSON at all.
type RequestedCall struct {
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolCallStarted is written before a call leaves.
type ToolCallStarted struct {
	CallID       string          `json:"call_id"`
	ParentCallID string          `json:"parent_call_id"`
	Name         string          `json:"name"`
	Server       string          `json:"server"`
	Tool         string          `json:"tool"`
	Arguments    json.RawMessage `json:"arguments"`
}

// Outcome is how a call ended.
type Outcome string

// The outcomes. Unknown is a call that was sent and never answered.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeError   Outcome = "error"
	OutcomeRefused Outcome = "refused"
	OutcomeUnknown Outcome = "unknown"
)

// ToolCallFinished ends a call, exactly once. A call that never started has no
// [ToolCallStarted] and the outcome refused.
type ToolCallFinished struct {
	CallID       string  `json:"call_id"`
	ParentCallID string  `json:"parent_call_id"`
	Name         string  `json:"name"`
	Outcome      Outcome `json:"outcome"`
	// Result is what the model reads.
	Result string `json:"result"`
	// Structured is the tool's structured result as it came, absent without one.
	Structured json.RawMessage `json:"structured,omitempty"`
	Error      *Error          `json:"error"`
	DurationMS int64           `json:"duration_ms"`
}

// RunState is how a Run ended.
type RunState string

// The ends of a Run. A limit or the deadline fails it; cancelling aborts it.
const (
	StateCompleted RunState = "completed"
	StateFailed    RunState = "failed"
	StateAborted   RunState = "aborted"
	StateAbandoned RunState = "abandoned"
)

// RunFinished closes every Run's records.
type RunFinished struct {
	State RunState `json:"state"`
	Text  string   `json:"text"`
	Error *Error   `json:"error"`
}

// Error is a failure as records show it.
type Error struct {
	Kind    failure.Kind `json:"kind"`
	Message string       `json:"message"`
}

// Type is [TypeRunStarted].
func (RunStarted) Type() Type { return TypeRunStarted }

// Type is [TypeTurnStarted].
func (TurnStarted) Type() Type { return TypeTurnStarted }

// Type is [TypeModelCallFinished].
func (ModelCallFinished) Type() Type { return TypeModelCallFinished }

// Type is [TypeToolCallStarted].
func (ToolCallStarted) Type() Type { return TypeToolCallStarted }

// Type is [TypeToolCallFinished].
func (ToolCallFinished) Type() Type { return TypeToolCallFinished }

// Type is [TypeRunFinished].
func (RunFinished) Type() Type { return TypeRunFinished }

// Err is the failure as an error, nil for nil.
func (e *Error) Err() error {
	if e == nil {
		return nil
	}
	return failure.New(e.Kind, e.Message, nil)
}
