package mcpwire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

// CallTool makes one tool call, within ctx and the call's own deadline, with the
// credential that its target names. A tool that ran and said no is a result, with
// IsError. It fails with a [Fault] beneath which lies failure.InvalidArguments for
// arguments that are no JSON object (nothing was sent),
// failure.McpInputRequiredError for a server that wants input first,
// failure.DeadlineExceeded or failure.Cancelled for a caller that stopped
// waiting, and else what the wire met. Whether the tool may have run tells
// [Fault.Sent].
func (s *Session) CallTool(ctx context.Context, call *messages.CallTool) (*messages.ToolResult, error) {
	if deadline := call.GetDeadlineUnixMs(); deadline != 0 {
		bounded, cancel := context.WithDeadline(ctx, time.UnixMilli(deadline))
		defer cancel()
		ctx = bounded
	}
	arguments := call.GetArguments()
	if len(arguments) == 0 {
		arguments = []byte(`{}`)
	}
	if !isObject(arguments) {
		return nil, s.options.fault(ClassUnsent, failure.KindInvalidArguments,
			fmt.Sprintf("was not asked: the arguments of %q are not a JSON object", excerpt(call.GetTool())), false, nil)
	}
	m := &Message{
		Method: methodCallTool, Params: s.callParams(call.GetTool(), arguments),
		Name: call.GetTool(), Credential: call.GetTarget().GetCredential(),
	}
	if s.modern {
		m.Headers = s.params.headers(call.GetTool(), arguments)
	}
	reply, fault := s.exchanger.Exchange(ctx, m)
	if fault != nil && fault.kind() == failure.KindMcpHeaderMismatchError && s.refreshed(ctx, m, arguments) {
		reply, fault = s.exchanger.Exchange(ctx, m)
	}
	if fault != nil {
		return nil, s.calling(fault)
	}
	return s.readResult(reply.Result)
}

// calling is a fault of a call: a server that forbids one call has let us in, and
// is reached by the next one.
func (s *Session) calling(fault *Fault) *Fault {
	if fault.Status != http.StatusForbidden || fault.kind() != failure.KindMcpServerUnreachable {
		return fault
	}
	own := *fault
	own.failure = failure.New(failure.KindMcpProtocolError, s.options.subject()+" forbids this call", fault.failure)
	return &own
}

// callParams are the params of a call.
func (s *Session) callParams(tool string, arguments []byte) []byte {
	name, err := json.Marshal(tool)
	if err != nil {
		panic(err) // a string always marshals
	}
	b := make([]byte, 0, len(`{"_meta":,"name":,"arguments":}`)+len(s.meta)+len(name)+len(arguments))
	b = append(b, '{')
	if s.meta != nil {
		b = append(append(append(b, `"_meta":`...), s.meta...), ',')
	}
	b = append(append(b, `"name":`...), name...)
	b = append(append(b, `,"arguments":`...), arguments...)
	return append(b, '}')
}

// refreshed fetches the tools again after a server found headers and body at
// odds, and says whether the call's headers are others now. The server refused
// the call before anything ran, so it may be sent again (2026-07-28, "Client
// Behavior").
func (s *Session) refreshed(ctx context.Context, m *Message, arguments []byte) bool {
	if !s.modern {
		return false
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	if headers := s.params.headers(m.Name, arguments); !slices.Equal(headers, m.Headers) {
		m.Headers = headers // another call's refresh brought it
		return true
	}
	if s.rebind(ctx, m.Credential) != nil {
		return false
	}
	headers := s.params.headers(m.Name, arguments)
	changed := !slices.Equal(headers, m.Headers)
	m.Headers = headers
	return changed
}
