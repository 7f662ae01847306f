package failure

import "errors"

// Kind names a failure in records, in JSON and in messages between actors. The
// names are part of the program's contract and never change their meaning.
type Kind string

// The kinds, each the name of the type that carries it.
const (
	KindMcpServerUnreachable            Kind = "McpServerUnreachable"
	KindMcpProtocolError                Kind = "McpProtocolError"
	KindMcpResponseTooLarge             Kind = "McpResponseTooLarge"
	KindMcpInputRequiredError           Kind = "McpInputRequiredError"
	KindMcpHeaderMismatchError          Kind = "McpHeaderMismatchError"
	KindMcpMissingClientCapabilityError Kind = "McpMissingClientCapabilityError"
	KindMcpUnsupportedProtocolVersion   Kind = "McpUnsupportedProtocolVersionError"
	KindMcpToolError                    Kind = "McpToolError"
	KindCredentialNotFound              Kind = "CredentialNotFound"
	KindAccessDenied                    Kind = "AccessDenied"
	KindEgressDenied                    Kind = "EgressDenied"
	KindAuthorizationRequired           Kind = "AuthorizationRequired"
	KindApprovalDenied                  Kind = "ApprovalDenied"
	KindApprovalRequiredInProgram       Kind = "approval_required_in_program"
	KindInputRequiredInProgram          Kind = "input_required_in_program"
	KindModelError                      Kind = "ModelError"
	KindDeadlineExceeded                Kind = "DeadlineExceeded"
	KindSpecInvalid                     Kind = "SpecInvalid"
	KindBusy                            Kind = "Busy"
	KindInvalidArguments                Kind = "InvalidArguments"
	KindUnknownTool                     Kind = "UnknownTool"
	KindNameConflict                    Kind = "NameConflict"
	KindTurnLimit                       Kind = "TurnLimit"
	KindInsufficientScope               Kind = "InsufficientScope"
	KindOutcomeUnknown                  Kind = "OutcomeUnknown"
	KindCancelled                       Kind = "Cancelled"
	KindInternal                        Kind = "Internal"
)

// Failure is any failure of this module.
type Failure interface {
	error
	// Kind is the name of the failure's type.
	Kind() Kind
	// Unwrap is what lies beneath, for logs; nil when nothing does.
	Unwrap() error
}

// KindOf returns the kind of the outermost [Failure] in err's chain, and
// [KindInternal] when there is none. It returns "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if found, ok := errors.AsType[Failure](err); ok {
		return found.Kind()
	}
	return KindInternal
}
