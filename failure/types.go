package failure

// detail is what every failure carries: a sentence fit to be shown and the
// cause beneath it. Its zero value is a failure without words, which only a
// mistake makes.
type detail struct {
	message string
	cause   error
}

func (d detail) Error() string { return d.message }

func (d detail) Unwrap() error { return d.cause }

// McpServerUnreachable is a server that could not be reached, or that did not let us in.
// An optional server of a Spec may fail this way and no other; trying again later may help.
type McpServerUnreachable struct{ detail }

// Kind is [KindMcpServerUnreachable].
func (*McpServerUnreachable) Kind() Kind { return KindMcpServerUnreachable }

// McpProtocolError is an answer that the protocol does not allow, or a JSON-RPC error of
// the server that has no kind of its own. Trying again does not help.
type McpProtocolError struct{ detail }

// Kind is [KindMcpProtocolError].
func (*McpProtocolError) Kind() Kind { return KindMcpProtocolError }

// McpResponseTooLarge is an answer larger than the response ceiling: the server is well and
// this client declined to read on. Raise the ceiling or ask for less.
type McpResponseTooLarge struct{ detail }

// Kind is [KindMcpResponseTooLarge].
func (*McpResponseTooLarge) Kind() Kind { return KindMcpResponseTooLarge }

// McpInputRequiredError is a server that asks for input (elicitation, sampling or roots)
// which this runtime does not give (MCP 2026-07-28, multi round-trip requests).
type McpInputRequiredError struct{ detail }

// Kind is [KindMcpInputRequiredError].
func (*McpInputRequiredError) Kind() Kind { return KindMcpInputRequiredError }

// McpHeaderMismatchError is a server that found a request's headers and body at odds
// (MCP 2026-07-28, code -32020; before it -32001).
type McpHeaderMismatchError struct{ detail }

// Kind is [KindMcpHeaderMismatchError].
func (*McpHeaderMismatchError) Kind() Kind { return KindMcpHeaderMismatchError }

// McpMissingClientCapabilityError is a server that needs a capability this client did not
// declare (MCP 2026-07-28, code -32021; before it -32003).
type McpMissingClientCapabilityError struct{ detail }

// Kind is [KindMcpMissingClientCapabilityError].
func (*McpMissingClientCapabilityError) Kind() Kind { return KindMcpMissingClientCapabilityError }

// McpUnsupportedProtocolVersionError is a server with which no protocol revision is shared
// (MCP 2026-07-28, code -32022; before it -32004).
type McpUnsupportedProtocolVersionError struct{ detail }

// Kind is [KindMcpUnsupportedProtocolVersion].
func (*McpUnsupportedProtocolVersionError) Kind() Kind { return KindMcpUnsupportedProtocolVersion }

// McpToolError is a tool that ran and said no. Its text is the tool's own.
type McpToolError struct{ detail }

// Kind is [KindMcpToolError].
func (*McpToolError) Kind() Kind { return KindMcpToolError }

// CredentialNotFound is a credential's name that resolves to nothing in the calling scope.
type CredentialNotFound struct{ detail }

// Kind is [KindCredentialNotFound].
func (*CredentialNotFound) Kind() Kind { return KindCredentialNotFound }

// AccessDenied is a name outside what the tenant permits or the Spec grants.
type AccessDenied struct{ detail }

// Kind is [KindAccessDenied].
func (*AccessDenied) Kind() Kind { return KindAccessDenied }

// EgressDenied is an address that the egress policy keeps closed.
type EgressDenied struct{ detail }

// Kind is [KindEgressDenied].
func (*EgressDenied) Kind() Kind { return KindEgressDenied }

// AuthorizationRequired is a grant that needs a person's consent first.
type AuthorizationRequired struct{ detail }

// Kind is [KindAuthorizationRequired].
func (*AuthorizationRequired) Kind() Kind { return KindAuthorizationRequired }

// ApprovalDenied is a call that the approval rules hold back, or that a person denied.
type ApprovalDenied struct{ detail }

// Kind is [KindApprovalDenied].
func (*ApprovalDenied) Kind() Kind { return KindApprovalDenied }

// ApprovalRequiredInProgram is a call inside a program that an approval would hold;
// the model is to make that call itself.
type ApprovalRequiredInProgram struct{ detail }

// Kind is [KindApprovalRequiredInProgram].
func (*ApprovalRequiredInProgram) Kind() Kind { return KindApprovalRequiredInProgram }

// InputRequiredInProgram is a call inside a program that asks for input; the model is to
// make that call itself.
type InputRequiredInProgram struct{ detail }

// Kind is [KindInputRequiredInProgram].
func (*InputRequiredInProgram) Kind() Kind { return KindInputRequiredInProgram }

