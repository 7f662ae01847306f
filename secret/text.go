package secret

import (
	"crypto/subtle"
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// redacted is how a secret shows.
const redacted = "[redacted]"

// Text is a secret's value. It shows as [redacted] in every form of printing
// and encoding; only [Text.Reveal] gives the value away. The zero value is no
// secret at all.
type Text struct {
	// value stands behind a function, so that no printer that walks through an
	// enclosing struct, and no debugger-like dump, can follow it to the bytes.
	value func() string
}

var (
	_ fmt.Formatter           = Text{}
	_ json.Marshaler          = Text{}
	_ encoding.TextMarshaler  = Text{}
	_ slog.LogValuer          = Text{}
	_ zapcore.ObjectMarshaler = Text{}
)

// NewText returns a secret of that value.
func NewText(value string) Text { return Text{value: func() string { return value }} }

// Reveal returns the value, for the one place that sends it.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return t.value()
}

// IsZero reports whether there is no value.
func (t Text) IsZero() bool { return t.Reveal() == "" }

// Equal compares two values in constant time.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// Format prints [redacted], whatever the verb.
func (Text) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// String is [redacted].
func (Text) String() string { return redacted }

// GoString is [redacted].
func (Text) GoString() string { return redacted }

// MarshalJSON writes [redacted].
func (Text) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }

// MarshalText writes [redacted].
func (Text) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue is [redacted].
func (Text) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalLogObject writes [redacted].
func (Text) MarshalLogObject(encoder zapcore.ObjectEncoder) error {
	encoder.AddString("secret", redacted)
	return nil
}
