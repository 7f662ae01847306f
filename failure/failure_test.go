package failure_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/psych-systems/psych-go/failure"
)

// kinds is every kind of the contract.
var kinds = []failure.Kind{
	"McpServerUnreachable", "McpProtocolError", "McpResponseTooLarge", "McpInputRequiredError", "McpHeaderMismatchError",
	"McpMissingClientCapabilityError", "McpUnsupportedProtocolVersionError", "McpToolError", "CredentialNotFound", "AccessDenied",
	"EgressDenied", "AuthorizationRequired", "ApprovalDenied", "approval_required_in_program", "input_required_in_program",
	"ModelError", "DeadlineExceeded", "SpecInvalid", "Busy", "InvalidArguments", "UnknownTool", "NameConflict", "TurnLimit",
	"InsufficientScope", "OutcomeUnknown", "Cancelled", "Internal",
}

func TestEveryKindIsATypeOfItsOwn(t *testing.T) {
	cause := errors.New("beneath")
	types := map[reflect.Type]failure.Kind{}
	for _, kind := range kinds {
		made := failure.New(kind, "a sentence", cause)
		if made.Kind() != kind || made.Error() != "a sentence" || !errors.Is(made, cause) {
			t.Errorf("%s is made as %s, %v", kind, made.Kind(), made)
		}
		if other, taken := types[reflect.TypeOf(made)]; taken {
			t.Errorf("%s and %s are one type", kind, other)
		}
		types[reflect.TypeOf(made)] = kind
		if got := failure.KindOf(fmt.Errorf("wrapped: %w", made)); got != kind {
			t.Errorf("%s is found as %s", kind, got)
		}
	}
}

func TestWhatHasNoKindIsInternal(t *testing.T) {
	if got := failure.KindOf(errors.New("odd")); got != failure.KindInternal {
		t.Errorf("an odd error is %s", got)
	}
	if got := failure.KindOf(nil); got != "" {
		t.Errorf("no error is %s", got)
	}
	var internal *failure.Internal
	if made := failure.New("FromANewerNode", "x", nil); !errors.As(made, &internal) {
		t.Errorf("an unknown kind is %T", made)
	}
}

func TestAFailureIsFoundByItsType(t *testing.T) {
	err := fmt.Errorf("while connecting: %w", failure.New(failure.KindBusy, "full", nil))
	var busy *failure.Busy
	var other *failure.AccessDenied
	if !errors.As(err, &busy) || errors.As(err, &other) {
		t.Errorf("found %v and %v", busy, other)
	}
}