// ModelError is a model endpoint that did not answer, or answered with what cannot be used.
type ModelError struct{ detail }

// Kind is [KindModelError].
func (*ModelError) Kind() Kind { return KindModelError }

// DeadlineExceeded is a deadline that passed before the work was done.
type DeadlineExceeded struct{ detail }

// Kind is [KindDeadlineExceeded].
func (*DeadlineExceeded) Kind() Kind { return KindDeadlineExceeded }

// SpecInvalid is a Spec or a configuration that cannot be used; the sentence says where and why.
type SpecInvalid struct{ detail }

// Kind is [KindSpecInvalid].
func (*SpecInvalid) Kind() Kind { return KindSpecInvalid }

// Busy is a queue that is full. Trying again later helps.
type Busy struct{ detail }

// Kind is [KindBusy].
func (*Busy) Kind() Kind { return KindBusy }

// InvalidArguments is a tool call whose arguments do not fit the tool's input schema.
type InvalidArguments struct{ detail }

// Kind is [KindInvalidArguments].
func (*InvalidArguments) Kind() Kind { return KindInvalidArguments }

// UnknownTool is a tool call whose name is no tool.
type UnknownTool struct{ detail }

// Kind is [KindUnknownTool].
func (*UnknownTool) Kind() Kind { return KindUnknownTool }

// NameConflict is one public name for two tools; the sentence names both.
type NameConflict struct{ detail }

// Kind is [KindNameConflict].
func (*NameConflict) Kind() Kind { return KindNameConflict }

// TurnLimit is a Run that used up its turns.
type TurnLimit struct{ detail }

// Kind is [KindTurnLimit].
func (*TurnLimit) Kind() Kind { return KindTurnLimit }

// InsufficientScope is a token that does not permit the call (RFC 6750 section 3.1).
type InsufficientScope struct{ detail }

// Kind is [KindInsufficientScope].
func (*InsufficientScope) Kind() Kind { return KindInsufficientScope }

// OutcomeUnknown is a call that was sent and never answered: it may have run. Verify
// before repeating it.
type OutcomeUnknown struct{ detail }

// Kind is [KindOutcomeUnknown].
func (*OutcomeUnknown) Kind() Kind { return KindOutcomeUnknown }

// Cancelled is work that its owner called off.
type Cancelled struct{ detail }

// Kind is [KindCancelled].
func (*Cancelled) Kind() Kind { return KindCancelled }

// Internal is a fault of this module's own.
type Internal struct{ detail }

// Kind is [KindInternal].
func (*Internal) Kind() Kind { return KindInternal }

// New returns the failure of a kind: the sentence to show, and what lies
// beneath (nil when nothing does). A kind that this module does not know, as a
// newer node might send, becomes [Internal].
func New(kind Kind, message string, cause error) Failure {
	d := detail{message: message, cause: cause}
	switch kind {
	case KindMcpServerUnreachable:
		return &McpServerUnreachable{d}
	case KindMcpProtocolError:
		return &McpProtocolError{d}
	case KindMcpResponseTooLarge:
		return &McpResponseTooLarge{d}
	case KindMcpInputRequiredError:
		return &McpInputRequiredError{d}
	case KindMcpHeaderMismatchError:
		return &McpHeaderMismatchError{d}
	case KindMcpMissingClientCapabilityError:
		return &McpMissingClientCapabilityError{d}
	case KindMcpUnsupportedProtocolVersion:
		return &McpUnsupportedProtocolVersionError{d}
	case KindMcpToolError:
		return &McpToolError{d}
	case KindCredentialNotFound:
		return &CredentialNotFound{d}
	case KindAccessDenied:
		return &AccessDenied{d}
	case KindEgressDenied:
		return &EgressDenied{d}
	case KindAuthorizationRequired:
		return &AuthorizationRequired{d}
	case KindApprovalDenied:
		return &ApprovalDenied{d}
	case KindApprovalRequiredInProgram:
		return &ApprovalRequiredInProgram{d}
	case KindInputRequiredInProgram:
		return &InputRequiredInProgram{d}
	case KindModelError:
		return &ModelError{d}
	case KindDeadlineExceeded:
		return &DeadlineExceeded{d}
	case KindSpecInvalid:
		return &SpecInvalid{d}
	case KindBusy:
		return &Busy{d}
	case KindInvalidArguments:
		return &InvalidArguments{d}
	case KindUnknownTool:
		return &UnknownTool{d}
	case KindNameConflict:
		return &NameConflict{d}
	case KindTurnLimit:
		return &TurnLimit{d}
	case KindInsufficientScope:
		return &InsufficientScope{d}
	case KindOutcomeUnknown:
		return &OutcomeUnknown{d}
	case KindCancelled:
		return &Cancelled{d}
	default:
		return &Internal{d}
	}
}
